"""The memories of a NeuronCore: their NKI names and their layout.

Sources: Trainium architecture guides (SBUF and PSUM: 128 partitions; PSUM: 8 banks of 2 KiB per
partition); `nki.language` buffer names.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

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
