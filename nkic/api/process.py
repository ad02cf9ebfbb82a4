"""What the start of a program says of all of its calls."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Calls:
    """`nki` is the version of NKI for calls that name none: that of `nkic.install(nki=…)`,
    `python -m nkic --nki …` and `pytest --nkic-nki …`.
    """

    nki: str | None = None


CALLS = Calls()
