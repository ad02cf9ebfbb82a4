# test: check
# args: a=float32[128,64]
"""What people try first: the helpers of Python that kernels may use."""
import math
from dataclasses import asdict, dataclass, replace
from enum import Enum, IntEnum
from functools import partial
from typing import NamedTuple

import numpy as np

import nki
import nki.isa as nisa
import nki.language as nl


@dataclass
class Config:
    rows: int = 2
    name: str = "c"


class Shape(NamedTuple):
    rows: int
    columns: int = 4


class Mode(Enum):
    FAST = "fast"
    EXACT = "exact"


class Level(IntEnum):
    LOW = 1
    HIGH = 3


@nki.jit
def kernel(a):
    assert list(enumerate("ab", start=1)) == [(1, "a"), (2, "b")]
    assert list(zip([1, 2], [3, 4], strict=True)) == [(1, 3), (2, 4)]
    sizes = {"x": 1} | {"y": 2}
    assert sizes.keys() & {"y"} == {"y"} and list(sizes.values()) == [1, 2]
    assert sorted(["b", "A"], key=str.lower, reverse=True) == ["b", "A"]
    width = 6
    assert f"{width:>{width}}|{1.5:.2f}|{width=}" == "     6|1.50|width=6"
    (first, *rest), *more = (1, 2, 3), 4, 5
    assert (first, rest, more) == (1, [2, 3], [4, 5])
    for n in range(3):
        if n > 5:
            break
    else:
        n = -1
    assert n == -1
    del sizes["x"], rest[0]
    assert sizes == {"y": 2} and rest == [3]
    assert [mode.value for mode in Mode] == ["fast", "exact"] and Mode["FAST"] in Mode
    assert Level.HIGH + 1 == 4 and max(Level) is Level.HIGH and [0, 1, 2, 3][Level.HIGH] == 3
    assert Shape(1)._replace(columns=8) == (1, 8) and Shape(1)._asdict() == {"rows": 1, "columns": 4}
    assert asdict(replace(Config(), rows=5)) == {"rows": 5, "name": "c"}
    assert isinstance(1, (int, str)) and isinstance("a", int | str) and not isinstance(1.0, (int, str))
    assert getattr(Config(), "depth", 7) == 7 and partial(max, 3)(2) == 3
    assert math.ceil(7 / 2) == 4 and math.prod(a.shape) == 8192 and math.log2(8) == 3.0
    assert "a-b".split("-") == ["a", "b"] and "x".join(["1", "2"]) == "1x2" and "ab".startswith("a")
    assert np.iinfo(np.int8).max == 127 and np.maximum(2, 3) == 3 and np.ceil(1.5) == 2
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out
