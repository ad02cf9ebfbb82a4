"""Equivalence of instructions for check.

The instructions that a loop makes of one expression mostly differ only in their tensors and in
their offsets in HBM, so that most need not be checked again.
"""

from __future__ import annotations

from dataclasses import dataclass

from nkic.check.bounds import is_inside
from nkic.ir.program import Instruction
from nkic.ir.tensors import Tensor, View


@dataclass(slots=True)
class Group:
    """A legal instruction and the number of later instructions of its location like it."""

    first: Instruction
    repeats: int = 0


def alike(first: Instruction, second: Instruction) -> bool:
    """Return whether rules, bounds and warnings certainly have the same results for both."""
    row, operands, attributes, engine = first[:4]
    if row is not second.row or engine is not second.engine:
        return False
    if attributes is not second.attributes and not _equal(attributes, second.attributes):
        return False
    for new, old in zip(operands, second.operands, strict=True):
        if new is old:
            continue
        if type(new) is not View or type(old) is not View:
            return False
        tensor, shape, strides, offset, dtype, dynamic = new
        before, old_shape, old_strides, old_offset, old_dtype, old_dynamic = old
        if shape != old_shape or strides != old_strides or dtype is not old_dtype:
            return False
        if dynamic is not None or old_dynamic is not None:
            return False
        if tensor is not before and not _alike(tensor, before):
            return False
        if offset != old_offset and (tensor.on_chip or not is_inside(new)):
            return False
    return True


def _equal(some: tuple[object, ...], others: tuple[object, ...]) -> bool:
    """Compare values and types: 1, 1.0 and True are equal in Python, but not to a rule."""
    return some == others and [*map(type, some)] == [*map(type, others)]


def _alike(tensor: Tensor, other: Tensor) -> bool:
    """Compare the tensors of two views of equal shape and offset, as far as checks see them."""
    return (
        tensor.buffer is other.buffer
        and tensor.bytes == other.bytes
        and tensor.partitions == other.partitions
        and tensor.first == other.first
    )
