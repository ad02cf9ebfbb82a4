"""Numbers that the body of a loop changes.

Beta 1 traced the body of such a loop once, so `address += size` in it gave every iteration the same
address. `range` runs the body anew for each iteration, so each iteration must start with the value
from before the loop. Source: NKI's documentation up to SDK 2.26, nki.language.affine_range.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import libcst as cst

from nkic.language.versions import rewritten
from nkic.language.versions.rewritten import MADE_LIKE, OUTPUTS, SIZES
from nkic.machine.operands import Row
from nkic.machine.targets import Buffer
from nkic.migrate.beta1.blocks import Blocks
from nkic.migrate.beta1.indices import Indices, code, set_by
from nkic.migrate.beta1.results import TARGET, Lookup, Result
from nkic.migrate.beta1.slices import PARTS
from nkic.migrate.calls import find, is_plain, keyword_of, keyword_value, mask_argument
from nkic.migrate.facts import Facts
from nkic.migrate.sheet import Sheet, children, names_in, only_target, scope_of, walk
from nkic.program.program import Tensor, View

CARRIED = "a number that a loop changes"
_TRACED = ("nki.language.affine_range", "nki.language.sequential_range")


def is_traced(sheet: Sheet, loop: cst.For) -> bool:
    """Whether Beta 1 traced the loop's body once."""
    call = loop.iter
    return isinstance(call, cst.Call) and sheet.name_of(call.func) in _TRACED


class Carried:
    """Writes such loops."""

    def __init__(self, sheet: Sheet, indices: Indices) -> None:
        self.sheet = sheet
        self.indices = indices

    def written(self, old: cst.For, new: cst.For) -> cst.FlattenSentinel[cst.BaseStatement]:
        """Return the loop, preceded by copies of the loop-carried numbers, which its body
        restores.
        """
        names = self._names(old)
        if not names or not isinstance(new.body, cst.IndentedBlock):
            return cst.FlattenSentinel([new])
        self.sheet.done[CARRIED] += len(names)
        copies = {name: self.sheet.fresh(f"{name}_before") for name in names}
        first, *lines = [_line(copy, name) for name, copy in copies.items()]
        before = [first.with_changes(leading_lines=new.leading_lines), *lines]
        back = [_line(name, copy) for name, copy in copies.items()]
        body = new.body.with_changes(body=[*back, *new.body.body])
        return cst.FlattenSentinel([*before, new.with_changes(body=body, leading_lines=())])

    def _names(self, loop: cst.For) -> list[str]:
        """Return the loop-carried numbers."""
        nodes = [*walk(loop.body)]
        names = dict.fromkeys(n for node in nodes if isinstance(node, _SETS) for n in set_by(node))
        uses = ((name, self._read_first(name, nodes)) for name in names)
        return [name for name, use in uses if use and self._is_number(use, frozenset())]

    def _read_first(self, name: str, nodes: Sequence[cst.CSTNode]) -> cst.Name | None:
        """Return a place in a loop's body that may read the name before the body sets it."""
        setters = [node for node in nodes if name in set_by(node)]
        uses = (node for node in nodes if isinstance(node, cst.Name) and node.value == name)
        reads = filter(self._is_read, uses)
        is_after = self.indices.flow.dominates
        return next((use for use in reads if not any(is_after(s, use) for s in setters)), None)

    def _is_read(self, use: cst.Name) -> bool:
        around = next(self.sheet.parents(use))
        is_word = isinstance(around, cst.Arg) and around.keyword is use
        is_field = isinstance(around, cst.Attribute) and around.attr is use
        return not isinstance(around, cst.AssignTarget) and not is_word and not is_field

    def _is_number(self, node: cst.BaseExpression, seen: frozenset[str]) -> bool:
        """Whether the value is a Python number; a tile keeps the value of the previous
        iteration.
        """
        if isinstance(node, cst.Name):
            return node.value in seen or self._is_set_to_numbers(node, seen | {node.value})
        if isinstance(node, cst.Attribute):
            return node.attr.value in _SIZES
        if isinstance(node, cst.Subscript):
            return isinstance(node.value, cst.Attribute) and self._is_number(node.value, seen)
        if isinstance(node, cst.Call):
            plain = any(self.sheet.is_builtin(node.func, name) for name in _PURE)
            return plain and all(self._is_number(arg.value, seen) for arg in node.args)
        inside = [child for child in children(node) if isinstance(child, cst.BaseExpression)]
        return isinstance(node, _PLAIN) and all(self._is_number(value, seen) for value in inside)

    def _is_set_to_numbers(self, name: cst.Name, seen: frozenset[str]) -> bool:
        """Whether every value assigned to the name in its function is a number; a loop's counter
        is.
        """
        scope = scope_of(self.sheet, name)
        setters = [node for node in walk(scope or self.sheet.tree) if name.value in set_by(node)]
        values = [value for _, value in self.indices.definitions(name)]
        values += [setter.value for setter in setters if isinstance(setter, cst.AugAssign)]
        counted = any(isinstance(setter, cst.For) for setter in setters)
        return (counted or bool(values)) and all(self._is_number(value, seen) for value in values)


_SETS = cst.Assign | cst.AugAssign
_PLAIN = cst.Integer | cst.Float | cst.BinaryOperation | cst.UnaryOperation | cst.IfExp
_PURE = ("min", "max", "len", "int", "float", "abs", "round")
_SIZES = ("shape", "itemsize", "size", "ndim")


def _line(target: str, value: str) -> cst.SimpleStatementLine:
    part = cst.Assign([cst.AssignTarget(cst.Name(target))], cst.Name(value))
    return cst.SimpleStatementLine([part])


# ---- `nl.loop_reduce`: a result that is folded over the iterations of a loop --------------------
# `t[...] = nl.loop_reduce(x, op=np.add, loop_indices=[k])` becomes `t[...] = nl.copy(x)` in the
# first iteration and `t[...] = nl.add(t[...], x)` in the others. Source: nki.language.loop_reduce,
# SDK 2.26.

REDUCE = "nki.language.loop_reduce"
_PARAMETERS = ("x", "op", "loop_indices")
_RANGES = ("affine_range", "sequential_range", "static_range")
_IDENTITY = {"add", "multiply", "maximum", "minimum"}


class Folds:
    """Writes such statements."""

    def __init__(self, sheet: Sheet, indices: Indices) -> None:
        self.sheet = sheet
        self.indices = indices

    def written(self, old: cst.SimpleStatementLine, new: cst.SimpleStatementLine) -> Any:
        """Return the statements that replace a fold.

        Returns None for others, and if the first iteration cannot be determined.
        """
        was, now = old.body[0], new.body[0]
        if not isinstance(was, cst.Assign) or not isinstance(now, cst.Assign):
            return None
        call, rewritten_call = was.value, now.value
        if not isinstance(call, cst.Call) or not isinstance(rewritten_call, cst.Call):
            return None
        target = now.targets[0].target
        if self.sheet.name_of(call.func) != REDUCE or not isinstance(target, cst.Subscript):
            return None
        operator, first = self._operator(call), self._first(call)
        if not operator or not first or not is_plain(call) or not self._is_kept(call, was):
            return None
        value = find(rewritten_call, _PARAMETERS, "x")
        assert value is not None
        return self._lines(new, target, value.value, operator, first)

    def _lines(
        self,
        line: cst.SimpleStatementLine,
        target: cst.Subscript,
        value: cst.BaseExpression,
        operator: str,
        first: str,
    ) -> cst.If:
        language = code(self.sheet.nl("copy")).rpartition(".")[0]
        place, text = code(target), code(value)
        copied = cst.parse_statement(f"{place} = {language}.copy({text})")
        folded = cst.parse_statement(f"{place} = {language}.{operator}({place}, {text})")
        return cst.If(
            cst.parse_expression(first),
            cst.IndentedBlock([copied]),
            cst.Else(cst.IndentedBlock([folded])),
            leading_lines=line.leading_lines,
        )

    def _operator(self, call: cst.Call) -> str:
        arg = find(call, _PARAMETERS, "op")
        name = self.sheet.name_of(arg.value).rpartition(".")[2] if arg is not None else ""
        today = rewritten.OPERATORS.get(name, name)
        return today if today in _IDENTITY else ""

    def _first(self, call: cst.Call) -> str:
        """Return the condition for the first iteration of the folded loops."""
        arg = find(call, _PARAMETERS, "loop_indices")
        if arg is None or not isinstance(arg.value, cst.List | cst.Tuple):
            return ""
        names = [element.value for element in arg.value.elements]
        loops = [self._counts(call, name) for name in names]
        return " and ".join(f"{code(name)} == 0" for name in names) if all(loops) else ""

    def _counts(self, call: cst.Call, name: cst.BaseExpression) -> bool:
        """Whether the name counts a loop around the call from 0."""
        for parent in self.sheet.parents(call):
            if isinstance(parent, cst.For) and code(parent.target) == code(name):
                head = parent.iter
                is_range = isinstance(head, cst.Call) and len(head.args) == 1
                function = self.sheet.name_of(head.func) if isinstance(head, cst.Call) else ""
                return is_range and function.rpartition(".")[2] in _RANGES
        return False

    def _is_kept(self, call: cst.Call, part: cst.Assign) -> bool:
        """Whether the call has no mask, and its sum has the element type of the target."""
        if mask_argument(call) is not None:
            return False
        tensors = self.sheet.tensors(call)
        target = part.targets[0].target
        name = target.value if isinstance(target, cst.Subscript) else None
        dtypes = {
            t.dtype
            for tensors_at in self.sheet.facts.tensors.values()
            for t in tensors_at
            if isinstance(name, cst.Name) and t.name == name.value
        }
        return len(dtypes) == 1 and {tensor.dtype for tensor in tensors} <= dtypes


# ---- Statements that read elements that a mask may have skipped ---------------------------------
# If every write of a tile is under a condition, values computed from it elsewhere are as undefined
# as the tile, and Beta 1 writes nothing. The new source must not read an unwritten tile, so such a
# statement gets the same condition. Source: NKI's documentation up to SDK 2.26, masking.

_UNWRITTEN = ("nki.language.ndarray", "nki.language.empty")


class Hidden:
    """Records the conditions of the statements written so far."""

    def __init__(self, blocks: Blocks) -> None:
        self.indices = blocks.indices
        self.sheet = blocks.sheet
        self._places = blocks.places
        self._conditions: dict[int, str] = {}  # of statements, by their parts

    def note(self, part: cst.BaseSmallStatement, condition: str) -> None:
        """Record the condition of a statement."""
        self._conditions[id(part)] = condition

    def condition(self, part: cst.BaseSmallStatement) -> str:
        """Return the condition on which a statement's inputs exist, if it was skipped in some
        iteration; else "".
        """
        names = {name.value: name for name in _read(part)}
        conditions = {self._of_tile(name, part) for name in names.values()} - {""}
        return conditions.pop() if len(conditions) == 1 else ""

    def _of_tile(self, name: cst.Name, part: cst.BaseSmallStatement) -> str:
        """Return the condition of all writes of a tile that the statement reads."""
        values = self.indices.definitions(name)
        maker = self._place(values[0][1]) if len(values) == 1 else None
        if maker is None or not self._is_left_out(values[0][1], part):
            return ""
        if self.sheet.name_of(getattr(values[0][1], "func", maker)) not in _UNWRITTEN:
            return ""
        writers = [*self._writers(name)]
        conditions = {
            self._conditions.get(id(node), "") if node is not None else "" for node in writers
        }
        text = conditions.pop() if len(conditions) == 1 else ""
        if not text:
            return ""
        read = [*names_in(cst.parse_expression(text))]
        same = self.indices.flow.is_same
        uses = (part, *(writer for writer in writers if writer is not None))
        return text if all(same(n.value, maker, use) for n in read for use in uses) else ""

    def _place(self, expression: cst.BaseExpression) -> cst.CSTNode | None:
        """Return the statement that makes a tile, or before which it is made in the new source."""
        around = [*self.sheet.parents(expression)]
        moved = (self._places[id(node)] for node in around if id(node) in self._places)
        assigned = (node for node in around if isinstance(node, cst.Assign))
        return next(moved, None) or next(assigned, None)

    def _writers(self, name: cst.Name) -> Iterator[cst.CSTNode | None]:
        """Yield the statements that write the tile of a name; None for a possible write."""
        scope = scope_of(self.sheet, name)
        if scope is None:
            yield None
            return
        for node in walk(scope.body):
            if isinstance(node, cst.Assign | cst.AugAssign):
                target = only_target(node)
                if target is None or (
                    isinstance(target, cst.Subscript) and _base(target) == name.value
                ):
                    yield node
            elif isinstance(node, cst.Call) and self._may_write(node, name.value):
                yield None

    def _may_write(self, call: cst.Call, name: str) -> bool:
        """Whether the tile is passed for an output, or to a function of the kernel's own."""
        is_local = not self.sheet.name_of(call.func).startswith("nki.")
        passed = [arg for arg in call.args if _base(arg.value) == name]
        return any(is_local or keyword_of(arg) in OUTPUTS for arg in passed)

    # ---- facts of the evaluations ----------------------------------------------------------

    def _is_left_out(self, maker: cst.BaseExpression, part: cst.BaseSmallStatement) -> bool:
        """Whether, in some iteration, the statement did not read the tile that was made there."""
        at = self.sheet.spot(maker)
        for facts in (self.sheet.facts, *self.sheet.facts.of_other_shapes):
            tiles = set(map(id, facts.tensors.get(at, ())))
            if tiles - set(map(id, self._tensors(facts, part))):
                return True
        return False

    def _tensors(self, facts: Facts, part: cst.BaseSmallStatement) -> Iterator[Tensor]:
        """Yield all tensors that the instructions of a statement access."""
        nodes = (node for node in walk(part) if isinstance(node, cst.BaseExpression))
        for at in {self.sheet.spot(node) for node in (part, *nodes)}:
            for instruction in facts.instructions.get(at, ()):
                yield from (v.tensor for v in instruction.operands if isinstance(v, View))


def _read(part: cst.BaseSmallStatement) -> Iterator[cst.Name]:
    """Return the names in what is assigned to a part of a tile, or passed to a call."""
    value = part.value if isinstance(part, cst.Expr) else None
    if isinstance(part, cst.Assign) and isinstance(part.targets[0].target, cst.Subscript):
        value = part.value
    return names_in(value) if value else iter(())


def _base(node: cst.BaseExpression) -> str:
    """Return the name of what is indexed, or the name itself."""
    while isinstance(node, cst.Subscript):
        node = node.value
    return node.value if isinstance(node, cst.Name) else ""


# ------------------------------------------------------------------------------------------------
# `return` in a loop whose body Beta 1 traced once: it ended the function after all iterations.
# Python ends it in the first iteration, so the statement moves after the loop. Source: NKI's
# documentation up to SDK 2.26, nki.language.affine_range, and its tutorial on layouts.

LEAVING = "a return in a loop"
_HELP = "write the `return` after the loop"


def without_return(
    sheet: Sheet, old: cst.For, new: cst.For
) -> tuple[cst.For, cst.SimpleStatementLine | None]:
    """Return the loop, and the `return` at its end, which belongs after it; other returns are
    left.
    """
    line = _last(new)
    if line is not None:
        assert isinstance(new.body, cst.IndentedBlock)
        statements = new.body.body[:-1] or [cst.SimpleStatementLine([cst.Pass()])]
        new = new.with_changes(body=new.body.with_changes(body=statements))
        sheet.done[LEAVING] += 1
    if any(True for _ in _returns(new)):
        first = next(_returns(old))
        text = "a `return` that is not the last statement of a loop, whose body was traced once"
        sheet.leave(first, text, _HELP)
    return new, line


def _last(loop: cst.For) -> cst.SimpleStatementLine | None:
    """Return the statement at the end of the body, if it is only a `return`."""
    line = loop.body.body[-1]
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        return None
    return line if isinstance(line.body[0], cst.Return) else None


def _returns(node: cst.CSTNode) -> Iterator[cst.Return]:
    """Yield the returns of the same function."""
    for child in children(node):
        if isinstance(child, cst.Return):
            yield child
        elif not isinstance(child, cst.FunctionDef | cst.Lambda):
            yield from _returns(child)


# ---- Instructions that the evaluation did not reach, whose results resemble an operand ----------
# `t[:, part] = nisa.activation(nl.exp, x)` makes a tile with the shape of `t[:, part]` and the
# type of x, and then assigns it. None of that needs an evaluation.


def unreached_result(
    sheet: Sheet, indices: Indices, lookup: Lookup, call: cst.Call, new: cst.Call, row: Row
) -> tuple[Result, str] | None:
    """Return the result of such a call, whose new form is `new`, and the expression that makes its
    tile.

    Returns None if that is not certain.
    """
    statement = next(sheet.parents(call))
    like = MADE_LIKE.get(row.name)
    read = find(call, row.parameters[1:], like) if like is not None else None
    if read is None or not isinstance(statement, cst.Assign):
        return None
    if sheet.spot(call) in sheet.facts.instructions:
        return None
    dtype = _dtype(new, row, read.value, lookup)
    shape = _shape(indices, only_target(statement), row, read.value, lookup)
    if not dtype or not shape:
        return None
    make, place = (code(sheet.nl(n)) for n in ("ndarray", Buffer.SBUF.value))
    return Result(row, (), (), is_new=True), f"{make}({shape}, dtype={dtype}, buffer={place})"


def _dtype(new: cst.Call, row: Row, read: cst.BaseExpression, lookup: Lookup) -> str:
    dtype = keyword_value(new, "dtype")
    if dtype is not None:
        return code(dtype) if row.name not in SIZES else ""  # those convert in a second step
    name = _name(read, lookup)
    return f"{name}.dtype" if name else ""


def _name(read: cst.BaseExpression, lookup: Lookup) -> str:
    """Return the name of the tensor that is read, in whole or in part."""
    base = read.value if isinstance(read, cst.Subscript) else read
    return base.value if isinstance(base, cst.Name) and lookup.is_tensor(base) else ""


def _shape(
    indices: Indices,
    target: cst.BaseExpression | None,
    row: Row,
    read: cst.BaseExpression,
    lookup: Lookup,
) -> str:
    """Return the shape of the target if it has two dimensions or more; else that of the operand
    read.
    """
    if isinstance(target, cst.Subscript):
        dims = [element for element in target.slice if _is_dimension(indices, element.slice)]
        return f"{TARGET}.shape" if len(dims) > 1 else ""
    name = _name(read, lookup)
    if row.name not in SIZES:
        return f"{name}.shape" if name and isinstance(read, cst.Name) else ""
    sizes = [*lookup.sizes(read, name)]
    if name and isinstance(read, cst.Name):
        sizes = [f"{name}.shape[{n}]" for n in range(2)]
    places = [SIZES[row.name][dim][1] for dim in sorted(SIZES[row.name])]
    return f"({', '.join(sizes[n] for n in places)})" if len(sizes) == len(places) else ""


def _is_dimension(indices: Indices, part: cst.BaseSlice) -> bool:
    """Whether the part of an index keeps its dimension, because it is not a number."""
    if not isinstance(part, cst.Index):
        return True
    value = part.value
    if isinstance(value, cst.Name):
        expressions = [expression for _, expression in indices.definitions(value)]
        return indices.has_index(value) or (
            bool(expressions) and all(_is_part(indices, o) for o in expressions)
        )
    return indices.has_index(value) or _is_part(indices, value)


def _is_part(indices: Indices, value: cst.BaseExpression) -> bool:
    """Whether the value is `nl.ds(start, size)`."""
    return isinstance(value, cst.Call) and indices.sheet.name_of(value.func) in PARTS
