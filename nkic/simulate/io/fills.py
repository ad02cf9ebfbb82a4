"""Generators: arrays that need no file, and are the same on every machine."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import isfinite, prod
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from nkic.machine.codecs import storage
from nkic.machine.dtypes import DType
from nkic.simulate.io.numbers import Numbers, stored, unpacked_shape

# Parameter names by generator.
GENERATORS = {
    "zeros": (),
    "ones": (),
    "iota": (),
    "poison": (),
    "const": ("value",),
    "randn": ("seed",),
    "uniform": ("lo", "hi", "seed"),
}
MAX_SEED = 2**32 - 1
_CALL = re.compile(r"(\w+)\s*(?:\((.*)\))?")
FORMS = ", ".join(f"{n}({','.join(words)})" if words else n for n, words in GENERATORS.items())


@dataclass(frozen=True)
class Generator:
    """A generator of arrays of any type and shape.

    zeros, ones, const(value); iota: 0, 1, 2 … in C order, restarting at 0 where the type no longer
    represents every integer; poison: NaN, or the lowest value of integers, which makes
    uninitialised reads visible in a result; randn(seed): normal, mean 0, deviation 1;
    uniform(lo,hi,seed): from lo to hi.
    """

    name: str
    numbers: tuple[float, ...] = ()

    def __str__(self) -> str:
        words = ",".join(f"{number:g}" for number in self.numbers)
        return f"{self.name}({words})" if words else self.name

    def array(self, key: str, dtype: DType, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return the array in its storage type.

        Random numbers also depend on `key`, the array's name, so that inputs with the same seed
        differ.
        """
        if self.name == "poison" and dtype.kind != "float":
            return _poisoned_bytes(dtype, shape)
        values = self._values(key, dtype, prod(unpacked_shape(shape, dtype)))
        return stored(values.reshape(unpacked_shape(shape, dtype)), dtype)

    def _values(self, key: str, dtype: DType, count: int) -> Numbers:
        if self.name == "iota":
            return np.arange(count, dtype=np.float64) % _first_unrepresentable(dtype)
        if self.name in ("randn", "uniform"):
            return self._random(key, dtype, count)
        constants = {"zeros": 0.0, "ones": 1.0, "poison": np.nan}
        return np.full(count, constants.get(self.name, *self.numbers))

    def _random(self, key: str, dtype: DType, count: int) -> Numbers:
        # RandomState, because its streams are frozen, unlike those of NumPy's newer generators.
        seed = [int(self.numbers[-1]), crc32(key.encode())]
        state = np.random.RandomState(np.array(seed, np.uint32))
        if self.name == "randn":
            return state.standard_normal(count)
        lo, hi, _ = self.numbers
        values = state.uniform(lo, hi, count)
        return values if dtype.is_float else np.floor(values)


def parse_generator(text: str) -> Generator | None:
    """Parse a generator such as `uniform(0,1,7)`; None if it is invalid."""
    match = _CALL.fullmatch(text.strip())
    if match is None or match[1] not in GENERATORS:
        return None
    words = [word for word in (match[2] or "").split(",") if word.strip()]
    try:
        numbers = tuple(float(word) for word in words)
    except ValueError:
        return None
    generator = Generator(match[1], numbers)
    return generator if _is_valid(generator) else None


def _is_valid(generator: Generator) -> bool:
    words, numbers = GENERATORS[generator.name], generator.numbers
    if len(words) != len(numbers):
        return False
    if "seed" in words and not (numbers[-1].is_integer() and 0 <= numbers[-1] <= MAX_SEED):
        return False
    return generator.name != "uniform" or (
        isfinite(numbers[0]) and isfinite(numbers[1]) and numbers[0] <= numbers[1]
    )


def _first_unrepresentable(dtype: DType) -> float:
    """Return the first integer that a type, or its elements, may not represent."""
    element = dtype.element or dtype
    if element.is_float:
        return min(2.0 ** (element.mantissa_bits + 1), element.highest)
    return element.highest + 1


def _poisoned_bytes(dtype: DType, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return the poison of types without NaN.

    All bits are set if that is not a number (packed elements); otherwise it is the lowest value of
    signed integers, and the highest of unsigned ones.
    """
    value = dtype.lowest if dtype.kind == "int" else dtype.highest
    if dtype.lanes > 1:
        value = 2**dtype.bits - 1
    return np.full(shape, int(value), storage(dtype))
