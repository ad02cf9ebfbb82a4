"""Race detection at run time: unordered accesses of two cores to a tensor in shared HBM.

Every stream has a vector clock: for each stream of its rank, the number of items that are complete
when its next item starts. Semaphores carry clocks between streams; a rendezvous merges those of all
cores. An access races with the last accesses of the other core that its clock does not include, if
one of the two writes. A write that leaves all bytes unchanged is harmless: kernels let both cores
write the same values. Only executed accesses are checked, at their actual addresses; the accesses
of a rendezvous itself are not.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from nkic.artifact.records import Executable, PatternRecord, span_of
from nkic.base.diagnostics import Label, ProgramFault
from nkic.machine.operands import Access, Row
from nkic.machine.targets import Buffer, Engine, Target
from nkic.simulate.dynamic import IndirectOperand, flag_windows
from nkic.simulate.in_place import flags_of
from nkic.simulate.outcome import fault
from nkic.simulate.shadow import Shadow
from nkic.simulate.streams import Hook, Item, Runner

Clock = NDArray[np.int64]
Granules = NDArray[np.int64]
GranulesOf = Callable[[], Granules]  # returns the granules of an access, at the time of the access


class _Use(NamedTuple):
    """One operand in a tensor that both cores access."""

    tensor: int
    granules: GranulesOf
    writes: bool


class _Suspect(NamedTuple):
    """A write that races if it changes any byte, with the bytes before it."""

    access: _Use
    granules: Granules
    is_write: bool  # whether the other core's access was a write, and its place
    place: int
    before: bytes


class _Last:
    """A core's last access to each granule of a tensor: stream, position, place in the source."""

    def __init__(self, size: int) -> None:
        self.streams = np.zeros(size, np.int64)
        self.numbers = np.zeros(size, np.int64)
        self.places = np.zeros(size, np.int64)

    def set(self, granules: Granules, stream: int, number: int, place: int) -> None:
        self.streams[granules], self.numbers[granules] = stream, number
        self.places[granules] = place

    def forget(self, granules: Granules) -> None:
        self.numbers[granules] = 0

    def unordered(self, granules: Granules, clock: Clock) -> int | None:
        """Return the place of an access that is not known to be complete, or None."""
        late = self.numbers[granules] > clock[self.streams[granules]]
        return int(self.places[granules][late.argmax()]) if late.any() else None


class RaceDetector(Hook):
    """The clocks of one rank's streams, and its cores' last accesses."""

    def __init__(
        self, executable: Executable, target: Target, runners: Sequence[Runner], shadow: Shadow
    ) -> None:
        self.executable, self.target = executable, target
        self.numbers = _Numbers(shadow)
        self.first = runners[0].index if runners else 0
        streams = len(runners)
        self.clocks = [np.zeros(streams, np.int64) for _ in runners]
        self.done = [0] * streams
        self.tokens: dict[tuple[int, int], deque[Clock]] = defaultdict(deque)
        self.accesses: dict[int, tuple[_Use, ...]] = {}  # by the item's id
        self.shared = _shared(executable, runners)
        # by tensor, core, and whether it is a write
        self.last: dict[tuple[int, int, bool], _Last] = {}
        self.regions = {n: shadow.homes[n].region.array for n in self.shared}
        self.suspects: list[_Suspect] = []

    def begin(self, runner: Runner, item: Item, start: int) -> None:
        """Start an item: what it waited for is complete."""
        if not item.is_rendezvous:
            self._join(runner, item)
            if item.record.row is not None and self.shared:
                self._access(runner, item, item.record.row)

    def end(self, runner: Runner, item: Item, start: int) -> None:
        """End an item: it has computed its values, and signals."""
        stream = runner.index - self.first
        for access, granules, is_write, place, before in self.suspects:
            if self.regions[access.tensor].tobytes() != before:
                raise self._race(runner, item, access, is_write, place)
            # it changed no byte: harmless, like the access before
            self._last(access.tensor, 1 - runner.core, True).forget(granules)
        self.suspects.clear()
        self.done[stream] += 1
        after = self.clocks[stream].copy()
        after[stream] = self.done[stream]
        if runner.record.engine is not Engine.DMA:  # transfers of a queue overlap
            self.clocks[stream] = after
        for semaphore in item.signals:
            self.tokens[runner.core, semaphore].append(after)

    def meet(self, runners: Sequence[Runner]) -> None:
        for runner in runners:
            self._join(runner, runner.item)
        streams = [runner.index - self.first for runner in runners]
        joined = np.maximum.reduce([self.clocks[stream] for stream in streams])
        for stream in streams:
            self.clocks[stream] = joined.copy()

    def _join(self, runner: Runner, item: Item) -> None:
        clock = self.clocks[runner.index - self.first]
        for semaphore, count in item.waits:
            for _ in range(count):
                np.maximum(clock, self.tokens[runner.core, semaphore].popleft(), out=clock)

    # ---- accesses ----

    def _access(self, runner: Runner, item: Item, row: Row) -> None:
        uses = self.accesses.get(id(item))
        if uses is None:
            uses = self.accesses[id(item)] = tuple(self._uses_of(runner, item, row))
        stream = runner.index - self.first
        for access in uses:
            granules = access.granules()
            if not self._unordered(runner, item, access, granules, self.clocks[stream]):
                last = self._last(access.tensor, runner.core, access.writes)
                last.set(granules, stream, self.done[stream] + 1, item.record.place)

    def _unordered(
        self, runner: Runner, item: Item, access: _Use, granules: Granules, clock: Clock
    ) -> bool:
        """Return whether the access is a write that may race. Raises for a racing read."""
        for is_write in (True, False) if access.writes else (True,):
            last = self._last(access.tensor, 1 - runner.core, is_write)
            place = last.unordered(granules, clock)
            if place is None:
                continue
            if not access.writes:
                raise self._race(runner, item, access, is_write, place)
            before = self.regions[access.tensor].tobytes()
            self.suspects.append(_Suspect(access, granules, is_write, place, before))
            return True
        return False

    def _race(
        self, runner: Runner, item: Item, access: _Use, is_write: bool, place: int
    ) -> ProgramFault:
        name, other = self.executable.tensors[access.tensor].name, 1 - runner.core
        verb, other_verb = (("reads", "writes")[mode] for mode in (access.writes, is_write))
        span = span_of(self.executable, place)
        return fault(
            self.executable,
            "core-race",
            f"core {runner.core} {verb} `{name}` while core {other} {other_verb} it: nothing "
            "orders the two",
            item.record.place,
            labels=[Label(span, f"core {other} {other_verb} it here")] if span else [],
            help=f"put `nisa.core_barrier({name}, (0, 1))` between them, or let only one core "
            "access it",
        )

    def _last(self, tensor: int, core: int, is_write: bool) -> _Last:
        key = tensor, core, is_write
        if key not in self.last:
            self.last[key] = _Last(self.numbers.flags[tensor].array.size)
        return self.last[key]

    def _uses_of(self, runner: Runner, item: Item, row: Row) -> Iterator[_Use]:
        """Yield the accesses of an item to tensors that both cores access."""
        record = item.record
        facts = self.executable.facts(record, self.target, runner.record.engine)
        for number, operand in enumerate(record.operands):
            if type(operand) is not PatternRecord or operand.dynamic is not None:
                continue
            if operand.tensor in self.shared:
                is_operand = number < len(row.operands)  # those after are offsets
                mode = row.access_of(row.operands[number], facts) if is_operand else MODE_OF_OFFSETS
                granules = self.numbers.window(operand).reshape(-1)
                yield from _uses(operand.tensor, partial(np.asarray, granules), mode)
        for place in item.dynamic.places if item.dynamic is not None else ():
            if (tensor := place.pattern.tensor) in self.shared:
                windows = flag_windows(self.numbers, place.pattern, place.size)
                mode = MODES[place.reads, place.writes]
                yield from _uses(tensor, partial(_current, place, windows), mode)


MODE_OF_OFFSETS = Access.READ
MODES = {(mode.reads, mode.writes): mode for mode in Access}


def _uses(tensor: int, granules: GranulesOf, mode: Access) -> Iterator[_Use]:
    if mode.reads:
        yield _Use(tensor, granules, False)
    if mode.writes:
        yield _Use(tensor, granules, True)


def _current(place: IndirectOperand, windows: Granules) -> Granules:
    indices = place.indices()
    inside = indices[place.good(indices)]
    count = None if place.pattern.kind == "vector" else 1
    return windows[inside[:count]].reshape(-1)


class _Numbers:
    def __init__(self, shadow: Shadow) -> None:
        self.flags = shadow.flags
        self._all: dict[int, Granules] = {}

    def window(self, pattern: PatternRecord) -> Granules:
        flags, size = self.flags[pattern.tensor], pattern.dtype.size
        if pattern.tensor not in self._all:
            self._all[pattern.tensor] = np.arange(flags.array.size)
        shape, strides = flags_of(pattern.dims, size, flags.columns)
        numbers = self._all[pattern.tensor][pattern.offset * size // flags.columns :]
        return as_strided(numbers, shape, tuple(step * numbers.itemsize for step in strides))


def _shared(executable: Executable, runners: Sequence[Runner]) -> frozenset[int]:
    """Return the tensors in shared HBM that instructions of both cores access."""
    cores: dict[int, set[int]] = defaultdict(set)
    for runner in runners:
        for item in runner.items:
            for operand in item.record.operands if isinstance(item, Item) else ():
                if type(operand) is PatternRecord:
                    cores[operand.tensor].add(runner.core)
    return frozenset(
        tensor
        for tensor, users in cores.items()
        if len(users) > 1 and executable.tensors[tensor].buffer is Buffer.SHARED_HBM
    )
