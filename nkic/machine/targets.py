"""The three generations nkic knows, as data.

Sources, unless a line says otherwise: the architecture guides of Trainium/Inferentia2,
Trainium2 and Trainium3 (sizes); `nki.language.tile_size` (tile limits). Figures of time come from
`machine/clock`. A figure that no public page prints is marked assumed here and listed in
docs/fidelity.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

from nkic.machine.clock import defaults
from nkic.machine.engines import Engine
from nkic.machine.memory import PARTITIONS, PSUM_BANK_BYTES

KIB = 1024
ALONE, PAIR, ALL = CONTENTION = ("alone", "pair", "all")


@dataclass(frozen=True)
class Target:
    """One hardware generation.

    `figures` are its figures of time (`machine/clock`), by name. `contention` is who else moves
    data to and from HBM: nobody ("alone"), the other core of a pair, or all cores of the chip.
    `machine` is the hash of the machine file that changed either; empty for the defaults.
    `queue_engines` trigger the transfers of each DMA queue, unless an instruction says who does.
    """

    name: str
    generation: int  # NeuronCore version: 2, 3, 4
    sbuf_bytes: int  # per partition, physical
    sbuf_usable: int  # per partition, what a kernel may use
    psum_banks: int
    base_clock_mhz: int  # what "cycles" in reports counts
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
        """Queues that nkic spreads a core's transfers over."""
        return len(self.queue_engines)

    @cached_property
    def clock_mhz(self) -> Mapping[Engine, float]:
        """The clock of each engine. That of the DMA engines counts nothing."""
        clocks = {e: self.figures[f"{e.value}.clock_mhz"] for e in Engine if e is not Engine.DMA}
        return MappingProxyType({**clocks, Engine.DMA: clocks[Engine.SCALAR]})

    @property
    def dma_rate(self) -> float:
        """Bytes per ns of one DMA engine on long rows, as contention leaves them."""
        alone = self.contention == ALONE
        return self.figures["dma.engine_rate" if alone else "dma.engine_rate_shared"]

    def used_by(self, cores: int) -> Target:
        """The same for a kernel on so many cores: two of them share a stack of HBM."""
        return replace(self, contention=PAIR) if cores > 1 and self.contention == ALONE else self

    @property
    def peak_operations(self) -> float:
        """Additions and multiplications of 16-bit floats that the array makes in a ns."""
        return 2 * PARTITIONS * PARTITIONS * self.clock_mhz[Engine.TENSOR] / 1000

    @property
    def peak_rate(self) -> float:
        """Bytes per ns of all DMA engines of a core together, as transfers reach it."""
        return self.dma_engines * self.dma_rate

    @property
    def psum_bytes(self) -> int:
        """PSUM bytes per partition."""
        return self.psum_banks * PSUM_BANK_BYTES


def _figures(generation: int) -> Mapping[str, float]:
    return MappingProxyType(defaults(generation))


# Descriptors made by hardware are commanded by sync or scalar, those made by software by gpsimd
# (descriptor generation engine reference). Where a kernel leaves it open, sync triggers what comes
# on chip, as in the pictures of the kernel optimisation tutorial and of the DMA overview's first
# example (in its second one gpsimd does). Of the queues that lead away from it sync, which computes
# nothing, has two. The vendor's map is not published.
_TRIGGERS = (Engine.SYNC,) * 4 + (Engine.SYNC, Engine.GPSIMD, Engine.SCALAR, Engine.SYNC)

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
    """The target called `name`, or None. `inf2` and `gen2` … `gen4` are accepted."""
    return TARGETS.get(ALIASES.get(name, name))
