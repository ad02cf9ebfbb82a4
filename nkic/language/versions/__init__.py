"""What each version of NKI has: what came, what went, what is going to go."""
