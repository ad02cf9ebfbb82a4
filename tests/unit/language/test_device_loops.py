"""Loops on the device compute the same as unrolled loops: forms, nesting, carried state."""

from typing import Any

import numpy as np
import pytest

from nkic.base.profiles import Profile
from tests.harness.language import Array, run

HEAD = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a, n):
    x = nl.load(a)
    count = nl.load(n)
    one = nl.full((1, 1), 1, dtype=nl.int32)
    reg = nisa.register_alloc()
    nisa.register_load(reg, count)
"""
TAIL = """\
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    nl.store(out, x)
    left = nl.ndarray((1, 1), nl.int32, buffer=nl.shared_hbm)
    nisa.register_store(count, reg)
    nl.store(left, count)
    return out, left
"""
A = np.arange(32, dtype=np.float32).reshape(4, 8)


def outcome(body: str, n: int, **how: Any) -> tuple[Array, int]:
    text = HEAD + "".join(f"    {line}\n" for line in body.strip("\n").splitlines()) + TAIL
    (out, left), _ = run(text, {"a": A, "n": np.array([[n]], np.int32)}, **how)
    return out.array, int(left.array[0, 0])


COUNTED = {
    "fori_loop": """
def body(i):
    nisa.tensor_tensor(dst=x[:, 0:1], data1=x[:, 0:1], data2=x[:, nl.ds(i, 1)], op=nl.add)
nl.fori_loop(1, reg, body, step=2)
""",
    "dynamic_range": """
for i in nl.dynamic_range(1, reg, 2):
    nisa.tensor_tensor(dst=x[:, 0:1], data1=x[:, 0:1], data2=x[:, nl.ds(i, 1)], op=nl.add)
""",
    "while_loop": """
at = nl.full((1, 1), 1, dtype=nl.int32)
rest = nl.full((1, 1), 0, dtype=nl.int32)
two = nl.full((1, 1), 2, dtype=nl.int32)
more = nisa.register_alloc()
def test(r):
    nisa.tensor_tensor(dst=rest, data1=count, data2=at, op=nl.greater)
    nisa.register_load(r, rest)
    return r
test(more)
def body(r):
    i = nisa.register_alloc()
    nisa.register_load(i, at)
    nisa.tensor_tensor(dst=x[:, 0:1], data1=x[:, 0:1], data2=x[:, nl.ds(i, 1)], op=nl.add)
    nisa.tensor_tensor(dst=at, data1=at, data2=two, op=nl.add)
    return test(nisa.register_alloc())
nl.while_loop(more, body)
""",
}


@pytest.mark.parametrize("n", [0, 1, 2, 7, 8])
@pytest.mark.parametrize("form", COUNTED)
def test_counted(form: str, n: int) -> None:
    former = {"profile": Profile.NKI_0_6} if form == "dynamic_range" else {}
    found, left = outcome(COUNTED[form], n, **former)
    wanted = A.copy()
    for i in range(1, n, 2):
        wanted[:, 0] += wanted[:, i]
    assert np.array_equal(found, wanted) and left == n


NESTED = """
def outer(i):
    def inner(j):
        nisa.tensor_tensor(dst=x[:, nl.ds(j, 1)], data1=x[:, nl.ds(j, 1)], data2=x[:, nl.ds(i, 1)],
                           op=nl.add)
    nl.fori_loop(0, reg, inner)
    nisa.tensor_scalar(dst=x, data=x, op0=nl.multiply, operand0=0.5)
nl.fori_loop(2, 5, outer)
"""


@pytest.mark.parametrize("n", [0, 3, 8])
def test_nested_loops_carry_state(n: int) -> None:
    wanted = A.copy()
    for i in range(2, 5):
        for j in range(n):
            wanted[:, j] = wanted[:, j] + wanted[:, i]
        wanted *= np.float32(0.5)
    assert np.array_equal(outcome(NESTED, n)[0], wanted)


WHILE = """
def inner(r):
    nisa.tensor_tensor(dst=inside, data1=inside, data2=one, op=nl.subtract)
    nisa.tensor_scalar(dst=x, data=x, op0=nl.add, operand0=1)
    nisa.register_load(r, inside)
    return r
inside = nl.full((1, 1), 0, dtype=nl.int32)
def outer(r):
    again = nisa.register_alloc()
    nisa.register_store(inside, r)
    nl.while_loop(r, inner)
    nisa.tensor_tensor(dst=count, data1=count, data2=one, op=nl.subtract)
    nisa.register_load(again, count)
    return again
nl.while_loop(reg, outer)
"""


@pytest.mark.parametrize("n", [0, 1, 4])
def test_nested_whiles_leave_the_register_that_they_start_from(n: int) -> None:
    found, left = outcome(WHILE, n)
    assert np.array_equal(found, A + n * (n + 1) // 2)
    assert left == n


def test_a_register_that_is_filled_from_a_tensor() -> None:
    """As NKI 0.2 documents it: created, then loaded."""
    body = """
again = nisa.register_alloc(count)
for i in nl.dynamic_range(0, again, 1):
    nisa.tensor_scalar(dst=x, data=x, op0=nl.add, operand0=1)
"""
    text = HEAD + "".join(f"    {line}\n" for line in body.strip("\n").splitlines()) + TAIL
    arrays = {"a": A, "n": np.array([[3]], np.int32)}
    (out, _), _ = run(text, arrays, profile=Profile.NKI_0_4)
    np.testing.assert_array_equal(out.array, A + 3)
