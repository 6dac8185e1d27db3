"""The history of the schema, one step per file; nothing imports it but Alembic."""
