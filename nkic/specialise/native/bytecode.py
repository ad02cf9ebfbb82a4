"""The part of an expression or statement that Python evaluates, if it reports only the whole.

The names of bytecode instructions are those of CPython 3.11. Later versions report more precise
positions by themselves, which are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dis import opname
from functools import cached_property
from types import CodeType
from typing import Any

from nkic.base.source import Span
from nkic.syntax import nodes
from nkic.syntax.bindings import SourceModule
from nkic.syntax.walk import walk

_ENTERING = "BEFORE_WITH"
_TESTING = nodes.If | nodes.While | nodes.Assert | nodes.IfExp
_COMPREHENSIONS = nodes.ListComp | nodes.SetComp | nodes.DictComp | nodes.GeneratorExp
_FUNCTIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
_DISPLAYS = nodes.List | nodes.Tuple | nodes.Set


class Instructions:
    """The bytecode of a code object, by offset in bytes."""

    def __init__(self, code: CodeType) -> None:
        self._code = code

    @property
    def of_comprehension(self) -> bool:
        """Whether this is the function of a comprehension, whose first iterator is its argument."""
        return self._code.co_name in _FUNCTIONS

    @cached_property
    def positions(self) -> list[Any]:
        """Line, last line, column, and last column of every instruction."""
        return list(self._code.co_positions())

    @cached_property
    def _bytes(self) -> bytes:
        return self._code.co_code

    def name(self, offset: int) -> str:
        """Return the name of the instruction at an offset."""
        return opname[self._bytes[offset]]

    def iteration(self, offset: int) -> int:
        """Return the number of earlier instructions with the same name and position."""
        operation, position = self._bytes[offset], self.positions[offset // 2]
        before = (at for at in range(0, offset, 2) if self._bytes[at] == operation)
        return sum(self.positions[at // 2] == position for at in before)


def span(
    code: Instructions, offset: int, module: SourceModule, reported: Span, otherwise: Span
) -> Span:
    """Return the span of the value that the instruction at `offset` tests, iterates or enters.

    `reported` is the position that Python reports, `otherwise` the span of the call, if any.
    """
    name = code.name(offset)
    find = next((find for prefixes, find in _FINDERS if name.startswith(prefixes)), None)
    if find is None or (name == "CALL" and otherwise != reported):
        return otherwise
    for node in walk(module.statement_at(reported) or module.tree):
        position = find(node, code, offset) if node.span == reported else None
        if position is not None:
            return position
    return otherwise


def _tested(node: nodes.Node, code: Instructions, offset: int) -> Span | None:
    if isinstance(node, _TESTING):
        return node.test.span
    return node.operand.span if isinstance(node, nodes.UnaryOp) else None


def _iterated(node: nodes.Node, code: Instructions, offset: int) -> Span | None:
    if isinstance(node, nodes.For):
        return node.iter.span
    if not isinstance(node, _COMPREHENSIONS):
        return None
    inner = code.of_comprehension and code.name(offset) == "GET_ITER"
    return _at(node.generators, code.iteration(offset) + inner, "iter")  # the first is made outside


def _unpacked(node: nodes.Node, code: Instructions, offset: int) -> Span | None:
    if not isinstance(node, _DISPLAYS | nodes.Call):
        return None
    elements = node.args if isinstance(node, nodes.Call) else node.elts
    starred = [element for element in elements if isinstance(element, nodes.Starred)]
    return _at(starred, code.iteration(offset))


def _entered(node: nodes.Node, code: Instructions, offset: int) -> Span | None:
    """Return the context manager's span: entered in order, and left in reverse on every path."""
    if not isinstance(node, nodes.With):
        return None
    iteration = code.iteration(offset) % len(node.items)
    index = iteration if code.name(offset) == _ENTERING else len(node.items) - 1 - iteration
    return _at(node.items, index, "context_expr")


def _at(children: Sequence[Any], index: int, field: str = "") -> Span | None:
    if index >= len(children):
        return None
    child = getattr(children[index], field) if field else children[index]
    position: Span = child.span
    return position


_FINDERS: tuple[tuple[tuple[str, ...], Callable[..., Span | None]], ...] = (
    (("POP_JUMP", "JUMP_IF", "TO_BOOL", "UNARY_NOT"), _tested),
    (("GET_ITER", "FOR_ITER"), _iterated),
    (("LIST_EXTEND", "SET_UPDATE"), _unpacked),
    ((_ENTERING, "WITH_EXCEPT_START", "CALL"), _entered),
)
