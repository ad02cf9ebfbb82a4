"""How far results may be from exact arithmetic: a bound for every element, of first order.

Along with each value a run keeps a bound on its distance from the value that the same program
would have if nothing were ever rounded: neither operators, nor sums, nor what is stored. Inputs
and constants count as exact. Bounds are of first order in the unit roundoff, and hold for every
order of addition in float32.

    store    the bounds of all tensors, element by element
    follow   what an instruction makes of them
    algebra  operators and functions on values with bounds
    rules    one function for each row of the instruction table that is covered

What is not covered is unbounded: infinity, which spreads like any other bound.
"""

from nkic.simulate.bounds.follow import Bounds

__all__ = ["Bounds"]
