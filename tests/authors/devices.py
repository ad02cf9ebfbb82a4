"""Objects, scalars of the device, grids, loops, calls."""

import functools, math, itertools, operator, collections, dataclasses, enum, typing
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl
from nki.language import NKIObject
import nki.typing as nt


def out_of(t):
    o = nl.ndarray(t.shape, dtype=t.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=o, src=t)
    return o


STATE = {"n": 0}


class Config(NKIObject):
    tiles: int = 4
    op = nl.add

    def __init__(self, tiles=4, **kw):
        self.tiles = tiles
        for k, v in kw.items():
            setattr(self, k, v)

    def with_(self, **kw):
        return Config(**{"tiles": self.tiles, **kw})

    @functools.cached_property
    def width(self):
        STATE["n"] += 1
        return 64 // self.tiles


@nki.jit
def config_(a):
    t = nl.load(a)
    c = Config().with_(tiles=8, bias=0.5)
    for i in range(c.tiles):
        nisa.tensor_scalar(
            t[:, i * c.width : (i + 1) * c.width],
            t[:, i * c.width : (i + 1) * c.width],
            c.op,
            c.bias * i,
        )
    print(c.tiles, c.bias, STATE, getattr(c, "none", "d"), hasattr(c, "bias"))
    delattr(c, "bias")
    print(hasattr(c, "bias"), Config.op == nl.add, Config().op == c.op)
    return out_of(t)


@nki.jit
def scalars_(a, n):
    t = nl.load(a)
    i = nisa.scalar_load(nl.load(n))
    offs = [i + k for k in range(3)]
    total = functools.reduce(operator.add, offs, 0)
    print(
        type(i).__name__,
        i.dtype,
        isinstance(i, nisa.NkiScalar),
        sum([1, 2]),
        len(offs),
        i is offs[0],
        i in [i],
        i == i,
    )
    u = sum(offs)
    for o in offs:
        nisa.tensor_scalar(t[:, nl.ds(o, 1)], t[:, nl.ds(o, 1)], nl.add, 1.0)
    nisa.tensor_scalar(t[:, nl.ds(u, 2)], t[:, nl.ds(u, 2)], nl.add, 2.0)
    nisa.tensor_scalar(t[:, nl.ds(total - 1, 2)], t[:, nl.ds(total - 1, 2)], nl.add, 2.0)
    return out_of(t)


# args scalars_: a=float32[128,64] n=int32[1,1]


@nki.jit
def grids_(a):
    g = nl.tiles(a, tile_shape=(64, 32))
    o = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    w = nl.tiles(o, tile_shape=(64, 32))
    print(
        g.shape,
        g.tile_shape,
        g.element_shape,
        g.dtype,
        g.buffer == nl.private_hbm,
        g.index_step_elements,
        g.is_remainder,
        g.is_data_representable,
        isinstance(g, nl.NkiTileGrid),
        type(g).__name__,
        len(g.shape),
    )
    for at in np.ndindex(*g.shape) if False else itertools.product(*map(range, g.shape)):
        t = nl.ndarray(g[at].element_shape, a.dtype, nl.sbuf)
        nisa.dma_copy(t, g[at].data)
        nisa.tensor_scalar(t, t, nl.add, float(sum(at)))
        nisa.dma_copy(w[at].data, t)
    print(
        g[0].shape,
        g[-1, 1:].shape,
        g[0, 0].shape,
        g[:, 0].element_shape,
        g[..., 0].shape if False else "",
    )
    b = nl.blocks(a, tile_shape=(32, 16), block_shape=(2, 2))
    print(b.shape, b[0, 0].element_shape, b[0].shape, b.block_shape, nl.tiles(b[0, 0]).shape)
    return o


@nki.jit
def loops_(a):
    t = nl.load(a)
    seen = []

    def outer(i):
        def inner(j):
            nisa.tensor_scalar(t[:, nl.ds(i + j, 1)], t[:, nl.ds(i + j, 1)], nl.add, 1.0)
            seen.append("j")

        nl.fori_loop(0, 3, inner)
        seen.append("i")

    nl.fori_loop(0, 4, outer)
    r = nisa.register_alloc(3)
    c = nl.zeros((1, 1), nl.int32, nl.sbuf)
    nisa.memset(c, value=3)

    def body(reg):
        nisa.tensor_scalar(c, c, nl.subtract, 1)
        nisa.tensor_scalar(t, t, nl.add, 1.0)
        nisa.register_load(reg, c)
        return reg

    nl.while_loop(r, body)
    try:
        nl.fori_loop(
            0, 2, lambda i: [nisa.tensor_scalar(t, t, nl.add, float(k)) for k in range(2)] and None
        )
    finally:
        print(seen)
    return out_of(t)


@nki.jit
def typed_(
    a: nt.tensor[128, 64],
    k: "typing.Literal[1, 2]" = 2,
    /,
    *,
    scale: float = 2,
    name: str | None = None,
) -> nt.tensor:
    t = nl.load(a)
    x: float = scale
    nisa.tensor_scalar(t, t, nl.multiply, x)
    assert k == 2 and name is None
    return out_of(t)


@nki.jit
def printed_(a):
    t = nl.load(a)
    print(a.shape, end="|")
    print("x", "y", sep="-", end="\n\n")
    print()
    print([a.dtype, (nl.sbuf,)], {"t": a.dtype}, 1.0, 1e-10, True, None, sep=", ")
    print(
        f"{a.shape=} {a.shape[0]=:>6} {math.pi:.3f} {'x':^5}|",
        "%s %r %d" % (a.dtype, a.dtype, 3),
        "{}".format(a.dtype),
    )
    return out_of(t)


@nki.jit
def calls_(a):
    t = nl.load(a)

    def f(x, y=1, *args, k=2, **kw):
        nisa.tensor_scalar(x, x, nl.add, float(y + k + sum(args) + sum(kw.values())))
        return x

    f(t)
    f(t, 2)
    f(t, 2, 3, k=4, z=5)
    f(*(t, 1), **dict(k=3))
    f(y=3, x=t)
    g = functools.partial(f, k=0)
    h = functools.partial(g, t, y=7)
    h()
    h(y=1)
    g(t, 4)
    m = {"add": f, "sub": lambda x: nisa.tensor_scalar(x, x, nl.subtract, 1.0)}
    for k in ("sub", "add"):
        m[k](t)
    (f if a.shape[0] > 4 else h)(t)
    list(map(f, [t, t], range(2)))
    [f(t, i) for i in range(3) if i != 1]
    any(f(t, i) is None for i in range(2))
    return out_of(t)
