"""Error bounds: a first-order bound on each result element's distance from exact arithmetic.

Along with each value, a run keeps a bound on its distance from the value that the same program
would have without any rounding, of operators, sums or stored values. Inputs and constants count as
exact. Bounds are of first order in the unit roundoff, and hold for every order of addition in
float32.

    values   operators and functions on values with bounds; the bounds of all tensors
    follow   one function for each row of the instruction table that is covered, and its use

Whatever is not covered is unbounded: infinity, which propagates like any other bound.
"""

from nkic.simulate.bounds.follow import Bounds

__all__ = ["Bounds"]
