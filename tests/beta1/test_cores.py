"""Communication between kernel instances on two cores, compared with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import nkic
from nkic.base.source import SourceFile

HEAD = """import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a):
    out = nl.ndarray(a.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    core = nl.program_id(0)
    i_p, i_f = nl.mgrid[0:128, 0:64]
    t = nl.load(a[core])
"""
ROW, COLUMN = np.mgrid[0:128, 0:64]


def given() -> NDArray[Any]:
    return np.random.default_rng(3).integers(-9, 9, (2, 128, 64)).astype(np.float32)


def ran(*body: str, lnc: int = 2) -> NDArray[Any]:
    """Return the output of a kernel."""
    text = HEAD + "".join(f"    {line}\n" for line in body) + "    return out\n"
    a = given()
    made = nkic.compile(SourceFile("k.py", text), inputs={"a": a}, lnc=lnc)
    return np.asarray(nkic.run(made, {"a": a}).outputs["output_0"])


@pytest.mark.parametrize("axes", ["0", "[0]", "(core,)", "[core]"])
@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "minimum"])
def test_both_cores_have_the_result(name: str, axes: str) -> None:
    found = ran(f"nl.store(out[core], nl.all_reduce(t, op=np.{name}, program_axes={axes}))")
    wanted = getattr(np, name)(*given())
    assert (found == wanted).all() and found.shape == (2, 128, 64)


@pytest.mark.parametrize(
    ("mask", "left"),
    [
        ("(i_p < 70) & (i_f < 50)", (ROW < 70) & (COLUMN < 50)),
        ("(i_p >= 33)", ROW >= 33),
        ("(i_p + i_f < 90)", ROW + COLUMN < 90),
    ],
)
def test_a_mask_keeps_the_rest(mask: str, left: NDArray[np.bool_]) -> None:
    """Each core has its own predicate for a mask that is not a bound."""
    found = ran(
        "r = nl.full((128, 64), 5, dtype=nl.float32)",
        f"r[i_p, i_f] = nl.all_reduce(t[i_p, i_f], np.add, [core], mask={mask})",
        f"r[i_p, i_f] = nl.add(r[i_p, i_f], 1, mask={mask})",
        "nl.store(out[core], r)",
    )
    assert (found == np.where(left, given().sum(axis=0) + 1, 5)).all()


@pytest.mark.parametrize("mask", ["(i_p + i_f < 90)", "(i_p >= 33)"])
def test_an_operator_without_a_neutral_number_takes_boxes(mask: str) -> None:
    call = f"nl.all_reduce(t[i_p, i_f], np.logical_or, [core], mask={mask})"
    with pytest.raises(nkic.CompileError, match="with logical_or does not bound"):
        ran(f"nl.store(out[core], {call})")


def test_what_a_matmul_made_is_summed_in_another_type() -> None:
    found = ran(
        "ones = nl.full((128, 128), 1, dtype=nl.float32)",
        "total = nl.matmul(ones, t)",
        "nl.store(out[core], nl.all_reduce(total, np.add, 0, dtype=nl.bfloat16))",
    )
    exact = given().sum(axis=(0, 1))
    assert (np.abs(found - exact) <= np.abs(exact) / 128).all()
    assert (found != exact).any()


def test_sums_in_a_loop_meet_in_order() -> None:
    found = ran(
        "for i in nl.sequential_range(3):",
        "    t[...] = nl.all_reduce(nl.add(t, core), np.add, [core])",
        "nl.store(out[core], t)",
    )
    wanted = given()
    for _ in range(3):
        wanted = np.stack([wanted[0] + wanted[1] + 1] * 2)
    assert (found == wanted).all()


def test_one_instance_has_its_own() -> None:
    found = ran(
        "nl.store(out[0], nl.all_reduce(t, np.add, 0))",
        "nl.store(out[1], nl.all_reduce(nl.load(a[1]), np.add, [core]))",
        lnc=1,
    )
    assert (found == given()).all()


def test_a_mask_hides_a_block_that_is_not_there() -> None:
    found = ran(
        "sums = nl.zeros((3, nl.par_dim(128), 64), dtype=nl.float32, buffer=nl.psum)",
        "ones = nl.full((128, 128), 1, dtype=nl.float32)",
        "r = nl.full((128, 64), 0, dtype=nl.float32)",
        "for i in nl.affine_range(2):",
        "    for j in nl.affine_range(2):",
        "        sums[2 * i + j] += nl.matmul(ones, t, mask=(2 * i + j < 3))",
        "        part = nl.multiply(sums[2 * i + j], 2, mask=(2 * i + j < 3))",
        "        r[...] = nl.add(r, part, mask=(2 * i + j < 3))",
        "nl.store(out[core], r)",
    )
    assert (found == 6 * given().sum(axis=1, keepdims=True)).all()
