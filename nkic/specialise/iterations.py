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
        self._last: list[object] = []
        self._text = ""

    def of(self, stack: Sequence[Frame]) -> str:
        """Return the iterations around every call on the stack, outermost first: "i=3 j=0"."""
        values: list[object] = []
        for frame in stack:
            cached = self._slots.get(id(frame[AT])) or self._lookup(frame)
            for name, slot, boxed in cached[1]:
                value = frame[slot]
                if boxed:
                    value = value[0] if value else None
                if value.__class__ is int:
                    values += (name, value)
        if values != self._last:  # most often the iteration of the previous instruction
            self._last = values
            pairs = zip(values[::2], values[1::2], strict=True)
            self._text = " ".join([f"{name}={value}" for name, value in pairs])
        return self._text

    def _lookup(self, frame: Frame) -> tuple[nodes.Node, tuple[_Slot, ...]]:
        node = frame[AT]
        code: Code | None = getattr(frame[FUNCTION], "code", None)
        variable_slots = code.names if code is not None else {}
        module = self.resolved.library.modules.get(node.span.path)
        names = variables(module, node.span)
        slots = tuple(
            _Slot(name, *variable_slots[name]) for name in names if name in variable_slots
        )
        self._slots[id(node)] = (node, slots)
        return node, slots
