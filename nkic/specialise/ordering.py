"""`kernel.with_schedule([...])`: additional ordering of named instructions.

An edge ("b", "a"), or ("b", ["a", "c"]), makes the instruction named b wait for the others. Source:
the guide to NKI's scheduling APIs. It does not define an edge against program order, nor a name
that several instructions have: both are errors.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from nkic.base.diagnostics import Label, Reporter
from nkic.base.suggest import did_you_mean
from nkic.ir.program import Instruction, Item, instructions
from nkic.syntax.bindings import Kernel

Edge = tuple[str, str]  # the waiting instruction, and the one that it waits for


class Ordering:
    """The edges of one kernel, applied to each of its instances."""

    def __init__(self, kernel: Kernel, report: Reporter) -> None:
        self._at = kernel.scheduled or kernel.node.name_span
        self._report = report
        self._edges: tuple[Edge, ...] = ()
        self._names: dict[str, None] = {}

    def read(self, schedule: Sequence[Any]) -> None:
        """Parse the argument of `with_schedule`."""
        self._edges = tuple(edge for pair in schedule for edge in self._pairs(pair))

    def _pairs(self, pair: Any) -> Iterator[Edge]:
        waits, producers = pair if isinstance(pair, tuple | list) and len(pair) == 2 else (0, 0)
        names = producers if isinstance(producers, tuple | list) else (producers,)
        if isinstance(waits, str) and all(isinstance(name, str) for name in names):
            yield from ((waits, name) for name in names)
            return
        self._error(
            f"an edge of a schedule must be a pair of names, not {pair!r}",
            'write ("second", "first"), or ("third", ["first", "second"])',
        )

    def apply(self, body: list[Item], start: int) -> None:
        """Add the edges to the instructions of one instance: those of `body` from `start` on."""
        if not self._edges:
            return
        named: dict[str, list[Instruction]] = defaultdict(list)
        for instruction in instructions(tuple(body[start:])):
            if instruction.name:
                named[instruction.name].append(instruction)
        self._names |= dict.fromkeys(named)
        after: dict[int, tuple[int, ...]] = {}
        for waits, producer in self._edges:
            if waits in named and producer in named:
                self._add(named[waits], named[producer], after)
        body[start:] = _with_edges(body[start:], after)

    def _add(
        self,
        waiting: list[Instruction],
        producing: list[Instruction],
        after: dict[int, tuple[int, ...]],
    ) -> None:
        for candidates in (waiting, producing):
            if len(candidates) > 1:
                self._error(
                    f"`{candidates[0].name}` is the name of {len(candidates)} instructions",
                    f'give each a different name, such as name=f"{candidates[0].name}{{i}}"',
                    candidates[:2],
                )
                return
        waits, producer = waiting[0], producing[0]
        if producer.number >= waits.number:
            self._error(
                f"`{waits.name}` cannot wait for `{producer.name}`, which comes after it",
                "an edge can only add to the order of the program; to reverse it, change the "
                "program",
                [waits, producer],
            )
            return
        after[waits.number] = (*after.get(waits.number, ()), producer.number)

    def finish(self) -> None:
        """Report names that no instruction of any instance has."""
        for name in dict.fromkeys(name for edge in self._edges for name in edge):
            if name not in self._names:
                near = did_you_mean(name, self._names)
                text = f"the schedule names `{name}`, but no instruction has that name"
                self._error(text, near or f'pass name="{name}" to the instruction that you mean')

    def _error(self, text: str, help: str, about: Sequence[Instruction] = ()) -> None:
        places = [instruction.at.primary for instruction in about] or [self._at]
        labels = [
            Label(instruction.at.primary, f"`{instruction.name}`") for instruction in about[1:]
        ]
        if about:
            labels.append(Label(self._at, "the schedule"))
        self._report.error("bad-schedule", text, places[0], help=help, labels=labels)


def _with_edges(items: Sequence[Item], after: dict[int, tuple[int, ...]]) -> list[Item]:
    """Return the items with the edges added, by instruction number."""
    result: list[Item] = []
    for item in items:
        if not isinstance(item, Instruction):
            result.append(replace(item, body=tuple(_with_edges(item.body, after))))
        elif item.number in after:
            result.append(item._replace(after=(*item.after, *after[item.number])))
        else:
            result.append(item)
    return result
