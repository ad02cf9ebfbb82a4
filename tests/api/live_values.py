"""A module whose values host code changes before it calls the kernel."""

import collections
import dataclasses
import enum
import functools
from typing import Any, ClassVar

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

SCALE = 2
ITEMS = [1, 2]
TABLE = {"a": 1, "b": [2, 3]}
DTYPE = nl.float32
OPERATOR = nl.add
MARK = object()
ARRAY = np.arange(8, dtype=np.float32).reshape(2, 4)
LOCK: Any = None


@dataclasses.dataclass
class Config:
    rows: int = 1
    sizes: list[int] = dataclasses.field(default_factory=list)


class Base:
    step = 1

    def moved(self, x: int = SCALE, items: list[int] = ITEMS, mark: object = MARK) -> Any:
        return x + self.step, items, mark is MARK


class Child(Base):
    widths: ClassVar[list[int]] = [4]


class Mode(enum.Enum):
    SLOW = 1
    FAST = 2


def logged(function: Any) -> Any:
    items, config = ITEMS, CONFIG

    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        return function(*args), items, config.rows

    return wrapper


CONFIG = Config(4)
CHILD = Child()
MODE = Mode.SLOW
QUEUE = collections.deque([1, 2], 3)
LISTS: Any = collections.defaultdict(list)


def helper(x: int, scale: int = SCALE, *, items: list[int] = ITEMS, mark: object = MARK) -> Any:
    return x * scale, items, mark is MARK


def other(x: int) -> Any:
    return x + 100


def moved(self: Base, x: int = 3) -> Any:
    return self.step * x


@logged
def marked(x: int) -> Any:
    return x


picked: Any = helper
first, second = (lambda x: x + 1), (lambda x: x + 2)
FUNCTIONS: dict[str, Any] = {"first": first, "second": second}
part: Any = functools.partial(helper, scale=5)


def make(k: int) -> Any:
    seen = [k]

    def kernel(a: Any) -> Any:
        print(seen, k, SCALE)
        return copied(a)

    return kernel


made = make(3)


def copied(a: Any) -> Any:
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=a)
    return out


@nki.jit
def kernel(a: Any, n: Any = SCALE) -> Any:
    print(SCALE, ITEMS, TABLE, DTYPE, OPERATOR, CONFIG, CHILD.moved(), Child().moved(1), n)
    print(Child.widths, Base.step, MODE, list(QUEUE), QUEUE.maxlen, dict(LISTS))
    print(helper(3), picked(3), FUNCTIONS["first"](1), FUNCTIONS["second"](1), part(2), marked(1))
    print(first(1), second(1), ARRAY.shape)  # type: ignore[no-untyped-call]
    return copied(a)


@nki.jit
def with_array(a: Any) -> Any:
    out = nl.ndarray(ARRAY.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(ARRAY.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=nl.shared_constant(ARRAY))
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def locked(a: Any) -> Any:
    print(LOCK)
    return copied(a)
