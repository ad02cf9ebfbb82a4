"""Test rules of the rows that gather and draw random numbers, and the costs of these and similar
rows.
"""

from __future__ import annotations

from typing import Any

import pytest

from nkic.machine.operands import Facts
from nkic.machine.targets import TRN1, TRN2, TRN3, Engine, Target
from tests.unit.instances import COLUMN, Case, T, beside, facts_of, tile

PSUM = tile("float32[128, 512] psum")
HALF = tile("bfloat16[128, 1]")
WORDS = tile("int32[128, 512]")
BYTES = tile("uint8[128, 512]")
STATES = tile("uint32[128, 24]")

SNAKES = {"src": "bfloat16", "val_dst": "bfloat16", "idx_dst": "uint32"}
GATHER = [
    Case("topk", {}),
    Case(
        "topk",
        {name: tile(f"{kind}[24, 8]") for name, kind in SNAKES.items()},
        "`src` has 24 partitions, which must be a multiple of 16",
        "operand-shape",
    ),
    Case("topk", {"n": 7}, "`n` is 7, but must be 8 to 65535", "index-count"),
    Case(
        "topk",
        {"n": 49},
        "`src` has 3 elements per partition; 49 elements in 16 partitions need 4",
        "operand-shape",
    ),
    Case(
        "topk",
        {"val_dst": tile("bfloat16[128, 43]"), "idx_dst": tile("uint32[128, 43]")},
        "`val_dst` has 43 elements per partition; at most 42 of 42 elements can be found",
        "operand-shape",
    ),
    Case(
        "topk",
        {"val_dst": tile("bfloat16[128, 9]")},
        "`idx_dst` has 8 elements per partition and `val_dst` has 9; they must be equal",
        "element-count-mismatch",
    ),
    Case(
        "nc_n_gather",
        {"indices": tile("int32[128, 8]")},
        "`indices` is int32, but must be uint32",
        "dtype-not-supported",
    ),
    Case(
        "nc_n_gather",
        {"data": PSUM},
        "`data` is in psum, but must be in sbuf",
        "buffer-not-allowed",
    ),
    Case(
        "nc_n_gather",
        {"data": WORDS},
        "`data` is int32 and `dst` is float32; they must be equal",
        "dtype-mismatch",
    ),
    Case(
        "nc_n_gather",
        {"dst": tile("float32[128, 9]")},
        "`indices` has 8 elements per partition and `dst` has 9; they must be equal",
        "element-count-mismatch",
    ),
    Case("local_gather", {"num_valid_indices": 32, "num_elem_per_idx": 4}),
    Case(
        "local_gather",
        {"num_valid_indices": 129},
        "`num_valid_indices` is 129; a core has 128 indices and takes 1 to 128",
        "index-count",
    ),
    Case(
        "local_gather",
        {"num_elem_per_idx": 3, "dst": tile("float32[128, 384]")},
        "`num_elem_per_idx` is 3, but must be one of 1, 2, 4, 8, 16, 32",
        "index-count",
    ),
    Case(
        "local_gather",
        {"num_valid_indices": 100},
        "`dst` has 128 elements per partition; 100 indices of 1 element each gather 100",
        "element-count-mismatch",
    ),
    Case(
        "local_gather",
        {
            name: tile(f"{kind}[24, {free}]")
            for name, kind, free in (
                ("dst", "float32", 128),
                ("src_buffer", "float32", 512),
                ("index", "uint16", 8),
            )
        },
        "`src_buffer` has 24 partitions, but must have a multiple of 16",
        "operand-shape",
    ),
    Case(
        "tensor_partition_reduce",
        {"op": "multiply"},
        "`op` is multiply, but must be one of add, average, maximum, bitwise_or, bitwise_and",
        "operator-not-supported",
    ),
    Case("tensor_partition_reduce", {"op": "average"}),
    Case(
        "tensor_partition_reduce",
        {"dst": T},
        "`dst` has 128 partitions, but must have exactly 1",
        "operand-shape",
    ),
    Case(
        "tensor_partition_reduce",
        {"dst": COLUMN._replace(partitions=1)},
        "`dst` has 1 element per partition; `data` has 512",
        "element-count-mismatch",
    ),
    Case(
        "tensor_partition_reduce",
        {"op": "bitwise_or", "dst": tile("int32[1, 512]"), "data": BYTES},
        "`data` is uint8 and `dst` is int32; they must be equal",
        "dtype-mismatch",
    ),
    Case(
        "sequence_bounds",
        {"segment_ids": tile("int32[2, 512]")},
        "`segment_ids` has 2 partitions, but must have exactly 1",
        "operand-shape",
    ),
    Case(
        "sequence_bounds",
        {"dst": tile("int32[1, 512]")},
        "`dst` has 512 elements per partition; with two for each id it needs 1024",
        "element-count-mismatch",
    ),
    Case(
        "sequence_bounds",
        {"segment_ids": tile("uint8[1, 512]")},
        "`segment_ids` is uint8, but must be one of float32, int32",
        "dtype-not-supported",
    ),
    Case(
        "nonzero_with_count",
        {"dst": tile("int32[128, 512]")},
        "`dst` has 512 elements per partition; with the count after them it needs 513",
        "element-count-mismatch",
    ),
    Case(
        "nonzero_with_count",
        {"padding_val": 2**31},
        "`padding_val` is 2147483648, but must be a 32-bit int",
        "argument-kind",
    ),
]

RANDOM = [
    Case("dropout", {"prob": HALF}),
    Case(
        "dropout",
        {"dst": WORDS, "data": WORDS, "prob": HALF},
        "`prob` is bfloat16 and `data` is int32, but `prob` must then be float32",
        "operand-not-float32",
    ),
    Case(
        "dropout",
        {"dst": WORDS},
        "`data` is float32 and `dst` is int32; they must be equal",
        "dtype-mismatch",
    ),
    Case("rng", {}, engine=Engine.GPSIMD),
    Case(
        "rng",
        {},
        "runs on the gpsimd engine from trn2 on; the target is trn1",
        "engine-not-allowed",
        TRN1,
        Engine.GPSIMD,
    ),
    Case(
        "rng",
        {"dst": tile("uint32[128, 512] psum")},
        "`dst` is in psum, which the gpsimd engine cannot access",
        "gpsimd-psum",
        engine=Engine.GPSIMD,
    ),
    Case(
        "rng",
        {"dst": T},
        "`dst` is float32, but must be one of int16, int32, int8, uint16, uint32, uint8",
        "dtype-not-supported",
    ),
    Case(
        "set_rng_seed",
        {"src_seeds": tile("uint32[2, 1]")},
        "`src_seeds` has 2 partitions, but must have exactly 1",
        "operand-shape",
    ),
    Case(
        "set_rng_seed",
        {"src_seeds": tile("uint32[1, 2]")},
        "`src_seeds` has 2 elements per partition, but must have exactly 1",
        "operand-shape",
    ),
    Case(
        "rand2",
        {"min": 1, "max": 1.0},
        "`min` is 1 and `max` is 1.0; `min` must be less",
        "random-range",
        TRN3,
    ),
    Case(
        "rand2",
        {"min": HALF},
        "`min` is bfloat16, but must be float32",
        "operand-not-float32",
        TRN3,
    ),
    Case("rand_set_state", {"src_seeds": STATES}, target=TRN3, engine=Engine.VECTOR),
    Case(
        "rand_set_state",
        {"src_seeds": STATES},
        "`src_seeds` has 24 elements per partition, but must have 6: the state of a lane of the "
        "gpsimd engine",
        "operand-shape",
    ),
    Case(
        "rand_set_state",
        {"src_seeds": STATES._replace(buffer=PSUM.buffer)},
        "`src_seeds` is in psum, but must be in sbuf",
        "buffer-not-allowed",
    ),
    Case(
        "rand_get_state",
        {"dst": STATES},
        "runs on the vector engine from trn3 on; the target is trn2",
        "engine-not-allowed",
        engine=Engine.VECTOR,
    ),
    Case(
        "rand_get_state",
        {},
        "`dst` has 6 elements per partition, but must have 24: the state of a lane of the "
        "vector engine",
        "operand-shape",
        TRN3,
        Engine.VECTOR,
    ),
    Case(
        "rand_get_state",
        {"dst": tile("int32[128, 6]")},
        "`dst` is int32, but must be uint32",
        "dtype-not-supported",
    ),
]


@pytest.mark.parametrize("case", [*GATHER, *RANDOM], ids=str)
def test_rules(case: Case) -> None:
    case.holds()


@pytest.mark.parametrize("engine", [Engine.VECTOR, Engine.GPSIMD])
def test_each_engine_has_generators_of_its_own(engine: Engine) -> None:
    state = (f"{engine.value}.random",)
    for name, effects in (
        ("rng", (state, state)),
        ("rand_set_state", ((), state)),
        ("rand_get_state", (state, ())),
    ):
        row, facts = facts_of(name, TRN3, engine)
        assert row.effects(facts) == effects


COSTS: list[tuple[str, Target, dict[str, Any], int]] = [
    ("tensor_scalar_reduce", TRN2, {}, 512 + 64),
    ("select_reduce", TRN1, {}, 2 * 512),
    ("range_select", TRN2, {}, 512),
    ("nc_find_index8", TRN2, {}, 512),
    ("nc_stream_shuffle", TRN2, {"dst": COLUMN, "src": COLUMN}, 8),
    ("exponential", TRN3, {}, 512 // 4),
    ("activate2", TRN3, {"reduce_res": COLUMN}, 512 + 119 + 64),
    # 128 indices of 1 element of 4 bytes: C = (28 + 4) / 4 / min(1, 1) = 8.
    ("local_gather", TRN2, {}, 150 + 128 // 8),
    # 128 indices of 4 elements: C = (28 + 16) / 16 / min(1, 4) = 2.75.
    ("local_gather", TRN2, {"num_elem_per_idx": 4, "dst": T}, 151 + round(512 / 2.75)),
    ("nc_n_gather", TRN2, {"dst": T, "indices": tile("uint32[128, 512]")}, 150 + 512),
    ("rng", TRN2, {}, 512),
    ("rng", TRN3, {}, 512 // 4),
]


@pytest.mark.parametrize(("name", "target", "changes", "cycles"), COSTS)
def test_costs(name: str, target: Target, changes: dict[str, Any], cycles: int) -> None:
    row, facts = facts_of(name, target, **changes)
    facts = Facts(target, facts.operands, facts.attributes, row.choose(facts))
    engine = row.choose(facts)
    assert row.cost(facts).interval == cycles + beside(target, engine, changes)
