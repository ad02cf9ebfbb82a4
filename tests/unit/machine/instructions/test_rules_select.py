"""Test rules of the vector engine's rows that also reduce or search, and of the rows of v4."""

from __future__ import annotations

import pytest

from nkic.machine.instructions import ROWS
from nkic.machine.targets import TRN1, TRN2, TRN3
from tests.unit.instances import COLUMN, Case, facts_of, tile

PSUM = tile("float32[128, 512] psum")
HALF = tile("bfloat16[128, 1]")
WORDS = tile("int32[128, 512]")
BYTES = tile("uint8[128, 512]")
QUAD = tile("float32[32, 512]")
KEEPING = (255,) * 31
LOADS = "which does not load it"

SELECT = [
    Case("tensor_scalar_reduce", {"op0": "abs", "operand0": None, "data": PSUM}),
    Case("tensor_scalar_reduce", {"operand0": COLUMN, "reduce_op": "minimum"}),
    Case(
        "tensor_scalar_reduce",
        {"operand0": None},
        "`op0` is multiply and `operand0` is None",
        "operand-missing",
    ),
    Case(
        "tensor_scalar_reduce",
        {"op0": "abs", "operand0": 1.0},
        "`op0` is abs, which has one input, and `operand0` is 1.0",
        "operand-missing",
    ),
    Case(
        "tensor_scalar_reduce",
        {"op0": "bitwise_and", "data": WORDS, "dst": WORDS},
        "`op0` is bitwise_and, but must be an arithmetic operator",
        "operator-not-supported",
    ),
    Case(
        "tensor_scalar_reduce",
        {"operand0": HALF},
        "`operand0` is bfloat16, but must be float32",
        "operand-not-float32",
    ),
    Case(
        "tensor_scalar_reduce",
        {"reduce_op": "subtract"},
        "`reduce_op` is subtract, but must be one of add, multiply, maximum, minimum",
        "operator-not-supported",
    ),
    Case(
        "tensor_scalar_reduce",
        {"reverse0": True},
        "`reverse0` is True, which the instruction does not support",
        "operator-not-supported",
    ),
    Case("tensor_scalar_reduce", {"reduce_cmd": "load_reduce", "reduce_init": COLUMN}),
    Case(
        "tensor_scalar_reduce",
        {"reduce_cmd": "load_reduce"},
        "`reduce_cmd` is load_reduce and `reduce_init` is None",
        "operand-missing",
    ),
    Case(
        "tensor_scalar_reduce",
        {"reduce_init": 1.0},
        f"`reduce_init` is 1.0 and `reduce_cmd` is reset_reduce, {LOADS}",
        "operand-missing",
    ),
    Case(
        "tensor_scalar_reduce",
        {"reduce_cmd": "idle"},
        "`reduce_cmd` is 'idle', but must be one of reset_reduce, reduce, load_reduce",
        "argument-kind",
    ),
    Case(
        "tensor_scalar_reduce",
        {"reduce_res": tile("float32[64, 1]")},
        "`reduce_res` has 64 partitions and `data` has 128; they must be equal",
        "partition-mismatch",
    ),
    Case("tensor_scalar_cumulative", {"op1": "subtract", "imm0": COLUMN, "imm1": 0}),
    Case(
        "tensor_scalar_cumulative",
        {"op1": "logical_and"},
        "`op1` is logical_and, but must be one of add, subtract, multiply, maximum, minimum",
        "operator-not-supported",
    ),
    Case("tensor_scalar_cumulative", {"imm1": COLUMN, "reduce_cmd": "reduce"}),
    Case(
        "tensor_scalar_cumulative",
        {"reduce_cmd": "load_reduce"},
        "`reduce_cmd` is load_reduce and `imm1` is None",
        "operand-missing",
    ),
    Case(
        "tensor_scalar_cumulative",
        {"src": WORDS},
        "`src` is int32, but must be one of bfloat16, float16, float32, float8_e4m3, "
        "float8_e4m3fn, "
        "float8_e5m2, int16, int8, uint16, uint8",
        "dtype-not-supported",
    ),
    Case("select_reduce", {"on_true": tile("bfloat16[128, 512]"), "on_false": COLUMN}),
    Case(
        "select_reduce",
        {"on_true": PSUM, "predicate": tile("uint8[128, 512] psum")},
        "`on_true` and `predicate` are both in psum; at most one of them may be there",
        "both-in-psum",
    ),
    Case(
        "select_reduce",
        {"predicate": WORDS},
        "`predicate` is int32, but must be one of int16, int8, uint16, uint8",
        "dtype-not-supported",
    ),
    Case(
        "select_reduce",
        {"on_true": WORDS},
        "`on_true` is int32, but must be one of bfloat16, bool, float16, float32, "
        "float8_e4m3, float8_e4m3fn, "
        "float8_e5m2, int16, int8, uint16, uint8",
        "dtype-not-supported",
    ),
    Case(
        "select_reduce",
        {"reduce_op": "add"},
        "`reduce_op` is add, but must be maximum",
        "operator-not-supported",
    ),
    Case(
        "select_reduce",
        {"reduce_cmd": "idle"},
        "`reduce_res` is given and `reduce_cmd` is idle, which leaves the accumulators unknown",
        "operand-missing",
    ),
    Case("select_reduce", {"reduce_cmd": "idle", "reduce_res": None}),
    Case(
        "range_select",
        {"comp_op1": "not_equal"},
        "`comp_op1` is not_equal, but must be one of equal, less, less_equal, greater, "
        "greater_equal",
        "operator-not-supported",
    ),
    Case("range_select", {"on_false_value": -3.4028235e38, "reduce_cmd": "reset"}),
    Case(
        "range_select",
        {"on_false_value": -3e38},
        "`on_false_value` is -3e+38, but must be the lowest float32, -3.4028235e+38",
        "fill-value",
    ),
    Case("range_select", {"range_start": 2**24 - 512}),
    Case(
        "range_select",
        {"range_start": 2**24},
        "`range_start` is 16777216 and counts 512 elements; indices must be within 16777216 "
        "of 0, to be exact in float32",
        "index-count",
    ),
    Case("range_select", {}, "needs trn2 or newer; the target is trn1", "needs-newer-target", TRN1),
]

SEARCH = [
    Case(
        "nc_find_index8",
        {"dst": tile("int32[128, 8]")},
        "`dst` is int32, but must be one of uint16, uint32",
        "dtype-not-supported",
    ),
    Case(
        "nc_find_index8",
        {"data": tile("float32[128, 7]")},
        "`data` has 7 elements per partition; at least 8 are needed",
        "tile-size",
    ),
    Case(
        "nc_find_index8",
        {"vals": tile("float32[128, 9]")},
        "`vals` has 9 elements per partition, but must have 8: the values to find",
        "operand-shape",
    ),
    Case(
        "nc_match_replace8",
        {"data": tile("bfloat16[128, 16385]"), "dst": tile("bfloat16[128, 16385]")},
        "`data` has 16385 elements per partition; trn2 takes at most 16384",
        "tile-size",
    ),
    Case(
        "nc_match_replace8",
        {"dst_idx": tile("uint16[128, 7]")},
        "`dst_idx` has 7 elements per partition, but must have 8: an index for each value",
        "operand-shape",
    ),
    Case("nc_stream_shuffle", {"src": QUAD, "dst": QUAD, "shuffle_mask": (*KEEPING, 3)}),
    Case(
        "nc_stream_shuffle",
        {"shuffle_mask": (0,) * 16},
        "`shuffle_mask` has 16 entries, but must have 32",
        "shuffle-mask",
    ),
    Case(
        "nc_stream_shuffle",
        {"shuffle_mask": (*KEEPING, 32)},
        "`shuffle_mask` has 32 at 31; entries are 0 to 31, or 255",
        "shuffle-mask",
    ),
    Case(
        "nc_stream_shuffle",
        {"src": QUAD, "shuffle_mask": (0,) * 32},
        "`shuffle_mask` copies partition 32 of `src`, which has 32, to partition 32 of `dst`",
        "shuffle-mask",
    ),
    Case(
        "nc_stream_shuffle",
        {"src": tile("float32[40, 512]"), "dst": QUAD._replace(start=32)},
        "`dst` starts at partition 32; where `src` or `dst` has 40 partitions it must start at "
        "0 or 64",
        "start-partition",
    ),
    Case(
        "nc_stream_shuffle",
        {"src": tile("bfloat16[128, 512]")},
        "`src` is bfloat16 and `dst` is float32; they must be equal",
        "dtype-mismatch",
    ),
    Case(
        "nc_stream_shuffle",
        {"src": tile("float32[128, 256]")},
        "`src` has 256 elements per partition and `dst` has 512; they must be equal",
        "element-count-mismatch",
    ),
]


NEWEST = [
    Case("exponential", {}, "needs trn3 or newer; the target is trn2", "needs-newer-target"),
    Case("exponential", {"reduce_cmd": "load_reduce", "reduce_init": COLUMN}, target=TRN3),
    Case(
        "exponential",
        {"reduce_init": 1.0},
        f"`reduce_init` is 1.0 and `reduce_cmd` is idle, {LOADS}",
        "operand-missing",
        TRN3,
    ),
    Case(
        "exponential",
        {"reduce_res": COLUMN},
        "`reduce_res` is given and `reduce_cmd` is idle, which leaves the accumulators unknown",
        "operand-missing",
        TRN3,
    ),
    Case(
        "exponential",
        {"max_value": HALF},
        "`max_value` is bfloat16, but must be float32",
        "operand-not-float32",
        TRN3,
    ),
    Case(
        "exponential",
        {"dst": tile("uint32[128, 512]")},
        "`dst` is uint32, but must be one of bfloat16, float16, float32, float8_e4m3, "
        "float8_e5m2, int16, int32, int8, tfloat32, uint16, uint8",
        "dtype-not-supported",
        TRN3,
    ),
    Case(
        "activate2",
        {"op0": "add"},
        "`op0` is add and `op1` is add; the pairs are (multiply, add), (multiply, subtract), "
        "(multiply, bypass), (add, bypass), (subtract, bypass), (bypass, bypass)",
        "operator-not-supported",
        TRN3,
    ),
    Case("activate2", {"op0": "bypass", "op1": "bypass", "imm1": 0.0}, target=TRN3),
    Case(
        "activate2",
        {"op1": "bypass", "reverse1": True, "reverse0": True},
        "`reverse1` is True and `op1` is bypass, which has one input",
        "operand-missing",
        TRN3,
    ),
    Case("activate2", {"op": "prelu", "relu_param": COLUMN}, target=TRN3),
    Case(
        "activate2",
        {"relu_param": 0.5},
        "`relu_param` is 0.5 and `op` is gelu, which has no parameter",
        "operand-missing",
        TRN3,
    ),
    Case(
        "activate2",
        {"imm0": HALF},
        "`imm1` is float32 and `imm0` is bfloat16; they must be equal",
        "dtype-mismatch",
        TRN3,
    ),
    Case(
        "activate2",
        {"reduce_cmd": "reduce"},
        "`reduce_cmd` is reduce and `reduce_op` is None",
        "operand-missing",
        TRN3,
    ),
    Case(
        "activate2",
        {"reduce_cmd": "reduce", "reduce_op": "multiply"},
        "`reduce_op` is multiply, but must be one of add, maximum, minimum, abs_max, abs_min",
        "operator-not-supported",
        TRN3,
    ),
    Case(
        "activate2",
        {"dst": PSUM._replace(indexed=True)},
        "`dst` is scattered into psum, which the scalar engine cannot do",
        "indexed-operand",
        TRN3,
    ),
]


@pytest.mark.parametrize("case", [*SELECT, *SEARCH, *NEWEST], ids=str)
def test_rules(case: Case) -> None:
    case.holds()


def test_what_a_shuffle_keeps_must_have_been_written() -> None:
    for mask, reads in (((0,) * 32, False), ((*KEEPING, 0), True)):
        row, facts = facts_of("nc_stream_shuffle", shuffle_mask=mask)
        assert row.access_of(row.operands[0], facts).reads is reads


@pytest.mark.parametrize("name", ["tensor_scalar_reduce", "tensor_scalar_cumulative"])
def test_only_reduce_depends_on_the_accumulators(name: str) -> None:
    for command, reads in (("reset_reduce", ()), ("reduce", ("vector.accumulator",))):
        effects = ROWS[name].effects(facts_of(name, TRN2, reduce_cmd=command)[1])
        assert effects == (reads, ("vector.accumulator",))
