"""Random tiles with random contents, all from one seed, so that a failure can be repeated."""

from collections.abc import Sequence
from math import prod
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from nkic.machine.dtypes import DTYPES
from nkic.machine.tiles import start_partitions
from tests.harness.instruction import Tile, tile
from tests.harness.reference import INTEGER_BITS, numpy_type, stored

Array = NDArray[Any]
T = TypeVar("T")
SPECIALS = (np.nan, np.inf, -np.inf, -0.0, 1e30)


class Draw:
    """Random choices from one seed."""

    def __init__(self, *seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def pick(self, items: Sequence[T]) -> T:
        return items[int(self.rng.integers(len(items)))]

    def chance(self, probability: float = 0.5) -> bool:
        return bool(self.rng.random() < probability)

    def integer(self, low: int, high: int) -> int:
        """Draw an integer from low to high, both inclusive."""
        return int(self.rng.integers(low, high, endpoint=True))

    def factors(self, count: int, most: int) -> list[int]:
        """Draw factors whose product is `count`, at most `most` of them, including ones."""
        sizes: list[int] = []
        while len(sizes) < most - 1 and self.chance():
            sizes.append(self.pick([d for d in range(1, count + 1) if count % d == 0]))
            count //= sizes[-1]
        return [*sizes, count]

    def steps(self, sizes: Sequence[int], repeats: bool = False) -> list[int]:
        """Draw steps of dimensions in any order, with gaps, forwards or backwards.

        With `repeats` a dimension may read the same elements several times.
        """
        steps, next_step = [0] * len(sizes), 1
        for axis in self.rng.permutation(len(sizes)):
            steps[axis] = next_step * self.pick([1, 1, 2])
            next_step = abs(steps[axis]) * sizes[axis]
            steps[axis] *= self.pick([1, 1, 1, -1])
            if repeats and self.chance(0.08):
                steps[axis] = 0
        return steps

    def numbers(self, shape: Sequence[int], dtype: str, large: int = 12) -> Array:
        """Draw elements of the type with magnitudes up to 2^large, sometimes with special values,
        or with arbitrary bits.
        """
        kind = numpy_type(dtype)
        bits = dtype in INTEGER_BITS or DTYPES[dtype].kind == "packed" or dtype.endswith("fnu")
        if bits or DTYPES[dtype].is_wide or (dtype != "bool" and large == 12 and self.chance(0.25)):
            return self.any_bits(shape, kind)
        exponents = self.rng.integers(-large, large, shape)
        values = self.rng.standard_normal(shape) * 2.0**exponents
        if dtype == "bool":
            values *= self.rng.random(shape) < 0.5
        elif large == 12 and self.chance(0.3):
            for special in SPECIALS:
                values[self.rng.random(shape) < 0.1] = special
        return stored(values, dtype)

    def any_bits(self, shape: Sequence[int], kind: np.dtype[Any]) -> Array:
        """Draw large and small integers, or floats of any bit pattern."""
        words = self.rng.integers(0, 256, (*shape, kind.itemsize), np.uint8).view(kind)[..., 0]
        if kind.kind in "iu":
            small = self.rng.integers(0, 4, shape).astype(kind)
            return np.where(self.rng.random(shape) < 0.3, small, words)
        return words

    def tile(
        self,
        shape: tuple[int, ...],
        dtype: str,
        buffer: str = "sbuf",
        *,
        dims: int = 4,
        exact: bool = False,
        reads: bool = False,
        room: int = 0,
    ) -> Tile:
        """Draw an empty tile of (partitions, free elements) at any address, divided into up to
        `dims` dimensions, or of exactly `shape` if given. In HBM the shape has no partitions.
        """
        partitions, *sizes = shape if buffer != "hbm" or exact else (1, prod(shape))
        if buffer == "hbm" and exact:
            partitions, sizes = 1, list(shape)
        elif not exact and len(sizes) == 1:
            sizes = self.factors(sizes[0], dims)
        starts = [s for s in start_partitions(partitions) if s + partitions <= 128]
        return tile(
            tuple(sizes) if buffer == "hbm" else (partitions, *sizes),
            dtype=dtype,
            buffer=buffer,
            start=0 if buffer == "hbm" else self.pick(starts),
            offset=self.integer(0, 3),
            steps=self.steps(sizes, reads),
            room=room + self.integer(0, 2),
        )

    def contents(self, of: Tile) -> None:
        """Fill a tile with random elements."""
        window = of.window(of.tensor.contents)
        window[...] = self.numbers(window.shape, of.dtype)
