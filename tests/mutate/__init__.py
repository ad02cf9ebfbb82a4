"""Mutation testing: `make mutate`, or `python -m tests.mutate [--random N] [--every FILE …]`.

One point of the code is changed at a time, in a copy of the project, and the quick tests that
concern it are run: one of them must fail. Changes that once survived all tests are a fixed list.
Random changes are drawn from the rooms whose bugs give wrong numbers silently.
"""
