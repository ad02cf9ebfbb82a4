"""Masks as bounds: `mask=(i_p < rows) & (i_f + k * 512 < columns)` → extents of the axes.

A mask on numbers alone, as `mask=k * 512 < columns`, is a condition of the whole call.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import libcst as cst

from nkic.language.beta1.indices import Index
from nkic.language.beta1.masks import Compared
from nkic.language.versions import BY_DMA, PRODUCTS, REPEATED, SIZES
from nkic.machine.operands import Row
from nkic.migrate.beta1.blocks import Blocks, by_name
from nkic.migrate.beta1.calls import MASKS
from nkic.migrate.beta1.indices import Indices, Number, Sum, code, index_values, moving, number
from nkic.migrate.beta1.slices import (
    Axis,
    Limits,
    NotSlices,
    is_indexed,
    sizes,
    sliced,
    sliced_or_ap,
    subscript,
)
from nkic.migrate.calls import find, keyword_of, keyword_value, mask_argument, with_value
from nkic.migrate.sheet import names_in, scope_of
from nkic.program.program import Instruction, View

_COMPARED: dict[type[cst.CSTNode], Callable[[Any, Any], Any]] = {
    cst.GreaterThan: operator.gt,
    cst.GreaterThanEqual: operator.ge,
    cst.LessThan: operator.lt,
    cst.LessThanEqual: operator.le,
}


class Mask(NamedTuple):
    """The elements that a mask selects.

    `limits` gives, by axis, the first element and the one after the last; `conditions` must hold
    for any element to be selected.
    """

    limits: Limits
    conditions: tuple[str, ...] = ()

    @property
    def condition(self) -> str:
        if len(self.conditions) < 2:
            return "".join(self.conditions)
        return " and ".join(f"({condition})" for condition in self.conditions)


def mask_of(indices: Indices, node: cst.BaseExpression) -> Mask:
    match node:
        case cst.Name(name) if indices.is_index(node):
            definition = indices.defined(node)
            if definition is None:
                raise NotSlices(f"the mask `{name}` is set in several places")
            return mask_of(indices, definition)
        case _ if not indices.has_index(node):
            return Mask({}, _conditions(indices, node))
        case cst.BinaryOperation(left, cst.BitAnd(), right):
            return _both(mask_of(indices, left), mask_of(indices, right))
    compared = compared_of(indices, node)
    moves = moving(compared) if compared is not None else []
    if compared is None or len(moves) != 1 or moves[0][1].step not in (1, -1):
        raise NotSlices(f"the mask `{code(node)}` is not a bound of an axis")
    place, (count, step, _) = moves[0]
    axis, start = Axis(compared.ndim, place, count), cast(Number, compared.start)
    if step < 0:
        return Mask({axis: (0, _least(count, start + 1))})
    return Mask({axis: (_greatest(0, -start), count)})


def compared_of(indices: Indices, node: cst.BaseExpression) -> Index | None:
    """Return the index that a comparison is the same as, if that is not negative; else None."""
    match node:
        case cst.Comparison(was, (cst.ComparisonTarget(symbol, by),)) if type(symbol) in _COMPARED:
            left, right = indices.of(was), indices.of(by)
            if left is not None and right is not None:
                mask = _COMPARED[type(symbol)](left, right)
                return mask.index if isinstance(mask, Compared) else None
    return None


def _least(*numbers: Number) -> Number:
    return Sum(((1, f"min({', '.join(map(str, numbers))})"),))


def _greatest(*numbers: Number) -> Number:
    is_known = all(isinstance(number, int) for number in numbers)
    text = f"max({', '.join(map(str, numbers))})"
    return max(cast(tuple[int, ...], numbers)) if is_known else Sum(((1, text),))


def _conditions(indices: Indices, node: cst.BaseExpression) -> tuple[str, ...]:
    match node:
        case cst.Name("None" | "True"):
            return ()
        case cst.Name(name):
            values = [value for _, value in indices.definitions(node)]
            if not values or any("None" in code(value) for value in values):
                return (f"{name} is None or {name}",)
        case cst.IfExp(test, body, cst.Name("None" | "True")):
            return (f"not ({code(test)}) or ({code(body)})",)
    return (code(node.with_changes(lpar=(), rpar=())),)


def _both(left: Mask, right: Mask) -> Mask:
    limits = {**left.limits, **right.limits}
    for axis in left.limits.keys() & right.limits.keys():
        lows, highs = zip(left.limits[axis], right.limits[axis], strict=True)
        limits[axis] = _tighter(_greatest, 0, lows), _tighter(_least, axis.size, highs)
    return Mask(limits, tuple(dict.fromkeys((*left.conditions, *right.conditions))))


def _tighter(choose: Callable[..., Number], neutral: Number, bounds: tuple[Number, ...]) -> Number:
    bounds = tuple(bound for bound in dict.fromkeys(bounds) if bound != neutral)
    return choose(*bounds) if len(bounds) > 1 else (*bounds, neutral)[0]


# ---- Calls with `mask=`: their operands reduced to the elements that the mask selects -----------


_TURNED = "it selects from the result, whose dimensions are not those of the operands"


class Cutter:
    """Reduces the operands of one masked call."""

    def __init__(
        self,
        blocks: Blocks,
        mask: Mask,
        instructions: Sequence[Instruction] = (),
        order: Callable[[cst.Subscript], Sequence[int]] = lambda _: (),
    ) -> None:
        self.order = order
        self.indices = blocks.indices
        self.blocks = blocks
        views = (v for i in instructions for v in i.operands if isinstance(v, View))
        named = by_name((view.tensor.name, view.shape) for view in views)
        self.shapes = {**blocks.shapes, **named}
        self.limits = mask.limits
        self.condition = mask.condition
        self.is_turned = False  # the dimensions of the result are others than those of operands

    def call(self, old: cst.Call, new: cst.Call) -> cst.Call:
        name = self.indices.sheet.name_of(old.func).rpartition(".")[2]
        self.is_turned = name in SIZES or name in PRODUCTS or name == "transpose"
        if self.is_turned and self.limits and not self._is_of_contracted(old):
            raise NotSlices(_TURNED)
        args = [
            now.with_changes(value=self.operand(was.value, now.value))
            for was, now in zip(old.args, new.args, strict=True)
            if keyword_of(was) != "mask"
        ]
        args[-1] = args[-1].with_changes(comma=new.args[-1].comma)
        return new.with_changes(args=args)

    def _is_of_contracted(self, call: cst.Call) -> bool:
        """Whether the mask bounds the partitions of both factors of a product, and only these."""
        factors = [arg.value for arg in call.args[:2]]
        for factor in factors:
            if not isinstance(factor, cst.Subscript) or not is_indexed(self.indices, factor):
                return False
            first, *others = (self._axes(value) for value in index_values(factor))
            if not self.limits.keys() <= first or any(self.limits.keys() & axes for axes in others):
                return False
        return len(factors) == 2

    def _axes(self, value: cst.BaseExpression) -> set[Axis]:
        index = self.indices.of(value)
        if index is None:
            return set()
        return {Axis(index.ndim, place, dim.size) for place, dim in moving(index)}

    def operand(self, old: cst.BaseExpression, new: cst.BaseExpression) -> cst.BaseExpression:
        """Return one operand, reduced; numbers and the like are unchanged."""
        if isinstance(old, cst.Subscript) and is_indexed(self.indices, old):
            return self.indexed(old)
        if not self.limits:
            return new
        match old:
            case cst.Name(name):
                if (gathered := self.gathered(old)) is not None:
                    return self.indexed(gathered)
                if self.is_tile(old):
                    part = self.part(self.shapes.get(name) or self.full())
                    return cst.parse_expression(f"{name}[{part}]") if part else new
            case cst.Subscript():
                return self.sliced(old)
            case cst.BinaryOperation() | cst.Call():
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
        value = self.indices.defined(name)
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
        part = self.part(frozenset(tensor.shape for tensor in tensors)) if tensors else ""
        if not part:
            return new  # a number, or all of it
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

    def _cut(
        self, old: cst.Subscript, part: cst.BaseSlice, dim: int, low: Number, high: Number
    ) -> str:
        assert isinstance(part, cst.Slice)
        if part.step is not None:
            raise NotSlices("a tile of the masked call is sliced with a step")
        start = number(part.lower) if part.lower is not None else 0
        if part.upper is not None:
            if number(part.upper) == start + 1:
                return f"{start}:{code(part.upper)}"
        elif isinstance(old.value, cst.Name):
            shapes = self.blocks.shapes.get(old.value.value, frozenset())
            if any(len(shape) > dim and shape[dim] == 1 for shape in shapes):
                return ":"
        return f"{start + low}:{start + high}"

    def target(self, old: cst.BaseExpression, new: cst.BaseExpression) -> cst.BaseExpression:
        """Return the assignment target, reduced; a plain name is unchanged. Raises `NotSlices`."""
        if not isinstance(old, cst.Subscript) or not isinstance(new, cst.Subscript):
            return new
        if is_indexed(self.indices, old):
            if self.is_turned and any(
                self._axes(v) & self.limits.keys() for v in index_values(old)
            ):
                raise NotSlices(_TURNED)
            reduced = self.indexed(old)
            is_part = isinstance(reduced, cst.Subscript)
            return reduced if is_part else cst.parse_expression(f"{code(reduced)}[...]")
        if not self.limits or self.is_turned:
            return new
        if [code(element.slice) for element in old.slice] != ["..."] or not isinstance(
            old.value, cst.Name
        ):
            return self.sliced(old)
        part = self.part(self.shapes.get(old.value.value) or self.full())
        return subscript(new.value, [part]) if part else new

    def is_tile(self, name: cst.Name) -> bool:
        """Whether the evaluation made a tile of this name, or a call or an operator assigned it."""
        makers = cst.Call | cst.Subscript | cst.BinaryOperation
        values = (value for _, value in self.indices.definitions(name))
        return name.value in self.shapes or any(isinstance(value, makers) for value in values)

    def full(self) -> frozenset[tuple[int, ...]]:
        return frozenset({(2,) * max(axis.rank for axis in self.limits)})

    def part(self, shapes: frozenset[tuple[int, ...]]) -> str:
        """Return the slices of a tile that the mask selects: "" for all. Raises `NotSlices`."""
        if not self.limits or self.is_turned:
            return ""
        ranks = {axis.rank for axis in self.limits}
        shapes = frozenset(shape for shape in shapes if {len(shape)} == ranks)
        if not shapes:
            raise NotSlices("a tile of the masked call has other dimensions than the mask")
        by_place = {axis.place: "{}:{}".format(*limit) for axis, limit in self.limits.items()}
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


def widened(blocks: Blocks, old: cst.Call, new: cst.Call) -> cst.Call:
    if blocks.sheet.name_of(old.func) not in BINARY or len(old.args) < 2:
        return new
    first, second = (_shape(blocks, arg.value) for arg in old.args[:2])
    if not all(isinstance(arg.value, cst.Name) for arg in new.args[:2]):
        return new
    if len(first) != 2 or len(second) != 2 or first[0] == second[0]:
        return new
    operand = new.args[0 if first[0] == 1 else 1]
    return _broadcast(blocks, new, operand, tuple(map(max, first, second)))


def repeated(blocks: Blocks, row: Row, old: cst.Call, new: cst.Call) -> cst.Call:
    """Broadcast an instruction's operands that Beta 1 broadcast along dimensions of one element."""
    instructions = blocks.sheet.instructions(old)
    for operand in REPEATED.get(row.name, ()):
        values = (instruction.operand(operand) for instruction in instructions)
        views = [value for value in values if isinstance(value, View)]
        shapes = {view.shape for view in views}
        arg = find(new, row.parameters[1:], operand)
        if arg is None or len(shapes) != 1 or not all(map(_is_repeated, views)):
            continue
        if not isinstance(arg.value, cst.Name | cst.Subscript) or "broadcast" in code(arg):
            continue
        new = _broadcast(blocks, new, arg, shapes.pop())
    return new


def _broadcast(blocks: Blocks, call: cst.Call, arg: cst.Arg, shape: tuple[int, ...]) -> cst.Call:
    return with_value(call, arg, blocks.sheet.parsed("nl.broadcast_to({}, {})", arg.value, shape))


def _shape(blocks: Blocks, value: cst.BaseExpression) -> tuple[int, ...]:
    """Return the only shape of a tile of this name; () if there are several."""
    if not isinstance(value, cst.Name):
        return ()
    calls = (expression for _, expression in blocks.indices.definitions(value))
    evaluated = {tensor.shape for call in calls for tensor in blocks.sheet.tensors(call)}
    shapes = evaluated or blocks.shapes.get(value.value, frozenset())
    return next(iter(shapes)) if len(shapes) == 1 else ()


def _is_repeated(view: View) -> bool:
    """Whether some dimension repeats the same element."""
    return any(not s and n > 1 for s, n in zip(view.strides, view.shape, strict=True))


# ------------------------------------------------------------------------------------------------
# Masks over a flattened index: `mask=512 * i_p + i_f < n` selects whole rows and a part of one.
# A load or a store under such a mask becomes two: of the whole rows, and of the elements in the
# row after them. Computations in between use whole tiles, of which later statements read only the
# selected part. Source: NKI's documentation up to SDK 2.26, masking.

_LOAD, _STORE = "nki.language.load", "nki.language.store"


class Stair(NamedTuple):
    """A mask that selects the first `present` elements of a tile, counted along its rows."""

    rows: Axis
    columns: Axis
    present: Number


class Names(NamedTuple):
    """The variables set at `line`: the number of whole rows, and of elements in the next row."""

    whole: str
    rest: str
    line: cst.CSTNode


class Stairs:
    """Writes the statements with such masks."""

    def __init__(self, blocks: Blocks) -> None:
        self.blocks = blocks
        self.indices, self.sheet = blocks.indices, blocks.sheet
        self._names: dict[tuple[int, str], Names] = {}  # by the block of statements and the count

    def is_one(self, call: cst.Call) -> bool:
        """Whether `written` handles the call and its statement."""
        name = self.sheet.name_of(call.func)
        match next(self.sheet.parents(call)):
            case _ if self._stair(call) is None:
                return False
            case cst.Expr():
                return name == _STORE and self._is_indexed(call)
            case cst.Assign((cst.AssignTarget(cst.Name() as tile),)) if name != _STORE:
                is_written = self._is_indexed(call) if name == _LOAD else name in BINARY
                return is_written and self._is_read_alike(tile, call)
        return False

    def written(self, old: cst.SimpleStatementLine, new: cst.SimpleStatementLine) -> Any:
        part, now = old.body[0], new.body[0]
        call, new_call = getattr(part, "value", None), getattr(now, "value", None)
        if not isinstance(call, cst.Call) or not isinstance(new_call, cst.Call):
            return None
        stair = self._stair(call) if self.is_one(call) else None
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
        requested = keyword_value(new_call, "dtype")
        source = find(new_call, ("src",), "src")
        assert source is not None and isinstance(source.value, cst.Subscript)
        shape = f"({stair.rows.size}, {stair.columns.size})"
        dtype = code(requested) if requested is not None else f"{code(source.value.value)}.dtype"
        make = "{} = nl.ndarray({}, dtype={}, buffer=nl.sbuf)\n"
        first = self.sheet.text(make, tile, shape, dtype)
        parts = iter("{}:{}, {}:{}".format(*a, *b) for a, b in _limits(stair, names))

        def moved(load: cst.Call) -> str:
            src = find(load, ("src",), "src")
            assert src is not None
            copy = f"nisa.{BY_DMA}({{}}[{{}}], {{}})"
            return self.sheet.text(copy, tile, next(parts), code(src.value))

        return [first, *self._both(call, new_call, stair, names, moved)]

    def _both(
        self, call: cst.Call, new_call: cst.Call, stair: Stair, names: Names, text: Any
    ) -> list[str]:
        """Return the statement for the whole rows, and for the elements after them."""
        lines = []
        for name, (rows, columns) in zip(names[:2], _limits(stair, names), strict=True):
            mask = Mask({stair.rows: rows, stair.columns: columns})
            cut = Cutter(self.blocks, mask).call(call, new_call)
            lines.append(f"if {name} > 0:\n    {text(cut)}\n")
        return lines

    def _counted(self, line: cst.SimpleStatementLine, stair: Stair) -> tuple[Names, list[str]]:
        """Return the names of the counts, and the line that sets them unless it exists already."""
        key = (id(next(self.sheet.parents(line))), repr(stair))
        names = self._names.get(key)
        read = [name.value for name in names_in(cst.parse_expression(str(stair.present)))]
        is_same = self.indices.flow.is_same
        if names is not None and all(is_same(name, names.line, line) for name in read):
            return names, []
        names = Names(self.sheet.fresh("whole"), self.sheet.fresh("rest"), line)
        self._names[key] = names
        row = stair.columns.size
        total = stair.rows.size * row
        text = f"divmod(min(max({stair.present}, 0), {total}), {row})"
        return names, [f"{names.whole}, {names.rest} = {text}\n"]

    # ---- recognition -----------------------------------------------------------------------

    def _is_read_alike(self, tile: cst.Name, call: cst.Call) -> bool:
        """Whether all readers of the tile have this mask, and none uses unselected elements."""
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
        value = call.args[0].value if call.args else None
        stair = self._stair(call)
        if stair is None or not isinstance(value, cst.Subscript):
            return False
        covered = [str(stair.rows.size), str(stair.columns.size)]
        plain = isinstance(value.value, cst.Name) and self.blocks.count(value) == 0
        if not plain or not is_indexed(self.indices, value):
            return False
        try:
            sliced_or_ap(self.indices, value, {}, lambda _: ())
        except NotSlices:
            return False
        return sizes(self.indices, value) == covered

    def _stair(self, call: cst.Call) -> Stair | None:
        """Return the elements that the mask of a call selects, if it is such a mask; else None."""
        mask = self.indices.defined(mask_argument(call))
        compared = compared_of(self.indices, mask) if mask is not None else None
        axes = moving(compared) if compared is not None else []
        if compared is None or compared.ndim != 2 or len(axes) != 2:
            return None
        (_, (rows, pitch, _)), (_, (columns, step, _)) = axes
        if step != -1 or pitch != -columns:
            return None
        return Stair(Axis(2, 0, rows), Axis(2, 1, columns), cast(Number, compared.start) + 1)


Limit = tuple[Number, Number]


def _limits(stair: Stair, names: Names) -> list[tuple[Limit, Limit]]:
    whole, rest = number(names.whole), number(names.rest)
    return [((0, whole), (0, stair.columns.size)), ((whole, whole + 1), (0, rest))]


def _unmasked(call: cst.Call) -> cst.Call:
    args = [arg for arg in call.args if keyword_of(arg) != "mask"]
    args[-1] = args[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return call.with_changes(args=args)
