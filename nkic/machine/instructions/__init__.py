"""The instruction table: every row of every family, by name and by opcode."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from nkic.machine.instructions import (
    collectives,
    control,
    dma,
    gpsimd,
    random,
    scalar,
    tensor,
    vector,
    vector_folds,
)
from nkic.machine.operands import Row

Key = TypeVar("Key", str, int)
FAMILIES = (
    *(control.ROWS, dma.ROWS, dma.COMPUTE_ROWS, tensor.ROWS),
    *(vector.ROWS, vector_folds.ROWS, vector_folds.SEARCH_ROWS, scalar.V4_ROWS),
    *(scalar.ROWS, gpsimd.ROWS, gpsimd.GATHER_ROWS, random.ROWS),
    *(tensor.MX_ROWS, control.CORE_ROWS, collectives.ROWS, control.DEBUG_ROWS),
)


def _unique(key: Callable[[Row], Key], rows: Iterable[Row]) -> dict[Key, Row]:
    unique: dict[Key, Row] = {}
    for row in rows:
        old = unique.setdefault(key(row), row)
        if old is not row:
            raise ValueError(f"{old.name} and {row.name} are both {key(row)!r}")
    return unique


ROWS: dict[str, Row] = _unique(lambda row: row.name, (r for rows in FAMILIES for r in rows))
BY_OPCODE: dict[int, Row] = _unique(lambda row: row.opcode, ROWS.values())
