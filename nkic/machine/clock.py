"""Timing figures: one row each, with a unit and, per generation, a value, a standing, a source and
a likely error.

Cost formulas read the figures from `Target.figures`; a machine file (`machine_file.py`) may
override them.

An engine's time has two parts, in cycles of its clock beyond the elements that stream: `interval`,
until it accepts the next instruction, and `duration`, until the result is available.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

# ---- Sources of timing figures, as named in docs/fidelity.md ------------------------------------

FORMULAS = "NKI API reference until SDK 2.26, costs of instructions"
GUIDE_V2 = "Trainium/Inferentia2 architecture guide"
GUIDE_V3 = "Trainium2 architecture guide"
GUIDE_V4 = "Trainium3 architecture guide"
OVERVIEW = "pictures of the DMA overview (trn2)"
PERFORMANCE = "pictures of the performance guide (trn1)"
PROFILES = "public profiles of trn2 (GitHub: allenkchau/trainium-kernel-fusion)"
PROFILER = "Neuron Explorer, throttling of the tensor engine"
RATES = "DMA bandwidth guide"
LIKE_V2 = "as on trn1"
LIKE_V3 = "as on trn2"
SILENT = "no public figure"


# --------------------------------------------------------------------------------------------------

GENERATIONS = (2, 3, 4)


class Standing(Enum):
    """How a figure is known; docs/fidelity.md defines the words."""

    DOCUMENTED = "documented"
    MEASURED = "measured"
    FITTED = "fitted"
    ASSUMED = "assumed"


class Figure(NamedTuple):
    """A value, its standing, its source, and its likely error as a share of the value."""

    value: float
    standing: Standing
    source: str
    error: float


class Parameter(NamedTuple):
    """A timing parameter; `figures` are its values in the order of GENERATIONS.

    Values are from `minimum` to `maximum`.
    """

    name: str
    unit: str
    says: str
    figures: tuple[Figure, Figure, Figure]
    minimum: float = 0.0
    maximum: float = 1e9

    def of(self, generation: int) -> Figure:
        return self.figures[GENERATIONS.index(generation)]


# The likely error of a figure whose source does not say how far it spreads: of a page's round
# number, of a profile of one kernel, of a compromise between several, and of a guess.
ERRORS = {
    Standing.DOCUMENTED: 0.03,
    Standing.MEASURED: 0.05,
    Standing.FITTED: 0.1,
    Standing.ASSUMED: 0.5,
}
LEAST_ERROR = 0.02  # profiles of two kernels differ by as much


def documented(value: float, source: str, *seen: float) -> Figure:
    """Return a figure that a public page states; `seen` are the values that others state."""
    return _figure(value, Standing.DOCUMENTED, source, seen)


def measured(value: float, source: str, *seen: float) -> Figure:
    """Return a figure read directly from a published profile; `seen` are the values of others."""
    return _figure(value, Standing.MEASURED, source, seen)


def fitted(value: float, source: str, *seen: float) -> Figure:
    """Return a figure that approximates several published profiles, which have the values
    `seen`.
    """
    return _figure(value, Standing.FITTED, source, seen)


def assumed(value: float, source: str = SILENT, *seen: float) -> Figure:
    """Return a figure without a public source; `seen` are values that others suggest."""
    return _figure(value, Standing.ASSUMED, source, seen)


def _figure(value: float, standing: Standing, source: str, seen: tuple[float, ...]) -> Figure:
    error = ERRORS[standing]
    if seen:
        error = max(LEAST_ERROR, *(abs(other / value - 1) for other in seen))
    return Figure(value, standing, source, error)


def row(name: str, unit: str, says: str, *figures: Figure, minimum: float = 0.0) -> Parameter:
    """Return a parameter with one figure for all generations, or one per generation.

    With two figures, the last generation equals the one before it (assumed).
    """
    if len(figures) == 1:
        figures *= 3
    if len(figures) == 2:
        figures = (*figures, assumed(figures[1].value, LIKE_V3))
    first, second, third = figures
    return Parameter(name, unit, says, (first, second, third), minimum)


# ---- Timing figures: clocks, issue, and the vector and scalar engines ---------------------------


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


# ---- Timing figures of DMA, and of the runtime around a kernel ----------------------------------

DMA = (
    row(
        "dma.engine_rate",
        "bytes/ns",
        "of one engine on long rows, if its core is alone on the chip",
        measured(18.1, f"{PERFORMANCE}: 32 KiB on one engine"),
        fitted(
            25.3,
            "published profiles of trn2: 400 to 409 GB/s of a core alone; the guide says 23.0",
            *(25.0, 25.6, 23.0),
        ),
        assumed(36.3, f"{RATES}, exceeded by as much as on trn2"),
        minimum=0.01,
    ),
    row(
        "dma.engine_rate_shared",
        "bytes/ns",
        "of one engine on long rows, if all cores of a stack of HBM move data",
        *(documented(rate, RATES) for rate in (17.0, 23.0, 33.0)),
        minimum=0.01,
    ),
    row(
        "dma.descriptor_bytes",
        "bytes",
        "largest element that a descriptor moves",
        assumed(4096, LIKE_V3),
        measured(4096, f"{PROFILES}: largest element of DMA_DIRECT2D"),
        minimum=1.0,
    ),
    row(
        "dma.descriptor_ns",
        "ns",
        "per descriptor, in addition to its bytes",
        fitted(15, f"{OVERVIEW} (256-byte rows: 12 ns each) and its curve of efficiency", 12),
    ),
    row(
        "dma.start_hwdge_ns",
        "ns",
        "from the trigger to the first byte, with descriptors generated by hardware",
        measured(960, f"{OVERVIEW}: 920 to 1,000 ns", 920, 1000),
    ),
    row(
        "dma.start_swdge_ns",
        "ns",
        "from the trigger to the first byte, with descriptors generated by gpsimd",
        fitted(1540, f"{OVERVIEW}: 880 ns to make them, then 612 and 739 ns", 1492, 1619),
    ),
    row(
        "dma.start_prepared_ns",
        "ns",
        "from the trigger to the first byte, with descriptors prepared before the run",
        assumed(960, f"{SILENT}; the bandwidth guide has about 1,300 ns with the completion"),
    ),
    row(
        "dma.done_ns",
        "ns",
        "from the last byte to the semaphore",
        measured(298, f"{OVERVIEW}: 292 and 298 ns", 292),
    ),
    row(
        "dma.trigger_hwdge_ns",
        "ns",
        "per transfer, of the engine that commands the hardware",
        assumed(570, LIKE_V3),
        measured(570, f"{PROFILES}: DMA_DIRECT2D on sync (562) and scalar (576)", 562, 576, 608),
    ),
    row(
        "dma.trigger_swdge_ns",
        "ns",
        "per transfer, of gpsimd",
        assumed(580, LIKE_V3),
        measured(580, f"{PROFILES}: DMA_DIRECT2D on gpsimd (576 to 582)", 576, 582),
    ),
    row(
        "dma.trigger_prepared_ns",
        "ns",
        "per transfer, of the engine that starts prepared descriptors",
        measured(8, f"{OVERVIEW}; {PERFORMANCE} (7 ns)", 7),
    ),
    row(
        "dma.partitions",
        "partitions",
        "served by one engine",
        documented(8, f"{GUIDE_V3}, DMA; DMA overview"),
        minimum=1.0,
    ),
    row(
        "dma.transpose_hbm",
        "share",
        "of the copy rate, when transposing from HBM",
        assumed(0.9, LIKE_V3),
        documented(0.9, f"{GUIDE_V3}, DMA transpose"),
        minimum=0.01,
    ),
    row(
        "dma.transpose_sbuf",
        "share",
        "of the copy rate, when transposing within SBUF",
        assumed(0.5, LIKE_V3),
        documented(0.5, f"{GUIDE_V3}, DMA transpose"),
        minimum=0.01,
    ),
    row(
        "dma.link_rate",
        "bytes/ns",
        "of the NeuronLink of a chip, divided by its cores",
        *(documented(rate, "pages of inf2, trainium2, trainium3") for rate in (96.0, 160.0, 320.0)),
        minimum=0.01,
    ),
)

LAUNCH = (
    row(
        "launch.before_ns",
        "ns",
        "from the runtime's start to the kernel's first instruction",
        fitted(20_000, "neuron-profile user guide: a trivial kernel takes 29.3 us in all (trn1)"),
        measured(13_000, "published profiles of trn2: prologues of short kernels"),
    ),
    row(
        "launch.after_ns",
        "ns",
        "from the kernel's last instruction to the runtime's end",
        assumed(1500, LIKE_V3),
        measured(1500, "published profiles of trn2: tails of short kernels"),
    ),
)


# ---- Timing figures of the gpsimd and tensor engines, and of register loads ---------------------

GPSIMD = (
    row("gpsimd.interval", "cycles", "interval beyond streaming", ACCESS_V2, assumed(60, LIKE_V2)),
    row("gpsimd.duration", "cycles", "duration beyond streaming", WHOLE_V2, assumed(160, LIKE_V2)),
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


# ---- All timing figures, by name ----------------------------------------------------------------

TABLE: dict[str, Parameter] = {
    row.name: row
    for row in (
        *(*CLOCKS, *ISSUE, *VECTOR, *SCALAR),
        *(*GPSIMD, *TENSOR, *REGISTERS),
        *(*DMA, *LAUNCH),
    )
}


def defaults(generation: int) -> dict[str, float]:
    return {name: row.of(generation).value for name, row in TABLE.items()}
