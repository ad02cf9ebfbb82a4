"""`nki.language` functions implemented by instructions.

The files here are kernel source: nkic parses them and inlines the functions like any helper of a
kernel. They are never imported as Python modules.
"""
