"""Any resource of AWS by its own name: what its published schema says of it, and how it is read and changed."""
