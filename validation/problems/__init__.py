"""The catalogue's entries, each under the name of its problem: ``ENTRY`` and the strategy for its tests."""
