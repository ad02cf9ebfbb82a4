"""The words between the judge and a candidate's process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.judge.task import Case, Task
from nkic.machine.codecs import storage
from nkic.simulate.io.numbers import Numbers, numbers
from nkic.simulate.io.signature import ArrayParameter, Signature


def compile_request(
    task: Task, case: Case, path: str, text: str, kernel: str | None
) -> dict[str, Any]:
    """Return the request to compile a text for a case.

    The process knows the file by its name alone, and has no other file: a candidate whose
    neighbours count would be another one elsewhere.
    """
    return {
        "case": case.name,
        "path": Path(path).name,
        "text": text,
        "kernel": kernel,
        "inputs": {name: str(kind) for name, kind in case.inputs.items()},
        "consts": dict(case.consts),
        "target": task.target,
        "nki": task.nki,
        "optimise": {} if task.optimise is None else {"optimise": task.optimise},
        "grid": case.grid,
        "lnc": case.lnc,
    }


def arrays_of(case: Case, arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Return inputs as a request has them."""
    return {
        name: (case.inputs[name].dtype.name, list(array.shape), array.tobytes())
        for name, array in arrays.items()
    }


def numbers_of(signature: Signature, outputs: Any) -> dict[str, Numbers]:
    """Return the values of an answer's outputs. Raises `ValueError` unless they fit."""
    return {p.name: numbers(stored_of(p, outputs), p.dtype) for p in signature.outputs}


def stored_of(parameter: ArrayParameter, outputs: Any) -> NDArray[Any]:
    """Return an output of an answer in its storage type. Raises `ValueError` unless it fits."""
    data = outputs.get(parameter.name) if isinstance(outputs, dict) else None
    if not isinstance(data, bytes) or len(data) != parameter.bytes:
        raise ValueError(f"the answer has no output `{parameter.name}` of its size")
    return np.frombuffer(data, storage(parameter.dtype)).reshape(parameter.shape)
