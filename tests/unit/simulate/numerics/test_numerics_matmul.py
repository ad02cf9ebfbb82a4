"""Test the tensor engine's product: its definition, on any BLAS, processor and number of
threads.
"""

import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nkic.machine import codecs, dtypes
from nkic.simulate.numerics import matmul as module
from nkic.simulate.numerics import quiet
from nkic.simulate.numerics.matmul import matmul

Floats = NDArray[np.float32]


def operands(rows: int, columns: int, size: int) -> tuple[Floats, Floats]:
    """Draw factors of very different sizes, and for every product its negative at a random other
    row.

    The remainder of each sum is the rounding in float64, which shows the order of addition; a
    float32 of an ordinary sum would hide it.
    """
    rng = np.random.default_rng(rows * columns + size)
    half = rows // 2
    order = rng.permutation(rows)
    stationary, moving = (
        np.ldexp(rng.standard_normal((rows, n)), rng.integers(-20, 20, (rows, n))).astype(
            np.float32
        )
        for n in (columns, size)
    )
    stationary[order[:half]] = -stationary[order[half : 2 * half]]
    moving[order[:half]] = moving[order[half : 2 * half]]
    if rows % 2 and rows > 1:
        stationary[order[-1]] = 0
    return stationary, moving


def by_definition(stationary: Floats, moving: Floats) -> Floats:
    total = np.zeros((stationary.shape[1], moving.shape[1]))
    for start in range(0, len(stationary), 128):
        slab = np.zeros_like(total)
        for row in range(start, min(start + 128, len(stationary))):
            slab += np.outer(stationary[row].astype(float), moving[row].astype(float))
        total = slab if start == 0 else total + slab
    return total.astype(np.float32)


SHAPES = [(128, 128, 512), (1, 1, 1), (5, 3, 7), (128, 1, 512), (128, 128, 1), (33, 65, 100)]
SLABS = [(256, 128, 64), (200, 7, 9), (512, 32, 48)]


def test_these_operands_show_the_order() -> None:
    stationary, moving = operands(64, 32, 48)
    backwards = by_definition(stationary[::-1], moving[::-1])
    assert (by_definition(stationary, moving) != backwards).mean() > 0.8


@pytest.mark.parametrize("shape", SHAPES + SLABS, ids=str)
@pytest.mark.parametrize("accumulate", [False, True])
def test_definition(shape: tuple[int, int, int], accumulate: bool) -> None:
    rows, columns, size = shape
    stationary, moving = operands(rows, columns, size)
    before = np.random.default_rng(3).standard_normal((columns, size)).astype(np.float32) * 1e-9
    out = before.copy()
    matmul(stationary, moving, out, accumulate)
    expected = by_definition(stationary, moving)
    np.testing.assert_array_equal(out, before + expected if accumulate else expected)


def test_a_blas_that_adds_in_another_order_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    stationary, moving = operands(64, 48, 33)
    fast, slow = np.empty((48, 33), np.float32), np.empty((48, 33), np.float32)
    matmul(stationary, moving, fast)
    used: list[str] = []

    def backwards(a: NDArray[np.float64], b: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        used.append("blas")
        np.copyto(out, np.einsum("mk,kn->mn", a[:, ::-1], b[::-1]))

    monkeypatch.setattr(np, "matmul", backwards)
    module._way.cache_clear()
    try:
        matmul(stationary, moving, slow)
        assert used == ["blas"]  # tried once, then abandoned
    finally:
        module._way.cache_clear()
    np.testing.assert_array_equal(slow, fast)


def test_zeros_that_fill_up_do_not_meet_infinities() -> None:
    stationary, moving = np.ones((3, 5), np.float32), np.ones((3, 7), np.float32)
    stationary[1, 2] = np.inf
    moving[0, 3] = np.nan
    out = np.empty((5, 7), np.float32)
    with quiet():
        matmul(stationary, moving, out)
    expected = np.full((5, 7), 3, np.float32)
    expected[2] = np.inf
    expected[:, 3] = np.nan
    np.testing.assert_array_equal(out, expected)


def test_strided_operands() -> None:
    wide_left, wide_right = operands(64, 40, 200)
    stationary, moving = wide_left[:, ::3], wide_right[:, 5::2]
    out = np.empty((stationary.shape[1], 2 * moving.shape[1]), np.float32)[:, ::2]
    matmul(stationary, moving, out)
    np.testing.assert_array_equal(out, by_definition(stationary, moving))


DIGEST = """
import hashlib, numpy as np
from tests.unit.simulate.numerics.test_numerics_matmul import SHAPES, SLABS, operands, rounded
from nkic.simulate.numerics import quiet
from nkic.simulate.numerics.matmul import matmul
from nkic.simulate.numerics.reduction import reduce
digest = hashlib.sha256()
for rows, columns, size in SHAPES + SLABS + [(128, 96, 512), (128, 31, 384)]:
    for prepare in (lambda x: x, rounded):
        stationary, moving = map(prepare, operands(rows, columns, size))
        out, total = np.empty((columns, size), np.float32), np.empty(columns, np.float32)
        matmul(stationary, moving, out)
        digest.update(out.tobytes())
        with quiet():
            for op in ("add", "multiply", "maximum"):
                reduce(op, stationary.T, total)  # sums that cancel
                digest.update(total.tobytes())
print(digest.hexdigest())
"""


def rounded(values: Floats) -> Floats:
    return codecs.round_to_grid(values, dtypes.BFLOAT16, values)


def test_threads_and_processor_do_not_matter() -> None:
    """OpenBLAS is told to run its code for other processors."""
    settings = [
        {"OPENBLAS_NUM_THREADS": "1"},
        {"OPENBLAS_NUM_THREADS": "2"},
        {"OPENBLAS_NUM_THREADS": "2", "OPENBLAS_CORETYPE": "Haswell"},
        {"OPENBLAS_NUM_THREADS": "1", "OPENBLAS_CORETYPE": "Prescott"},
        {"NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL"},
    ]
    digests = [digest_under(more) for more in settings]
    assert len(set(digests)) == 1, digests


WAY = """
from nkic.simulate.numerics.matmul import _way, np
print(_way(np.dtype(np.float32), 1).__name__)
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="OpenBLAS's code for x86-64")
@pytest.mark.parametrize(
    ("processor", "way"),
    [("SkylakeX", "_blas_product"), ("Haswell", "_inside"), ("Nehalem", "_fused_loop")],
)
def test_processors_with_fused_products_need_no_loop(processor: str, way: str) -> None:
    """On AMD's processors and others that run the code for Haswell, the loop took 130 times as
    long as BLAS.
    """
    if processor == "SkylakeX" and "avx512f" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor does not have AVX-512")
    assert (
        digest_under({"OPENBLAS_CORETYPE": processor, "OPENBLAS_NUM_THREADS": "1"}, WAY).strip()
        == way
    )


def digest_under(settings: dict[str, str], script: str = DIGEST) -> str:
    """Return the output of a script in a separate process."""
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        env=os.environ | settings,
        cwd=Path(__file__).resolve().parents[4],
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout[:64]


@pytest.mark.parametrize("order", ["exact", "float32"])
@pytest.mark.parametrize("accumulate", [False, True])
def test_a_product_with_the_identity_is_the_other_factor_turned(
    order: Any, accumulate: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stationary = operands(64, 48, 64)[0]
    stationary[3, 5:9] = [-0.0, 1e-42, 3e38, 0.0]
    before = operands(64, 48, 64)[1][:48].copy()
    before[5, 3] = -0.0
    fast, slow = before.copy(), before.copy()
    matmul(stationary, np.eye(64, dtype=np.float32), fast, accumulate, order)
    monkeypatch.setattr(module, "_is_identity", lambda values: False)
    matmul(stationary, np.eye(64, dtype=np.float32), slow, accumulate, order)
    np.testing.assert_array_equal(fast.view(np.uint32), slow.view(np.uint32))


def test_what_is_not_finite_spreads_through_a_product_with_the_identity() -> None:
    stationary, out = np.zeros((4, 4), np.float32), np.empty((4, 4), np.float32)
    stationary[1, 2] = np.inf
    with quiet():
        matmul(stationary, np.eye(4, dtype=np.float32), out)
    assert np.isnan(out[2]).tolist() == [True, False, True, True]
    assert out[2, 1] == np.inf


def test_factors_with_gaps_between_rows_and_elements() -> None:
    stationary, moving = operands(64, 32, 96)
    wanted, found = np.empty((32, 48), np.float32), np.empty((32, 48), np.float32)
    for half in (moving[:, 48:], moving[:, ::2]):
        matmul(stationary, half.copy(), wanted, order="float32")
        matmul(stationary, half, found, order="float32")
        np.testing.assert_array_equal(found, wanted)


def test_results_with_gaps_between_rows_and_elements() -> None:
    stationary, moving = operands(64, 32, 48)
    wanted = np.empty((32, 48), np.float32)
    matmul(stationary, moving, wanted, order="float32")
    for out in (np.zeros((32, 96), np.float32)[:, 48:], np.zeros((32, 96), np.float32)[:, ::2]):
        matmul(stationary, moving, out, order="float32")
        np.testing.assert_array_equal(out, wanted)
        matmul(stationary, moving, out, accumulate=True, order="float32")
        np.testing.assert_array_equal(out, wanted + wanted)


def test_a_factor_times_itself() -> None:
    """NumPy multiplies an array by its own transpose in another way."""
    both = operands(64, 32, 32)[0]
    wanted, found = np.empty((32, 32), np.float32), np.empty((32, 32), np.float32)
    matmul(both, both.copy(), wanted, order="float32")
    matmul(both, both, found, order="float32")
    np.testing.assert_array_equal(found, wanted)
