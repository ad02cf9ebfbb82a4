"""Live kernels that Python itself evaluates: from a call to an artifact."""

from __future__ import annotations

import enum
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nkic.api import functions, names
from nkic.api.arrays import Array, Names, array_of, type_of
from nkic.api.describe import shown
from nkic.api.loading import LiveLoader
from nkic.base.diagnostics import NkicError
from nkic.base.source import SourceFile
from nkic.cache.stamp import here, stamp
from nkic.driver import pipeline
from nkic.driver.compiled import CompileOptions
from nkic.ir.text import program_text
from nkic.language.enums import Operator
from nkic.language.hosted import plain
from nkic.language.trace import active
from nkic.machine import dtypes
from nkic.specialise.native import LiveKernel
from nkic.specialise.native.values import KEEP, Copier
from nkic.specialise.request import TensorType
from nkic.specialise.runtime_values import RuntimeValue

_TENSOR = object()


@dataclass
class Parts:
    """The arrays inside the arguments of one call, by input name."""

    types: dict[str, TensorType] = field(default_factory=dict)
    arrays: dict[str, Array] = field(default_factory=dict)
    names: Names = field(default_factory=Names)

    def find(self, arguments: Mapping[str, Any]) -> dict[str, RuntimeValue]:
        """Search every argument for arrays, and return the arguments in the form of a request."""
        copier = Copier(self._find_array, enters)
        for name, value in arguments.items():
            copier.value(value, name)
        return {name: RuntimeValue(value, shown(value)) for name, value in arguments.items()}

    def _find_array(self, value: Any, path: str) -> Any:
        array = array_of(value)
        if array is None:
            return KEEP
        if self.names.name(value, array, path) == path:
            self.types[path], self.arrays[path] = type_of(array, path), array
        return _TENSOR

    def replace(self, value: Any, tensors: Mapping[str, Any]) -> Any:
        """Return what the kernel receives for a value: a tensor, a dtype, a number, or the value
        itself.
        """
        name = self.names.of(value)
        if name is not None:
            return tensors[name]
        if isinstance(value, np.generic):
            return value.item()
        dtype = names.dtype(value)
        if dtype is not None:
            return dtypes.find(dtype.name) or KEEP
        nkic_value = plain(value)
        if type(nkic_value) is Operator:
            return value  # the same object that the kernel's Python code reads
        return nkic_value if nkic_value is not value else _of_nki(value)


def _of_nki(value: Any) -> Any:
    """Return nkic's object for a value of any package called nki, looked up by name."""
    is_member = isinstance(value, enum.Enum)
    named = names.nki(type(value) if is_member else value)
    space = active().spaces.get(named.module) if named is not None else None
    if named is None or space is None or "." in named.name:
        return KEEP
    counterpart = getattr(space, named.name, KEEP)
    return getattr(counterpart, value.name, KEEP) if is_member else counterpart


def enters(kind: type) -> bool:
    """Whether to search objects of this class: only those of the user's own."""
    module = kind.__module__
    return not (names.is_host(module) or module == "builtins" or names.module_of_nki(module))


def live_kernel(
    function: types.FunctionType, arguments: Mapping[str, Any], parts: Parts, loader: LiveLoader
) -> LiveKernel:
    """Return the kernel in the form that the tracer takes."""

    def source_of(code: types.CodeType, space: Mapping[str, Any]) -> SourceFile | None:
        module = str(space.get("__name__", ""))
        if names.is_host(module) or names.module_of_nki(module):
            return None
        try:
            return loader.module(functions.module_of_code(module, code))
        except NkicError:  # an unreadable file has no places
            return None

    return LiveKernel(function, arguments, parts.replace, enters, source_of)


def key_of(tracing: pipeline.Tracing, options: CompileOptions) -> str:
    """Return a hash of what an artifact depends on: the program with its places, the files, the
    options.
    """
    from hashlib import sha256

    traced, report = tracing
    files = sorted((path, file.text) for path, file in traced.sources.items())
    diagnostics = tuple(map(repr, report.all))
    identity = (
        stamp(),
        here(),
        program_text(traced.program),
        files,
        traced.program.returned,
        diagnostics,
    )
    return sha256(repr((*identity, options.key)).encode("utf-8", "surrogatepass")).hexdigest()
