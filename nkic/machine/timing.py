"""From a cost formula's answer to time: what the scheduler plans with and the runner runs on.

An instruction is issued, holds its stream for `hold`, and its result is there `latency` after
that. A transfer is triggered by an engine, which is busy with it for `trigger`; `start` after
that its first byte moves; then it takes `pool` of the time of all the core's DMA engines together,
so that a transfer that uses few of them leaves room for others. Queues are rings: a transfer may be
triggered while earlier ones of its queue move their data, which they do in order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from nkic.machine.clock.dma_costs import dma_trigger
from nkic.machine.engines import Engine
from nkic.machine.facts import Facts
from nkic.machine.memory import Buffer
from nkic.machine.operands import AttributeKind, Row
from nkic.machine.operators import ACTIVATIONS
from nkic.machine.targets import Target


class Timing(NamedTuple):
    """Times in picoseconds. `by` is the engine that triggers a transfer; `exclusive` holds the
    memories that other engines may not access at the same time.
    """

    hold: int
    latency: int
    start: int = 0
    pool: int = 0
    trigger: int = 0
    by: Engine = Engine.DMA
    exclusive: tuple[Buffer, ...] = ()


def timing(row: Row, facts: Facts, engine: Engine, queue: int = 0) -> Timing:
    """The timing of one instruction on `engine`; of a transfer, on DMA queue `queue`."""
    cost, target = row.cost(facts), facts.target
    latency = _ps(cost.latency_ns)
    if engine is not Engine.DMA:
        hold = round(cost.interval * 1_000_000 / target.clock_mhz[engine])
        return Timing(hold, latency, exclusive=_exclusive(facts, engine))
    busy = _ps(cost.busy_ns)
    share = busy * (cost.dma_engines or target.dma_engines) // target.dma_engines
    if row.is_rendezvous:  # what cores do together is prepared, and no engine's alone
        return Timing(busy, latency, _ps(target.figures["dma.start_prepared_ns"]), share)
    trigger = dma_trigger(facts, target.queue_engines[queue % target.dma_queues])
    start, trigger_ps = _ps(trigger.start_ns), _ps(trigger.busy_ns)
    return Timing(busy, latency, start, share, trigger_ps, trigger.engine)


def _exclusive(facts: Facts, engine: Engine) -> tuple[Buffer, ...]:
    """The memories that this instruction accesses, and that the target lets few engines share."""
    target = facts.target
    accessed = {tile.buffer for tile in facts.tiles.values()}
    rules = (Buffer.SBUF, target.sbuf_exclusive), (Buffer.PSUM, target.psum_exclusive)
    return tuple(b for b, engines in rules if engine in engines and b in accessed)


def _ps(ns: float) -> int:
    return round(ns * 1000)


def commands_beside(engine: Engine) -> bool:
    """That engine commands the hardware that makes descriptors while an earlier instruction of
    its own is under way (Trainium2 architecture guide, descriptor generation engine: of the scalar
    engine, whose next instruction comes after the command).
    """
    return engine is Engine.SCALAR


def semaphore_ps(target: Target) -> int:
    """From a signal to the start of who waits for it."""
    return _ps(target.figures["issue.semaphore_ns"])


class Tables:
    """The activation table that a core's scalar engine holds; none at the start."""

    def __init__(self, target: Target) -> None:
        self.held = ""
        self.load = _ps(target.figures["scalar.table_ns"])

    def missing(self, table: str) -> int:
        """Picoseconds that the engine would need to load `table`."""
        return 0 if table == self.held or not table else self.load

    def loading(self, table: str) -> int:
        """Picoseconds until the engine holds `table`; it does from now on."""
        load = self.missing(table)
        if load:
            self.held = table
        return load


class Warmth:
    """How warm a core's tensor engine is. It starts at a share of its rate, runs at the full rate
    after some time of use, and is cold again after some time without.
    """

    def __init__(self, target: Target) -> None:
        self.up = _ps(target.figures["tensor.warm_up_ns"])
        self.down = _ps(target.figures["tensor.cool_down_ns"])
        self.rate = target.figures["tensor.cold_rate"]
        self.since = self.end = -self.down

    def stretched(self, start: int, hold: int) -> int:
        """How long the engine really is busy with what starts at `start` and would take `hold`."""
        if not self.up:
            return hold
        if start - self.end >= self.down:
            self.since = start
        cold = max(0, self.since + self.up - start)
        slow = min(cold, round(hold / self.rate))
        found = slow + hold - round(slow * self.rate)
        self.end = start + found
        return found


def activation_table(row: Row, attributes: tuple[Any, ...], engine: Engine) -> str:
    """The table that an instruction needs, or nothing: functions of one family share a table, and
    the plain ones are in every table (`machine/operators`).
    """
    if engine is not Engine.SCALAR:
        return ""
    found = [
        value
        for rule, value in zip(row.attributes, attributes, strict=True)
        if rule.kind is AttributeKind.ACTIVATION
    ]
    return ACTIVATIONS[found[0]].table if found else ""
