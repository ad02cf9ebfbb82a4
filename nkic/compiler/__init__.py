"""The stages, from a recorded program to a file; `pipeline` alone knows their order."""
