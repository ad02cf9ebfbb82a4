"""Values of NKI in Python's hands: types, tensors, enumerations, objects."""

import copy
import functools
from dataclasses import dataclass, field
from enum import Enum
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl
import nki.typing as nt
from nki.language import NKIObject


def finish(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=a)
    return out


@nki.jit
def dtypes_(a):
    print(
        a.dtype,
        str(a.dtype),
        repr(a.dtype),
        f"{a.dtype}",
        f"{a.dtype!r:>12} {a.dtype:>12} {a.dtype:.3}",
        a.dtype == nl.float32,
        a.dtype == "float32",
        a.dtype != nl.bfloat16,
        a.dtype in (nl.bfloat16, nl.float32),
        a.dtype is nl.float32,
    )
    print(
        {nl.float32: 1, nl.bfloat16: 2}[a.dtype],
        {nl.float32, nl.float32},
        sorted([str(nl.int8), str(nl.uint8)]),
        hash(nl.float32) == hash(a.dtype),
        isinstance(nl.float32, str),
        type(nl.float32).__name__,
    )
    for d in (
        nl.float32,
        nl.bfloat16,
        nl.float16,
        nl.int8,
        nl.uint8,
        nl.int32,
        nl.uint32,
        nl.bool_,
        nl.float8_e4m3,
        nl.float8_e5m2,
        nl.tfloat32,
        nl.int16,
        nl.uint16,
        nl.float8_e4m3fn,
    ):
        print(
            d,
            repr(d),
            len(d) if isinstance(d, str) else "-",
            d + "x" if isinstance(d, str) else "-",
        )
    print(
        a.dtype == np.float32,
        a.dtype == np.dtype("float32"),
        nl.float32 == np.float32,
        np.float32 == nl.float32,
    )
    return finish(a)


@nki.jit
def tensors_(a):
    print(
        a.shape,
        type(a.shape),
        a.ndim,
        len(a.shape),
        a.shape[0] // 2,
        isinstance(a, nl.NkiTensor),
        type(a).__name__,
    )
    t = nl.ndarray((128, 64), nl.float32, nl.sbuf)
    nisa.dma_copy(t, a)
    print(
        t.shape == a.shape,
        t.buffer == nl.sbuf,
        t.buffer,
        a.buffer,
        t[0:4].shape,
        t[:, 1:2].shape,
        t.reshape((128, 8, 8)).shape,
    )
    for name in (
        "size",
        "offset",
        "itemsize",
        "name",
        "address",
        "nope",
        "data",
        "strides",
        "T",
        "ndim",
        "dtype",
        "buffer",
        "is_contiguous",
        "view",
        "ap",
        "get_pattern",
        "__iter__",
        "__getitem__",
    ):
        print(name, hasattr(t, name))
    print(t is t, [t].index(t), t in [t], bool(t is None), t is not None)
    d = {"x": t}
    print(d["x"] is t, copy.copy(d)["x"] is t, dict(d)["x"] is t)
    return finish(a)


@nki.jit
def tensor_errors_(a):
    t = nl.load(a)

    def tried(f):
        try:
            print("fine", f())
        except Exception as e:
            print(type(e).__name__, str(e)[:200])

    tried(lambda: len(t))
    tried(lambda: getattr(t, "nope", 3))
    tried(lambda: hash(t) is None)
    tried(lambda: {t: 1}[t])
    tried(lambda: isinstance(t, (int, nl.NkiTensor)))
    tried(lambda: str(t)[:0])
    tried(lambda: f"{t}"[:0])
    tried(lambda: copy.deepcopy([1, t]) is None)
    tried(lambda: nl.tile_size.pmax)
    tried(lambda: getattr(nl, "nope", 4))
    tried(lambda: hasattr(nisa, "nope"))
    tried(lambda: hasattr(nisa, "tensor_scalar"))
    tried(lambda: getattr(nl, "exp") is nl.exp)
    tried(lambda: nl.exp == nl.exp)
    tried(lambda: nl.exp in (nl.gelu, nl.exp))
    tried(lambda: {nl.exp: 1}[nl.exp])
    tried(lambda: nl.exp.__name__)
    tried(lambda: nl.add.__name__)
    tried(lambda: callable(nl.exp))
    tried(lambda: nisa.tensor_scalar.__name__)
    tried(lambda: nl.sbuf == nl.psum)
    tried(lambda: nl.sbuf)
    tried(lambda: str(nl.sbuf))
    tried(lambda: repr(nl.shared_hbm))
    tried(lambda: {nl.sbuf: 1, nl.psum: 2}[nl.psum])
    tried(lambda: nl.ds(0, 4))
    tried(lambda: type(nl.sbuf).__name__)
    tried(lambda: nl.program_id(0))
    tried(lambda: nl.num_programs())
    tried(lambda: nl.num_programs(0))
    tried(lambda: nl.program_ndim())
    tried(lambda: nki.__name__)
    tried(lambda: nl.__name__)
    return finish(a)


@nki.jit
def isa_enums_(a):
    def tried(f):
        try:
            print("fine", f())
        except Exception as e:
            print(type(e).__name__, str(e)[:200])

    for e in (
        nisa.engine,
        nisa.dge_mode,
        nisa.oob_mode,
        nisa.reduce_cmd,
        nisa.matmul_perf_mode,
        nisa.nc_version,
    ):
        tried(lambda: e.__name__)
        tried(lambda: [m.name for m in e])
        tried(lambda: [m.value for m in e])
        tried(lambda: [str(m) for m in e])
        tried(lambda: [repr(m) for m in e])
        tried(lambda: len(e))
    tried(lambda: nisa.engine.vector == nisa.engine.vector)
    tried(lambda: nisa.engine.vector is nisa.engine.vector)
    tried(lambda: nisa.engine["vector"])
    tried(lambda: {nisa.engine.vector: 3}[nisa.engine.vector])
    tried(lambda: getattr(nisa.engine, "vector"))
    tried(lambda: isinstance(nisa.engine.vector, nisa.engine))
    tried(lambda: nisa.get_nc_version() >= nisa.nc_version.gen3)
    tried(lambda: nisa.get_nc_version())
    tried(lambda: f"{nisa.engine.vector}")
    tried(lambda: nisa.nc_version.gen3 < nisa.nc_version.gen4)
    tried(lambda: nisa.nc_version.gen3 == 3)
    tried(lambda: nisa.engine(3))
    return finish(a)


class Params(NKIObject):
    rows: int
    cols: int = 4
    names: list = None


@dataclass
class Both(NKIObject):
    x: int
    y: list = field(default_factory=list)


class Buffers(NKIObject):
    def __init__(self, shape, n):
        self.tiles = [nl.ndarray(shape, nl.float32, nl.sbuf) for _ in range(n)]
        self.at = 0

    def next(self):
        self.at = (self.at + 1) % len(self.tiles)
        return self.tiles[self.at]


@nki.jit
def objects_(a):
    p = Params(rows=2)
    q = Params(2, 4)
    print(p.rows, p.cols, p.names, isinstance(p, NKIObject), type(p).__name__)
    print(p == q, p != q, p == p)
    b = Both(1)
    b.y.append(2)
    print(b, b == Both(1, [2]), Both(3).y)
    bufs = Buffers((128, 64), 2)
    for _ in range(3):
        t = bufs.next()
        nisa.dma_copy(t, a)
    nisa.activation(t, op=nl.exp, data=t)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=t)
    return out


@nki.jit
def tables_(a):
    t = nl.load(a)
    steps = {
        "exp": functools.partial(nisa.activation, op=nl.exp),
        "neg": lambda dst, data: nisa.tensor_scalar(dst, data, op0=nl.multiply, operand0=-1.0),
    }
    for name, f in steps.items():
        f(dst=t, data=t)
    for op, k in zip((nl.add, nl.multiply, nl.maximum), (1.0, 2.0, 3.0)):
        nisa.tensor_scalar(dst=t, data=t, op0=op, operand0=k)
    getattr(nisa, "tensor_copy")(dst=t, src=t[...])
    args = (t, t)
    kw = dict(op0=nl.add, operand0=0.5, op1=nl.multiply, operand1=2.0)
    nisa.tensor_scalar(*args, **kw)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nl.store(out, t)
    return out


@nki.jit
def numpy_(a):
    ks = [0.5]
    t = nl.load(a)
    for k in ks:
        nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=float(k))
    i = 3
    nisa.tensor_copy(dst=t[:, i : i + 2], src=t[:, 0:2])
    n = int(np.ceil(7 / 2)) + int(np.prod(a.shape)) // 8192
    print(
        n,
    )
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nl.store(out, t)
    return out


@nki.jit
def returns_(a):
    outs = {}
    for k in range(2):
        o = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm, name=f"o{k}")
        nisa.dma_copy(dst=o, src=a)
        outs[k] = o
    return [outs[0], outs[1]]


@nki.jit
def slices_(a):
    t = nl.load(a)
    s = slice(0, 32)
    idx = (slice(None), s)
    nisa.tensor_scalar(t[idx], t[idx], nl.add, 1.0)
    nisa.tensor_scalar(t[0:64, nl.ds(32, 8)], t[0:64, 32:40], nl.add, 1.0)
    nisa.tensor_scalar(t[..., -4:], t[..., -4:], nl.add, 1.0)
    nisa.tensor_scalar(t[:, ::2], t[:, ::2], nl.add, 2.0)
    nisa.tensor_scalar(t[True and slice(0, 32)], t[:32], nl.add, 2.0)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nl.store(out, t)
    return out


@nki.jit
def loops_(a):
    t = nl.load(a)
    n = [0]

    def body(i):
        n[0] += 1
        nisa.tensor_scalar(t, t, nl.add, 1.0)

    nl.fori_loop(0, 3, body)
    nl.fori_loop(lower=0, upper=6, body_fun=body, step=2)

    @functools.partial(nl.fori_loop, 0, 2)
    def _(i):
        nisa.tensor_scalar(t[:, nl.ds(i, 1)], t[:, nl.ds(i, 1)], nl.multiply, 2.0)

    class Body:
        def __call__(self, i):
            nisa.tensor_scalar(t, t, nl.add, 1.0)

        def m(self, i):
            nisa.tensor_scalar(t, t, nl.add, 1.0)

    nl.fori_loop(0, 2, Body())
    nl.fori_loop(0, 2, Body().m)
    nl.fori_loop(0, 2, lambda i: nisa.tensor_scalar(t, t, nl.add, 1.0))
    print(n)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nl.store(out, t)
    return out
