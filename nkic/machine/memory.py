"""Memories of a NeuronCore, as NKI names them and as they are laid out.

Sources: Trainium architecture guides (SBUF and PSUM: 128 partitions; PSUM: 8 banks of 2 KiB
per partition); `nki.language` buffer names.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

PARTITIONS = 128
PSUM_BANK_BYTES = 2048


class Buffer(Enum):
    """Where a tensor lives. The value is NKI's name and appears in program text."""

    SBUF = "sbuf"
    PSUM = "psum"
    HBM = "hbm"  # private to one core
    SHARED_HBM = "shared_hbm"  # seen by all cores of the kernel, and by the host

    # Identity hash: members are keys on hot paths, and Enum's own hash is a Python call.
    __hash__ = object.__hash__

    def __init__(self, name: str) -> None:
        self.on_chip = name in ("sbuf", "psum")  # has a partition dimension


MEMORIES = (Buffer.SBUF, Buffer.PSUM)  # those on chip

BUFFER_CODES = {Buffer.SBUF: 0, Buffer.PSUM: 1, Buffer.HBM: 2, Buffer.SHARED_HBM: 3}
BUFFER_OF_CODE = {code: buffer for buffer, code in BUFFER_CODES.items()}


class Address(NamedTuple):
    """A place on chip: first partition, and the byte within each partition."""

    partition: int
    byte: int
