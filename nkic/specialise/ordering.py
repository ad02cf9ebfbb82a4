"""`kernel.with_schedule([...])`: additional ordering of named instructions.

An edge ("b", "a"), or ("b", ["a", "c"]), makes the instruction named b wait for the others. Source:
the guide to NKI's scheduling APIs. It does not define an edge against program order, nor a name
that several instructions have: both are errors.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from nkic.base.diagnostics import Label, Reporter, did_you_mean
from nkic.base.source import SHIPPED, Span
from nkic.interpret.objects import AT, FUNCTION, Code, Frame
from nkic.program.program import Instruction, Item, instructions
from nkic.source import nodes
from nkic.source.bindings import Kernel, Resolved, SourceModule
from nkic.source.nodes import walk


class Edge(NamedTuple):
    """The waiting instruction, the one that it waits for, and the schedule in the kernel's file;
    None if the call of the kernel has it.
    """

    waits: str
    producer: str
    at: Span | None


class Ordering:
    """The edges of one kernel, applied to each of its instances."""

    def __init__(self, kernel: Kernel, report: Reporter) -> None:
        self._at = kernel.scheduled
        self._report = report
        self._edges: tuple[Edge, ...] = ()
        self._names: dict[str, None] = {}

    def read(self, in_file: Sequence[Any], of_call: Sequence[Any]) -> None:
        """Parse the arguments of `with_schedule` in the kernel's file, and of its call."""
        pairs = [*((pair, self._at) for pair in in_file), *((pair, None) for pair in of_call)]
        self._edges = tuple(edge for pair, at in pairs for edge in self._pairs(pair, at))

    def _pairs(self, pair: Any, at: Span | None) -> Iterator[Edge]:
        waits, producers = pair if isinstance(pair, tuple | list) and len(pair) == 2 else (0, 0)
        names = producers if isinstance(producers, tuple | list) else (producers,)
        if isinstance(waits, str) and all(isinstance(name, str) for name in names):
            yield from (Edge(waits, name, at) for name in names)
            return
        self._error(
            f"an edge of a schedule must be a pair of names, not {pair!r}",
            'write ("second", "first"), or ("third", ["first", "second"])',
            at,
        )

    def apply(self, body: list[Item], start: int) -> None:
        if not self._edges:
            return
        named: dict[str, list[Instruction]] = defaultdict(list)
        for instruction in instructions(tuple(body[start:])):
            if instruction.name:
                named[instruction.name].append(instruction)
        self._names |= dict.fromkeys(named)
        after: dict[int, tuple[int, ...]] = {}
        for waits, producer, at in self._edges:
            if waits in named and producer in named:
                self._add(named[waits], named[producer], at, after)
        body[start:] = _with_edges(body[start:], after)

    def _add(
        self,
        waiting: list[Instruction],
        producing: list[Instruction],
        at: Span | None,
        after: dict[int, tuple[int, ...]],
    ) -> None:
        for candidates in (waiting, producing):
            if len(candidates) > 1:
                self._error(
                    f"`{candidates[0].name}` is the name of {len(candidates)} instructions",
                    f'give each a different name, such as name=f"{candidates[0].name}{{i}}"',
                    at,
                    candidates[:2],
                )
                return
        waits, producer = waiting[0], producing[0]
        if producer.number >= waits.number:
            self._error(
                f"`{waits.name}` cannot wait for `{producer.name}`, which comes after it",
                "an edge can only add to the order of the program; to reverse it, change the "
                "program",
                at,
                [waits, producer],
            )
            return
        after[waits.number] = (*after.get(waits.number, ()), producer.number)

    def finish(self) -> None:
        uses = ((name, edge.at) for edge in self._edges for name in edge[:2])
        for name, at in dict.fromkeys(uses):
            if name not in self._names:
                near = did_you_mean(name, self._names)
                of_call = "" if at else " of this call"
                text = f"the schedule{of_call} names `{name}`, but no instruction has that name"
                help = near or f'pass name="{name}" to the instruction that you mean'
                self._error(text, help, at)

    def _error(
        self, text: str, help: str, at: Span | None, about: Sequence[Instruction] = ()
    ) -> None:
        places = [*(instruction.at.primary for instruction in about), at]
        labels = [
            Label(instruction.at.primary, f"`{instruction.name}`") for instruction in about[1:]
        ]
        if about and at:
            labels.append(Label(at, "the schedule"))
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


# ------------------------------------------------------------------------------------------------
# The current iterations of Python's loops, which distinguish instructions of one line.


def variables(module: SourceModule | None, span: Span) -> tuple[str, ...]:
    """Return the variables of the loops around an expression, outermost first; of nkic's, none."""
    if module is None or span.path.startswith(SHIPPED):
        return ()
    targets = (node for loop in module.loops_around(span) for node in walk(loop.target))
    return tuple(dict.fromkeys(node.id for node in targets if isinstance(node, nodes.Name)))


def assignments(names: Sequence[str], local: Mapping[str, Any]) -> Iterator[str]:
    """Yield `i=3` for each variable that is an integer."""
    for name in names:
        value = local.get(name)
        if value.__class__ is int:
            yield f"{name}={value}"


class _Slot(NamedTuple):
    """The index of a variable in frames of a function, and whether it is in a cell."""

    name: str
    slot: int
    boxed: bool


class Iterations:
    """The iterations of one evaluation. The variables of each node are memoised."""

    def __init__(self, resolved: Resolved) -> None:
        self.resolved = resolved
        self._slots: dict[int, tuple[nodes.Node, tuple[_Slot, ...]]] = {}
        self._sets: dict[tuple[_Slot, ...], tuple[_Slot, ...]] = {}
        # The last frame on top, unless variables of the frames below it may change meanwhile; the
        # iterations of those frames; the variables last asked for, with their values; the result.
        self._top: Frame | None = None
        self._outer: list[str] = []
        self._names: tuple[_Slot, ...] = ()
        self._seen: list[tuple[int, object]] = []
        self._text = ""

    def of(self, stack: Sequence[Frame]) -> str:
        """Return the iterations around every call on the stack, outermost first: "i=3 j=0"."""
        if not stack:
            return ""
        top = stack[-1]
        names = (self._slots.get(id(top[AT])) or self._lookup(top))[1]
        if top is not self._top:
            self._enter(stack)
        elif names is self._names:
            for slot, value in self._seen:
                if top[slot] is not value:
                    break
            else:  # most often the iteration of the previous instruction
                return self._text
        return self._changed(top, names)

    def _enter(self, stack: Sequence[Frame]) -> None:
        """Read the variables of the frames below a new one on top."""
        self._top, self._outer = stack[-1], []
        for frame in stack[:-1]:
            cached = self._slots.get(id(frame[AT])) or self._lookup(frame)
            self._read(frame, cached[1], self._outer)
        code: Code | None = getattr(stack[-1][FUNCTION], "code", None)
        if code is None or code.is_generator:  # its next caller may be another one
            self._top = None

    def _changed(self, top: Frame, names: tuple[_Slot, ...]) -> str:
        parts = self._outer.copy()
        self._names, self._seen = names, self._read(top, names, parts)
        text = " ".join(parts)
        if text != self._text:
            self._text = text
        return self._text

    def _read(
        self, frame: Frame, names: tuple[_Slot, ...], parts: list[str]
    ) -> list[tuple[int, object]]:
        """Append `i=3` for each variable that is an integer; return the slots and their values."""
        seen = []
        for name, slot, boxed in names:
            value = frame[slot]
            seen.append((slot, value))
            if boxed:
                value = value[0] if value else None
                self._top = None  # an inner function may assign it
            if value.__class__ is int:
                parts.append(f"{name}={value}")
        return seen

    def _lookup(self, frame: Frame) -> tuple[nodes.Node, tuple[_Slot, ...]]:
        node = frame[AT]
        code: Code | None = getattr(frame[FUNCTION], "code", None)
        variable_slots = code.names if code is not None else {}
        module = self.resolved.library.modules.get(node.span.path)
        names = variables(module, node.span)
        slots = tuple(
            _Slot(name, *variable_slots[name]) for name in names if name in variable_slots
        )
        slots = self._sets.setdefault(slots, slots)
        self._slots[id(node)] = (node, slots)
        return node, slots
