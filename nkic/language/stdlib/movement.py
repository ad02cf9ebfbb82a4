"""Copies: between HBM and SBUF, into parts of tensors, into other layouts."""

import nki.isa as nisa
import nki.language as nl
from nkic.stdlib import _fill, _known_issue, _require, _version_between


def load(src, dtype=None):
    """Return a new tile in SBUF with the elements of `src`, converted to `dtype`."""
    _require(
        len(src.shape) > 1,
        "nl.load takes at least 2 dimensions, not {}",
        src.shape,
        help="`.reshape((1, n))` makes it a row of one partition; a[0:1] keeps what a[0] drops",
    )
    tile = nl.ndarray(src.shape, dtype=dtype or src.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=src)
    return tile


def load_transpose2d(src, dtype=None):
    """Return a new tile in SBUF with the rows of `src` as columns."""
    _require(len(src.shape) == 2, "nl.load_transpose2d takes 2 dimensions, not {}", src.shape)
    tile = nl.ndarray((src.shape[1], src.shape[0]), dtype=src.dtype, buffer=nl.sbuf)
    nisa.dma_transpose(dst=tile, src=src)
    return _converted(tile, dtype)


def store(dst, value):
    """Write a tile to HBM."""
    if nl.is_psum(value.buffer):
        advice = "copy it to SBUF with nisa.tensor_copy first"
        _known_issue("nl.store of a tile in PSUM", 1, advice, last="0.3")
    nisa.dma_copy(dst=dst, src=_in_sbuf(value))


def copy(x, dtype=None):
    """Return a new tile in SBUF with the elements of `x`.

    Until NKI 0.5 the scalar engine copies, with integers through float32; later copies keep all
    bits.
    """
    if not _version_between("0.3", "0.6"):
        return _copied(x, dtype)
    if nl.is_psum(x.buffer):
        _known_issue("nl.copy of a tile in PSUM", 1, "use nisa.tensor_copy")
    tile = nl.ndarray(x.shape, dtype=dtype or x.dtype, buffer=nl.sbuf)
    nisa.activation(dst=tile, op=nl.copy, data=x)
    return tile


def _copied(x, dtype=None):
    """Return a new tile in SBUF with the elements of `x`, bit by bit if the dtypes are equal."""
    tile = nl.ndarray(x.shape, dtype=dtype or x.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=tile, src=x)
    return tile


def _converted(x, dtype):
    """Return `x` itself, or a copy with another dtype."""
    return x if dtype is None or dtype == x.dtype else _copied(x, dtype)


def _in_sbuf(x):
    """Return `x` itself, or a copy in SBUF of a tile in PSUM, which DMA cannot access."""
    return _copied(x) if nl.is_psum(x.buffer) else x


def _assign(dst, value):
    """`dst[...] = value`."""
    if not isinstance(value, nl.NkiTensor):
        _fill(dst, value)
    elif nl.is_on_chip(dst.buffer) and nl.is_on_chip(value.buffer):
        nisa.tensor_copy(dst=dst, src=value)
    else:
        nisa.dma_copy(dst=dst, src=_in_sbuf(value))


def transpose(x, dtype=None):
    """Return a new tile with partitions and columns exchanged; in PSUM unless it is converted."""
    _require(len(x.shape) == 2, "nl.transpose takes 2 dimensions, not {}", x.shape)
    tile = nl.ndarray((x.shape[1], x.shape[0]), dtype=x.dtype, buffer=nl.psum)
    nisa.nc_transpose(dst=tile, data=_in_sbuf(x))
    return _converted(tile, dtype)


def expand_dims(x, axis):
    """Return a view with a new dimension of size 1."""
    return x.expand_dim(axis if axis >= 0 else axis + len(x.shape) + 1)


def _broadcast_view(x, shape):
    """Broadcast the free dimensions of size 1 in `x` to `shape`, as a view."""
    _require(len(x.shape) == len(shape), "{} and {} have different ranks", x.shape, shape)
    for dim in range(1, len(shape)):
        if x.shape[dim] == 1 and shape[dim] != 1:
            x = x.broadcast(dim, shape[dim])
    return x


def broadcast_to(x, shape, dtype=None):
    """Return a tile of `shape` that repeats the elements of `x`; `x` itself if the shapes agree."""
    if tuple(x.shape) == tuple(shape):
        return _converted(x, dtype)
    if x.shape[0] == shape[0]:
        return _copied(_broadcast_view(x, shape), dtype)
    rows = _across_partitions(x, shape[0])
    if tuple(rows.shape) == tuple(shape):
        return _converted(rows, dtype)
    return _copied(_broadcast_view(rows, shape), dtype)


_QUADRANT = 32  # partitions within reach of a shuffle
_MAX_ROW_BYTES = 8192  # for longer rows, two transfers are faster than three instructions


def _across_partitions(x, count):
    """Return a tile with the single partition of `x` in each of `count` partitions.

    On chip, a shuffle repeats it in 32 partitions, and copies double these. The engine moves two
    elements per cycle and lane: a row of 2 KiB takes about 1.3 us, against 3 us for two transfers
    through HBM. The longest rows, and partitions at which no instruction may start, use HBM.
    """
    _require(x.shape[0] == 1, "dimension 0 of {} cannot become {}: it is not 1", x.shape, count)
    row = _in_sbuf(x)
    tile = nl.ndarray((count, *x.shape[1:]), dtype=x.dtype, buffer=nl.sbuf)
    if _can_shuffle(row):
        _fill_by_doubling(tile, row, count)
    else:
        _fill_through_hbm(tile, row, count)
    return tile


def _can_shuffle(row):
    """Return whether the vector engine can start at the row's partition, and the row is short."""
    whole = row.base_tensor
    if whole.dtype != row.dtype:
        return False
    elements = 1
    for size in whole.shape[1:]:
        elements = elements * size
    columns = 1
    for size in row.shape[1:]:
        columns = columns * size
    size = 4 if row.dtype in (nl.float32, nl.int32, nl.uint32) else 2
    return row.offset // elements % _QUADRANT == 0 and columns * size <= _MAX_ROW_BYTES


def _fill_by_doubling(tile, row, count):
    """Fill a tile: the first quadrant by a shuffle, the others by copies of the filled ones."""
    filled = min(count, _QUADRANT)
    nisa.nc_stream_shuffle(dst=tile[0:filled], src=row, shuffle_mask=[0] * _QUADRANT)
    while filled < count:
        step = min(filled, count - filled)
        nisa.tensor_copy(dst=tile[filled : filled + step], src=tile[0:step])
        filled = filled + step


def _fill_through_hbm(tile, row, count):
    """Fill a tile by two transfers through HBM."""
    kept = nl.ndarray(row.shape, dtype=row.dtype, buffer=nl.private_hbm)
    nisa.dma_copy(dst=kept, src=row)
    nisa.dma_copy(dst=tile, src=kept.broadcast(0, count))


def where(condition, x, y, dtype=None):
    """Return a new tile with `x` where `condition` is not 0, else `y`."""
    kind = dtype or (x.dtype if isinstance(x, nl.NkiTensor) else y.dtype)
    chosen = nl.ndarray(condition.shape, dtype=nl.uint8, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=chosen, data=condition, op0=nl.not_equal, operand0=0.0)
    result = nl.ndarray(condition.shape, dtype=kind, buffer=nl.sbuf)
    _assign(result, _broadcast_operand(y, condition.shape))
    source = _broadcast_operand(x, condition.shape)
    if isinstance(x, nl.NkiTensor):
        source = _converted(source, kind)
    nisa.tensor_copy_predicated(dst=result, src=source, predicate=chosen)
    return result


def _broadcast_operand(x, shape):
    """Return a tile broadcast to `shape` as a view, or a number unchanged."""
    return _broadcast_view(x, shape) if isinstance(x, nl.NkiTensor) else x
