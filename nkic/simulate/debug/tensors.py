"""The tensors of a program by name, with their current contents."""

from __future__ import annotations

from collections import defaultdict
from itertools import accumulate
from operator import mul

import numpy as np
from numpy.typing import NDArray

from nkic.neff.records import Executable, PatternRecord, TensorRecord
from nkic.simulate.storage.flags import Mask
from nkic.simulate.storage.memory import Memory
from nkic.simulate.storage.shadow import Shadow
from nkic.simulate.tile import Tile

Stored = NDArray[np.generic]  # in the storage type of the element type


class Tensors:
    """The tensors of one rank, by number and by name.

    Several may share a name, as an unrolled loop makes one per iteration. `shadow` tells which
    bytes are initialised, if they are tracked.
    """

    def __init__(
        self, executable: Executable, memory: Memory, shadow: Shadow | None, precise: bool
    ) -> None:
        self.executable = executable
        self.memory = memory
        self.shadow = shadow
        self.precise = precise
        self.named: dict[str, list[int]] = defaultdict(list)
        for number, tensor in enumerate(executable.tensors):
            self.named[tensor.name].append(number)
        self._tiles: dict[int, Tile] = {}

    def record(self, number: int) -> TensorRecord:
        """Return the tensor's record in the file."""
        return self.executable.tensors[number]

    def contents(self, number: int) -> Stored:
        """Return a copy of the whole tensor, in its shape."""
        tensor = self.record(number)
        if not tensor.buffer.on_chip:
            return np.array(self.memory.contents_of(number, self.precise))
        if number not in self._tiles:
            pattern = whole(number, tensor)
            self._tiles[number] = Tile(self.memory, pattern, self.precise).bound()
        return np.array(self._tiles[number].bits()).reshape(tensor.shape)

    def written(self, number: int) -> Mask:
        """Return which elements are initialised; all, if that is not tracked."""
        tensor, shadow = self.record(number), self.shadow
        if shadow is None or not shadow.is_accessed(number) or not self._is_noted(number, shadow):
            return np.ones(tensor.shape, np.bool_)
        flags = shadow.flags[number]
        partitions, size = flags.shape
        every: Mask = flags.array.repeat(flags.rows, axis=0)[:partitions]
        every = every.repeat(flags.columns, axis=1)[:, :size]
        if flags.parts is not None:
            every = every | flags.parts.repeat(flags.grain, axis=1)[:, :size]
        mask: Mask = every.reshape(-1, tensor.dtype.size).all(axis=1).reshape(tensor.shape)
        return mask

    def _is_noted(self, number: int, shadow: Shadow) -> bool:
        return self.record(number).buffer.on_chip or shadow.is_noted(number)


def whole(number: int, tensor: TensorRecord) -> PatternRecord:
    """Return the pattern of a whole on-chip tensor."""
    sizes = tensor.shape[1:] or (1,)
    steps = [*accumulate(reversed(sizes[1:]), mul, initial=1)][::-1]
    dims = tuple(zip(steps, sizes, strict=True))
    return PatternRecord(number, tensor.dtype, 0, tensor.shape[0], 0, dims)
