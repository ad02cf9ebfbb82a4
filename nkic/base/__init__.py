"""Source text, positions, diagnostics and profiles: the base of all other packages."""
