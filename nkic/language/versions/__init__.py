"""Differences between versions of NKI: additions, removals, and deprecations."""
