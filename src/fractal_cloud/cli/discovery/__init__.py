"""Existing resources as a ready declaration (G11): read, draft, write. Nothing is changed anywhere."""
