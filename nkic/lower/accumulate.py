"""Resolution of `accumulate=None` in matmuls: the first write to a PSUM location overwrites it.

Source: `nki.isa.nc_matmul`, accumulation mode. The written part of a tensor is tracked exactly:
bands of partitions, each with one bit per byte of a partition.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from nkic.ir.tensors import AccessPattern
from nkic.machine.patterns import Dims


class Band(NamedTuple):
    """Partitions `first` to `end` (exclusive), in which the same bytes were written."""

    first: int
    end: int
    written: int


class Written:
    """The parts of each PSUM tensor that matmuls have written so far, in program order."""

    def __init__(self) -> None:
        self.bands: dict[int, list[Band]] = {}

    def decide(self, dst: AccessPattern) -> bool | None:
        """Record the write, and return True to accumulate, False to overwrite, None if mixed."""
        mask = touched(dst)
        before = [band.written & mask for band in self.within(dst)]
        self._add(dst, mask)
        if any(before):
            return True if all(written == mask for written in before) else None
        return False

    def note(self, dst: AccessPattern) -> None:
        """Record the write of a matmul."""
        if not self.covers(dst):
            self._add(dst, touched(dst))

    def _add(self, dst: AccessPattern, mask: int) -> None:
        first, end = _partitions(dst)
        bands = self.bands.get(dst.tensor.number, [])
        outside = [
            band._replace(first=max(band.first, low), end=min(band.end, high))
            for band in bands
            for low, high in ((0, first), (end, dst.tensor.partitions))
            if max(band.first, low) < min(band.end, high)
        ]
        inside = [band._replace(written=band.written | mask) for band in self.within(dst)]
        self.bands[dst.tensor.number] = _joined([*outside, *inside])

    def covers(self, dst: AccessPattern) -> bool:
        """Return whether a single band covers the partitions and the bytes of `dst`."""
        bands = self.bands.get(dst.tensor.number)
        if bands is None or len(bands) > 1:
            return False
        mask = touched(dst)
        first, end = _partitions(dst)
        ((low, high, written),) = bands
        return low <= first and end <= high and written & mask == mask

    def within(self, dst: AccessPattern) -> list[Band]:
        """Return the partitions of `dst` as bands with the bytes written before, in order."""
        at, end = _partitions(dst)
        bands = []
        for band in self.bands.get(dst.tensor.number, ()):
            low, high = max(band.first, at), min(band.end, end)
            if low >= high:
                continue
            if low > at:
                bands.append(Band(at, low, 0))
            bands.append(Band(low, high, band.written))
            at = high
        return [*bands, Band(at, end, 0)] if at < end else bands


def touched(dst: AccessPattern) -> int:
    """Return the bytes of a partition that `dst` covers, as bits; all if it is dynamic."""
    if dst.dynamic is not None:
        return (1 << dst.tensor.bytes) - 1
    return _bits(dst.offset, dst.dims, dst.dtype.size)


@lru_cache(maxsize=4096)
def _bits(offset: int, dims: Dims, size: int) -> int:
    bits = (1 << size) - 1
    for step, num in reversed(dims):
        offset, step = offset + min(step, 0) * (num - 1), abs(step)
        if step * size == bits.bit_length():  # runs on without a gap, as the innermost does
            bits = _repeated(bits, num)
            continue
        shifted = bits
        for index in range(1, num):
            bits |= shifted << step * size * index
    return bits << offset * size


def _repeated(bits: int, count: int) -> int:
    """Return `count` adjacent copies of `bits`, computed as a geometric series."""
    width = bits.bit_length()
    return bits * ((1 << width * count) - 1) // ((1 << width) - 1)


def _partitions(dst: AccessPattern) -> tuple[int, int]:
    if dst.dynamic is not None:
        return 0, dst.tensor.partitions
    return dst.start, dst.start + dst.partitions


def _joined(bands: list[Band]) -> list[Band]:
    """Return the bands in order, with adjacent equal ones merged."""
    merged: list[Band] = []
    for band in sorted(bands):
        if merged and merged[-1].end == band.first and merged[-1].written == band.written:
            merged[-1] = merged[-1]._replace(end=band.end)
        else:
            merged.append(band)
    return merged
