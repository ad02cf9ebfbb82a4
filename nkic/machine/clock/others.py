"""Timing figures of the gpsimd and tensor engines, and of register loads."""

from __future__ import annotations

from nkic.machine.clock.engines import ACCESS_V2, WHOLE_V2
from nkic.machine.clock.figures import Parameter, assumed, documented, fitted, measured, row
from nkic.machine.clock.sources import (
    FORMULAS,
    GUIDE_V2,
    GUIDE_V3,
    GUIDE_V4,
    LIKE_V2,
    LIKE_V3,
    PERFORMANCE,
    PROFILER,
    PROFILES,
    SILENT,
)

GPSIMD = (
    row(
        "gpsimd.interval",
        "cycles",
        "interval beyond streaming",
        ACCESS_V2,
        assumed(60, LIKE_V2),
    ),
    row(
        "gpsimd.duration",
        "cycles",
        "duration beyond streaming",
        WHOLE_V2,
        assumed(160, LIKE_V2),
    ),
    row(
        "gpsimd.start",
        "cycles",
        "start-up of programs such as iota and affine_select",
        documented(150, FORMULAS),
    ),
    row(
        "gpsimd.dma_rate",
        "bytes/ns",
        "of all DMA engines of its processors together, in each direction",
        assumed(153, f"{LIKE_V3}, though trn1 has none"),
        documented(153, GUIDE_V3),
        minimum=0.01,
    ),
)

TENSOR = (
    row(
        "tensor.fill_ns",
        "ns",
        "from the last column in to its result, plus a cycle per stationary column",
        fitted(140, f"{PERFORMANCE}: MATMUL with 1 and 96 columns held"),
        fitted(108, f"{PROFILES}: MATMUL of 128 and 512 columns"),
    ),
    row(
        "tensor.issue",
        "cycles",
        "between instructions, beyond streaming; one instruction makes two 32-bit passes",
        assumed(0, f"{SILENT}; the formulas have no such term"),
        fitted(4, f"{PROFILES}: MATMUL of 128 and 512 columns, bfloat16 and LOW_HIGH"),
    ),
    row(
        "tensor.passes_32",
        "passes",
        "over 32-bit floats",
        documented(4, GUIDE_V2),
        documented(4, GUIDE_V3),
        documented(4, GUIDE_V4),
        minimum=1.0,
    ),
    row(
        "tensor.load_rate",
        "columns per cycle",
        "of a fast load of the stationary matrix",
        documented(4, f"{GUIDE_V2}, fast LoadStationary"),
        minimum=0.01,
    ),
    row(
        "tensor.load_32_ns",
        "ns",
        "to load 128 columns of 32-bit floats, once for each half of their bits",
        assumed(164, f"{LIKE_V3}, in cycles"),
        measured(191, f"{PROFILES}: LDWEIGHTS, fp32_mode LOW and HIGH"),
    ),
    row(
        "tensor.warm_up_ns",
        "ns",
        "of use until the engine reaches its full rate",
        assumed(0, f"{SILENT} on trn1"),
        fitted(6600, "published profiles of trn2; the profiler's guide says about 3 us", 3000),
    ),
    row(
        "tensor.cool_down_ns",
        "ns",
        "without use until it is cold again",
        assumed(0, f"{SILENT} on trn1"),
        documented(3000, f"{PROFILER}: drops back below half use over about 3 us"),
    ),
    row(
        "tensor.cold_rate",
        "share",
        "of the full rate while it is cold",
        documented(0.5, f"{PROFILER}: starts near 50 % duty"),
        minimum=0.01,
    ),
    row(
        "tensor.least_use",
        "share",
        "of its rows and time for which the engine must be used to stay, or get, warm",
        assumed(0.5, f"{LIKE_V3}, but it has no warm-up"),
        # That rows count is implied; half or all of them may be the limit.
        documented(0.5, f"{PROFILER}: less use over about 3 us engages the limit again", 0.25),
    ),
)


def _load(engine: str, ns: float) -> Parameter:
    figure = measured(ns, f"{PROFILES}: TENSOR_LOAD of a word")
    says = f"the {engine} engine loads a register from SBUF"
    return row(f"{engine}.register_load_ns", "ns", says, assumed(ns, LIKE_V3), figure)


REGISTERS = (
    _load("gpsimd", 682),
    _load("scalar", 571),
    _load("sync", 646),
    _load("vector", 847),
    row(
        "tensor.register_load_ns",
        "ns",
        "the tensor engine loads a register from SBUF",
        assumed(1000, LIKE_V3),
        fitted(1000, f"{PROFILES}: TENSOR_LOAD of two words takes 1,248"),
    ),
)
