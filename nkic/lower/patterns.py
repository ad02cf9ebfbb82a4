"""Conversion of views to access patterns: pure, and memoised by the view's geometry."""

from __future__ import annotations

from functools import lru_cache

from nkic.ir.tensors import AccessPattern, Dynamic, View
from nkic.machine.patterns import MAX_NUM, UNLIMITED, Dims, merged


@lru_cache(maxsize=65536)
def _dims(shape: tuple[int, ...], strides: tuple[int, ...], keep_rank: bool, limit: int) -> Dims:
    dims = tuple(zip(strides, shape, strict=True))
    return dims if keep_rank and dims else merged(dims, limit) or ((1, 1),)


def access_pattern(view: View, keep_rank: bool = False, streams: bool = False) -> AccessPattern:
    """Return the pattern of `view`; `streams` applies the size limits of compute engines.

    On chip, the first dimension steps over whole partitions, as verified by check.
    """
    limit = MAX_NUM if streams else UNLIMITED
    tensor, shape, strides, offset, dtype, dynamic = view
    if dynamic is not None:
        dynamic = _lower_dynamic(dynamic)
    if not tensor.on_chip:
        keep = keep_rank or dynamic is not None
        dims = _dims(shape, strides, keep, limit)
        return AccessPattern(tensor, dtype, 0, 0, offset, dims, dynamic)
    pitch = tensor.bytes // dtype.size
    start, offset = divmod(offset, pitch) if pitch else (0, 0)
    dims = _dims(shape[1:], strides[1:], keep_rank, limit)
    fields = (tensor, dtype, start, shape[0], offset, dims, dynamic)
    return tuple.__new__(AccessPattern, fields)


def _lower_dynamic(dynamic: Dynamic) -> Dynamic:
    source = dynamic.source
    return dynamic._replace(source=access_pattern(source)) if isinstance(source, View) else dynamic
