"""Move instructions inside expressions to lines of their own before the statement.

During the traversal, each such call is replaced by a placeholder name; the enclosing statement then
writes the tile, the instruction with its dst, and the tile's name for the placeholder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import libcst as cst

from nkic.machine.memory import Buffer
from nkic.migrate.arguments import COMMA, keyword_of, named
from nkic.migrate.beta1.results import Result
from nkic.migrate.sheet import Sheet
from nkic.migrate.tree import code, names_in, names_set, only_target, walk

RESULTS = "an instruction that returned a tile"
RETURNING = "make dst with nl.ndarray, and pass it"
TARGET = "__target"  # in a tile's expression: what the statement assigns the tile to


class Pending(NamedTuple):
    """A call that returns a tile: its old and new form, its result, and the expression that makes
    the tile.
    """

    old: cst.Call
    new: cst.Call
    result: Result
    maker: str


class PendingCalls:
    """The calls that no statement has written yet, by placeholder."""

    def __init__(self) -> None:
        self._calls: dict[str, Pending] = {}
        self._count = 0

    def add(self, call: Pending) -> cst.Name:
        """Register a call, and return its placeholder."""
        self._count += 1
        name = f"__pending_{self._count}"
        self._calls[name] = call
        return cst.Name(name)

    def get(self, node: cst.CSTNode | None) -> Pending | None:
        """Return the call that a placeholder stands for; None for other nodes."""
        return self._calls.get(node.value) if isinstance(node, cst.Name) else None

    def inside(self, node: cst.CSTNode) -> Iterator[cst.Name]:
        """Yield the placeholders in a node, those nested in calls first."""
        for name in names_in(node):
            if (call := self.get(name)) is not None:
                yield from self.inside(call.new)
                yield name

    def restored(self, tree: cst.Module, sheet: Sheet) -> cst.Module:
        """Return the tree with the original calls for placeholders that no statement wrote."""
        while placeholders := [name for name in names_in(tree) if name.value in self._calls]:
            calls: dict[str, cst.BaseExpression] = {}
            for placeholder in placeholders:
                call = self._calls[placeholder.value]
                text = "the result of this is used where no statement can precede it"
                sheet.leave(call.old, text, RETURNING)
                calls[placeholder.value] = call.new
            tree = replaced_names(tree, calls)
        return tree


class Hoisting:
    """The lines of one statement."""

    def __init__(self, sheet: Sheet, pending: PendingCalls) -> None:
        self.sheet = sheet
        self.pending = pending
        self.lines: list[cst.SimpleStatementLine] = []
        self.names: dict[str, cst.BaseExpression] = {}

    def hoisted(self, statement: cst.SimpleStatementLine, condition: str = "") -> Any:
        """Return the statement, or all the lines that replace it.

        Under a condition, the tiles are made outside it.
        """
        names = [*self.pending.inside(statement)]
        if not names:
            return _under(condition, [], [statement]) if condition else statement
        needed = [self._written(name, statement.body[0]) for name in names]
        if all(needed):
            remaining = replaced_names(statement, self.names)
            self.lines.append(remaining.with_changes(leading_lines=()))
        self.lines[0] = self.lines[0].with_changes(leading_lines=statement.leading_lines)
        trailing = statement.trailing_whitespace
        self.lines[-1] = self.lines[-1].with_changes(trailing_whitespace=trailing)
        if condition:
            lines = [line for line in self.lines if is_allocation(line)]
            return _under(condition, lines, [line for line in self.lines if line not in lines])
        return cst.FlattenSentinel(self.lines)

    def _written(self, name: cst.Name, statement: cst.BaseSmallStatement) -> bool:
        """Write one call, and return whether the statement is still needed."""
        call = self.pending.get(name)
        assert call is not None
        new = replaced_names(call.new, self.names)
        is_value = getattr(statement, "value", None) is name
        if not call.result.is_new:
            return self._onto_target(name.value, call, new, statement if is_value else None)
        self.sheet.done[RESULTS] += 1
        target = only_target(statement) if is_value else None
        is_new_name = isinstance(target, cst.Name) and not _mentions(new, target.value)
        plain = is_new_name and isinstance(statement, cst.Assign | cst.AnnAssign)
        tile = (
            target.value
            if plain and isinstance(target, cst.Name)
            else self.sheet.fresh(_tile_name(statement, call))
        )
        maker = call.maker.replace(TARGET, code(target)) if target is not None else call.maker
        self.lines.append(_allocated(statement if plain else None, tile, maker))
        dst = f"{tile}[{call.result.part}]" if call.result.part else tile
        self.lines.append(_line(_with_dst(new, cst.parse_expression(dst))))
        self.names[name.value] = cst.Name(tile)
        return not plain

    def _onto_target(
        self, name: str, call: Pending, new: cst.Call, statement: cst.BaseSmallStatement | None
    ) -> bool:
        """Write `t[...] = instruction(...)`, or `+=` in PSUM, with t as dst."""
        target = only_target(statement) if statement is not None else None
        if target is None:
            text = "the target of this is unknown: it is part of an expression"
            self.sheet.leave(call.old, text, RETURNING)
            self.names[name] = new
            return True
        self.sheet.done[RESULTS] += 1
        self.lines.append(_line(_with_dst(new, target)))
        return False


def is_allocation(line: cst.SimpleStatementLine) -> bool:
    """Whether the line makes a tile: `t = nl.ndarray(…)`."""
    statement = line.body[0]
    value = statement.value if isinstance(statement, cst.Assign | cst.AnnAssign) else None
    name = value.func if isinstance(value, cst.Call) else None
    return isinstance(name, cst.Attribute) and name.attr.value == "ndarray"


def _under(
    condition: str,
    before: Sequence[cst.SimpleStatementLine],
    lines: Sequence[cst.SimpleStatementLine],
) -> Any:
    """Return `if condition:` with the lines inside."""
    if not lines:
        return cst.FlattenSentinel(before)
    first, *others = lines
    leading = () if before else first.leading_lines
    inside = first.with_changes(leading_lines=first.leading_lines if before else ())
    test = cst.parse_expression(condition)
    conditional = cst.If(test, cst.IndentedBlock([inside, *others]), leading_lines=leading)
    return cst.FlattenSentinel([*before, conditional])


def replaced_names(node: Any, names: Mapping[str, cst.BaseExpression]) -> Any:
    """Return the node with expressions substituted for names."""
    return node.visit(_Names(names)) if names else node


class _Names(cst.CSTTransformer):
    def __init__(self, names: Mapping[str, cst.BaseExpression]) -> None:
        super().__init__()
        self.names = names

    def leave_Name(  # noqa: N802
        self, original_node: cst.Name, updated_node: cst.Name
    ) -> cst.BaseExpression:
        """Return the expression for the name."""
        return self.names.get(original_node.value, updated_node)


def _tile_name(statement: cst.BaseSmallStatement, call: Pending) -> str:
    """Return a name for an unnamed tile, from the statement's target and the tile's memory."""
    target = only_target(statement)
    if isinstance(target, cst.Name) and _mentions(call.new, target.value):
        return f"new_{target.value}"
    while isinstance(target, cst.Subscript):
        target = target.value
    if not isinstance(target, cst.Name):
        return "tile"
    in_psum = any(tensor.buffer is Buffer.PSUM for tensor in call.result.tensors)
    return f"{target.value}_{'psum' if in_psum else 'tile'}"


def _allocated(
    statement: cst.BaseSmallStatement | None, tile: str, maker: str
) -> cst.SimpleStatementLine:
    """Return `tile = nl.ndarray(...)`, with the statement's annotation."""
    value = cst.parse_expression(maker)
    if isinstance(statement, cst.AnnAssign):
        return cst.SimpleStatementLine([statement.with_changes(value=value)])
    return cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(tile))], value)])


def _with_dst(call: cst.Call, dst: cst.BaseExpression) -> cst.Call:
    by_name = bool(call.args) and all(keyword_of(arg) for arg in call.args)
    first = named("dst", dst) if by_name else cst.Arg(dst)
    args = [first.with_changes(comma=COMMA), *call.args] if call.args else [first]
    return call.with_changes(args=args)


def _mentions(node: cst.CSTNode, name: str) -> bool:
    return any(inner.value == name for inner in names_in(node))


def _line(value: cst.BaseExpression) -> cst.SimpleStatementLine:
    return cst.SimpleStatementLine([cst.Expr(value)])


def joined(statements: Sequence[cst.BaseStatement]) -> list[cst.BaseStatement]:
    """Merge neighbouring statements under the same condition."""
    merged: list[cst.BaseStatement] = []
    for statement in statements:
        last = merged[-1] if merged else None
        if isinstance(statement, cst.If) and isinstance(last, cst.If) and _is_like(last, statement):
            assert isinstance(last.body, cst.IndentedBlock)
            assert isinstance(statement.body, cst.IndentedBlock)
            first, *others = statement.body.body
            if isinstance(first, cst.SimpleStatementLine):
                first = first.with_changes(leading_lines=statement.leading_lines)
            body = last.body.with_changes(body=[*last.body.body, first, *others])
            merged[-1] = last.with_changes(body=body)
        else:
            merged.append(statement)
    return merged


def _is_like(last: cst.If, following: cst.If) -> bool:
    """Whether the second statement can be merged into the first: its condition is equal and
    unchanged there.
    """
    blocks = isinstance(last.body, cst.IndentedBlock) and isinstance(
        following.body, cst.IndentedBlock
    )
    if last.orelse is not None or following.orelse is not None or not blocks:
        return False
    names = {node.value for node in names_in(following.test)}
    is_changed = any(set(names_set(node)) & names for node in walk(last.body))
    return not is_changed and code(last.test) == code(following.test)
