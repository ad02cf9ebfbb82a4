"""Index expressions: the results of `nl.arange` and `nl.mgrid`, and sums and products of them.

An index is a number plus, for each axis of the result, a factor times 0 … count - 1. All of these
are kept as source text.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import libcst as cst

from nkic.migrate import sheet
from nkic.migrate.sheet import Sheet, children, names_in, scope_of, target_names, walk
from nkic.program.program import Tensor

# ---- Reaching definitions: the assignment from which a name has its value at a use --------------

Place = tuple[int, int]
_LOOPS = cst.For | cst.While


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
        inside = set(map(id, self._loops(use))) - set(map(id, self._loops(set_at)))
        for setter in self._all_setters(set_at).get(name, ()):
            if setter is set_at or self._is_around(setter, set_at, use):
                continue
            if isinstance(setter, _LOOPS) and id(setter) in inside:
                return False
            if inside & set(map(id, self._loops(setter))):
                return False
            is_after = self._start(set_at) < self._start(setter)
            is_between = is_after and self._end(setter) <= self._start(use)
            if is_between and not self._exclude(setter, use):
                return False
        return True

    def _is_around(self, setter: cst.CSTNode, set_at: cst.CSTNode, use: cst.CSTNode) -> bool:
        """Whether both nodes are in the loop that sets the name."""
        are_inside = all(
            any(setter is p for p in self.sheet.parents(node)) for node in (set_at, use)
        )
        return are_inside and isinstance(setter, _LOOPS)

    def dominates(self, node: cst.CSTNode, use: cst.CSTNode) -> bool:
        """Whether the node always runs before `use`."""
        if self._end(node) > self._start(use):
            return False
        block = next(p for p in self.sheet.parents(node) if isinstance(p, _BLOCKS))
        return any(parent is block for parent in self.sheet.parents(use))

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
        around = [branching for branching in self.sheet.parents(a) if isinstance(branching, cst.If)]
        return any(
            branching is parent and self._branch(branching, a) is not self._branch(branching, b)
            for branching in around
            for parent in self.sheet.parents(b)
        )

    def _branch(self, node: cst.If, inside: cst.CSTNode) -> cst.CSTNode | None:
        chain = [inside, *self.sheet.parents(inside)]
        return next((part for part in chain if part is node.body or part is node.orelse), None)

    def _loops(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Yield the loops around a node, up to its function; a loop is not around its own
        header.
        """
        for parent in self.sheet.parents(node):
            if isinstance(parent, cst.FunctionDef):
                return
            if isinstance(parent, _LOOPS):
                yield parent

    def _all_setters(self, node: cst.CSTNode) -> dict[str, list[cst.CSTNode]]:
        scope = scope_of(self.sheet, node)
        if id(scope) not in self._setters:
            setters: defaultdict[str, list[cst.CSTNode]] = defaultdict(list)
            for inner in walk(scope.body if scope is not None else self.sheet.tree):
                if inner is not self.sheet.tree and scope_of(self.sheet, inner) is scope:
                    for name in set_by(inner):
                        setters[name].append(inner)
            self._setters[id(scope)] = setters
        return self._setters[id(scope)]

    def _start(self, node: cst.CSTNode) -> Place:
        span = self.sheet.span(node)
        return (span.line, span.column)

    def _end(self, node: cst.CSTNode) -> Place:
        span = self.sheet.span(node)
        return (span.end_line, span.end_column)


_BLOCKS = cst.IndentedBlock | cst.SimpleStatementSuite | cst.Module


def set_by(node: cst.CSTNode) -> Sequence[str]:
    """Return the names that the node itself sets."""
    targets: list[cst.BaseExpression] = []
    if isinstance(node, cst.Assign):
        targets = [assign_target.target for assign_target in node.targets]
    elif isinstance(node, cst.For | cst.AugAssign | cst.AnnAssign | cst.NamedExpr):
        targets = [node.target]
    return [name.value for target in targets for name in target_names(target)]


# --------------------------------------------------------------------------------------------------

_CREATE = ("ndarray", "zeros", "ones", "full", "empty", "load")
MAKERS = tuple(f"nki.language.{name}" for name in _CREATE)
ARANGE, MGRID = "nki.language.arange", "nki.language.mgrid"
_FIELDS = "pxyzw"  # the attributes of mgrid's result, in the order of its dimensions


@dataclass(frozen=True)
class Axis:
    """One axis of a result: its `place` among `rank` axes, its start and count.

    `grid` has the counts of all axes of the grid to which it belongs, whose result has all of them.
    """

    rank: int
    place: int
    start: str
    count: str
    grid: tuple[str, ...] = ()


@dataclass(frozen=True)
class Index:
    """`base + factor * axis + …`; "0" for no base."""

    base: str
    parts: tuple[tuple[str, Axis], ...] = ()

    @property
    def repeated(self) -> dict[int, str]:
        """The axes along which the index is constant, with their counts: those of its grids."""
        grids = [axis.grid for _, axis in self.parts]
        varying = {axis.place for _, axis in self.parts}
        return {n: count for grid in grids for n, count in enumerate(grid) if n not in varying}

    @property
    def rank(self) -> int:
        """The number of dimensions of the array; 0 for a number."""
        return max((axis.rank for _, axis in self.parts), default=0)


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
        """Return the index that an expression is; None if it is not one, or cannot be
        determined.
        """
        if isinstance(node, cst.Name):
            return self._of_name(node)
        if isinstance(node, cst.Subscript):
            return self._of_arange(node)
        if isinstance(node, cst.Call) and self.sheet.name_of(node.func) == ARANGE:
            return _arange(node, 1, 0)
        if isinstance(node, cst.Attribute):
            return self._of_field(node)
        if isinstance(node, cst.BinaryOperation):
            return self._of_operation(node)
        if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
            index = self.of(node.expression)
            is_axis = index is not None and bool(index.parts)
            return _multiple("-1", index) if index is not None and is_axis else Index(code(node))
        if isinstance(node, cst.IfExp) and self.has_index(node):
            return self._of_choice(node)
        return None if self.has_index(node) else Index(code(node))

    def has_index(self, node: cst.CSTNode) -> bool:
        """Whether a name in the expression is or may be an index; calls other than arange have
        none.
        """
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
        """Whether the name is set from an index expression anywhere in its function."""
        key = (id(scope_of(self.sheet, name)), name.value)
        if key not in self._are_indices:
            self._are_indices[key] = False  # during the query: the name may be defined by itself
            self._are_indices[key] = any(
                self.has_index(value) for _, value in self.definitions(name)
            )
        return self._are_indices[key]

    # ---- names -----------------------------------------------------------------------------

    def definitions(self, name: cst.Name) -> list[tuple[int, cst.BaseExpression]]:
        """Return the values assigned to a name in its function, each with its place in a tuple."""
        assignments = self._assigned.get((id(scope_of(self.sheet, name)), name.value), [])
        return [(position, value) for target, position, value in assignments if target is not name]

    def definition(self, name: cst.Name) -> tuple[int, cst.BaseExpression] | None:
        """Return the value of a name at its use; None if there may be several."""
        definitions = {id(self._statement(d[1])): d for d in self.definitions(name)}
        statements = [self._statement(value) for _, value in definitions.values()]
        reaching = self.flow.reaching(name.value, statements, name)
        return definitions[id(reaching)] if reaching is not None else None

    def is_tile(self, node: cst.BaseExpression) -> bool:
        """Whether the expression is a tile on chip, or a part of one, rather than a number."""
        if isinstance(node, cst.Subscript):
            return self.is_tile(node.value)
        if not isinstance(node, cst.Name):
            return self._is_made(node)
        return any(self._is_made(value) for _, value in self.definitions(node))

    def _is_made(self, value: cst.BaseExpression) -> bool:
        """Whether the expression is a call or an operation that makes a tile on chip."""
        is_maker = isinstance(value, cst.Call | cst.BinaryOperation)
        return is_maker and any(tensor.on_chip for tensor in self.tensors(value))

    def tensors(self, value: cst.BaseExpression) -> Sequence[Tensor]:
        """Return the tensors that an expression made."""
        return self.sheet.tensors(value)

    def is_whole(self, name: cst.Name, examined: tuple[int, ...] = ()) -> bool:
        """Whether the name is a whole tensor that was made or passed to the kernel, possibly
        reshaped.

        `examined` are values that are being examined.
        """
        values = [value for _, value in self.definitions(name) if id(value) not in examined]
        scope = scope_of(self.sheet, name)
        is_kernel = scope is not None and bool(scope.decorators)
        return all(self._is_whole(v, examined) for v in values) if values else is_kernel

    def _is_whole(self, value: cst.BaseExpression, examined: tuple[int, ...]) -> bool:
        function = value.func if isinstance(value, cst.Call) else None
        if function is not None and self.sheet.name_of(function) in MAKERS:
            return True
        tensor = function.value if isinstance(function, cst.Attribute) else None
        if not isinstance(tensor, cst.Name) or self.sheet.name_of(tensor):
            return False
        is_shaped = isinstance(function, cst.Attribute) and function.attr.value == "reshape"
        return is_shaped and self.is_whole(tensor, (*examined, id(value)))

    def _statement(self, value: cst.CSTNode) -> cst.CSTNode:
        kinds = cst.Assign | cst.AnnAssign
        return next(parent for parent in self.sheet.parents(value) if isinstance(parent, kinds))

    def _of_name(self, name: cst.Name) -> Index | None:
        if not any(self.has_index(value) for _, value in self.definitions(name)):
            return Index(name.value)
        definition = self.definition(name)
        if definition is None:
            return None
        position, value = definition
        index = self._of_grid(value, position) if position >= 0 else self.of(value)
        if index is None or not self._stays(index, value, name):
            return None
        return index

    def _stays(self, index: Index, value: cst.CSTNode, use: cst.CSTNode) -> bool:
        """Whether the components of the index are the same at its use as at its assignment."""
        texts = [
            index.base,
            *(text for factor, axis in index.parts for text in (factor, axis.start, axis.count)),
        ]
        return self._are_same((cst.parse_expression(text) for text in texts), value, use)

    def is_same(self, value: cst.BaseExpression, use: cst.CSTNode) -> bool:
        """Whether the names in a value are the same at its use as at its assignment."""
        return self._are_same([value], value, use)

    def _are_same(self, nodes: Iterable[cst.CSTNode], value: cst.CSTNode, use: cst.CSTNode) -> bool:
        names = {name.value for node in nodes for name in names_in(node)}
        set_at = self._statement(value)
        return all(self.flow.is_same(name, set_at, use) for name in names)

    # ---- expressions -----------------------------------------------------------------------

    def _of_arange(self, node: cst.Subscript) -> Index | None:
        """Return the index of `nl.arange(n)[:, None]`."""
        call = node.value
        if not isinstance(call, cst.Call) or self.sheet.name_of(call.func) != ARANGE:
            return None if self.has_index(node) else Index(code(node))
        axes = [axis for axis, element in enumerate(node.slice) if is_whole(element)]
        if len(axes) != 1:
            return None
        return _arange(call, len(node.slice), axes[0])

    def _of_grid(self, value: cst.BaseExpression, position: int) -> Index | None:
        """Return the index of an element of `i, j = nl.mgrid[0:128, 0:512]`."""
        if not isinstance(value, cst.Subscript) or self.sheet.name_of(value.value) != MGRID:
            return None
        axes = [_grid_axis(element, n, len(value.slice)) for n, element in enumerate(value.slice)]
        axis = axes[position] if position < len(axes) else None
        if axis is None:
            return None
        counts = tuple(axis.count if axis is not None else "" for axis in axes)
        return Index("0", (("1", replace(axis, grid=counts)),))

    def _of_field(self, node: cst.Attribute) -> Index | None:
        """Return the index of `i.p` with `i = nl.mgrid[…]`."""
        if isinstance(node.value, cst.Name):
            definition = self.definition(node.value)
            if definition is not None and definition[0] < 0 and self._is_grid(definition[1]):
                grid = definition[1]
                assert isinstance(grid, cst.Subscript)
                position = _FIELDS.find(node.attr.value)
                index = self._of_grid(grid, position) if position >= 0 else None
                is_same = index is not None and self._stays(index, grid, node)
                return index if is_same else None
        return None if self.has_index(node) else Index(code(node))

    def grid(self, value: cst.BaseExpression) -> list[Index]:
        """Return all axes of `nl.mgrid[0:128, 0:512]`, which may be an index by itself; [] for
        others.
        """
        if isinstance(value, cst.Name) and (definition := self.definition(value)) is not None:
            return self.grid(definition[1]) if definition[0] < 0 else []
        if not isinstance(value, cst.Subscript) or not self._is_grid(value):
            return []
        indices = [self._of_grid(value, n) for n in range(len(value.slice))]
        return [index for index in indices if index is not None]

    def _is_grid(self, value: cst.BaseExpression) -> bool:
        return isinstance(value, cst.Subscript) and self.sheet.name_of(value.value) == MGRID

    def _of_choice(self, node: cst.IfExp) -> Index | None:
        """Return the index of `i if flag else 2 * i`: the same axes, with other factors."""
        yes, no = self.of(node.body), self.of(node.orelse)
        if yes is None or no is None or [a for _, a in yes.parts] != [a for _, a in no.parts]:
            return None
        test = code(node.test)
        pairs = zip(yes.parts, no.parts, strict=True)
        terms = tuple((_chosen(test, a, b), axis) for (a, axis), (b, _) in pairs)
        return Index(_chosen(test, yes.base, no.base), terms)

    def _of_operation(self, node: cst.BinaryOperation) -> Index | None:
        left, right = self.of(node.left), self.of(node.right)
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
    """Return `a + b`."""
    if "0" in (a, b):
        return b if a == "0" else a
    if a.isdecimal() and b.isdecimal():
        return str(int(a) + int(b))
    return f"{a} + {b}" if not b.startswith("-") else f"{a} - {b[1:].lstrip()}"


def less(a: str, b: str) -> str:
    """Return `a - b`."""
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
    """Return `a * b`."""
    if "0" in (a, b):
        return "0"
    if "1" in (a, b):
        return b if a == "1" else a
    if a.isdecimal() and b.isdecimal():
        return str(int(a) * int(b))
    return f"{factor(a)} * {factor(b)}"


def summed(text: str) -> str:
    """Return a sum with its numbers combined, and a positive term first.

    For example `10944 - 128 * i` for `-128 * i + 10943 + 1`.
    """
    terms = [*_terms(cst.parse_expression(text), 1)]
    number = sum(sign * int(term) for sign, term in terms if term.isdecimal())
    terms = [(sign, term) for sign, term in terms if not term.isdecimal()]
    if number or not terms:
        terms.append((1 if number >= 0 else -1, str(abs(number))))
    first = next((n for n, (sign, _) in enumerate(terms) if sign > 0), None)
    if first is not None:
        terms.insert(0, terms.pop(first))
    total = "".join(f" {'+' if sign > 0 else '-'} {term}" for sign, term in terms)
    return total.removeprefix(" + ") if total.startswith(" + ") else f"-{total[3:]}"


def _terms(node: cst.BaseExpression, sign: int) -> Iterator[tuple[int, str]]:
    """Yield the terms of a sum, each with its sign."""
    operator = node.operator if isinstance(node, cst.BinaryOperation) else None
    if isinstance(node, cst.BinaryOperation) and isinstance(operator, cst.Add | cst.Subtract):
        yield from _terms(node.left, sign)
        yield from _terms(node.right, sign if isinstance(operator, cst.Add) else -sign)
    elif isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        yield from _terms(node.expression, -sign)
    elif isinstance(node, cst.BinaryOperation) and isinstance(operator, cst.Multiply):
        inner = [*_terms(node.left, sign)]
        if len(inner) == 1 and isinstance(node.left, cst.UnaryOperation):
            yield inner[0][0], f"{inner[0][1]} * {code(node.right)}"
        else:
            yield sign, code(node)
    else:
        yield sign, code(node)


def tuple_of(texts: Sequence[str]) -> str:
    """Return the tuple of these elements."""
    return f"({', '.join(texts)}{',' * (len(texts) == 1)})"


def factor(text: str) -> str:
    """Return the text as a factor: in parentheses if it is a sum or the like."""
    node = cst.parse_expression(text)
    simple = cst.Name | cst.Integer | cst.Call | cst.Attribute | cst.Subscript
    return text if isinstance(node, simple) or node.lpar else f"({text})"


def code(node: cst.CSTNode) -> str:
    """Return the source text of an expression, on one line."""
    text = sheet.code(node)
    return " ".join(text.split()) if "\n" in text else text


def _chosen(test: str, yes: str, no: str) -> str:
    return yes if yes == no else f"({yes} if {test} else {no})"


def _difference(left: Index, right: Index) -> Index | None:
    if right.parts:
        return Index(less(left.base, right.base), (*left.parts, *negative(right).parts))
    return Index(less(left.base, right.base), left.parts)


def negative(index: Index) -> Index:
    """Return the index times -1."""
    return _multiple("-1", index)


def _multiple(number: str, index: Index) -> Index:
    parts = tuple((times(number, step), axis) for step, axis in index.parts)
    return Index(times(number, index.base), parts)


# ---- the tree ------------------------------------------------------------------------------------


def _arange(call: cst.Call, rank: int, position: int) -> Index | None:
    args = [arg.value for arg in call.args if arg.keyword is None]
    if len(args) != len(call.args) or not 1 <= len(args) <= 2:
        return None
    start, stop = ("0", code(args[0])) if len(args) == 1 else (code(args[0]), code(args[1]))
    return Index("0", (("1", Axis(rank, position, start, less(stop, start))),))


def _grid_axis(element: cst.SubscriptElement, place: int, rank: int) -> Axis | None:
    part = element.slice
    if not isinstance(part, cst.Slice) or part.upper is None or part.step is not None:
        return None
    start = code(part.lower) if part.lower is not None else "0"
    return Axis(rank, place, start, less(code(part.upper), start))


def index_values(node: cst.Subscript) -> list[cst.BaseExpression]:
    """Return the expressions in the brackets of an index, without slices."""
    parts = (element.slice for element in node.slice)
    return [part.value for part in parts if isinstance(part, cst.Index)]


def is_whole(element: cst.SubscriptElement) -> bool:
    """Whether the element is a full slice, `:`."""
    part = element.slice
    return isinstance(part, cst.Slice) and part.lower is part.upper is part.step is None


Assigned = tuple[cst.Name, int, cst.BaseExpression]


def _assignments(tree: cst.Module) -> Iterator[Assigned]:
    """Yield every name that a plain assignment sets: the name, its place in a tuple or -1, the
    value.
    """
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
