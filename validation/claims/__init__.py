"""The papers' formal statements as executable checks; :mod:`validation.kinds.claims` examines them."""
