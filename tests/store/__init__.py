"""The store alone: every test here runs on every database there is."""
