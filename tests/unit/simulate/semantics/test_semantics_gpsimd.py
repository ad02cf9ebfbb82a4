"""Test the gpsimd engine's rows of index patterns against the documented loops."""

from itertools import product
from operator import eq, ge, gt, le, lt, ne
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nkic.base.diagnostics import ArtifactFailed
from tests.harness.instruction import call, run, run_one, tile

Array = NDArray[Any]
Pattern = tuple[tuple[int, int], ...]
PATTERNS: list[Pattern] = [
    ((1, 24),),
    ((-1, 24),),
    ((0, 24),),
    ((4, 6), (1, 4)),
    ((-10, 2), (3, 3), (-100, 4)),
    ((5, 1), (-7, 2), (1, 3), (2, 4)),
]


def stream(pattern: Pattern, offset: int, multiplier: int, partitions: int) -> list[list[int]]:
    """Compute value = offset + channel_id * channel_multiplier + sum of w * step_w for each
    element.
    """
    rows = []
    for channel in range(partitions):
        places = product(*(range(num) for _, num in pattern))
        steps = [step for step, _ in pattern]
        rows.append(
            [
                offset + channel * multiplier + sum(i * s for i, s in zip(at, steps, strict=True))
                for at in places
            ]
        )
    return rows


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize(("offset", "multiplier"), [(0, 0), (7, 100), (-50, -3)])
def test_iota(pattern: Pattern, offset: int, multiplier: int) -> None:
    """dst may have any free dimensions."""
    given: dict[str, Any] = {"pattern": pattern, "offset": offset, "channel_multiplier": multiplier}
    found = run_one("iota", dst=tile((5, 2, 12), dtype="int32", steps=(20, -1)), **given)
    assert found.reshape(5, 24).tolist() == stream(pattern, offset, multiplier, 5)


def test_iota_converts_to_dst_s_type() -> None:
    """Integers are exact and saturate; floats are rounded from float32 (assumed)."""
    given: dict[str, Any] = {"pattern": ((1, 3),), "offset": 2**24 - 1}
    assert run_one("iota", dst=tile((1, 3)), **given).tolist() == [[2**24 - 1, 2**24, 2**24]]
    given = {"pattern": ((100, 5),), "offset": -200}
    for dtype, expected in {
        "int8": [-128, -100, 0, 100, 127],
        "uint8": [0, 0, 0, 100, 200],
        "uint32": [0, 0, 0, 100, 200],
        "bfloat16": [-200, -100, 0, 100, 200],
        "bool": [1, 1, 0, 1, 1],
    }.items():
        assert run_one("iota", dst=tile((1, 5), dtype=dtype), **given).tolist() == [expected]


def test_indices_wrap_at_32_bits() -> None:
    given: dict[str, Any] = {
        "pattern": ((1, 3),),
        "offset": 2**31 - 2,
        "channel_multiplier": 2**31 - 1,
    }
    found = run_one("iota", dst=tile((2, 3), dtype="int32"), **given)
    assert found.tolist() == [[2**31 - 2, 2**31 - 1, -(2**31)], [-3, -2, -1]]


def test_a_pattern_of_another_size_is_refused() -> None:
    with pytest.raises(ArtifactFailed, match="`pattern` counts 6 elements"):
        run_one("iota", dst=tile((2, 5)), pattern=((1, 6),))


COMPARISONS = {
    **{"equal": eq, "not_equal": ne, "greater": gt},
    **{"greater_equal": ge, "less": lt, "less_equal": le},
}


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("op", sorted(COMPARISONS))
def test_affine_select(pattern: Pattern, op: str) -> None:
    """Comparisons of affine values with 0; the default is equal."""
    values = np.arange(1, 97, dtype=np.float32).reshape(4, 24)
    x = tile(values)
    given: dict[str, Any] = {
        "pattern": pattern,
        "channel_multiplier": 5,
        "offset": -6,
        "on_false_value": -1.0,
    }
    found = run_one("affine_select", dst=x.like(), on_true_tile=x, cmp_op=op, **given)
    affine = stream(pattern, -6, 5, 4)
    chosen = [[COMPARISONS[op](value, 0) for value in row] for row in affine]
    assert np.array_equal(found, np.where(chosen, values, -1))
    if op == "equal":
        assert np.array_equal(
            run_one("affine_select", dst=x.like(), on_true_tile=x, **given), found
        )


def test_a_causal_mask_in_place() -> None:
    """Keep the elements on or below the diagonal: partition - column >= 0."""
    scores = np.random.default_rng(3).standard_normal((8, 8)).astype(np.float32)
    for dtype in ("float32", "bfloat16", "int32"):
        x = tile(scores * 100, dtype=dtype)
        given: dict[str, Any] = {
            "pattern": ((-1, 8),),
            "channel_multiplier": 1,
            "cmp_op": "greater_equal",
        }
        found = run_one("affine_select", dst=x, on_true_tile=x, on_false_value=-9984.0, **given)
        before = x.window(x.tensor.contents)
        expected = np.where(np.tri(8, dtype=bool), before, np.array(-9984).astype(before.dtype))
        assert found.tobytes() == expected.tobytes()


def test_on_false_value_is_a_float32_whatever_the_types() -> None:
    """Release notes of NKI 0.6.0: any float, including the least float32. Casts saturate."""
    lowest = float(np.finfo(np.float32).min)
    given: dict[str, Any] = {"pattern": ((1, 2),), "channel_multiplier": 0, "cmp_op": "less"}
    x = tile(np.array([[2**24 + 1, 5]], np.int32))
    for number, dtype, expected in (
        (lowest, "float32", lowest),
        (lowest, "bfloat16", -np.inf),
        (lowest, "int32", -(2**31)),
        (300, "uint8", 255),
        (2**24 + 1, "int32", 2**24),
    ):
        dst = x.like(dtype=dtype)
        found = run_one("affine_select", dst=dst, on_true_tile=x, on_false_value=number, **given)
        assert found.tolist() == [[expected] * 2]


def test_what_is_selected_goes_through_float32_between_types() -> None:
    given: dict[str, Any] = {"pattern": ((0, 2),), "channel_multiplier": 0, "on_false_value": 0.0}
    x = tile(np.array([[2**24 + 1, 5]], np.int32))
    found = run_one("affine_select", dst=x.like(), on_true_tile=x, **given)
    assert found.tolist() == [[2**24 + 1, 5]]
    found = run_one("affine_select", dst=x.like(dtype="uint32"), on_true_tile=x, **given)
    assert found.tolist() == [[2**24, 5]]


def test_offsets_in_registers() -> None:
    """Release notes of NKI 0.4.0: both support them. They are read at each execution."""
    x = tile(np.ones((2, 4), np.float32))
    given: dict[str, Any] = {"pattern": ((1, 4),), "channel_multiplier": 10, "offset": "$0"}
    dsts = [tile((2, 4), dtype="int32") for _ in range(2)]
    chosen = x.like()
    outcome = run(
        [
            call("register_move", "gpsimd", dst="$0", src=-2),
            call("iota", dst=dsts[0], **given),
            call("affine_select", dst=chosen, on_true_tile=x, on_false_value=0, **given),
            call("register_move", "gpsimd", dst="$0", src=5),
            call("iota", dst=dsts[1], **given),
        ]
    )
    assert outcome[dsts[0]].tolist() == [[-2, -1, 0, 1], [8, 9, 10, 11]]
    assert outcome[chosen].tolist() == [[0, 0, 1, 0], [0] * 4]
    assert outcome[dsts[1]].tolist() == [[5, 6, 7, 8], [15, 16, 17, 18]]
