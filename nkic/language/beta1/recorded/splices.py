"""Instructions that are inserted into a body when it is complete.

They restore results of redirected instructions (nkic/language/beta1/emit.py). Until then, indices
of the body remain valid.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from nkic.ir.program import Item
from nkic.ir.renumber import in_order
from nkic.language.beta1.emit import Splice, state
from nkic.language.trace import Trace


def finish(trace: Trace) -> None:
    """Complete the bodies of all cores, and number their instructions in order."""
    if not state().has_spliced and not state().splices:
        return
    for body in trace.bodies:
        insert(body)
        body[:] = in_order(tuple(body))


def insert(body: list[Item]) -> None:
    """Insert the instructions that wait for this body."""
    positions = sorted(s.position + (not s.is_before) for s in _of(body))
    if not positions:
        return

    def moved(index: int) -> int:
        return index + bisect_right(positions, index)

    pending = state()
    for n, rows in enumerate(pending.broadcasts):
        if rows.body is body:
            pending.broadcasts[n] = rows._replace(
                first=moved(rows.first), end=moved(rows.end - 1) + 1
            )
    body[:] = within(body, 0, len(body))
    pending.splices = [splice for splice in pending.splices if splice.body is not body]
    pending.has_spliced = True


def within(body: list[Item], start: int, end: int) -> list[Item]:
    """Return `body[start:end]` with the instructions that are to be inserted there."""
    before: dict[int, list[Item]] = {}
    after: dict[int, list[Item]] = {}
    for splice in _of(body):
        (before if splice.is_before else after).setdefault(splice.position, []).append(splice.item)
    if not before and not after:
        return body[start:end]
    result: list[Item] = []
    for index in range(start, end):
        result += (*before.get(index, ()), body[index], *after.get(index, ()))
    return result


def _of(body: list[Item]) -> Iterator[Splice]:
    return (splice for splice in state().splices if splice.body is body)
