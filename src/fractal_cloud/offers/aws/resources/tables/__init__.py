"""What a type needs beyond its schema, one table per module; every row names its source."""
