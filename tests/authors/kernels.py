"""Whole kernels, in the styles that authors have."""

import functools, itertools, math, operator
from collections import namedtuple, defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl
import nki.typing as nt

P_MAX = nl.tile_size.pmax
_UNSET = object()


def out_of(t):
    o = nl.ndarray(t.shape, dtype=t.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=o, src=t)
    return o


class Pool:
    """A ring of tiles."""

    live = 0

    def __init__(self, n, shape, dtype=nl.float32, buffer=nl.sbuf):
        self.tiles = tuple(
            nl.ndarray(shape, dtype=dtype, buffer=buffer, name=f"pool{i}") for i in range(n)
        )
        self._next = itertools.cycle(range(n))
        type(self).live += n

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        type(self).live -= len(self.tiles)
        return False

    def __iter__(self):
        return iter(self.tiles)

    def __len__(self):
        return len(self.tiles)

    def take(self):
        return self.tiles[next(self._next)]

    __getitem__ = lambda self, i: self.tiles[i % len(self)]


@nki.jit
def pool_(a):
    with Pool(3, (128, 64)) as p:
        for i in range(5):
            nisa.dma_copy(p.take(), a)
        for i, t in enumerate(p):
            nisa.tensor_scalar(t, t, nl.add, float(i))
        acc = functools.reduce(lambda x, y: (nisa.tensor_tensor(x, x, y, op=nl.add), x)[1], p)
        print(len(p), Pool.live, acc is p[0], p[4] is p[1])
    print(Pool.live)
    return out_of(acc)


@dataclass
class Step:
    op: object
    k: float
    rev: bool = False

    def __call__(self, t):
        nisa.tensor_scalar(t, t, self.op, self.k, reverse0=self.rev)
        return t

    def __or__(self, other):
        return Chain([self, other])


@dataclass
class Chain:
    steps: list = field(default_factory=list)

    def __or__(self, other):
        return Chain([*self.steps, other])

    def __call__(self, t):
        for s in self.steps:
            t = s(t)
        return t

    def __len__(self):
        return len(self.steps)


@nki.jit
def chain_(a):
    t = nl.load(a)
    c = Step(nl.add, 1.0) | Step(nl.multiply, 2.0) | Step(nl.subtract, 3.0, rev=True)
    print(len(c), [s.k for s in c.steps], [s.op for s in c.steps], c.steps[0])
    return out_of(c(t))


@nki.jit
def tiling_(a, b):
    m, n = a.shape
    o = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    for (i, p), (j, f) in itertools.product(
        enumerate(range(0, m, P_MAX)), enumerate(range(0, n, 32))
    ):
        sl = (slice(p, min(p + P_MAX, m)), slice(f, f + 32))
        t = nl.load(a[sl])
        u = nl.load(b[sl])
        match (i + j) % 3:
            case 0:
                nisa.tensor_tensor(t, t, u, op=nl.add)
            case 1 | 2 as k:
                nisa.tensor_tensor(t, t, u, op=[None, nl.subtract, nl.maximum][k])
        nisa.dma_copy(dst=o[sl], src=t)
    return o


# args tiling_: a=float32[200,64] b=float32[200,64]


@contextmanager
def scratch(shape, value=0.0):
    t = nl.ndarray(shape, nl.float32, nl.sbuf)
    nisa.memset(t, value)
    try:
        yield t
    finally:
        print("freed")


@nki.jit
def scratch_(a):
    t = nl.load(a)
    with scratch((128, 64), 2.0) as s, scratch((128, 64), 3.0) as u:
        nisa.tensor_tensor(t, t, s, op=nl.multiply)
        nisa.tensor_tensor(t, t, u, op=nl.add)
    return out_of(t)


def tiles_of(t, w):
    for k in range(0, t.shape[1], w):
        yield k, t[:, k : k + w]
    return "done"


@nki.jit
def gens_(a):
    t = nl.load(a)

    def both():
        r = yield from tiles_of(t, 16)
        print(r)

    for k, part in both():
        nisa.tensor_scalar(part, part, nl.add, float(k))
    first, *mid, last = tiles_of(t, 8)
    nisa.tensor_copy(last[1], first[1])
    print([k for k, _ in mid], dict(zip("ab", (p.shape for _, p in tiles_of(t, 32)))))
    return out_of(t)


@nki.jit
def attempts_(a):
    t = nl.load(a)
    for w in (7, 48, 32):
        try:
            assert t.shape[1] % w == 0, w
            parts = [t[:, i : i + w] for i in range(0, t.shape[1], w)]
        except AssertionError as e:
            print("no", e)
            continue
        else:
            break
    else:
        raise RuntimeError("none")
    for p in parts:
        nisa.tensor_scalar(p, p, nl.add, 1.0)
    try:
        x = t.shape[5]
    except IndexError as e:
        print(e)
    try:
        int("x")
    except Exception as e:
        print("reshape", type(e).__name__ != "")
    return out_of(t)


class Meta:
    table = {}

    @classmethod
    def register(cls, name=None, **kw):
        def deco(f):
            cls.table[name or f.__name__] = (f, kw)
            return f

        return deco


@Meta.register()
def twice(t):
    nisa.tensor_scalar(t, t, nl.multiply, 2.0)


@Meta.register("half", k=3)
def _half(t):
    nisa.tensor_scalar(t, t, nl.multiply, 0.5)


@nki.jit
def registry_(a):
    t = nl.load(a)
    for name, (f, kw) in sorted(Meta.table.items()):
        print(name, kw)
        f(t)
    return out_of(t)


@nki.jit
def recursion_(a):
    t = nl.load(a)

    def tree(lo, hi):
        if hi - lo == 1:
            return t[:, lo:hi]
        mid = (lo + hi) // 2
        l, r = tree(lo, mid), tree(mid, hi)
        nisa.tensor_tensor(l[:, 0:1], l[:, 0:1], r[:, 0:1], op=nl.add)
        return l

    tree(0, 8)
    return out_of(t)


@nki.jit
def defaults_(a, n: int = 3, op=nl.add, *, k: float = 1.5, shape: "tuple[int, ...]" = (128, 64)):
    t = nl.load(a)
    assert t.shape == shape
    for _ in range(n):
        nisa.tensor_scalar(t, t, op, k)
    return out_of(t)


@nki.jit
def unpack_(a):
    ((m, n),) = [a.shape]
    *lead, last = a.shape
    d = dict(op0=nl.add, operand0=1.0)
    t = nl.load(a)
    nisa.tensor_scalar(t, t, **d, **{"op1": nl.multiply, "operand1": 2.0})
    x, y = y0, x0 = 1, 2
    d |= {"operand0": 5.0}
    nisa.tensor_scalar(*(t, t), **d)
    i = 0
    i, lead[i - 1] = 1, 9
    print(m, n, lead, last, x, y, x0, y0, i)
    a_, b_ = (t[:, :32], t[:, 32:])
    nisa.tensor_tensor(a_, a_, b_, op=nl.add)
    return out_of(t)


@nki.jit
def walrus_(a):
    t = nl.load(a)
    k = 0
    while (k := k + 1) < 5 and (w := 64 >> k) > 4:
        nisa.tensor_scalar(t[:, :w], t[:, :w], nl.add, float(k))
    print(k, w, [y for x in range(4) if (y := x * x) % 2], y)
    return out_of(t)


@nki.jit
def psum_(a, b):
    x, y = nl.load(a), nl.load(b)
    acc = nl.ndarray((64, 64), nl.float32, nl.psum)
    for i in range(2):
        nisa.nc_matmul(acc, x, y, accumulate=bool(i))
    r = nl.ndarray((64, 64), nl.float32, nl.sbuf)
    nisa.tensor_copy(r, acc)
    return out_of(r)


# args psum_: a=float32[128,64] b=float32[128,64]


@nki.jit
def ops_(a):
    t = nl.load(a)
    u = t * 2.0 + 1.0
    v = (u - t) / 4.0
    w = nl.maximum(v, 0.5)
    t[:, 0:4] = w[:, 4:8]
    x = -t
    y = abs(x) if hasattr(x, "__abs__") else x
    return out_of(nl.add(t, y))


@nki.jit
def strides_(a):
    t = nl.load(a)
    print(
        t.strides,
        t.offset,
        t[2:, ::3].strides,
        t[2:, ::3].shape,
        t[:, 5].shape,
        t[3].shape,
        t[-1:, -1:].offset,
        t[...].shape,
        t.reshape((128, 4, 16))[:, 1].offset,
        a.strides,
        a[3:7, 2].shape,
        a.reshape((64, 128)).shape,
        t.size,
        t.ndim,
    )
    print(t.permute((0, 1)).shape, t.expand_dim(1).shape, t.get_pattern())
    return out_of(t)
