"""Single points of a module that can be changed, and the changes."""

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.Add,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
# What only words a message, or prints an object for people.
WORDING = {"__str__", "__repr__", "complain", "conflict", "misplaced", "wrong"}


class Point(NamedTuple):
    """A change: in which line, what, and the text of the whole module with it."""

    line: int
    what: str
    text: str


def points(text: str) -> list[Point]:
    """Every single change of a module, in the order of its lines."""
    count = len(list(_changes(ast.parse(text))))
    found = []
    for index in range(count):
        tree = ast.parse(text)
        line, what, change = list(_changes(tree))[index]
        change()
        found.append(Point(line, what, ast.unparse(ast.fix_missing_locations(tree))))
    return found


def point(text: str, index: int) -> Point:
    tree = ast.parse(text)
    line, what, change = list(_changes(tree))[index]
    change()
    return Point(line, what, ast.unparse(ast.fix_missing_locations(tree)))


def count(text: str) -> int:
    """How many changes a module has."""
    return len(list(_changes(ast.parse(text))))


Change = tuple[int, str, Callable[[], None]]


def _changes(tree: ast.Module) -> Iterator[Change]:
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and function.name not in WORDING:
            for statement in function.body:
                yield from _in_statement(statement)


def _in_statement(statement: ast.stmt) -> Iterator[Change]:
    if isinstance(statement, ast.FunctionDef | ast.Raise | ast.Import | ast.ImportFrom):
        return
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        yield statement.lineno, "call left out", _left_out(statement)
    if isinstance(statement, ast.AugAssign):
        yield statement.lineno, "other operator", _other(statement)
    if isinstance(statement, ast.If | ast.While):
        yield statement.lineno, "condition turned round", _turned(statement)
    for name, value in ast.iter_fields(statement):
        if name == "annotation":
            continue
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, ast.stmt):
                yield from _in_statement(part)
            elif isinstance(part, ast.expr):
                yield from _in_expression(part)


def _in_expression(expression: ast.expr) -> Iterator[Change]:
    if isinstance(expression, ast.JoinedStr):
        return
    checked = {id(value) for value in _checks(expression)}
    for node in ast.walk(expression):
        if id(node) in checked:
            continue
        if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
            yield node.lineno, "other comparison", _compared(node)
        elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            yield node.lineno, "other operator", _other(node)
        elif isinstance(node, ast.BoolOp):
            yield node.lineno, "and for or", _joined(node)
        elif isinstance(node, ast.Constant) and type(node.value) in (int, bool):
            yield node.lineno, "another constant", _another(node)


def _checks(expression: ast.expr) -> Iterator[ast.expr]:
    """What can only raise, that a zip's parts are as long as each other, and the -1 of a reshape:
    any negative number is the rest.
    """
    for node in ast.walk(expression):
        if isinstance(node, ast.keyword) and node.arg == "strict":
            yield node.value
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "reshape":
            minus = [a.operand for a in node.args if isinstance(a, ast.UnaryOp)]
            yield from (number for number in minus if isinstance(number, ast.Constant))


def _left_out(statement: ast.Expr) -> Callable[[], None]:
    def change() -> None:
        statement.value = ast.Constant(None)

    return change


def _other(node: ast.AugAssign | ast.BinOp) -> Callable[[], None]:
    def change() -> None:
        node.op = OPERATORS.get(type(node.op), ast.Add)()

    return change


def _turned(statement: ast.If | ast.While) -> Callable[[], None]:
    def change() -> None:
        statement.test = ast.UnaryOp(ast.Not(), statement.test)

    return change


def _compared(node: ast.Compare) -> Callable[[], None]:
    def change() -> None:
        node.ops[0] = COMPARISONS[type(node.ops[0])]()

    return change


def _joined(node: ast.BoolOp) -> Callable[[], None]:
    def change() -> None:
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()

    return change


def _another(node: ast.Constant) -> Callable[[], None]:
    def change() -> None:
        value = node.value
        node.value = not value if isinstance(value, bool) else int(str(value)) + 1

    return change
