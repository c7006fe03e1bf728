"""Results of searches: the answer of one, and the list of all."""
