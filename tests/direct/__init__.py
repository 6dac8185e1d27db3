"""The pure centre by itself: rules, access, deadlines, the guard. `make mutants` breaks the code and runs them."""
