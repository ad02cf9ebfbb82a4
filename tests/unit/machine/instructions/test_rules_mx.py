"""Rules and costs of the microscaling rows."""

from __future__ import annotations

from typing import Any

import pytest

from nkic.machine.rules import violations
from nkic.machine.targets import TRN3
from tests.unit.instances import Case, facts_of, tile


def quantize(message: str = "", slug: str = "", **changes: Any) -> Case:
    return Case("quantize_mx", changes, message, slug, TRN3)


def matmul(message: str = "", slug: str = "", **changes: Any) -> Case:
    return Case("nc_matmul_mx", changes, message, slug, TRN3)


SPREAD = "the scales of 64 partitions of `dst` are spread over 36"
PLACES = "scales start 0, 4, 8 or 12 partitions into the same quadrant of 32"
CASES = [
    Case("quantize_mx", {}, "needs trn3 or newer; the target is trn2", "needs-newer-target"),
    Case("nc_matmul_mx", {}, "needs trn3 or newer; the target is trn2", "needs-newer-target"),
    quantize(),
    quantize(dst_scale=tile("float8_e8m0fnu[36, 128]", start=12)),
    quantize(
        "`src` has 48 partitions, which must be a multiple of 32",
        "operand-shape",
        src=tile("float16[48, 512]"),
        dst=tile("float8_e5m2_x4[48, 128]"),
    ),
    quantize(
        "`dst` has 32 partitions and `src` has 64; they must be equal",
        "partition-mismatch",
        dst=tile("float8_e5m2_x4[32, 128]"),
    ),
    quantize(
        "`src` has 510 elements per partition, which must be a multiple of 4",
        "operand-shape",
        src=tile("float16[64, 510]"),
    ),
    quantize(
        "`dst` has 128 elements per partition; 256 of `src` are packed into 64",
        "element-count-mismatch",
        src=tile("float16[64, 256]"),
    ),
    quantize(
        "`dst_scale` has 64 elements per partition and `dst` has 128; they must be equal",
        "element-count-mismatch",
        dst_scale=tile("uint8[64, 64]"),
    ),
    quantize(
        f"`dst_scale` has 8 partitions; {SPREAD}",
        "operand-shape",
        dst_scale=tile("uint8[8, 128]"),
    ),
    quantize(
        f"`dst_scale` starts at partition 16 and `dst` at 0; {PLACES}",
        "operand-shape",
        dst_scale=tile("uint8[64, 128]", start=16),
    ),
    quantize(
        f"`dst_scale` starts at partition 0 and `dst` at 64; {PLACES}",
        "operand-shape",
        dst=tile("float8_e5m2_x4[64, 128]", start=64),
    ),
    quantize(
        "`dst` is float4_e2m1fn_x4, but must be one of float8_e4m3fn_x4, float8_e5m2_x4",
        "dtype-not-supported",
        dst=tile("float4_e2m1fn_x4[64, 128]"),
    ),
    quantize(
        "`src` is in psum, but must be in sbuf",
        "buffer-not-allowed",
        src=tile("bfloat16[64, 512] psum"),
    ),
    matmul(),
    matmul(tile_position=(0, 0), tile_size=(128, 128)),
    matmul(
        "the column size is 64, but must be 128: nc_matmul_mx is tiled by rows only",
        "matmul-mode",
        tile_position=(0, 64),
        tile_size=(128, 64),
    ),
    matmul(
        "`stationary` has 128 partitions and the tile 64 rows",
        "matmul-mode",
        tile_position=(64, 0),
        tile_size=(64, 128),
    ),
    matmul(
        "`stationary` has 63 columns, which must be even",
        "operand-shape",
        stationary=tile("float8_e5m2_x4[128, 63]"),
        stationary_scale=tile("uint8[128, 63]"),
        dst=tile("float32[63, 512] psum"),
    ),
    matmul(
        "`dst` has 256 elements per partition and `moving` has 512 columns; they must be equal",
        "element-count-mismatch",
        dst=tile("float32[64, 256] psum"),
    ),
    matmul(
        "`moving` has 4098 elements per partition; trn3 takes at most 4096",
        "tile-size",
        moving=tile("float8_e5m2_x4[128, 4098]"),
        moving_scale=tile("uint8[128, 4098]"),
        dst=tile("float32[64, 4098] psum"),
    ),
    matmul(
        moving=tile("float8_e5m2_x4[128, 8192]"),
        moving_scale=tile("uint8[128, 8192]"),
        dst=tile("bfloat16[64, 8192] psum"),
    ),
    matmul(
        moving=tile("float8_e5m2_x4[128, 512]", dynamic=True, offsets=tile("int32[1, 1]")),
    ),
    matmul(
        f"`moving_scale` starts at partition 2 and `moving` at 0; {PLACES}",
        "operand-shape",
        moving_scale=tile("uint8[124, 512]", start=2),
    ),
    matmul(
        "`moving` and `moving_scale` must both use `.indirect()` with the same index, or neither",
        "indexed-operand",
        moving=tile("float8_e5m2_x4[128, 512]", indexed=True, dynamic=True),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rule(case: Case) -> None:
    case.holds()


def test_tiles_of_other_operands_start_where_engines_do() -> None:
    row, facts = facts_of("quantize_mx", TRN3, None, src=tile("float16[32, 512]", start=4))
    assert [v.operand for v in violations(row, facts)] == ["src"]


def test_costs() -> None:
    """Four elements a cycle.

    A product of 512 rows takes the time of a bfloat16 product of 128, and starts 4 cycles after the
    preceding one.
    """
    row, facts = facts_of("quantize_mx", TRN3, None, src=tile("bfloat16[64, 4096]"))
    assert row.cost(facts).interval == 1024 + 56
    row, facts = facts_of("nc_matmul_mx", TRN3)
    other, half = facts_of("nc_matmul", TRN3)
    assert row.cost(facts) == other.cost(half)
    assert row.cost(facts).interval == 512 + 4
