"""Inputs that a kernel should have read transposed: a mistake that no shape shows.

nc_matmul computes `stationary.T @ moving`. A kernel that forgets to transpose a square tile
compiles and gives other numbers; it gives the right ones if the input is transposed instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.artifact.records import Executable
from nkic.base.diagnostics import NkicError
from nkic.base.text import clean
from nkic.machine.targets import PARTITIONS, Engine
from nkic.simulate.outcome import RunOptions
from nkic.simulate.stage import simulate

Arrays = Mapping[str, NDArray[Any]]
_LIMIT = 20_000  # instructions of all these runs


def transposed_input(
    executable: Executable,
    inputs: Arrays,
    instructions: int,
    options: RunOptions,
    is_expected: Callable[[Arrays], bool],
) -> str:
    """Return a sentence that names the input whose transpose gives what is expected, or "".

    The run on `inputs`, whose outputs differ from that, executed so many `instructions`.
    """
    if not any(stream.engine is Engine.TENSOR for stream in executable.streams):
        return ""
    others = [(what, name, array) for name in inputs for what, array in _turned(name, inputs[name])]
    if instructions * len(others) > _LIMIT:
        return ""
    plain = replace(options, trace=0, timeline=0, watch=None, report_bounds=False)
    for what, name, array in others:
        try:
            outputs = simulate(executable, {**inputs, name: array}, plain).outputs
        except NkicError:
            continue
        if is_expected(outputs):
            return (
                f"with {what} transposed, the kernel computes what was expected: "
                "nc_matmul computes `stationary.T @ moving`, so the operand on the left is "
                "loaded transposed"
            )
    return ""


def _turned(name: str, array: NDArray[Any]) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the array transposed, and with each of its tiles transposed."""
    if array.ndim != 2 or array.shape[0] == 1:
        return
    rows, columns = array.shape
    if rows == columns:
        yield f"`{clean(name)}`", np.ascontiguousarray(array.T)
    if max(rows, columns) > PARTITIONS and not (rows % PARTITIONS or columns % PARTITIONS):
        tiles = array.reshape(rows // PARTITIONS, PARTITIONS, columns // PARTITIONS, PARTITIONS)
        what = f"each {PARTITIONS} x {PARTITIONS} tile of `{clean(name)}`"
        yield what, tiles.swapaxes(1, 3).reshape(array.shape)
