"""Check that views stay inside their tensors. Slices do by construction; `.ap()` may not.

A view is checked when an instruction uses it: published kernels make patterns beyond the end of a
tensor in the last iteration of a loop, and skip the instruction that would take them.

Sources: access pattern guide (NKI 0.6), partition dimension: the first pair walks partitions, its
step is the elements per partition; the free pairs stay inside a partition.
"""

from __future__ import annotations

from functools import lru_cache

from nkic.ir.tensors import View
from nkic.machine.memory import PARTITIONS
from nkic.machine.operands import Violation


def out_of_bounds(view: View, instruction: str, operand: str) -> Violation | None:
    """Return the violation of `operand`, or None. The runner checks offsets known at run time."""
    tensor, dynamic = view.tensor, view.dynamic
    if dynamic is not None and isinstance(dynamic.source, View):
        violation = out_of_bounds(dynamic.source, instruction, operand)
        if violation is not None:
            return violation
    if dynamic is not None and dynamic.kind == "columns":
        return None
    if not tensor.on_chip:
        skip = int(dynamic is not None and dynamic.kind == "vector")
        size = tensor.bytes // view.dtype.size
        text = _linear(view.shape[skip:], view.strides[skip:], view.offset, size)
    else:
        text = _on_chip(view.shape, view.strides, view.offset, view.pitch, tensor.partitions)
    if not text:
        return None
    pattern = [list(pair) for pair in zip(view.strides, view.shape, strict=True)]
    return Violation(
        "pattern-out-of-bounds",
        f"{instruction}: `{operand}` {text} of `{tensor.name}`; its pattern is {pattern} "
        f"from {view.offset}",
        operand,
        "shorten the slice or pattern, or declare a larger tensor",
    )


def _linear(shape: tuple[int, ...], strides: tuple[int, ...], offset: int, size: int) -> str:
    low, high = _ends(shape, strides)
    low, high = offset + low, offset + high
    if low < 0:
        return f"begins at element {low}, before the first"
    return f"reaches element {high}; there are {size}, up to {size - 1}," if high >= size else ""


@lru_cache(maxsize=65536)
def _ends(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, int]:
    """Return the lowest and highest element, relative to the offset."""
    reaches = [stride * (num - 1) for stride, num in zip(strides, shape, strict=True)]
    return sum(r for r in reaches if r < 0), sum(r for r in reaches if r > 0)


@lru_cache(maxsize=65536)
def _on_chip(
    shape: tuple[int, ...], strides: tuple[int, ...], offset: int, pitch: int, partitions: int
) -> str:
    if shape[0] > 1 and strides[0] != pitch:
        return (
            f"walks partitions with step {strides[0]}; the step must be the {pitch} elements "
            "per partition"
        )
    start, first = divmod(offset, max(pitch, 1))
    if start < 0:
        return f"begins at element {offset}, before the first"
    if start + shape[0] > min(partitions, PARTITIONS):
        return f"reaches partition {start + shape[0] - 1}; there are {partitions}, from 0,"
    low, high = _ends(shape[1:], strides[1:])
    low, high = first + low, first + high
    if low < 0:
        return f"begins at element {low} of a partition, before the first"
    if high >= pitch:
        return f"reaches element {high} of a partition; there are {pitch}, up to {pitch - 1},"
    return ""
