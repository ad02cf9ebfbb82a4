"""Whether check says the same of two instructions: those that a loop makes in one place mostly
differ in the tensors that they use, and in where in HBM.
"""

from __future__ import annotations

from nkic.check.bounds import is_inside
from nkic.ir.program import Instruction
from nkic.ir.tensors import Tensor, View


def alike(one: Instruction, other: Instruction) -> bool:
    """Rules, bounds and warnings are sure to say of `one` what they say of `other`."""
    row, operands, attributes, engine = one[:4]
    if row is not other.row or engine is not other.engine:
        return False
    if attributes is not other.attributes and not _equal(attributes, other.attributes):
        return False
    for new, old in zip(operands, other.operands, strict=True):
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
    """1, 1.0 and True are equal, but not to a rule."""
    return some == others and [*map(type, some)] == [*map(type, others)]


def _alike(tensor: Tensor, other: Tensor) -> bool:
    """Of views with equal shapes and offsets, what there is to see of their tensors."""
    return (
        tensor.buffer is other.buffer
        and tensor.bytes == other.bytes
        and tensor.partitions == other.partitions
        and tensor.first == other.first
    )
