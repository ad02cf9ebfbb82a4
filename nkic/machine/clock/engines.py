"""Timing figures: clocks, issue, and the vector and scalar engines."""

from __future__ import annotations

from nkic.machine.clock.figures import Parameter, assumed, documented, fitted, measured, row
from nkic.machine.clock.sources import (
    FORMULAS,
    GUIDE_V2,
    GUIDE_V3,
    GUIDE_V4,
    OVERVIEW,
    PERFORMANCE,
    PROFILES,
    SILENT,
)


def _clock(name: str, *mhz: float) -> Parameter:
    sources = (GUIDE_V2, GUIDE_V3, GUIDE_V4)
    figures = [documented(value, source) for value, source in zip(mhz, sources, strict=True)]
    return row(f"{name}.clock_mhz", "MHz", f"clock of the {name} engine", *figures, minimum=1.0)


CLOCKS = (
    _clock("tensor", 2800, 2400, 2400),
    _clock("vector", 1120, 960, 1200),
    _clock("scalar", 1400, 1200, 1200),
    _clock("gpsimd", 1400, 1200, 1200),
    row(
        "sync.clock_mhz",
        "MHz",
        "clock of the sync engine, assumed equal to the scalar engine's",
        *(assumed(value) for value in (1400.0, 1200.0, 1200.0)),
        minimum=1.0,
    ),
)

ACCESS_V2 = documented(60, f"{GUIDE_V2}, about 60 cycles to start an access")
WHOLE_V2 = documented(160, f"{GUIDE_V2}, 60 cycles to start an access and about 100 static ones")

ISSUE = (
    row("issue.least", "cycles", "minimum interval of an instruction", documented(64, FORMULAS)),
    row(
        "issue.least_dynamic",
        "cycles",
        "minimum interval with an address from a register",
        documented(600, FORMULAS),
    ),
    row(
        "issue.full_rate_stride",
        "bytes",
        "largest innermost step at the full rate of a port; larger ones halve it",
        documented(16, f"{GUIDE_V2}, data access"),
    ),
    row(
        "issue.semaphore_ns",
        "ns",
        "from a signal to the start of the waiting instruction",
        fitted(20, f"{OVERVIEW} (5 to 18 ns between bars)", 5, 18),
    ),
    row(
        "issue.register_cycles",
        "cycles",
        "an instruction that uses only registers",
        assumed(64, f"{SILENT}; the minimum interval"),
    ),
)

VECTOR = (
    row(
        "vector.interval_sbuf",
        "cycles",
        "interval beyond streaming, source in SBUF",
        ACCESS_V2,
        measured(56, f"{PROFILES}: TENSOR_REDUCE of 512"),
    ),
    row(
        "vector.interval_psum",
        "cycles",
        "interval beyond streaming, source in PSUM",
        ACCESS_V2,
        measured(62, f"{PROFILES}: COPY and TENSOR_REDUCE of 512"),
    ),
    row(
        "vector.duration_sbuf",
        "cycles",
        "duration beyond streaming, source in SBUF",
        WHOLE_V2,
        # 136 to 151 beyond streaming; this is within 5 % of each.
        fitted(140, f"{PROFILES}: TENSOR_REDUCE of 4, 8 and 512, RECIPROCAL of 4", 136, 151),
    ),
    row(
        "vector.duration_psum",
        "cycles",
        "duration beyond streaming, source in PSUM",
        WHOLE_V2,
        measured(148, f"{PROFILES}: COPY of 128 and 512, TENSOR_REDUCE of 512"),
    ),
    row(
        "vector.pointer",
        "cycles",
        "additional interval and duration for an operand of one element per partition",
        assumed(0, f"{SILENT}; the formulas have no such term"),
        fitted(66, f"{PROFILES}: TENSOR_SCALAR with a pointer, beyond streaming"),
    ),
    row(
        "vector.scan",
        "cycles",
        "additional interval and duration of a scan",
        assumed(0, f"{SILENT}; the formulas have no such term"),
        fitted(114, "published profiles of trn2: tensor_tensor_scan takes about N + 170"),
    ),
    row(
        "vector.scan_per_element",
        "cycles",
        "per element of a scan",
        documented(2, FORMULAS),
        measured(1, "published profiles of trn2: tensor_tensor_scan takes about N + 170"),
    ),
    row(
        "vector.two_tiles_per_element",
        "cycles",
        "per element of two 32-bit tiles from one memory",
        documented(2, FORMULAS),
        documented(1, f"{GUIDE_V3}, table of engine widths"),
    ),
    row(
        "vector.scalar_tile_per_element",
        "cycles",
        "per element of scalar_tensor_tensor",
        documented(2, FORMULAS),
        measured(1, "published profiles of trn2: scalar_tensor_tensor takes N"),
    ),
    row(
        "vector.accumulator_read",
        "cycles",
        "the additional instruction that reads the reduce registers",
        documented(64, FORMULAS),
    ),
)

_CHAIN_V2 = measured(221, f"{PERFORMANCE}: dependent ACTIVATE of one element")

SCALAR = (
    row(
        "scalar.interval_sbuf",
        "cycles",
        "interval beyond streaming, source in SBUF",
        ACCESS_V2,
        fitted(102, f"{PROFILES}: ACTIVATE of 512 out of SBUF and PSUM, COPY out of PSUM"),
    ),
    row(
        "scalar.interval_psum",
        "cycles",
        "interval beyond streaming, source in PSUM",
        ACCESS_V2,
        fitted(54, f"{PROFILES}: COPY of 512, CAST of 128"),
    ),
    row(
        "scalar.duration_sbuf",
        "cycles",
        "duration beyond streaming, source in SBUF",
        _CHAIN_V2,
        fitted(216, f"{PROFILES}: ACTIVATE of 512 out of SBUF and PSUM, COPY out of PSUM"),
    ),
    row(
        "scalar.duration_psum",
        "cycles",
        "duration beyond streaming, source in PSUM",
        _CHAIN_V2,
        measured(190, f"{PROFILES}: COPY of 128 and 512, CAST of 128"),
    ),
    row(
        "scalar.function",
        "cycles",
        "additional interval and duration of a function from a table",
        assumed(0, f"{SILENT}; the formulas have no such term"),
        fitted(119, f"{PROFILES}: ACTIVATE EXP beside COPY"),
    ),
    row(
        "scalar.accumulator_read",
        "cycles",
        "the additional instruction that reads the reduce registers",
        documented(64, f"{GUIDE_V2}, ActReadAccumulator"),
    ),
    row(
        "scalar.table_ns",
        "ns",
        "load of another table of activation functions",
        measured(368, "neuron-profile user guide (trn1)"),
        measured(1283, f"{PROFILES}: ACT_TABLE_LOAD"),
    ),
)
