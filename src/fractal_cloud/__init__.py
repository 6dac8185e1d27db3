"""The SDK's public names, and nothing else: what a declaration written in Python imports."""

__version__ = "0.1.0"
