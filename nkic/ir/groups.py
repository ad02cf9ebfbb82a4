"""Groups of like instructions: what check and lower find out about the first holds for all.

The instructions that a loop makes of one expression mostly differ only in their tensors and
offsets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nkic.ir.program import Body, Instruction, Operand, Program, instructions
from nkic.ir.tensors import Tensor, View
from nkic.machine.dtypes import DType
from nkic.machine.patterns import bounds

MAX_GROUPS = 4  # of a location, to which an instruction is compared


class _Likeness(NamedTuple):
    """What the views of like instructions share, and the range of their offsets."""

    operand: Operand  # of the first instruction
    tensor: Tensor | None = None  # None: no other operand is like it
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    dtype: DType | None = None
    low: int = 0
    high: int = 0


class Group:
    """Like instructions of one location: `first`, and `repeats` more.

    They have one row, equal attributes, engine and operands, except that a view may be one of
    another tensor with the same declaration, and may have another offset. If the first view is
    inside its tensor, all are, and on chip they begin at the same partition.
    """

    __slots__ = ("_operands", "_rest", "first", "repeats")

    def __init__(self, first: Instruction) -> None:
        self.first = first
        self.repeats = 0
        self._rest = first.row, first.attributes, first.engine
        self._operands: list[_Likeness] | None = None

    def admits(self, instruction: Instruction) -> bool:
        """Return whether `instruction` is like the first, whose location it has."""
        row, attributes, engine = self._rest
        own_row, operands, own_attributes, own_engine, _, _, _, _, _, _, _ = instruction
        if own_row is not row or own_engine is not engine:
            return False
        if own_attributes is not attributes and not _equal(own_attributes, attributes):
            return False
        if self._operands is None:
            self._operands = [_likeness(operand) for operand in self.first.operands]
        for operand, known in zip(operands, self._operands):  # noqa: B905  (those of one row)
            first, first_tensor, first_shape, first_strides, first_dtype, low, high = known
            if operand is first:
                continue
            if first_tensor is None or type(operand) is not View:
                return False
            tensor, shape, strides, offset, dtype, dynamic = operand
            if dtype is not first_dtype or dynamic is not None or not low <= offset <= high:
                return False
            if shape != first_shape or strides != first_strides:
                return False
            if tensor is first_tensor:
                continue
            # Compare the declarations, as far as stages before allocate see them.
            if tensor.shape != first_tensor.shape or tensor.dtype is not first_tensor.dtype:
                return False
            if tensor.buffer is not first_tensor.buffer or tensor.first != first_tensor.first:
                return False
        return True


Groups = Sequence[Sequence[Group]]  # of each instruction, in program order, by core


def grouped(program: Program) -> Groups:
    """Return the group of each instruction of each core, in program order."""
    recent: dict[int, list[Group]] = {}  # by id of the location, which the program keeps alive
    return tuple([_grouped(body, recent) for body in program.cores])


def _grouped(body: Body, recent: dict[int, list[Group]]) -> Sequence[Group]:
    groups: list[Group] = []
    for instruction in instructions(body):
        known = recent.get(id(instruction.at))
        if known is None:
            known = recent[id(instruction.at)] = []
        for group in known:
            if group.admits(instruction):
                group.repeats += 1
                break
        else:
            group = Group(instruction)
            known.insert(0, group)
            del known[MAX_GROUPS:]
        groups.append(group)
    return groups


def _likeness(operand: Operand) -> _Likeness:
    if type(operand) is not View or operand.dynamic is not None:
        return _Likeness(operand)
    tensor, shape, strides, _, dtype, _ = operand
    return _Likeness(operand, tensor, shape, strides, dtype, *_room(operand))


def _room(view: View) -> tuple[int, int]:
    """Return the lowest and highest offset at which a view is inside its tensor.

    On chip it stays at its partitions.
    """
    tensor, shape, strides, offset, dtype, _ = view
    if not tensor.on_chip:
        low, high = bounds(tuple(zip(strides, shape, strict=True)))
        return -low, tensor.bytes // dtype.size - 1 - high
    low, high = bounds(tuple(zip(strides[1:], shape[1:], strict=True)))
    pitch = max(1, view.pitch)
    row = offset // pitch * pitch
    return row - low, row + pitch - 1 - high


def _equal(some: tuple[object, ...], others: tuple[object, ...]) -> bool:
    """Compare values and types: 1, 1.0 and True are equal in Python, but not to a rule."""
    return some == others and [*map(type, some)] == [*map(type, others)]
