"""The papers' formal statements as executable checks; :mod:`validation.testing.claims` examines them."""
