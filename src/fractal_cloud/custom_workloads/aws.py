"""What runs people's own programs on AWS, under short names."""

__all__: list[str] = []
