"""Classes, closures, decorators, formats and patterns."""

import dataclasses
import enum
import functools
import itertools
import math
import operator
import re
import string
import typing
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace, asdict, astuple, fields
from typing import Any, ClassVar, NamedTuple, Optional, Union, Callable, Protocol, TypeVar, Generic

import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl


def finish(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=a)
    return out


class Mode(enum.Enum):
    FAST = "fast"
    SLOW = "slow"

    @property
    def steps(self):
        return 1 if self is Mode.FAST else 2

    @classmethod
    def parse(cls, text):
        return cls(text)

    def __str__(self):
        return f"Mode<{self.value}>"


class Level(enum.IntEnum):
    LOW = enum.auto()
    MID = enum.auto()
    HIGH = 10


class Bits(enum.Flag):
    A = enum.auto()
    B = enum.auto()
    C = A | B


@dataclass(frozen=True, order=True)
class Tiling:
    p: int = 128
    f: int = 512
    tags: tuple[str, ...] = ()
    NAME: ClassVar[str] = "tiling"

    def __post_init__(self):
        if self.p <= 0:
            raise ValueError(f"p is {self.p}")

    @property
    def size(self) -> int:
        return self.p * self.f

    @functools.cached_property
    def half(self):
        return self.p // 2

    @staticmethod
    def of(shape):
        return Tiling(*shape)


@dataclass
class Config:
    name: str
    tiling: Tiling = field(default_factory=Tiling)
    extra: dict = field(default_factory=dict, repr=False, compare=False)
    mode: Mode = Mode.FAST
    scale: Optional[float] = None


class Shape(NamedTuple):
    rows: int
    cols: int = 64

    def area(self):
        return self.rows * self.cols


Point = namedtuple("Point", "x y", defaults=[0])


@nki.jit
def dataclasses_(a):
    t = Tiling(64)
    c = Config("x", t, {"q": 1})
    print(t, c, c == Config("x", Tiling(64)), t < Tiling(65), hash(t) == hash(Tiling(64)))
    print(asdict(c), astuple(t), [f.name for f in fields(Config)], replace(t, f=1), t.size, t.half)
    print(
        Tiling.of((1, 2)), Tiling.NAME, dataclasses.is_dataclass(t), sorted([Tiling(3), Tiling(1)])
    )
    try:
        t.p = 3
    except dataclasses.FrozenInstanceError as e:
        print(type(e).__name__, e)
    try:
        Tiling(0)
    except ValueError as e:
        print(repr(e))
    try:
        Config()
    except TypeError as e:
        print(e)
    c.mode = Mode.SLOW
    c.new = 3
    print(c.tiling.p)
    return finish(a)


@nki.jit
def enums_(a):
    print(Mode.FAST, repr(Mode.FAST), Mode("slow").name, Mode["FAST"].value, list(Mode), len(Mode))
    print(
        Mode.parse("slow").steps, Mode.FAST is Mode("fast"), Mode.FAST == "fast", Mode.FAST in Mode
    )
    print(
        Level.MID + 1,
        Level.HIGH > Level.LOW,
        f"{Level.HIGH}",
        f"{Level.HIGH:>4}",
        Level(2),
        repr(Level(1)),
    )
    print(
        Bits.A | Bits.B,
        Bits.C,
        Bits.A in Bits.C,
        Bits.C & Bits.B,
        bool(Bits.A & Bits.B),
        ~Bits.A,
        Bits(0),
    )
    print(
        {Mode.FAST: 1}[Mode.FAST],
        Mode.__members__,
        [m.value for m in Level],
        f"{Mode.SLOW!r:>10}",
        isinstance(Level.LOW, int),
    )
    try:
        Mode("other")
    except ValueError as e:
        print(e)
    try:
        Mode["OTHER"]
    except KeyError as e:
        print(repr(e))
    return finish(a)


@nki.jit
def namedtuples_(a):
    s = Shape(*a.shape)
    print(
        s,
        s.area(),
        s._asdict(),
        s._replace(cols=1),
        Shape._fields,
        s[0],
        s[-1:],
        len(s),
        s == (128, 64),
    )
    p = Point(3)
    x, y = p
    print(
        p,
        x,
        y,
        Point._field_defaults,
        p + (1,),
        hash(p) == hash((3, 0)),
        isinstance(p, tuple),
        Point._make([1, 2]),
    )
    match p:
        case Point(x=0):
            print("zero")
        case Point(x, y) if x > y:
            print("case", x, y)
    return finish(a)


@nki.jit
def closures_(a):
    fs = [lambda: i for i in range(3)]
    gs = [lambda i=i: i for i in range(3)]
    print([f() for f in fs], [g() for g in gs])

    def outer():
        n = 0
        log = []

        def inc(k=1):
            nonlocal n
            n += k
            log.append(n)
            return inc

        inc()(2)(k=3)
        return n, log

    print(outer())
    total = 0
    squares = [total := total + k for k in range(4)]
    print(squares, total)

    def compose(*fs):
        return functools.reduce(lambda f, g: lambda x: g(f(x)), fs)

    print(compose(lambda x: x + 1, lambda x: x * 2, str)(3))
    return finish(a)


def logged(prefix="", *, upper=False):
    def deco(f):
        @functools.wraps(f)
        def inner(*args, **kwargs):
            r = f(*args, **kwargs)
            print(prefix, f.__name__.upper() if upper else f.__name__, args, kwargs, r)
            return r

        return inner

    return deco


@logged("call", upper=True)
def added(x, /, y=2, *rest, z, **more):
    """Adds."""
    return x + y + sum(rest) + z + sum(more.values())


@nki.jit
def decorators_(a):
    added(1, z=1)
    added(1, 2, 3, 4, z=1, q=2)
    print(added.__name__, added.__doc__, added.__wrapped__(1, z=0))
    try:
        added(1)
    except TypeError as e:
        print(e)
    try:
        added.__wrapped__(x=1, z=1)
    except TypeError as e:
        print(e)

    class Deco:
        def __init__(self, f):
            self.f, self.calls = f, 0

        def __call__(self, *args):
            self.calls += 1
            return self.f(*args)

    @Deco
    def g(x):
        return x * 2

    print(g(2), g(3), g.calls)
    return finish(a)


@nki.jit
def formats_(a):
    n, f, s = 255, 1234.5678, "tile"
    print(f"{n:08b} {n:#x} {n:,} {-n:+d} {n:e} {n:>6}|{n:<6}|{n:^6}|{n:06d} {n:c}")
    print(f"{f:.2f} {f:,.1f} {f:e} {f:g} {f:10.3f}| {f:<10.1f}| {f:%} {f:.0%} {0.1:.17g} {1e20:g}")
    print(f"{s:>8}|{s:*^8}|{s!r:>8}|{s[:2]}|{s:.2}|{s.upper()=}")
    print(f"{'nested ' + f'{n:{8}d}'} {n=} {f = :.1f} {[1, 2]!s:>10} {None} {True:d} {(1,)}")
    print(
        "{0:>{w}} {x[0]} {y.real}".format(n, w=5, x=[7], y=3),
        "%5d|%-5s|%05.1f|%x|%r" % (n, s, f, n, s),
    )
    print(
        str.join(",", map(str, range(3))),
        "a-b".partition("-"),
        "x".ljust(3, "."),
        s.translate(str.maketrans("t", "T")),
    )
    print(
        format(n, "x"),
        format(3.0, ".3"),
        repr(1e16),
        str(1e-7),
        1e22,
        0.1 + 0.2,
        float("inf"),
        -0.0,
        10**20,
    )
    return finish(a)


@nki.jit
def matching_(a):
    def kind(v):
        match v:
            case None:
                return "none"
            case bool():
                return "bool"
            case int(n) if n < 0:
                return f"neg {n}"
            case int() | float():
                return "num"
            case "a" | "b" as c:
                return f"letter {c}"
            case str(x):
                return f"str {x}"
            case []:
                return "empty"
            case [x]:
                return f"one {x}"
            case [x, *rest]:
                return f"many {x} {rest}"
            case {"op": op, **kw}:
                return f"op {op} {kw}"
            case Config(name=n, tiling=Tiling(p=128)):
                return f"cfg {n}"
            case Mode.FAST:
                return "fast"
            case Tiling(p, f):
                return f"tiling {p} {f}"
            case _:
                return type(v).__name__

    for v in (
        None,
        True,
        -3,
        2,
        2.5,
        "a",
        "zz",
        [],
        (1,),
        [1, 2, 3],
        {"op": "add", "k": 1},
        Config("c"),
        Mode.FAST,
        Tiling(1, 2),
        Mode.SLOW,
        {},
    ):
        print(kind(v))
    return finish(a)


class Grid:
    def __init__(self, *shape):
        self._shape = shape
        self._data = {}

    def __len__(self):
        return math.prod(self._shape)

    def __getitem__(self, i):
        if isinstance(i, slice):
            return [self[k] for k in range(*i.indices(len(self)))]
        if isinstance(i, tuple):
            return self._data.get(i, 0)
        if i < 0:
            i += len(self)
        if not 0 <= i < len(self):
            raise IndexError(i)
        return self._data.get(divmod(i, self._shape[1]), 0)

    def __setitem__(self, i, v):
        self._data[i] = v

    def __delitem__(self, i):
        del self._data[i]

    def __iter__(self):
        for i in range(len(self)):
            yield self[i]

    def __contains__(self, v):
        return v in self._data.values()

    def __bool__(self):
        return bool(self._data)

    def __add__(self, other):
        return NotImplemented if not isinstance(other, Grid) else "sum"

    def __radd__(self, other):
        return f"radd {other}"

    def __repr__(self):
        return f"{type(self).__name__}{self._shape}"

    def __call__(self, k):
        return k

    def __eq__(self, other):
        return isinstance(other, Grid) and self._shape == other._shape

    def __lt__(self, other):
        return self._shape < other._shape

    def __enter__(self):
        print("enter")
        return self

    def __exit__(self, kind, value, tb):
        print("exit", kind and kind.__name__, value)
        return kind is KeyError

    def __format__(self, spec):
        return f"<{spec}>"

    def __index__(self):
        return 3

    def __neg__(self):
        return "neg"

    def __matmul__(self, o):
        return "mm"

    def __iadd__(self, o):
        self._data[0, 0] = o
        return self

    def __hash__(self):
        return 7


@nki.jit
def containers_(a):
    g = Grid(2, 3)
    g[0, 1] = 5
    g[1, 2] = 7
    print(
        len(g),
        g[1],
        g[-1],
        g[1:3],
        list(g),
        5 in g,
        6 in g,
        bool(Grid(1, 1)),
        g + g,
        3 + g,
        g,
        g(1),
    )
    print(
        g == Grid(2, 3),
        g != Grid(3, 3),
        sorted([Grid(3, 1), Grid(1, 1)]),
        f"{g:abc}",
        [0, 1, 2, 9][g],
        -g,
        g @ 1,
    )
    with g as h:
        h += 2
        raise KeyError("swallowed")
    print(
        h is g, g[0, 0], {g: 1}[Grid(2, 3)], max(g), sum(g), [*reversed([*g])], dict(enumerate(g))
    )
    try:
        with g:
            raise ValueError("kept")
    except ValueError as e:
        print("caught", e)
    try:
        g + 3
    except TypeError as e:
        print(e)
    try:
        g[9]
    except IndexError as e:
        print(repr(e))
    del g[0, 0]
    x, y, *z = g
    print(x, y, z, next(iter(g)), any(g), list(zip(g, "ab")), list(map(operator.neg, g)))
    return finish(a)
