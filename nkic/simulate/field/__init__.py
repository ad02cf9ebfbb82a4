"""Equality of two programs: both are run over a finite field, in which nothing is rounded.

    modular    arithmetic modulo a chain of three primes
    elements   values with what is known of them
    functions  operators and activation functions, with their axioms
    store      the elements of all tensors
    operation  an instruction with its operands as elements
    rules      one function for each row of the instruction table that needs its own
    follow     a program over the field, beside its ordinary run
    decide     two programs: equal, different with an input that shows it, or undecided

docs/equality.md has the method, and what it cannot see.
"""
