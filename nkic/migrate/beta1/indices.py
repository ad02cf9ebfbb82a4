"""Index expressions: what `nl.arange` and `nl.mgrid` make, and sums and products with them.

An index is a number plus, for each axis of the result, a factor times 0 … count - 1. All are kept
as source text.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from nkic.migrate import tree
from nkic.migrate.scopes import bound, scope_of
from nkic.migrate.sheet import Sheet
from nkic.migrate.tree import children, walk

ARANGE, MGRID = "nki.language.arange", "nki.language.mgrid"
# The attributes of what mgrid gives, by the number of axes.
_FIELDS = {1: "p", 2: "px", 3: "pyx", 4: "pzyx", 5: "pwzyx"}


@dataclass(frozen=True)
class Axis:
    """One axis of a result: `place` of `rank`, its count, and where it begins."""

    rank: int
    place: int
    start: str
    count: str


@dataclass(frozen=True)
class Index:
    """`base + factor * axis + …`; "0" for no base."""

    base: str
    parts: tuple[tuple[str, Axis], ...] = ()

    @property
    def rank(self) -> int:
        """Dimensions of the array that it is; 0 for a number."""
        return max((axis.rank for _, axis in self.parts), default=0)


class Indices:
    """What the names of a file's functions are, as far as they are indices."""

    def __init__(self, sheet: Sheet) -> None:
        self.sheet = sheet
        self._assigned: defaultdict[tuple[int, str], list[Assigned]] = defaultdict(list)
        for one in _assignments(sheet.tree):
            self._assigned[id(scope_of(sheet, one[0])), one[0].value].append(one)
        self._known: dict[tuple[int, str], bool] = {}
        self._times: dict[int, Counter[str]] = {}

    def of(self, node: cst.BaseExpression, use: cst.CSTNode | None = None) -> Index | None:
        """The index that an expression is, None for what is none or cannot be followed."""
        use = use or node
        if isinstance(node, cst.Name):
            return self._of_name(node, use)
        if isinstance(node, cst.Subscript):
            return self._of_arange(node)
        if isinstance(node, cst.Call) and self.sheet.name_of(node.func) == ARANGE:
            return _arange(node, 1, 0)
        if isinstance(node, cst.Attribute):
            return self._of_field(node)
        if isinstance(node, cst.BinaryOperation):
            return self._of_operation(node, use)
        return None if self.has_index(node) else Index(code(node))

    def has_index(self, node: cst.CSTNode) -> bool:
        """Some name in the expression is an index, or may be one; calls have none, but arange."""
        if isinstance(node, cst.Call):
            return self.sheet.name_of(node.func) == ARANGE
        if isinstance(node, cst.Name):
            return self.sheet.name_of(node) == MGRID or self.is_index(node)
        if isinstance(node, cst.Attribute):
            return self.sheet.name_of(node) == MGRID or self.has_index(node.value)
        if isinstance(node, cst.Subscript):
            return self.has_index(node.value)
        return any(self.has_index(child) for child in children(node))

    def is_index(self, name: cst.Name) -> bool:
        """The name is set from an index expression somewhere in its function."""
        key = (id(scope_of(self.sheet, name)), name.value)
        if key not in self._known:
            self._known[key] = False  # while it is asked: a name that is made of itself
            self._known[key] = any(self.has_index(value) for _, value in self.definitions(name))
        return self._known[key]

    # ---- names -----------------------------------------------------------------------------

    def definitions(self, name: cst.Name) -> list[tuple[int, cst.BaseExpression]]:
        """The values that a name is set to in its function, each with its place in a tuple."""
        found = self._assigned.get((id(scope_of(self.sheet, name)), name.value), [])
        return [(place, value) for target, place, value in found if target is not name]

    def _of_name(self, name: cst.Name, use: cst.CSTNode) -> Index | None:
        found = [one for one in self.definitions(name) if self.has_index(one[1])]
        if not found:
            return Index(name.value)
        if len(found) != 1 or len(self.definitions(name)) != 1:
            return None
        place, value = found[0]
        made = self._of_grid(value, place) if place >= 0 else self.of(value, use)
        if made is None or not self._stays(made, value, use):
            return None
        return made

    def _stays(self, index: Index, value: cst.CSTNode, use: cst.CSTNode) -> bool:
        """What the index is made of is the same at its use as where it was set."""
        texts = [
            index.base,
            *(text for factor, axis in index.parts for text in (factor, axis.start, axis.count)),
        ]
        names = {
            n.value for t in texts for n in walk(cst.parse_expression(t)) if isinstance(n, cst.Name)
        }
        scope = scope_of(self.sheet, value)
        return scope is None or all(self._is_stable(name, scope, value, use) for name in names)

    def _is_stable(
        self, name: str, scope: cst.FunctionDef, value: cst.CSTNode, use: cst.CSTNode
    ) -> bool:
        if id(scope) not in self._times:
            set_ = [one for node in walk(scope.body) for one in _set_by(node)]
            self._times[id(scope)] = Counter([*set_, *_parameters(scope)])
        if self._times[id(scope)][name] <= 1:
            return True
        around = [
            one
            for one in self.sheet.parents(value)
            if isinstance(one, cst.For) and name in _set_by(one)
        ]
        inside = bool(around) and any(one is around[0] for one in self.sheet.parents(use))
        return inside and name not in bound(around[0].body)

    # ---- expressions -----------------------------------------------------------------------

    def _of_arange(self, node: cst.Subscript) -> Index | None:
        """`nl.arange(n)[:, None]`."""
        call = node.value
        if not isinstance(call, cst.Call) or self.sheet.name_of(call.func) != ARANGE:
            return None if self.has_index(node) else Index(code(node))
        whole = [place for place, one in enumerate(node.slice) if _is_whole(one)]
        if len(whole) != 1:
            return None
        return _arange(call, len(node.slice), whole[0])

    def _of_grid(self, value: cst.BaseExpression, place: int) -> Index | None:
        """`i, j = nl.mgrid[0:128, 0:512]`."""
        if not isinstance(value, cst.Subscript) or self.sheet.name_of(value.value) != MGRID:
            return None
        axes = [_grid_axis(one, n, len(value.slice)) for n, one in enumerate(value.slice)]
        axis = axes[place] if place < len(axes) else None
        return Index("0", (("1", axis),)) if axis is not None else None

    def _of_field(self, node: cst.Attribute) -> Index | None:
        """`i.p`, where `i = nl.mgrid[…]`."""
        if isinstance(node.value, cst.Name):
            found = self.definitions(node.value)
            if len(found) == 1 and found[0][0] < 0 and self._is_grid(found[0][1]):
                grid = found[0][1]
                assert isinstance(grid, cst.Subscript)
                fields = _FIELDS.get(len(grid.slice), "")
                place = fields.find(node.attr.value)
                return self._of_grid(grid, place) if place >= 0 else None
        return None if self.has_index(node) else Index(code(node))

    def _is_grid(self, value: cst.BaseExpression) -> bool:
        return isinstance(value, cst.Subscript) and self.sheet.name_of(value.value) == MGRID

    def _of_operation(self, node: cst.BinaryOperation, use: cst.CSTNode) -> Index | None:
        left, right = self.of(node.left, use), self.of(node.right, use)
        if left is None or right is None:
            return None
        if not left.parts and not right.parts:
            return Index(code(node))
        if isinstance(node.operator, cst.Add):
            return Index(added(left.base, right.base), (*left.parts, *right.parts))
        if isinstance(node.operator, cst.Subtract):
            return _difference(left, right)
        if isinstance(node.operator, cst.Multiply):
            number, index = (left, right) if not left.parts else (right, left)
            return _multiple(number.base, index) if not number.parts else None
        return None


# ---- arithmetic on source text -------------------------------------------------------------------


def added(a: str, b: str) -> str:
    """`a + b`."""
    if "0" in (a, b):
        return b if a == "0" else a
    if a.isdecimal() and b.isdecimal():
        return str(int(a) + int(b))
    return f"{a} + {b}" if not b.startswith("-") else f"{a} - {b[1:].lstrip()}"


def less(a: str, b: str) -> str:
    """`a - b`."""
    if b == "0":
        return a
    if a.isdecimal() and b.isdecimal():
        return str(int(a) - int(b))
    if a.startswith(f"{b} + "):
        return a.removeprefix(f"{b} + ")
    node = cst.parse_expression(b)
    if not isinstance(node, cst.BinaryOperation) or node.lpar:
        return f"{a} - {b}"
    is_sum = isinstance(node.operator, cst.Add | cst.Subtract)
    return f"{a} - ({b})" if is_sum else f"{a} - {b}"


def times(a: str, b: str) -> str:
    """`a * b`."""
    if "0" in (a, b):
        return "0"
    if "1" in (a, b):
        return b if a == "1" else a
    if a.isdecimal() and b.isdecimal():
        return str(int(a) * int(b))
    return f"{factor(a)} * {factor(b)}"


def factor(text: str) -> str:
    """The text as a factor: in parentheses, if it is a sum or the like."""
    node = cst.parse_expression(text)
    simple = cst.Name | cst.Integer | cst.Call | cst.Attribute | cst.Subscript
    return text if isinstance(node, simple) or node.lpar else f"({text})"


def code(node: cst.CSTNode) -> str:
    """The source text of an expression, on one line."""
    text = tree.code(node)
    return " ".join(text.split()) if "\n" in text else text


def _difference(left: Index, right: Index) -> Index | None:
    if right.parts:
        negated = _multiple("-1", right)
        return Index(less(left.base, right.base), (*left.parts, *negated.parts))
    return Index(less(left.base, right.base), left.parts)


def _multiple(number: str, index: Index) -> Index:
    parts = tuple((times(number, one), axis) for one, axis in index.parts)
    return Index(times(number, index.base), parts)


# ---- the tree ------------------------------------------------------------------------------------


def _arange(call: cst.Call, rank: int, place: int) -> Index | None:
    args = [one.value for one in call.args if one.keyword is None]
    if len(args) != len(call.args) or not 1 <= len(args) <= 2:
        return None
    start, stop = ("0", code(args[0])) if len(args) == 1 else (code(args[0]), code(args[1]))
    return Index("0", (("1", Axis(rank, place, start, less(stop, start))),))


def _grid_axis(element: cst.SubscriptElement, place: int, rank: int) -> Axis | None:
    part = element.slice
    if not isinstance(part, cst.Slice) or part.upper is None or part.step is not None:
        return None
    start = code(part.lower) if part.lower is not None else "0"
    return Axis(rank, place, start, less(code(part.upper), start))


def _is_whole(element: cst.SubscriptElement) -> bool:
    part = element.slice
    return isinstance(part, cst.Slice) and part.lower is part.upper is part.step is None


Assigned = tuple[cst.Name, int, cst.BaseExpression]


def _assignments(tree: cst.Module) -> Iterator[Assigned]:
    """Every name that a plain assignment sets: the name, its place in a tuple or -1, the value."""
    for node in walk(tree):
        if isinstance(node, cst.Assign):
            for target in node.targets:
                yield from _targets(target.target, node.value)


def _targets(target: cst.BaseExpression, value: cst.BaseExpression) -> Iterator[Assigned]:
    if isinstance(target, cst.Name):
        yield target, -1, value
    elif isinstance(target, cst.Tuple):
        values = value.elements if isinstance(value, cst.Tuple) else ()
        for place, element in enumerate(target.elements):
            if not isinstance(element.value, cst.Name):
                continue
            if len(values) == len(target.elements):
                yield element.value, -1, values[place].value
            else:
                yield element.value, place, value


def _set_by(node: cst.CSTNode) -> Sequence[str]:
    """The names that this very node sets."""
    targets: list[cst.BaseExpression] = []
    if isinstance(node, cst.Assign):
        targets = [one.target for one in node.targets]
    elif isinstance(node, cst.For | cst.AugAssign | cst.AnnAssign | cst.NamedExpr):
        targets = [node.target]
    return [n.value for t in targets for n in plain_names(t)]


def plain_names(target: cst.BaseExpression) -> Iterator[cst.Name]:
    """The names that setting a target sets."""
    if isinstance(target, cst.Name):
        yield target
    elif isinstance(target, cst.Tuple | cst.List):
        for element in target.elements:
            yield from plain_names(element.value)


def _parameters(scope: cst.FunctionDef) -> set[str]:
    return {one.name.value for one in walk(scope.params) if isinstance(one, cst.Param)}
