"""Verification that access patterns stay within their tensors.

Python's integers do not wrap. Run-time offsets are not covered here: the runner checks each of them
against its pattern's tensor.
"""

from __future__ import annotations

from math import prod

from nkic.machine.facts import Register
from nkic.machine.memory import PARTITIONS
from nkic.machine.operands import Row
from nkic.machine.patterns import elements
from nkic.neff.limits import Limits
from nkic.neff.records import (
    Executable,
    InstructionRecord,
    OffsetRecord,
    PatternRecord,
    TensorRecord,
)


def max_elements(executable: Executable, partition_bytes: int) -> int:
    """Return the maximum elements per pattern: those of the SBUF or of the largest HBM tensor.

    A step of 0 repeats elements, so that bounds alone would allow a pattern of 2^60 elements.
    """
    hbm = (prod(t.shape) for t in executable.tensors if not t.buffer.on_chip)
    return max(PARTITIONS * partition_bytes, max(hbm, default=0))


def problem(pattern: PatternRecord, tensor: TensorRecord, max_elements: int) -> str:
    """Return the error of `pattern` over `tensor`, or an empty string."""
    visited = elements(pattern.dims)
    if visited < 1:
        return "a dimension without elements"
    if visited * max(1, pattern.partitions) > max_elements:
        return f"{pattern.elements:,} elements; no memory holds more than {max_elements:,}"
    return _partition_problem(pattern, tensor) or _byte_problem(pattern, tensor)


def _partition_problem(pattern: PatternRecord, tensor: TensorRecord) -> str:
    if not tensor.buffer.on_chip:
        return "partitions in HBM" if pattern.start or pattern.partitions else ""
    end = pattern.start + pattern.partitions
    if pattern.start < 0 or pattern.partitions < 1 or end > tensor.shape[0]:
        return f"partitions {pattern.start} to {end}; the tensor has {tensor.shape[0]}"
    return ""


def _byte_problem(pattern: PatternRecord, tensor: TensorRecord) -> str:
    size, available = pattern.dtype.size, tensor.bytes
    if available % size or tensor.byte % size:
        return f"{size}-byte elements do not divide a tensor of {available} bytes at {tensor.byte}"
    low, high = pattern.extent()
    if low < 0 or high > available:
        return f"bytes {low:,} to {high:,}; the tensor has {available:,}"
    return ""


def room(pattern: PatternRecord, tensor: TensorRecord) -> tuple[int, int]:
    """Return the range of offsets at which a valid pattern stays within a tensor of this size."""
    size = pattern.dtype.size
    low, high = pattern.extent()
    return pattern.offset - low // size, pattern.offset + (tensor.bytes - high) // size


def dynamic_problem(item: InstructionRecord, row: Row, limits: Limits) -> str:
    """Return the error of the instruction's run-time offsets, or an empty string.

    The operands after the row's own hold these offsets; each must be used, and static.
    """
    hidden = range(len(row.operands), len(item.operands))
    sources = set()
    for operand in item.operands:
        if isinstance(operand, PatternRecord) and operand.dynamic:
            sources.add(operand.dynamic.source)
            if text := _source_problem(operand, operand.dynamic, item, hidden, limits):
                return text
    return "" if sources == set(hidden) else "operands that belong to no dynamic offset"


def _source_problem(
    pattern: PatternRecord,
    dynamic: OffsetRecord,
    item: InstructionRecord,
    hidden: range,
    limits: Limits,
) -> str:
    kind, index, _, limit, axis = dynamic
    if index not in hidden:
        return f"a dynamic offset in operand {index}, which holds none"
    if limit < 1 or not 0 <= axis <= limits.rank:  # the axis is that of the view, before merging
        return f"a dynamic offset on axis {axis} with limit {limit}"
    source = item.operands[index]
    if isinstance(source, Register):
        return "" if kind == "scalar" else "a register cannot hold many offsets"
    if kind == "vector" and (pattern.partitions or not pattern.dims):
        return "a vector of offsets over no dimension in HBM"
    if kind == "columns" and not pattern.partitions:
        return "an offset for each column of a tensor in HBM"
    if not isinstance(source, PatternRecord) or source.dynamic:
        return f"a dynamic offset in operand {index}, which is neither tile nor register"
    if not source.dtype.is_integer:
        return f"dynamic offsets of type {source.dtype.name}"
    required = {"scalar": 1, "vector": pattern.dims[0][1] if pattern.dims else 1}.get(kind, 0)
    if source.elements < required:
        return f"{source.elements} dynamic offsets where {required} are needed"
    return ""
