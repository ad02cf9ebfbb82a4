"""The three generations nkic knows, as data.

Sources, unless a line says otherwise: the architecture guides of Trainium/Inferentia2,
Trainium2 and Trainium3 (sizes, clocks); `nki.language.tile_size` (tile limits); the DMA
bandwidth guide (effective rate per DMA engine). A figure that no public page prints is
marked assumed here and listed in docs/fidelity.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from nkic.machine.engines import Engine
from nkic.machine.memory import PSUM_BANK_BYTES

KIB = 1024


@dataclass(frozen=True)
class Target:
    """One hardware generation. Clocks in MHz, rates in bytes per ns."""

    name: str
    generation: int  # NeuronCore version: 2, 3, 4
    sbuf_bytes: int  # per partition, physical
    sbuf_usable: int  # per partition, what a kernel may use
    psum_banks: int
    clock_mhz: MappingProxyType[Engine, int]
    base_clock_mhz: int  # what "cycles" in reports counts
    dma_engines: int
    dma_rate: float  # effective, per DMA engine
    link_rate: float  # NeuronLink of a chip (pages of inf2, trainium2, 3) / its cores
    dma_queues: int  # queues nkic spreads a core's transfers over (assumed)
    max_cores: int  # physical cores that one kernel may use
    chip_cores: int  # physical cores of a chip
    matmul_free: int  # elements of a moving operand per partition
    semaphores: int = 256  # assumed: no public figure
    registers: int = 64  # per engine

    @property
    def psum_bytes(self) -> int:
        """PSUM bytes per partition."""
        return self.psum_banks * PSUM_BANK_BYTES


def _clocks(tensor: int, vector: int, scalar: int, gpsimd: int) -> MappingProxyType[Engine, int]:
    # The sync engine's clock is unpublished: assumed equal to the scalar engine's.
    return MappingProxyType(
        {
            Engine.TENSOR: tensor,
            Engine.VECTOR: vector,
            Engine.SCALAR: scalar,
            Engine.GPSIMD: gpsimd,
            Engine.SYNC: scalar,
            Engine.DMA: scalar,
        }
    )


TRN1 = Target(
    name="trn1",
    generation=2,
    sbuf_bytes=192 * KIB,
    sbuf_usable=(192 - 16) * KIB,  # direct allocation guide, NKI 0.1
    psum_banks=8,
    clock_mhz=_clocks(2800, 1120, 1400, 1400),
    base_clock_mhz=1400,
    dma_engines=16,
    dma_rate=17.0,
    link_rate=96.0,
    dma_queues=8,
    max_cores=1,
    chip_cores=2,
    matmul_free=512,
)
TRN2 = Target(
    name="trn2",
    generation=3,
    sbuf_bytes=224 * KIB,
    sbuf_usable=224 * KIB - 16 * KIB - 8 - 256,  # nki-library, mlp_cte_constants.py
    psum_banks=8,
    clock_mhz=_clocks(2400, 960, 1200, 1200),
    base_clock_mhz=1200,
    dma_engines=16,
    dma_rate=23.0,
    link_rate=160.0,
    dma_queues=8,
    max_cores=2,
    chip_cores=8,
    matmul_free=512,
)
TRN3 = Target(
    name="trn3",
    generation=4,
    sbuf_bytes=256 * KIB,
    sbuf_usable=256 * KIB - 16 * KIB - 8 - 256,  # assumed: the same reserve as on trn2
    psum_banks=8,
    clock_mhz=_clocks(2400, 1200, 1200, 1200),
    base_clock_mhz=1200,
    dma_engines=16,
    dma_rate=33.0,
    link_rate=320.0,
    dma_queues=8,
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
