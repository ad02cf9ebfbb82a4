"""Run-time offsets: the current addresses of an instruction's operands, and their bounds.

An exact offset is as good as a fixed one. An offset that rounding may have changed can lead
anywhere, so the results of the instruction are unbounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nkic.machine.operands import Depends
from nkic.neff.records import InstructionRecord, PatternRecord
from nkic.simulate.bounds.algebra import Doubles, stored
from nkic.simulate.bounds.operation import values_of
from nkic.simulate.bounds.store import Store
from nkic.simulate.dynamic import Dynamic
from nkic.simulate.storage.memory import Memory

DST, SRC = 0, 1  # the operands of a transfer


class Rows(NamedTuple):
    """The offsets of an operand's rows, clamped to the `size` offsets inside the tensor."""

    indices: NDArray[np.int64]
    size: int
    kind: str


class Resolved(NamedTuple):
    """An instruction with its scalar offsets resolved.

    `rows` has the other offsets, by operand, and `inside` tells which rows are not skipped.
    """

    record: InstructionRecord
    rows: Mapping[int, Rows]
    inside: NDArray[np.bool_]

    @property
    def is_transfer(self) -> bool:
        """Whether the instruction moves rows one by one."""
        row = self.record.row
        copies = row is not None and row.moves and row.depends is Depends.ELEMENTWISE
        return (
            copies
            and bool(self.rows)
            and all(offsets.kind == "vector" for offsets in self.rows.values())
        )


def resolve(record: InstructionRecord, dynamic: Dynamic) -> Resolved:
    """Return the instruction at its current addresses."""
    operands, inside = list(record.operands), np.ones(1, np.bool_)
    rows: dict[int, Rows] = {}
    for place in dynamic.places:
        number = next(n for n, operand in enumerate(operands) if operand is place.pattern)
        indices = place.indices()
        good = place.good(indices)
        if place.pattern.kind == "scalar":
            operands[number] = _at(place.pattern, int(indices[0]))
            good = good[:1]
        else:
            rows[number] = Rows(indices.clip(0, place.size - 1), place.size, place.pattern.kind)
        inside = inside & good
    return Resolved(record._replace(operands=tuple(operands)), rows, inside)


def _at(pattern: PatternRecord, index: int) -> PatternRecord:
    stride = pattern.dynamic.stride if pattern.dynamic is not None else 0
    return pattern._replace(offset=pattern.offset + index * stride, dynamic=None)


class Transfer:
    """A copy that gathers or scatters rows, and the bounds of the rows."""

    def __init__(self, resolved: Resolved, memory: Memory, store: Store) -> None:
        self.resolved, self.memory, self.store = resolved, memory, store
        self.dst, self.src = _tile(resolved, DST), _tile(resolved, SRC)
        self.is_cast = self.src.dtype is not self.dst.dtype
        self.count = len(next(iter(resolved.rows.values())).indices)
        self.errors = self._read()
        needs_values = self.is_cast and SRC not in resolved.rows
        self.values = values_of(memory, self.src) if needs_values else None

    def _read(self) -> Doubles | None:
        source = self.resolved.rows.get(SRC)
        if source is None:
            return self.store.read(self.src).reshape(self.count, -1).copy()
        windows = self.store.places(self.src, source.size)
        return None if windows is None else windows[source.indices].reshape(self.count, -1)

    def finish(self) -> bool:
        """Set the bounds of the destination; return False if they are not known."""
        target = self.resolved.rows.get(DST)
        errors = self._cast(self.errors, target) if self.errors is not None else None
        if errors is None:
            return False
        return self._scatter(errors, target) if target is not None else self._fill(errors)

    def _cast(self, errors: Doubles, target: Rows | None) -> Doubles | None:
        """Return the bounds after conversion to dst's type."""
        if not self.is_cast:
            return errors
        values = self.values if target is not None else values_of(self.memory, self.dst)
        if values is None:
            return None
        values = values.reshape(errors.shape)
        return np.where(np.isfinite(values), stored(values, errors, self.dst.dtype), np.inf)

    def _fill(self, errors: Doubles) -> bool:
        before = self.store.read(self.dst)
        inside = np.broadcast_to(self.resolved.inside, self.count)[:, None]
        bounds = np.where(inside, errors, before.reshape(self.count, -1))
        self.store.write(self.dst, bounds.reshape(before.shape))
        return True

    def _scatter(self, errors: Doubles, target: Rows) -> bool:
        windows = self.store.places(self.dst, target.size)
        if windows is None:
            return False
        inside = np.broadcast_to(self.resolved.inside, self.count)
        windows[target.indices[inside]] = errors.reshape(self.count, *windows.shape[1:])[inside]
        return True


def _tile(resolved: Resolved, number: int) -> PatternRecord:
    operand = resolved.record.operands[number]
    assert type(operand) is PatternRecord
    return operand
