"""The tests, by behaviour."""
