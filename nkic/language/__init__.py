"""The surface of NKI: tensors and views, instruction calls, loops, registers, grids.

Whatever a kernel does here records a program. Nothing here knows whether the closed world
evaluates the kernel, or Python itself calls it.
"""
