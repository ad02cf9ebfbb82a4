"""The NKI API: tensors and views, instruction calls, loops, registers, and grids.

Every operation of a kernel here records into a program. The API does not depend on whether the
closed evaluator runs the kernel or the Python interpreter calls it.
"""
