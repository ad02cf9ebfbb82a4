"""Runs of a program whose order is known: only the values are computed.

If no value decides which items run, or at which addresses, everything else is the same in every run
of an executable: the interleaving of its streams, the total time, and whether reads find
initialised bytes (`order.py`). Only the steps in that order remain. A process that runs an
executable again with the same options keeps these steps, together with the memories that they work
on; later runs repeat the steps on other inputs, and repeat the remarks on values.

The event loop is still used for programs with registers, device loops, collectives or run-time
offsets; for programs that read partly uninitialised bytes or end in a fault; and for runs under
observation or with a time limit. Memories larger than `MOST_BYTES` are not kept.
"""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from nkic.neff.records import Executable, PatternRecord
from nkic.simulate.decode import EngineState, Step
from nkic.simulate.machine import WATCHED
from nkic.simulate.options import RunOptions
from nkic.simulate.order import Executed
from nkic.simulate.plans import Window
from nkic.simulate.printing import Prints
from nkic.simulate.remarks import Remark, Remarks
from nkic.simulate.result import Result
from nkic.simulate.storage.compact import Compact
from nkic.simulate.storage.memory import Contents, Memory
from nkic.simulate.storage.pages import Recycled
from nkic.simulate.streams import Item, Runner
from nkic.simulate.tile import Tile

MOST = 8  # programs that are kept
MOST_BYTES = 256 << 20  # total size of the memories that are kept
Laid = tuple[tuple[Tile, Window], ...]
Lent = tuple[tuple[Tile, PatternRecord], ...]
Watch = Callable[[int], object]


class Ordered(NamedTuple):
    """A run of one kernel without its values.

    It holds the items that `ran`, in order, the memory, and the parts of the result that are the
    same in all runs.
    """

    executable: Executable
    memory: Memory
    runners: Sequence[Runner]
    prints: Prints
    remarks: Remarks
    ran: Sequence[Executed]
    result: Result


def with_values(
    passed: Result,
    executable: Executable,
    memory: Memory,
    prints: Prints,
    remarks: Remarks,
    rounded: bool,
) -> Result:
    """Return `passed`, the value-independent result, completed with the values of the run."""
    return replace(
        passed,
        outputs={p.name: memory.contents_of(p.tensor, rounded) for p in executable.outputs},
        printed=tuple(prints.kept),
        prints_left_out=prints.left_out,
        remarks=(*remarks.diagnostics(executable), *passed.remarks),
    )


# A step, its tiles over owned memory, and its tiles over borrowed memory; then the remarks on its
# place in the order, and its place in the source.
_Act = tuple[Step, Laid, Lent, tuple[Remark, ...], int]


class Rerun:
    """Computes the values of a program any number of times."""

    def __init__(self, ordered: Ordered) -> None:
        self.executable, self.memory = ordered.executable, ordered.memory
        self.prints, self.remarks = ordered.prints, ordered.remarks
        self.states: list[EngineState] = [runner.state for runner in ordered.runners]
        self.compact = Compact(self.memory)
        self.acts = _acts(self.compact, ordered.ran)
        self.lent = {tile for _, _, lent, *_ in self.acts for tile, _ in lent}
        self.result = ordered.result
        self._kept = 0  # bytes, but for those of results; known after the first run
        self.is_new = True  # the memory still has the inputs of the first run

    @property
    def bytes(self) -> int:
        """The size of all that is kept."""
        recycled = self.memory.recycled
        return self._kept + (recycled.bytes if recycled is not None else 0)

    def run(self, contents: Contents, rounded: bool, watch: Watch | None = None) -> Result:
        """Return the result of the program on these inputs."""
        self._begin(contents)
        for first in range(0, len(self.acts), WATCHED):
            acts = self.acts[first : first + WATCHED]
            self._step(acts)
            if watch is not None:  # scaled, since some instructions have no step
                watch((first + len(acts)) * self.result.instructions // len(self.acts))
        found = with_values(
            self.result, self.executable, self.memory, self.prints, self.remarks, rounded
        )
        self._give_back()
        return found

    def _begin(self, contents: Contents) -> None:
        if self.is_new:
            self.is_new = False
            return
        # everything read has been written before
        if self.memory.recycled is None and not self.result.remarks:
            self.memory.recycled = Recycled()
        self.memory.lend(contents)
        self.remarks.clear()
        self.prints.clear()
        for state in self.states:
            state.reset()

    def _step(self, acts: Sequence[_Act]) -> None:
        window, remarks = self.memory.window, self.remarks
        for step, kept, lent, said, place in acts:
            for tile, there in kept:
                tile.window = there
            for tile, pattern in lent:
                tile.window = window(pattern, tile.form)
            step()
            if remarks.fresh or said:
                remarks.fresh += said
                remarks.settle(self.executable, place)

    def _give_back(self) -> None:
        """Release the caller's arrays, which must not be held between runs."""
        self.memory.give_back()
        self._kept = self._kept or self.memory.bytes + self.compact.bytes
        for tile in self.lent:
            del tile.window


def _acts(compact: Compact, ran: Sequence[Executed]) -> list[_Act]:
    """Return the executed steps over memory that is reserved while it is in use."""
    done: dict[int, list[int]] = defaultdict(list)  # tensors, by their last use
    for tensor, number in _last(ran).items():
        done[number].append(tensor)
    acts: list[_Act] = []
    windows: dict[int, Window | None] = {}  # by identity of the pattern
    for number, (items, said) in enumerate(ran):
        kept: list[tuple[Tile, Window]] = []
        lent: list[tuple[Tile, PatternRecord]] = []
        for item in items:
            _lay(compact, item, windows, kept, lent)
        place = items[0].record.place
        acts.append((_step(items), tuple(kept), tuple(lent), said, place))
        for tensor in done.get(number, ()):
            compact.release(tensor)
    return acts


def _last(ran: Sequence[Executed]) -> dict[int, int]:
    """Return the index in `ran` of each tensor's last use."""
    last: dict[int, int] = {}
    for number, (items, _) in enumerate(ran):
        for item in items:
            for operand in item.operands:
                if type(operand) is PatternRecord:
                    last[operand.tensor] = number
    return last


def _lay(
    compact: Compact,
    item: Item,
    windows: dict[int, Window | None],
    kept: list[tuple[Tile, Window]],
    lent: list[tuple[Tile, PatternRecord]],
) -> None:
    """Add the tiles of a step."""
    for number, tile in item.work.tiles if item.work is not None else ():
        pattern: PatternRecord = item.operands[number]  # type: ignore[assignment]
        if id(pattern) in windows:
            window = windows[id(pattern)]
        else:
            window = windows[id(pattern)] = compact.window(pattern, tile.form)
        if window is None:
            lent.append((tile, pattern))
        else:
            kept.append((tile, window))


def _step(items: Sequence[Item]) -> Step:
    """Return the step of an item or, at a rendezvous, the exchange between the cores."""
    step = items[0].step
    if items[0].rendezvous is None and step is not None:
        return step
    meeting = [item.rendezvous for item in items if item.rendezvous is not None]

    def exchange() -> None:
        brought = {core: rendezvous.offer() for core, rendezvous in enumerate(meeting)}
        for rendezvous in meeting:
            rendezvous.accept(brought)

    return exchange


# ---- programs that have run


@dataclass
class Known:
    """A program that has run in this process, with these options."""

    program: weakref.ref[Executable]
    options: RunOptions
    rerun: Rerun | None = None
    is_fixed: bool = True  # until it is found to depend on values


_known: list[Known] = []  # the most recent last, without those that are running


def may_repeat(options: RunOptions) -> bool:
    """Return whether runs with these options may be repeated without the event loop."""
    looks = options.check_races or options.report_bounds
    return options.check_init and options.values and options.timeout_s is None and not looks


def take(executable: Executable, options: RunOptions) -> Known:
    """Take the entry of a program out of the cache; it is exclusive until it is put back."""
    options = replace(options, watch=None)
    for known in [*_known]:
        if known.program() is executable and known.options == options:
            with suppress(ValueError):  # another thread has just taken it
                _known.remove(known)
                return known
    return Known(weakref.ref(executable), options)


def put(known: Known) -> None:
    """Put an entry back after a run, and evict others if necessary."""
    if known.rerun is not None and known.rerun.bytes > MOST_BYTES:
        known.rerun = None
    _known.append(known)
    while len(_known) > MOST or _bytes() > MOST_BYTES:
        with suppress(IndexError):
            _known.pop(0)


def _bytes() -> int:
    return sum([known.rerun.bytes for known in [*_known] if known.rerun is not None])
