"""Mutation testing: `make mutate`, or `python -m tests.mutate [fixed] [random N] [--seed S]`.

One point of the code is changed at a time, in a copy of the project, and the quick tests that
concern it are run: one of them must fail. `fixed` are changes that once survived all tests;
`random` are drawn from the rooms whose mistakes give wrong numbers in silence.
"""
