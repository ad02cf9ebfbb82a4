"""Attributes with another form today: `nl.fp32.min`, `t.shape` of a list, `nki.tensor`."""

from __future__ import annotations

import libcst as cst

from nkic.machine.dtypes import FLOAT32, DType
from nkic.migrate.beta1.blocks import BLOCKS, Blocks
from nkic.migrate.beta1.calls import NUMBERS

NOTES = "a note of a tensor"


def written(blocks: Blocks, old: cst.Attribute) -> cst.BaseExpression | None:
    """Return the replacement of an attribute; None if it stays.

    `nl.fp32.min` becomes the number, `nl.finfo(dtype).min` that of the type of the tensor filled
    with it, and `t.shape` of a list of tiles the shape of its first tile, preceded by the number of
    tiles.
    """
    sheet = blocks.sheet
    name = sheet.name_of(old)
    if name == "nki.language.fp32.min":
        sheet.done[NUMBERS] += 1
        return cst.parse_expression(repr(FLOAT32.lowest))
    if isinstance(next(sheet.parents(old)), cst.Annotation) and name == "nki.tensor":
        sheet.done[NOTES] += 1
        return sheet.nl("NkiTensor")
    if text := blocks.attribute(old):
        sheet.done[BLOCKS] += 1
        return cst.parse_expression(text)
    return _filling(blocks, old)


def _filling(blocks: Blocks, old: cst.Attribute) -> cst.BaseExpression | None:
    """Rewrite `nl.finfo(dtype).min` in a call that makes tensors of a single type."""
    sheet, value = blocks.sheet, old.value
    if not isinstance(value, cst.Call) or sheet.name_of(value.func) != "nki.language.finfo":
        return None
    maker = next((p for p in sheet.parents(value) if isinstance(p, cst.Call)), None)
    tensors = sheet.tensors(maker) if maker else ()
    limits = {_limit(tensor.dtype, old.attr.value) for tensor in tensors}
    if len(limits) != 1 or None in limits:
        return None
    sheet.done[NUMBERS] += 1
    return cst.parse_expression(repr(limits.pop()))


def _limit(dtype: DType, name: str) -> float | None:
    return {"min": dtype.lowest, "max": dtype.highest}.get(name)
