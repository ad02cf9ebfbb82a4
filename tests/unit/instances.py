"""One legal instance of every row, for tests that change one property of it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from nkic.base.diagnostics import codes
from nkic.machine.dtypes import DTYPES
from nkic.machine.instructions import ROWS
from nkic.machine.operands import Facts, Register, Row, Tile
from nkic.machine.rules import violations
from nkic.machine.targets import TRN2, Buffer, Engine, Target

Settings = Mapping[str, Any]


def tile(text: str, **more: Any) -> Tile:
    """Return a tile from "float32[128, 512] psum", contiguous; in sbuf unless given.

    `more` are fields.
    """
    head, _, buffer = text.partition("]")
    dtype, _, sizes = head.partition("[")
    shape = tuple(int(size) for size in sizes.split(","))
    memory = Buffer(buffer.strip() or "sbuf")
    partitions, free = (shape[0], shape[1:]) if memory.on_chip else (0, shape)
    made = Tile(memory, DTYPES[dtype], 0, partitions, contiguous(free))
    return made._replace(**more)


def contiguous(shape: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Return row-major (step, num) pairs."""
    dims: list[tuple[int, int]] = []
    step = 1
    for num in reversed(shape):
        dims.insert(0, (step, num))
        step *= num
    return tuple(dims)


T = tile("float32[128, 512]")
COLUMN = tile("float32[128, 1]")
EIGHT = tile("uint32[128, 8]")
EIGHT_FLOATS = tile("float32[128, 8]")
REGISTER = Register(7)
FLAT = tile("float32[128, 512] hbm")
RING = ((0, 1, 2, 3),)
LEGAL: dict[str, Settings] = {
    "device_print": {"tensor": T, "print_prefix": "x ="},
    "register_alloc": {"dst": REGISTER, "x": 5},
    "register_move": {"dst": REGISTER, "src": Register(8)},
    "register_load": {"dst": REGISTER, "src": tile("int32[1, 1]")},
    "register_store": {"dst": tile("int32[1] hbm"), "src": REGISTER},
    "scalar_load": {"dst": REGISTER, "src": tile("int32[1, 1]")},
    "scalar_store": {"dst": tile("int32[1, 1]"), "value": REGISTER},
    "scalar_compute": {"dst": REGISTER, "a": Register(8), "b": 3, "op": "add"},
    "dma_copy": {"dst": T, "src": tile("float32[128, 512] hbm")},
    "dma_transpose": {"dst": tile("bfloat16[128, 16]"), "src": tile("bfloat16[16, 128] hbm")},
    "dma_compute": {
        **{"dst": T, "src0": tile("float32[128, 512] hbm"), "src1": tile("bfloat16[65536] hbm")},
        "reduce_op": "add",
    },
    "nc_matmul": {
        "dst": tile("float32[64, 512] psum"),
        "stationary": tile("bfloat16[128, 64]"),
        "moving": tile("bfloat16[128, 512]"),
    },
    "nc_matmul_mx": {
        "dst": tile("float32[64, 512] psum"),
        "stationary": tile("float8_e5m2_x4[128, 64]"),
        "moving": tile("float4_e2m1fn_x4[128, 512]"),
        "stationary_scale": tile("float8_e8m0fnu[128, 64]"),
        "moving_scale": tile("uint8[124, 512]", start=4),
    },
    "quantize_mx": {
        "dst": tile("float8_e5m2_x4[64, 128]"),
        "src": tile("bfloat16[64, 512]"),
        "dst_scale": tile("uint8[64, 128]"),
    },
    "nc_transpose": {"dst": tile("float32[64, 128] psum"), "data": tile("float32[128, 64]")},
    "tensor_copy": {"dst": T, "src": T},
    "memset": {"dst": T, "value": 1.5},
    "tensor_tensor": {"dst": T, "data1": T, "data2": T, "op": "add"},
    "tensor_scalar": {"dst": T, "data": T, "op0": "multiply", "operand0": 2.0},
    "scalar_tensor_tensor": {
        **{"dst": T, "data": T, "op0": "multiply", "operand0": COLUMN},
        **{"op1": "add", "operand1": T},
    },
    "tensor_reduce": {"dst": COLUMN, "op": "add", "data": T, "axis": (1,)},
    "tensor_tensor_scan": {
        **{"dst": T, "data0": T, "data1": T, "initial": 0.0},
        **{"op0": "multiply", "op1": "add"},
    },
    "bn_stats": {"dst": tile("float32[128, 6]"), "data": T},
    "bn_aggr": {"dst": tile("float32[128, 2]"), "data": tile("float32[128, 12]")},
    "reciprocal": {"dst": T, "data": T},
    "tensor_copy_predicated": {"dst": T, "src": T, "predicate": tile("uint8[128, 512]")},
    "max8": {"dst": tile("float32[128, 8]"), "src": T},
    "tensor_scalar_reduce": {
        **{"dst": T, "data": T, "op0": "multiply", "operand0": 2.0, "reduce_op": "add"},
        "reduce_res": COLUMN,
    },
    "tensor_scalar_cumulative": {"dst": T, "src": T, "op0": "add", "op1": "add", "imm0": 0.0},
    "select_reduce": {
        **{"dst": T, "predicate": tile("uint8[128, 512]"), "on_true": T, "on_false": 0.0},
        **{"reduce_res": COLUMN, "reduce_cmd": "reset_reduce"},
    },
    "range_select": {
        **{"dst": T, "on_true_tile": T, "comp_op0": "greater_equal", "comp_op1": "less"},
        **{"bound0": COLUMN, "bound1": COLUMN, "reduce_res": COLUMN},
    },
    "nc_find_index8": {"dst": EIGHT, "data": T, "vals": EIGHT_FLOATS},
    "nc_match_replace8": {"dst": T, "data": T, "vals": EIGHT_FLOATS, "imm": 0.0},
    "nc_stream_shuffle": {"dst": T, "src": T, "shuffle_mask": tuple(range(32))},
    "nc_n_gather": {"dst": EIGHT_FLOATS, "data": T, "indices": EIGHT},
    "local_gather": {
        "dst": tile("float32[128, 128]"),
        **{"src_buffer": T, "index": tile("uint16[128, 8]")},
    },
    "tensor_partition_reduce": {"dst": tile("float32[1, 512]"), "op": "add", "data": T},
    "sequence_bounds": {
        "dst": tile("int32[1, 2, 512]"),
        "segment_ids": tile("int32[1, 512]"),
    },
    "nonzero_with_count": {"dst": tile("int32[128, 513]"), "src": T},
    "topk": {
        **{"val_dst": tile("bfloat16[128, 8]"), "idx_dst": tile("uint32[128, 8]")},
        **{"src": tile("bfloat16[128, 3]"), "n": 42},
    },
    "core_barrier": {"data": tile("float32[128, 512] shared_hbm"), "cores": (0, 1)},
    "sendrecv": {"src": T, "dst": T, "send_to_rank": 1, "recv_from_rank": 1, "pipe_id": 0},
    "rank_id": {"dst": REGISTER},
    "collective_permute_implicit_current_processing_rank_id": {
        **{"dst": REGISTER, "iteration_id": 1, "replica_group": RING},
    },
    "all_reduce": {"dst": FLAT, "src": FLAT, "replica_group": RING, "op": "add"},
    "all_gather": {
        **{"dst": tile("float32[512, 512] hbm"), "src": FLAT, "replica_group": RING},
        "collective_dim": 0,
    },
    "reduce_scatter": {
        **{"dst": tile("float32[32, 512] hbm"), "src": FLAT, "replica_group": RING},
        **{"collective_dim": 0, "op": "add"},
    },
    "all_to_all": {"dst": FLAT, "src": FLAT, "replica_group": RING, "collective_dim": 0},
    "all_gather_v": {
        **{"dst": FLAT, "src": FLAT, "replica_group": RING},
        "metadata_tensor": tile("uint32[3, 4] hbm"),
    },
    "all_to_all_v": {
        **{"dst": FLAT, "src": FLAT, "replica_group": RING},
        "metadata_tensor": tile("uint32[3, 4] hbm"),
    },
    **{
        f"{name}_prepare": {
            "prepared": tile("uint32[3, 4] hbm"),
            "metadata_tensor": tile("uint32[3, 4] hbm"),
        }
        for name in ("all_gather_v", "all_to_all_v")
    },
    **{
        f"{name}_trigger": {
            **{"dst": FLAT, "src": FLAT, "replica_group": RING},
            "metadata_tensor": tile("uint32[3, 4] hbm"),
            "prepared": tile("uint32[3, 4] hbm"),
        }
        for name in ("all_gather_v", "all_to_all_v")
    },
    "collective_permute": {"dst": FLAT, "src": FLAT, "source_target_pairs": ((0, 1), (1, 0))},
    "collective_permute_implicit": {"dst": FLAT, "src": FLAT, "replica_group": RING},
    "collective_permute_implicit_reduce": {
        **{"dst": FLAT, "src0": FLAT, "src1": FLAT, "replica_group": RING, "op": "add"},
    },
    "exponential": {"dst": T, "src": T},
    "activate2": {
        **{"dst": T, "op": "gelu", "data": T, "imm0": 2.0, "imm1": COLUMN},
        **{"op0": "multiply", "op1": "add"},
    },
    "dropout": {"dst": T, "data": T, "prob": 0.5},
    "rng": {"dst": tile("uint32[128, 512]")},
    "set_rng_seed": {"src_seeds": tile("uint32[1, 1]")},
    "rand2": {"dst": T, "min": 0.0, "max": COLUMN},
    "rand_set_state": {"src_seeds": tile("uint32[128, 6]")},
    "rand_get_state": {"dst": tile("uint32[128, 6]")},
    "activation": {"dst": T, "op": "exp", "data": T},
    "activation_reduce": {
        **{"dst": T, "op": "exp", "data": T, "reduce_op": "add", "reduce_res": COLUMN},
    },
    "iota": {"dst": tile("int32[128, 512]"), "pattern": ((1, 512),)},
    "affine_select": {
        **{"dst": T, "pattern": ((1, 512),), "channel_multiplier": -1},
        **{"on_true_tile": T, "on_false_value": 0.0},
    },
}


def facts_of(
    name: str, target: Target = TRN2, engine: Engine | None = None, /, **changes: Any
) -> tuple[Row, Facts]:
    """Return the legal instance of `name` with `changes`; "engine" among them is an attribute."""
    row = ROWS[name]
    values = {**LEGAL[name], **changes}
    operands = {o.name: values.pop(o.name, o.default) for o in row.operands}
    attributes = {a.name: values.pop(a.name, a.default) for a in row.attributes}
    assert not values, f"{name} has no {sorted(values)}"
    return row, Facts(target, operands, attributes, engine)


class Case(NamedTuple):
    """A changed instance, and the expected message, which is empty if the instance is legal."""

    name: str
    changes: Settings
    message: str = ""
    slug: str = ""
    target: Target = TRN2
    engine: Engine | None = None

    def __str__(self) -> str:
        return f"{self.name}: {self.message or 'legal'}"

    def holds(self) -> None:
        """Check that exactly this diagnostic is reported, that its code has a page, and that it has
        one fix.
        """
        row, facts = facts_of(self.name, self.target, self.engine, **self.changes)
        found = violations(row, facts)
        said = [(violation.message, violation.slug) for violation in found]
        assert said == ([(f"{self.name}: {self.message}", self.slug)] if self.message else [])
        for violation in found:
            assert violation.slug in codes()
            places = {"", "engine", *row.operand_index, *row.attribute_index}
            assert violation.operand in places
            assert violation.help[0].islower() or violation.help[0] == "`"
            assert not violation.help.endswith(".")


# Cycles in addition to streaming, by generation and engine, with the source in SBUF and in PSUM.
BESIDE = {
    (2, Engine.VECTOR): (60, 60),
    (3, Engine.VECTOR): (56, 62),
    (4, Engine.VECTOR): (56, 62),
    (2, Engine.SCALAR): (60, 60),
    (3, Engine.SCALAR): (102, 54),
    (4, Engine.SCALAR): (102, 54),
    **{(generation, Engine.GPSIMD): (60, 60) for generation in (2, 3, 4)},
}


def beside(target: Target, engine: Engine, changes: Mapping[str, Any]) -> int:
    """Cycles in addition to streaming; the array's own are in its formula."""
    tiles = [v for v in changes.values() if isinstance(v, Tile)]
    in_psum = any(t.buffer is Buffer.PSUM for t in tiles)
    return BESIDE.get((target.generation, engine), (0, 0))[in_psum]
