"""Process-wide settings of calls."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Calls:
    """Settings of every call of the process.

    `nki` is the NKI version of calls that name none: that of `nkic.install(nki=…)`, `python -m nkic
    --nki …` and `pytest --nkic-nki …`.
    """

    nki: str | None = None


CALLS = Calls()
