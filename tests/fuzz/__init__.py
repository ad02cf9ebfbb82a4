"""Coverage-guided fuzzing of everything that reads what strangers wrote: `make fuzz`."""
