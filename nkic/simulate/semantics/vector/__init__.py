"""Semantics of the vector engine's rows, in modules named like theirs."""
