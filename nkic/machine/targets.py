"""The three hardware generations that nkic supports, as data.

Sources, unless a line says otherwise: the architecture guides of Trainium/Inferentia2, Trainium2
and Trainium3 (sizes); `nki.language.tile_size` (tile limits). Timing figures come from
`machine/clock`. Figures without a public source are marked assumed here and listed in
docs/fidelity.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

from nkic.machine.clock import TABLE, defaults

# ---- Engines: the units that execute instructions. Each runs its own in-order stream ------------
# Sources: Trainium architecture guide, engines; `nki.isa.engine` (names and numbers).


class Engine(Enum):
    """An execution unit. The value is `nki.isa.engine`'s name and appears in program text."""

    TENSOR = "tensor"  # PE: matrix multiplication, 128 x 128 array
    VECTOR = "vector"  # DVE: tile and reduction arithmetic
    SCALAR = "scalar"  # ACT: activation functions
    GPSIMD = "gpsimd"  # POOL: eight programmable cores, no PSUM access
    SYNC = "sync"  # SP: triggers DMA, synchronises the others
    DMA = "dma"  # the sixteen DMA engines, fed through queues

    __hash__ = object.__hash__  # identity, as for Buffer


ENGINE_CODES = {
    Engine.SCALAR: 2,
    Engine.TENSOR: 1,
    Engine.GPSIMD: 3,
    Engine.DMA: 4,
    Engine.VECTOR: 5,
    Engine.SYNC: 6,
}
ENGINE_OF_CODE = {code: engine for engine, code in ENGINE_CODES.items()}
SHORT_NAMES = {
    Engine.TENSOR: "PE",
    Engine.SCALAR: "ACT",
    Engine.VECTOR: "DVE",
    Engine.GPSIMD: "POOL",
    Engine.SYNC: "SP",
    Engine.DMA: "DMA",
}


# ---- The memories of a NeuronCore: their NKI names and their layout -----------------------------
# Sources: Trainium architecture guides (SBUF and PSUM: 128 partitions; PSUM: 8 banks of 2 KiB per
# partition); `nki.language` buffer names.

PARTITIONS = 128
PSUM_BANK_BYTES = 2048
MAX_RANK = 8  # dimensions of a tensor, in kernels and in files (docs/neff.md)
MAX_SIZE = 2**31 - 1  # elements along one dimension, likewise


class Buffer(Enum):
    """The memory that holds a tensor. The value is NKI's name and appears in program text."""

    SBUF = "sbuf"
    PSUM = "psum"
    HBM = "hbm"  # private to one core
    SHARED_HBM = "shared_hbm"  # visible to all cores of the kernel, and to the host

    # Identity hash: members are keys on hot paths, and Enum's own hash is a Python call.
    __hash__ = object.__hash__

    def __init__(self, name: str) -> None:
        self.on_chip = name in ("sbuf", "psum")  # has a partition dimension


SPILLED = ".spilled"  # ends the name of a tensor in HBM that holds a spilled tile
MEMORIES = (Buffer.SBUF, Buffer.PSUM)  # the on-chip memories

BUFFER_CODES = {Buffer.SBUF: 0, Buffer.PSUM: 1, Buffer.HBM: 2, Buffer.SHARED_HBM: 3}
BUFFER_OF_CODE = {code: buffer for buffer, code in BUFFER_CODES.items()}


class Address(NamedTuple):
    """An on-chip address: the first partition, and the byte offset within each partition."""

    partition: int
    byte: int


# --------------------------------------------------------------------------------------------------

KIB = 1024
ALONE, PAIR, ALL = CONTENTION = ("alone", "pair", "all")


@dataclass(frozen=True)
class Target:
    """One hardware generation.

    `figures` are its timing figures (`machine/clock`), by name. `contention` says which other cores
    access HBM: none ("alone"), the other core of a pair, or all cores of the chip. `machine` is the
    hash of the machine file that changed either; empty for the defaults. `queue_engines` trigger
    the transfers of each DMA queue, unless an instruction names an engine.
    """

    name: str
    generation: int  # NeuronCore version: 2, 3, 4
    sbuf_bytes: int  # per partition, physical
    sbuf_usable: int  # per partition, available to a kernel
    psum_banks: int
    base_clock_mhz: int  # of the "cycles" in reports
    dma_engines: int
    queue_engines: tuple[Engine, ...]  # of the queues nkic spreads transfers over (assumed)
    max_cores: int  # physical cores that one kernel may use
    chip_cores: int  # physical cores of a chip
    matmul_free: int  # elements of a moving operand per partition
    figures: Mapping[str, float]
    semaphores: int = 256  # assumed: no public figure
    registers: int = 64  # per engine
    contention: str = ALONE
    machine: str = ""
    sbuf_exclusive: tuple[Engine, ...] = ()  # engines of which one at a time accesses SBUF
    psum_exclusive: tuple[Engine, ...] = ()  # the same for PSUM

    @property
    def dma_queues(self) -> int:
        """The number of queues that nkic spreads a core's transfers over."""
        return len(self.queue_engines)

    @cached_property
    def clock_mhz(self) -> Mapping[Engine, float]:
        """The clock of each engine in MHz. The value for DMA is not used for timing."""
        clocks = {e: self.figures[f"{e.value}.clock_mhz"] for e in Engine if e is not Engine.DMA}
        return MappingProxyType({**clocks, Engine.DMA: clocks[Engine.SCALAR]})

    @property
    def dma_rate(self) -> float:
        """Bytes per ns of one DMA engine on long rows, under the target's contention."""
        alone = self.contention == ALONE
        return self.figures["dma.engine_rate" if alone else "dma.engine_rate_shared"]

    def used_by(self, cores: int) -> Target:
        """Return the target for a kernel on `cores` cores: two of them share a stack of HBM."""
        return replace(self, contention=PAIR) if cores > 1 and self.contention == ALONE else self

    @property
    def peak_operations(self) -> float:
        """The additions and multiplications of 16-bit floats that the array performs per ns."""
        return 2 * PARTITIONS * PARTITIONS * self.clock_mhz[Engine.TENSOR] / 1000

    @property
    def peak_rate(self) -> float:
        """The achievable bytes per ns of all DMA engines of a core together."""
        return self.dma_engines * self.dma_rate

    @property
    def psum_bytes(self) -> int:
        return self.psum_banks * PSUM_BANK_BYTES


GIVEN_ERROR = 0.05  # of a figure from a machine file, as of one that was measured


def likely_error(name: str, target: Target) -> float:
    """Return the likely error of a figure of `target`, as a share of its value."""
    figure = TABLE[name].of(target.generation)
    return figure.error if target.figures[name] == figure.value else GIVEN_ERROR


def _figures(generation: int) -> Mapping[str, float]:
    return MappingProxyType(defaults(generation))


# Hardware descriptor generation is commanded by sync or scalar, software generation by gpsimd
# (descriptor generation engine reference). If the kernel does not choose, sync triggers transfers,
# as in the figures of the kernel optimisation tutorial and of the DMA overview's first example (in
# its second example, gpsimd does). That stores are triggered by sync, too, is implied by published
# times of kernels bound by their triggers. The vendor's assignment is not published.
_TRIGGERS = (Engine.SYNC,) * 8

TRN1 = Target(
    name="trn1",
    generation=2,
    figures=_figures(2),
    sbuf_bytes=192 * KIB,
    sbuf_usable=(192 - 16) * KIB,  # direct allocation guide, NKI 0.1
    psum_banks=8,
    base_clock_mhz=1400,
    dma_engines=16,
    queue_engines=(Engine.SYNC,) * 8,  # descriptors are prepared before the run
    sbuf_exclusive=(Engine.VECTOR, Engine.GPSIMD),  # both: memory hierarchy; lifted from trn2 on
    psum_exclusive=(Engine.VECTOR, Engine.SCALAR),
    max_cores=1,
    chip_cores=2,
    matmul_free=512,
)
TRN2 = Target(
    name="trn2",
    generation=3,
    figures=_figures(3),
    sbuf_bytes=224 * KIB,
    sbuf_usable=224 * KIB - 16 * KIB - 8 - 256,  # nki-library, mlp_cte_constants.py
    psum_banks=8,
    base_clock_mhz=1200,
    dma_engines=16,
    queue_engines=_TRIGGERS,
    max_cores=2,
    chip_cores=8,
    matmul_free=512,
)
TRN3 = Target(
    name="trn3",
    generation=4,
    figures=_figures(4),
    sbuf_bytes=256 * KIB,
    sbuf_usable=256 * KIB - 16 * KIB - 8 - 256,  # assumed: the same reserve as on trn2
    psum_banks=8,
    base_clock_mhz=1200,
    dma_engines=16,
    queue_engines=_TRIGGERS,
    max_cores=2,
    chip_cores=8,
    matmul_free=4096,  # float32 dst; 8192 for bfloat16 (nc_matmul, nki.isa)
)
TARGETS: dict[str, Target] = {t.name: t for t in (TRN1, TRN2, TRN3)}
ALIASES = {"gen2": "trn1", "inf2": "trn1", "gen3": "trn2", "gen4": "trn3"}
DEFAULT = TRN2


def find(name: Any) -> Target | None:
    """Return the target called `name`, or None. `inf2` and `gen2` … `gen4` are accepted."""
    return TARGETS.get(ALIASES.get(name, name))
