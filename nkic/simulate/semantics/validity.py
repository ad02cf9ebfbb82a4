"""Remarks, at run time, on behaviour that differs on a device."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.machine.operators import ACTIVATIONS, Activation
from nkic.simulate.decode import Decoded
from nkic.simulate.remarks import Remark
from nkic.simulate.semantics.binding import Floats
from nkic.simulate.storage.memory import PARTITIONS
from nkic.simulate.tile import Tile

Watch = Callable[[Floats], None]


def in_range(decoded: Decoded) -> Watch | None:
    """Return a check for elements outside the valid range of `op`, or None if it is unbounded."""
    function, remarks = ACTIVATIONS[decoded.attributes["op"]], decoded.state.remarks
    if (function.low, function.high) == (-inf, inf):
        return None
    low, high, row = np.float32(function.low), np.float32(function.high), decoded.row.name

    def watch(values: Floats) -> None:
        sizes = np.abs(values) if function.by_magnitude else values
        if sizes.min() >= low and sizes.max() <= high:
            return
        outside = (sizes < low) | (sizes > high)  # a NaN is neither
        count = int(np.count_nonzero(outside))
        if count:
            first = float(values[outside][0])
            remarks.add(_outside(f"{row}: {_counted(count)}", function, first, count))

    return watch


def _counted(count: int) -> str:
    return "1 element is" if count == 1 else f"{count:,} elements are"


def _outside(text: str, function: Activation, first: float, count: int) -> Remark:
    size = "whose magnitude must be" if function.by_magnitude else "which must be"
    valid_range = f"from {_power(function.low)} to {_power(function.high)}"
    return Remark(
        "outside-valid-range",
        f"{text} outside the range of nl.{function.name}, {size} {valid_range}; the first is "
        f"{first:.8g}",
        "clip the elements first, or use a function that is valid for them: the device's result "
        "is invalid there",
        count,
    )


def _power(value: float) -> str:
    """Format a power of two as the documentation prints it."""
    exponent = np.log2(value) if value > 0 else 0.5
    return f"2**{exponent:.0f}" if exponent == round(exponent) else f"{value:.6g}"


def clamped(decoded: Decoded, places: NDArray[Any], last: int) -> None:
    """Remark on indices beyond the last element."""
    beyond = places > last
    count = int(np.count_nonzero(beyond))
    if count:
        decoded.state.remarks.add(
            Remark(
                "index-clamped",
                f"{decoded.row.name}: {count:,} {'index is' if count == 1 else 'indices are'} "
                f"beyond {last}, the last element; the first is {int(places[beyond][0])}",
                "keep indices below the number of elements: what a device reads there is undefined",
                count,
            )
        )


class Fresh:
    """The reduce registers of an engine that an instruction has reset or loaded, by lane."""

    def __init__(self, decoded: Decoded, data: Tile) -> None:
        every = decoded.state.array("accumulator.fresh", lambda: np.zeros(PARTITIONS, np.bool_))
        self.lanes = every[data.first : data.first + data.partitions]
        self.decoded = decoded

    def note(self, command: str) -> None:
        """Mark the lanes if the `reduce_cmd` of the running instruction sets them."""
        if command.startswith(("reset", "load")):
            self.lanes.fill(True)

    def forget(self) -> None:
        """Clear the marks: the instruction may have disturbed the registers."""
        self.lanes.fill(False)

    def ask(self, what: str) -> None:
        """Remark if any register that is read or added to was not set."""
        if self.lanes.all():
            return
        command = self.decoded.attributes.get("reduce_cmd", "")
        self.decoded.state.remarks.add(
            Remark(
                "stale-accumulator",
                f"{self.decoded.row.name} {what} reduce registers that no instruction has reset "
                f"or loaded (`reduce_cmd` is {command}): the result is whatever was there",
                "pass `reduce_cmd=nisa.reduce_cmd.reset_reduce` to the first instruction that "
                "reduces",
            )
        )
