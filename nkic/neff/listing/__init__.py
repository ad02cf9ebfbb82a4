"""The text form of executables: listings for people, everything for `assemble` to read back, and
how two programs differ.
"""
