"""Random numbers, drawn from the vector engine's generators."""

import nki.isa as nisa
import nki.language as nl
from nkic.stdlib import _converted, _in_sbuf, _require

# Elements per partition of the tiles by which a tensor in HBM is filled.
_COLUMNS = 512


def random_seed(seed):
    """Seed the generators of `rand` and `dropout`; `seed` is a (1, 1) tile."""
    _require(
        isinstance(seed, nl.NkiTensor),
        "nl.random_seed takes a tile of shape (1, 1), not {}",
        seed,
        help="write `nl.full((1, 1), 42, dtype=nl.int32, buffer=nl.sbuf)`",
    )
    nisa.set_rng_seed(src_seeds=seed)


def rand(shape, dtype, buffer=nl.sbuf, name=""):
    """Return a new tensor of random numbers, uniform in [0, 1) before rounding to `dtype`."""
    tensor = nl.ndarray(shape, dtype=dtype, buffer=buffer, name=name)
    if nl.is_on_chip(buffer):
        _draw(tensor)
    else:
        _draw_hbm(tensor)
    return tensor


def _draw(tile):
    """Fill a tile; without rand2, from the highest 24 of 32 random bits."""
    if nisa.get_nc_version() >= nisa.nc_version.gen4:
        nisa.rand2(dst=tile, min=0.0, max=1.0)
    else:
        bits = nl.ndarray(tile.shape, dtype=nl.uint32, buffer=nl.sbuf)
        nisa.rng(dst=bits)
        nisa.tensor_scalar(dst=bits, data=bits, op0=nl.right_shift, operand0=8)
        nisa.tensor_scalar(dst=tile, data=bits, op0=nl.multiply, operand0=1.0 / (1 << 24))


def _draw_hbm(tensor):
    """Fill a dense tensor in HBM tile by tile, in the order of its elements."""
    flat = tensor.reshape((tensor.size,))
    start = 0
    while start < tensor.size:
        columns = min(_COLUMNS, tensor.size - start)
        rows = min(nl.tile_size.pmax, (tensor.size - start) // columns)
        tile = nl.ndarray((rows, columns), dtype=tensor.dtype, buffer=nl.sbuf)
        _draw(tile)
        end = start + rows * columns
        nisa.dma_copy(dst=flat[start:end].reshape((rows, columns)), src=tile)
        start = end


def dropout(x, rate, dtype=None):
    """Return a new tile: `x` with each element replaced by 0 with probability `rate`.

    `rate` is a number, or a tile with one element per partition. The result is not scaled.
    """
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dropout(dst=tile, data=x, prob=rate)
    return _converted(tile, dtype)


def gather_flattened(data, indices, axis=0, dtype=None):
    """Gather in each partition the elements of `data` at the flat positions `indices`."""
    _require(
        axis == 0,
        "nl.gather_flattened counts elements along all free dimensions; axis is 0, not {}",
        axis,
        help="reshape the tile so that the dimension to gather along is its only free one",
    )
    tile = nl.ndarray(indices.shape, dtype=data.dtype, buffer=nl.sbuf)
    counts = _converted(_in_sbuf(indices), nl.uint32)
    nisa.nc_n_gather(dst=tile, data=_in_sbuf(data), indices=counts)
    return _converted(tile, dtype)
