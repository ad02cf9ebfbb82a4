"""Kernels that use the additions of NKI 0.7, one for each page of its reference."""

import itertools
from dataclasses import dataclass

import nki
import nki.isa as nisa
import nki.language as nl


def new(shape, dtype, buffer=nl.sbuf):
    return nl.ndarray(shape, dtype=dtype, buffer=buffer)


@nki.jit
def through_tiles(src):
    """nl.tiles, NkiTileGrid: load, negate and store every tile, including partial ones."""
    dst = new(src.shape, src.dtype, nl.shared_hbm)
    read, write = (nl.tiles(one, tile_shape=(128, 64)) for one in (src, dst))
    assert isinstance(read, nl.NkiTileGrid) and isinstance(read, nl.NkiGrid)
    for at in itertools.product(*map(range, read.shape)):
        tile = new(read[at].element_shape, src.dtype)
        nisa.dma_copy(dst=tile.data, src=read[at].data)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=-1.0)
        nisa.dma_copy(dst=write[at].data, src=tile)
    return dst


@nki.jit
def through_blocks(src):
    """nl.blocks, NkiBlockGrid: transfer a whole block at a time, compute tile by tile."""
    dst = new(src.shape, src.dtype, nl.shared_hbm)
    shapes = {"tile_shape": (64, 32), "block_shape": (1, 2)}
    read, write = nl.blocks(src, **shapes), nl.blocks(dst, **shapes)
    assert isinstance(read, nl.NkiBlockGrid) and read.block_shape == (1, 2)
    for i in range(read.shape[0]):
        for j in range(read.shape[1]):
            block = nl.blocks(new(read[i, j].element_shape, src.dtype), **shapes)
            nisa.dma_copy(dst=block.data, src=read[i, j].data)
            tiles = nl.tiles(block)
            for k in range(tiles.shape[1]):
                nisa.tensor_scalar(tiles[0, k].data, tiles[0, k].data, nl.add, float(k))
            nisa.dma_copy(dst=write[i, j].data, src=block.data)
    return dst


@nki.jit
def allocated(src):
    """nl.alloc_tiles, nl.alloc_blocks: allocate storage as a grid."""
    tiles = nl.alloc_tiles(
        tile_shape=(64, 32), element_shape=src.shape, buffer=nl.sbuf, dtype=src.dtype
    )
    blocks = nl.alloc_blocks(
        tile_shape=(64, 32),
        block_shape=(2, 1),
        element_shape=src.shape,
        buffer=nl.shared_hbm,
        dtype=src.dtype,
    )
    read, out = nl.tiles(src, tile_shape=(64, 32)), nl.tiles(blocks)
    for i, j in itertools.product(range(tiles.shape[0]), range(tiles.shape[1])):
        nisa.dma_copy(dst=tiles[i, j].data, src=read[i, j].data)
    for i, j in itertools.product(range(tiles.shape[0]), range(tiles.shape[1])):
        nisa.dma_copy(dst=out[i, j].data, src=tiles[i, j].data)
    return blocks.data


@nki.jit
def by_slab(src):
    """An untiled leading dimension of HBM is indexed one slab at a time."""
    dst = new(src.shape, src.dtype, nl.shared_hbm)
    read, write = (nl.tiles(one, tile_shape=(128, 64)) for one in (src, dst))
    for slab in range(read.shape[0]):
        for at in itertools.product(*map(range, read[slab].shape)):
            part = read[slab][at]
            tile = new(part.element_shape[1:], src.dtype)
            nisa.dma_copy(dst=tile, src=part.data)
            nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=float(slab))
            nisa.dma_copy(dst=write[slab][at].data, src=tile)
    return dst


@nki.jit
def computed(number):
    """scalar_load, arithmetic, scalar_store."""
    tile = new((1, 1), nl.int32)
    nisa.dma_copy(dst=tile, src=number)
    value = nisa.scalar_load(tile)
    assert isinstance(value, nisa.NkiScalar) and value.dtype == nl.int32
    nisa.scalar_store(tile, -(value * 3 - 5) + value)
    out = new((1, 1), nl.int32, nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def addressed(table, number):
    """A scalar as `scalar_offset`: a row selected at run time."""
    row = nisa.scalar_load(number)
    picked = new((1, table.shape[1]), table.dtype)
    source = table.ap([[table.shape[1], 1], [1, table.shape[1]]], scalar_offset=row, indirect_dim=0)
    nisa.dma_copy(dst=picked, src=source)
    out = new(picked.shape, table.dtype, nl.shared_hbm)
    nisa.dma_copy(dst=out, src=picked)
    return out


@nki.jit
def counted(table, number):
    """fori_loop with run-time bounds and a counter that addresses rows."""
    last, width = nisa.scalar_load(number), table.shape[1]
    out = new(table.shape, table.dtype, nl.shared_hbm)
    nisa.dma_copy(dst=out, src=nl.zeros(table.shape, table.dtype, nl.sbuf))

    def body(i):
        row = new((1, width), table.dtype)
        pattern = [[width, 1], [1, width]]
        nisa.dma_copy(dst=row, src=table.ap(pattern, scalar_offset=i, indirect_dim=0))
        nisa.dma_copy(dst=out.ap(pattern, scalar_offset=i, indirect_dim=0), src=row)

    nl.fori_loop(1, last + 1, body, 2)
    return out


@nki.jit
def counted_in_a_register(table, number):
    """fori_loop with register bounds and a register counter."""
    last, width = nisa.register_alloc(), table.shape[1]
    nisa.register_load(last, number)
    total = nl.zeros((1, width), table.dtype, nl.sbuf)

    def body(i):
        row = new((1, width), table.dtype)
        pattern = [[width, 1], [1, width]]
        nisa.dma_copy(dst=row, src=table.ap(pattern, scalar_offset=i, indirect_dim=0))
        nisa.tensor_tensor(dst=total, data1=total, data2=row, op=nl.add)

    nl.fori_loop(0, last, body)
    out = new(total.shape, table.dtype, nl.shared_hbm)
    nisa.dma_copy(dst=out, src=total)
    return out


@nki.jit
def halved(number):
    """while_loop: iterate until the body returns 0."""
    value, iterations = new((1, 1), nl.int32), nl.zeros((1, 1), nl.int32, nl.sbuf)
    nisa.dma_copy(dst=value, src=number)
    start = nisa.register_alloc()
    nisa.register_load(start, value)

    def body(condition):
        nisa.tensor_scalar(value, value, nl.right_shift, 1)
        nisa.tensor_scalar(iterations, iterations, nl.add, 1)
        nisa.register_load(condition, value)
        return condition

    nl.while_loop(start, body)
    out = new((1, 1), nl.int32, nl.shared_hbm)
    nisa.dma_copy(dst=out, src=iterations)
    return out


@dataclass
class Step:
    """A user class with its own `__eq__`."""

    name: str
    by: float = 0.0

    def __eq__(self, other):
        return isinstance(other, Step) and self.name == other.name

    __hash__ = None  # type: ignore[assignment]


class Scaling(Step):
    def apply(self, tile):
        nisa.tensor_scalar(tile, tile, nl.multiply, self.by)


class Shifting(Step):
    def apply(self, tile):
        nisa.tensor_scalar(tile, tile, nl.add, self.by)


def halves(tile):
    """Yield both halves of the columns."""
    middle = tile.shape[1] // 2
    yield tile[:, :middle]
    yield tile[:, middle:]


@nki.jit
def programmed(src):
    """Python features: generators, inheritance, exceptions, equality."""
    tile = nl.load(src)
    steps = [Scaling("scale", 2.0), Shifting("shift", 1.0)]
    assert steps[0] == Scaling("scale", 9.0) and steps[0] != steps[1]
    for part, step in zip(halves(tile), steps, strict=True):
        try:
            step.missing(part)  # type: ignore[attr-defined]
        except AttributeError:
            step.apply(part)  # type: ignore[attr-defined]
    out = new(src.shape, src.dtype, nl.shared_hbm)
    nl.store(out, tile)
    return out
