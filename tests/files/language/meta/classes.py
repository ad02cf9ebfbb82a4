# test: check
# args: a=float32[128,64]
"""Every kind of class that kernels may define is as in Python."""
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum
from typing import NamedTuple

import nki
import nki.isa as nisa
import nki.language as nl

class Plain(nl.NKIObject):
    """Fields without default may be left out."""

    size: int
    name: str = "tile"
    note = None

    def twice(self):
        return 2 * self.size


@dataclass
class Point:
    x: int
    y: int = 0
    history: list = field(default_factory=list)

    def __post_init__(self):
        self.history.append(self.x)

    @property
    def total(self):
        return self.x + self.y

    @staticmethod
    def origin():
        return Point(0)

    @classmethod
    def at(cls, x):
        return cls(x, x)

    def __add__(self, other):
        return Point(self.x + other.x, self.y + other.y)

    def __call__(self, n):
        return self.x * n

    def __getitem__(self, i):
        return (self.x, self.y)[i]


@dataclass(frozen=True)
class Fixed(nl.NKIObject):
    n: int = 3
    double: int = 0

    def __post_init__(self):
        object.__setattr__(self, "double", 2 * self.n)


class Wide(Plain):
    width: int = 2

    def twice(self):
        return super().twice() * self.width


class Pair(NamedTuple):
    first: int
    second: int = 7


class Mode(Enum):
    FAST = "fast"
    EXACT = "exact"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Circle:
    def area(self):
        return 3


class Square:
    def area(self):
        return 4


@nki.jit
def kernel(a):
    assert Plain(4).twice() == 8 and Plain().size is None and Plain(1, note=5).note == 5
    assert Wide(3).twice() == 12 and Wide(3).name == "tile" and isinstance(Wide(1), Plain)
    p = Point(1, 2)
    assert p.total == 3 and p.history == [1] and Point.origin().x == 0 and Point.at(4).y == 4
    assert (p + Point(10)).x == 11 and p(5) == 5 and p[1] == 2 and p == Point(1, 2)
    assert repr(p) == "Point(x=1, y=2, history=[1])"
    p.x += 1
    assert p.x == 2 and Fixed().double == 6 and Fixed(5).double == 10 and Fixed() == Fixed(3)
    assert {Fixed(1): "one"}[Fixed(1)] == "one" and replace(Fixed(1), n=2).double == 4
    first, second = Pair(1)
    assert (first, second) == (1, 7) and Pair(1, 2)._replace(second=5).second == 5
    assert Mode.FAST.value == "fast" and Mode("fast") is Mode.FAST and Mode["EXACT"].name == "EXACT"
    assert [level.name for level in Level] == ["LOW", "HIGH"] and Level.HIGH > Level.LOW == 1
    assert sum(shape.area() for shape in (Circle(), Square())) == 7
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out
