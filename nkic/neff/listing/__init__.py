"""The text form of executables: listings, a complete form for `assemble`, and differences."""
