"""What source is compiled to: closures over a frame, and what calls need to know of them.

A frame is a list: the machine, the node that is being evaluated, the function, then a slot for
every variable of the unit. A variable that an inner function uses has a cell, a list of one
element, in its slot. The frame's node is set before anything that can fail or that may ask
where the kernel is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from nkic.base.source import NOWHERE, SourceFile
from nkic.syntax import nodes

Frame = list[Any]
Evaluate = Callable[[Frame], Any]
MACHINE, AT, FUNCTION, FIRST = 0, 1, 2, 3


class Unset:
    """The one value of this class stands for a variable that has no value yet."""

    def __repr__(self) -> str:
        return "<unset>"


UNSET = Unset()

BREAK, CONTINUE = "break", "continue"  # what statements give that leave their block


_NO_PARAMETERS = nodes.Arguments(NOWHERE)


@dataclass
class Code:
    """One function, lambda, generator expression, class body or module-level statement.

    `run(frame)` gives None, or what leaves it: a tuple with the value that is returned.
    `plain` is the number of parameters of a function that takes nothing but positional ones,
    else -1. `boxed` are the slots of parameters that live in cells, `fresh` those of other
    variables with cells; the cells of the functions around go to the slots `free`.
    """

    name: str
    qualname: str
    node: nodes.Node
    source: SourceFile
    args: nodes.Arguments = _NO_PARAMETERS
    run: Any = None
    plain: int = -1
    size: int = 0
    cost: int = 1
    positional: tuple[str, ...] = ()
    positional_only: int = 0
    named_only: tuple[str, ...] = ()
    rest: str = ""
    more: str = ""
    blank: tuple[Any, ...] = ()
    boxed: tuple[int, ...] = ()
    fresh: tuple[int, ...] = ()
    free: tuple[int, ...] = ()
    outer: tuple[int, ...] = ()  # where the function around has the cells of `free`
    is_generator: bool = False
    is_plain_entry: bool = True  # no cells at all
    doc: str | None = None
    names: dict[str, tuple[int, bool]] = field(default_factory=dict)  # slot, and whether a cell

    def locals(self, frame: Frame) -> dict[str, Any]:
        """The variables that have a value, for messages."""
        found = {}
        for name, (slot, boxed) in self.names.items():
            value = frame[slot]
            if boxed:
                value = value[0] if isinstance(value, list) and value else UNSET
            if value is not UNSET:
                found[name] = value
        return found
