"""Rules of the tensor engine's rows."""

from __future__ import annotations

from typing import Any

import pytest

from nkic.machine.instructions.tensor import matmul_operations
from nkic.machine.targets import TRN1, TRN3, Engine
from tests.unit.instances import Case, facts_of, tile

PSUM = tile("float32[128, 512] psum")
FP8 = {
    "stationary": tile("float8_e4m3[128, 2, 64]"),
    "moving": tile("float8_e5m2[128, 2, 512]"),
    "perf_mode": "double_row",
}
TENSOR = [
    Case(
        "nc_matmul",
        {"moving": tile("bfloat16[128, 640]"), "dst": tile("float32[64, 640] psum")},
        "`moving` has 640 elements per partition; trn2 takes at most 512",
        "tile-size",
    ),
    Case(
        "nc_matmul",
        {"moving": tile("bfloat16[128, 4096]"), "dst": tile("float32[64, 4096] psum")},
        target=TRN3,
    ),
    Case(
        "nc_matmul",
        {"moving": tile("bfloat16[128, 4097]"), "dst": tile("float32[64, 4097] psum")},
        "`moving` has 4097 elements per partition; trn3 takes at most 4096",
        "tile-size",
        TRN3,
    ),
    Case(
        "nc_matmul",
        {"moving": tile("bfloat16[128, 8192]"), "dst": tile("bfloat16[64, 8192] psum")},
        target=TRN3,
    ),
    Case(
        "nc_matmul",
        {"stationary": tile("bfloat16[64, 64]")},
        "`moving` has 128 partitions and `stationary` has 64; they must be equal",
        "partition-mismatch",
    ),
    Case(
        "nc_matmul",
        {"dst": PSUM},
        "`dst` has 128 partitions and `stationary` has 64 columns; they must be equal",
        "partition-mismatch",
    ),
    Case(
        "nc_matmul",
        {"dst": tile("float32[64, 256] psum")},
        "`dst` has 256 elements per partition and `moving` has 512 columns; they must be equal",
        "element-count-mismatch",
    ),
    Case(
        "nc_matmul",
        {"stationary": tile("float32[128, 64]")},
        "`stationary` is float32 and `moving` is bfloat16, which cannot be multiplied",
        "dtype-mismatch",
    ),
    Case("nc_matmul", {"stationary": tile("float8_e5m2[128, 64]")}),
    Case(
        "nc_matmul",
        {
            "stationary": tile("float8_e4m3[128, 64]"),
            "moving": tile("float8_e4m3fn[128, 512]"),
        },
        "`stationary` is float8_e4m3 and `moving` is float8_e4m3fn, which cannot be multiplied",
        "dtype-mismatch",
        TRN3,
    ),
    Case(
        "nc_matmul",
        {"dst": tile("bfloat16[64, 512] psum")},
        "`dst` is bfloat16; on trn2 it must be float32",
        "dtype-not-supported",
    ),
    Case("nc_matmul", {"dst": tile("bfloat16[64, 512] psum"), "is_transpose": True}),
    Case(
        "nc_matmul",
        {"dst": tile("bfloat16[64, 512] psum"), "is_transpose": True},
        "`dst` is bfloat16; on trn1 it must be float32",
        "dtype-not-supported",
        TRN1,
    ),
    Case(
        "nc_matmul",
        {"dst": tile("float32[64, 512] psum", dims=((2, 512),))},
        "`dst` spans 4092 bytes per partition; on trn2 it must fit in one PSUM bank of 2048",
        "psum-bank",
    ),
    Case("nc_matmul", FP8),
    Case(
        "nc_matmul",
        FP8,
        "`perf_mode` is double_row, which needs trn2; the target is trn1",
        "needs-newer-target",
        TRN1,
    ),
    Case(
        "nc_matmul",
        {**FP8, "moving": tile("bfloat16[128, 2, 512]")},
        "`moving` is bfloat16; double_row takes 8-bit floats",
        "dtype-not-supported",
    ),
    Case(
        "nc_matmul",
        {**FP8, "stationary": tile("float8_e4m3[128, 128]")},
        "the first free dimension of `stationary` has 128 elements; double_row needs 2",
        "operand-shape",
    ),
    Case(
        "nc_matmul",
        {**FP8, "is_transpose": True},
        "`perf_mode` is double_row, which cannot be combined with `is_transpose`",
        "matmul-mode",
    ),
    Case(
        "nc_matmul",
        {**FP8, "tile_position": (0, 64), "tile_size": (128, 64)},
        "`perf_mode` is double_row, which cannot be combined with a column tile of 64",
        "matmul-mode",
    ),
    Case("nc_matmul", {"tile_position": (0, 64), "tile_size": (128, 64)}),
    Case(
        "nc_matmul",
        {"tile_size": (128, 64)},
        "`tile_position` has 0 numbers and `tile_size` has 2; both need a row and a column",
        "matmul-mode",
    ),
    Case(
        "nc_matmul",
        {"tile_position": (0, 32), "tile_size": (128, 32)},
        "the column size is 32; trn1 has 64, 128",
        "matmul-mode",
        TRN1,
    ),
    Case(
        "nc_matmul",
        {"tile_position": (32, 0), "tile_size": (64, 128)},
        "the row position is 32; it must be a multiple of 64 below 128",
        "matmul-mode",
    ),
    Case(
        "nc_matmul",
        {"tile_position": (0, 0), "tile_size": (64, 128)},
        "`stationary` has 128 partitions and the tile 64 rows",
        "matmul-mode",
    ),
    Case(
        "nc_matmul",
        {"tile_position": (0, 0), "tile_size": (128, 32)},
        "`stationary` has 64 columns and the tile 32",
        "matmul-mode",
    ),
    Case(
        "nc_matmul",
        {"moving": tile("bfloat16[128, 512]", indexed=True), "is_transpose": True},
        "`moving` uses `.indirect()` and is the moving operand of a transpose, which "
        "the tensor engine does not support",
        "indexed-operand",
        TRN3,
    ),
    Case(
        "nc_transpose",
        {"dst": tile("float32[64, 64] psum")},
        "`dst` is [64, 64], but `data` transposed is [64, 128]",
        "operand-shape",
    ),
    Case(
        "nc_transpose",
        {"dst": tile("float32[64, 128]")},
        "`data` is [128, 64]; the vector engine transposes at most [32, 32]",
        "tile-size",
    ),
    Case("nc_transpose", {"dst": tile("float32[32, 32]"), "data": tile("float32[32, 32]")}),
    Case(
        "nc_transpose",
        {"dst": tile("float32[32, 32]"), "data": tile("float32[32, 32]")},
        "`dst` is in sbuf, but the tensor engine needs it in psum",
        "buffer-not-allowed",
        engine=Engine.TENSOR,
    ),
    Case(
        "nc_transpose",
        {"dst": tile("bfloat16[64, 128] psum")},
        "`data` is float32 and `dst` is bfloat16; they must be equal",
        "dtype-mismatch",
    ),
]


@pytest.mark.parametrize("case", TENSOR, ids=str)
def test_rule(case: Case) -> None:
    case.holds()


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({}, 2 * 128 * 64 * 512),
        ({"is_transpose": True}, 0),
        (
            {
                "stationary": tile("float8_e4m3[128, 2, 64]"),
                "moving": tile("float8_e4m3[128, 2, 512]"),
                "perf_mode": "double_row",
            },
            2 * 2 * 128 * 64 * 512,
        ),
    ],
)
def test_operations_of_a_product(changes: dict[str, Any], count: int) -> None:
    """A multiplication and an addition for each of K x M x N pairs; none if data only move."""
    _, facts = facts_of("nc_matmul", **changes)
    assert matmul_operations(facts) == count


def test_operations_of_elements_of_four() -> None:
    _, facts = facts_of("nc_matmul_mx", TRN3)
    assert matmul_operations(facts) == 2 * 4 * 128 * 64 * 512
