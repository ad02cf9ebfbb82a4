"""Versions of tiles in Beta 1: a tile that is overwritten as a whole gets new memory.

Beta 1's compiler optimised loops over tiles ("NKI compiler will ... allocate", programming model,
memory hierarchy: a kernel names tiles, and the compiler chooses their memory), so that a buffer
declared outside a loop and filled anew in each iteration does not make the iterations wait for each
other. Later versions leave this to the kernel. Implied by published times: a convolution whose one
buffer is refilled for each product keeps the tensor engine busy for nine tenths of its time.

A version starts with an instruction that only writes the tile, after one that read it, if the
writes from there to the next read cover all its elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from nkic.ir.program import Instruction
from nkic.ir.tensors import Tensor, View
from nkic.language.beta1.recorded import bodies
from nkic.language.trace import Trace
from nkic.machine.memory import Buffer

_MEMORIES = (Buffer.SBUF, Buffer.PSUM)
MANY_WRITES = 4096  # between two reads of one tile; a longer run is taken to cover only a part


def rename(trace: Trace) -> None:
    """Give new tensors to the versions of tiles in every body without device loops."""
    for body in trace.bodies:
        plain = [item for item in body if isinstance(item, Instruction)]
        if len(plain) < len(body):
            continue
        starts = _starts(trace, plain)
        versions: dict[Tensor, Tensor] = {}
        for index, item in enumerate(plain):
            for tensor in starts.get(index, ()):
                versions[tensor] = trace.declare(
                    tensor.shape, tensor.dtype, tensor.buffer, tensor.name, tensor.at
                )
            if versions:
                body[index] = bodies.substituted(item, versions)


def _starts(trace: Trace, body: Sequence[Instruction]) -> dict[int, list[Tensor]]:
    """Return the tensors of which a version starts, by the index of an instruction."""
    starts: dict[int, list[Tensor]] = {}
    for tensor, indices in bodies.uses(body, _MEMORIES).items():
        if tensor.fixed is None and len(indices) > 2:
            for index in _versions(trace, tensor, [(i, body[i]) for i in indices]):
                starts.setdefault(index, []).append(tensor)
    return starts


def _versions(
    trace: Trace, tensor: Tensor, uses: Sequence[tuple[int, Instruction]]
) -> Iterator[int]:
    """Yield the indices at which a version of the tensor starts, but for its first."""
    was_read = False
    run: list[View] = []
    start = 0
    for index, item in uses:
        written = _only_written(trace, tensor, item)
        if written is None:
            if was_read and run and _cover(tensor, run):
                yield start
            was_read, run = True, []
            continue
        if not run:
            start = index
        run.append(written)


def _only_written(trace: Trace, tensor: Tensor, item: Instruction) -> View | None:
    """Return what the instruction writes of a tensor that it does not read, else None."""
    if item.row.accumulates and item.attribute(item.row.accumulates) is not False:
        return None
    accessing = [
        (operand, spec)
        for operand, spec in zip(item.operands, item.row.operands, strict=True)
        if tensor in bodies.tensors([operand], _MEMORIES)
    ]
    if len(accessing) > 1:
        return None
    operand, spec = accessing[0]
    access = item.row.access_of(spec, item.facts(trace.target))
    if access.reads or not isinstance(operand, View) or operand.dynamic is not None:
        return None
    return operand


def _cover(tensor: Tensor, run: Sequence[View]) -> bool:
    """Return whether the views together have every element of the tensor."""
    if len(run) > MANY_WRITES or any(view.shape[0] < tensor.partitions for view in run):
        return False
    free = np.zeros(tensor.free, bool)
    for view in run:
        if view.dtype.size != tensor.dtype.size:
            return False
        strides = view.strides[1:]
        index = np.zeros((), np.int64)
        for size, stride in zip(view.shape[1:], strides, strict=True):
            index = index[..., None] + np.arange(size) * stride
        free[view.offset % tensor.free + index] = True
    return bool(free.all())
