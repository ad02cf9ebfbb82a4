"""Creation of tensors with given contents."""

import nki.isa as nisa
import nki.language as nl

# Elements per DMA row of a constant: long enough for full-speed descriptors.
_ROW_ELEMENTS = 2048


def zeros(shape, dtype, buffer=nl.sbuf, name=""):
    """Return a new tensor of zeros."""
    return full(shape, 0, dtype, buffer, name)


def ones(shape, dtype, buffer=nl.sbuf, name=""):
    """Return a new tensor of ones."""
    return full(shape, 1, dtype, buffer, name)


def full(shape, fill_value, dtype, buffer=nl.sbuf, name=""):
    """Return a new tensor filled with `fill_value`."""
    tensor = nl.ndarray(shape, dtype=dtype, buffer=buffer, name=name)
    _fill(tensor, fill_value)
    return tensor


def zeros_like(x, dtype=None, buffer=None, name=""):
    """Return a new tensor of zeros with the shape, and by default the dtype and buffer, of `x`."""
    return zeros(x.shape, dtype or x.dtype, buffer or x.buffer, name)


def empty_like(x, dtype=None, buffer=None, name=""):
    """Return a new tensor with the shape, and by default the dtype and buffer, of `x`."""
    return nl.ndarray(x.shape, dtype=dtype or x.dtype, buffer=buffer or x.buffer, name=name)


def shared_identity_matrix(n, dtype=nl.uint8, dst=None):
    """Return the identity matrix of size `n` in SBUF."""
    ones_tile = full((n, n), 1, dtype)
    result = nl.ndarray((n, n), dtype=dtype, buffer=nl.sbuf) if dst is None else dst
    # The index is partition - column: zero on the diagonal.
    nisa.affine_select(
        dst=result,
        pattern=[[-1, n]],
        channel_multiplier=1,
        on_true_tile=ones_tile,
        on_false_value=0,
        cmp_op=nl.equal,
    )
    return result


def _fill(tensor, value):
    """Set every element of `tensor`, in any memory."""
    if nl.is_on_chip(tensor.buffer):
        nisa.memset(dst=tensor, value=value)
    else:
        _fill_hbm(tensor, value)


def _fill_hbm(tensor, value):
    """Copy a constant tile over a dense tensor in HBM, as many full rows as fit."""
    size = tensor.size
    width = min(size, _ROW_ELEMENTS)
    rows = size // width
    flat = tensor.reshape((size,))
    tile = nl.ndarray((min(rows, nl.tile_size.pmax), width), dtype=tensor.dtype, buffer=nl.sbuf)
    nisa.memset(dst=tile, value=value)
    matrix = flat[0 : rows * width].reshape((rows, width))
    for start in range(0, rows, nl.tile_size.pmax):
        end = min(rows, start + nl.tile_size.pmax)
        nisa.dma_copy(dst=matrix[start:end, :], src=tile[0 : end - start, :])
    remainder = size - rows * width
    if remainder > 0:
        tail = flat[rows * width : size].reshape((1, remainder))
        nisa.dma_copy(dst=tail, src=tile[0:1, 0:remainder])
