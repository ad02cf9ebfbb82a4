"""Source text, positions, diagnostics, profiles: what every other layer may rely on."""
