"""From a cost formula's answer to time: what the scheduler plans with and the runner runs on.

An instruction is issued, holds its stream for `hold`, and its result is seen `latency` after
that. A transfer first spends `start` until its first byte moves; then it takes `pool` of the
time of all the core's DMA engines together, so that a transfer that uses few of them leaves
room for others.
"""

from __future__ import annotations

from typing import NamedTuple

from nkic.machine.engines import Engine
from nkic.machine.facts import Facts
from nkic.machine.operands import Row

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
