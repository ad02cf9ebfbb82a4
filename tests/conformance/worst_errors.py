"""Kernels on small inputs, and the distance of their results from float64 references.

    @case("cumsum", "core.cumsum.cumsum:cumsum", lnc=2)
    def cumsum(draw: Draw) -> Wanted:
        x = draw.bf16(4, 256)
        return {"x": x}, np.cumsum(wide(x), axis=-1)

A case gives the kernel's arguments by name and the expected results in float64, computed from
the rounded arguments. Kernels come from a checkout and are never copied; references use NumPy.
Results of integer types must be equal.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from nkic import api

Array = NDArray[Any]
Wanted = tuple[dict[str, Any], Any]


def wide(x: Array) -> Array:
    return x.astype(np.float64)


class Draw:
    """Draws random inputs, and looks up names in the checkout's modules."""

    def __init__(self, package: str) -> None:
        self.rng = np.random.default_rng(1)
        self.package = package

    def bf16(self, *shape: int, scale: float = 1.0) -> Array:
        return (scale * self.rng.standard_normal(shape)).astype(ml_dtypes.bfloat16)

    def f32(self, *shape: int, scale: float = 1.0) -> Array:
        return (scale * self.rng.standard_normal(shape)).astype(np.float32)

    def name(self, path: str) -> Any:
        """Return `module:name` of the checkout, or `/module:name` of this project."""
        module, _, name = path.partition(":")
        whole = module[1:] if module.startswith("/") else self.package + module
        return getattr(import_module(whole), name)


Build = Callable[[Draw], Wanted]
Register = Callable[[Build], Build]


@dataclass(frozen=True)
class Case:
    """One kernel on one set of inputs.

    `limit` is the allowed error, in units of the result's eps times its greatest magnitude.
    """

    name: str
    kernel: str
    build: Build
    limit: float
    how: dict[str, Any]
    refused: str = ""  # the error of a kernel that nkic rejects


class Error(NamedTuple):
    """The error of one result.

    It is the greatest difference, absolutely, relative to the result's greatest magnitude, and in
    units of its type's eps. For integers, it is the number of differences.
    """

    dtype: str
    absolute: float
    relative: float
    eps: float


class Outcome(NamedTuple):
    """The outcome of a case: errors by result, or the diagnostics."""

    case: Case
    inputs: str
    errors: tuple[Error, ...] = ()
    cycles: int = 0
    said: str = ""

    @property
    def worst(self) -> Error:
        return max(self.errors, key=lambda error: error.eps)

    @property
    def good(self) -> bool:
        return not self.said and self.worst.eps <= self.case.limit

    @property
    def expected(self) -> bool:
        refused = self.case.refused
        return bool(refused) and refused in self.said


Cases = list[Case]


def collector(cases: Cases) -> Callable[..., Register]:
    def case(name: str, kernel: str, limit: float = 2.0, refused: str = "", **how: Any) -> Register:
        def register(build: Build) -> Build:
            cases.append(Case(name, kernel, build, limit, how, refused))
            return build

        return register

    return case


def run(case: Case, package: str = "") -> Outcome:
    """Call the kernel of a case, and compare the results."""
    draw = Draw(package)
    try:
        inputs, wanted = case.build(draw)
        function = draw.name(case.kernel)
        called = api.call(function, (), inputs, **case.how)
    except Exception as refused:  # also errors of importing the module
        return Outcome(case, "", said=_first_error(f"{type(refused).__name__}: {refused}"))
    found, wanted = _listed(called.values), _listed(wanted)
    assert len(found) == len(wanted), (len(found), len(wanted))
    errors = tuple(error(f, w) for f, w in zip(found, wanted, strict=True) if w is not None)
    return Outcome(case, ", ".join(_described(inputs)), errors, called.result.cycles)


def _first_error(text: str) -> str:
    """Return the first error, without the folder of the checkout."""
    lines = text.splitlines()
    line = next((line for line in lines if "error[" in line), lines[0])
    return re.sub(r"\S*/", "", line.removeprefix("CompileError: "), count=1)


def _listed(values: Any) -> list[Any]:
    return list(values) if isinstance(values, tuple | list) else [values]


def error(found: Array, wanted: Array) -> Error:
    """Return the error of a result; shapes must agree except for dimensions of 1.

    Elements that should be NaN are not compared.
    """
    found = np.asarray(found).reshape(wanted.shape)
    if found.dtype.kind in "iub":
        different = int(np.count_nonzero(found.astype(np.int64) != wanted.astype(np.int64)))
        return Error(found.dtype.name, different, different / found.size, different)
    eps = float(ml_dtypes.finfo(found.dtype).eps)
    said = ~np.isnan(wanted)
    difference = np.abs(wide(found)[said] - wanted[said])
    assert np.isfinite(difference).all(), "a result is not finite"
    worst, greatest = float(difference.max()), float(np.abs(wanted[said]).max()) or 1.0
    return Error(found.dtype.name, worst, worst / greatest, worst / greatest / eps)


SHORT = {"bfloat16": "bf16", "float32": "f32", "int32": "i32", "uint32": "u32", "uint16": "u16"}


def _described(inputs: dict[str, Any]) -> Iterator[str]:
    """Describe up to three of the arrays."""
    arrays = [value for value in inputs.values() if isinstance(value, np.ndarray)]
    for array in arrays[:3]:
        kind = SHORT.get(array.dtype.name, array.dtype.name)
        yield f"{kind}[{','.join(map(str, array.shape))}]"
    yield from ["…"] * (len(arrays) > 3)
