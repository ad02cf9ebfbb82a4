"""Unordered conflicts of a file, which has streams but no program order.

The order in which the streams happen to run takes the place of program order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nkic.prove.effects import Reading, Touches
from nkic.prove.ledger import Ledger
from nkic.prove.model import READ, Storage
from nkic.prove.run import Core, Decision, Start
from nkic.prove.tenancy import Tenancy


class Unordered(NamedTuple):
    """`start` does not wait for `last`, or for a former owner of its bytes (None)."""

    start: Start
    last: Start | None
    what: str


def unordered(core: Core, reading: Reading, storages: Sequence[Storage]) -> Iterator[Unordered]:
    """Yield unordered pairs of accesses of a core whose streams have been run."""
    for event in core.sequence:
        if isinstance(event, Decision):
            for register in event.registers:
                reading.register(register, READ)
    ledger = Ledger(reading.count, core)
    tenancy = Tenancy(storages, ledger)
    for event in core.sequence:
        if isinstance(event, Decision):
            start = event.start
            touches: Touches = tuple([reading.register(r, READ) for r in event.registers])
        else:
            start, touches = event, reading.touches[event[3]]
        unordered_after = ledger.note(start, touches)
        late = tenancy.note(start, touches) if tenancy.hands else ()
        if not unordered_after and not late:
            continue
        for index, (cells, _, storage) in enumerate(touches):
            if index in unordered_after:
                yield Unordered(start, unordered_after[index], reading.what(cells, storage)[1])
            if index in late:
                former = reading.name(tenancy.former[storage])
                yield Unordered(start, None, f"the bytes of `{former}`")
