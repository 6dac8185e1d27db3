"""The steps themselves, in the order their revisions say."""
