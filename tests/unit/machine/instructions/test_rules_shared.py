"""Test the checks of every instruction, and the rules that several rows use."""

from __future__ import annotations

import pytest

from nkic.machine.operands import Tile
from nkic.machine.targets import TRN3, Buffer, Engine
from nkic.machine.tiles import start_partitions
from tests.unit.instances import COLUMN, Case, T, tile

PSUM = tile("float32[128, 512] psum")
WORDS = tile("int32[128, 512]")


def strided(step: int, num: int, dtype: str = "float32") -> Tile:
    return tile(f"{dtype}[128, {num}]", dims=((step, num),))


SHARED = [
    Case(
        "tensor_copy",
        {"dst": 3},
        "`dst` is 3, but must be a tile",
        "argument-kind",
    ),
    Case(
        "tensor_copy",
        {"src": None},
        "`src` is None, but must be a tile",
        "argument-kind",
    ),
    Case(
        "tensor_scalar",
        {"operand0": True},
        "`operand0` is True, but must be a tile or a number or None",
        "argument-kind",
    ),
    Case(
        "register_move",
        {"dst": T},
        "`dst` is a tile float32[128, 512] in sbuf, but must be a register",
        "argument-kind",
    ),
    Case(
        "iota",
        {"channel_multiplier": 1 << 31},
        "`channel_multiplier` is 2147483648, but must be a 32-bit int",
        "argument-kind",
    ),
    Case(
        "memset",
        {"value": 10**5000},
        "`value` is an integer of 16610 bits, but must be a number",
        "argument-kind",
    ),
    Case(
        "tensor_tensor",
        {"op": "exp"},
        "`op` is 'exp', but must be an operator",
        "argument-kind",
    ),
    Case(
        "activation",
        {"reduce_cmd": "load_reduce"},
        "`reduce_cmd` is 'load_reduce', but must be one of idle, reset, reduce, reset_reduce",
        "argument-kind",
    ),
    Case(
        "tensor_copy",
        {"src": tile("float32[128, 512] hbm")},
        "`src` is in hbm, but must be in psum or sbuf",
        "buffer-not-allowed",
    ),
    Case(
        "dma_copy",
        {"src": PSUM},
        "`src` is in psum, but must be in hbm or sbuf",
        "buffer-not-allowed",
    ),
    Case(
        "tensor_copy_predicated",
        {"predicate": WORDS},
        "`predicate` is int32, but must be one of uint16, uint32, uint8",
        "dtype-not-supported",
    ),
    Case(
        "tensor_copy",
        {"src": tile("float32[129, 512]")},
        "`src` has 129 partitions; there are 128",
        "too-many-partitions",
    ),
    Case(
        "tensor_copy",
        {"src": tile("float32[64, 512]", start=96)},
        "`src` covers partitions 96 to 159; the last one is 127",
        "too-many-partitions",
    ),
    Case(
        "tensor_copy",
        {"src": tile("float32[64, 512]", start=32)},
        "`src` starts at partition 32; with 64 partitions it must start at 0 or 64",
        "start-partition",
    ),
    Case(
        "tensor_copy",
        {"src": tile("float32[32, 512]", start=48)},
        "`src` starts at partition 48; with 32 partitions it must start at 0 or 32 or 64 or 96",
        "start-partition",
    ),
    Case("dma_copy", {"dst": tile("float32[100, 5]", start=7), "src": tile("float32[500] hbm")}),
    Case(
        "tensor_copy",
        {"src": tile("float32[128, 0]")},
        "`src` has the shape [128, 0]; every size must be at least 1",
        "empty-tile",
    ),
    Case(
        "activation",
        {"scale": tile("float32[128, 2]")},
        "`scale` has 2 elements per partition, but must have exactly 1",
        "operand-shape",
    ),
    Case(
        "tensor_copy",
        {"src": strided(40_000, 2)},
        "`src` has a step of 40000 elements; the limit is 32767",
        "access-pattern",
    ),
    Case(
        "tensor_copy",
        {"src": strided(1, 70_000)},
        "`src` has 70000 elements in a dimension; the limit is 65535",
        "access-pattern",
    ),
    Case(
        "tensor_copy",
        {"src": tile("float32[128, 3, 30000]")},
        "`src` has 90000 elements per partition; one instruction takes at most 65536",
        "access-pattern",
    ),
    Case(
        "tensor_copy",
        {"src": tile("float32[128, 32]", dims=((32, 2), (15, 2), (7, 2), (3, 2), (1, 2)))},
        "`src` needs 5 free dimensions; the limit is 4",
        "access-pattern",
    ),
    Case(
        "tensor_copy",
        {"src": tile("float32[128, 16]", dims=((40_000, 2), (7, 2), (3, 2), (1, 2)))},
        "`src` has a step of 40000 elements; the limit is 32767",
        "access-pattern",
    ),
    Case("tensor_copy", {"src": tile("float32[128, 2, 2, 2, 2, 2, 2, 8]")}),
    Case("tensor_copy", {"src": tile("float32[128, 512]", dims=((99_999, 1), (1, 512)))}),
    Case("tensor_copy", {"src": tile("float32[128, 512]", dims=((0, 512),))}),
    Case(
        "tensor_copy",
        {"src": tile("float8_e4m3fn[128, 512]")},
        "`src` is float8_e4m3fn, which needs trn3; the target is trn2",
        "dtype-target",
    ),
    Case("tensor_copy", {"src": tile("float8_e4m3fn[128, 512]")}, target=TRN3),
    Case(
        "tensor_copy",
        {"src": tile("float32[128, 512]", indexed=True)},
        "`src` uses `.indirect()`, which needs trn3; the target is trn2",
        "needs-newer-target",
    ),
    Case("tensor_copy", {"src": tile("float32[128, 512]", indexed=True)}, target=TRN3),
    Case(
        "dma_copy",
        {"src": tile("float32[1] hbm", dims=(), indexed=True)},
        "`src` cannot be addressed by a vector of indices",
        "indexed-operand",
    ),
    Case(
        "tensor_tensor",
        {"data2": tile("float32[128, 512]", indexed=True)},
        "`data2` cannot be addressed by a vector of indices",
        "indexed-operand",
        TRN3,
    ),
    Case(
        "memset",
        {},
        "cannot run on scalar, only on vector or gpsimd",
        "engine-not-allowed",
        engine=Engine.SCALAR,
    ),
    Case(
        "tensor_copy",
        {"src": PSUM},
        "`src` is in psum, which the gpsimd engine cannot access",
        "gpsimd-psum",
        engine=Engine.GPSIMD,
    ),
]

COMMON = [
    Case(
        "tensor_tensor",
        {"data2": tile("float32[64, 512]")},
        "`data2` has 64 partitions and `dst` has 128; they must be equal",
        "partition-mismatch",
    ),
    Case(
        "tensor_tensor",
        {"data1": tile("float32[128, 256]")},
        "`data1` has 256 elements per partition and `dst` has 512; they must be equal",
        "element-count-mismatch",
    ),
    Case("tensor_tensor", {"data1": tile("float32[128, 2, 256]")}),
    Case(
        "activation",
        {"bias": tile("float32[64, 1]")},
        "`bias` has 64 partitions and `data` has 128; they must be equal",
        "partition-mismatch",
    ),
    Case(
        "tensor_tensor",
        {"data1": PSUM, "data2": PSUM},
        "`data1` and `data2` are both in psum; at most one of them may be there",
        "both-in-psum",
    ),
    Case("tensor_tensor", {"data1": PSUM}),
    Case("scalar_tensor_tensor", {"data": PSUM, "operand0": COLUMN._replace(buffer=Buffer.PSUM)}),
    Case(
        "tensor_tensor_scan",
        {"data0": PSUM, "data1": PSUM},
        "`data0` and `data1` are both in psum; at most one of them may be there",
        "both-in-psum",
    ),
    Case(
        "tensor_tensor",
        {"op": "bitwise_xor"},
        "`op` is bitwise_xor, which works on the bits of integers, and `dst` is float32, "
        "`data1` is float32 and `data2` is float32",
        "bitvec-dtype",
    ),
    Case("tensor_tensor", {"op": "bitwise_xor", **dict.fromkeys(("dst", "data1", "data2"), WORDS)}),
    Case(
        "tensor_tensor",
        {"op": "abs"},
        "`op` is abs, but must be an operator with 2 inputs",
        "operator-not-supported",
    ),
    Case(
        "tensor_tensor_scan",
        {"op1": "bitwise_or"},
        "`op1` is bitwise_or, but must be an arithmetic operator with 2 inputs",
        "operator-not-supported",
    ),
    Case(
        "scalar_tensor_tensor",
        {"op0": "left_shift"},
        "`op0` is left_shift, but must be an arithmetic operator",
        "operator-not-supported",
    ),
    Case("scalar_tensor_tensor", {"op0": "abs"}),
    Case(
        "tensor_reduce",
        {"op": "greater"},
        "`op` is greater, but must be one that can reduce",
        "operator-not-supported",
    ),
    Case(
        "tensor_tensor",
        {"op": "abs_max"},
        "`op` is abs_max, which the vector engine of trn2 does not have",
        "operator-not-supported",
    ),
    Case("tensor_tensor", {"op": "abs_max"}, target=TRN3),
    Case(
        "tensor_tensor",
        {"op": "maximum"},
        "`op` is maximum, which the gpsimd engine of trn2 does not have",
        "operator-not-supported",
        engine=Engine.GPSIMD,
    ),
    Case(
        "tensor_tensor",
        {"op": "maximum", **dict.fromkeys(("dst", "data1", "data2"), WORDS)},
        engine=Engine.GPSIMD,
    ),
]


@pytest.mark.parametrize("case", [*SHARED, *COMMON], ids=str)
def test_rule(case: Case) -> None:
    case.holds()


@pytest.mark.parametrize(
    ("partitions", "starts"),
    [
        (1, (0, 32, 64, 96)),
        (32, (0, 32, 64, 96)),
        (33, (0, 64)),
        (64, (0, 64)),
        (65, (0,)),
        (128, (0,)),
    ],
)
def test_where_accesses_may_start(partitions: int, starts: tuple[int, ...]) -> None:
    assert start_partitions(partitions) == starts
