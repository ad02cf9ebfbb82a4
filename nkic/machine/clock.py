"""Timing figures: one row each, with a unit and, per generation, a value, a standing, a source and
a likely error.

Cost formulas read the figures from `Target.figures`; a machine file (`targets.py`) may
override them.

An engine's time has two parts, in cycles of its clock beyond the elements that stream: `interval`,
until it accepts the next instruction, and `duration`, until the result is available.
"""

from __future__ import annotations

from collections.abc import Iterator
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
PUBLISHED = "published profiles of trn2"
ACCESS_V2 = f"{GUIDE_V2}, about 60 cycles to start an access"
WHOLE_V2 = f"{GUIDE_V2}, 60 cycles to start an access and about 100 static ones"
CHAIN_V2 = f"{PERFORMANCE}: dependent ACTIVATE of one element"
_SOURCES = {name: text for name, text in globals().items() if name.isupper()}


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


def _parameters(table: str) -> Iterator[Parameter]:
    """Yield the rows of a table, from head lines `name | unit | what it is`, with the least value
    that is allowed if that is not 0. Deeper lines continue a line.

    The figures of the generations follow, each with its standing, its value, the values that others
    suggest, and its source. A single one is that of all generations; the last generation, if it is
    left out, equals the one before it (assumed).
    """
    rows: dict[str, list[Figure]] = {}
    figures: list[Figure] = []
    for line in table.format(**_SOURCES).replace("\n        ", " ").splitlines():
        if line.startswith("    ") and line[4] != "#":
            figures.append(_figure(line))
        elif line[:1].strip():
            figures = rows[line] = []
    for head, found in rows.items():
        name, unit, says, *minimum = head.split(" | ")
        known = found * 3 if len(found) == 1 else found
        first, second, third, *_ = *known, _figure(f"assumed {known[1].value}: {LIKE_V3}")
        yield Parameter(name, unit, says, (first, second, third), *map(float, minimum))


def _figure(line: str) -> Figure:
    words, _, source = line.partition(": ")
    standing, *numbers = words.replace(",", " ").replace("(", " ").replace(")", " ").split()
    value, *others = map(_number, numbers)
    error = ERRORS[Standing(standing)]
    if others:
        error = max(LEAST_ERROR, *(abs(other / value - 1) for other in others))
    return Figure(value, Standing(standing), source, error)


def _number(text: str) -> float:
    return float(text) if "." in text else int(text)


# ---- All timing figures: clocks, issue, engines, register loads, DMA, the runtime around a kernel

TABLE: dict[str, Parameter] = {
    row.name: row
    for row in _parameters("""
tensor.clock_mhz | MHz | clock of the tensor engine | 1.0
    documented 2800: {GUIDE_V2}
    documented 2400: {GUIDE_V3}
    documented 2400: {GUIDE_V4}
vector.clock_mhz | MHz | clock of the vector engine | 1.0
    documented 1120: {GUIDE_V2}
    documented 960: {GUIDE_V3}
    documented 1200: {GUIDE_V4}
scalar.clock_mhz | MHz | clock of the scalar engine | 1.0
    documented 1400: {GUIDE_V2}
    documented 1200: {GUIDE_V3}
    documented 1200: {GUIDE_V4}
gpsimd.clock_mhz | MHz | clock of the gpsimd engine | 1.0
    documented 1400: {GUIDE_V2}
    documented 1200: {GUIDE_V3}
    documented 1200: {GUIDE_V4}
sync.clock_mhz | MHz | clock of the sync engine, assumed equal to the scalar engine's | 1.0
    assumed 1400.0: {SILENT}
    assumed 1200.0: {SILENT}
    assumed 1200.0: {SILENT}

issue.least | cycles | minimum interval of an instruction
    documented 64: {FORMULAS}
issue.least_dynamic | cycles | minimum interval with an address from a register
    documented 600: {FORMULAS}
issue.full_rate_stride | bytes | largest innermost step at the full rate of a port; larger ones
        halve it
    documented 16: {GUIDE_V2}, data access
issue.semaphore_ns | ns | from a signal to the start of the waiting instruction
    fitted 20 (5, 18): {OVERVIEW} (5 to 18 ns between bars)
issue.register_cycles | cycles | an instruction that uses only registers
    assumed 64: {SILENT}; the minimum interval

vector.interval_sbuf | cycles | interval beyond streaming, source in SBUF
    documented 60: {ACCESS_V2}
    measured 56: {PROFILES}: TENSOR_REDUCE of 512
vector.interval_psum | cycles | interval beyond streaming, source in PSUM
    documented 60: {ACCESS_V2}
    measured 62: {PROFILES}: COPY and TENSOR_REDUCE of 512
vector.duration_sbuf | cycles | duration beyond streaming, source in SBUF
    documented 160: {WHOLE_V2}
    # 136 to 151 beyond streaming; this is within 5 % of each.
    fitted 140 (136, 151): {PROFILES}: TENSOR_REDUCE of 4, 8 and 512, RECIPROCAL of 4
vector.duration_psum | cycles | duration beyond streaming, source in PSUM
    documented 160: {WHOLE_V2}
    measured 148: {PROFILES}: COPY of 128 and 512, TENSOR_REDUCE of 512
vector.pointer | cycles | additional interval and duration for an operand of one element per
        partition
    assumed 0: {SILENT}; the formulas have no such term
    fitted 66: {PROFILES}: TENSOR_SCALAR with a pointer, beyond streaming
vector.scan | cycles | additional interval and duration of a scan
    assumed 0: {SILENT}; the formulas have no such term
    fitted 114: {PUBLISHED}: tensor_tensor_scan takes about N + 170
vector.scan_per_element | cycles | per element of a scan
    documented 2: {FORMULAS}
    measured 1: {PUBLISHED}: tensor_tensor_scan takes about N + 170
vector.two_tiles_per_element | cycles | per element of two 32-bit tiles from one memory
    documented 2: {FORMULAS}
    documented 1: {GUIDE_V3}, table of engine widths
vector.scalar_tile_per_element | cycles | per element of scalar_tensor_tensor
    documented 2: {FORMULAS}
    measured 1: {PUBLISHED}: scalar_tensor_tensor takes N
vector.accumulator_read | cycles | the additional instruction that reads the reduce registers
    documented 64: {FORMULAS}

scalar.interval_sbuf | cycles | interval beyond streaming, source in SBUF
    documented 60: {ACCESS_V2}
    fitted 102: {PROFILES}: ACTIVATE of 512 out of SBUF and PSUM, COPY out of PSUM
scalar.interval_psum | cycles | interval beyond streaming, source in PSUM
    documented 60: {ACCESS_V2}
    fitted 54: {PROFILES}: COPY of 512, CAST of 128
scalar.duration_sbuf | cycles | duration beyond streaming, source in SBUF
    measured 221: {CHAIN_V2}
    fitted 216: {PROFILES}: ACTIVATE of 512 out of SBUF and PSUM, COPY out of PSUM
scalar.duration_psum | cycles | duration beyond streaming, source in PSUM
    measured 221: {CHAIN_V2}
    measured 190: {PROFILES}: COPY of 128 and 512, CAST of 128
scalar.function | cycles | additional interval and duration of a function from a table
    assumed 0: {SILENT}; the formulas have no such term
    fitted 119: {PROFILES}: ACTIVATE EXP beside COPY
scalar.accumulator_read | cycles | the additional instruction that reads the reduce registers
    documented 64: {GUIDE_V2}, ActReadAccumulator
scalar.table_ns | ns | load of another table of activation functions
    measured 368: neuron-profile user guide (trn1)
    measured 1283: {PROFILES}: ACT_TABLE_LOAD

gpsimd.interval | cycles | interval beyond streaming
    documented 60: {ACCESS_V2}
    assumed 60: {LIKE_V2}
gpsimd.duration | cycles | duration beyond streaming
    documented 160: {WHOLE_V2}
    assumed 160: {LIKE_V2}
gpsimd.start | cycles | start-up of programs such as iota and affine_select
    documented 150: {FORMULAS}
gpsimd.dma_rate | bytes/ns | of all DMA engines of its processors together, in each direction |
        0.01
    assumed 153: {LIKE_V3}, though trn1 has none
    documented 153: {GUIDE_V3}

tensor.fill_ns | ns | from the last column in to its result, plus a cycle per stationary column
    fitted 140: {PERFORMANCE}: MATMUL with 1 and 96 columns held
    fitted 108: {PROFILES}: MATMUL of 128 and 512 columns
tensor.issue | cycles | between instructions, beyond streaming; one instruction makes two 32-bit
        passes
    assumed 0: {SILENT}; the formulas have no such term
    fitted 4: {PROFILES}: MATMUL of 128 and 512 columns, bfloat16 and LOW_HIGH
tensor.passes_32 | passes | over 32-bit floats | 1.0
    documented 4: {GUIDE_V2}
    documented 4: {GUIDE_V3}
    documented 4: {GUIDE_V4}
tensor.load_rate | columns per cycle | of a fast load of the stationary matrix | 0.01
    documented 4: {GUIDE_V2}, fast LoadStationary
tensor.load_32_ns | ns | to load 128 columns of 32-bit floats, once for each half of their bits
    assumed 164: {LIKE_V3}, in cycles
    measured 191: {PROFILES}: LDWEIGHTS, fp32_mode LOW and HIGH
tensor.warm_up_ns | ns | of use until the engine reaches its full rate
    assumed 0: {SILENT} on trn1
    fitted 6600 (3000): {PUBLISHED}; the profiler's guide says about 3 us
tensor.cool_down_ns | ns | without use until it is cold again
    assumed 0: {SILENT} on trn1
    documented 3000: {PROFILER}: drops back below half use over about 3 us
tensor.cold_rate | share | of the full rate while it is cold | 0.01
    documented 0.5: {PROFILER}: starts near 50 % duty
tensor.least_use | share | of its rows and time for which the engine must be used to stay, or get,
        warm
    assumed 0.5: {LIKE_V3}, but it has no warm-up
    # That rows count is implied; half or all of them may be the limit.
    documented 0.5 (0.25): {PROFILER}: less use over about 3 us engages the limit again

gpsimd.register_load_ns | ns | the gpsimd engine loads a register from SBUF
    assumed 682: {LIKE_V3}
    measured 682: {PROFILES}: TENSOR_LOAD of a word
scalar.register_load_ns | ns | the scalar engine loads a register from SBUF
    assumed 571: {LIKE_V3}
    measured 571: {PROFILES}: TENSOR_LOAD of a word
sync.register_load_ns | ns | the sync engine loads a register from SBUF
    assumed 646: {LIKE_V3}
    measured 646: {PROFILES}: TENSOR_LOAD of a word
vector.register_load_ns | ns | the vector engine loads a register from SBUF
    assumed 847: {LIKE_V3}
    measured 847: {PROFILES}: TENSOR_LOAD of a word
tensor.register_load_ns | ns | the tensor engine loads a register from SBUF
    assumed 1000: {LIKE_V3}
    fitted 1000: {PROFILES}: TENSOR_LOAD of two words takes 1,248

dma.engine_rate | bytes/ns | of one engine on long rows, if its core is alone on the chip | 0.01
    measured 18.1: {PERFORMANCE}: 32 KiB on one engine
    fitted 25.3 (25.0, 25.6, 23.0): {PUBLISHED}: 400 to 409 GB/s of a core alone; the guide says
        23.0
    assumed 36.3: {RATES}, exceeded by as much {LIKE_V3}
dma.engine_rate_shared | bytes/ns | of one engine on long rows, if all cores of a stack of HBM move
        data | 0.01
    documented 17.0: {RATES}
    documented 23.0: {RATES}
    documented 33.0: {RATES}
dma.descriptor_bytes | bytes | largest element that a descriptor moves | 1.0
    assumed 4096: {LIKE_V3}
    measured 4096: {PROFILES}: largest element of DMA_DIRECT2D
dma.descriptor_ns | ns | per descriptor, in addition to its bytes
    fitted 15 (12): {OVERVIEW} (256-byte rows: 12 ns each) and its curve of efficiency
dma.start_hwdge_ns | ns | from the trigger to the first byte, with descriptors generated by
        hardware
    measured 960 (920, 1000): {OVERVIEW}: 920 to 1,000 ns
dma.start_swdge_ns | ns | from the trigger to the first byte, with descriptors generated by gpsimd
    fitted 1540 (1492, 1619): {OVERVIEW}: 880 ns to make them, then 612 and 739 ns
dma.start_prepared_ns | ns | from the trigger to the first byte, with descriptors prepared before
        the run
    assumed 960: {SILENT}; the bandwidth guide has about 1,300 ns with the completion
dma.done_ns | ns | from the last byte to the semaphore
    measured 298 (292): {OVERVIEW}: 292 and 298 ns
dma.trigger_hwdge_ns | ns | per transfer, of the engine that commands the hardware
    assumed 570: {LIKE_V3}
    measured 570 (562, 576, 608): {PROFILES}: DMA_DIRECT2D on sync (562) and scalar (576)
dma.trigger_swdge_ns | ns | per transfer, of gpsimd
    assumed 580: {LIKE_V3}
    measured 580 (576, 582): {PROFILES}: DMA_DIRECT2D on gpsimd (576 to 582)
dma.trigger_prepared_ns | ns | per transfer, of the engine that starts prepared descriptors
    measured 8 (7): {OVERVIEW}; {PERFORMANCE} (7 ns)
dma.partitions | partitions | served by one engine | 1.0
    documented 8: {GUIDE_V3}, DMA; DMA overview
dma.transpose_hbm | share | of the copy rate, when transposing from HBM | 0.01
    assumed 0.9: {LIKE_V3}
    documented 0.9: {GUIDE_V3}, DMA transpose
dma.transpose_sbuf | share | of the copy rate, when transposing within SBUF | 0.01
    assumed 0.5: {LIKE_V3}
    documented 0.5: {GUIDE_V3}, DMA transpose
dma.link_rate | bytes/ns | of the NeuronLink of a chip, divided by its cores | 0.01
    documented 96.0: pages of inf2, trainium2, trainium3
    documented 160.0: pages of inf2, trainium2, trainium3
    documented 320.0: pages of inf2, trainium2, trainium3

launch.before_ns | ns | from the runtime's start to the kernel's first instruction
    fitted 20000: neuron-profile user guide: a trivial kernel takes 29.3 us in all (trn1)
    measured 13000: {PUBLISHED}: prologues of short kernels
launch.after_ns | ns | from the kernel's last instruction to the runtime's end
    assumed 1500: {LIKE_V3}
    measured 1500: {PUBLISHED}: tails of short kernels
""")
}


def defaults(generation: int) -> dict[str, float]:
    return {name: row.of(generation).value for name, row in TABLE.items()}
