"""Test remarks on numbers that a run loses: integers in float32, overflow, saturation, rows that
are scattered to one place.
"""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import nkic
from nkic.base.source import SourceFile

Array = NDArray[Any]
TYPES = {"f": "float32", "i": "int32", "u": "uint32", "b": "bfloat16"}
V = 2**24 + 1  # the first integer that float32 does not hold
HEAD = """import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a{more}):
    t = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=a)
"""
TAIL = """    out = nl.ndarray(u.shape, dtype=u.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=u)
    return out
"""


def run(body: str, a: Array, target: str = "trn2", **more: Array) -> tuple[Array, list[str]]:
    """Run a body that makes `u` of the tile `t`; return the result and the remarks."""
    text = HEAD.format(more="".join(f", {name}" for name in more))
    text += "".join(f"    {line}\n" for line in body.strip().split("\n")) + TAIL
    inputs = {"a": a, **more}
    artifact = nkic.compile(SourceFile("k.py", text), inputs=inputs, target=target)
    result = nkic.run(artifact, inputs)
    said = [f"{one.code.number}: {one.message}" for one in result.remarks]
    return np.asarray(result.outputs["output_0"]), said


def tile(dtype: str = "a.dtype", shape: str = "t.shape", name: str = "u") -> str:
    return f"{name} = nl.ndarray({shape}, dtype={dtype}, buffer=nl.sbuf)\n"


def column(value: int, dtype: str = "int32") -> Array:
    a = np.ones((128, 8), dtype)
    a[3, 5] = value
    return a


# ---- integers ----------------------------------------------------------------------------------

IN_FLOAT32 = {
    "tensor_scalar": tile() + "nisa.tensor_scalar(u, t, nl.add, 0)",
    "a comparison": tile() + f"nisa.tensor_scalar(u, t, nl.equal, {V - 1})",
    "tensor_tensor": tile() + "nisa.tensor_tensor(u, t, t, nl.maximum, engine=nisa.engine.vector)",
    "scalar_tensor_tensor": tile()
    + "nisa.scalar_tensor_tensor(u, t, nl.maximum, 0.0, op1=nl.maximum, operand1=t)",
    "tensor_reduce": tile(shape="(128, 1)") + "nisa.tensor_reduce(u, nl.maximum, t, axis=1)",
    "activation": tile() + "nisa.activation(u, op=nl.copy, data=t)",
    "tensor_tensor_scan": tile()
    + "nisa.tensor_tensor_scan(u, t, t, initial=0.0, op0=nl.maximum, op1=nl.maximum)",
    "max8": tile() + "nisa.max8(u, t)",
    "tensor_partition_reduce": tile(shape="(1, 8)")
    + "nisa.tensor_partition_reduce(u, nl.maximum, t)",
    "a copy to float32": tile("nl.float32") + "nisa.tensor_copy(u, t)",
    "a transfer to float32": tile("nl.float32") + "nisa.dma_copy(u, t)",
    "a copy by the scalar engine": tile() + "nisa.tensor_copy(u, t, engine=nisa.engine.scalar)",
}
EXACT = {
    "a copy": tile() + "nisa.tensor_copy(u, t)",
    "a transfer": tile() + "nisa.dma_copy(u, t)",
    "gpsimd": tile() + "nisa.tensor_tensor(u, t, t, nl.add)",
    "bits": tile() + "nisa.tensor_scalar(u, t, nl.bitwise_and, 0xFFFF)",
    "addresses": tile() + "nisa.tensor_scalar(u, t, nl.add, t[:, 0:1])",
    "a copy to bfloat16, which rounds anyway": tile("nl.bfloat16") + "nisa.tensor_copy(u, t)",
}


@pytest.mark.parametrize("body", IN_FLOAT32.values(), ids=IN_FLOAT32)
def test_an_integer_that_float32_rounds(body: str) -> None:
    (said,) = run(body, column(V))[1]
    assert said.startswith("NKI0708") and f"reads {V} as {V - 1}, at [3, 5] of `" in said
    for value in (V - 1, 1 - V, V + 1, 0):
        assert run(body, column(value))[1] == []


@pytest.mark.parametrize("body", EXACT.values(), ids=EXACT)
def test_integers_that_keep_their_bits(body: str) -> None:
    assert run(body, column(V))[1] == []


@pytest.mark.parametrize(
    ("value", "scalar", "op", "is_exact"),
    [
        (V - 2, 2, "add", False),  # 2**24 + 1
        (V - 2, 3, "add", True),
        (2**23, 2**23, "add", True),
        (12_345, 2048, "multiply", True),  # an address: few digits, and zeros
        (12_345, 4099, "multiply", False),
        (5, 7, "multiply", True),
        (-(V - 2), 2, "subtract", False),
    ],
)
def test_a_result_that_float32_rounds(value: int, scalar: int, op: str, is_exact: bool) -> None:
    in_place = f"nisa.tensor_scalar(t, t, nl.{op}, {scalar})\nu = t"
    for body in (tile() + f"nisa.tensor_scalar(u, t, nl.{op}, {scalar})", in_place):
        found, said = run(body, column(value))
        exact = {"add": value + scalar, "subtract": value - scalar, "multiply": value * scalar}[op]
        assert bool(found[3, 5] == exact) is is_exact
        assert [one[:7] for one in said] == ["NKI0708"] * (not is_exact)
        assert all("tensor_scalar computes" in one and "at [3, 5] of `" in one for one in said)


def test_the_remark_counts_elements() -> None:
    (said,) = run(IN_FLOAT32["tensor_scalar"], np.full((128, 8), V, "int32"))[1]
    assert said.endswith("at [0, 0] of `data`, and 1,023 more")


# ---- overflow and NaN --------------------------------------------------------------------------

MADE = {
    "exp": (tile() + "nisa.activation(u, op=nl.exp, data=t)", 100.0, "inf"),
    "square": (tile() + "nisa.tensor_tensor(u, t, t, nl.multiply)", 1e30, "inf"),
    "in place": ("nisa.tensor_tensor(t, t, t, nl.multiply)\nu = t", 1e30, "inf"),
    "division by zero": (tile() + "nisa.reciprocal(u, t)", 0.0, "inf"),
    "a sum": (
        tile(shape="(128, 1)") + "nisa.tensor_scalar(t, t, nl.multiply, 1e37)\n"
        "nisa.tensor_reduce(u, nl.add, t, axis=1)",
        33.0,
        "inf",
    ),
    "float16": (tile("nl.float16") + "nisa.tensor_copy(u, t)", 1e5, "100000 as inf in float16"),
    "float8": (tile("nl.float8_e5m2") + "nisa.tensor_copy(u, t)", 1e5, "in float8_e5m2"),
}


@pytest.mark.parametrize(("body", "value", "text"), MADE.values(), ids=MADE)
def test_numbers_that_become_infinite(body: str, value: float, text: str) -> None:
    if "float8" in body:
        body += "\nw = u\n" + tile("nl.float32") + "nisa.tensor_copy(u, w)"
    a = column(1, "float32")
    a[3, 5] = value
    found, said = run(body, a)
    (one,) = said
    assert one.startswith("NKI0709") and text in one and "at [3, " in one
    assert not np.isfinite(found.astype(np.float32)[3]).all()
    assert run(body, column(2, "float32"))[1] == []


def test_nan_of_numbers_and_nan_of_nan() -> None:
    body = tile() + "nisa.tensor_tensor(u, t, t, nl.subtract)"
    a = column(1, "float32")
    a[0, 0], a[0, 1] = np.nan, 3e38
    assert run(body, a)[1] == []  # a NaN that was there before
    a[3, 5] = np.inf
    assert run(body, a)[1] == []
    body = tile() + "nisa.tensor_scalar(u, t, nl.multiply, 2.0, op1=nl.subtract, operand1=1e38)"
    (said,) = run(body, a)[1]
    assert "tensor_scalar computes inf of numbers, at [0, 1] of `dst`" in said


def test_elements_without_a_value_do_not_count() -> None:
    """Rows that nothing wrote are exponentiated too, and not used."""
    body = tile() + (
        "big = nl.ndarray(t.shape, dtype=a.dtype, buffer=nl.sbuf)\n"
        "nisa.tensor_copy(big[0:64], t[0:64])\n"
        "nisa.activation(u, op=nl.exp, data=big)\n"
        "nisa.tensor_copy(u[64:128], t[64:128])"
    )
    assert run(body, column(1, "float32"))[1] == []


# ---- saturation --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "value", "text"),
    [
        ("int8", 300.0, "stores 300 as 127 in int8, whose largest number is 127"),
        ("uint8", -1.0, "stores -1 as 0 in uint8"),
        ("int32", 3e9, "stores 3e+09 as 2.1474836e+09 in int32"),
        ("int16", -40_000.0, "stores -40000 as -32768 in int16"),
    ],
)
def test_numbers_beyond_a_type(dtype: str, value: float, text: str) -> None:
    a = column(1, "float32")
    body = tile(f"nl.{dtype}") + "nisa.tensor_copy(u, t)"
    assert run(body, a)[1] == []
    a[3, 5] = value
    (said,) = run(body, a)[1]
    assert said.startswith("NKI0710") and text in said and said.endswith("at [3, 5] of `dst`")


def test_a_negative_integer_as_an_unsigned_one() -> None:
    body = tile("nl.uint32") + "nisa.tensor_copy(u, t)"
    assert "stores -1 as 0 in uint32" in run(body, column(-1))[1][0]
    assert run("u = t.view(nl.uint32)", column(-1))[1] == []


# ---- rows that are scattered to one place ------------------------------------------------------

SCATTER = """
index = nl.ndarray((128, 1), dtype=nl.int32, buffer=nl.sbuf)
nisa.dma_copy(dst=index, src=at)
u = nl.ndarray((128, 8), dtype=a.dtype, buffer=nl.hbm)
nisa.dma_copy(dst=u, src=t)
nisa.dma_copy(dst=u.ap([[8, 128], [1, 8]], vector_offset=index, indirect_dim=0), src=t)
"""


def test_rows_with_one_place() -> None:
    at = np.arange(128, dtype=np.int32)[:, None]
    a = np.arange(1024, dtype=np.float32).reshape(128, 8)
    assert run(SCATTER, a, at=at[::-1].copy())[1] == []
    at[7], at[9] = 3, 3
    (said,) = run(SCATTER, a, at=at)[1]
    assert said.startswith("NKI0707: dma_copy writes the place of index 3 of `u` again, for row 7")
    a[[7, 9]] = a[3]  # equal rows: it does not matter which remains
    assert run(SCATTER, a, at=at)[1] == []


# ---- registers ---------------------------------------------------------------------------------


def test_a_register_that_a_loop_may_have_set() -> None:
    body = """
c = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
nisa.dma_copy(dst=c, src=n)
turns = nisa.register_alloc()
nisa.register_load(turns, c)
r = nisa.register_alloc()
nl.fori_loop(0, turns, lambda i: nisa.register_move(r, i))
u = nl.ndarray((4, 8), dtype=a.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=u, src=a.ap([[8, 4], [1, 8]], scalar_offset=r, indirect_dim=0))
"""
    a = np.arange(1024, dtype=np.float32).reshape(128, 8)
    found, _ = run(body, a, n=np.array([[3]], np.int32))
    assert np.array_equal(found, a[2:6])
    with pytest.raises(nkic.RunError, match=r"k.py:17:5.*NKI0901.*a register is read before"):
        run(body, a, n=np.array([[0]], np.int32))
