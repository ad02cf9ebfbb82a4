"""Random access patterns of a tensor, and the bytes that they touch, by brute force."""

from math import prod
from random import Random

from nkic.machine.dtypes import DTYPES
from nkic.machine.patterns import Dims
from nkic.program.overlap import axes_of
from nkic.program.program import AccessPattern, Tensor

Bytes = set[int]


def steps(tensor: Tensor, size: int) -> list[int]:
    """Return candidate steps: along an axis, slightly off one, and backwards."""
    axes = axes_of(tensor)
    pitches = [max(1, prod(axes[at + 1 :]) // size) for at in range(len(axes))]
    return [0, 1, 1, -1, 2, *pitches, *pitches, *(2 * p for p in pitches), *(-p for p in pitches),
            *(p + 1 for p in pitches)]  # fmt: skip


def drawn(tensor: Tensor, dtype: str, rng: Random) -> AccessPattern:
    size = DTYPES[dtype].size
    room, low, high = tensor.bytes // size, 0, 0
    dims: list[tuple[int, int]] = []
    for _ in range(rng.randint(1, 4)):
        step, num = rng.choice(steps(tensor, size)), rng.choice([1, 2, 2, 3, 4, 5, 6, 12])
        reach = step * (num - 1)
        if max(high, high + reach) - min(low, low + reach) < room:
            dims.append((step, num))
            low, high = min(low, low + reach), max(high, high + reach)
    start = rng.randrange(8) if tensor.on_chip else 0
    partitions = rng.randint(1, 8 - start) if tensor.on_chip else 0
    offset = rng.randint(-low, room - 1 - high)
    return AccessPattern(tensor, DTYPES[dtype], start, partitions, offset, tuple(dims) or ((1, 1),))


def touched(offset: int, dims: Dims, size: int) -> Bytes:
    """Return the bytes of one partition that a pattern touches, by brute force."""
    places = {offset}
    for step, num in dims:
        places = {place + step * index for place in places for index in range(num)}
    return {place * size + byte for place in places for byte in range(size)}
