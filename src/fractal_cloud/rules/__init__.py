"""What the product decides, as pure functions over the model; no clock, no chance, no logging, no input or output."""
