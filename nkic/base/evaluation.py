"""Limits on evaluating a kernel, enforced by the interpreter and set with `--limit`.

docs/security.md describes their purpose.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The limits, with their defaults."""

    steps: int = 100_000_000  # nodes evaluated, plus one per four bytes of values
    length: int = 1 << 20  # elements of a list, tuple or range, characters of a string
    bits: int = 1 << 13  # of an integer
    width: int = 4096  # of one formatted field
    depth: int = 900  # nested calls, nested containers
    memory: int | None = None  # bytes of values and instructions, all that are ever made


DEFAULT_LIMITS = Limits()
