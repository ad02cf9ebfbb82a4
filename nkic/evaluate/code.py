"""Compiled source: closures over a frame, and the data that calls need about them.

A frame is a list: the machine, the node being evaluated, the function, then one slot per variable
of the unit. A variable that an inner function uses is stored in a cell, a list of one element, in
its slot. The frame's node is set before every operation that may fail or that may ask for the
current source position.
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
    """The class of the one value that marks a variable without a value."""

    def __repr__(self) -> str:
        return "<unset>"


UNSET = Unset()

BREAK, CONTINUE = "break", "continue"  # the results of statements that leave their block


_NO_PARAMETERS = nodes.Arguments(NOWHERE)


@dataclass
class Code:
    """One function, lambda, generator expression, class body or module-level statement.

    `run(frame)` returns None if execution falls through, else BREAK, CONTINUE, or a tuple that
    holds the returned value. `simple_arity` is the number of parameters if all are positional, else
    -1. `unset_locals` are the initial values of the slots after the parameters. `cell_parameters`
    lists the slots of parameters stored in cells, `cell_locals` those of other variables with
    cells; the cells of the enclosing functions go to the slots in `free`.
    """

    name: str
    qualname: str
    node: nodes.Node
    source: SourceFile
    args: nodes.Arguments = _NO_PARAMETERS
    run: Any = None
    simple_arity: int = -1
    size: int = 0
    cost: int = 1
    positional: tuple[str, ...] = ()
    positional_only: int = 0
    keyword_only: tuple[str, ...] = ()
    vararg: str = ""
    kwarg: str = ""
    unset_locals: tuple[Any, ...] = ()
    cell_parameters: tuple[int, ...] = ()
    cell_locals: tuple[int, ...] = ()
    free: tuple[int, ...] = ()
    # The slots of the enclosing function that hold the cells of `free`.
    outer_slots: tuple[int, ...] = ()
    is_generator: bool = False
    is_plain_entry: bool = True  # whether a call has no cells to set up
    doc: str | None = None
    # (slot, whether it holds a cell)
    names: dict[str, tuple[int, bool]] = field(default_factory=dict)

    def locals(self, frame: Frame) -> dict[str, Any]:
        """Return the variables that have a value, for messages."""
        values = {}
        for name, (slot, boxed) in self.names.items():
            value = frame[slot]
            if boxed:
                value = value[0] if isinstance(value, list) and value else UNSET
            if value is not UNSET:
                values[name] = value
        return values
