"""Maps instructions to those of the placed program, in which allocate may have moved them."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping

from nkic.ir.program import Body, Instruction
from nkic.prove.model import Finding

Path = tuple[int, ...]
Waiting = dict[tuple[object, ...], deque[int]]


def moved(lowered: Body, placed: Body) -> Mapping[int, int] | list[Finding] | None:
    """Return the numbers in `placed` of the instructions of `lowered`; None if they are the same.

    An instruction that differs in more than its number and its place within its loop is a finding.
    Equal instructions are matched in order.
    """
    if lowered is placed:
        return None
    waiting: Waiting = defaultdict(deque)
    for instruction, path in _flat(placed, ()):
        waiting[_key(instruction, path)].append(instruction.number)
    numbers, findings = {}, []
    for instruction, path in _flat(lowered, ()):
        candidates = waiting.get(_key(instruction, path))
        if candidates:
            numbers[instruction.number] = candidates.popleft()
        else:
            text = f"{instruction.row.name} #{instruction.number} is not in the placed program"
            findings.append(Finding("once", text, instruction.at))
    if any(waiting.values()):
        findings.append(Finding("once", "the placed program has additional instructions"))
    return findings or numbers


def _key(instruction: Instruction, path: Path) -> tuple[object, ...]:
    """Return a key that is equal for equal instructions; lower interns patterns."""
    operands = tuple(id(o) if isinstance(o, tuple) else repr(o) for o in instruction.operands)
    origin = (
        instruction.engine,
        id(instruction.at),
        instruction.name,
        len(instruction.after),
        instruction.pinned,
    )
    return (instruction.row, id(instruction.attributes), operands, path, *origin)


def _flat(body: Body, path: Path) -> Iterator[tuple[Instruction, Path]]:
    for item in body:
        if isinstance(item, Instruction):
            yield item, path
        else:
            yield from _flat(item.body, (*path, item.number))
