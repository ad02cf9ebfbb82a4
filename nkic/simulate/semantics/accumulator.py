"""The vector engine's accumulators: the effect of `reduce_cmd` on one float32 per lane.

Lanes are indexed by the partition of the data. The results are accumulated before they are rounded
to dst's type (assumed; docs/fidelity.md). An accumulator that no instruction has set, or that one
with `idle` may have disturbed, is NaN (assumed).
"""

from __future__ import annotations

import numpy as np

from nkic.machine.operators import ALU
from nkic.simulate.decode import Decoded
from nkic.simulate.numerics.alu import ARITHMETIC
from nkic.simulate.semantics.binding import Floats, vector
from nkic.simulate.semantics.summing import Reduction
from nkic.simulate.semantics.validity import Fresh
from nkic.simulate.storage.memory import PARTITIONS
from nkic.simulate.tile import Tile

MINUS_ONE = np.float32(-1)


def lanes_of(decoded: Decoded, data: Tile) -> Floats:
    """Return a view of the accumulators of the partitions of `data`."""
    every = decoded.state.array("accumulator", lambda: np.full(PARTITIONS, np.nan, np.float32))
    return every[data.first : data.first + data.partitions]


class Accumulator:
    """The accumulators as one instruction uses them: `start`, `add`, and finally `read_out`."""

    def __init__(self, decoded: Decoded, data: Tile, op: str, initial: str = "") -> None:
        """`initial` names the operand that load_reduce loads."""
        self.op = op
        self.command = decoded.attributes["reduce_cmd"]
        self.lanes = lanes_of(decoded, data)
        self._column = self.lanes[:, None]
        self._reduce = Reduction(decoded, op)
        self._identity = np.float32(ALU[op].identity or 0)
        self._initial = vector(decoded, initial, None) if initial else None
        self._total = decoded.scratch.floats(self.lanes.shape)
        self._negate = bool(decoded.attributes.get("reduce_res_negate"))
        taker = decoded.maybe("reduce_res") if "reduce_res" in decoded.operands else None
        self._sink = taker.sink() if taker is not None else None
        self._fresh = Fresh(decoded, data)

    def start(self) -> Floats:
        """Apply the command before the first result; return the accumulators, (partitions, 1)."""
        self._fresh.note(self.command)
        if self.command == "reduce":
            self._fresh.ask("adds to")
        if self.command == "load_reduce" and self._initial is not None:
            np.copyto(self._column, self._initial())
        elif self.command.startswith("reset"):
            self._column[...] = self._identity
        elif self.command == "idle":
            self._column[...] = np.nan
            self._fresh.forget()
        return self._column

    def add(self, values: Floats) -> None:
        """Reduce the results of each partition, and combine them with its accumulator."""
        self.start()
        if self.command.endswith("reduce"):
            self._reduce(values, self._total)
            ARITHMETIC[self.op](self.lanes, self._total, self.lanes)

    def read_out(self) -> None:
        """Store the accumulators to reduce_res, after dst, so that they win if the two overlap."""
        if self._sink is None:
            return
        out = self._sink.out()
        np.copyto(out, self._column)
        if self._negate:
            # Not np.negative: that of NumPy 2.4 is wrong if both strides are 16 bytes.
            np.multiply(out, MINUS_ONE, out=out)
        self._sink.store()
