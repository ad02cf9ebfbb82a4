"""Test rules of the scalar and gpsimd engines' rows, and of registers."""

from __future__ import annotations

import pytest

from nkic.machine.targets import TRN1
from tests.unit.instances import COLUMN, REGISTER, Case, tile

SCALAR = [
    Case(
        "activation",
        {"bias": 1.0},
        "`bias` is the number 1.0, which needs trn2; the target is trn1",
        "needs-newer-target",
        TRN1,
    ),
    Case("activation", {"bias": 1.0}),
    Case(
        "activation",
        {"bias": tile("tfloat32[128, 1]")},
        "`bias` is tfloat32, which the scalar engine does not add",
        "dtype-not-supported",
    ),
    Case("activation", {"bias": tile("bfloat16[128, 1]")}),
    Case(
        "activation",
        {"scale": tile("bfloat16[128, 1]")},
        "`scale` is bfloat16, but must be float32",
        "operand-not-float32",
    ),
    Case(
        "activation",
        {"op": "prelu"},
        "`op` is prelu, which has a parameter",
        "operator-not-supported",
    ),
    Case(
        "activation",
        {"op": "reciprocal", "bias": COLUMN},
        "`op` is reciprocal with a `bias`, which trn1 does not support",
        "operator-not-supported",
        TRN1,
    ),
    Case("activation", {"op": "reciprocal", "bias": COLUMN}),
    Case(
        "activation_reduce",
        {"reduce_op": "maximum"},
        "`reduce_op` is maximum; the scalar engine reduces with add only",
        "operator-not-supported",
    ),
    Case(
        "activation",
        {"reduce_cmd": "reset_reduce", "reduce_res": COLUMN},
        "`reduce_cmd` is reset_reduce and `reduce_op` is None",
        "operand-missing",
    ),
    Case(
        "activation",
        {"reduce_cmd": "reset_reduce", "reduce_res": COLUMN, "reduce_op": "add"},
    ),
    Case("activation", {"reduce_cmd": "reset"}),
]

GPSIMD = [
    Case(
        "iota",
        {"pattern": ((1, 256),)},
        "`pattern` counts 256 elements and `dst` has 512 per partition",
        "index-pattern",
    ),
    Case("iota", {"pattern": ((-2, 2), (0, 4), (100_000, 8), (1, 8)), "offset": REGISTER}),
    Case(
        "iota",
        {"pattern": ((1, 2), (1, 2), (1, 2), (1, 2), (1, 32))},
        "`pattern` has 5 dimensions; the limit is 4",
        "index-pattern",
    ),
    Case(
        "iota",
        {"pattern": ()},
        "`pattern` has 0 dimensions; the limit is 4",
        "index-pattern",
    ),
    Case(
        "iota",
        {"pattern": ((1, -512), (1, -1))},
        "`pattern` counts -512 in a dimension; every num must be at least 1",
        "index-pattern",
    ),
    Case(
        "iota",
        {"offset": 0.5},
        "`offset` is 0.5, but must be a 32-bit int or a register",
        "argument-kind",
    ),
    Case(
        "affine_select",
        {"cmp_op": "add"},
        "`cmp_op` is add, but must be one of equal, not_equal, greater, "
        "greater_equal, less, less_equal",
        "operator-not-supported",
    ),
    Case("affine_select", {"cmp_op": "greater_equal", "on_false_value": float("-inf")}),
]

REGISTERS = [
    Case(
        "register_move",
        {"src": 1.5},
        "the value is 1.5; a register holds a 32-bit integer",
        "argument-kind",
    ),
    Case("register_move", {"src": 0xFFFFFFFF}),
    Case("register_alloc", {"x": None}),
    Case(
        "register_alloc",
        {"x": 1 << 32},
        "the value is 4294967296; a register holds a 32-bit integer",
        "argument-kind",
    ),
    Case(
        "register_load",
        {"src": tile("int32[1, 2]")},
        "`src` has 2 elements, but must have 1",
        "operand-shape",
    ),
    Case("register_load", {"src": tile("uint8[1, 1]", start=5)}),
]


@pytest.mark.parametrize("case", [*SCALAR, *GPSIMD, *REGISTERS], ids=str)
def test_rule(case: Case) -> None:
    case.holds()
