"""Golden pages in tests/data with the results of the stages on random programs."""
