"""Test grids of tiles and of blocks (NKI 0.7): their selections, against slices of NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nkic.base.profiles import Profile
from tests.harness.language import simulated

HEAD = """
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit"""


def out(body: str, a: np.ndarray) -> np.ndarray:
    """Return the only output of a kernel of `a`."""
    text = f"{HEAD}\ndef kernel(a):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    _, result = simulated(text, {"a": a}, profile=Profile.NKI_0_7)
    return next(iter(result.outputs.values()))


def numbers(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


COPIED = """\
dst = nl.ndarray(a.shape, a.dtype, nl.shared_hbm)
src_grid, dst_grid = nl.tiles(a, tile_shape={tile}), nl.tiles(dst, tile_shape={tile})
for i in range(src_grid.shape[0]):
    for j in range(src_grid.shape[1]):
        tile = nl.ndarray(src_grid[i, j].element_shape, a.dtype, nl.sbuf)
        nisa.dma_copy(dst=tile.data, src=src_grid[i, j].data)
        nisa.tensor_scalar(tile, tile, nl.add, 10.0 * i + j)
        nisa.dma_copy(dst=dst_grid[i, j].data, src=tile.data)
return dst"""


@pytest.mark.parametrize(("rows", "columns"), [(256, 64), (200, 50), (128, 32), (5, 70)])
def test_tiles_of_hbm_partial_ones_included(rows: int, columns: int) -> None:
    a = numbers(rows, columns)
    added = 10 * (np.arange(rows) // 128)[:, None] + np.arange(columns) // 32
    found = out(COPIED.format(tile=(128, 32)), a)
    assert np.array_equal(found, a + added)


@settings(max_examples=12)
@given(
    rows=st.integers(1, 20), columns=st.integers(1, 20), p=st.integers(1, 8), f=st.integers(1, 8)
)
def test_storage_of_tiles_keeps_each_apart(rows: int, columns: int, p: int, f: int) -> None:
    """Every tile of a grid in SBUF is written, and then every tile is read."""
    a = numbers(rows, columns)
    body = f"""\
own = nl.alloc_tiles(tile_shape={(p, f)}, element_shape=a.shape, buffer=nl.sbuf, dtype=a.dtype)
src, dst = nl.tiles(a, tile_shape={(p, f)}), nl.ndarray(a.shape, a.dtype, nl.shared_hbm)
assert own.shape == src.shape and own.element_shape == a.shape and own.dtype == a.dtype
assert own.buffer == nl.sbuf
for i in range(own.shape[0]):
    for j in range(own.shape[1]):
        assert own[i, j].element_shape == src[i][j].element_shape
        nisa.dma_copy(own[i, j].data, src[i, j].data)
back = nl.tiles(dst, tile_shape={(p, f)})
for i in range(own.shape[0]):
    assert own[i, :].is_data_representable
    nisa.dma_copy(back[i, :].data, own[i, :].data)
return dst"""
    assert np.array_equal(out(body, a), a)


def test_blocks_and_the_tiles_of_a_block() -> None:
    a = numbers(300, 100)
    body = """\
b = nl.blocks(a, tile_shape=(64, 16), block_shape=(2, 3))
assert b.shape == (3, 3) and b.block_shape == (2, 3) and b.tile_shape == (64, 16)
assert b.index_step_elements == (128, 48) and b.is_remainder
assert b[0, 0].element_shape == (128, 48) and not b[0, 0].is_remainder
assert b[2, 2].element_shape == (44, 4) and b[2, 2].is_remainder and b[2, 2].shape == ()
assert b[1].shape == (3,) and b[1].index_step_elements == (48,) and b[:, 1].shape == (3,)
assert b[1:, -1].shape == (2,) and b[1:, -1].element_shape == (172, 4)
t = nl.tiles(b[1, 1])
assert t.shape == (2, 3) and t.element_shape == (128, 48) and t.tile_shape == (64, 16)
assert nl.blocks(t, block_shape=(1, 2)).shape == (2, 2)
assert isinstance(b, nl.NkiBlockGrid) and isinstance(t, nl.NkiTileGrid)
assert isinstance(b, nl.NkiGrid) and isinstance(t, nl.NkiGrid)
assert not isinstance(t, nl.NkiBlockGrid) and not isinstance(a, nl.NkiGrid)
x = nl.ndarray((64, 16), a.dtype, nl.sbuf)
nisa.dma_copy(x, t[1, 2].data)
dst = nl.ndarray((64, 16), a.dtype, nl.shared_hbm)
nisa.dma_copy(dst, x)
return dst"""
    assert np.array_equal(out(body, a), a[192:256, 80:96])


def test_storage_of_blocks_has_the_tiles_of_alloc_tiles() -> None:
    """Three dimensions, in PSUM and SBUF at given addresses; the tiles are consecutive."""
    a = numbers(4, 3, 4)
    body = """\
own = nl.alloc_blocks(tile_shape=(4, 2, 2), block_shape=(1, 2, 1), element_shape=a.shape,
                      buffer=nl.sbuf, dtype=a.dtype, address=(0, 256), name="own")
assert own.shape == (1, 1, 2) and own.block_shape == (1, 2, 1)
tiles, src = nl.tiles(own), nl.tiles(a, tile_shape=(4, 2, 2))
for i in range(2):
    for j in range(2):
        nisa.dma_copy(tiles[0, i, j].data, src[0, i, j].data)
assert not own[0, 0, 0].is_data_representable and tiles[0, 1, 1].is_data_representable
dst = nl.ndarray((4, 1, 2), a.dtype, nl.shared_hbm)
nisa.dma_copy(dst, tiles[0, 1, 1].data)
return dst"""
    assert np.array_equal(out(body, a), a[:, 2:3, 2:4])


def test_storage_in_hbm_is_a_tensor() -> None:
    a = numbers(6, 10)
    body = """\
own = nl.alloc_tiles(tile_shape=(4, 4), element_shape=(6, 10), buffer=nl.shared_hbm,
                     dtype=a.dtype, name="own")
nisa.dma_copy(own.data, a)
return own.data"""
    assert np.array_equal(out(body, a), a)


SLABS = """\
own = nl.alloc_blocks(
    tile_shape=(4, 5), block_shape=(2, 1), element_shape=a.shape, buffer=nl.shared_hbm,
    dtype=a.dtype)
assert own.shape == (2, 3, 2, 2) and own.tile_shape == (4, 5) and own.block_shape == (2, 1)
assert own.index_step_elements == (1, 1, 8, 5)
src, dst = nl.tiles(a, tile_shape=(4, 5)), nl.tiles(own)
assert src.shape == dst.shape == (2, 3, 3, 2) and src[1].shape == (3, 3, 2)
assert src[1, :2].element_shape == (1, 2, 10, 7) and src[0, 0, 2, 1].element_shape == (1, 1, 2, 2)
assert src[1, 2, 2].is_remainder and not src[1, 2, :2, 0].is_remainder
for i in range(2):
    for j in range(3):
        for k in range(3):
            for l in range(2):
                part = src[i, j, k, l]
                tile = nl.ndarray(part.element_shape[2:], a.dtype, nl.sbuf)
                nisa.dma_copy(dst=tile, src=part.data)
                nisa.tensor_scalar(tile, tile, nl.add, 1000.0 * i + 100.0 * j + 10.0 * k + l)
                nisa.dma_copy(dst=dst[i, j, k, l].data, src=tile)
return own.data"""


def test_leading_dimensions_of_hbm_that_are_not_tiled() -> None:
    a = numbers(2, 3, 10, 7)
    i, j, k, n = np.indices(a.shape)
    assert np.array_equal(out(SLABS, a), a + 1000 * i + 100 * j + 10 * (k // 4) + n // 5)
