"""Rules of the vector engine's rows."""

from __future__ import annotations

import pytest

from nkic.machine.targets import TRN1, TRN3, Engine
from tests.unit.instances import COLUMN, Case, T, tile

PSUM = tile("float32[128, 512] psum")
WORDS = tile("int32[128, 512]")
WORD_COLUMN = tile("int32[128, 1]")
VECTOR = [
    Case(
        "tensor_copy",
        {},
        "runs on the scalar engine from trn2 on; the target is trn1",
        "engine-not-allowed",
        TRN1,
        Engine.SCALAR,
    ),
    Case("tensor_copy", {}, engine=Engine.SCALAR),
    Case(
        "tensor_copy",
        {"dst": PSUM._replace(indexed=True)},
        "`dst` is scattered into psum, which the scalar engine cannot do",
        "indexed-operand",
        TRN3,
        Engine.SCALAR,
    ),
    Case(
        "memset",
        {"dst": WORDS, "value": 2.0},
        "`value` is 2.0 and `dst` is int32, which takes an int",
        "fill-value",
    ),
    Case("memset", {"dst": WORDS, "value": 0.0}),
    Case("memset", {"dst": T, "value": 3}),
    Case("memset", {"dst": T, "value": float("nan")}),
    Case(
        "memset",
        {"dst": tile("uint8[128, 512]"), "value": 256},
        "`value` is 256 and `dst` is uint8, which holds 0 to 255",
        "fill-value",
    ),
    Case(
        "memset",
        {"dst": tile("float8_e4m3fn_x4[128, 512]"), "value": 1.0},
        "`value` is 1.0 and `dst` is float8_e4m3fn_x4, a packed type takes 0 only",
        "fill-value",
        TRN3,
    ),
    Case("tensor_tensor", {"op": "power"}),
    Case(
        "tensor_tensor",
        {"op": "power", "data1": PSUM},
        "`data1` is in psum, which the gpsimd engine cannot access",
        "gpsimd-psum",
    ),
    Case(
        "tensor_scalar",
        {"operand0": None},
        "`op0` is multiply and `operand0` is None",
        "operand-missing",
    ),
    Case(
        "tensor_scalar",
        {"operand1": 1.0},
        "`operand1` is given and `op1` is None",
        "operand-missing",
    ),
    Case(
        "tensor_scalar",
        {"op1": "add"},
        "`op1` is add and `operand1` is None",
        "operand-missing",
    ),
    Case(
        "tensor_scalar",
        {"op0": "abs"},
        "`op0` is abs, which has one input, and `operand0` is 2.0",
        "operand-missing",
    ),
    Case("tensor_scalar", {"op0": "abs", "operand0": None}),
    Case("tensor_scalar", {"op0": "rsqrt", "operand0": 0.0}),
    Case(
        "tensor_scalar",
        {"op0": "rsqrt", "operand0": None, "op1": "add", "operand1": 1.0},
        "`op1` is add, but must be rsqrt alone, on gpsimd",
        "operator-not-supported",
    ),
    Case(
        "tensor_scalar",
        {"op1": "bitwise_and", "operand1": 1},
        "`op0` is multiply (arithmetic) and `op1` is bitwise_and (bitvec); "
        "they must be of the same group",
        "operator-mix",
    ),
    Case("tensor_scalar", {"op1": "add", "operand1": COLUMN}, engine=Engine.SCALAR),
    Case(
        "tensor_scalar",
        {"op0": "maximum"},
        "`op0` is maximum and `op1` is None; the scalar engine of trn2 does "
        "multiply, add, or multiply then add",
        "operator-not-supported",
        engine=Engine.SCALAR,
    ),
    Case("tensor_scalar", {"op0": "subtract"}, target=TRN3, engine=Engine.SCALAR),
    Case(
        "tensor_scalar",
        {},
        "runs on the scalar engine from trn2 on; the target is trn1",
        "engine-not-allowed",
        TRN1,
        Engine.SCALAR,
    ),
    Case(
        "tensor_scalar",
        {"operand0": tile("bfloat16[128, 1]")},
        "`operand0` is bfloat16, but must be float32",
        "operand-not-float32",
    ),
    Case("tensor_scalar", {"dst": WORDS, "data": WORDS, "operand0": WORD_COLUMN}),
    Case(
        "tensor_scalar",
        {"dst": WORDS, "data": WORDS, "op0": "abs_max", "operand0": WORD_COLUMN},
        "`operand0` is int32, but must be float32",
        "operand-not-float32",
        TRN3,
    ),
    Case(
        "tensor_scalar",
        {"dst": WORDS, "data": WORDS, "op0": "left_shift", "operand0": 1.0},
        "`operand0` is 1.0, but bitvec operators take integers",
        "bitvec-dtype",
    ),
    Case("tensor_scalar", {"dst": WORDS, "data": WORDS, "op0": "left_shift", "operand0": 1}),
    Case("tensor_scalar", {"dst": WORDS, "data": WORDS, "op0": "invert", "operand0": None}),
    Case(
        "tensor_reduce",
        {"axis": (0,)},
        "`axis` is 0, and axis 0 is the partition dimension, across which the vector engine does "
        "not reduce",
        "reduction-axis",
    ),
    Case(
        "tensor_reduce",
        {"data": tile("float32[128, 4, 128]"), "axis": (1,)},
        "`axis` is 1; it must name the last free dimensions of `data`, which are 1 to 2",
        "reduction-axis",
    ),
    Case(
        "tensor_reduce",
        {"axis": ()},
        "`axis` is (); it must name the last free dimensions of `data`, which is 1",
        "reduction-axis",
    ),
    Case(
        "tensor_reduce",
        {"data": tile("float32[128, 4, 128]"), "axis": (2,)},
        "`dst` has 1 element per partition; `data` reduced over 2 has 4",
        "element-count-mismatch",
    ),
    Case("tensor_reduce", {"data": tile("float32[128, 4, 128]"), "axis": (1, 2)}),
    Case(
        "tensor_reduce",
        {"data": tile("float32[128, 4, 128]"), "axis": (2,), "dst": tile("float32[128, 4, 1]")},
    ),
    Case(
        "tensor_reduce",
        {"op": "bitwise_or", "negate": True, "data": WORDS, "dst": WORD_COLUMN},
        "`op` is bitwise_or, but must be arithmetic where `negate` is True",
        "operator-not-supported",
    ),
    Case(
        "bn_stats",
        {"data": tile("float32[128, 513]")},
        "`data` has 513 elements per partition; trn2 takes at most 512",
        "tile-size",
    ),
    Case(
        "bn_stats",
        {"dst": tile("float32[128, 3]")},
        "`dst` has 3 elements per partition, but must have 6: count, mean and "
        "variance x count, twice",
        "operand-shape",
    ),
    Case(
        "bn_aggr",
        {"data": tile("float32[128, 8]")},
        "`data` has 8 elements per partition, but must have a multiple of 3",
        "operand-shape",
    ),
    Case(
        "tensor_copy_predicated",
        {"src": tile("bfloat16[128, 512]")},
        "`src` is bfloat16 and `dst` is float32; they must be equal",
        "dtype-mismatch",
    ),
    Case("tensor_copy_predicated", {"src": 1.0}),
    Case(
        "max8",
        {"src": tile("float32[128, 7]")},
        "`src` has 7 elements per partition; at least 8 are needed",
        "tile-size",
    ),
    Case(
        "max8",
        {"src": tile("float32[128, 16385]")},
        "`src` has 16385 elements per partition; trn2 takes at most 16384",
        "tile-size",
    ),
    Case(
        "max8",
        {"src": tile("float32[128, 64]", dims=((100, 4), (20, 4), (2, 4)))},
        "`src` has 4 dimensions [128, 4, 4, 4]; at most 3 are allowed, including the partitions",
        "operand-shape",
    ),
]


@pytest.mark.parametrize("case", VECTOR, ids=str)
def test_rule(case: Case) -> None:
    case.holds()
