"""Kernels, and the values that tests call them with. The tests import the module and nkic reads
it. Its imports from `nki` are used when Python itself evaluates the kernels.
"""

import dataclasses
import enum
import functools
from typing import Any, NamedTuple

try:
    import nki.collectives as ncc
    import nki.isa as nisa
    import nki.language as nl
except ImportError:  # the tests run without any package called nki
    pass

SCALE = 2.0


class Mode(enum.Enum):
    """The operation that combines two tensors."""

    ADD = 1
    SCALE = 2


@dataclasses.dataclass
class Params:
    """A dataclass with a number, tensors and a mode."""

    gamma: Any
    factor: float = 1.0
    mode: Mode = Mode.ADD

    def scaled(self, number):
        return number * self.factor


class Pair(NamedTuple):
    """Two tensors."""

    first: Any
    second: Any


class Plain:
    """A class that the compiler creates without `__init__`, which would fail in a kernel."""

    def __init__(self):
        self.rows = open  # host code
        self.rows = 3  # type: ignore[assignment]


def scaled(x, factor=1.0):
    """Return x times a number: the smallest kernel."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=factor)
    nisa.dma_copy(dst=out, src=tile)
    return out


def by_global(x):
    return scaled(x, SCALE)


def sum_of(tensors):
    """Return the sum of the tensors of a container."""
    first = tensors[0]
    out = nl.ndarray(first.shape, dtype=first.dtype, buffer=nl.shared_hbm)
    total = nl.ndarray(first.shape, dtype=first.dtype, buffer=nl.sbuf)
    nisa.memset(dst=total, value=0.0)
    for tensor in tensors:
        tile = nl.ndarray(first.shape, dtype=first.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=tensor)
        nisa.tensor_tensor(dst=total, data1=total, data2=tile, op=nl.add)
    nisa.dma_copy(dst=out, src=total)
    return out


def with_params(x, params):
    if params.mode == Mode.SCALE:
        return scaled(x, params.scaled(2.0))
    return sum_of([x, params.gamma])


def with_function(x, function):
    return scaled(x, function(3.0))


def two(x, plain):
    return scaled(x, plain.rows), scaled(x, 10.0)


def in_place(x, n=1.0):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=n)
    nisa.dma_copy(dst=x, src=tile)


def half_written(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t[0:64], src=x[0:64])
    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=1.0)
    nisa.dma_copy(dst=out, src=t)
    return out


def double(number):
    return number * 2


def times(number, by):
    return number * by


HALF = functools.partial(times, by=0.5)


def maker(factor):
    """Return a kernel that closes over a number and a function."""

    def twice(number):
        return number * 2

    def kernel(x, plus=factor):
        return scaled(x, twice(factor) + plus)

    return kernel


def combined(x, y, op, buffer, dtype):
    """Return op(x, y) as dtype, computed in tiles of `buffer`."""
    out = nl.ndarray(x.shape, dtype=dtype, buffer=nl.shared_hbm)
    tiles = [nl.ndarray(x.shape, dtype=x.dtype, buffer=buffer) for _ in range(2)]
    nisa.dma_copy(dst=tiles[0], src=x)
    nisa.dma_copy(dst=tiles[1], src=y)
    result = nl.ndarray(x.shape, dtype=dtype, buffer=buffer)
    nisa.tensor_tensor(dst=result, data1=tiles[0], data2=tiles[1], op=op)
    nisa.dma_copy(dst=out, src=result)
    return out


def by_dtype(x, dtype):
    assert dtype in {nl.float16: 1}, "its name finds a dtype in a dictionary"
    return scaled(x, 2.0 if dtype == nl.float16 else 3.0)


def reshaped(x):
    """Return a reshape of the whole tensor; every instance writes its own rows."""
    rows = x.shape[0] // 2
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((rows, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
    first = nl.program_id(0) * rows
    nisa.dma_copy(dst=tile, src=x[first : first + rows, :])
    nisa.dma_copy(dst=out[first : first + rows, :], src=tile)
    return out.reshape((x.shape[0] * x.shape[1],))


def shared_among(x, group):
    src = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    dst = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=src, src=x)
    ncc.all_reduce([src], [dst], group, nl.add)
    return dst


def shared(x):
    """Return the sum over two ranks."""
    src = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    dst = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=src, src=x)
    ncc.all_reduce([src], [dst], ncc.ReplicaGroup([[0, 1]]), nl.add)
    return dst


def product(x, y):
    held = [nl.ndarray(each.shape, dtype=each.dtype, buffer=nl.sbuf) for each in (x, y)]
    for tile, each in zip(held, (x, y), strict=True):
        nisa.dma_copy(dst=tile, src=each)
    total = nl.ndarray((x.shape[1], y.shape[1]), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=total, stationary=held[0], moving=held[1])
    result = nl.ndarray(total.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=total)
    out = nl.ndarray(total.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=result)
    return out


def logarithm(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.log(nl.load(x)))
    return out


def unwritten_output(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out[:64], nl.load(x)[:64])
    return out
