"""The instruction table: every row of every family, by name and by opcode."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from nkic.machine.instructions import (
    collectives,
    cores,
    debug,
    dma,
    dma_compute,
    gpsimd,
    gpsimd_gather,
    mx,
    random,
    registers,
    scalar,
    tensor,
)
from nkic.machine.instructions.vector import arithmetic, search, select, v4
from nkic.machine.operands import Row

Key = TypeVar("Key", str, int)
FAMILIES = (
    *(registers, dma, dma_compute, tensor),
    *(arithmetic, select, search, v4),
    *(scalar, gpsimd, gpsimd_gather, random),
    *(mx, cores, collectives, debug),
)


def _unique(key: Callable[[Row], Key], rows: Iterable[Row]) -> dict[Key, Row]:
    unique: dict[Key, Row] = {}
    for row in rows:
        old = unique.setdefault(key(row), row)
        if old is not row:
            raise ValueError(f"{old.name} and {row.name} are both {key(row)!r}")
    return unique


ROWS: dict[str, Row] = _unique(lambda row: row.name, (r for f in FAMILIES for r in f.ROWS))
BY_OPCODE: dict[int, Row] = _unique(lambda row: row.opcode, ROWS.values())
