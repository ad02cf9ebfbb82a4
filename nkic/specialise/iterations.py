"""The current iterations of Python's loops, which distinguish instructions of one line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from nkic.base.source import SHIPPED, Span
from nkic.evaluate.code import AT, FUNCTION, Code, Frame
from nkic.syntax import nodes
from nkic.syntax.bindings import Resolved, SourceModule
from nkic.syntax.walk import walk


def variables(module: SourceModule | None, span: Span) -> tuple[str, ...]:
    """Return the variables of the loops around an expression, outermost first.

    There are none in nkic's own library.
    """
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
