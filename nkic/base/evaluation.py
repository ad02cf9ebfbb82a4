"""How much a kernel may compute and hold while it is evaluated: the numbers that the interpreter
counts up to, and that `--limit` sets. docs/security.md says what they are for.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The limits, each with its default."""

    steps: int = 100_000_000  # nodes evaluated, and four bytes of a value each
    length: int = 1 << 20  # elements of a list, tuple or range, characters of a text
    bits: int = 1 << 13  # of an integer
    width: int = 4096  # of one formatted field
    depth: int = 900  # calls within calls, containers within containers


DEFAULT_LIMITS = Limits()
