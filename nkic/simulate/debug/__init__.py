"""Looking into a run while it goes on: its writes, its order, and a prompt in the middle of it."""
