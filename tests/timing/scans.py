"""Selective scans with the structure of the fused Mamba tutorial's three versions, for the current
NKI.

Rows of `grown` and `seen` are replicated to all partitions as the tutorial says, by an instruction
of the tensor engine: a product with ones, which the vector engine reads in PSUM.
"""

import nki
import nki.isa as nisa
import nki.language as nl

P = 128
BANK = 512  # float32 in each partition


@nki.jit
def by_state(delta, u, rates, grown, seen):
    """Version 1: states outside, channels inside; delta and u are loaded for every state."""
    channels, seq = delta.shape
    out = nl.ndarray((channels, seq), dtype=delta.dtype, buffer=nl.shared_hbm)
    tiles, ones = channels // P, _ones()
    sums = [_zeros(seq) for _ in range(tiles)]
    for i in range(rates.shape[1]):
        for c in range(tiles):
            d, x = _rows(delta, c, 0, seq), _rows(u, c, 0, seq)
            xd = _product(x, d)
            scan = _scan(d, xd, _column(rates, c, i), _row(ones, grown, i, 0, seq), 0.0)
            _accumulate(sums[c], scan, _row(ones, seen, i, 0, seq))
    for c in range(tiles):
        nisa.dma_copy(dst=out[nl.ds(c * P, P), :], src=sums[c])
    return out


@nki.jit
def by_channel(delta, u, rates, grown, seen):
    """Version 2: channels outside, so that delta and u are loaded once."""
    channels, seq = delta.shape
    out = nl.ndarray((channels, seq), dtype=delta.dtype, buffer=nl.shared_hbm)
    ones = _ones()
    for c in range(channels // P):
        d, x = _rows(delta, c, 0, seq), _rows(u, c, 0, seq)
        xd, total = _product(x, d), _zeros(seq)
        for i in range(rates.shape[1]):
            scan = _scan(d, xd, _column(rates, c, i), _row(ones, grown, i, 0, seq), 0.0)
            _accumulate(total, scan, _row(ones, seen, i, 0, seq))
        nisa.dma_copy(dst=out[nl.ds(c * P, P), :], src=total)
    return out


@nki.jit
def by_tile(delta, u, rates, grown, seen, tile=512):
    """Version 3: tiles along the sequence; the scan continues from one tile to the next."""
    channels, seq = delta.shape
    out = nl.ndarray((channels, seq), dtype=delta.dtype, buffer=nl.shared_hbm)
    states, ones = rates.shape[1], _ones()
    for c in range(channels // P):
        columns = [_column(rates, c, i) for i in range(states)]
        last = [0.0 for _ in range(states)]
        for s in range(seq // tile):
            d, x = _rows(delta, c, s * tile, tile), _rows(u, c, s * tile, tile)
            xd, total = _product(x, d), _zeros(tile)
            for i in range(states):
                scan = _scan(d, xd, columns[i], _row(ones, grown, i, s * tile, tile), last[i])
                kept = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
                nisa.activation(dst=kept, op=nl.copy, data=scan[:, tile - 1 : tile])
                last[i] = kept  # type: ignore[call-overload]
                _accumulate(total, scan, _row(ones, seen, i, s * tile, tile))
            nisa.dma_copy(dst=out[nl.ds(c * P, P), nl.ds(s * tile, tile)], src=total)
    return out


def _zeros(columns):
    tile = nl.ndarray((P, columns), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=tile, value=0.0)
    return tile


def _rows(source, c, start, size):
    tile = nl.ndarray((P, size), dtype=source.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=source[nl.ds(c * P, P), nl.ds(start, size)])
    return tile


def _column(rates, c, i):
    tile = nl.ndarray((P, 1), dtype=rates.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=rates[nl.ds(c * P, P), i : i + 1])
    return tile


def _row(ones, source, i, start, size):
    """Replicate one row in every partition: in PSUM if a bank holds it, otherwise copied from
    there.
    """
    row = nl.ndarray((1, size), dtype=source.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=row, src=source[i : i + 1, nl.ds(start, size)])
    if size <= BANK:
        return _repeated(ones, row)
    tile = nl.ndarray((P, size), dtype=source.dtype, buffer=nl.sbuf)
    for b in range(size // BANK):
        part = nl.ds(b * BANK, BANK)
        nisa.tensor_copy(dst=tile[:, part], src=_repeated(ones, row[:, part]))
    return tile


def _repeated(ones, row):
    tile = nl.ndarray((P, row.shape[1]), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=tile, stationary=ones, moving=row)
    return tile


def _ones():
    tile = nl.ndarray((1, P), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=tile, value=1.0)
    return tile


def _product(one, other):
    tile = nl.ndarray(one.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=tile, data1=one, data2=other, op=nl.multiply)
    return tile


def _scan(d, xd, a, b, first):
    decay = nl.ndarray(d.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.activation(dst=decay, op=nl.exp, data=d, scale=a)
    driven, scan = _product(xd, b), nl.ndarray(d.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_tensor_scan(
        dst=scan, data0=decay, data1=driven, initial=first, op0=nl.multiply, op1=nl.add
    )
    return scan


def _accumulate(total, scan, c):
    nisa.tensor_tensor(dst=total, data1=total, data2=_product(scan, c), op=nl.add)
