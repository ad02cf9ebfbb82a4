"""Interned access patterns: equal views share one, which later stages look up by identity."""

from __future__ import annotations

from typing import NamedTuple

from nkic.ir.tensors import AccessPattern, View
from nkic.lower.patterns import access_pattern
from nkic.machine.patterns import Dims

_Geometry = tuple[int, int, int, Dims]  # pitch, partitions, type code, dims
# The patterns of one geometry, keyed by offset << 32 | tensor number: a tuple as the key would take
# three times the memory.
_Placed = dict[int, AccessPattern]


class Form(NamedTuple):
    """What the patterns of like views share, and the patterns made so far.

    On chip, the first of the `partitions` is `start`, where the element with offset `base` is.
    """

    placed: _Placed
    start: int
    base: int
    partitions: int
    dims: Dims


class Patterns:
    """The patterns of views that are lowered with the same options."""

    def __init__(self, keep_rank: bool, streams: bool, interned: Interned) -> None:
        self.keep_rank = keep_rank
        self.streams = streams
        # Not `interned` itself: a reference cycle would keep both alive, as no collector runs.
        self.shapes, self.dynamic = interned.geometries, interned.dynamic
        self.geometries: dict[tuple[object, ...], tuple[_Geometry, _Placed]] = {}

    def with_offset(self, view: View) -> AccessPattern:
        """Return the pattern of a view with a run-time offset."""
        pattern = access_pattern(view, self.keep_rank, self.streams)
        return self.dynamic.setdefault(_content(pattern), pattern)

    def form(self, view: View) -> Form:
        """Return the form of a view without a run-time offset."""
        tensor, shape, strides, offset, dtype, _ = view
        pitch = tensor.bytes // dtype.size if tensor.on_chip else 0
        key = (shape, strides, dtype.code, pitch, tensor.on_chip)
        shared = self.geometries.get(key)
        if shared is None:
            pattern = access_pattern(view, self.keep_rank, self.streams)
            geometry = (pitch, pattern.partitions, dtype.code, pattern.dims)
            shared = self.geometries[key] = self.shapes.setdefault(geometry, (geometry, {}))
        (_, partitions, _, dims), placed = shared
        if pitch:
            start = offset // pitch
            return Form(placed, start, start * pitch, partitions, dims)
        return Form(placed, 0, offset if tensor.on_chip else 0, partitions, dims)


class Interned:
    """The patterns of one core."""

    def __init__(self) -> None:
        self.geometries: dict[_Geometry, tuple[_Geometry, _Placed]] = {}
        self.dynamic: dict[tuple[object, ...], AccessPattern] = {}
        self._of: dict[tuple[bool, bool], Patterns] = {}

    def of(self, keep_rank: bool, streams: bool) -> Patterns:
        """Return the patterns for operands with these options of `access_pattern`."""
        key = (keep_rank, streams)
        patterns = self._of.get(key)
        if patterns is None:
            patterns = self._of[key] = Patterns(keep_rank, streams, self)
        return patterns


def _content(pattern: AccessPattern) -> tuple[object, ...]:
    tensor, dtype, start, partitions, offset, dims, dynamic = pattern
    return (tensor.number, dtype.code, start, partitions, offset, dims, dynamic)
