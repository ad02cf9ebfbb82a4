"""A program that runs again: its values alone.

Where no value decides what is run, and where, all else is the same in every run of an executable:
the order in which its streams go on, how long all takes, and whether what is read was written. So
a process that runs an executable again, with the same options, keeps the steps in the order in
which the event loop ran them, with the memories that they work on. The runs that follow are these
steps on other inputs; what steps remark on values is remarked again.

Not kept are programs with registers, loops on the device, collectives, run-time offsets or prints,
programs that read what was written in part, and memories beyond `MOST_BYTES`. Runs that somebody
looks into, or that have a limit of time, run as they always do.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from nkic.base.diagnostics import Diagnostic
from nkic.neff.records import Executable, LoopRecord, PatternRecord
from nkic.simulate.decode import EngineState, Step
from nkic.simulate.options import RunOptions
from nkic.simulate.plans import Window
from nkic.simulate.printing import Prints
from nkic.simulate.remarks import Remarks
from nkic.simulate.result import Result
from nkic.simulate.storage.compact import Compact
from nkic.simulate.storage.memory import Contents, Memory
from nkic.simulate.storage.pages import Recycled
from nkic.simulate.storage.strangers import STRANGER
from nkic.simulate.streams import Item, Runner
from nkic.simulate.tile import Tile

MOST = 8  # programs that are known
MOST_BYTES = 256 << 20  # of memories that are kept for all of them together
Together = tuple[Item, ...]  # one item, or those of all cores that meet
Laid = tuple[tuple[Tile, Window], ...]


class Ended(NamedTuple):
    """A run of one kernel that has ended. `ran` are the items whose values were computed, in
    order; None where values had a say in it. `unwritten` are those of the remarks of `result` that
    are about bytes that nobody wrote.
    """

    executable: Executable
    memory: Memory
    runners: Sequence[Runner]
    prints: Prints
    remarks: Remarks
    ran: Sequence[Together] | None
    result: Result
    unwritten: Sequence[Diagnostic]

    @property
    def is_steady(self) -> bool:
        """The next run does the same."""
        if self.ran is None or self.executable.registers or self.prints.kept:
            return False
        if self.remarks.has(STRANGER):  # not of a step
            return False
        return all(_is_plain(item) for runner in self.runners for item in runner.items)


def _is_plain(item: Item | LoopRecord) -> bool:
    if not isinstance(item, Item) or item.dynamic is not None:
        return False
    return item.rendezvous is None or item.rendezvous.group is None


class _Act(NamedTuple):
    """A step, its tiles over memory that is `kept`, and those over memory that is `lent`."""

    step: Step
    kept: Laid
    lent: tuple[tuple[Tile, PatternRecord], ...]
    place: int


class Rerun:
    """A run that has ended as the next ones need it."""

    def __init__(self, ended: Ended) -> None:
        self.executable, self.memory, self.remarks = ended.executable, ended.memory, ended.remarks
        self.states: list[EngineState] = [runner.state for runner in ended.runners]
        self.compact = Compact(self.memory)
        self.acts = _acts(self.compact, [i for i in ended.ran or () if i[0].work is not None])
        self.memory.empty()
        self.lent = {tile for act in self.acts for tile, _ in act.lent}
        self.result, self.unwritten = replace(ended.result, outputs={}), ended.unwritten
        self._give_back()
        self.memory.recycled = None if self.unwritten else Recycled()

    @property
    def bytes(self) -> int:
        """All that is kept."""
        return self.memory.bytes + self.compact.bytes

    def run(self, contents: Contents, rounded: bool) -> Result:
        """The result of the same program on other inputs."""
        self.memory.lend(contents)
        self.remarks.clear()
        for state in self.states:
            state.reset()
        self._step()
        results = self.executable.outputs
        outputs = {p.name: self.memory.contents_of(p.tensor, rounded) for p in results}
        self._give_back()
        remarks = (*self.remarks.diagnostics(self.executable), *self.unwritten)
        return replace(self.result, outputs=outputs, remarks=remarks)

    def _step(self) -> None:
        window, remarks = self.memory.window, self.remarks
        for step, kept, lent, place in self.acts:
            for tile, there in kept:
                tile.window = there
            for tile, pattern in lent:
                tile.window = window(pattern, tile.form)
            step()
            if remarks.fresh:
                remarks.settle(self.executable, place)

    def _give_back(self) -> None:
        """Arrays of the caller's are not held between runs."""
        self.memory.give_back()
        for tile in self.lent:
            del tile.window


def _acts(compact: Compact, ran: Sequence[Together]) -> list[_Act]:
    """What items do, over memory that is theirs for as long as they need it."""
    last = {tensor: number for number, items in enumerate(ran) for tensor in _tensors(items)}
    acts = []
    for number, items in enumerate(ran):
        acts.append(_act(compact, items))
        for tensor in _tensors(items):
            if last[tensor] == number:
                compact.release(tensor)
    return acts


def _tensors(items: Together) -> list[int]:
    operands = [operand for item in items for operand in item.operands]
    return [operand.tensor for operand in operands if type(operand) is PatternRecord]


def _act(compact: Compact, items: Together) -> _Act:
    kept, lent = [], []
    for item in items:
        for number, tile in item.work.tiles if item.work is not None else ():
            operand: PatternRecord = item.operands[number]  # type: ignore[assignment]
            if compact.memory.is_lent(operand.tensor):
                lent.append((tile, operand))
            else:
                kept.append((tile, compact.window(operand, tile.form)))
    return _Act(_step(items), tuple(kept), tuple(lent), items[0].record.place)


def _step(items: Together) -> Step:
    """What an item does; where cores meet, each offers what it brings, then each takes its own."""
    meeting = [item.rendezvous for item in items if item.rendezvous is not None]
    if not meeting:
        assert items[0].step is not None
        return items[0].step

    def exchange() -> None:
        brought = {core: rendezvous.offer() for core, rendezvous in enumerate(meeting)}
        for rendezvous in meeting:
            rendezvous.accept(brought)

    return exchange


# Programs that ran


@dataclass
class Known:
    """A program that ran in this process, with these options."""

    program: weakref.ref[Executable]
    options: RunOptions
    rerun: Rerun | None = None
    is_new: bool = True  # it has not run yet
    is_steady: bool = True  # as far as it is known

    @property
    def wants(self) -> bool:
        """To be shown the run that comes now, once it has ended."""
        return not self.is_new and self.is_steady and self.rerun is None

    def show(self, ended: Ended) -> None:
        """Keeps what the next runs need, if they are like this one."""
        self.is_steady = ended.is_steady
        if self.is_steady:
            self.rerun = Rerun(ended)
            if self.rerun.bytes > MOST_BYTES:
                self.is_steady, self.rerun = False, None


_known: list[Known] = []  # the latest last; one that is running is not among them


def may_repeat(options: RunOptions) -> bool:
    """Whether runs with these options may be repeated without the event loop."""
    looks = options.check_races or options.report_bounds or options.watch is not None
    return options.check_init and options.values and options.timeout_s is None and not looks


def take(executable: Executable, options: RunOptions) -> Known:
    """What is known of a program, which nobody else gets before it is put back."""
    for known in [*_known]:
        if known.program() is executable and known.options == options:
            with suppress(ValueError):  # another thread has just taken it
                _known.remove(known)
                return known
    return Known(weakref.ref(executable), options)


def put(known: Known) -> None:
    """It has run; others are forgotten for it."""
    known.is_new = False
    _known.append(known)
    while len(_known) > MOST or _bytes() > MOST_BYTES:
        with suppress(IndexError):
            _known.pop(0)


def _bytes() -> int:
    return sum([known.rerun.bytes for known in [*_known] if known.rerun is not None])
