"""Meanings of the vector engine's rows, in modules of the same names as theirs."""
