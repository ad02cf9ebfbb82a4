"""The limits of the format, part of docs/neff.md. Tests cover each limit and one above it.

A reader may raise `file_bytes` and `hbm_bytes` at the user's request; the others are fixed, so that
every reader of a version accepts the same files.
"""

from __future__ import annotations

from dataclasses import dataclass

from nkic.machine.memory import MAX_RANK, MAX_SIZE

INT32 = 2**31 - 1
INT64 = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Limits:
    """The maximum size of each part of a file, inclusive."""

    file_bytes: int = 1 << 30
    header_bytes: int = 1 << 20
    sections: int = 64
    record_bytes: int = 1 << 16  # one record of a section, except constants and source text
    string_bytes: int = 4096
    source_bytes: int = 16 << 20  # embedded text of one file
    parameters: int = 512  # inputs; the same for outputs
    notes: int = 1024  # arguments and build flags together
    files: int = 4096
    places: int = 4_000_000
    tensors: int = 1_000_000
    rank: int = MAX_RANK  # of a tensor, and of an access pattern's free dimensions
    dimension: int = MAX_SIZE
    hbm_bytes: int = 16 << 30  # all HBM tensors together
    semaphores: int = 4096  # per core
    registers: int = 4096
    values: int = 4_000_000  # different operands
    forms: int = 1_000_000  # different pairs of opcode and attributes
    streams: int = 256
    items: int = 4_000_000  # instructions, empty slots and loops, all streams together
    operands: int = 64  # of one instruction; the same for its attributes
    waits: int = 64  # of one item; the same for its signals
    loop_depth: int = 8
    trips: int = INT32  # of one counted loop


LIMITS = Limits()
