"""Test casts of every bit pattern of the 8- and 16-bit types, through tensor_copy, to every
type.
"""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nkic.machine.dtypes import DTYPES
from tests.harness.instruction import call, run, tile
from tests.harness.reference import loaded, numpy_type, same, stored

Array = NDArray[Any]
NUMBERS = [d.name for d in DTYPES.values() if d.kind != "packed" and not d.is_wide]
NARROW = [name for name in NUMBERS if DTYPES[name].size <= 2 and name != "bool"]
TARGETS = {"float8_e4m3fn": "trn3", "float8_e8m0fnu": "trn3"}  # the others are everywhere


def patterns(dtype: str) -> Array:
    """Return every element of the type, in a tile."""
    kind = numpy_type(dtype)
    count = 1 << 8 * kind.itemsize
    return np.arange(count).astype(f"u{kind.itemsize}").view(kind).reshape(-1, count // 16 or 1)


@pytest.mark.parametrize("engine", ["vector", "scalar", "gpsimd"])
@pytest.mark.parametrize("source", NARROW)
def test_every_pattern_to_every_type(source: str, engine: str) -> None:
    """Through float32, rounded once; within one type the bits are copied."""
    elements = patterns(source)
    src = tile(elements)
    results = [src.like(dtype=name) for name in NUMBERS]
    copies = [call("tensor_copy", engine, dst=dst, src=src) for dst in results]
    outcome = run(copies, target="trn3")
    for dst in results:
        if dst.dtype == source:
            assert outcome[dst].tobytes() == elements.tobytes()
        else:
            same(outcome[dst], stored(loaded(elements), dst.dtype))


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
@pytest.mark.parametrize("dtype", [name for name in NARROW if name not in TARGETS])
def test_targets_agree(dtype: str, target: str) -> None:
    """float8_e4m3 has infinities, and overflows to them, on every target."""
    edges = [1.0, 239.0, 247.9, 248.0, 449.0, 465.0, 57345.0, 61440.0, 65520.0, 1e30, np.inf]
    x = tile(np.array([edges, [-v for v in edges]], np.float32))
    dst = x.like(dtype=dtype)
    found = run([call("tensor_copy", "vector", dst=dst, src=x)], target=target)[dst]
    same(found, stored(x.window(x.tensor.contents), dtype))
    if dtype == "float8_e4m3":
        assert found[0].astype(np.float64).tolist() == [1, 240, 240, *[np.inf] * 8]


def test_the_ocp_format_has_no_infinities() -> None:
    x = tile(np.array([[448.0, 464.0, 464.1, np.inf]], np.float32))
    dst = x.like(dtype="float8_e4m3fn")
    found = run([call("tensor_copy", "vector", dst=dst, src=x)], target="trn3")[dst]
    np.testing.assert_array_equal(found.astype(np.float64), [[448, 448, np.nan, np.nan]])
