"""What the control plane remembers, in SQLite or PostgreSQL; no HTTP and no rules of the protocol belong here."""
