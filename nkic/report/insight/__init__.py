"""What a trace says: where the time went, what waited for what, and what would help."""
