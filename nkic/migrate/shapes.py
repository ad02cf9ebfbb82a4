"""The shapes for which a migration is verified: the given ones, and sizes around them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from nkic.specialise.request import Request, TensorType

Types = Mapping[str, TensorType]
MAX_SIZES = 3  # the largest ones, which are varied
_CHANGES: tuple[Callable[[int], int], ...] = (
    lambda size: size // 2,
    lambda size: size - 1,  # a partial last tile
    lambda size: size + size // 2,
    lambda size: 2 * size,
)


def variants(request: Request) -> Iterator[Request]:
    """Yield the request, then variants with one size changed wherever it occurs.

    A kernel that does not accept such shapes rejects them.
    """
    yield request
    types = {**request.like, **request.args}
    sizes = {size for kind in types.values() for size in kind.shape or () if size > 1}
    largest = sorted(sizes, reverse=True)[:MAX_SIZES]
    for change in _CHANGES:
        for size in largest:
            yield replace(request, args=_resized(types, size, change(size)))


def _resized(types: Types, old: int, new: int) -> dict[str, TensorType]:
    return {
        name: replace(kind, shape=_changed(kind.shape, old, new)) for name, kind in types.items()
    }


def _changed(shape: tuple[int, ...] | None, old: int, new: int) -> tuple[int, ...] | None:
    return None if shape is None else tuple(new if size == old else size for size in shape)
