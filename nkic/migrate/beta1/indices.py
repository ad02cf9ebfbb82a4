"""Index expressions of Beta 1 in source text: which expression is one, and its value.

The values are those of `nkic.language.beta1.indices`, the algebra by which Beta 1's kernels are
evaluated; here, what is a number there may be known by its text only.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, takewhile
from typing import Any, cast

import libcst as cst

from nkic.base.device import KernelError
from nkic.language.beta1.indices import Dim, Grid, Index, MakesGrids, arange
from nkic.migrate import sheet
from nkic.migrate.sheet import Sheet, children, names_in, scope_of, target_names, walk

# ---- Numbers that are known by their text --------------------------------------------------------


class Sum:
    """A whole number known by its text, with the arithmetic of ints: signed terms, and an int.

    Where its value is asked for, it is greater than 1. `Number` is one of these or an int.
    """

    __slots__ = ("number", "source", "terms")

    def __init__(
        self, terms: tuple[tuple[int, str], ...], number: int = 0, source: str = ""
    ) -> None:
        self.terms = terms
        self.number = number
        self.source = source

    def __str__(self) -> str:
        """Return the text as it was written, or a positive term first: `10944 - 128 * i`."""
        if self.source:
            return self.source
        terms = [*self.terms]
        if self.number:
            terms.append((1 if self.number > 0 else -1, str(abs(self.number))))
        first = next((n for n, (sign, _) in enumerate(terms) if sign > 0), 0)
        terms.insert(0, terms.pop(first))
        text = "".join(f" {'+' if sign > 0 else '-'} {term}" for sign, term in terms)
        return text[3:] if text.startswith(" + ") else f"-{text[3:]}"

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sum) and self - other == 0

    def __hash__(self) -> int:
        return hash((frozenset(self.terms), len(self.terms), self.number))

    def __gt__(self, other: int) -> bool:
        return other <= 1

    def __lt__(self, other: int) -> bool:
        return False

    def __add__(self, other: Number) -> Number:
        terms, number = [*self.terms], self.number
        for sign, term in other.terms if isinstance(other, Sum) else ():
            if (-sign, term) in terms:
                terms.remove((-sign, term))
            else:
                terms.append((sign, term))
        number += other.number if isinstance(other, Sum) else other
        return Sum(tuple(terms), number) if terms else number

    __radd__ = __add__

    def __neg__(self) -> Number:
        return Sum(tuple((-sign, term) for sign, term in self.terms), -self.number)

    def __sub__(self, other: Number) -> Number:
        return self + -other

    def __rsub__(self, other: int) -> Number:
        return -self + other

    def __mul__(self, other: Number) -> Number:
        return _product(self, other)

    def __rmul__(self, other: int) -> Number:
        return _product(other, self)

    def __floordiv__(self, other: int) -> Number:
        return self if other == 1 else NotImplemented


Number = int | Sum


def _product(a: Number, b: Number) -> Number:
    if 0 in (a, b):
        return 0
    if 1 in (a, b):
        return b if a == 1 else a
    if str(a).startswith("-"):
        return -_product(-a, b)
    if str(b).startswith("-"):
        return -_product(a, -b)
    return Sum(((1, f"{factor(a)} * {factor(b)}"),))


def number(source: cst.BaseExpression | str) -> Number:
    node = cst.parse_expression(source) if isinstance(source, str) else source
    total: Number = 0
    for sign, term in _terms(node, 1):
        total = total + (sign * int(term) if term.isdecimal() else Sum(((sign, term),)))
    return Sum(total.terms, total.number, code(node)) if isinstance(total, Sum) else total


def _terms(node: cst.BaseExpression, sign: int) -> Iterator[tuple[int, str]]:
    match node:
        case cst.BinaryOperation(left, cst.Add() | cst.Subtract() as sign_of, right):
            yield from _terms(left, sign)
            yield from _terms(right, sign if isinstance(sign_of, cst.Add) else -sign)
        case cst.UnaryOperation(cst.Minus(), inner):
            yield from _terms(inner, -sign)
        case cst.BinaryOperation(cst.UnaryOperation(cst.Minus(), left), cst.Multiply()):
            yield -sign, code(node.with_changes(left=left))
        case _:
            yield sign, code(node)


def factor(value: Number | str) -> str:
    """Return the text as a factor: in parentheses if it is a sum or the like."""
    text = str(value)
    node = cst.parse_expression(text)
    simple = cst.Name | cst.Integer | cst.Call | cst.Attribute | cst.Subscript
    return text if isinstance(node, simple) or node.lpar else f"({text})"


def tuple_of(values: Sequence[object]) -> str:
    return f"({', '.join(map(str, values))}{',' * (len(values) == 1)})"


def code(node: cst.CSTNode) -> str:
    """Return the source text of an expression, on one line."""
    text = sheet.code(node)
    return " ".join(text.replace("\\\n", " ").split()) if "\n" in text else text


# ---- Reaching definitions: the assignment from which a name has its value at a use --------------

_LOOPS = cst.For | cst.While
_BLOCKS = cst.IndentedBlock | cst.SimpleStatementSuite | cst.Module


class Flow:
    """The assignments of a file, function by function."""

    def __init__(self, sheet: Sheet) -> None:
        self.sheet = sheet
        self._setters: dict[int, dict[str, list[cst.CSTNode]]] = {}

    def reaching(
        self, name: str, candidates: Sequence[cst.CSTNode], use: cst.CSTNode
    ) -> cst.CSTNode | None:
        """Return the candidate assignment whose value `use` reads; None if it may be another."""
        if len(candidates) == 1 and self._is_left_behind(candidates[0], use):
            return candidates[0] if self.is_same(name, candidates[0], use) else None
        before = [candidate for candidate in candidates if self.dominates(candidate, use)]
        node = max(before, key=self._start, default=None)
        return node if node is not None and self.is_same(name, node, use) else None

    def is_same(self, name: str, set_at: cst.CSTNode, use: cst.CSTNode) -> bool:
        """Whether the name has the same value at `use` as right after `set_at`, or at it."""
        inside = self._loops(use) - self._loops(set_at)
        for setter in self._all_setters(set_at).get(name, ()):
            is_around = isinstance(setter, _LOOPS) and all(
                any(setter is p for p in self.sheet.parents(node)) for node in (set_at, use)
            )
            if setter is set_at or is_around:
                continue
            if inside & (self._loops(setter) | {id(setter)}):
                return False
            is_after = self._start(set_at) < self._start(setter)
            is_between = is_after and self._end(setter) <= self._start(use)
            if is_between and not self._exclude(setter, use):
                return False
        return True

    def dominates(self, node: cst.CSTNode, use: cst.CSTNode) -> bool:
        """Whether the node always runs before `use`."""
        block = next(p for p in self.sheet.parents(node) if isinstance(p, _BLOCKS))
        is_before = self._end(node) <= self._start(use)
        return is_before and any(parent is block for parent in self.sheet.parents(use))

    def _is_left_behind(self, node: cst.CSTNode, use: cst.CSTNode) -> bool:
        """Whether the node is directly in loops that have ended before `use`."""
        while True:
            block = next(p for p in self.sheet.parents(node) if isinstance(p, _BLOCKS))
            around = self.sheet.parents(use)
            if isinstance(block, cst.Module) or any(parent is block for parent in around):
                return self._end(node) <= self._start(use)
            node = next(self.sheet.parents(block))
            if not isinstance(node, cst.For):
                return False

    def _exclude(self, a: cst.CSTNode, b: cst.CSTNode) -> bool:
        """Whether the nodes are in different branches of one `if`."""
        first, second = (
            {id(p): id(part) for part, p in pairwise(chain) if isinstance(p, cst.If)}
            for chain in ([node, *self.sheet.parents(node)] for node in (a, b))
        )
        return any(first[branching] != second[branching] for branching in first.keys() & second)

    def _loops(self, node: cst.CSTNode) -> set[int]:
        """Return the loops around a node (by `id`), up to its function; a loop is not around its
        own header.
        """
        around = takewhile(lambda p: not isinstance(p, cst.FunctionDef), self.sheet.parents(node))
        return {id(parent) for parent in around if isinstance(parent, _LOOPS)}

    def _all_setters(self, node: cst.CSTNode) -> dict[str, list[cst.CSTNode]]:
        scope = scope_of(self.sheet, node)
        if id(scope) not in self._setters:
            setters: defaultdict[str, list[cst.CSTNode]] = defaultdict(list)
            for inner in walk(scope.body if scope is not None else self.sheet.tree):
                names = set_by(inner)
                if names and scope_of(self.sheet, inner) is scope:
                    for name in names:
                        setters[name].append(inner)
            self._setters[id(scope)] = setters
        return self._setters[id(scope)]

    def _start(self, node: cst.CSTNode) -> tuple[int, ...]:
        return self.sheet.span(node)[1:3]

    def _end(self, node: cst.CSTNode) -> tuple[int, ...]:
        return self.sheet.span(node)[3:]


def set_by(node: cst.CSTNode) -> Sequence[str]:
    targets: Sequence[cst.BaseExpression] = ()
    if isinstance(node, cst.Assign):
        targets = [assign_target.target for assign_target in node.targets]
    elif isinstance(node, cst.For | cst.AugAssign | cst.AnnAssign | cst.NamedExpr):
        targets = [node.target]
    return [name.value for target in targets for name in target_names(target)]


# --------------------------------------------------------------------------------------------------

_CREATE = ("ndarray", "zeros", "ones", "full", "empty", "load")
MAKERS = tuple(f"nki.language.{name}" for name in _CREATE)
ARANGE, MGRID = "nki.language.arange", "nki.language.mgrid"
_OPERATORS: dict[type[cst.CSTNode], Callable[[Any, Any], Any]] = {
    cst.Add: operator.add,
    cst.Subtract: operator.sub,
    cst.Multiply: operator.mul,
    cst.FloorDivide: operator.floordiv,
    cst.Modulo: operator.mod,
}


def fixed(value: Number) -> Index:
    return Index(cast(int, value), ())


def moving(index: Index) -> list[tuple[int, Dim]]:
    """Return the dimensions along which an expression varies, each with its place."""
    return [(place, dim) for place, dim in enumerate(index.dims) if dim.step]


class Indices:
    """The names of a file's functions that are indices."""

    def __init__(self, sheet: Sheet) -> None:
        self.sheet = sheet
        self._assigned: defaultdict[tuple[int, str], list[Assigned]] = defaultdict(list)
        for assigned in _assignments(sheet.tree):
            self._assigned[id(scope_of(sheet, assigned[0])), assigned[0].value].append(assigned)
        self._are_indices: dict[tuple[int, str], bool] = {}
        self.flow = Flow(sheet)
        # The axes that are loops around the current statement: variable and count, by place.
        self.loops: dict[int, tuple[str, str]] = {}

    def of(self, node: cst.BaseExpression) -> Index | None:
        """Return the value of an expression; None if it has none, or several."""
        value = self.value(node)
        return value if isinstance(value, Index) else None

    def value(self, node: cst.BaseExpression) -> Any:
        """Return the value of an expression that may also be a grid or a mask; None for others."""
        try:
            return self._value(node)
        except (KernelError, TypeError):  # of Beta 1's algebra, and of numbers that have no value
            return None

    def _value(self, node: cst.BaseExpression) -> Any:
        if not self.has_index(node):
            return fixed(number(node))
        match node:
            case cst.Name():
                return self._of_name(node)
            case cst.Call(args=args) if not any(arg.keyword for arg in args):
                return _as_axis(arange(*(self._value(arg.value) for arg in args)), 0)
            case cst.Subscript(value, slice):
                key = tuple(self._item(element.slice) for element in slice)
                if self.sheet.name_of(value) == MGRID:
                    return Grid(_as_axis(index, n) for n, index in enumerate(MakesGrids()[key]))
                return self._value(value)[key]
            case cst.Attribute(value, cst.Name(name)) if name in "pxyzw":
                return getattr(self._value(value), name)
            case cst.BinaryOperation(left, symbol, right) if type(symbol) in _OPERATORS:
                return _OPERATORS[type(symbol)](self._value(left), self._value(right))
            case cst.UnaryOperation(cst.Minus(), inner):
                return -self._value(inner)
            case cst.IfExp(test, yes, no):
                return _choice(code(test), self._value(yes), self._value(no))
        raise TypeError

    def _item(self, part: cst.BaseSlice) -> Any:
        match part:
            case cst.Slice(lower, upper, step):
                return slice(*(None if n is None else self._value(n) for n in (lower, upper, step)))
            case cst.Index(cst.Name("None")):
                return None
            case cst.Index(value):
                return self._value(value)

    def _of_name(self, name: cst.Name) -> Any:
        definition = self.definition(name)
        if definition is None:
            raise TypeError
        position, value = definition
        result = self._value(value)
        if position >= 0:
            if not isinstance(result, Grid):
                raise TypeError
            result = result[position]
        indices = result if isinstance(result, Grid) else (result,)
        numbers = [n for index in indices for n in (index.start, *index.shape)]
        numbers += [dim.step for index in indices for dim in index.dims]
        nodes = [cst.parse_expression(str(n)) for n in numbers if isinstance(n, Sum)]
        if not self._are_same(nodes, value, name):
            raise TypeError
        return result

    def has_index(self, node: cst.CSTNode) -> bool:
        """Whether a name in the expression may be an index; calls other than arange have none."""
        match node:
            case cst.Call(function):
                return self.sheet.name_of(function) == ARANGE
            case cst.Name():
                return self.sheet.name_of(node) == MGRID or self.is_index(node)
            case cst.Attribute(value):
                return self.sheet.name_of(node) == MGRID or self.has_index(value)
            case cst.Subscript(value):
                return self.has_index(value)
        return any(self.has_index(child) for child in children(node))

    def is_index(self, name: cst.Name) -> bool:
        key = (id(scope_of(self.sheet, name)), name.value)
        if key not in self._are_indices:
            self._are_indices[key] = False  # during the query: the name may be defined by itself
            self._are_indices[key] = any(
                self.has_index(value) for _, value in self.definitions(name)
            )
        return self._are_indices[key]

    # ---- names -----------------------------------------------------------------------------

    def definitions(self, name: cst.Name) -> list[tuple[int, cst.BaseExpression]]:
        assignments = self._assigned.get((id(scope_of(self.sheet, name)), name.value), [])
        return [(position, value) for target, position, value in assignments if target is not name]

    def definition(self, name: cst.Name) -> tuple[int, cst.BaseExpression] | None:
        """Return the value of a name at its use; None if there may be several."""
        definitions = {id(self._statement(d[1])): d for d in self.definitions(name)}
        statements = [self._statement(value) for _, value in definitions.values()]
        reaching = self.flow.reaching(name.value, statements, name)
        return definitions[id(reaching)] if reaching is not None else None

    def defined(self, node: cst.BaseExpression | None) -> cst.BaseExpression | None:
        """Return the only value of a name at its use, else None; other expressions themselves."""
        if not isinstance(node, cst.Name):
            return node
        definition = self.definition(node)
        return definition[1] if definition is not None and definition[0] < 0 else None

    def is_tile(self, node: cst.BaseExpression) -> bool:
        """Whether the expression is a tile on chip, or a part of one, rather than a number."""
        if isinstance(node, cst.Subscript):
            return self.is_tile(node.value)
        if not isinstance(node, cst.Name):
            is_maker = isinstance(node, cst.Call | cst.BinaryOperation)
            return is_maker and any(tensor.on_chip for tensor in self.sheet.tensors(node))
        values = (value for _, value in self.definitions(node))
        return any(self.is_tile(v) for v in values if isinstance(v, cst.Call | cst.BinaryOperation))

    def is_whole(self, name: cst.Name, examined: tuple[int, ...] = ()) -> bool:
        values = [value for _, value in self.definitions(name) if id(value) not in examined]
        scope = scope_of(self.sheet, name)
        is_kernel = scope is not None and bool(scope.decorators)
        return all(self._is_whole(v, examined) for v in values) if values else is_kernel

    def _is_whole(self, value: cst.BaseExpression, examined: tuple[int, ...]) -> bool:
        match value:
            case cst.Call(function) if self.sheet.name_of(function) in MAKERS:
                return True
            case cst.Call(cst.Attribute(cst.Name() as tensor, cst.Name("reshape"))):
                whole = not self.sheet.name_of(tensor)
                return whole and self.is_whole(tensor, (*examined, id(value)))
        return False

    def _statement(self, value: cst.CSTNode) -> cst.CSTNode:
        kinds = cst.Assign | cst.AnnAssign
        return next(parent for parent in self.sheet.parents(value) if isinstance(parent, kinds))

    def is_same(self, value: cst.BaseExpression, use: cst.CSTNode) -> bool:
        """Whether the names in a value are the same at its use as at its assignment."""
        return self._are_same([value], value, use)

    def _are_same(self, nodes: Sequence[cst.CSTNode], value: cst.CSTNode, use: cst.CSTNode) -> bool:
        names = {name.value for node in nodes for name in names_in(node)}
        set_at = self._statement(value)
        return all(self.flow.is_same(name, set_at, use) for name in names)


def _as_axis(index: Index, place: int) -> Index:
    """Return an expression along a dimension, which has a step even if that has one element."""
    dims = list(index.dims)
    dims[place] = dims[place]._replace(step=dims[place].step or 1)
    return Index(index.start, tuple(dims))


def _choice(test: str, yes: Index, no: Index) -> Index:
    """Return the index of `i if flag else 2 * i`: the same dimensions, with other steps."""
    if yes.shape != no.shape:
        raise TypeError

    def chosen(a: Number, b: Number) -> Any:
        return a if a == b else Sum(((1, f"({a} if {test} else {b})"),))

    pairs = zip(yes.dims, no.dims, strict=True)
    dims = tuple(a._replace(step=chosen(a.step, b.step)) for a, b in pairs)
    return Index(chosen(yes.start, no.start), dims)


# ---- the tree ------------------------------------------------------------------------------------


def index_values(node: cst.Subscript) -> list[cst.BaseExpression]:
    parts = (element.slice for element in node.slice)
    return [part.value for part in parts if isinstance(part, cst.Index)]


def is_whole(element: cst.SubscriptElement) -> bool:
    part = element.slice
    return isinstance(part, cst.Slice) and part.lower is part.upper is part.step is None


Assigned = tuple[cst.Name, int, cst.BaseExpression]


def _assignments(tree: cst.Module) -> Iterator[Assigned]:
    """Yield every name that a plain assignment sets, its place in a tuple or -1, and the value."""
    for node in walk(tree):
        if isinstance(node, cst.Assign):
            for target in node.targets:
                yield from _targets(target.target, node.value)
        elif isinstance(node, cst.AnnAssign) and node.value is not None:
            yield from _targets(node.target, node.value)


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
