"""Allocate may put instructions off where memory is short: which one became which."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping

from nkic.ir.program import Body, Instruction
from nkic.prove.model import Finding

Path = tuple[int, ...]
Waiting = dict[tuple[object, ...], deque[int]]


def moved(lowered: Body, placed: Body) -> Mapping[int, int] | list[Finding] | None:
    """The numbers in `placed` of the instructions of `lowered`; None if they are the same.

    What is not the same in both, but for its number and its place within its loop, is a finding.
    Equal instructions are as good as one another: the first stands for the first.
    """
    if lowered is placed:
        return None
    waiting: Waiting = defaultdict(deque)
    for one, path in _flat(placed, ()):
        waiting[_key(one, path)].append(one.number)
    numbers, found = {}, []
    for one, path in _flat(lowered, ()):
        same = waiting.get(_key(one, path))
        if same:
            numbers[one.number] = same.popleft()
        else:
            text = f"{one.row.name} #{one.number} is not in the placed program"
            found.append(Finding("once", text, one.at))
    if any(waiting.values()):
        found.append(Finding("once", "the placed program has instructions of its own"))
    return found or numbers


def _key(one: Instruction, path: Path) -> tuple[object, ...]:
    """Equal for equal instructions: lower shares their operands, as far as those are patterns."""
    operands = tuple(id(o) if isinstance(o, tuple) else repr(o) for o in one.operands)
    place = (one.engine, id(one.at), one.name, len(one.after), one.pinned)
    return (one.row, id(one.attributes), operands, path, *place)


def _flat(body: Body, path: Path) -> Iterator[tuple[Instruction, Path]]:
    for item in body:
        if isinstance(item, Instruction):
            yield item, path
        else:
            yield from _flat(item.body, (*path, item.number))
