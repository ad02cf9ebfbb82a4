"""Arguments of calls: objects, closures, functions, numbers of NumPy, `*args`."""

import dataclasses
import enum
import functools
import typing

import numpy as np

import nki
import nki.isa as nisa
import nki.language as nl

A = np.arange(128 * 64, dtype=np.float32).reshape(128, 64)


class Act(enum.Enum):
    EXP = "exp"
    RELU = "relu"

    def op(self):
        return {"exp": nl.exp, "relu": nl.relu}[self.value]


class Lev(enum.IntEnum):
    ONE = 1
    TWO = 2


class Fl(enum.Flag):
    A = 1
    B = 2


@dataclasses.dataclass(frozen=True)
class Cfg:
    scale: float = 2.0
    act: Act = Act.RELU
    dims: tuple = (1, 2)
    dtype: typing.Any = nl.float32
    sub: typing.Optional["Cfg"] = None

    def __post_init__(self):
        object.__setattr__(self, "twice", self.scale * 2)


class P(typing.NamedTuple):
    x: int
    y: float = 0.5


class Obj(nl.NKIObject):
    k: int = 3
    name: str = "n"


class Plain:
    def __init__(self, n):
        self.n = n
        self.hist = [n]

    def step(self):
        self.n += 1
        self.hist.append(self.n)
        return self.n

    @property
    def double(self):
        return self.n * 2

    def __eq__(self, o):
        return isinstance(o, Plain) and o.n == self.n


def out_of(t):
    o = nl.ndarray(t.shape, dtype=t.dtype, buffer=nl.shared_hbm)
    nl.store(o, t)
    return o


@nki.jit
def k_cfg(a, cfg, p=P(1), *, lev=Lev.ONE, fn=None, flags=Fl.A | Fl.B, opts=None):
    t = nl.load(a)
    print(
        cfg,
        cfg.twice,
        p,
        repr(lev),
        flags,
        opts,
        cfg.dtype == a.dtype,
        cfg.act is Act.RELU,
        Fl.A in flags,
        lev + 1,
        isinstance(p, tuple),
    )
    nisa.activation(t, op=cfg.act.op(), data=t, scale=cfg.scale)
    if fn is not None:
        fn(t, p.y)
    if opts:
        print(sorted(opts.items()), opts.get("z", 1))
    return out_of(t)


def addk(t, k):
    nisa.tensor_scalar(t, t, nl.add, k)


@nki.jit
def k_obj(a, obj, plain, lst, st):
    t = nl.load(a)
    print(
        obj.k,
        obj.name,
        plain.step(),
        plain.double,
        plain.hist,
        plain == Plain(plain.n),
        lst,
        sorted(st),
        type(plain).__name__,
    )
    lst.append(5)
    print(lst)
    return out_of(t)


@nki.jit
def k_list(xs, ws):
    r = []
    for x in xs:
        r.append(out_of(nl.load(x)))
    r.append(out_of(nl.load(ws["w"])))
    return tuple(r)


def factory(n, op):
    @nki.jit
    def kernel(a):
        t = nl.load(a)
        for _ in range(n):
            nisa.tensor_scalar(t, t, op, 2.0)
        print(n, op)
        return out_of(t)

    return kernel


@nki.jit
def k_np(a, i, f, b, s, n, sh):
    print(i + 1, f * 2, b, s, n, sh, i // 2, type(n))
    t = nl.load(a)
    nisa.tensor_scalar(t[:, : int(i)], t[:, : int(i)], nl.add, float(f))
    return out_of(t)


@nki.jit
def k_none(a, b=None):
    if b is None:
        return out_of(nl.load(a))
    return out_of(nl.load(b))


@nki.jit
def k_var(*args, **kw):
    print(len(args), sorted(kw), kw["scale"])
    return [out_of(nl.load(x)) for x in args]


class Host:
    scale = 3.0

    @staticmethod
    @nki.jit
    def k(a, s):
        t = nl.load(a)
        nisa.tensor_scalar(t, t, nl.multiply, s)
        return out_of(t)


CASES = [
    (k_cfg, (A, Cfg())),
    (
        k_cfg,
        (A, Cfg(3.0, Act.EXP, sub=Cfg()), P(2, 1.5)),
        dict(lev=Lev.TWO, fn=addk, opts={"q": 1}),
    ),
    (
        k_cfg,
        (A, Cfg()),
        dict(
            fn=functools.partial(nisa.tensor_scalar)
            and (lambda t, k: nisa.tensor_scalar(t, t, nl.multiply, k))
        ),
    ),
    (k_obj, (A, Obj(k=4), Plain(3), [1, [2]], {3, 1})),
    (k_list, ([A, A + 1], {"w": A * 2})),
    (factory(3, nl.multiply), (A,)),
    (factory(1, nl.add), (A,)),
    (k_np, (A, np.int64(4), np.float32(0.5), np.bool_(True), "s", None, A.shape)),
    (k_none, (A,)),
    (k_none, (A, A + 1)),
    (k_none, (A, None)),
    (k_var, (A, A + 1), dict(scale=2)),
    (Host.k, (A, Host.scale)),
]
