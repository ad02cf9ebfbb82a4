"""From a cost formula's answer to time: what the scheduler plans with and the runner runs on.

An instruction is issued, holds its stream for `hold`, and its result is seen `latency` after
that. A transfer first spends `start` until its first byte moves; then it takes `pool` of the
time of all the core's DMA engines together, so that a transfer that uses few of them leaves
room for others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from nkic.machine.costs import ACT_TABLE_LOAD_NS
from nkic.machine.engines import Engine
from nkic.machine.facts import Facts
from nkic.machine.operands import AttributeKind, Row
from nkic.machine.targets import Target

SEMAPHORE_PS = 20_000  # from a signal to the waiting engine's start (DMA overview: 5 to 18 ns)


class Timing(NamedTuple):
    """Picoseconds."""

    hold: int
    latency: int
    start: int = 0
    pool: int = 0


def timing(row: Row, facts: Facts, engine: Engine) -> Timing:
    """The timing of one instruction on `engine`."""
    cost, target = row.cost(facts), facts.target
    latency = round(cost.latency_ns * 1000)
    if engine is not Engine.DMA:
        return Timing(round(cost.cycles * 1_000_000 / target.clock_mhz[engine]), latency)
    busy = round(cost.busy_ns * 1000)
    share = busy * (cost.dma_engines or target.dma_engines) // target.dma_engines
    return Timing(busy, latency, round(cost.start_ns * 1000), share)


class Tables:
    """The activation table that a core's scalar engine holds; none at the start."""

    def __init__(self, target: Target) -> None:
        self.held = ""
        self.load = round(ACT_TABLE_LOAD_NS[target.generation] * 1000)

    def loading(self, table: str) -> int:
        """Picoseconds until the engine holds `table`; it does from now on."""
        if table == self.held or not table:
            return 0
        self.held = table
        return self.load


def activation_table(row: Row, attributes: tuple[Any, ...], engine: Engine) -> str:
    """The table that an instruction needs, or nothing. Which functions share one is not
    published: here each has its own, and a copy needs none (assumed; docs/fidelity.md).
    """
    if engine is not Engine.SCALAR:
        return ""
    found = [
        value
        for rule, value in zip(row.attributes, attributes, strict=True)
        if rule.kind is AttributeKind.ACTIVATION
    ]
    return "" if found in ([], ["copy"]) else str(found[0])
