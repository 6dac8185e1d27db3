"""The program fractal: it parses, calls and prints; whatever could be reused without a terminal belongs elsewhere."""
