"""Kernels that only Python itself can evaluate, or that show how they are evaluated."""

import contextlib
import itertools
import logging
from dataclasses import dataclass, field
from typing import Any

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
from nki.isa import tensor_scalar
from nki.language import NkiTensor, add, float32, load, multiply, ndarray, sbuf, store
from nki.typing import tensor

KIND = nl.float32  # outside kernels, this is the dtype's name
WHERE = nl.shared_hbm
OPERATORS = {"add": nl.add, "scale": nl.multiply}
SEEN: list[Any] = []


@dataclass(frozen=True)
class Weights:
    """An immutable object with arrays and other fields."""

    gamma: Any
    layers: list[Any] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Settings(nl.NKIObject):
    """Fields of NKIObject classes may be omitted, also if the class is a dataclass."""

    rows: int
    columns: int
    names: list[str] = field(default_factory=list)
    scale = 2.0


def doubled(x):
    """Return 2x in a new output."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, value=nl.add(nl.load(x), nl.load(x)))
    return out


@nki.jit
def by_operator(x, op):
    """Distinguish operators with `is`, as some kernels do."""
    SEEN.append((op is add, op is nl.add, OPERATORS["add"] is nl.add, op is nl.multiply, repr(op)))
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, value=op(nl.load(x), nl.load(x)))
    return out


@nki.jit
def everything(x, count=3):
    """Use exceptions, generators, context managers, other libraries, and closure variables."""

    @contextlib.contextmanager
    def noted(what):
        SEEN.append(what)
        try:
            yield what
        finally:
            SEEN.append(f"end of {what}")

    def numbers():
        yield from itertools.accumulate(range(1, count + 1))

    with noted("kernel"):
        total = sum(numbers())
    try:
        {}["missing"]  # type: ignore[index]
    except KeyError as error:
        logging.getLogger(__name__).debug("expected: %s", error)
    else:
        raise AssertionError("unreachable")
    factor = np.linalg.norm(np.array([3.0, 4.0])) * np.float32(total)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, value=np.float32(2) * nl.load(x) * factor)
    return out


@nki.jit
def with_names_of_the_host(x: tensor[128, 8]):
    """Use names that the module bound before any kernel was traced."""
    assert isinstance(x, NkiTensor) and isinstance(x, nl.NkiTensor)
    assert x.dtype == KIND and x.dtype == KIND and x.dtype == nl.float32 == float32
    assert {KIND: 1}[x.dtype] == 1
    out = ndarray(x.shape, dtype=KIND, buffer=WHERE)
    assert out.buffer == WHERE and out.buffer == WHERE and {WHERE: 2}[out.buffer] == 2
    tile = ndarray(x.shape, dtype=np.float32, buffer=sbuf)
    assert nl.is_sbuf(tile.buffer) and nl.is_sbuf(sbuf)
    nisa.dma_copy(dst=tile, src=x)
    tensor_scalar(dst=tile, data=tile, op0=OPERATORS["scale"], operand0=np.float32(3))
    nisa.tensor_tensor(dst=tile, data1=tile, data2=load(x), op=add, engine=nisa.engine.vector)
    store(out, multiply(tile, 1.0))
    return out


@nki.jit
def with_weights(x, weights):
    """Return x gamma + the sum of the layers; record the `weights` that the kernel receives."""
    SEEN.append(weights)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    total = nl.multiply(nl.load(x), nl.load(weights.gamma))
    for layer in weights.layers:
        total = nl.add(total, nl.load(layer["bias"]))
    nl.store(out, value=total)
    return out


@nki.jit
def with_constant(x, order="="):
    """Return x + a table that NumPy computes, in the given byte order."""
    table = np.cumsum(np.ones((x.shape[0], x.shape[1]), nl.bfloat16).astype(x.dtype), axis=1)
    table = table.astype(table.dtype.newbyteorder(order))
    bias = nl.load(nl.shared_constant(table))
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, value=nl.add(nl.load(x), bias))
    return out


@nki.jit
def calls_a_kernel(x):
    """Call another kernel, whose body becomes part of this one."""
    return with_constant(x)


@nki.jit
def asserts(x):
    assert x.shape[1] == 7, f"7 columns, not {x.shape[1]}"
    return doubled(x)


class OwnError(Exception):
    """A user-defined exception."""


@nki.jit
def raises(x):
    def inner():
        raise OwnError("inside")

    inner()
    return x


@nki.jit
def refused(x):
    def helper(tile):
        return tile[
            0:1000,
            :,
        ]

    helper(x)
    nl.ndarray((256, 4), dtype=nl.float32, buffer=nl.sbuf).reshape((3,))
    return doubled(x)


@nki.jit
def misspelt(x):
    return nl.ndarrray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)  # type: ignore[attr-defined]


@nki.jit
def forgets(x):
    kept = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(kept, value=nl.load(x))
    return doubled(x)


@nki.jit
def stops(x):
    breakpoint()
    return doubled(x)


@nki.jit
def loops(x, n):
    """Device loops in every form, combined with Python control flow."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    for _ in nl.dynamic_range(3):
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1.0)

    def body(i):
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=10.0)

    nl.fori_loop(0, 2, body)
    left = nl.load(n)
    again = nisa.register_alloc()
    nisa.register_load(again, left)
    while again:
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=100.0)
        nisa.tensor_scalar(dst=left, data=left, op0=nl.subtract, operand0=1)
        nisa.register_load(again, left)
    nl.store(out, value=tile)
    return out


@nki.jit
def leaves(x, how):
    """Leave a device loop before its end."""
    out = doubled(x)
    if how == "break":
        for _ in nl.dynamic_range(3):
            nl.load(x)
            break
    elif how == "return":
        for _ in nl.dynamic_range(3):
            return out
    elif how == "while":
        again = nisa.register_alloc(1)
        for _ in range(2):
            while again:
                nl.load(x)
                break
    elif how == "exception":
        with contextlib.suppress(KeyError):
            nl.fori_loop(0, 3, lambda i: {}[i])
    elif how == "inner":

        def body(i):
            again = nisa.register_alloc(1)
            while again:
                break

        nl.fori_loop(0, 3, body)
    return out


@nki.jit
def decides(x):
    if nisa.register_alloc(1):
        return x
    return doubled(x)


@nki.jit
def cascading(x):
    top = nisa.max8(src=x)  # type: ignore[call-arg]
    part = top[:, 3:4] + 1
    total = nl.exp(part)
    return range(total)


@nki.jit
def of_another_library(x):
    def relu(tiles):
        """Do as a function of PyTorch does with a value that has this method."""
        return type(tiles[0]).__torch_function__(relu, (), (tiles,))

    return relu([nl.load(x)])
