"""Writing values into a declaration's source and nothing else: comments, order and layout stay as they are (G14)."""
