"""Break the glass and hand it back: G1 to G15."""
