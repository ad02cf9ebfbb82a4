"""Prepared streams: items with their steps, durations, waits and signals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from nkic.artifact.records import (
    InstructionRecord,
    LoopRecord,
    OperandRecord,
    PatternRecord,
    StreamRecord,
)
from nkic.machine.operands import Register
from nkic.machine.rules import restricts_accumulation
from nkic.machine.targets import PARTITIONS, Engine, Target
from nkic.machine.timing import Line, Timing, activation_table
from nkic.simulate.dynamic import Dynamic, PsumWrites, is_dynamic
from nkic.simulate.in_place import Piece, is_whole
from nkic.simulate.outcome import MAX_ITERATIONS, Prints, Remarks
from nkic.simulate.plans import (
    Decoder,
    EngineState,
    Plan,
    Planner,
    Registers,
    Rendezvous,
    Step,
    Window,
    Work,
)
from nkic.simulate.shadow import Check, Mark, Shadow
from nkic.simulate.tile import Tile

# ---- Fusion of neighbouring instructions along rows of HBM --------------------------------------
# An elementwise instruction whose tiles are all pieces of HBM tensors (`storage/in_place.py`) may
# be computed at any time: its inputs are there from the start, and its results are not observed
# before the end. Instructions of one plan whose pieces are neighbours in the rows of every tensor
# form a band: one of them computes all, as one instruction on wider pieces, since processors read
# long rows several times as fast as many short ones. Each instruction still takes its own
# simulated time, at which its reads are checked and its writes are recorded.

MAX_ELEMENTS = 1 << 20  # elements of a band
Offsets = tuple[int, ...]  # the offset of each piece in its tensor


class _Member(NamedTuple):
    """An item, the width of its pieces in columns, and their offsets."""

    item: Item
    width: int
    offsets: Offsets


class Bands:
    def __init__(self, planner: Planner) -> None:
        self.planner = planner
        self.tensors = planner.executable.tensors
        self.pieces = planner.memory.in_place
        self._rows: dict[tuple[object, ...], list[_Member]] = defaultdict(list)

    def offer(self, item: Item, plan: Plan) -> None:
        """Add an elementwise item that may be part of a band: all of its tiles are pieces of
        inputs and results, of the same shape.
        """
        if not self.pieces.stored or not plan.writes:
            return
        offsets: list[int] = []
        shape: tuple[int, int] | None = None
        key: list[object] = [plan.work.step]
        for number, operand in enumerate(item.record.operands):
            if type(operand) is not PatternRecord:
                continue
            piece = self._piece(operand, number in plan.writes)
            if piece is None or piece.width > piece.pitch:
                return
            pattern, pitch, width, _ = piece
            if shape is None:
                shape = operand.partitions, width
                key.append(shape)
            elif shape != (operand.partitions, width):
                return
            offsets.append(pattern.offset)
            key.append((pattern.tensor, pitch, pattern.offset // pitch))
        if shape is not None:
            self._rows[tuple(key)].append(_Member(item, shape[1], tuple(offsets)))

    def _piece(self, operand: PatternRecord, is_written: bool) -> Piece | None:
        pieces = self.pieces.stored if is_written else self.pieces.loaded
        piece = pieces.get(operand.tensor)
        if piece is None or operand is piece.tile:
            return piece
        return piece if is_whole(operand, self.tensors[operand.tensor].shape) else None

    def settle(self) -> None:
        """Let the leftmost item of each band compute the whole band."""
        for band in self.bands():
            if len(band) > 1:
                self._join(band)

    def bands(self) -> Iterator[list[_Member]]:
        """Yield runs of neighbouring items, from left to right."""
        for members in self._rows.values():
            band: list[_Member] = []
            for member in sorted(members, key=lambda member: member.offsets):
                if band and not _extends(member, band):
                    yield band
                    band = []
                band.append(member)
            yield band

    def _join(self, band: list[_Member]) -> None:
        first, record = band[0], band[0].item.record
        operands = tuple([self._widened(o, first.width * len(band)) for o in record.operands])
        if record.row is not None:
            work = self.planner.work(record._replace(operands=operands), record.row)
            first.item.bind(work, operands)
            for member in band[1:]:
                # the leftmost item of the band computes this one
                member.item.step, member.item.windows, member.item.work = nothing, (), None

    def _widened(self, operand: OperandRecord, width: int) -> OperandRecord:
        """Return an operand as a piece of its HBM tensor, with `width` columns."""
        piece = self.pieces.get(operand.tensor) if type(operand) is PatternRecord else None
        if type(operand) is not PatternRecord or piece is None:
            return operand
        return piece.pattern._replace(dims=((piece.pitch, operand.partitions), (1, width)))


def _extends(member: _Member, band: list[_Member]) -> bool:
    """Return whether `member` starts where the band ends in every tensor, and fits."""
    width, count = member.width, len(band)
    expected = tuple([offset + width * count for offset in band[0].offsets])
    return member.offsets == expected and (count + 1) * width * PARTITIONS <= MAX_ELEMENTS


# --------------------------------------------------------------------------------------------------


class Item:
    """One prepared item of a stream. Without a plan it only waits and signals.

    `windows` are the tiles of its `work`, whose addresses are fixed, with the memory of `operands`
    that they address. `reads` and `writes` are the indices of the operands that must find, and that
    leave, initialised bytes; `checks` are such reads at run-time addresses, with their patterns;
    `authors` record the writer of bytes in PSUM. `follows` tells that the item needs the result of
    the previous item, so the engine stalls until it is complete. `dynamic` resolves run-time
    addresses. `is_rendezvous` tells that all cores run the item together, and `rendezvous` is this
    core's part in it. `table` is the activation table that the scalar engine must hold.
    """

    __slots__ = (
        *("authors", "bytes", "checks", "dynamic", "follows", "is_rendezvous", "operands", "reads"),
        *("record", "rendezvous", "signals", "step", "table", "timing", "waits", "windows", "work"),
        "writes",
    )

    def __init__(
        self, record: InstructionRecord, step: Step | None, timing: Timing, size: int
    ) -> None:
        self.record, self.step, self.timing = record, step, timing
        self.bytes = size
        self.waits = record.waits
        self.signals = record.signals
        self.follows = False
        self.windows: tuple[tuple[Tile, Window], ...] = ()
        self.work: Work | None = None
        self.operands: tuple[OperandRecord, ...] = ()
        self.checks: tuple[tuple[Check, PatternRecord], ...] = ()
        self.reads: tuple[int, ...] = ()
        self.writes: tuple[int, ...] = ()
        self.authors: tuple[Mark, ...] = ()
        self.dynamic: Dynamic | None = None
        self.is_rendezvous = False
        self.rendezvous: Rendezvous | None = None
        self.table = ""

    def patterns(self, numbers: tuple[int, ...]) -> list[PatternRecord]:
        return [self.record.operands[i] for i in numbers]  # type: ignore[misc]

    def bind(self, work: Work, operands: tuple[OperandRecord, ...]) -> None:
        self.work, self.operands, self.step = work, operands, work.step
        if work.is_placed:
            self.windows = work.windows(operands)


class _LoopFrame(NamedTuple):
    """An open loop of a stream: its first item, one past its last, and its upper bound."""

    first: int
    end: int
    record: LoopRecord
    stop: int


class Runner(Line):
    """A stream at run time, with its open loops, outermost first.

    `on_iteration` is called at every iteration of a loop, even one without any items to run;
    `on_limit` is called for a loop with a run-time bound, after `max_iterations`.
    """

    __slots__ = (
        *("bytes", "core", "count", "iterations", "loops", "max_iterations"),
        *("next_index", "on_iteration", "on_limit", "rank", "record", "state"),
    )

    def __init__(
        self,
        index: int,
        record: StreamRecord,
        items: list[Item | LoopRecord],
        state: EngineState,
        target: Target,
        cores: int,
    ) -> None:
        unit = state.rank * cores + record.core
        super().__init__(index, unit, record.engine, record.queue, items, target)
        self.record, self.state = record, state
        self.rank, self.core = state.rank, record.core
        self.next_index = 0
        self.bytes = self.count = 0  # bytes moved by transfers, instructions executed
        self.loops: list[_LoopFrame] = []
        self.iterations: list[int] = []  # of each open loop
        self.on_iteration: Step = nothing
        self.on_limit: Callable[[LoopRecord, int], object] = unlimited
        self.max_iterations = MAX_ITERATIONS

    @property
    def name(self) -> str:
        return f"rank{self.rank}.{self.record.name}" if self.rank else self.record.name

    item: Any
    items: list[Item | LoopRecord]

    @property
    def place(self) -> int:
        """The place in the source of the next item, or of the loop that it opens or repeats."""
        if self.item is not None:
            return int(self.item.record.place)
        if self.loops and self.next_index == self.loops[-1].end:
            return self.loops[-1].record.place
        item = self.items[self.next_index]
        return item.record.place if isinstance(item, Item) else item.place

    def next(self) -> Item | None:
        """Find the next item to run, after opening and closing the loops before it."""
        while True:
            if self.loops and self.next_index == self.loops[-1].end:
                self._next_iteration()
                continue
            if self.next_index >= len(self.items):
                return None
            item = self.items[self.next_index]
            if isinstance(item, Item):
                self.item = item
                return item
            self._open(item)

    def _value(self, value: int | Register) -> int:
        return self.state.registers[value.number] if isinstance(value, Register) else value

    def _open(self, loop: LoopRecord) -> None:
        """Enter a loop, with the current values of its bounds."""
        first = self.next_index + 1
        frame = _LoopFrame(first, first + loop.length, loop, self._value(loop.stop))
        if loop.counter is not None:
            self.state.registers.counters[loop.counter.number] = self._value(loop.start)
        self.loops.append(frame)
        self.iterations.append(0)
        self._repeat_or_leave(frame)

    def _next_iteration(self) -> None:
        self.on_iteration()
        frame = self.loops[-1]
        self.iterations[-1] += 1
        if (
            self.iterations[-1] >= self.max_iterations
            and frame.record.trips is None
            and self._continues(frame)
        ):
            self.on_limit(frame.record, self.iterations[-1])
        if frame.record.counter is not None:
            self.state.registers.counters[frame.record.counter.number] += frame.record.step
        self._repeat_or_leave(frame)

    def _repeat_or_leave(self, frame: _LoopFrame) -> None:
        if self._continues(frame):
            self.next_index = frame.first
            return
        self.loops.pop()
        self.iterations.pop()
        self.next_index = frame.end

    def _continues(self, frame: _LoopFrame) -> bool:
        loop = frame.record
        if loop.length == 0:
            return False
        if loop.condition is not None:
            return self.state.registers[loop.condition.number] != 0
        return loop.counter is not None and self.state.registers[loop.counter.number] < frame.stop


class Hook:
    """What is done beside the items of one rank, each at its time; nothing unless overridden."""

    def begin(self, runner: Runner, item: Item, start: int) -> None:
        """Called before the item's values are computed; at a rendezvous, they are exchanged."""

    def end(self, runner: Runner, item: Item, start: int) -> None:
        """Called after them, when the item's time has passed."""

    def meet(self, runners: Sequence[Runner]) -> None:
        """Called at a rendezvous of these streams, when all have reached it."""


def nothing() -> None:
    """Do nothing: the default of `on_iteration`, and the step of items without work."""


def unlimited(loop: LoopRecord, iterations: int) -> None:
    """Do nothing: without a limit on iterations."""


def prepare(
    decoder: Decoder,
    shadow: Shadow | None,
    prints: Prints,
    rank: int = 0,
    remarks: Remarks | None = None,
) -> list[Runner]:
    remarks = remarks if remarks is not None else Remarks()
    builder, streams = _Builder(decoder, shadow, prints, rank, remarks), decoder.executable.streams
    first = rank * len(streams)
    runners = [builder.runner(first + i, stream) for i, stream in enumerate(streams)]
    if builder.psum_writes is not None:
        builder.psum_writes.settle()
    return runners


class _Builder:
    def __init__(
        self, decoder: Decoder, shadow: Shadow | None, prints: Prints, rank: int, remarks: Remarks
    ) -> None:
        executable = self.executable = decoder.executable
        self.decoder, self.target, self.clock = decoder, decoder.target, decoder.clock
        self.shadow, self.prints, self.rank, self.remarks = shadow, prints, rank, remarks
        restricts = restricts_accumulation(self.target)
        self.psum_writes = PsumWrites(executable, remarks) if restricts else None
        self.copies: dict[tuple[int, Engine], dict[object, Plan]] = defaultdict(dict)
        self.registers = [[0] * executable.registers for _ in range(executable.cores)]
        self.unset = [None if shadow is None else set[int]() for _ in range(executable.cores)]

    def runner(self, index: int, stream: StreamRecord) -> Runner:
        registers = Registers(self.registers[stream.core], self.unset[stream.core])
        state = EngineState(registers, stream.core, self.prints, self.rank, self.remarks)
        copies = self._copies(stream)
        planner = Planner(self.decoder, stream.engine, state, stream.queue, copies)
        items: list[Item | LoopRecord] = []
        bands = Bands(planner)
        written: list[int] = []  # tensors that the previous item writes
        for record in stream.items:
            if isinstance(record, LoopRecord):
                items.append(record)
                written = []
                continue
            item, written = self.item(record, written, planner, bands)
            items.append(item)
        bands.settle()
        return Runner(index, stream, items, state, self.target, max(1, self.executable.cores))

    def _copies(self, stream: StreamRecord) -> dict[object, Plan] | None:
        """The plans of copies that the stream shares with others; None if it shares none."""
        if stream.engine is not Engine.DMA:
            return None
        trigger_engine = self.target.queue_engines[stream.queue % self.target.dma_queues]
        return self.copies[stream.core, trigger_engine]

    def item(
        self, record: InstructionRecord, before: list[int], planner: Planner, bands: Bands
    ) -> tuple[Item, list[int]]:
        if record.row is None:
            return Item(record, None, *self.clock.of(record, planner.engine, planner.queue)), before
        if is_dynamic(record):
            return self.dynamic_item(record, planner), []
        row, operands = record.row, record.operands
        plan = planner.plan(record, row)
        item = Item(record, nothing, plan.timing, plan.size)
        item.table, item.reads, item.writes = plan.table, plan.reads, plan.writes
        if not (row.copies and self.decoder.memory.in_place.is_done(operands)):
            item.bind(plan.work, operands)
            if row.maps:
                bands.offer(item, plan)
            elif plan.work.rendezvous is not None:
                item.is_rendezvous, item.rendezvous = True, plan.work.rendezvous
        if plan.fills and self.psum_writes is not None:
            self.psum_writes.offer(item, planner.engine, plan.fills)
        if planner.engine is Engine.DMA:
            return item, before
        for i in plan.awaits if before else ():
            if operands[i].tensor in before:  # type: ignore[union-attr]
                item.follows = True
        written: list[int] = []
        for i in plan.writes:
            written.append(operands[i].tensor)  # type: ignore[union-attr]
        return item, written

    def dynamic_item(self, record: InstructionRecord, planner: Planner) -> Item:
        """Return an item that resolves its addresses each time it runs."""
        dynamic = Dynamic(planner, record)
        item = Item(record, dynamic.run, *self.clock.of(record, planner.engine, planner.queue))
        item.follows = True
        item.dynamic = dynamic
        if dynamic.row.is_rendezvous:
            item.is_rendezvous, item.rendezvous = True, dynamic.rendezvous
        item.table = activation_table(dynamic.row, record.attributes, planner.engine)
        if self.shadow is not None:
            item.checks = dynamic.watch(self.shadow)
        if self.psum_writes is not None:
            for write in dynamic.written():
                self.psum_writes.register(item, planner.engine, *write)
        return item
