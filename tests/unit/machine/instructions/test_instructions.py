"""Compare the table with the public API: parameters, defaults, engines, effects, access."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nkic.base.profiles import Profile
from nkic.language import isa
from nkic.machine.instructions import BY_OPCODE, ROWS, _unique, listing
from nkic.machine.operands import Access, Attribute, AttributeKind, Operand, Row
from nkic.machine.targets import TRN1, TRN2, Engine
from tests.unit import public_isa
from tests.unit.instances import COLUMN, T, facts_of, tile

NKIC = Path(__file__).resolve().parents[4] / "nkic"
OWN = [row for row in ROWS.values() if row.module == "nki.isa"]
SPREAD = frozenset(f"src{i}" for i in range(16))  # of dma_compute's srcs
DOCS = Path(__file__).resolve().parents[4] / "docs"
WORDS = tile("int32[128, 512]")
PSUM = tile("float32[128, 512] psum")

# Opcode and call of each instruction in NKI 0.7, with its defaults.
PUBLISHED = {
    "register_alloc": (1, "x=None"),
    "register_move": (2, "dst, src"),
    "register_load": (3, "dst, src"),
    "register_store": (4, "dst, src"),
    "scalar_load": (5, "src"),
    "scalar_store": (6, "dst, value"),
    "dma_copy": (
        10,
        "dst, src, priority=None, oob_mode='error', dge_mode='unknown', engine='unknown', "
        "name=None",
    ),
    "dma_transpose": (
        11,
        "dst, src, axes=None, priority=None, dge_mode='unknown', oob_mode='error', name=None",
    ),
    "dma_compute": (
        12,
        "dst, srcs, reduce_op, scales=None, unique_indices=True, oob_mode='error', name=None",
    ),
    "core_barrier": (120, "data, cores, engine=None, name=None"),
    "sendrecv": (
        121,
        "src, dst, send_to_rank, recv_from_rank, pipe_id, dma_engine='dma', name=None",
    ),
    "nc_matmul": (
        30,
        "dst, stationary, moving, is_stationary_onezero=False, is_moving_onezero=False, "
        "is_transpose=False, accumulate=None, tile_position=(), tile_size=(), perf_mode='none', "
        "name=None",
    ),
    "nc_matmul_mx": (
        32,
        "dst, stationary, moving, stationary_scale, moving_scale, tile_position=None, "
        "tile_size=None, accumulate=None, name=None",
    ),
    "quantize_mx": (66, "dst, src, dst_scale, name=None"),
    "nc_transpose": (31, "dst, data, engine=None, name=None"),
    "tensor_copy": (40, "dst, src, engine=None, name=None"),
    "memset": (41, "dst, value, engine=None, name=None"),
    "tensor_tensor": (42, "dst, data1, data2, op, engine=None, name=None"),
    "tensor_scalar": (
        43,
        "dst, data, op0, operand0, reverse0=False, op1=None, operand1=None, reverse1=False, "
        "engine=None, name=None",
    ),
    "scalar_tensor_tensor": (
        44,
        "dst, data, op0, operand0, op1, operand1, reverse0=False, reverse1=False, name=None",
    ),
    "tensor_reduce": (45, "dst, op, data, axis, negate=False, keepdims=False, name=None"),
    "tensor_tensor_scan": (
        46,
        "dst, data0, data1, initial, op0, op1, reverse0=False, reverse1=False, name=None",
    ),
    "bn_stats": (47, "dst, data, name=None"),
    "bn_aggr": (48, "dst, data, name=None"),
    "reciprocal": (49, "dst, data, name=None"),
    "tensor_copy_predicated": (50, "dst, src, predicate, reverse_pred=False, name=None"),
    "max8": (51, "dst, src, name=None"),
    "tensor_scalar_reduce": (
        52,
        "dst, data, op0, operand0, reduce_op, reduce_res=None, reverse0=False, "
        "reduce_cmd='reset_reduce', reduce_init=None, reduce_res_negate=False, name=None",
    ),
    "tensor_scalar_cumulative": (
        53,
        "dst, src, op0, op1, imm0, imm1=None, reduce_cmd='reset_reduce', name=None",
    ),
    "select_reduce": (
        54,
        "dst, predicate, on_true, on_false, reduce_res=None, reduce_cmd='idle', "
        "reduce_op='maximum', reverse_pred=False, name=None",
    ),
    "range_select": (
        55,
        "dst, on_true_tile, comp_op0, comp_op1, bound0, bound1, reduce_cmd='reset_reduce', "
        "reduce_res=None, reduce_op='maximum', range_start=0, "
        "on_false_value=-3.4028234663852886e+38, name=None",
    ),
    "nc_find_index8": (56, "dst, data, vals, name=None"),
    "nc_match_replace8": (57, "dst, data, vals, imm, dst_idx=None, name=None"),
    "nc_stream_shuffle": (58, "dst, src, shuffle_mask, name=None"),
    "exponential": (
        59,
        "dst, src, max_value=0.0, reduce_res=None, reduce_cmd='idle', reduce_init=0.0, name=None",
    ),
    "dropout": (60, "dst, data, prob, name=None"),
    "rng": (61, "dst, engine=None, name=None"),
    "set_rng_seed": (62, "src_seeds, name=None"),
    "rand2": (63, "dst, min, max, name=None"),
    "rand_set_state": (64, "src_seeds, engine=None, name=None"),
    "rand_get_state": (65, "dst, engine=None, name=None"),
    "activate2": (
        82,
        "dst, op, data, imm0, imm1, op0, op1, relu_param=0.0, reverse0=False, reverse1=False, "
        "reduce_op=None, reduce_res=None, reduce_cmd='idle', name=None",
    ),
    "nc_n_gather": (102, "dst, data, indices, name=None"),
    "local_gather": (
        103,
        "dst, src_buffer, index, num_elem_per_idx=1, num_valid_indices=None, name=None",
    ),
    "tensor_partition_reduce": (104, "dst, op, data, name=None"),
    "sequence_bounds": (105, "dst, segment_ids, name=None"),
    "nonzero_with_count": (106, "dst, src, index_offset=0, padding_val=-1, name=None"),
    "topk": (107, "val_dst, idx_dst, src, n, name=None"),
    "activation": (
        80,
        "dst, op, data, bias=None, scale=1.0, reduce_op=None, reduce_res=None, "
        "reduce_cmd='idle', name=None",
    ),
    "activation_reduce": (
        81,
        "dst, op, data, reduce_op, reduce_res, bias=None, scale=1.0, name=None",
    ),
    "iota": (100, "dst, pattern, offset=0, channel_multiplier=0, name=None"),
    "affine_select": (
        101,
        "dst, pattern, channel_multiplier, on_true_tile, on_false_value, cmp_op='equal', "
        "offset=0, name=None",
    ),
}


def call(row: Row) -> str:
    """Return the parameters with their defaults, as Python writes them."""
    defaults: dict[str, Any] = {"name": None, "engine": None, row.spread: ...}
    defaults |= {o.name: o.default for o in row.operands}
    defaults |= {a.name: a.default for a in row.attributes}
    words = ((name, defaults[name]) for name in row.parameters)
    return ", ".join(name if value is ... else f"{name}={value!r}" for name, value in words)


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_call_is_the_published_one(name: str) -> None:
    row = ROWS[name]
    assert (row.opcode, call(row)) == PUBLISHED[name]


def test_every_row_is_compared_with_the_api() -> None:
    """Functions of nki.language are compared too, in test_names.py."""
    assert {row.name for row in OWN} == set(PUBLISHED)


def test_rows_have_the_public_parameters_and_no_others() -> None:
    """Every public function of nki.isa is a row, except the two that query the target."""
    public = {name: tuple(names.split()) for name, names in public_isa.FUNCTIONS.items()}
    assert {"get_nc_version", "get_nc_sub_version"} == set(public) - set(ROWS)
    assert {row.name: row.parameters for row in OWN} == {row.name: public[row.name] for row in OWN}


def test_kernels_find_the_public_names_and_no_others() -> None:
    found = isa.names(Profile.NKI_0_7)
    public = {*public_isa.FUNCTIONS, *public_isa.ENUMERATIONS, *public_isa.OTHERS.split()}
    assert public == set(found)
    assert public - set(isa.names(Profile.NKI_0_6)) == set(public_isa.SINCE_0_7.split())
    members = {
        name: " ".join(member.name for member in found[name]) for name in public_isa.ENUMERATIONS
    }
    assert members == public_isa.ENUMERATIONS


def test_no_parameter_is_accepted_and_ignored() -> None:
    """The semantics, a rule, a cost or the trigger reads every operand and attribute."""
    folders = (NKIC / "simulate/semantics", NKIC / "machine")
    read = "".join(p.read_text("utf-8") for folder in folders for p in folder.rglob("*.py"))
    for row in OWN:
        rules: list[Operand | Attribute] = [*row.operands, *row.attributes]
        for rule in rules:
            uses = read.count(f'"{rule.name}"')
            assert uses > 1 or rule.name in SPREAD, f"{row.name}: {rule.name} is never read"


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.name)
def test_row_is_complete(row: Row) -> None:
    assert row.doc.endswith(".") and row.source
    assert row.generation in (2, 3, 4) and row.since >= Profile.BETA1
    assert BY_OPCODE[row.opcode] is row
    places = {o.name for o in row.operands} | {a.name for a in row.attributes}
    unnamed = {row.returns} if row.returns else {o.name for o in row.spread_operands}
    unnamed |= row.by_profile
    assert places - set(row.parameters) == unnamed
    for attribute in row.attributes:
        if attribute.kind is AttributeKind.CHOICE:
            assert attribute.default in attribute.choices


def test_names_and_opcodes_are_unique() -> None:
    row = ROWS["iota"]
    with pytest.raises(ValueError, match="iota and max8 are both 7"):
        _unique(lambda row: 7, (row, ROWS["max8"]))


def test_a_row_with_an_unknown_parameter_is_refused() -> None:
    with pytest.raises(ValueError, match=r"bn_stats: parameters without a row entry: \['axis'\]"):
        replace(ROWS["bn_stats"], parameters=("dst", "data", "axis"))


def test_the_engine_of_a_dma_is_its_trigger() -> None:
    assert ROWS["tensor_copy"].has_engine_parameter
    assert not ROWS["dma_copy"].has_engine_parameter
    assert not ROWS["iota"].has_engine_parameter
    assert ROWS["dma_copy"].engines == (Engine.DMA,)


def test_what_streams_through_access_patterns() -> None:
    others = [name for name, row in ROWS.items() if not row.streams]
    assert others == [
        *("register_alloc", "register_move", "register_load", "register_store"),
        *("scalar_load", "scalar_store", "scalar_compute"),
        *("dma_copy", "dma_transpose", "dma_compute"),
        *("core_barrier", "sendrecv"),
        *(name for name, row in ROWS.items() if row.module == "nki.collectives"),
        "device_print",
    ]


INTEGERS = dict.fromkeys(("dst", "data1", "data2"), WORDS)
CHOICES: list[tuple[str, dict[str, Any], Engine]] = [
    ("tensor_copy", {}, Engine.VECTOR),
    ("memset", {"dst": T}, Engine.GPSIMD),
    ("memset", {"dst": PSUM}, Engine.VECTOR),
    ("memset", {"dst": COLUMN}, Engine.VECTOR),
    ("tensor_tensor", {}, Engine.VECTOR),
    ("tensor_tensor", {"op": "power"}, Engine.GPSIMD),
    ("tensor_tensor", INTEGERS, Engine.GPSIMD),
    ("tensor_tensor", {**INTEGERS, "op": "less"}, Engine.GPSIMD),
    ("tensor_tensor", {**INTEGERS, "op": "bitwise_and"}, Engine.VECTOR),
    ("tensor_tensor", {**INTEGERS, "data1": WORDS._replace(buffer=PSUM.buffer)}, Engine.VECTOR),
    ("tensor_tensor", {**INTEGERS, "dst": T}, Engine.VECTOR),
    ("tensor_scalar", {}, Engine.VECTOR),
    ("tensor_scalar", {"op0": "rsqrt", "operand0": None}, Engine.GPSIMD),
    ("nc_transpose", {}, Engine.TENSOR),
    ("nc_transpose", {"dst": T}, Engine.VECTOR),
    ("nc_transpose", {"data": PSUM}, Engine.VECTOR),
    ("dma_copy", {"engine": "scalar"}, Engine.DMA),
    ("iota", {}, Engine.GPSIMD),
]


@pytest.mark.parametrize(("name", "changes", "engine"), CHOICES)
def test_the_engine_chosen(name: str, changes: dict[str, Any], engine: Engine) -> None:
    row, facts = facts_of(name, **changes)
    assert row.choose(facts) is engine


A = ("scalar.accumulator",)
EFFECTS: list[tuple[dict[str, Any], tuple[str, ...], tuple[str, ...]]] = [
    ({}, (), ()),
    ({"reduce_res": COLUMN}, A, ()),
    ({"reduce_cmd": "reset"}, (), A),
    ({"reduce_cmd": "reset", "reduce_res": COLUMN}, (), A),
    ({"reduce_cmd": "reduce"}, A, A),
    ({"reduce_cmd": "reset_reduce"}, (), A),
    ({"reduce_cmd": "reset_reduce", "reduce_res": COLUMN}, (), A),
]


@pytest.mark.parametrize(("changes", "reads", "writes"), EFFECTS)
def test_activation_and_the_accumulator(
    changes: dict[str, Any], reads: tuple[str, ...], writes: tuple[str, ...]
) -> None:
    row, facts = facts_of("activation", TRN2, Engine.SCALAR, reduce_op="add", **changes)
    assert row.effects(facts) == (reads, writes)


def test_other_effects() -> None:
    row, facts = facts_of("activation_reduce")
    assert row.effects(facts) == ((), A)
    row, facts = facts_of("tensor_copy")
    assert row.effects(facts) == ((), ())


@pytest.mark.parametrize(
    ("accumulate", "access"),
    [(True, Access.UPDATE), (False, Access.WRITE), (None, Access.WRITE)],
)
def test_an_accumulating_matmul_updates(accumulate: bool | None, access: Access) -> None:
    row, facts = facts_of("nc_matmul", accumulate=accumulate)
    accesses = [row.access_of(operand, facts) for operand in row.operands]
    assert accesses == [access, Access.READ, Access.READ]


def test_a_predicated_copy_updates() -> None:
    row, facts = facts_of("tensor_copy_predicated", TRN1)
    assert row.access_of(row.operands[0], facts) is Access.UPDATE


def test_where_lower_keeps_dimensions() -> None:
    kept = {f"{r.name}.{o.name}" for r in ROWS.values() for o in r.operands if o.keep_rank}
    assert kept == {
        *("tensor_reduce.data", "nc_matmul.stationary", "nc_matmul.moving"),
        *("dma_transpose.dst", "dma_transpose.src", "device_print.tensor"),
        *("all_gather_v.metadata_tensor", "all_to_all_v.metadata_tensor"),
        *(
            f"{name}_{half}.{operand}"
            for name in ("all_gather_v", "all_to_all_v")
            for half in ("prepare", "trigger")
            for operand in ("prepared", "metadata_tensor")
        ),
    }


# Listings.


def test_the_page_of_instructions_is_fresh() -> None:
    """`python -m nkic.machine.instructions.listing > docs/instructions.md` writes it."""
    assert (DOCS / "instructions.md").read_text("utf-8") == listing.markdown()


def test_the_page_says_what_a_call_takes() -> None:
    section = listing.markdown().split("## tensor_scalar\n")[1].split("\n## ")[0]
    assert "`nisa.tensor_scalar(dst, data, op0, operand0, reverse0, op1," in section
    assert "- `op0`: an operator\n" in section
    assert (
        "- `operand1`: read, a tile or a number or None, in psum or sbuf, one element per "
        "partition; None if left out\n" in section
    )
    assert "- `engine`: one of vector, scalar, gpsimd; chosen if left out\n" in section


def test_the_text_has_a_line_for_every_row() -> None:
    head, *lines = listing.text().splitlines()
    assert head.split() == ["instruction", "engines", "trn1", "trn2", "trn3", "since"]
    names = [line.split()[0] for line in lines[: lines.index("")] if line[0] != " "]
    assert names == sorted(ROWS)
    (text,) = [line for line in lines if line.startswith("exponential ")]
    assert text.split()[1:6] == ["vector", "-", "-", "yes", "0.3"]


def test_the_text_says_which_parameters_came_later() -> None:
    lines = listing.text().splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("nc_matmul "))
    assert lines[at + 1 : at + 3] == [
        "    `accumulate` since NKI 0.3",
        "    `perf_mode` on trn2 and newer",
    ]


def test_the_text_counts_what_each_target_and_profile_has() -> None:
    total, targets, profiles = listing.text().splitlines()[-3:]
    assert total == f"{len(ROWS)} instructions; nki.isa and nki.collectives of NKI 0.7 are complete"
    assert targets.endswith(f"trn3 {len(ROWS)}") and profiles.endswith(f"0.7 {len(ROWS)}")
    assert "partial" not in listing.text() and "not supported" not in listing.text()


def test_the_records_hold_what_json_can() -> None:
    (record,) = [r for r in listing.records() if r["name"] == "memset"]
    assert record["engines"] == ["vector", "gpsimd"]
    assert record["parameters"] == ["dst", "value", "engine", "name"]
    assert (record["target"], record["since"], record["until"]) == ("trn1", "beta2", None)
