"""Remarks: what a stage did with a line of the kernel, what it did not do and why, in figures.

They are data that a stage's `remarks` makes from what went in and what came out; nothing is noted
while a stage works, so that a compilation without them costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from nkic.base.source import NOWHERE, CallChain, Span

Number = int | float | str


class Kind(Enum):
    """Whether the stage did something for the kernel, could not, or only found something out."""

    PASSED = "passed"
    MISSED = "missed"
    ANALYSIS = "analysis"

    __hash__ = object.__hash__


@dataclass(frozen=True)
class Remark:
    """`name` says for programs what it is about ("overlap", "engine"); `numbers` hold the figures
    of the message: times in nanoseconds end in `_ns`, sizes in bytes in `_bytes`.
    """

    stage: str
    name: str
    kind: Kind
    at: CallChain | None
    message: str
    numbers: Mapping[str, Number] = field(default_factory=dict)

    @property
    def span(self) -> Span:
        """The innermost place that the user wrote."""
        return self.at.primary if self.at is not None else NOWHERE


def line_of(at: CallChain) -> tuple[str, int]:
    """What remarks are gathered by: path and line."""
    span = at.primary
    return span.path, span.line


def in_order(found: Iterable[Remark], stages: Iterable[str]) -> list[Remark]:
    """By place, then by stage."""
    rank = {stage: number for number, stage in enumerate(stages)}
    return sorted(found, key=lambda one: (one.span[:3], rank[one.stage], one.name, one.message))
