"""Engines: the units that execute instructions. Each runs its own in-order stream.

Sources: Trainium architecture guide, engines; `nki.isa.engine` (names and numbers).
"""

from __future__ import annotations

from enum import Enum


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
