"""The order in which a program's items run, found without computing values.

If no value decides which items run, or at which addresses, the event loop needs no values: the
interleaving of the streams, the total time, and whether reads find initialised bytes are the same
for all inputs. A run of such a program has two phases: this one, and then the steps in the order
that it found (`rerun.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from nkic.neff.records import Executable, InstructionRecord, PatternRecord
from nkic.simulate.dynamic import is_dynamic
from nkic.simulate.machine import Arrival, Machine
from nkic.simulate.remarks import Remark
from nkic.simulate.storage.shadow import Shadow
from nkic.simulate.streams import Item, Runner

# One executed item, or the items of all cores at a rendezvous; and the remarks on its place in the
# order, which do not depend on values.
Executed = tuple[tuple[Item, ...], tuple[Remark, ...]]


class NotFixed(Exception):
    """Values affect what is run."""


def may_be_fixed(executable: Executable) -> bool:
    """Return whether the records show that no value decides what is run, or at which addresses.

    This is so without registers, device loops and run-time offsets.
    """
    if executable.registers:
        return False
    return all(_is_plain(stream.items) for stream in executable.streams)


def _is_plain(items: Sequence[object]) -> bool:
    return all(type(item) is InstructionRecord and not is_dynamic(item) for item in items)


def has_collectives(runners: Sequence[Runner]) -> bool:
    """Return whether some item is a collective of several ranks."""
    items = [item for runner in runners for item in runner.items]
    return any(
        isinstance(item, Item) and item.rendezvous is not None and item.rendezvous.group is not None
        for item in items
    )


class Order(Machine):
    """Advance simulated time, check reads, and record the order in `ran`.

    Raises `NotFixed` if an item reads partly uninitialised bytes, since the effect depends on
    values.
    """

    def __init__(self, *facts: object) -> None:
        super().__init__(*facts)  # type: ignore[arg-type]
        self.ran: list[Executed] = []
        (self.shadow,) = self.unwritten.shadows
        self.slots = self.shadow.memory.slots if self.shadow is not None else {}
        self.holders = {slot: slot for slot in self.slots.values()}  # the tensor in each slot

    def _run(self, runner: Runner, item: Item) -> None:
        """Record that the item, whose addresses are fixed, ran."""
        if self.shadow is not None:
            self._check(self.shadow, item, item.reads)
        remarks = self._author_remarks(runner, item) if item.authors else ()
        if item.work is not None or remarks:
            self.ran.append(((item,), remarks))

    def _check(self, shadow: Shadow, item: Item, reads: tuple[int, ...]) -> None:
        """Check that the item reads initialised bytes, and mark those that it writes."""
        operands, is_initialised = item.record.operands, shadow.is_initialised
        for i in reads:
            pattern: PatternRecord = operands[i]  # type: ignore[assignment]
            if not is_initialised[pattern.tensor] and not shadow.is_written(pattern):
                raise NotFixed
        for i in item.writes:
            written: PatternRecord = operands[i]  # type: ignore[assignment]
            tensor = written.tensor
            if is_initialised[tensor]:
                continue
            slot = self.slots.get(tensor)
            if slot is None:
                shadow.note(written)
            else:
                is_initialised[self.holders[slot]] = False
                self.holders[slot], is_initialised[tensor] = tensor, True

    def _exchange(self, arrivals: list[Arrival], group: tuple[int, ...] | None) -> None:
        """Record a rendezvous."""
        if any(arrival.missing is not None for arrival in arrivals):
            raise NotFixed
        remarks: list[Remark] = []
        for runner, item, *_ in arrivals:
            if self.shadow is not None:
                self._check(self.shadow, item, ())
            remarks += self._author_remarks(runner, item)
        self.ran.append((tuple([arrival.item for arrival in arrivals]), tuple(remarks)))

    @staticmethod
    def _author_remarks(runner: Runner, item: Item) -> tuple[Remark, ...]:
        """Return the remarks of the recorders of PSUM writers."""
        for note in item.authors:
            note()
        fresh = runner.state.remarks.fresh
        remarks = tuple(fresh)
        fresh.clear()
        return remarks
