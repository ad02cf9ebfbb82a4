"""Simulated time against times that others measured: `make timing`."""
