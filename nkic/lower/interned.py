"""Interned access patterns: equal views share one, which later stages look up by identity."""

from __future__ import annotations

from nkic.ir.tensors import AccessPattern, View
from nkic.lower.patterns import access_pattern
from nkic.machine.patterns import Dims

_Geometry = tuple[int, int, int, Dims]  # pitch, partitions, type code, dims
# The patterns of one geometry, keyed by offset << 32 | tensor number: a tuple as the key would take
# three times the memory.
_Placed = dict[int, AccessPattern]


class Patterns:
    """The patterns of views that are lowered with the same options.

    They are keyed by the view's identity: the program keeps views alive.
    """

    def __init__(self, keep_rank: bool, streams: bool, interned: Interned) -> None:
        self.keep_rank = keep_rank
        self.streams = streams
        # Not `interned` itself: a reference cycle would keep both alive, as no collector runs.
        self.shapes, self.dynamic = interned.geometries, interned.dynamic
        self.by_view: dict[int, AccessPattern] = {}
        self.geometries: dict[tuple[object, ...], tuple[_Geometry, _Placed]] = {}

    def make(self, view: View) -> AccessPattern:
        """Return the pattern of a new view."""
        tensor, shape, strides, offset, dtype, dynamic = view
        if dynamic is not None:
            pattern = access_pattern(view, self.keep_rank, self.streams)
            pattern = self.by_view[id(view)] = self.dynamic.setdefault(_content(pattern), pattern)
            return pattern
        pitch = tensor.bytes // dtype.size if tensor.on_chip else 0
        shape_key = (shape, strides, dtype.code, pitch, tensor.on_chip)
        shared = self.geometries.get(shape_key)
        if shared is None:
            pattern = access_pattern(view, self.keep_rank, self.streams)
            geometry = (pitch, pattern.partitions, dtype.code, pattern.dims)
            shared = self.geometries[shape_key] = self.shapes.setdefault(geometry, (geometry, {}))
        (_, partitions, _, dims), static = shared
        key = offset << 32 | tensor.number
        interned = static.get(key)
        if interned is None:
            start, offset = divmod(offset, pitch) if pitch else (0, 0 if tensor.on_chip else offset)
            content = (tensor, dtype, start, partitions, offset, dims, None)
            interned = static[key] = tuple.__new__(AccessPattern, content)
        self.by_view[id(view)] = interned
        return interned


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
