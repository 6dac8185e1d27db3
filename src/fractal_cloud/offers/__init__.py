"""Which component types there are, and how each is read and changed in its cloud; never whether it should be."""
