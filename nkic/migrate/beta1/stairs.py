"""Masks over a flattened index: `mask=512 * i_p + i_f < n` selects whole rows and a part of one.

A load or a store under such a mask becomes two: of the whole rows, and of the elements in the row
after them. Computations in between use whole tiles, of which later statements read only the
selected part. Source: NKI's documentation up to SDK 2.26, masking.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import libcst as cst

from nkic.language.versions.rewritten import BY_DMA
from nkic.migrate.arguments import find, keyword_of, keyword_value, mask_argument
from nkic.migrate.beta1.blocks import Blocks
from nkic.migrate.beta1.calls import MASKS
from nkic.migrate.beta1.indices import Axis, Indices, added, code, less, times
from nkic.migrate.beta1.masked import Cutter, Shapes
from nkic.migrate.beta1.masks import Mask
from nkic.migrate.beta1.slices import is_indexed, sizes
from nkic.migrate.beta1.wider import BINARY
from nkic.migrate.scopes import scope_of
from nkic.migrate.tree import names_in, only_target

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
