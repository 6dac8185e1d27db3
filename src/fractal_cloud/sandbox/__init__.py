"""Clouds for a laptop and for tests; production code never imports it, only the command line starts it."""
