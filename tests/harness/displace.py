"""Replace operands by operands with run-time addresses.

The address is an offset in a register or a tile, columns that an index names (`.indirect()`), or
rows that an index names (gather, scatter).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from nkic.machine.dtypes import DTYPES
from nkic.machine.operands import AttributeKind, Operand, Row
from nkic.machine.targets import Engine
from tests.harness.drawing import Draw
from tests.harness.instruction import By, Tensor, Tile, tile

FIRST_REGISTER = 16  # the models' own programs use the tensors below


def displace(draw: Draw, row: Row, values: dict[str, Any], legal: Callable[[], bool]) -> None:
    """Randomly replace tiles of `values` that share no memory, if the result is `legal`."""
    tiles = [v for v in values.values() if isinstance(v, Tile)]
    for operand in row.operands:
        before = values[operand.name]
        alone = sum(t.tensor is before.tensor for t in tiles) == 1 if before in tiles else False
        if not alone or not draw.chance(0.5 if operand.indexed else 0.3):
            continue
        for _ in range(6):
            values[operand.name] = _displaced(draw, row, values, operand, before)
            if legal():
                break
            values[operand.name] = before
    for attribute in row.attributes:  # some settings exist only for displaced operands
        setting = values[attribute.name]
        if attribute.kind is AttributeKind.CHOICE and draw.chance(0.3):
            values[attribute.name] = draw.pick(attribute.choices)
            if not legal():
                values[attribute.name] = setting


def _displaced(draw: Draw, row: Row, values: dict[str, Any], operand: Operand, of: Tile) -> Tile:
    far = of.tensor.buffer == "hbm"
    if operand.indexed and not far and draw.chance(0.7):
        start = of.start if not operand.access.writes else _leader(row, values)
        return _columns(draw, row, of, start)
    if row.name == "dma_copy" and far and draw.chance(0.8):
        return _gathered(draw, of)
    return _moved(draw, of)


def _moved(draw: Draw, of: Tile) -> Tile:
    """Return the same elements, at an address plus an offset times a stride."""
    number, stride = draw.integer(0, 5), draw.integer(1, 3)
    size, own = DTYPES[of.dtype].size, DTYPES[of.tensor.dtype].size
    extra = number * stride * size
    if extra % own:
        return of
    tensor = Tensor(
        of.tensor.dtype, of.tensor.partitions, of.tensor.bytes + extra, of.tensor.buffer
    )
    tensor.contents[:, extra:] = of.tensor.contents
    source: Tile | int = FIRST_REGISTER + draw.integer(0, 3000)
    if draw.chance():
        source = tile(np.array([[number]], np.int32))
    by = By("scalar", (number,), stride, number + 1 + draw.integer(0, 2), source)
    return of.over(tensor=tensor, by=by)


def _leader(row: Row, values: dict[str, Any]) -> int:
    """Return the first partition of the index of a scattered result: that of the source."""
    for operand in row.operands:
        of = values[operand.name]
        if operand.indexed and not operand.access.writes and isinstance(of, Tile):
            return of.start
    return 0


def _columns(draw: Draw, row: Row, of: Tile, start: int) -> Tile:
    """Return the same elements in any order, as columns of a wider tensor."""
    count = int(np.prod(of.shape[1:], dtype=int))
    width, lanes = count + draw.integer(0, 6), 32 if Engine.TENSOR in row.engines else 16
    offsets = draw.rng.permutation(width)[:count]
    elements = np.ascontiguousarray(of.window(of.tensor.contents)).reshape(of.partitions, count)
    every = np.resize(elements.reshape(-1), (of.partitions, width)).astype(elements.dtype)
    every[:, offsets] = elements
    wide = tile(every, dtype=of.dtype, buffer=of.tensor.buffer, start=of.start)
    held = np.full((of.partitions, -(-count // lanes)), 0, np.uint32)
    for i, offset in enumerate(offsets):
        if i % lanes < of.partitions:
            held[i % lanes, i // lanes] = offset
    index = tile(held, start=start)
    by = By("columns", tuple(int(v) for v in offsets), 1, width, index)
    return wide.over(dims=((1, count),), by=by)


def _gathered(draw: Draw, of: Tile) -> Tile:
    """Return the same elements, with the outermost ones in any order among other rows."""
    elements = np.ascontiguousarray(of.window(of.tensor.contents))
    count = draw.pick([n for n in range(1, 129) if elements.size % n == 0])
    inner = draw.factors(elements.size // count, 2)
    limit, kind = count + draw.integer(0, 4), draw.pick(["int32", "uint32"])
    offsets = draw.rng.permutation(limit)[:count]
    elements = elements.reshape(count, *inner)
    every = np.resize(elements, (limit, *inner)).astype(elements.dtype)
    every[offsets] = elements
    far = tile(every, dtype=of.dtype, buffer="hbm", offset=draw.integer(0, 3))
    (stride, _), *dims = far.dims
    index = tile(offsets[:, None].astype(kind))
    by = By("vector", tuple(int(v) for v in offsets), stride, limit, index)
    return far.over(dims=((stride, count), *dims), by=by)
