"""Remarks: optimisations that a stage made or missed on a line of the kernel, with figures.

A stage's `remarks` function derives them from the stage's input and output. Nothing is recorded
during the stage, so that a compilation without remarks has no overhead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from nkic.base.source import NOWHERE, CallChain, Span

Number = int | float | str


class Kind(Enum):
    """Whether the stage made an optimisation, missed one, or only reports an analysis."""

    PASSED = "passed"
    MISSED = "missed"
    ANALYSIS = "analysis"

    __hash__ = object.__hash__


@dataclass(frozen=True)
class Remark:
    """One remark.

    `name` is its subject, for programs ("overlap", "engine"). `numbers` are the figures of the
    message: names of times in nanoseconds end in `_ns`, of sizes in bytes in `_bytes`.
    """

    stage: str
    name: str
    kind: Kind
    at: CallChain | None
    message: str
    numbers: Mapping[str, Number] = field(default_factory=dict)

    @property
    def span(self) -> Span:
        """The innermost place in user code."""
        return self.at.primary if self.at is not None else NOWHERE


def line_of(at: CallChain) -> tuple[str, int]:
    """Return the key by which remarks are grouped: path and line."""
    span = at.primary
    return span.path, span.line


def in_order(remarks: Iterable[Remark], stages: Iterable[str]) -> list[Remark]:
    """Return remarks sorted by place, then by stage."""
    rank = {stage: number for number, stage in enumerate(stages)}
    return sorted(
        remarks,
        key=lambda remark: (remark.span[:3], rank[remark.stage], remark.name, remark.message),
    )
