"""Watches: reports of every change of a tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from nkic.base.text import clean, plural
from nkic.simulate.comparison.stats import Stats, stats_of
from nkic.simulate.debug.observed import Execution, Observer, Scene
from nkic.simulate.debug.parts import Part
from nkic.simulate.debug.tensors import Stored
from nkic.simulate.debug.writes import Write, Writes, region_text


class Changed(NamedTuple):
    """A write that changed a watched tensor or part.

    `changes` is the number of elements that differ, or of all elements at the first write. `stats`
    are of the watched part.
    """

    part: Part
    write: Write
    changes: int
    stats: Stats


class Watches(Observer):
    """Reports every change of `parts`."""

    def __init__(self, parts: Sequence[Part], tell: Callable[[Changed], object]) -> None:
        self.parts = parts
        self.tell = tell
        self._writes: list[Writes] = []
        self._contents: dict[tuple[int, int, Part], Stored] = {}  # by rank, tensor and part

    def begin(self, scene: Scene) -> None:
        """Raise `UsageFailed` for a tensor that is never written, or for an invalid part."""
        writes = Writes(scene)
        for part in self.parts:
            writes.check("--changes", part.name)
            for number in scene.tensors.named[part.name]:
                part.check(scene.tensors.record(number).shape)
        self._writes.append(writes)

    def after(self, execution: Execution) -> None:
        """Compare what was written with the previous contents."""
        for write in self._writes[execution.scene.rank].of(execution):
            for part in self.parts:
                if part.name == write.name:
                    self._compare(execution.scene, part, write)

    def _compare(self, scene: Scene, part: Part, write: Write) -> None:
        key, now = (scene.rank, write.tensor, part), part.of(scene.tensors.contents(write.tensor))
        before = self._contents.get(key)
        count = now.size if before is None else int(np.count_nonzero(_bits(now) != _bits(before)))
        self._contents[key] = now
        if count:
            dtype = scene.tensors.record(write.tensor).dtype
            self.tell(Changed(part, write, count, stats_of(now, dtype)))


def _bits(array: Stored) -> Stored:
    """Return the bits, so that equal NaNs compare equal, and -0 differs from 0."""
    bits: Stored = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
    return bits


def text(changed: Changed) -> str:
    """Format a change as a line."""
    write, stats = changed.write, changed.stats
    row = write.record.row.name if write.record.row else ""
    iterations = f" iteration {', '.join(map(str, write.iterations))}" if write.iterations else ""
    iterations += f" ({write.unrolled})" if write.unrolled else ""
    values = "" if stats.minimum is None else f"min {stats.minimum:g}  max {stats.maximum:g}  "
    rank = f"rank {write.rank}: " if write.rank else ""
    return (
        f"{rank}{clean(changed.part.text)}  line {write.line}{iterations}  "
        f"{write.done / 1e6:.3f} us  "
        f"{write.stream.name} {row}  wrote {region_text(write.region)}, "
        f"{plural(changed.changes, 'element')} changed  {values}nan {stats.nan}"
    )
