"""The hardware: element types, memories, engines, targets, the instruction table and costs.

This package is data, with small pure functions over it. The compiler and the runner share it and
the file format, and nothing else.
"""
