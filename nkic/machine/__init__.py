"""What the hardware is: element types, memories, engines, targets, the instruction table, costs.

Everything here is data with small pure functions over it. The compiler and the runner share
this package and the file format, and nothing else.
"""
