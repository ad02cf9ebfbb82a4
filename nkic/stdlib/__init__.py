"""`nki.language` functions that are made of instructions.

The files here are kernel source: nkic parses them and inlines the functions as it does with
any helper of a kernel. They are never imported as Python.
"""
