"""NumPy in the closed world: numbers, types and arrays of the host that a kernel computes with."""
