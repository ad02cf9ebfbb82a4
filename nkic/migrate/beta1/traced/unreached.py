"""Instructions that the evaluation did not reach, whose results resemble an operand.

`t[:, part] = nisa.activation(nl.exp, x)` makes a tile with the shape of `t[:, part]` and the type
of x, and then assigns it. None of that needs an evaluation.
"""

from __future__ import annotations

import libcst as cst

from nkic.language.versions.rewritten import MADE_LIKE, SIZES
from nkic.machine.memory import Buffer
from nkic.machine.operands import Row
from nkic.migrate.arguments import find, keyword_value
from nkic.migrate.beta1.hoisting import TARGET
from nkic.migrate.beta1.indices import Indices, code
from nkic.migrate.beta1.results import Lookup, Result
from nkic.migrate.beta1.slices import PARTS
from nkic.migrate.sheet import Sheet
from nkic.migrate.tree import only_target


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
