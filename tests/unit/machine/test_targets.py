"""Compare the three targets with the figures of public pages.

Rates that follow from the cost formulas are compared with the rates that those pages advertise.
"""

from dataclasses import replace
from typing import NamedTuple

import pytest

from nkic.base.diagnostics import UsageFailed
from nkic.machine import costs
from nkic.machine.clock import TABLE, Standing
from nkic.machine.instructions import ROWS
from nkic.machine.operands import Cost, Facts
from nkic.machine.targets import (
    DEFAULT,
    PARTITIONS,
    PSUM_BANK_BYTES,
    TARGETS,
    TRN1,
    TRN2,
    TRN3,
    Engine,
    MachineFile,
    Target,
    find,
    read_machine,
    records,
    rows,
    written,
)
from tests.unit.instances import facts_of, tile

MIB = 1 << 20


class Published(NamedTuple):
    """Architecture guides (tables of engines, memories), DMA bandwidth guide (effective rate)."""

    generation: int
    sbuf: int  # bytes
    tensor: float  # GHz, and so on
    vector: float
    scalar: float
    gpsimd: float
    dma_rate: float  # bytes per ns and engine
    dma_total: int  # GB/s
    tflops_16: float  # of the tensor engine, dense
    tflops_32: float


PUBLISHED = {
    "trn1": Published(2, 24 * MIB, 2.8, 1.12, 1.4, 1.4, 17, 272, 92, 23),
    "trn2": Published(3, 28 * MIB, 2.4, 0.96, 1.2, 1.2, 23, 368, 79, 20),
    "trn3": Published(4, 32 * MIB, 2.4, 1.2, 1.2, 1.2, 33, 528, 79, 20),
}
each = pytest.mark.parametrize(
    ("target", "printed"), [(TARGETS[n], p) for n, p in PUBLISHED.items()], ids=[*PUBLISHED]
)


def test_every_target_is_here() -> None:
    assert list(PUBLISHED) == list(TARGETS)
    assert DEFAULT is TRN2


@each
def test_memories_and_clocks(target: Target, printed: Published) -> None:
    assert target.generation == printed.generation
    assert target.sbuf_bytes * PARTITIONS == printed.sbuf
    assert target.psum_bytes * PARTITIONS == 2 * MIB
    assert target.psum_banks * PSUM_BANK_BYTES == 16 * 1024
    clocks = {
        **{Engine.TENSOR: printed.tensor, Engine.VECTOR: printed.vector},
        **{Engine.SCALAR: printed.scalar, Engine.GPSIMD: printed.gpsimd},
    }
    for engine, ghz in clocks.items():
        assert target.clock_mhz[engine] == round(ghz * 1000)
    assert target.dma_engines == 16
    assert (target.figures["dma.engine_rate_shared"], target.registers) == (printed.dma_rate, 64)


def test_what_kernels_may_use_of_sbuf() -> None:
    """trn1: everything except the top 16 KiB; trn2: the constant of the published kernels."""
    assert TRN1.sbuf_usable == 180_224
    assert TRN2.sbuf_usable == 212_728
    assert TRN3.sbuf_bytes - TRN3.sbuf_usable == TRN2.sbuf_bytes - TRN2.sbuf_usable


def product(target: Target, dtype: str, name: str = "nc_matmul", **more: object) -> Cost:
    """Return a product of 128 x 128 by 128 x 512, of pairs with double_row."""
    free = "2, " if more else ""
    operands = {
        "stationary": tile(f"{dtype}[128, {free}128]"),
        "moving": tile(f"{dtype}[128, {free}512]"),
        "dst": tile("float32[128, 512] psum"),
    }
    row, facts = facts_of(name, target, Engine.TENSOR, **operands, **more)
    return row.cost(facts)


def tflops(target: Target, cost: Cost, depth: int = 128) -> float:
    return 2 * 128 * depth * 512 * target.clock_mhz[Engine.TENSOR] / cost.interval / 1e6


@each
def test_the_tensor_engine_reaches_its_printed_rates(target: Target, printed: Published) -> None:
    """Except for the 4 cycles that profiles show between two products of 512 columns."""
    half = tflops(target, product(target, "bfloat16"))
    assert half == pytest.approx(printed.tflops_16, rel=0.015)
    single = tflops(target, product(target, "float32"))
    assert single == pytest.approx(printed.tflops_32, rel=0.025)


def test_double_rows_and_microscaling_reach_theirs() -> None:
    """158 TFLOPS of 8-bit floats on trn2, 315 of MXFP8 on trn3."""
    double = product(TRN2, "float8_e4m3", perf_mode="double_row")
    assert tflops(TRN2, double, 256) == pytest.approx(158, rel=0.015)
    _, facts = facts_of("nc_matmul_mx", TRN3, Engine.TENSOR)
    operands = {
        **facts.operands,
        "stationary": tile("float8_e5m2_x4[128, 128]"),
        "moving": tile("float8_e5m2_x4[128, 512]"),
    }
    mx = ROWS["nc_matmul_mx"].cost(Facts(TRN3, operands, facts.attributes, Engine.TENSOR))
    assert tflops(TRN3, mx, 512) == pytest.approx(315, rel=0.015)


@each
def test_all_dma_engines_together_reach_the_printed_rate(
    target: Target, printed: Published
) -> None:
    """With rows of 4 KiB, the guide's minimum for this rate, and all cores busy."""
    rows = {"dst": tile("float32[128, 1024]"), "src": tile("float32[128, 1024] hbm")}
    _, facts = facts_of("dma_copy", replace(target, contention="all"), **rows)
    cost = costs.dma_copying(facts)
    size = facts.tile("dst").elements * 4
    assert cost.dma_engines == 16
    assert size / cost.busy_ns == pytest.approx(printed.dma_total, rel=0.01)


SINCE_V3 = {"range_select", "nonzero_with_count", "rand_set_state", "rand_get_state", "sendrecv"}
SINCE_V4 = {"activate2", "exponential", "rand2", "quantize_mx", "nc_matmul_mx"}


def test_which_target_has_which_instruction() -> None:
    """The notes "available only on NeuronCore-v3 (v4) and newer" of `nki.isa`; barriers need two
    cores, like sendrecv.
    """
    assert {name for name, row in ROWS.items() if row.generation == 4} == SINCE_V4
    later = {name for name, row in ROWS.items() if row.generation == 3}
    assert later == SINCE_V3 | {"core_barrier"}
    assert [t.max_cores for t in TARGETS.values()] == [1, 2, 2]


@pytest.mark.parametrize(
    ("alias", "target"),
    [("inf2", TRN1), ("gen2", TRN1), ("gen3", TRN2), ("gen4", TRN3), ("trn9", None)],
)
def test_names(alias: str, target: Target | None) -> None:
    assert find(alias) is target


# ------------------------------------------------------------------------------------------------
# Test machine files: what they may contain, rejected files, and their form in --print machine.

TEXT = """
target = "gen3"
contention = "pair"

[vector]
interval_sbuf = 58
clock_mhz = 1000.5
"""


def test_figures_and_contention_are_taken_over() -> None:
    machine = read_machine("m.toml", TEXT)
    found = machine.applied(TRN2)
    assert found.figures["vector.interval_sbuf"] == 58
    assert found.clock_mhz[Engine.VECTOR] == 1000.5
    assert found.figures["vector.interval_psum"] == TRN2.figures["vector.interval_psum"]
    assert (found.contention, found.dma_rate) == ("pair", 23.0)
    assert (found.machine, TRN2.machine) == (machine.hash, "")


def test_the_hash_is_of_what_is_said() -> None:
    other = "[vector]\nclock_mhz = 1000.5 # a remark\ninterval_sbuf = 58.0\n"
    same = read_machine("x.toml", f'contention = "pair"\n{other}')
    assert same.hash == read_machine("m.toml", TEXT).hash
    assert read_machine("m.toml", other).hash != same.hash


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[vector]\ninterval_sbuff = 1", "there is no parameter `vector.interval_sbuff`"),
        ("launch = 1", "there is no parameter `launch`"),
        ("[vector]\ninterval_sbuf = 'a'", "vector.interval_sbuf is 'a', but must be a number"),
        ("[vector]\ninterval_sbuf = true", "vector.interval_sbuf is True"),
        (
            "[vector]\ninterval_sbuf = -1",
            "vector.interval_sbuf is -1, outside 0 to 1e+09",
        ),
        ("[vector]\ninterval_sbuf = nan", "vector.interval_sbuf is nan, outside"),
        ("[vector]\nclock_mhz = 0", "vector.clock_mhz is 0, outside 1 to"),
        ("target = 'trn9'", "there is no target `trn9`"),
        ("contention = 'most'", "contention is `most`, which is not one of alone, pair, all"),
        ("[vector", "not valid TOML"),
    ],
)
def test_what_is_wrong_is_said(text: str, said: str) -> None:
    with pytest.raises(UsageFailed, match=r"m\.toml: ") as caught:
        read_machine("m.toml", text)
    assert said in caught.value.diagnostics[0].message


def test_a_file_of_another_target_is_refused() -> None:
    with pytest.raises(UsageFailed, match="its figures are for trn2, but the kernel is for trn1"):
        read_machine("m.toml", TEXT).applied(TRN1)


def test_what_is_written_reads_back() -> None:
    figures = {"dma.done_ns": 301.5, "vector.pointer": 61.0}
    found = read_machine("m.toml", written(figures, "trn2", "alone"))
    assert (found.figures, found.target, found.contention) == (figures, "trn2", "alone")


def test_every_figure_is_shown_with_standing_and_source() -> None:
    found = records()
    assert len(found) == len(TARGETS) * (1 + len(TABLE))
    known = {standing.value for standing in Standing}
    assert all(r["standing"] in known and r["source"] for r in found)
    shown = {(r["target"], r["parameter"]): r["value"] for r in found}
    assert shown["trn2", "vector.interval_sbuf"] == 56
    head, *lines = rows()
    assert head[0] == "target" and len(lines) == len(found)


def test_given_figures_are_shown_as_given() -> None:
    found = records(MachineFile("m.toml", {"dma.done_ns": 1.0}, "all", "trn2"))
    given = {r["parameter"]: r["value"] for r in found if r["standing"] == "given"}
    assert given == {"dma.done_ns": 1.0, "contention": "all"}
    assert {r["target"] for r in found} == {"trn2"}
