"""What `make mutants` knows: changes that a named test must notice, and mutants that no test can notice."""
