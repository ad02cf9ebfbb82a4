"""nkic as the backend of a suite of kernels: its launches, by `nkic.api`.

A backend has `run` (compile and simulate), `run_ranks` (several devices together) and `trace`
(compile only). `kernel` is a Python function, bare or wrapped; `inputs` are values by parameter
name; `lnc` is the number of physical cores; `nc_version` the generation of the core. INIT_CHECK=0
in the environment permits reads of uninitialised memory, as on a device.
"""

import os
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic import api
from nkic.base.levels import DEFAULT, Wish

name = "nkic"
TARGETS = {"gen2": "trn1", "gen3": "trn2", "gen4": "trn3"}
PROFILE = "0.4"  # the suite's kernels use `is`, added in 0.4, and names deprecated in it
# The library returns scales in which four partitions of every 32 are filled, the layout that the
# engines read.
LEVELS = DEFAULT.adding(Wish.WARN, "output-partly-written")
LIMITS = {"steps": 10**10}  # a mixture of experts with inputs of 3.6 GB takes more than 10**8
IN_PLACE = ".must_alias_input"
Inputs = Mapping[str, Any]


def run(kernel: Any, inputs: Inputs, *, lnc: int, nc_version: str) -> Any:
    """Run the kernel and return its results: None, an array, or a tuple of arrays."""
    how = {**_place(lnc, nc_version), **_checks()}
    return _handed(api.call(kernel, (), _named(inputs), **how).values)


def run_ranks(
    kernel: Any, inputs_per_rank: Sequence[Inputs], *, lnc: int, nc_version: str
) -> list[Any]:
    """Run the kernel on every rank of a group, all together."""
    named = [_named(inputs) for inputs in inputs_per_rank]
    found = api.call_ranks(kernel, named, **_place(lnc, nc_version), **_checks())
    return [_handed(one.values) for one in found]


def trace(kernel: Any, inputs: Inputs, *, lnc: int, nc_version: str) -> api.Artifact:
    return api.prepare(kernel, (), _named(inputs), **_place(lnc, nc_version)).artifact


class Words:
    """Packed elements, four in a word. As on a device, where a suite reads the bytes of a result as
    the expected type, `np.asarray(words, dtype)` reinterprets their bits.
    """

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self.array if dtype is None else self.array.view(dtype)


def _handed(values: Any) -> Any:
    if isinstance(values, tuple):
        return tuple(_handed(value) for value in values)
    packed = isinstance(values, np.ndarray) and values.dtype.name.endswith("_x4")
    return Words(values) if packed else values


def _named(inputs: Inputs) -> dict[str, Any]:
    return {name.removesuffix(IN_PLACE): value for name, value in inputs.items()}


def _place(lnc: int, nc_version: str) -> dict[str, Any]:
    levels = LEVELS if _is_checked() else LEVELS.adding(Wish.WARN, "read-never-written")
    how = {"lnc": lnc, "target": TARGETS[nc_version], "nki": PROFILE, "levels": levels}
    # The library keeps data of `nl.shared_constant` in temporary files.
    include = [tempfile.gettempdir()]
    return {**how, "evaluate": "closed", "limits": LIMITS, "include": include}


def _checks() -> dict[str, Any]:
    return {"init_check": _is_checked()}


def _is_checked() -> bool:
    return os.environ.get("INIT_CHECK", "1") != "0"
