"""Pure functions over the (step, num) pairs of an access pattern, outermost first."""

from __future__ import annotations

from functools import lru_cache
from math import prod

Dims = tuple[tuple[int, int], ...]

MAX_NUM = 65_535  # the size field of a compute engine's pattern: uint16
MAX_STEP = 32_767  # its step field: int16
UNLIMITED = 1 << 63


def merged(dims: Dims, limit: int = UNLIMITED) -> Dims:
    """The fewest pairs, of at most `limit` elements each, that visit the same elements in the
    same order. Compute engines encode at most MAX_NUM, DMA descriptors any number.
    """
    out: list[tuple[int, int]] = []
    for step, num in dims:
        if num == 1:
            continue
        if out and out[-1][0] == step * num and out[-1][1] * num <= limit:
            out[-1] = (step, out[-1][1] * num)
        else:
            out.append((step, num))
    return tuple(out)


def run(dims: Dims) -> int:
    """Elements that follow one another without a gap, at the innermost end."""
    inner = merged(dims)
    return inner[-1][1] if inner and inner[-1][0] == 1 else 1


def reach(dims: Dims) -> int:
    """Elements from the lowest to the highest element touched, both counted."""
    return 1 + sum(abs(step) * (num - 1) for step, num in dims)


@lru_cache(maxsize=65536)
def bounds(dims: Dims) -> tuple[int, int]:
    """Lowest and highest element touched, from the first one of the pattern."""
    reaches = [step * (num - 1) for step, num in dims]
    return sum([r for r in reaches if r < 0]), sum([r for r in reaches if r > 0])


@lru_cache(maxsize=65536)
def elements(dims: Dims) -> int:
    """How many elements are visited; 0 where a dimension has none."""
    return prod([max(0, num) for _, num in dims])


def repeats(dims: Dims) -> bool:
    """Whether some element may be visited twice."""
    inside = 0
    for step, num in sorted((abs(step), num) for step, num in dims if num > 1):
        if step <= inside:
            return True
        inside += step * (num - 1)
    return False


def encodable(dims: Dims, pairs: int) -> bool:
    """Whether a compute engine's pattern of at most `pairs` pairs can say `dims` as they are."""
    if len(dims) > pairs:
        return False
    for step, num in dims:
        if num > MAX_NUM or (num > 1 and not -MAX_STEP <= step <= MAX_STEP):
            return False
    return True


def cuts(dims: Dims, count: int) -> tuple[int, ...] | None:
    """Into how many parts to cut each dimension so that the stream of elements falls into
    `count` equal pieces, each a pattern of its own; None if there is no way.
    """
    found = []
    for _, num in dims:
        part = num if count % num == 0 else count
        if num % part:
            return None
        found.append(part)
        count //= part
    return tuple(found) if count == 1 else None
