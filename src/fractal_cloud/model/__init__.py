"""The product's nouns as plain data; nothing here imports our other packages, reads a clock or does input or output."""
