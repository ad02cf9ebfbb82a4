"""Compare cost formulas with public measurements of transfers, and with published formulas.

test_profiles.py compares instructions with published profiles.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from nkic.machine.clock import TABLE, Standing
from nkic.machine.costs import Formula, Trigger, dma_trigger, matmul_passes
from nkic.machine.instructions import ROWS
from nkic.machine.operands import Cost, Facts, Tile
from nkic.machine.targets import TARGETS, TRN1, TRN2, TRN3, Engine, Target
from nkic.machine.timing import Tables, Warmth, semaphore_ps, timing
from tests.unit.instances import COLUMN, LEGAL, beside, facts_of, tile

PSUM = tile("float32[128, 512] psum")
HALF = tile("bfloat16[128, 512]")
SPREAD = tile("bfloat16[128, 512]", dims=((4, 512),))
V, S, G, Y = Engine.VECTOR, Engine.SCALAR, Engine.GPSIMD, Engine.SYNC
FAR = tile("float32[128, 512]", dims=((8, 512),))
FAR_MOVING = tile("bfloat16[128, 512]", dims=((9, 512),))
FAR_HELD = tile("bfloat16[128, 128]", dims=((9, 128),))
HALF_PSUM = tile("bfloat16[128, 512] psum")


REPORTED = ["launch.after_ns", "launch.before_ns"]  # besides the kernel, in its report


class Watched(Mapping[str, float]):
    """Figures that record which of them are read."""

    def __init__(self, figures: Mapping[str, float]) -> None:
        self.figures = figures
        self.asked: set[str] = set()

    def __getitem__(self, name: str) -> float:
        self.asked.add(name)
        return self.figures[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.figures)

    def __len__(self) -> int:
        return len(self.figures)


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


def load(shape: str, dtype: str, **changes: Any) -> dict[str, Any]:
    return {"dst": tile(f"{dtype}[{shape}]"), "src": tile(f"{dtype}[{shape}] hbm"), **changes}


@pytest.mark.parametrize(
    ("target", "changes", "ns", "engines", "percent"),
    [
        # overview: 32 KiB on one engine, loaded and stored (1,416 and 1,225 ns)
        (TRN2, load("4, 4096", "bfloat16"), (1416 + 1225) / 2, 1, 2),
        (TRN2, load("128, 512", "float32"), 8 * 88.9, 16, 1),  # tutorial: rows of 2 KiB
        (TRN2, load("128, 128", "float32"), 8 * 33.6, 16, 1),  # tutorial: rows of 512 B
        (TRN1, load("4, 4096", "bfloat16"), 1810, 1, 1),  # performance guide: 32 KiB
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
    trigger = dma_trigger(facts_of("dma_copy", **load("4, 4096", "bfloat16"))[1], Engine.SYNC)
    found = trigger.start_ns + cost.busy_ns + cost.latency_ns
    assert found == pytest.approx(24_997 - 22_277, rel=0.07)
    assert TRN2.figures["scalar.table_ns"] == pytest.approx(1285, rel=0.01)


@pytest.mark.parametrize("target", TARGETS.values(), ids=str)
def test_long_rows_move_at_the_published_rate(target: Target) -> None:
    crowded = replace(target, contention="all")
    cost = cost_of("dma_copy", crowded, **load("128, 4096", "float32"))
    rate = 128 * 4096 * 4 / cost.busy_ns
    assert rate == pytest.approx(16 * {"trn1": 17, "trn2": 23, "trn3": 33}[target.name], rel=0.001)


def test_a_core_alone_moves_more_than_its_share() -> None:
    """trn2: one core alone reaches 400 to 409 GB/s; two together move twice the published 368."""
    one, two = (
        128
        * 4096
        * 4
        / cost_of("dma_copy", TRN2.used_by(n), **load("128, 4096", "float32")).busy_ns
        for n in (1, 2)
    )
    assert 400 <= one <= 409
    assert two == pytest.approx(368, rel=0.001)


def test_the_shorter_run_of_both_sides_counts() -> None:
    columns = tile("float32[128, 512] hbm", dims=((1, 128), (128, 512)))
    scattered = cost_of("dma_copy", src=columns)
    # A descriptor for each element: 15 ns and 4 bytes, 4096 elements on every engine.
    assert scattered.busy_ns == pytest.approx(4096 * 15.1, rel=0.01)
    assert scattered.busy_ns > 50 * cost_of("dma_copy").busy_ns


def test_transfers_within_hbm_use_every_engine() -> None:
    long = cost_of("dma_copy", dst=tile("float32[65536] hbm"), src=tile("float32[65536] hbm"))
    assert long.dma_engines == 16
    assert long.busy_ns == pytest.approx(4 * 4096 / 25.3, rel=0.001)
    short = cost_of("dma_copy", dst=tile("float32[8] hbm"), src=tile("float32[8] hbm"))
    assert short.dma_engines == 1
    assert short.busy_ns == pytest.approx(16.2, rel=0.01)


def test_a_transposing_dma_is_slower_than_a_copy() -> None:
    shape = {"dst": tile("bfloat16[128, 4096]"), "src": tile("bfloat16[4096, 128] hbm")}
    from_hbm = cost_of("dma_transpose", **shape)
    moved = 4096 * 128 * 2
    assert moved / (from_hbm.busy_ns - 15) == pytest.approx(0.9 * 16 * 25.3)
    square = {"dst": tile("bfloat16[128, 128]"), "src": tile("bfloat16[128, 128]")}
    within = cost_of("dma_transpose", **square)
    assert 128 * 128 * 2 / (within.busy_ns - 15) == pytest.approx(0.5 * 16 * 25.3)


@pytest.mark.parametrize(
    ("target", "queue", "changes", "trigger"),
    [
        (TRN2, Y, {}, Trigger(Y, 570.0, 960.0)),
        (TRN2, S, {}, Trigger(S, 570.0, 960.0)),
        (TRN2, G, {}, Trigger(G, 580.0, 1540.0)),
        (TRN2, G, {"dge_mode": "hwdge"}, Trigger(Y, 570.0, 960.0)),
        (TRN2, S, {"dge_mode": "hwdge"}, Trigger(S, 570.0, 960.0)),
        (TRN2, Y, {"dge_mode": "hwdge", "engine": "scalar"}, Trigger(S, 570.0, 960.0)),
        (TRN2, Y, {"dge_mode": "swdge"}, Trigger(G, 580.0, 1540.0)),
        (TRN2, S, {"dge_mode": "none"}, Trigger(Y, 8.0, 960.0)),
        (TRN2, S, {"src": tile("bfloat16[128, 512] hbm")}, Trigger(Y, 8.0, 960.0)),
        (
            TRN2,
            S,
            {"src": tile("float32[128, 512] hbm", indexed=True)},
            Trigger(G, 580.0, 1540.0),
        ),
        (TRN1, Y, {}, Trigger(Y, 8.0, 960.0)),
    ],
)
def test_who_starts_a_transfer(
    target: Target, queue: Engine, changes: dict[str, Any], trigger: Trigger
) -> None:
    assert dma_trigger(facts_of("dma_copy", target, **changes)[1], queue) == trigger


def test_gpsimd_swaps_tiles_at_the_rate_of_its_own_dma_engines() -> None:
    """Trainium2 guide: 153 GB/s in each direction."""
    swapped = {one: tile("bfloat16[128, 512]") for one in ("src", "dst")}
    row, facts = facts_of("sendrecv", TRN2, dma_engine="gpsimd_dma", **swapped)
    facts = Facts(TRN2, facts.operands, facts.attributes, G)
    streams = row.cost(facts).interval - 150 - 60
    assert 128 * 512 * 2 / (streams / 1.2) == pytest.approx(153, rel=0.01)


def test_long_swaps_by_gpsimd_take_their_bytes_at_the_rate_of_its_engines() -> None:
    """Long enough to show a part in a thousand."""
    swapped = {one: tile("float32[128, 16384]") for one in ("src", "dst")}
    row, facts = facts_of("sendrecv", TRN2, G, dma_engine="gpsimd_dma", **swapped)
    short = {one: tile("float32[128, 64]") for one in ("src", "dst")}
    _, less = facts_of("sendrecv", TRN2, G, dma_engine="gpsimd_dma", **short)
    ns = 128 * (16384 - 64) * 4 / TRN2.figures["gpsimd.dma_rate"]
    more = row.cost(facts).interval - row.cost(less).interval
    assert more == pytest.approx(ns * 1.2, rel=1e-4)


def test_sums_by_dma_are_prepared_before_the_run() -> None:
    """ISA dma_compute: the only mode is static, except for rows that an index tile names."""
    _, facts = facts_of("dma_compute")
    assert dma_trigger(facts, Engine.SCALAR) == Trigger(Engine.SYNC, 8.0, 960.0)


def test_transposes_by_dma_need_hardware_of_v3() -> None:
    """Without it each element has a descriptor: slower than a copy by orders of magnitude."""
    row, facts = facts_of("dma_transpose")
    src, figures = facts.tile("src"), TRN1.figures
    both = [facts_of("dma_transpose", t)[1] for t in (TRN1, TRN2)]
    before, after = (row.cost(one).busy_ns for one in both)
    assert before > src.elements / TRN1.dma_engines * figures["dma.descriptor_ns"] > 20 * after


# The published formulas, in cycles of streaming; additional cycles are in `beside`.

BOTH = ("dst", "src")
ALL = ("dst", "data1", "data2")
FORMULAS: list[tuple[str, Target, Engine | None, dict[str, Any], int]] = [
    # max(64, N)
    ("tensor_copy", TRN1, V, {}, 512),
    ("tensor_copy", TRN1, V, dict.fromkeys(BOTH, COLUMN), 1),
    ("tensor_copy", TRN1, V, dict.fromkeys(BOTH, HALF), 512),
    ("tensor_copy", TRN2, G, {}, 512),
    ("tensor_copy", TRN2, S, dict.fromkeys(BOTH, HALF), 512),
    ("tensor_copy", TRN3, S, dict.fromkeys(BOTH, HALF), 256),
    # v3's modes: a quarter, half, half, a quarter of nothing below one access
    ("tensor_copy", TRN2, V, dict.fromkeys(BOTH, HALF), 128),
    ("tensor_copy", TRN2, V, dict.fromkeys(BOTH, SPREAD), 256),
    ("tensor_copy", TRN2, V, {"dst": HALF, "src": tile("bfloat16[128, 512] psum")}, 256),
    ("tensor_copy", TRN2, V, {"dst": HALF}, 256),
    ("tensor_copy", TRN2, V, {"src": PSUM}, 512),
    ("tensor_copy", TRN2, V, dict.fromkeys(BOTH, tile("bfloat16[128, 64]")), 16),
    ("tensor_copy", TRN2, V, dict.fromkeys(BOTH, tile("float8_e5m2[128, 512]")), 256),
    ("tensor_copy", TRN3, V, dict.fromkeys(BOTH, tile("float8_e5m2[128, 512]")), 128),
    # innermost steps above 16 bytes halve the rate; addresses from registers cost 600
    ("tensor_copy", TRN1, V, {"src": FAR}, 1024),
    ("tensor_copy", TRN1, V, {"src": tile("float32[128, 512]", dims=((4, 512),))}, 512),
    ("tensor_copy", TRN1, V, {"src": tile("float32[128, 512]", dynamic=True)}, 600),
    ("tensor_scalar", TRN1, None, {}, 512),
    ("tensor_scalar", TRN2, None, {"dst": HALF, "data": HALF}, 128),
    ("tensor_scalar", TRN2, None, {"op0": "rsqrt", "operand0": None}, 4 * 512),
    # max(64, N / 2) for zeros in 16-bit floats
    ("memset", TRN1, V, {}, 512),
    ("memset", TRN1, V, {"dst": HALF, "value": 0.0}, 256),
    ("memset", TRN1, V, {"dst": HALF, "value": 1.0}, 512),
    ("memset", TRN2, V, {}, 256),
    ("memset", TRN2, G, {}, 512),
    # 2 N from one memory, N from both, N for 16-bit floats
    ("tensor_tensor", TRN1, V, {}, 1024),
    ("tensor_tensor", TRN1, V, {"data1": PSUM}, 512),
    ("tensor_tensor", TRN1, V, dict.fromkeys(ALL, HALF), 512),
    ("tensor_tensor", TRN1, V, {**dict.fromkeys(ALL, HALF), "op": "maximum"}, 1024),
    ("tensor_tensor", TRN2, V, {}, 512),
    ("tensor_tensor", TRN2, V, dict.fromkeys(ALL, HALF), 256),
    ("tensor_tensor", TRN2, None, {"op": "power"}, 1024),
    ("scalar_tensor_tensor", TRN2, None, {}, 512),
    ("scalar_tensor_tensor", TRN1, None, {}, 1024),
    (
        "scalar_tensor_tensor",
        TRN2,
        None,
        {"op0": "subtract", "op1": "multiply", "data": HALF, "operand1": HALF},
        512,
    ),
    # what is read decides, not what is written
    (
        "scalar_tensor_tensor",
        TRN1,
        None,
        {"op0": "subtract", "op1": "multiply", "data": HALF, "operand1": HALF},
        512,
    ),
    # Of 16-bit floats, subtracted and multiplied, an even number: half of it (F).
    *(
        (
            "scalar_tensor_tensor",
            TRN1,
            None,
            {
                "op0": "subtract",
                "op1": op1,
                **dict.fromkeys(("dst", "data", "operand1"), tile(f"bfloat16[128, {n}]")),
            },
            cycles,
        )
        for n, op1, cycles in ((512, "multiply", 512), (511, "multiply", 1022), (512, "add", 1024))
    ),
    ("tensor_reduce", TRN2, None, {}, 512),
    ("tensor_reduce", TRN2, None, {"data": HALF, "dst": tile("bfloat16[128, 1]")}, 256),
    ("tensor_tensor_scan", TRN2, None, {}, 512 + 114),
    ("tensor_tensor_scan", TRN1, None, {}, 1024),
    ("bn_stats", TRN2, None, {}, 512),
    ("bn_aggr", TRN2, None, {"data": tile("float32[128, 120]")}, 520),
    ("reciprocal", TRN2, None, {}, 4096),
    ("tensor_copy_predicated", TRN1, None, {}, 1024),
    ("tensor_copy_predicated", TRN1, None, {"src": PSUM}, 512),
    ("tensor_copy_predicated", TRN2, None, {}, 512),
    ("tensor_copy_predicated", TRN2, None, {"src": 1.0}, 512),
    ("max8", TRN2, None, {}, 512),
    ("activation", TRN2, None, {}, 512 + 119),
    ("activation", TRN2, None, {"op": "copy"}, 512),
    ("activation", TRN2, None, {"reduce_res": COLUMN}, 512 + 119 + 64),
    ("activation_reduce", TRN2, None, {}, 512 + 119 + 64),
    ("iota", TRN2, None, {}, 150 + 512),
    ("affine_select", TRN2, None, {}, 150 + 512),
    # max(min(64, held), streamed), four times for float32; 4 cycles for each of its instructions
    ("nc_matmul", TRN2, None, matmul(128, 512, "bfloat16"), 512 + 4),
    ("nc_matmul", TRN2, None, matmul(128, 16, "bfloat16"), 64 + 4),
    ("nc_matmul", TRN2, None, matmul(32, 16, "bfloat16"), 32 + 4),
    ("nc_matmul", TRN2, None, matmul(128, 512, "tfloat32"), 512 + 4),
    ("nc_matmul", TRN2, None, matmul(128, 512, "float32"), 2048 + 8),
    # steps of more than 16 bytes: what streams takes twice as long; loads stay hidden
    ("nc_matmul", TRN2, None, {**matmul(128, 512, "bfloat16"), "moving": FAR_MOVING}, 1024 + 4),
    ("nc_matmul", TRN2, None, {**matmul(128, 64, "bfloat16"), "stationary": FAR_HELD}, 64 + 4),
    # loads of 382 ns are hidden by half of what streams, at most
    ("nc_matmul", TRN2, None, matmul(128, 512, "float32", is_moving_onezero=True), 512 + 917 + 4),
    ("nc_matmul", TRN2, None, matmul(128, 512, "float32", is_stationary_onezero=True), 1024 + 4),
    ("nc_matmul", TRN2, None, matmul(128, 128, "float32"), 256 + 917 + 8),
    ("nc_matmul", TRN2, None, matmul(128, 512, "float32", is_transpose=True), 1024 + 4),
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
        512 + 4,
    ),
    ("nc_transpose", TRN2, None, {"data": tile("bfloat16[128, 64]")}, 128 + 4),
    ("nc_transpose", TRN1, None, {}, 512),
    ("nc_transpose", TRN2, None, {}, 256 + 4),
    ("nc_transpose", TRN2, V, {"data": tile("float32[32, 32]")}, 32),
    # what v4 has on scalar it has under the conditions of vector's mode
    ("tensor_copy", TRN3, S, {"src": HALF_PSUM, "dst": HALF}, 256),
    ("tensor_copy", TRN3, S, {"src": HALF_PSUM, "dst": SPREAD}, 512),
    # 128 indices, or 32 of them, at 8 a cycle
    ("local_gather", TRN2, None, {}, 150 + 16),
    ("local_gather", TRN2, None, {"num_valid_indices": 32}, 150 + 4),
    ("register_move", TRN2, None, {}, 64),
    ("register_load", TRN2, None, {}, 775),
]


@pytest.mark.parametrize(
    ("name", "target", "engine", "changes", "cycles"),
    FORMULAS,
    ids=[f"{name}-{target.name}-{cycles}" for name, target, _, _, cycles in FORMULAS],
)
def test_formula(
    name: str, target: Target, engine: Engine | None, changes: dict[str, Any], cycles: int
) -> None:
    ran_on = engine or engine_of(name, facts_of(name, target, **changes)[1])
    dynamic = any(isinstance(v, Tile) and v.dynamic for v in changes.values())
    wanted = cycles if dynamic else cycles + beside(target, ran_on, changes)
    assert cost_of(name, target, engine, **changes).interval == max(
        wanted, 0 if ran_on is Engine.TENSOR else 64
    )


@pytest.mark.parametrize("name", LEGAL)
@pytest.mark.parametrize("target", TARGETS.values(), ids=str)
def test_every_row_has_a_cost(name: str, target: Target) -> None:
    cost = cost_of(name, target)
    assert isinstance(cost.interval, int)
    assert cost.interval >= 64 or cost.busy_ns > 0
    assert cost == cost_of(name, target), "the same every time"


def test_a_fast_mode_never_costs_more_than_the_plain_one() -> None:
    def copy(n: int, target: Target) -> int:
        narrow: Tile = tile(f"bfloat16[128, {n}]")
        return cost_of("tensor_copy", target, V, dst=narrow, src=narrow).interval

    plain = [copy(n, TRN1) for n in range(1, 600)]
    fast = [copy(n, TRN2) for n in range(1, 600)]
    assert all(one >= other for one, other in zip(plain, fast, strict=True))
    assert fast == sorted(fast)


def test_a_register_from_hbm_waits_for_it() -> None:
    near, far = (cost_of("register_load", src=tile(f"int32[1, 1]{at}")) for at in ("", " hbm"))
    assert (near.latency_ns, far.latency_ns) == (0.0, 960.0 + 298.0)


def test_no_figure_is_without_standing_and_source() -> None:
    """Neither a parameter of any generation, nor the formula of a row."""
    for row in TABLE.values():
        assert row.unit and row.says, row.name
        for generation in (2, 3, 4):
            figure = row.of(generation)
            assert isinstance(figure.standing, Standing) and figure.source, row.name
            assert row.minimum <= figure.value <= row.maximum, row.name
    for one in ROWS.values():
        assert isinstance(one.cost, Formula), one.name
        assert isinstance(one.cost.standing, Standing) and one.cost.source, one.name


@pytest.mark.parametrize(("rows", "held"), [(32, 128), (64, 1), (128, 16)])
def test_the_rows_at_work_are_the_partitions_of_the_operands(rows: int, held: int) -> None:
    """Not those of the result, of which there is one for each column that is held."""
    tiles = matmul(held, 512, "bfloat16") | {
        "stationary": tile(f"bfloat16[{rows}, {held}]"),
        "moving": tile(f"bfloat16[{rows}, 512]"),
    }
    row, facts = facts_of("nc_matmul", **tiles)
    assert timing(row, facts, Engine.TENSOR).use == rows / 128


@pytest.mark.parametrize(
    ("stationary", "moving", "passes"),
    [("float32", "tfloat32", 4), ("tfloat32", "float32", 4), ("tfloat32", "tfloat32", 1)],
)
def test_one_operand_of_float32_takes_all_passes(stationary: str, moving: str, passes: int) -> None:
    tiles = matmul(128, 512, "float32") | {
        "stationary": tile(f"{stationary}[128, 128]"),
        "moving": tile(f"{moving}[128, 512]"),
    }
    _, facts = facts_of("nc_matmul", **tiles)
    assert matmul_passes(facts, facts.tile("stationary"), facts.tile("moving")) == passes


def asked(target: Target, name: str, **changes: Any) -> set[str]:
    """Return the figures that an instruction's time depends on, on any engine and queue."""
    watched = Watched(target.figures)
    row, facts = facts_of(name, target, **changes)
    for engine in row.engines:
        for queue in range(target.dma_queues):
            watching = replace(target, figures=watched)
            timing(row, Facts(watching, facts.operands, facts.attributes, engine), engine, queue)
    Tables(watching), Warmth(watching), semaphore_ps(watching)
    return watched.asked


def test_every_figure_counts() -> None:
    """Every figure affects some instruction's time, or the state of an engine."""
    changes: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in LEGAL]
    changes += [
        ("tensor_copy", {"src": PSUM}),
        ("tensor_copy", {"src": tile("float32[128, 512]", dynamic=True)}),
        ("tensor_scalar", {"operand0": COLUMN}),
        ("dma_copy", {"dge_mode": "swdge"}),
        ("dma_copy", {"dge_mode": "none"}),
        ("dma_transpose", {"src": tile("bfloat16[16, 128]")}),
        ("sendrecv", {"dma_engine": "gpsimd_dma"}),
        ("nc_matmul", matmul(128, 512, "float32")),
    ]
    found = {figure for name, more in changes for figure in asked(TRN2, name, **more)}
    found |= asked(replace(TRN2, contention="all"), "dma_copy")
    assert sorted(TABLE.keys() - found) == REPORTED
