"""Instruction timing derived from cost formulas, shared by the scheduler and the runner.

An instruction is issued, occupies its stream for `hold`, and its result is available `latency`
later. A transfer is triggered by an engine, which is busy for `trigger`. Its first byte moves
`start` after the trigger. It then takes `pool` of the combined time of the core's DMA engines, so
that a transfer that uses few of them leaves capacity for others. Queues are rings: a transfer may
be triggered while earlier transfers of its queue move their data; data move in queue order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from nkic.machine.clock.dma_costs import dma_trigger
from nkic.machine.engines import Engine
from nkic.machine.facts import Facts
from nkic.machine.memory import PARTITIONS, Buffer
from nkic.machine.operands import AttributeKind, Row
from nkic.machine.operators import ACTIVATIONS
from nkic.machine.targets import Target


class Timing(NamedTuple):
    """Times in picoseconds. `by` is the engine that triggers a transfer; `exclusive` holds the
    memories that other engines may not access at the same time. On the tensor engine, `cold` is
    `hold` while it is cold, and `use` the share of its rows at work.
    """

    hold: int
    latency: int
    start: int = 0
    pool: int = 0
    trigger: int = 0
    by: Engine = Engine.DMA
    exclusive: tuple[Buffer, ...] = ()
    cold: int = 0
    use: float = 1.0


def timing(row: Row, facts: Facts, engine: Engine, queue: int = 0) -> Timing:
    """Return the timing of one instruction on `engine`, or of a transfer on DMA queue `queue`."""
    cost, target = row.cost(facts), facts.target
    latency = _ps(cost.latency_ns)
    if engine is not Engine.DMA:
        hold = round(cost.interval * 1_000_000 / target.clock_mhz[engine])
        cold = round(cost.cold_interval * 1_000_000 / target.clock_mhz[engine])
        exclusive = _exclusive(facts, engine)
        return Timing(hold, latency, exclusive=exclusive, cold=cold, use=_use(facts, engine))
    busy = _ps(cost.busy_ns)
    share = busy * (cost.dma_engines or target.dma_engines) // target.dma_engines
    if row.is_rendezvous:  # a rendezvous of cores has prepared descriptors and occupies no engine
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


def _use(facts: Facts, engine: Engine) -> float:
    """The share of the tensor engine's rows at work: its operands have a partition for each."""
    if engine is not Engine.TENSOR:
        return 1.0
    rows = (tile.partitions for name, tile in facts.tiles.items() if name != "dst")
    return max(rows, default=PARTITIONS) / PARTITIONS


def _ps(ns: float) -> int:
    return round(ns * 1000)


def overlaps_commands(engine: Engine) -> bool:
    """Return whether `engine` can command descriptor generation while an earlier instruction runs.

    Source: Trainium2 architecture guide, descriptor generation engine (documented for the scalar
    engine, whose next instruction comes after the command).
    """
    return engine is Engine.SCALAR


def semaphore_ps(target: Target) -> int:
    """Return the time from a signal to the start of the waiting stream, in picoseconds."""
    return _ps(target.figures["issue.semaphore_ns"])


class Tables:
    """The activation table loaded in a core's scalar engine; initially none."""

    def __init__(self, target: Target) -> None:
        self.held = ""
        self.load = _ps(target.figures["scalar.table_ns"])

    def missing(self, table: str) -> int:
        """Return the time to load `table`, in picoseconds (0 if it is loaded already)."""
        return 0 if table == self.held or not table else self.load

    def loading(self, table: str) -> int:
        """Load `table` and return the time it takes, in picoseconds (0 if it is loaded already)."""
        load = self.missing(table)
        if load:
            self.held = table
        return load


class Warmth:
    """The warm-up state of a core's tensor engine.

    The engine starts at a fraction of its rate, and reaches the full rate after some time of use.
    It is cold again after some time (a window) without use, or in which it was used too little:
    for too short a time, or by products over few rows. That rows count is implied: the profiler's
    guide speaks of utilisation, and published products over 1 and 64 rows take twice the time of
    those over 128.
    """

    def __init__(self, target: Target) -> None:
        self.up = _ps(target.figures["tensor.warm_up_ns"])
        self.down = _ps(target.figures["tensor.cool_down_ns"])
        self.least = target.figures["tensor.least_use"]
        self.since = self.end = self.window = -self.down
        self.used = 0.0  # in the present window

    def duration(self, start: int, timing: Timing) -> int:
        """Return the actual duration of an instruction that starts at `start`."""
        hold, cold = timing.hold, timing.cold
        if not self.up:
            return hold
        if start - self.end >= self.down:
            self.since = self.window = start
            self.used = 0.0
        elif start - self.window >= self.down:
            if self.used <= self.least * (start - self.window):
                self.since = start
            self.window, self.used = start, 0.0
        cold_time = min(max(0, self.since + self.up - start), cold)
        duration = hold if not cold_time else cold_time + hold - cold_time * hold // cold
        self.used += duration * timing.use
        self.end = start + duration
        return duration


def activation_table(row: Row, attributes: tuple[Any, ...], engine: Engine) -> str:
    """Return the activation table that an instruction needs, or an empty string.

    Functions of one family share a table, and plain functions are in every table
    (`machine/operators`).
    """
    if engine is not Engine.SCALAR:
        return ""
    functions = [
        value
        for rule, value in zip(row.attributes, attributes, strict=True)
        if rule.kind is AttributeKind.ACTIVATION
    ]
    return ACTIVATIONS[functions[0]].table if functions else ""
