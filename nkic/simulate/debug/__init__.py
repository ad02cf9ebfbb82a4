"""Observation of a run in progress: its writes, its order, and an interactive prompt."""
