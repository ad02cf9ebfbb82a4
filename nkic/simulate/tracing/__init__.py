"""Records what happens in a run, and tells how long it would take if something were otherwise."""
