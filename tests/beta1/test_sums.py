"""Matmuls accumulated into tiles under masks that are not bounds, compared with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import nkic
from nkic.base.source import SourceFile
from tests.migrate.test_cases import Job

HEAD = """import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a, b):
    out = nl.ndarray((64, 96), dtype=nl.float32, buffer=nl.shared_hbm)
    i_p, i_f = nl.mgrid[0:64, 0:96]
    below = i_p >= i_f
    total = nl.{begun}((64, 96), dtype=nl.float32, buffer=nl.psum)
"""
BELOW = np.tril(np.ones((64, 96), bool))


def kernel_of(begun: str, *body: str) -> str:
    lines = "".join(f"    {line}\n" for line in body)
    return HEAD.format(begun=begun) + lines + "    nl.store(out, nl.copy(total))\n    return out\n"


def compared(begun: str, *body: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the output of a kernel, and the product of its arguments."""
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((128, 64), (128, 96)))
    source = SourceFile("k.py", kernel_of(begun, *body))
    made = nkic.compile(source, inputs={"a": a, "b": b})
    return np.asarray(nkic.run(made, {"a": a, "b": b}).outputs["output_0"]), a.T @ b


PRODUCT = "total[i_p, i_f] += nl.matmul(nl.load(a), nl.load(b), transpose_x=True"


@pytest.mark.parametrize("order", [(", mask=below)", ")"), (")", ", mask=below)")])
@pytest.mark.filterwarnings("error")
def test_what_a_mask_hides_keeps_its_sum(order: tuple[str, str]) -> None:
    found, product = compared("zeros", *(PRODUCT + end for end in order), PRODUCT + ")")
    assert (found == np.where(BELOW, 3, 2) * product).all()


def test_a_bound_beside_it_is_honoured() -> None:
    found, product = compared("zeros", PRODUCT + ")", PRODUCT + ", mask=below & (i_p < 40))")
    seen = BELOW & (np.arange(64) < 40)[:, None]
    assert (found == np.where(seen, 2, 1) * product).all()


def test_without_zeros_the_first_product_is_the_sum() -> None:
    found, product = compared(
        "ndarray",
        PRODUCT + ", mask=below)",
        PRODUCT + ", mask=below)",
        "above = nl.full((64, 96), 7, dtype=nl.float32)",
        "total[i_p, i_f] = nl.copy(above[i_p, i_f], mask=(i_p < i_f))",
    )
    assert (found == np.where(BELOW, 2 * product, 7)).all()


STEPS = {
    "P": "total[...] = nl.matmul(nl.load(a), nl.load(b), transpose_x=True)",
    "+": "total += nl.matmul(nl.load(a), nl.load(b), transpose_x=True)",
    "0": "total[...] = 0",
    "7": "total[...] = nl.full((64, 96), 7, dtype=nl.float32)",
    "h": "total[...] = nl.multiply(total, 0.5)",
    "l": "total[:, 0:48] = nl.matmul(nl.load(a), nl.load(b[:, 0:48]), transpose_x=True)",
}


def body_of(steps: str, loop: bool) -> list[str]:
    body = [STEPS[step] for step in steps]
    return ["for n in nl.sequential_range(2):", *(f"    {each}" for each in body)] if loop else body


CASES = [
    *("PP", "P+P", "7P", "7PP+", "7+", "7++", "Ph+", "0+", "0++"),
    *("P0+", "P+0++", "PhP", "Pl", "P+l", "0h+", "7h+P+h+"),
]


@pytest.mark.parametrize("steps", CASES)
@pytest.mark.parametrize("loop", [False, True])
@pytest.mark.filterwarnings("error:.*NKI0701")
def test_an_assignment_overwrites_and_a_sum_adds_to_whatever_was_written(
    steps: str, loop: bool
) -> None:
    """A matmul whose `accumulate` is left open would add to an assigned product, and overwrite what
    the vector engine wrote.
    """
    found, product = compared("ndarray", *body_of(steps, loop))
    total = np.zeros_like(product)
    for step in steps * (2 if loop else 1):
        total = {
            "P": product,
            "+": total + product,
            "0": 0 * product,
            "7": 0 * product + 7,
            "h": total / 2,
            "l": np.hstack([product[:, :48], total[:, 48:]]),
        }[step]
    np.testing.assert_array_equal(found, total)


@pytest.mark.parametrize("steps", CASES)
@pytest.mark.parametrize("loop", [False, True])
def test_the_migrated_kernel_overwrites_and_adds_likewise(steps: str, loop: bool) -> None:
    types = '# /// nkic\n# [args]\n# a = "float32[128, 64]"\n# b = "float32[128, 96]"\n# ///\n'
    job = Job(types + kernel_of("ndarray", *body_of(steps, loop)))
    proof = job.proof()
    assert not job.made.left
    assert {one.verdict for one in proof.findings} == {"bits"}, (job.made.text, proof)
