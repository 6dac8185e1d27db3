"""Buckets and databases of AWS under their short names."""

__all__: list[str] = []
