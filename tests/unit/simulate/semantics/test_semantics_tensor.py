"""Test the tensor engine's rows: products, accumulation, double rows, transposes."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.harness.instruction import Tile, call, run, run_one, tile
from tests.harness.reference import loaded, same, single, stored

Array = NDArray[Any]
RNG = np.random.default_rng(5)
# Small integers: every sum of products is exact, in any order.
A = RNG.integers(-4, 5, (16, 12)).astype(np.float32)
B = RNG.integers(-4, 5, (16, 20)).astype(np.float32)


def psum(rows: int, columns: int, **more: Any) -> Tile:
    return tile((rows, columns), buffer="psum", **more)


@pytest.mark.parametrize("left", ["float32", "bfloat16", "float16", "float8_e4m3", "tfloat32"])
@pytest.mark.parametrize("right", ["float32", "bfloat16", "float8_e5m2"])
def test_nc_matmul_is_stationary_transposed_times_moving(left: str, right: str) -> None:
    """Operands may be views with gaps, of different types."""
    if (left in ("float32", "tfloat32")) != (right == "float32"):
        return  # 32-bit types only with each other
    a, b = tile(A, dtype=left, steps=(2,), offset=1), tile(B, dtype=right, steps=(-1,))
    found = run_one("nc_matmul", dst=psum(12, 20, steps=(2,)), stationary=a, moving=b)
    same(found, stored(A.T @ B, "float32"))


def test_operands_of_three_dimensions() -> None:
    """Release notes of NKI 0.4.0 and 0.5.0: with more than two dimensions all elements count."""
    a, b = tile(A.reshape(16, 3, 4), steps=(7, 1)), tile(B.reshape(16, 5, 2, 2), steps=(9, 4, 1))
    dst = tile((12, 5, 4), buffer="psum", steps=(6, 1))
    found = run_one("nc_matmul", dst=dst, stationary=a, moving=b)
    assert np.array_equal(found.reshape(12, 20), A.T @ B)


def test_products_are_exact_and_the_sum_is_rounded_once() -> None:
    """2^24 + 1 - 2^24 is 1: partial sums have more bits than float32."""
    a = tile(np.array([[1.0], [1.0], [1.0]], np.float32))
    b = tile(np.array([[2.0**24], [1.0], [-(2.0**24)]], np.float32))
    assert run_one("nc_matmul", dst=psum(1, 1), stationary=a, moving=b).tolist() == [[1.0]]
    values = RNG.standard_normal((16, 12)).astype(np.float32)
    found = run_one("nc_matmul", dst=psum(12, 20), stationary=tile(values), moving=tile(B))
    np.testing.assert_array_equal(found, (values.astype(np.float64).T @ B).astype(np.float32))


def test_accumulate_adds_to_what_is_there_and_overwrites_if_not() -> None:
    a, b, dst = tile(A), tile(B), psum(12, 20)
    steps = [
        call("nc_matmul", dst=dst, stationary=a, moving=b, accumulate=flag)
        for flag in (False, True, True, False, True)
    ]
    for count, times in ((1, 1), (2, 2), (3, 3), (4, 1), (5, 2)):
        assert np.array_equal(run(steps[:count])[dst], times * (A.T @ B))


def test_accumulate_none_overwrites_first_and_adds_then() -> None:
    a, b, dst = tile(A), tile(B), psum(12, 20)
    step = call("nc_matmul", dst=dst, stationary=a, moving=b, accumulate=None)
    assert np.array_equal(run([step] * 3)[dst], 3 * (A.T @ B))


def test_overlapping_places_in_psum_accumulate() -> None:
    """Release notes of NKI 0.6.0: the convolution pattern, windows that move by one column."""
    a, b, row = tile(A), tile(B[:, :4]), psum(12, 8)
    windows = [row.over(offset=at, dims=((1, 4),)) for at in (0, 1, 2)]
    zero = tile(np.zeros((16, 8), np.float32))
    outcome = run(
        [
            call("nc_matmul", dst=row, stationary=a, moving=zero, accumulate=False),
            *(call("nc_matmul", dst=w, stationary=a, moving=b, accumulate=True) for w in windows),
        ]
    )
    expected = np.zeros((12, 8), np.float32)
    for at in (0, 1, 2):
        expected[:, at : at + 4] += A.T @ B[:, :4]
    assert np.array_equal(outcome[row], expected)


@pytest.mark.parametrize(
    ("dtype", "big", "target"), [("float32", 2.0**24, "trn2"), ("bfloat16", 256.0, "trn3")]
)
def test_the_sum_is_added_to_psum_in_its_type(dtype: str, big: float, target: str) -> None:
    ones, dst = tile(np.ones((1, 1), np.float32)), psum(1, 1, dtype=dtype)
    steps = [
        call("nc_matmul", dst=dst, stationary=ones, moving=value, accumulate=i > 0)
        for i, value in enumerate((tile(np.array([[big]], np.float32)), ones, ones))
    ]
    assert loaded(run(steps, target=target)[dst]).tolist() == [[big]]


@pytest.mark.parametrize(
    "hint",
    [
        {"is_stationary_onezero": True},
        {"is_moving_onezero": True},
        {"tile_position": (64, 0), "tile_size": (64, 128)},
        {"tile_position": (32, 96), "tile_size": (32, 32)},
    ],
)
def test_hints_and_places_in_the_array_change_no_value(hint: dict[str, Any]) -> None:
    given: dict[str, Any] = {"dst": psum(12, 20), "stationary": tile(A), "moving": tile(B)}
    assert np.array_equal(run_one("nc_matmul", **given, **hint), A.T @ B)


@pytest.mark.parametrize("left", ["float8_e4m3", "float8_e5m2"])
def test_double_row_contracts_pairs(left: str) -> None:
    """[1, 256] @ [256, 3] as [128, 2, 1] and [128, 2, 3]. Release notes of NKI 0.6.0: it is
    recognised; the result is [1, 3], not [2, 6].
    """
    a = RNG.integers(-2, 3, (128, 2, 1)).astype(np.float32)
    b = RNG.integers(-2, 3, (128, 2, 3)).astype(np.float32)
    given: dict[str, Any] = {
        "stationary": tile(a, dtype=left),
        "moving": tile(b, dtype="float8_e4m3"),
    }
    found = run_one("nc_matmul", dst=psum(1, 3), perf_mode="double_row", **given)
    expected = np.einsum("kpm,kpn->mn", a, b)
    assert np.array_equal(found, expected)
    dst = psum(1, 3)
    twice = [
        call("nc_matmul", dst=dst, perf_mode="double_row", accumulate=flag, **given)
        for flag in (False, True)
    ]
    assert np.array_equal(run(twice)[dst], 2 * expected)


# Transposes

SPECIALS = np.array([[np.nan, np.inf, -0.0], [1.5, -np.inf, 2.0]], np.float32)
IDENTITY = np.eye(2, dtype=np.float32)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_transpose_mode_moves_bits(dtype: str) -> None:
    """From NeuronCore-v3 on; without it, or before, NaN spreads."""
    x, one = tile(SPECIALS, dtype=dtype), tile(IDENTITY, dtype=dtype)
    given: dict[str, Any] = {"stationary": x, "moving": one}
    found = run_one("nc_matmul", dst=psum(3, 2, dtype=dtype), is_transpose=True, **given)
    assert found.tobytes() == x.window(x.tensor.contents).T.tobytes()
    for found in (
        run_one("nc_matmul", dst=psum(3, 2), is_transpose=False, **given),
        run_one("nc_matmul", dst=psum(3, 2), is_transpose=True, target="trn1", **given),
    ):
        assert np.isnan(found).tolist() == [[True, True], [True, True], [False, False]]


def test_transpose_mode_to_a_wider_type_and_with_another_matrix() -> None:
    """Eight-bit numbers give sixteen-bit ones.

    With an operand that is not an identity, it is a product.
    """
    x, one = tile(A, dtype="float8_e4m3"), tile(np.eye(16, dtype=np.float32), dtype="float8_e4m3")
    dst = psum(12, 16, dtype="bfloat16")
    found = run_one("nc_matmul", dst=dst, stationary=x, moving=one, is_transpose=True)
    same(found, stored(A.T, "bfloat16"))
    for other in (B, B[:, :16]):
        given: dict[str, Any] = {"stationary": tile(A), "moving": tile(other), "is_transpose": True}
        found = run_one("nc_matmul", dst=psum(12, other.shape[1]), **given)
        assert np.array_equal(found, A.T @ other)


def test_an_accumulating_transpose_adds() -> None:
    x, one, dst = tile(A), tile(np.eye(16, dtype=np.float32)), psum(12, 16)
    given: dict[str, Any] = {"dst": dst, "stationary": x, "moving": one, "is_transpose": True}
    steps = [call("nc_matmul", accumulate=flag, **given) for flag in (False, True)]
    assert np.array_equal(run(steps)[dst], 2 * A.T)


@pytest.mark.parametrize("engine", ["tensor", "vector"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "uint8"])
def test_nc_transpose_flattens_free_dimensions(engine: str, dtype: str) -> None:
    """Release notes of NKI 0.4.0: the requested engine executes it."""
    values = RNG.integers(0, 200, (6, 2, 5)).astype(np.float32)
    x, dst = tile(values, dtype=dtype, steps=(8, 1)), psum(10, 6, dtype=dtype)
    outcome = run([call("nc_transpose", engine, dst=dst, data=x)])
    same(outcome[dst], stored(values.reshape(6, 10).T, dtype))
    assert outcome.result.engines[f"core0.{engine}"].instructions >= 1


def test_nc_transpose_chooses_its_engine_by_the_buffers() -> None:
    x = tile(A)
    for dst, engine in ((psum(12, 16), "tensor"), (tile((12, 16)), "vector")):
        outcome = run([call("nc_transpose", dst=dst, data=x)])
        assert np.array_equal(outcome[dst], A.T)
        assert outcome.result.engines[f"core0.{engine}"].instructions >= 1


def test_nc_transpose_of_nan_before_v3() -> None:
    x = tile(SPECIALS)
    for target, exact in (("trn1", False), ("trn2", True)):
        found = run_one("nc_transpose", engine="tensor", target=target, dst=psum(3, 2), data=x)
        assert (found.tobytes() == SPECIALS.T.tobytes()) is exact
        assert np.isnan(found[0, 0])


def test_nc_transpose_in_place() -> None:
    x = tile(A[:12])
    assert np.array_equal(run_one("nc_transpose", engine="vector", dst=x, data=x), A[:12].T)


def test_a_product_is_rounded_to_float32_once() -> None:
    values = RNG.standard_normal((128, 64)).astype(np.float32)
    x = tile(values)
    found = run_one("nc_matmul", dst=psum(64, 64), stationary=x, moving=x)
    exact = values.astype(np.float64).T @ values.astype(np.float64)
    np.testing.assert_allclose(found, single(exact), rtol=1e-7, atol=1e-6)
