"""Two runs side by side: their profiles, and what may not get worse."""
