"""Equality of two programs: both are run over a finite field, in which nothing is rounded.

    elements  arithmetic modulo a chain of three primes
    functions operators and functions, with their axioms; the order of elements
    rules     the elements of all tensors; one function for each row that needs its own
    following a program over the field, beside its ordinary run
    traced    arrays of elements, for references that are functions of NumPy
    tensors   the same for those of torch
    decide    two programs: equal, different with an input that shows it, or undecided
    domain    where equal functions part: overflow, poles, lost digits, by runs on growing inputs
    intervals up to which size of inputs a program is proven to stay finite

docs/equality.md has the method, and what it cannot see.
"""
