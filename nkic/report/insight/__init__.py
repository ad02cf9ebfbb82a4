"""Analysis of a trace: where the time went, what waited for what, and what would help."""
