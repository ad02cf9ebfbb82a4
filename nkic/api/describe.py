"""Descriptions of live values that the compiler can use without running their code.

Arrays become tensors of the kernel, wherever they occur: `weights.0`, `params.gamma`. Objects that
source defines are described by name, objects that exist only in the program by content. A value
that cannot be described is rejected with its place in the call.
"""

from __future__ import annotations

import enum
import functools
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

from nkic.api import functions, names
from nkic.api.arrays import Array, array_of, type_of
from nkic.api.errors import refuse
from nkic.base.text import clean
from nkic.specialise import runtime_values
from nkic.specialise.native.values import fields
from nkic.specialise.request import TensorType

_PLAIN = frozenset({type(None), bool, int, float, complex, str, bytes, range, types.EllipsisType})
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType)
_SHOWN = 80  # characters of a value in nki-run inspect
_MAX_DEPTH = 100


@dataclass
class Describer:
    """Describes the values of one call. `parts` and `arrays` are the tensors found inside them."""

    parts: dict[str, TensorType] = field(default_factory=dict)
    arrays: dict[str, Array] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=count)
    _described: dict[int, tuple[Any, int]] = field(default_factory=dict)  # by id; value kept alive
    _tensor_names: dict[int, str] = field(default_factory=dict)  # by the id of the value
    _depth: int = 0

    def argument(self, value: Any, path: str) -> runtime_values.RuntimeValue:
        """Return the description of an argument; `path` is its name."""
        return runtime_values.RuntimeValue(self.value(value, path), shown(value))

    def value(self, value: Any, path: str) -> Any:
        """Return the description of a value. Raises `UsageFailed`."""
        if type(value) in _PLAIN:
            return value
        if self._depth > _MAX_DEPTH:
            refuse(f"argument `{path}` is nested deeper than {_MAX_DEPTH}")
        self._depth += 1
        try:
            return self._value(value, path)
        finally:
            self._depth -= 1

    def _value(self, value: Any, path: str) -> Any:
        array = array_of(value)
        if array is not None:
            return self._tensor(value, array, path)
        named = names.dtype(value) or names.nki(value)
        if named is not None:
            return named
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, enum.Enum):
            return self._member(value, path)
        described = self._described.get(id(value))
        if described is not None:
            return runtime_values.BackReference(described[1])
        return self._content(value, path)

    def _content(self, value: Any, path: str) -> Any:
        for kind, describe in _KINDS:
            if isinstance(value, kind):
                return describe(self, value, path)
        wrapped = functions.unwrapped(value)
        if isinstance(wrapped, types.FunctionType):
            return self._function(wrapped, path)
        return self._instance(value, path)

    def _number(self, value: Any) -> int:
        number = next(self.numbers)
        self._described[id(value)] = (value, number)
        return number

    # ---- containers ----------------------------------------------------------------------------

    def _tensor(self, value: Any, array: Array, path: str) -> runtime_values.InnerTensor:
        name = self._tensor_names.setdefault(id(value), path)
        if name == path:
            self.parts[name] = type_of(array, path)
            self.arrays[name] = array
            self._described[id(value)] = (value, -1)  # kept alive so that its id is not reused
        return runtime_values.InnerTensor(name)

    def _tuple(self, value: tuple[Any, ...], path: str) -> Any:
        fields = getattr(type(value), "_fields", None) or range(len(value))
        pairs = zip(fields, value, strict=True)
        values = tuple(self.value(element, f"{path}.{name}") for name, element in pairs)
        if type(value) is tuple:
            return values
        return runtime_values.Record(self._class(type(value), path), values)

    def _collection(self, value: Any, path: str) -> runtime_values.Collection:
        number, kind = self._number(value), "list"
        elements = list(value)
        if not isinstance(value, list):
            kind = "frozenset" if isinstance(value, frozenset) else "set"
            elements.sort(key=repr)  # Python's order varies between processes
        values = tuple(self.value(element, f"{path}.{n}") for n, element in enumerate(elements))
        return runtime_values.Collection(number, kind, values)

    def _table(self, value: dict[Any, Any], path: str) -> runtime_values.Table:
        number = self._number(value)
        items = (
            (self.value(key, f"{path} (a key)"), self.value(element, f"{path}.{key}"))
            for key, element in value.items()
        )
        return runtime_values.Table(number, tuple(items))

    def _slice(self, value: slice, path: str) -> Any:
        bounds = (value.start, value.stop, value.step)
        if all(type(bound) in (int, type(None)) for bound in bounds):
            return value
        return self._refused(value, path, "its bounds are not integers")

    # ---- objects that source defines ------------------------------------------------------------

    def _member(self, value: enum.Enum, path: str) -> runtime_values.Member:
        owner = self._class(type(value), path)
        name = getattr(value, "_name_", None)
        single = isinstance(name, str) and "|" not in name
        content = value.value if type(value.value) in _PLAIN else None
        return runtime_values.Member(owner, name if single and name else "", content)

    def _class(self, value: type, path: str) -> Any:
        named = names.nki(value)
        if named is not None:
            return named
        if names.is_known(value):
            return runtime_values.Named(value.__module__, value.__qualname__)
        if value.__module__ == "builtins":
            return self._refused(value, path, "kernels have no such class")
        if names.is_host(value.__module__):
            return self._refused(value, path, f"kernels cannot use `{value.__module__}`")
        if "<locals>" in value.__qualname__:
            return self._refused(value, path, "its class is defined inside a function")
        return runtime_values.Named(functions.module_of_class(value), value.__qualname__)

    def _method(self, value: types.MethodType, path: str) -> runtime_values.BoundAttribute:
        return runtime_values.BoundAttribute(self.value(value.__self__, path), value.__name__)

    def _module(self, value: types.ModuleType, path: str) -> runtime_values.Named:
        return runtime_values.Named(value.__name__, "")

    def _partial(self, value: functools.partial[Any], path: str) -> runtime_values.Partial:
        function = self.value(value.func, f"{path}.func")
        values = tuple(
            self.value(argument, f"{path}.args.{n}") for n, argument in enumerate(value.args)
        )
        named = (
            (key, self.value(argument, f"{path}.{key}")) for key, argument in value.keywords.items()
        )
        return runtime_values.Partial(function, values, tuple(named))

    def _builtin(self, value: Any, path: str) -> Any:
        if isinstance(value.__self__, types.ModuleType) and names.is_known(value):
            return runtime_values.Named(value.__module__, value.__qualname__)
        return self._refused(value, path, "it is not a function of kernel source")

    def _function(self, value: types.FunctionType, path: str) -> Any:
        if names.is_known(value):
            return runtime_values.Named(value.__module__, value.__qualname__)
        if names.is_host(value.__module__):
            return self._refused(value, path, f"kernels cannot use `{value.__module__}`")
        if functions.is_found_by_name(value):
            return runtime_values.Named(value.__module__, value.__qualname__)
        return self.function(value, path)

    def function(self, value: types.FunctionType, path: str) -> runtime_values.Function:
        """Describe a function by its place, with its closure and its defaults."""
        number = self._number(value)
        cells = tuple(
            (name, self.value(content, f"{name} (around `{value.__name__}`)"))
            for name, content in functions.cells(value)
        )
        defaults = tuple(
            (name, self.value(content, f"{path}, default of `{name}`"))
            for name, content in functions.defaults(value)
        )
        module, line = functions.module_of(value), value.__code__.co_firstlineno
        return runtime_values.Function(number, module, value.__name__, line, cells, defaults)

    def _instance(self, value: Any, path: str) -> runtime_values.Instance:
        kind = type(value)
        if kind.__module__ == "builtins":
            self._refused(value, path, "kernels have no such values")
        if isinstance(value, BaseException) or names.is_host(kind.__module__):
            self._refused(value, path, f"kernels cannot use `{kind.__module__}`")
        number = self._number(value)
        owner = self._class(kind, path)
        described_fields = (
            (name, self.value(content, f"{path}.{name}")) for name, content in fields(value)
        )
        return runtime_values.Instance(number, owner, tuple(described_fields))

    def _refused(self, value: Any, path: str, reason: str) -> Any:
        refuse(
            f"argument `{path}` is {shown(value)}, of type {type(value).__qualname__}: {reason}",
            "pass numbers, text, arrays, enumerations, dataclasses, functions of kernel source, "
            "or containers of these",
        )


def shown(value: Any) -> str:
    """Return a short form of a value, equal in every process and therefore without addresses."""
    if type(value) in _PLAIN or names.dtype(value) is not None:
        return _short(repr(value))
    if isinstance(value, enum.Enum):
        return f"{type(value).__qualname__}.{value._name_}"
    if type(value) in (tuple, list):
        inner = ", ".join(shown(element) for element in value[:8]) + (
            ", …" if len(value) > 8 else ""
        )
        return _short(f"({inner})" if type(value) is tuple else f"[{inner}]")
    name = getattr(value, "__qualname__", None)
    if isinstance(name, str):
        return name
    return f"{type(value).__qualname__}(…)"


def _short(text: str) -> str:
    text = clean(text)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


_KINDS: tuple[tuple[Any, Callable[[Describer, Any, str], Any]], ...] = (
    (tuple, Describer._tuple),
    ((list, set, frozenset), Describer._collection),
    (dict, Describer._table),
    (slice, Describer._slice),
    (functools.partial, Describer._partial),
    (types.MethodType, Describer._method),
    (types.ModuleType, Describer._module),
    (types.FunctionType, Describer._function),
    (types.BuiltinFunctionType, Describer._builtin),
    (type, Describer._class),
    (bool, lambda self, value, path: bool(value)),
    (int, lambda self, value, path: int(value)),
    (float, lambda self, value, path: float(value)),
    (str, lambda self, value, path: str(value)),
)
