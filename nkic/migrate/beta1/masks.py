"""Masks as bounds: `mask=(i_p < rows) & (i_f + k * 512 < columns)` → extents of the axes.

A mask on numbers alone, as `mask=k * 512 < columns`, is a condition of the whole call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import libcst as cst

from nkic.language.versions.rewritten import BY_DMA, REPEATED
from nkic.machine.operands import Row
from nkic.migrate.beta1.blocks import Blocks
from nkic.migrate.beta1.calls import MASKS
from nkic.migrate.beta1.indices import (
    Axis,
    Index,
    Indices,
    added,
    code,
    index_values,
    less,
    summed,
    times,
)
from nkic.migrate.beta1.slices import NotSlices, is_indexed, sizes, sliced, sliced_or_ap, subscript
from nkic.migrate.calls import find, keyword_of, keyword_value, mask_argument, with_value
from nkic.migrate.sheet import Sheet, names_in, only_target, scope_of
from nkic.program.program import Instruction, View

_MIRRORED: dict[type[cst.BaseCompOp], type[cst.BaseCompOp]] = {
    cst.GreaterThan: cst.LessThan,
    cst.GreaterThanEqual: cst.LessThanEqual,
    cst.LessThan: cst.GreaterThan,
    cst.LessThanEqual: cst.GreaterThanEqual,
}


class Mask(NamedTuple):
    """The elements that a mask selects.

    `limits` gives, by axis, the first element and the one after the last; `conditions` must hold
    for any element to be selected.
    """

    limits: Mapping[Axis, tuple[str, str]]
    conditions: tuple[str, ...] = ()

    @property
    def condition(self) -> str:
        """The conjunction of all conditions; "" for none."""
        if len(self.conditions) < 2:
            return "".join(self.conditions)
        return " and ".join(f"({condition})" for condition in self.conditions)


def mask_of(indices: Indices, node: cst.BaseExpression) -> Mask:
    """Return the bounds of a mask. Raises `NotSlices` if it is not a bound."""
    if isinstance(node, cst.Name) and indices.is_index(node):
        return mask_of(indices, _definition(indices, node))
    if not indices.has_index(node):
        return Mask({}, _conditions(indices, node))
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.BitAnd):
        return _both(mask_of(indices, node.left), mask_of(indices, node.right))
    if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
        return _compared(indices, node)
    raise NotSlices(f"the mask `{code(node)}` is not a bound of an axis")


def _conditions(indices: Indices, node: cst.BaseExpression) -> tuple[str, ...]:
    """Return the condition of a mask on numbers."""
    if isinstance(node, cst.Name) and node.value in ("None", "True"):
        return ()
    if isinstance(node, cst.Name) and _may_be_none(indices, node):
        return (f"{node.value} is None or {node.value}",)
    if isinstance(node, cst.IfExp) and code(node.orelse) in ("None", "True"):
        return (f"not ({code(node.test)}) or ({code(node.body)})",)
    return (_inner(node),)


def _may_be_none(indices: Indices, name: cst.Name) -> bool:
    """Whether the name is an argument, or assigned from a value that may be None."""
    values = [value for _, value in indices.definitions(name)]
    return not values or any("None" in code(value) for value in values)


def _inner(node: cst.BaseExpression) -> str:
    """Return the text without parentheses around all of it."""
    return code(node.with_changes(lpar=(), rpar=())) if node.lpar else code(node)


def _definition(indices: Indices, name: cst.Name) -> cst.BaseExpression:
    definition = indices.definition(name)
    if definition is None or definition[0] >= 0:
        raise NotSlices(f"the mask `{name.value}` is set in several places")
    return definition[1]


def _both(left: Mask, right: Mask) -> Mask:
    shared = {
        axis: (
            _tighter("max", "0", left.limits[axis][0], right.limits[axis][0]),
            _tighter("min", axis.count, left.limits[axis][1], right.limits[axis][1]),
        )
        for axis in left.limits.keys() & right.limits.keys()
    }
    limits = {**left.limits, **right.limits, **shared}
    return Mask(limits, tuple(dict.fromkeys((*left.conditions, *right.conditions))))


def _tighter(function: str, neutral: str, a: str, b: str) -> str:
    bounds = [bound for bound in dict.fromkeys((a, b)) if bound != neutral]
    return f"{function}({a}, {b})" if len(bounds) == 2 else "".join(bounds) or neutral


def _compared(indices: Indices, node: cst.Comparison) -> Mask:
    left, operator, right = node.left, node.comparisons[0].operator, node.comparisons[0].comparator
    kind = type(operator)
    if kind not in _MIRRORED:
        raise NotSlices(f"the mask `{code(node)}` is not a bound of an axis")
    if not indices.has_index(left):
        left, right = right, left
        kind = _MIRRORED[kind]
    index, bound = indices.of(left), indices.of(right)
    if index is not None and bound is not None and [factor for factor, _ in index.parts] == ["-1"]:
        index, bound = _upper_bound(index, bound)
        kind = _MIRRORED[kind]
    plain = index is not None and [factor for factor, _ in index.parts] == ["1"]
    if index is None or bound is None or bound.parts or not plain:
        raise NotSlices(f"the mask `{code(node)}` is not a bound of an axis")
    axis = index.parts[0][1]
    is_upper = kind in (cst.LessThan, cst.LessThanEqual)
    exact = kind in (cst.LessThan, cst.GreaterThanEqual)
    end = less(bound.base if exact else added(bound.base, "1"), added(index.base, axis.start))
    end = summed(end) if end[0] == "-" or end[-1].isdecimal() else end
    if is_upper:
        return Mask({axis: ("0", f"min({axis.count}, {end})")})
    return Mask({axis: (end if end.isdecimal() else f"max(0, {end})", axis.count)})


def _upper_bound(index: Index, bound: Index) -> tuple[Index, Index]:
    """Rewrite `-i + a >= b` as `i <= a - b`."""
    axis = index.parts[0][1]
    return Index("0", (("1", axis),)), Index(summed(less(index.base, bound.base)))


# ---- Calls with `mask=`: their operands reduced to the elements that the mask selects -----------

Shapes = Mapping[str, frozenset[tuple[int, ...]]]


def _operands(instructions: Sequence[Instruction]) -> Shapes:
    """Return the operand shapes of a call's instructions, by tensor name."""
    by_name: dict[str, set[tuple[int, ...]]] = {}
    for instruction in instructions:
        views = (view for view in instruction.operands if isinstance(view, View))
        for view in views:
            by_name.setdefault(view.tensor.name, set()).add(view.shape)
    return {name: frozenset(shapes) for name, shapes in by_name.items()}


def shapes_by_name(sheet: Sheet) -> Shapes:
    """Return the evaluated shapes of the tiles, by name."""
    by_name: dict[str, set[tuple[int, ...]]] = {}
    for tensors in sheet.facts.tensors.values():
        for tensor in tensors:
            by_name.setdefault(tensor.name, set()).add(tensor.shape)
    return {name: frozenset(shapes) for name, shapes in by_name.items()}


class Cutter:
    """Reduces the operands of one masked call."""

    def __init__(
        self,
        indices: Indices,
        blocks: Blocks,
        shapes: Shapes,
        mask: Mask,
        instructions: Sequence[Instruction],
        order: Callable[[cst.Subscript], Sequence[int]],
    ) -> None:
        self.order = order
        self.indices = indices
        self.blocks = blocks
        self.tile_shapes = shapes
        self.shapes = {**shapes, **_operands(instructions)}
        self.limits = mask.limits
        self.condition = mask.condition

    def call(self, old: cst.Call, new: cst.Call) -> cst.Call:
        """Return the call without its mask, on the selected elements. Raises `NotSlices`."""
        pairs = zip(old.args, new.args, strict=True)
        args = [
            now.with_changes(value=self.operand(was.value, now.value))
            for was, now in pairs
            if keyword_of(was) != "mask"
        ]
        args[-1] = args[-1].with_changes(comma=new.args[-1].comma)
        return new.with_changes(args=args)

    def operand(self, old: cst.BaseExpression, new: cst.BaseExpression) -> cst.BaseExpression:
        """Return one operand, reduced; numbers and the like are unchanged."""
        if isinstance(old, cst.Subscript) and is_indexed(self.indices, old):
            return self.indexed(old)
        if not self.limits:
            return new
        if isinstance(old, cst.Name) and (gathered := self.gathered(old)) is not None:
            return self.indexed(gathered)
        if isinstance(old, cst.Name) and self.is_tile(old):
            part = self.part(self.shapes.get(old.value) or self.full())
            return cst.parse_expression(f"{old.value}[{part}]") if part else new
        if isinstance(old, cst.Subscript):
            return self.sliced(old)
        if isinstance(old, cst.BinaryOperation | cst.Call):
            return self.expression(old, new)
        return new

    def indexed(self, old: cst.Subscript) -> cst.BaseExpression:
        """Reduce `t[i_p, i_f]`."""
        value = old.value
        if self.blocks.count(old):
            return self.blocks.indexed(old, value, sliced(self.indices, old, self.limits))
        texts = sliced_or_ap(self.indices, old, self.limits, self.order)
        if isinstance(texts, str):
            return cst.parse_expression(f"{code(value)}{texts}")
        return subscript(value, texts)

    def gathered(self, name: cst.Name) -> cst.Subscript | None:
        """Return the value of a name if it is rows gathered by a tile: a part of it is gathered by
        a part of the tile.

        Raises `NotSlices` if the value may have changed.
        """
        definition = self.indices.definition(name)
        value = definition[1] if definition is not None and definition[0] < 0 else None
        if not isinstance(value, cst.Subscript) or not is_indexed(self.indices, value):
            return None
        if not any(self.indices.is_tile(number) for number in index_values(value)):
            return None
        if not self.indices.is_same(value, name):
            raise NotSlices("its rows are given by a tile that changes before its use")
        return value

    def expression(self, old: cst.BaseExpression, new: cst.BaseExpression) -> cst.BaseExpression:
        """Compute the whole expression, and use a part of it."""
        tensors = self.indices.sheet.tensors(old)
        if not tensors:
            return new  # a number
        part = self.part(frozenset(tensor.shape for tensor in tensors))
        if not part:
            return new
        text = code(new)
        whole = text if isinstance(new, cst.Call | cst.Name) else f"({text})"
        return cst.parse_expression(f"{whole}[{part}]")

    def sliced(self, old: cst.Subscript) -> cst.BaseExpression:
        """Reduce `t[k, :, 0:512]`, whose slices are the axes of the mask."""
        ranks = {axis.rank for axis in self.limits}
        parts = [element.slice for element in old.slice]
        axes = [n for n, part in enumerate(parts) if isinstance(part, cst.Slice)]
        if ranks != {len(axes)} or any(isinstance(n, cst.Ellipsis) for n in index_values(old)):
            raise NotSlices("a tile of the masked call has other dimensions than the mask")
        texts = [code(element).rstrip(", ") for element in old.slice]
        for axis, (low, high) in self.limits.items():
            place = axes[axis.place]
            texts[place] = self._cut(old, parts[place], place, low, high)
        return self.blocks.indexed(old, old.value, texts)

    def _cut(self, old: cst.Subscript, part: cst.BaseSlice, dim: int, low: str, high: str) -> str:
        assert isinstance(part, cst.Slice)
        if part.step is not None:
            raise NotSlices("a tile of the masked call is sliced with a step")
        start = code(part.lower) if part.lower is not None else "0"
        if part.upper is not None:
            if code(part.upper) == added(start, "1"):
                return f"{start}:{code(part.upper)}"
        elif isinstance(old.value, cst.Name):
            shapes = self.tile_shapes.get(old.value.value, frozenset())
            if any(len(shape) > dim and shape[dim] == 1 for shape in shapes):
                return ":"
        return f"{added(start, low)}:{added(start, high)}"

    def target(
        self, old: cst.BaseAssignTargetExpression, new: cst.BaseAssignTargetExpression
    ) -> cst.BaseAssignTargetExpression:
        """Return the assignment target, reduced; a plain name is unchanged. Raises `NotSlices`."""
        if not isinstance(old, cst.Subscript) or not isinstance(new, cst.Subscript):
            return new
        if is_indexed(self.indices, old):
            reduced = self.indexed(old)
            if not isinstance(reduced, cst.Subscript):
                reduced = cst.parse_expression(f"{code(reduced)}[...]")
            assert isinstance(reduced, cst.Subscript)
            return reduced
        if not self.limits:
            return new
        is_whole = len(old.slice) == 1 and code(old.slice[0].slice) == "..."
        if not is_whole or not isinstance(old.value, cst.Name):
            reduced = self.sliced(old)
            assert isinstance(reduced, cst.Subscript)
            return reduced
        part = self.part(self.shapes.get(old.value.value) or self.full())
        return subscript(new.value, [part]) if part else new

    def is_tile(self, name: cst.Name) -> bool:
        """Whether the evaluation made a tile of this name, or a call or an operator assigned it."""
        makers = cst.Call | cst.Subscript | cst.BinaryOperation
        values = (value for _, value in self.indices.definitions(name))
        return name.value in self.shapes or any(isinstance(value, makers) for value in values)

    def full(self) -> frozenset[tuple[int, ...]]:
        """Return the shape of a tile that has every element of the mask's axes."""
        return frozenset({(2,) * max(axis.rank for axis in self.limits)})

    def part(self, shapes: frozenset[tuple[int, ...]]) -> str:
        """Return the slices of a tile that the mask selects: "" for all of it. Raises
        `NotSlices`.
        """
        if not self.limits:
            return ""
        ranks = {axis.rank for axis in self.limits}
        shapes = frozenset(shape for shape in shapes if {len(shape)} == ranks)
        if not shapes:
            raise NotSlices("a tile of the masked call has other dimensions than the mask")
        by_place = {axis.place: ":".join(limit) for axis, limit in self.limits.items()}
        texts = [
            by_place[dim] if dim in by_place and self._is_long(shapes, dim) else ":"
            for dim in range(ranks.pop())
        ]
        while texts and texts[-1] == ":":
            texts.pop()
        return ", ".join(texts)

    def _is_long(self, shapes: frozenset[tuple[int, ...]], dim: int) -> bool:
        sizes = {shape[dim] == 1 for shape in shapes}
        if len(sizes) != 1:
            raise NotSlices("a tile of the masked call has one element only in some iterations")
        return not sizes.pop()


# ------------------------------------------------------------------------------------------------
# Operands with one partition, which Beta 1 broadcast over those of the other operand.
# `nl.add(a, b)` of (128, 512) and (1, 512) becomes `nl.add(a, nl.broadcast_to(b, (128, 512)))`.
# Source: NKI's documentation up to SDK 2.26, nki.language.add.

BINARY = tuple(
    f"nki.language.{name}"
    for name in ("add", "subtract", "multiply", "divide", "maximum", "minimum", "power")
)


class Wider:
    """Writes the operands of such calls."""

    def __init__(
        self, sheet: Sheet, indices: Indices, shapes: Mapping[str, frozenset[tuple[int, ...]]]
    ) -> None:
        self.sheet = sheet
        self.indices = indices
        self.shapes = shapes

    def written(self, old: cst.Call, new: cst.Call) -> cst.Call:
        """Return the call with equally many partitions in both operands."""
        if self.sheet.name_of(old.func) not in BINARY or len(old.args) < 2:
            return new
        shapes = [self._shape(arg.value) for arg in old.args[:2]]
        if None in shapes or not all(isinstance(arg.value, cst.Name) for arg in new.args[:2]):
            return new
        first, second = (sizes or () for sizes in shapes)
        if len(first) != 2 or len(second) != 2 or first[0] == second[0]:
            return new
        operand = new.args[0 if first[0] == 1 else 1]
        return self._broadcast(new, operand, tuple(map(max, first, second)))

    def repeated(self, row: Row, old: cst.Call, new: cst.Call) -> cst.Call:
        """Broadcast the operands of an instruction that Beta 1 broadcast along dimensions of one
        element.
        """
        instructions = self.sheet.instructions(old)
        for operand in REPEATED.get(row.name, ()):
            values = (instruction.operand(operand) for instruction in instructions)
            views = [value for value in values if isinstance(value, View)]
            shapes = {view.shape for view in views}
            arg = find(new, row.parameters[1:], operand)
            if arg is None or len(shapes) != 1 or not all(map(_is_repeated, views)):
                continue
            if not isinstance(arg.value, cst.Name | cst.Subscript) or "broadcast" in code(arg):
                continue
            new = self._broadcast(new, arg, shapes.pop())
        return new

    def _broadcast(self, call: cst.Call, arg: cst.Arg, shape: tuple[int, ...]) -> cst.Call:
        """Return the call with an argument broadcast to a shape."""
        function = self.sheet.nl("broadcast_to")
        text = cst.parse_expression(str(shape))
        value = cst.Call(function, [cst.Arg(arg.value), cst.Arg(text)])
        return with_value(call, arg, value)

    def _shape(self, value: cst.BaseExpression) -> tuple[int, ...] | None:
        """Return the only shape of a tile of this name; None if there are several."""
        if not isinstance(value, cst.Name):
            return None
        calls = (expression for _, expression in self.indices.definitions(value))
        evaluated = {tensor.shape for call in calls for tensor in self.sheet.tensors(call)}
        shapes = evaluated or self.shapes.get(value.value, frozenset())
        return next(iter(shapes)) if len(shapes) == 1 else None


def _is_repeated(view: View) -> bool:
    """Whether some dimension repeats the same element."""
    return any(not s and n > 1 for s, n in zip(view.strides, view.shape, strict=True))


# ------------------------------------------------------------------------------------------------
# Masks over a flattened index: `mask=512 * i_p + i_f < n` selects whole rows and a part of one.
# A load or a store under such a mask becomes two: of the whole rows, and of the elements in the
# row after them. Computations in between use whole tiles, of which later statements read only the
# selected part. Source: NKI's documentation up to SDK 2.26, masking.

_LOAD, _STORE = "nki.language.load", "nki.language.store"
_COMPARED = cst.LessThan | cst.LessThanEqual


class Stair(NamedTuple):
    """A mask that selects the first `present` elements of a tile, counted along its rows."""

    rows: Axis
    columns: Axis
    present: str


class Names(NamedTuple):
    """The variables with the number of whole rows, and of elements in the row after them; set at
    `line`.
    """

    whole: str
    rest: str
    line: cst.CSTNode


class Stairs:
    """Writes the statements with such masks."""

    def __init__(self, blocks: Blocks, shapes: Shapes) -> None:
        self.blocks = blocks
        self.indices: Indices = blocks.indices
        self.sheet = blocks.sheet
        self.shapes = shapes
        self._names: dict[tuple[int, str], Names] = {}  # by the block of statements and the count

    def is_one(self, call: cst.Call) -> bool:
        """Whether `written` handles the call and its statement."""
        statement = next(self.sheet.parents(call))
        name = self.sheet.name_of(call.func)
        if self._stair(call) is None:
            return False
        if name == _STORE:
            return isinstance(statement, cst.Expr) and self._is_indexed(call)
        target = only_target(statement) if isinstance(statement, cst.Assign) else None
        if not isinstance(target, cst.Name) or not self._is_read_alike(target, call):
            return False
        return self._is_indexed(call) if name == _LOAD else name in BINARY

    def written(self, old: cst.SimpleStatementLine, new: cst.SimpleStatementLine) -> Any:
        """Return the statements that replace one under such a mask; None for all others."""
        part, now = old.body[0], new.body[0]
        call, new_call = getattr(part, "value", None), getattr(now, "value", None)
        if not isinstance(call, cst.Call) or not isinstance(new_call, cst.Call):
            return None
        stair = self._stair(call) if mask_argument(call) is not None and self.is_one(call) else None
        if stair is None:
            return None
        self.sheet.done[MASKS] += 1
        names, before = self._counted(old, stair)
        name = self.sheet.name_of(call.func)
        if name == _LOAD:
            lines = self._loaded(now, call, new_call, stair, names)
        elif name == _STORE:
            lines = self._both(call, new_call, stair, names, code)
        else:
            text = code(now.with_changes(value=_unmasked(new_call)))
            lines = [f"if {names.whole} + {names.rest} > 0:\n    {text}\n"]
        statements = [cst.parse_statement(text) for text in (*before, *lines)]
        statements[0] = statements[0].with_changes(leading_lines=new.leading_lines)
        return cst.FlattenSentinel(statements)

    def _loaded(
        self, now: Any, call: cst.Call, new_call: cst.Call, stair: Stair, names: Names
    ) -> list[str]:
        """Return the definition of a tile, and the transfers to its parts."""
        tile = code(now.targets[0].target)
        make, place = (code(self.sheet.nl(n)) for n in ("ndarray", "sbuf"))
        copy = code(self.sheet.nisa(BY_DMA))
        requested = keyword_value(new_call, "dtype")
        source = find(new_call, ("src",), "src")
        assert source is not None and isinstance(source.value, cst.Subscript)
        shape = f"({stair.rows.count}, {stair.columns.count})"
        dtype = code(requested) if requested is not None else f"{code(source.value.value)}.dtype"
        first = f"{tile} = {make}({shape}, dtype={dtype}, buffer={place})\n"

        def moved(load: cst.Call, part: str) -> str:
            src = find(load, ("src",), "src")
            assert src is not None
            return f"{copy}({tile}[{part}], {code(src.value)})"

        limits = _limits(stair, names)
        parts = [f"{':'.join(rows)}, {':'.join(columns)}" for rows, columns in limits]
        texts = iter(parts)
        return [
            first,
            *self._both(call, new_call, stair, names, lambda load: moved(load, next(texts))),
        ]

    def _both(
        self, call: cst.Call, new_call: cst.Call, stair: Stair, names: Names, text: Any
    ) -> list[str]:
        """Return the statement for the whole rows, and for the elements after them."""
        lines = []
        for name, (rows, columns) in zip(names[:2], _limits(stair, names), strict=True):
            mask = Mask({stair.rows: rows, stair.columns: columns})
            cutter = Cutter(self.indices, self.blocks, self.shapes, mask, (), lambda _: ())
            lines.append(f"if {name} > 0:\n    {text(cutter.call(call, new_call))}\n")
        return lines

    def _counted(self, line: cst.SimpleStatementLine, stair: Stair) -> tuple[Names, list[str]]:
        """Return the names of the counts, and the line that sets them unless it exists already."""
        key = (id(next(self.sheet.parents(line))), repr(stair))
        names = self._names.get(key)
        read = [name.value for name in names_in(cst.parse_expression(stair.present))]
        is_same = self.indices.flow.is_same
        if names is not None and all(is_same(name, names.line, line) for name in read):
            return names, []
        names = Names(self.sheet.fresh("whole"), self.sheet.fresh("rest"), line)
        self._names[key] = names
        row = stair.columns.count
        total = times(stair.rows.count, row)
        text = f"divmod(min(max({stair.present}, 0), {total}), {row})"
        return names, [f"{names.whole}, {names.rest} = {text}\n"]

    # ---- recognition -----------------------------------------------------------------------

    def _is_read_alike(self, tile: cst.Name, call: cst.Call) -> bool:
        """Whether every reader of the tile has the same mask, so that unselected elements are never
        used.
        """
        scope = scope_of(self.sheet, tile)
        names = names_in(scope.body) if scope is not None else ()
        for use in (name for name in names if name.value == tile.value):
            around = next(self.sheet.parents(use))
            if isinstance(around, cst.AssignTarget):
                continue
            reader = next(self.sheet.parents(around))
            if not isinstance(around, cst.Arg) or not isinstance(reader, cst.Call):
                return False
            if self._stair(reader) != self._stair(call):
                return False
        return True

    def _is_indexed(self, call: cst.Call) -> bool:
        """Whether the tensor is indexed to exactly the tile that the mask covers."""
        value = call.args[0].value if call.args else None
        stair = self._stair(call)
        if stair is None or not isinstance(value, cst.Subscript):
            return False
        covered = [stair.rows.count, stair.columns.count]
        plain = isinstance(value.value, cst.Name) and self.blocks.count(value) == 0
        return plain and is_indexed(self.indices, value) and sizes(self.indices, value) == covered

    def _stair(self, call: cst.Call) -> Stair | None:
        """Return the elements that the mask of a call selects, if it is such a mask; else None."""
        mask = mask_argument(call)
        if isinstance(mask, cst.Name):
            definition = self.indices.definition(mask)
            mask = definition[1] if definition is not None and definition[0] < 0 else None
        if not isinstance(mask, cst.Comparison) or len(mask.comparisons) != 1:
            return None
        compared = mask.comparisons[0]
        index, bound = self.indices.of(mask.left), self.indices.of(compared.comparator)
        if index is None or bound is None or bound.parts or len(index.parts) != 2:
            return None
        (pitch, rows), (step, columns) = sorted(index.parts, key=lambda part: part[1].place)
        places = (rows.rank, columns.rank, rows.place, columns.place) == (2, 2, 0, 1)
        whole = rows.start == columns.start == "0" and step == "1" and pitch == columns.count
        if not places or not whole or not isinstance(compared.operator, _COMPARED):
            return None
        exact = isinstance(compared.operator, cst.LessThan)
        end = bound.base if exact else added(bound.base, "1")
        return Stair(rows, columns, less(end, index.base))


def _limits(stair: Stair, names: Names) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    """Return the limits of rows and columns: of the whole rows, then of the elements after them."""
    behind = (names.whole, added(names.whole, "1"))
    return [(("0", names.whole), ("0", stair.columns.count)), (behind, ("0", names.rest))]


def _unmasked(call: cst.Call) -> cst.Call:
    args = [arg for arg in call.args if keyword_of(arg) != "mask"]
    args[-1] = args[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return call.with_changes(args=args)
