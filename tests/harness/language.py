"""Compile and simulate many expressions of `nki.language` in one kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from nkic.base.diagnostics import Diagnostic
from nkic.base.profiles import DEFAULT, Profile
from nkic.base.source import SourceFile
from nkic.compiler.compiled import Compiled
from nkic.compiler.pipeline import compile_source
from nkic.machine import dtypes, targets
from nkic.machine.codecs import storage
from nkic.machine.dtypes import DType
from nkic.simulate import Result, simulate
from nkic.specialise.request import Request, TensorType

Array = np.ndarray[Any, Any]

_HEAD = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel({parameters}):
"""
_LOAD = {
    "sbuf": "    {name} = nl.load({name})\n",
    "psum": "    _{name} = nl.ndarray({name}.shape, dtype={name}.dtype, buffer=nl.psum)\n"
    "    nisa.tensor_copy(dst=_{name}, src=nl.load({name}))\n"
    "    {name} = _{name}\n",
    "hbm": "",
}
_RESULT = """\
    result = {expression}
    out_{n} = nl.ndarray(result.shape, dtype=result.dtype, buffer=nl.shared_hbm)
    nl.store(out_{n}, result)
"""


class Found(NamedTuple):
    """A result: its numbers, in the corresponding type of NumPy or ml_dtypes."""

    array: Array
    dtype: DType


def evaluate(
    expressions: Sequence[str],
    arrays: Mapping[str, Array],
    buffer: str = "sbuf",
    target: str = "trn2",
    profile: Profile = DEFAULT,
    helpers: str = "",
) -> list[Found]:
    """Return the tiles that `expressions` of the tiles named in `arrays` compute.

    They may call functions of `helpers`, which follow the kernel.
    """
    text = _HEAD.format(parameters=", ".join(arrays))
    text += "".join(_LOAD[buffer].format(name=name) for name in arrays)
    text += "".join(_RESULT.format(expression=e, n=n) for n, e in enumerate(expressions))
    outputs = ", ".join(f"out_{n}" for n in range(len(expressions)))
    return run(f"{text}    return ({outputs},)\n{helpers}", arrays, target, profile)[0]


def run(
    text: str,
    arrays: Mapping[str, Array],
    target: str = "trn2",
    profile: Profile = DEFAULT,
    grid: tuple[int, ...] = (),
) -> tuple[list[Found], tuple[Diagnostic, ...]]:
    """Return the outputs of a kernel file, and the diagnostics of its compilation."""
    compiled, result = simulated(text, arrays, target, profile, grid)
    outputs, tensors = result.outputs, compiled.executable.tensors
    kinds = {p.name: tensors[p.tensor].dtype for p in compiled.executable.outputs}
    return [Found(_typed(outputs[n], kinds[n]), kinds[n]) for n in outputs], compiled.warnings


def simulated(
    text: str,
    arrays: Mapping[str, Array],
    target: str = "trn2",
    profile: Profile = DEFAULT,
    grid: tuple[int, ...] = (),
    lnc: int = 1,
) -> tuple[Compiled, Result]:
    """Compile and run a kernel file."""
    args = {n: TensorType(_dtype(a), a.shape, "test") for n, a in arrays.items()}
    kind = targets.TARGETS[target]
    request = Request(args=args, target=kind, profile=profile, grid=grid, lnc=lnc)
    compiled = compile_source(SourceFile("kernel.py", text), request, lambda name, importer: None)
    raw = {n: np.ascontiguousarray(a).view(storage(_dtype(a))) for n, a in arrays.items()}
    return compiled, simulate(compiled.executable, raw)


def _dtype(array: Array) -> DType:
    found = dtypes.find(array.dtype.name)
    assert found is not None, array.dtype
    return found


def _typed(array: Array, dtype: DType) -> Array:
    name = {"bool": "bool"}.get(dtype.name, dtype.name)
    kind = getattr(ml_dtypes, name, None) or (np.float32 if name == "tfloat32" else name)
    return array.view(kind)
