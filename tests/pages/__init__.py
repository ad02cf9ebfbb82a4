"""Pages of tests/data that hold what the stages make of random programs."""
