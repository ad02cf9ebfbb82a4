"""In which order the items of a program run, found without their values.

Where no value decides what is run, and where, the event loop needs none: the order in which the
streams go on, how long all takes, and whether what is read was written are the same for all
inputs. So a run of such a program is two: this one, then the steps in the order that it found
(`rerun.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from nkic.neff.records import Executable, InstructionRecord
from nkic.simulate.dynamic import is_dynamic
from nkic.simulate.machine import Arrival, Machine
from nkic.simulate.remarks import Remark
from nkic.simulate.streams import Item, Runner

# One item that ran, or those of all cores that met; and what there is to say of its place in the
# order, whatever its values are.
Executed = tuple[tuple[Item, ...], tuple[Remark, ...]]


class NotFixed(Exception):
    """Values have a say in what is run."""


def may_be_fixed(executable: Executable) -> bool:
    """Whether no value can decide what is run, and where, as far as the records alone tell:
    there are no registers, no loops on the device, and no run-time offsets.
    """
    if executable.registers:
        return False
    return all(_is_plain(stream.items) for stream in executable.streams)


def _is_plain(items: Sequence[object]) -> bool:
    return all(type(item) is InstructionRecord and not is_dynamic(item) for item in items)


def meets_ranks(runners: Sequence[Runner]) -> bool:
    """Whether some item is for several ranks."""
    items = [item for runner in runners for item in runner.items]
    return any(
        isinstance(item, Item) and item.rendezvous is not None and item.rendezvous.group is not None
        for item in items
    )


class Order(Machine):
    """Passes the time, checks what is read, and keeps the order: `ran`. Raises `NotFixed`
    where an item reads what was written in part: what follows from that depends on values.
    """

    def __init__(self, *facts: object) -> None:
        super().__init__(*facts)  # type: ignore[arg-type]
        self.ran: list[Executed] = []

    def _run(self, runner: Runner, item: Item) -> None:
        """Notes that the item ran."""
        if self.unwritten.read(runner, item) is not None:
            raise NotFixed
        self.unwritten.note(runner, item)
        said = self._said(runner, item) if item.authors else ()
        if item.work is not None or said:
            self.ran.append(((item,), said))

    def _exchange(self, arrivals: list[Arrival], group: tuple[int, ...] | None) -> None:
        """Notes that the cores met."""
        if any(arrival.missing is not None for arrival in arrivals):
            raise NotFixed
        said: list[Remark] = []
        for runner, item, *_ in arrivals:
            self.unwritten.note(runner, item)
            said += self._said(runner, item)
        self.ran.append((tuple([arrival.item for arrival in arrivals]), tuple(said)))

    @staticmethod
    def _said(runner: Runner, item: Item) -> tuple[Remark, ...]:
        """What the authors of what it writes have to say."""
        for note in item.authors:
            note()
        fresh = runner.state.remarks.fresh
        said = tuple(fresh)
        fresh.clear()
        return said
