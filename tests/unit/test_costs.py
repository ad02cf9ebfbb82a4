"""Cost formulas against what public guides measured, and against the formulas they printed."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from nkic.machine import costs
from nkic.machine.costs import Trigger, dma_trigger
from nkic.machine.engines import Engine
from nkic.machine.facts import Facts, Tile
from nkic.machine.instructions import ROWS
from nkic.machine.operands import Cost
from nkic.machine.targets import TARGETS, TRN1, TRN2, TRN3, Target
from tests.unit.instances import COLUMN, LEGAL, facts_of, tile

PSUM = tile("float32[128, 512] psum")
HALF = tile("bfloat16[128, 512]")
SPREAD = tile("bfloat16[128, 512]", dims=((4, 512),))
FAR = tile("float32[128, 512]", dims=((8, 512),))
WIDE = dict.fromkeys(("dst", "data1", "data2"), tile("float32[64, 8192]"))


def engine_of(name: str, facts: Facts) -> Engine:
    return ROWS[name].choose(facts)


def cost_of(
    name: str, target: Target = TRN2, engine: Engine | None = None, /, **changes: Any
) -> Cost:
    row, facts = facts_of(name, target, engine, **changes)
    engine = engine or row.choose(facts)
    return row.cost(Facts(target, facts.operands, facts.attributes, engine))


def matmul(held: int, streamed: int, dtype: str, **more: Any) -> dict[str, Any]:
    return {
        "dst": tile(f"float32[{held}, {streamed}] psum"),
        "stationary": tile(f"{dtype}[128, {held}]"),
        "moving": tile(f"{dtype}[128, {streamed}]"),
        **more,
    }


# Measured. "interval" is from start to start, "duration" from start to end, both in ns.


class Measured(NamedTuple):
    """A row of a published profile, and how far off we may be, in percent."""

    source: str
    name: str
    target: Target
    changes: dict[str, Any]
    interval: float = 0.0
    duration: float = 0.0
    percent: float = 2.0
    engine: Engine | None = None


TUTORIAL = "kernel optimisation tutorial"
OVERVIEW = "DMA overview"
GUIDE = "performance guide"
TWO_PASSES = 2  # the tutorial's nc_matmul in float32 shows as two MATMULs

MEASURED = [
    # Each of the two takes 429 ns, and the second ends 600 ns after it starts.
    Measured(
        TUTORIAL,
        "nc_matmul",
        TRN2,
        matmul(128, 512, "float32"),
        interval=TWO_PASSES * 429,
        duration=429 + 600,
    ),
    Measured(TUTORIAL, "tensor_copy", TRN2, {"src": PSUM}, duration=701),
    Measured(TUTORIAL, "tensor_tensor", TRN2, {"data2": PSUM}, duration=694),
    Measured(TUTORIAL, "tensor_copy", TRN2, {}, interval=343, duration=428, percent=4.5),
    Measured(
        OVERVIEW,
        "activation",
        TRN2,
        {"dst": tile("bfloat16[4, 4096]"), "data": tile("bfloat16[4, 4096]")},
        duration=3711,
        percent=1,
    ),
    Measured(
        OVERVIEW,
        "activation",
        TRN2,
        {"dst": tile("bfloat16[128, 128]"), "data": tile("bfloat16[128, 128]")},
        duration=401,
    ),
    Measured(GUIDE, "tensor_tensor", TRN1, WIDE, duration=14_968),
    Measured(
        GUIDE,
        "activation",
        TRN1,
        {"dst": COLUMN, "data": COLUMN},
        duration=159,
        percent=1,
    ),
    Measured(GUIDE, "nc_matmul", TRN1, matmul(96, 128, "bfloat16"), duration=219),
    Measured(GUIDE, "nc_matmul", TRN1, matmul(1, 128, "bfloat16"), duration=188),
]


@pytest.mark.parametrize("row", MEASURED, ids=lambda row: f"{row.source}: {row.name}")
def test_measured(row: Measured) -> None:
    engine = row.engine or engine_of(row.name, facts_of(row.name, row.target, **row.changes)[1])
    cost = cost_of(row.name, row.target, engine, **row.changes)
    interval = cost.cycles * 1000 / row.target.clock_mhz[engine]
    near = row.percent / 100
    if row.interval:
        assert interval == pytest.approx(row.interval, rel=near)
    assert interval + cost.latency_ns == pytest.approx(row.duration, rel=near)


def load(shape: str, dtype: str, **changes: Any) -> dict[str, Any]:
    return {"dst": tile(f"{dtype}[{shape}]"), "src": tile(f"{dtype}[{shape}] hbm"), **changes}


@pytest.mark.parametrize(
    ("target", "changes", "ns", "engines", "percent"),
    [
        (TRN2, load("4, 4096", "bfloat16"), 1416, 1, 1),  # overview: 32 KiB on one engine
        (TRN2, load("128, 512", "float32"), 8 * 88.9, 16, 1),  # tutorial: rows of 2 KiB
        (TRN2, load("128, 128", "float32"), 8 * 33.6, 16, 1),  # tutorial: rows of 512 B
        (TRN1, load("4, 4096", "bfloat16"), 1810, 1, 7),  # performance guide: 32 KiB
    ],
)
def test_measured_dma(
    target: Target, changes: dict[str, Any], ns: float, engines: int, percent: float
) -> None:
    cost = cost_of("dma_copy", target, **changes)
    assert cost.busy_ns == pytest.approx(ns, rel=percent / 100)
    assert cost.dma_engines == engines


def test_measured_dma_chain() -> None:
    """DMA overview, first example: from the trigger to the semaphore, 22,277 to 24,997."""
    cost = cost_of("dma_copy", **load("4, 4096", "bfloat16"))
    assert cost.start_ns + cost.busy_ns + cost.latency_ns == pytest.approx(
        24_997 - 22_277, rel=0.01
    )
    assert costs.ACT_TABLE_LOAD_NS[TRN2.generation] == 1285


@pytest.mark.parametrize("target", TARGETS.values(), ids=str)
def test_long_rows_move_at_the_published_rate(target: Target) -> None:
    cost = cost_of("dma_copy", target, **load("128, 4096", "float32"))
    rate = 128 * 4096 * 4 / cost.busy_ns
    assert rate == pytest.approx(target.dma_engines * target.dma_rate, rel=0.001)


def test_the_shorter_run_of_both_sides_counts() -> None:
    columns = tile("float32[128, 512] hbm", dims=((1, 128), (128, 512)))
    scattered = cost_of("dma_copy", src=columns)
    # A descriptor for each element: 15 ns and 4 bytes, 4096 elements on every engine.
    assert scattered.busy_ns == pytest.approx(4096 * 15.1, rel=0.01)
    assert scattered.busy_ns > 50 * cost_of("dma_copy").busy_ns


def test_transfers_within_hbm_use_every_engine() -> None:
    long = cost_of("dma_copy", dst=tile("float32[65536] hbm"), src=tile("float32[65536] hbm"))
    assert long.dma_engines == 16
    assert long.busy_ns == pytest.approx(8 * 2048 / 23.0, rel=0.001)
    short = cost_of("dma_copy", dst=tile("float32[8] hbm"), src=tile("float32[8] hbm"))
    assert short.dma_engines == 1
    assert short.busy_ns == pytest.approx(16.2, rel=0.01)


def test_a_transposing_dma_is_slower_than_a_copy() -> None:
    shape = {"dst": tile("bfloat16[128, 4096]"), "src": tile("bfloat16[4096, 128] hbm")}
    from_hbm = cost_of("dma_transpose", **shape)
    moved = 4096 * 128 * 2
    assert moved / (from_hbm.busy_ns - 15) == pytest.approx(0.9 * 16 * 23.0)
    square = {"dst": tile("bfloat16[128, 128]"), "src": tile("bfloat16[128, 128]")}
    within = cost_of("dma_transpose", **square)
    assert 128 * 128 * 2 / (within.busy_ns - 15) == pytest.approx(0.5 * 16 * 23.0)


@pytest.mark.parametrize(
    ("target", "changes", "trigger"),
    [
        (TRN2, {}, Trigger(Engine.SYNC, 600.0)),
        (TRN2, {"dge_mode": "hwdge", "engine": "scalar"}, Trigger(Engine.SCALAR, 600.0)),
        (TRN2, {"dge_mode": "swdge"}, Trigger(Engine.GPSIMD, 8.0)),
        (TRN2, {"dge_mode": "none"}, Trigger(Engine.SYNC, 8.0)),
        (TRN2, {"src": tile("bfloat16[128, 512] hbm")}, Trigger(Engine.SYNC, 8.0)),
        (TRN2, {"src": tile("float32[128, 512] hbm", indexed=True)}, Trigger(Engine.GPSIMD, 8.0)),
        (TRN1, {}, Trigger(Engine.SYNC, 8.0)),
    ],
)
def test_who_starts_a_transfer(target: Target, changes: dict[str, Any], trigger: Trigger) -> None:
    assert dma_trigger(facts_of("dma_copy", target, **changes)[1]) == trigger


# The published formulas, in cycles.

BOTH = ("dst", "src")
ALL = ("dst", "data1", "data2")
V, S, G = Engine.VECTOR, Engine.SCALAR, Engine.GPSIMD
FORMULAS: list[tuple[str, Target, Engine | None, dict[str, Any], int]] = [
    # max(64, N)
    ("tensor_copy", TRN1, V, {}, 512),
    ("tensor_copy", TRN1, V, dict.fromkeys(BOTH, COLUMN), 64),
    ("tensor_copy", TRN1, V, dict.fromkeys(BOTH, HALF), 512),
    ("tensor_copy", TRN2, G, {}, 512),
    ("tensor_copy", TRN2, S, dict.fromkeys(BOTH, HALF), 512),
    ("tensor_copy", TRN3, S, dict.fromkeys(BOTH, HALF), 256 + 60),
    # v3's modes: a quarter, half, half, a quarter of nothing below one access
    ("tensor_copy", TRN2, V, dict.fromkeys(BOTH, HALF), 128 + 60),
    ("tensor_copy", TRN2, V, dict.fromkeys(BOTH, SPREAD), 256 + 60),
    ("tensor_copy", TRN2, V, {"dst": HALF, "src": tile("bfloat16[128, 512] psum")}, 256 + 60),
    ("tensor_copy", TRN2, V, {"dst": HALF}, 256 + 60),
    ("tensor_copy", TRN2, V, {"src": PSUM}, 512),
    ("tensor_copy", TRN2, V, dict.fromkeys(BOTH, tile("bfloat16[128, 64]")), 64),
    ("tensor_copy", TRN2, V, dict.fromkeys(BOTH, tile("float8_e5m2[128, 512]")), 256 + 60),
    ("tensor_copy", TRN3, V, dict.fromkeys(BOTH, tile("float8_e5m2[128, 512]")), 128 + 60),
    # innermost steps above 16 bytes halve the rate; addresses from registers cost 600
    ("tensor_copy", TRN1, V, {"src": FAR}, 1024),
    ("tensor_copy", TRN1, V, {"src": tile("float32[128, 512]", dims=((4, 512),))}, 512),
    ("tensor_copy", TRN1, V, {"src": tile("float32[128, 512]", dynamic=True)}, 600),
    ("tensor_scalar", TRN1, None, {}, 512),
    ("tensor_scalar", TRN2, None, {"dst": HALF, "data": HALF}, 128 + 60),
    ("tensor_scalar", TRN2, None, {"op0": "rsqrt", "operand0": None}, 4 * 512),
    # max(64, N / 2) for zeros in 16-bit floats
    ("memset", TRN1, V, {}, 512),
    ("memset", TRN1, V, {"dst": HALF, "value": 0.0}, 256 + 60),
    ("memset", TRN1, V, {"dst": HALF, "value": 1.0}, 512),
    ("memset", TRN2, V, {}, 256 + 60),
    ("memset", TRN2, G, {}, 512),
    # 2 N from one memory, N from both, N for 16-bit floats
    ("tensor_tensor", TRN1, V, {}, 1024),
    ("tensor_tensor", TRN1, V, {"data1": PSUM}, 512),
    ("tensor_tensor", TRN1, V, dict.fromkeys(ALL, HALF), 512),
    ("tensor_tensor", TRN1, V, {**dict.fromkeys(ALL, HALF), "op": "maximum"}, 1024),
    ("tensor_tensor", TRN2, V, {}, 512),
    ("tensor_tensor", TRN2, V, dict.fromkeys(ALL, HALF), 256 + 60),
    ("tensor_tensor", TRN2, None, {"op": "power"}, 1024),
    ("scalar_tensor_tensor", TRN2, None, {}, 1024),
    (
        "scalar_tensor_tensor",
        TRN2,
        None,
        {"op0": "subtract", "op1": "multiply", "data": HALF, "operand1": HALF},
        512,
    ),
    ("tensor_reduce", TRN2, None, {}, 512),
    ("tensor_reduce", TRN2, None, {"data": HALF, "dst": tile("bfloat16[128, 1]")}, 256),
    ("tensor_tensor_scan", TRN2, None, {}, 1024),
    ("bn_stats", TRN2, None, {}, 512),
    ("bn_aggr", TRN2, None, {"data": tile("float32[128, 120]")}, 520),
    ("reciprocal", TRN2, None, {}, 4096),
    ("tensor_copy_predicated", TRN2, None, {}, 1024),
    ("tensor_copy_predicated", TRN2, None, {"src": PSUM}, 512),
    ("tensor_copy_predicated", TRN2, None, {"src": 1.0}, 512),
    ("max8", TRN2, None, {}, 512),
    ("activation", TRN2, None, {}, 512),
    ("activation", TRN2, None, {"reduce_res": COLUMN}, 512 + 64),
    ("activation_reduce", TRN2, None, {}, 512 + 64),
    ("iota", TRN2, None, {}, 150 + 512),
    ("affine_select", TRN2, None, {}, 150 + 512),
    # max(min(64, held), streamed), four times for float32
    ("nc_matmul", TRN2, None, matmul(128, 512, "bfloat16"), 512),
    ("nc_matmul", TRN2, None, matmul(128, 16, "bfloat16"), 64),
    ("nc_matmul", TRN2, None, matmul(32, 16, "bfloat16"), 32),
    ("nc_matmul", TRN2, None, matmul(128, 512, "tfloat32"), 512),
    ("nc_matmul", TRN2, None, matmul(128, 512, "float32"), 2048),
    ("nc_matmul", TRN2, None, matmul(128, 512, "float32", is_moving_onezero=True), 1024),
    ("nc_matmul", TRN2, None, matmul(128, 512, "float32", is_transpose=True), 1024),
    ("nc_matmul", TRN1, None, matmul(128, 512, "float32", is_transpose=True), 2048),
    (
        "nc_matmul",
        TRN2,
        None,
        {
            "stationary": tile("float8_e4m3[128, 2, 64]"),
            "moving": tile("float8_e4m3[128, 2, 512]"),
            "perf_mode": "double_row",
        },
        512,
    ),
    ("nc_transpose", TRN2, None, {"data": tile("bfloat16[128, 64]")}, 128),
    ("nc_transpose", TRN1, None, {}, 512),
    ("nc_transpose", TRN2, None, {}, 256),
    ("nc_transpose", TRN2, V, {"data": tile("float32[32, 32]")}, 64),
    ("register_move", TRN2, None, {}, 64),
    ("register_load", TRN2, None, {}, 600),
]


@pytest.mark.parametrize(
    ("name", "target", "engine", "changes", "cycles"),
    FORMULAS,
    ids=[f"{name}-{target.name}-{cycles}" for name, target, _, _, cycles in FORMULAS],
)
def test_formula(
    name: str, target: Target, engine: Engine | None, changes: dict[str, Any], cycles: int
) -> None:
    assert cost_of(name, target, engine, **changes).cycles == cycles


@pytest.mark.parametrize("name", LEGAL)
@pytest.mark.parametrize("target", TARGETS.values(), ids=str)
def test_every_row_has_a_cost(name: str, target: Target) -> None:
    cost = cost_of(name, target)
    assert isinstance(cost.cycles, int)
    assert cost.cycles >= 64 or cost.busy_ns > 0
    assert cost == cost_of(name, target), "the same every time"


def test_a_fast_mode_never_costs_more_than_the_plain_one() -> None:
    def copy(n: int, target: Target) -> int:
        narrow: Tile = tile(f"bfloat16[128, {n}]")
        return cost_of("tensor_copy", target, V, dst=narrow, src=narrow).cycles

    plain = [copy(n, TRN1) for n in range(1, 600)]
    fast = [copy(n, TRN2) for n in range(1, 600)]
    assert all(one >= other for one, other in zip(plain, fast, strict=True))
    assert fast == sorted(fast)


def test_a_register_from_hbm_waits_for_it() -> None:
    near, far = (cost_of("register_load", src=tile(f"int32[1, 1]{at}")) for at in ("", " hbm"))
    assert (near.latency_ns, far.latency_ns) == (0.0, 1300.0)
