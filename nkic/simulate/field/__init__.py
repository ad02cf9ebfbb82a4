"""Equality of two programs: both are run over a finite field, in which nothing is rounded.

    elements  arithmetic modulo a chain of three primes; operators and functions, with their axioms
    rules     the elements of all tensors; one function for each row that needs its own
    traced    arrays of elements, for references that are functions of NumPy
    decide    a program over the field, beside its ordinary run; two programs: equal, different with
              an input that shows it, or undecided

docs/equality.md has the method, and what it cannot see.
"""
