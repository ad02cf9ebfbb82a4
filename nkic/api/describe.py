"""Descriptions of live values that the compiler can use without running their code.

Arrays become tensors of the kernel, wherever they occur: `weights.0`, `params.gamma`. Objects that
source defines are described by name, objects that exist only in the program by content. A value
that cannot be described is rejected with its place in the call.

The closed world evaluates modules from their source. Since they were imported, host code may have
changed a variable, an object or a class: so whatever the kernel, the functions that it can call and
their classes name is described, and overrides the source (`entry`). What cannot be described is an
error where the kernel uses it.
"""

from __future__ import annotations

import enum
import functools
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from hashlib import sha256
from itertools import count
from typing import Any

import numpy as np

from nkic.api import functions
from nkic.api.arrays import Array, Names, array_of, type_of
from nkic.api.errors import refuse
from nkic.base.device import KernelError
from nkic.base.diagnostics import UsageFailed
from nkic.language.creation import data_of
from nkic.specialise import request
from nkic.specialise.native import fields
from nkic.specialise.outputs import short
from nkic.specialise.request import LiveEntry, Named, TensorType

_PLAIN = frozenset({type(None), bool, int, float, complex, str, bytes, range, types.EllipsisType})
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType)
_WIDE = frozenset({"float64", "int64", "uint64"})
_MAX_DEPTH = 100


@dataclass
class Describer:
    """Describes the values of one call. `parts` and `arrays` are the tensors found inside them."""

    parts: dict[str, TensorType] = field(default_factory=dict)
    arrays: dict[str, Array] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=count)
    objects: dict[int, Any] = field(default_factory=dict)  # numbered descriptions
    found: list[Any] = field(default_factory=list)  # functions and classes of kernel source
    # By id, and whether the value is captured; the value is kept alive.
    _described: dict[tuple[int, bool], tuple[Any, int]] = field(default_factory=dict)
    tensors: Names = field(default_factory=Names)
    _depth: int = 0
    _is_captured: bool = False

    def captured(self, value: Any, path: str) -> Any:
        """Return the description of a value that is no argument: arrays in it are constants."""
        before, self._is_captured = self._is_captured, True
        try:
            return self.value(value, path)
        finally:
            self._is_captured = before

    def argument(self, value: Any, path: str) -> request.RuntimeValue:
        """Return the description of an argument; `path` is its name."""
        return request.RuntimeValue(self.value(value, path), shown(value))

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
            return _constant(array, path) if self._is_captured else self._tensor(value, array, path)
        named = functions.named_dtype(value) or functions.named_nki(value)
        if named is not None:
            return named
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, enum.Enum):
            owner = self._class(type(value), path)
            name = getattr(value, "_name_", None)
            single = isinstance(name, str) and "|" not in name
            content = value.value if type(value.value) in _PLAIN else None
            return request.Member(owner, name if single and name else "", content)
        described = self._described.get((id(value), self._is_captured))
        if described is not None:
            return request.BackReference(described[1])
        for kind, describe in _KINDS:
            if isinstance(value, kind):
                return self._noted(describe(self, value, path))
        wrapped = functions.unwrapped(value)
        if isinstance(wrapped, types.FunctionType):
            return self._noted(self._function(wrapped, path))
        return self._noted(self._instance(value, path))

    def _noted(self, description: Any) -> Any:
        if type(description) in _NUMBERED:
            self.objects[description.number] = description
        return description

    def _number(self, value: Any) -> int:
        number = next(self.numbers)
        self._described[id(value), self._is_captured] = (value, number)
        return number

    # ---- containers ----------------------------------------------------------------------------

    def _tensor(self, value: Any, array: Array, path: str) -> request.InnerTensor:
        name = self.tensors.name(value, array, path)
        if name == path:
            self.parts[name] = type_of(array, path)
            self.arrays[name] = array
        return request.InnerTensor(name)

    def _tuple(self, value: tuple[Any, ...], path: str) -> Any:
        fields = getattr(type(value), "_fields", None) or range(len(value))
        pairs = zip(fields, value, strict=True)
        values = tuple(self.value(element, f"{path}.{name}") for name, element in pairs)
        if type(value) is tuple:
            return values
        return request.Record(self._class(type(value), path), values)

    def _collection(self, value: Any, path: str) -> request.Collection:
        number, kind = self._number(value), "list"
        elements = list(value)
        if not isinstance(value, list):
            kind = "frozenset" if isinstance(value, frozenset) else "set"
            elements.sort(key=repr)  # Python's order varies between processes
        values = tuple(self.value(element, f"{path}.{n}") for n, element in enumerate(elements))
        return request.Collection(number, kind, values)

    def _table(self, value: dict[Any, Any], path: str) -> request.Table:
        number = self._number(value)
        items = (
            (self.value(key, f"{path} (a key)"), self.value(element, f"{path}.{key}"))
            for key, element in value.items()
        )
        return request.Table(number, tuple(items))

    def _made(self, value: Any, path: str) -> request.Made:
        """Describe a container of the module `collections` by a call that makes it."""
        number, kind = self._number(value), type(value)
        owner = self._class(kind, path)
        if isinstance(value, deque):
            arguments: tuple[Any, ...] = (list(value), value.maxlen)
        else:
            first = (value.default_factory,) if isinstance(value, defaultdict) else ()
            arguments = (*first, dict(value))
        described = (self.value(one, f"{path}.{n}") for n, one in enumerate(arguments))
        return request.Made(number, owner, tuple(described))

    def _slice(self, value: slice, path: str) -> Any:
        bounds = (value.start, value.stop, value.step)
        if all(type(bound) in (int, type(None)) for bound in bounds):
            return value
        return self._refused(value, path, "its bounds are not integers")

    # ---- objects that source defines ------------------------------------------------------------

    def _class(self, value: type, path: str) -> Any:
        named = functions.named_nki(value)
        if named is not None:
            return named
        known = functions.named_python(value)
        if known is not None:
            return known
        if value.__module__ == "builtins":
            return self._refused(value, path, "kernels have no such class")
        if functions.is_host(value.__module__):
            return self._refused(value, path, f"kernels cannot use `{value.__module__}`")
        if "<locals>" in value.__qualname__:
            return self._refused(value, path, "its class is defined inside a function")
        self.found.append(value)
        return request.Named(functions.module_of_class(value), value.__qualname__)

    def _method(self, value: types.MethodType, path: str) -> request.BoundAttribute:
        return request.BoundAttribute(self.value(value.__self__, path), value.__name__)

    def _module(self, value: types.ModuleType, path: str) -> request.Named:
        return request.Named(value.__name__, "")

    def _partial(self, value: functools.partial[Any], path: str) -> request.Partial:
        function = self.value(value.func, f"{path}.func")
        values = tuple(
            self.value(argument, f"{path}.args.{n}") for n, argument in enumerate(value.args)
        )
        named = (
            (key, self.value(argument, f"{path}.{key}")) for key, argument in value.keywords.items()
        )
        return request.Partial(function, values, tuple(named))

    def _builtin(self, value: Any, path: str) -> Any:
        known = (
            functions.named_python(value) if isinstance(value.__self__, types.ModuleType) else None
        )
        return known or self._refused(value, path, "it is not a function of kernel source")

    def _function(self, value: types.FunctionType, path: str) -> Any:
        known = functions.named_python(value)
        if known is not None:
            return known
        if functions.is_host(value.__module__):
            return self._refused(value, path, f"kernels cannot use `{value.__module__}`")
        self.found.append(value)
        if functions.is_found_by_name(value):
            return request.Named(value.__module__, value.__qualname__)
        if not functions.source_lines(value.__code__.co_filename):
            return self._refused(value, path, "its source cannot be found")
        return self.function(value, path)

    def function(self, value: types.FunctionType, path: str) -> request.Function:
        """Describe a function by its place, with its closure and its defaults."""
        self.found.append(value)
        number = self._number(value)
        cells = tuple(
            (name, self.captured(content, f"{name} (around `{value.__name__}`)"))
            for name, content in functions.cells(value)
        )
        defaults = tuple(
            (name, self.captured(content, f"{path}, default of `{name}`"))
            for name, content in functions.defaults(value)
        )
        code = value.__code__
        around = code.co_qualname.rpartition(".<locals>.")[0]
        place = (functions.module_of(value), code.co_name, around, *functions.place(value))
        attributes = tuple(self._attributes(value, path))
        return request.Function(number, *place, cells, defaults, attributes)

    def _attributes(self, function: types.FunctionType, path: str) -> Iterator[tuple[str, Any]]:
        """Yield what `functools.wraps` and assignments have set in a function."""
        if function.__name__ != function.__code__.co_name or vars(function):
            for name in ("__name__", "__qualname__", "__doc__"):
                yield name, getattr(function, name)
        for name, value in vars(function).items():
            with suppress(UsageFailed):
                yield name, self.captured(value, f"{path}.{name}")

    def _instance(self, value: Any, path: str) -> Any:
        kind = type(value)
        if kind is object and self._is_captured:  # a mark, compared by identity
            return request.Made(self._number(value), self._class(kind, path), ())
        if kind.__module__ == "builtins":
            self._refused(value, path, "kernels have no such values")
        if isinstance(value, BaseException) or functions.is_host(kind.__module__):
            self._refused(value, path, f"kernels cannot use `{kind.__module__}`")
        number = self._number(value)
        owner = self._class(kind, path)
        described_fields = (
            (name, self.value(content, f"{path}.{name}")) for name, content in fields(value)
        )
        return request.Instance(number, owner, tuple(described_fields))

    def _refused(self, value: Any, path: str, reason: str) -> Any:
        refuse(
            f"argument `{path}` is {shown(value)}, of type {type(value).__qualname__}: {reason}",
            "pass numbers, text, arrays, enumerations, dataclasses, functions of kernel source, "
            "or containers of these",
        )


def _constant(array: Array, path: str) -> Any:
    """Describe an array that is a constant of the kernel. Raises `UsageFailed`."""
    found = np.asarray(array)
    if found.dtype.name in _WIDE:  # which the kernel computes with, and narrows where it stores
        data = found.astype(found.dtype.newbyteorder("<")).tobytes()
        digest = sha256(data).hexdigest()
        return request.ConstantData(found.dtype.name, found.shape, digest, data)
    try:
        constant = data_of(found)
    except KernelError as error:
        refuse(f"`{path}`: {error.message}", error.help)
    assert constant is not None  # it is an array
    digest = sha256(constant.data).hexdigest()
    return request.ConstantData(constant.dtype.name, constant.shape, digest, constant.data)


def shown(value: Any) -> str:
    """Return a short form of a value for messages, without addresses."""
    if type(value) in _PLAIN or functions.named_dtype(value) is not None:
        return short(repr(value))
    if isinstance(value, enum.Enum):
        return f"{type(value).__qualname__}.{value._name_}"
    if type(value) in (tuple, list):
        inner = ", ".join(shown(element) for element in value[:8]) + (
            ", …" if len(value) > 8 else ""
        )
        return short(f"({inner})" if type(value) is tuple else f"[{inner}]")
    name = getattr(value, "__qualname__", None)
    if isinstance(name, str):
        return name
    return f"{type(value).__qualname__}(…)"


_NUMBERED = frozenset(
    {
        *(request.Collection, request.Table, request.Made),
        *(request.Instance, request.Function),
    }
)
_KINDS: tuple[tuple[Any, Callable[[Describer, Any, str], Any]], ...] = (
    (tuple, Describer._tuple),
    ((list, set, frozenset), Describer._collection),
    ((defaultdict, OrderedDict, Counter, deque), Describer._made),
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


_SOURCE = object()  # the source gives the same value
_DATA = frozenset(
    {
        *(type(None), bool, int, float, complex, str, bytes, range, slice, type(...)),
        *(list, tuple, dict, set, frozenset, defaultdict, OrderedDict, Counter, deque),
        *(functools.partial, types.MethodType),
        types.ModuleType,
    }
)
_WRAPPERS = (classmethod, staticmethod, property, functools.cached_property)


def entry(function: types.FunctionType, describer: Describer) -> LiveEntry:
    """Return the description of a kernel with everything that it uses. Raises `UsageFailed`."""
    described = describer.function(function, function.__name__)
    program = _Program(describer)
    program.collect()
    return LiveEntry(
        described, _table(program.variables), _table(program.attributes), describer.objects
    )


def _table(values: Mapping[Any, Mapping[str, Any]]) -> tuple[Any, ...]:
    return tuple((key, tuple(sorted(inner.items()))) for key, inner in sorted(values.items()))


class _Program:
    """The variables and attributes that functions and classes name, directly or not."""

    def __init__(self, describer: Describer) -> None:
        self.describer = describer
        self.variables: dict[str, dict[str, Any]] = {}
        self.attributes: dict[tuple[str, str], dict[str, Any]] = {}
        self._seen: set[Any] = set()

    def collect(self) -> None:
        """Follow what the describer has found until nothing is new."""
        while self.describer.found:
            found = self.describer.found.pop()
            if isinstance(found, types.FunctionType):
                self._function(functions.user_function(found))
            else:
                for kind in found.__mro__:
                    self._class(kind)

    def _is_new(self, *key: Any) -> bool:
        is_new = key not in self._seen
        self._seen.add(key)
        return is_new

    def _function(self, function: types.FunctionType) -> None:
        space, code = function.__globals__, function.__code__
        if not self._is_new(function) or functions.is_host(str(space.get("__name__", ""))):
            return
        for _, content in functions.cells(function):
            self._follow(content)
        module, used = functions.module_of(function), frozenset(functions.names_of(code))
        self._defaults(module, function)
        if module != function.__module__:  # `co_names` omits decorators and annotations
            for name, value in _imported(space):
                self._variable(module, name, value)
        self._names(module, space, used)

    def _defaults(self, module: str, function: types.FunctionType) -> None:
        """Describe the defaults of a function that is found by its name."""
        found = {
            name: self._described(value, ("", name)) for name, value in functions.defaults(function)
        }
        found = {
            name: described
            for name, described in found.items()
            if described is not _SOURCE and not isinstance(described, request.Unavailable)
        }
        if found and "<" not in function.__qualname__:
            self.attributes.setdefault((module, function.__qualname__), {}).update(found)

    def _names(self, module: str, space: Mapping[str, Any], used: frozenset[str]) -> None:
        """Describe the variables of a module among the names that code uses."""
        for name in sorted(used & space.keys()):
            value = space[name]
            if not isinstance(value, types.ModuleType):
                self._variable(module, name, value)
            elif not functions.is_others(value.__name__) and self._is_new(value.__name__, used):
                self._names(value.__name__, vars(value), used)

    def _variable(self, module: str, name: str, value: Any) -> None:
        if self._is_new(module, name):
            described = self._described(value, (module, name))
            if described is not _SOURCE:
                self.variables.setdefault(module, {})[name] = described

    def _class(self, kind: type) -> None:
        if functions.is_others(kind.__module__) or not self._is_new(kind):
            return
        owner = (functions.module_of_class(kind), kind.__qualname__)
        for name, value in vars(kind).items():
            if isinstance(value, _WRAPPERS):
                self._follow(value)
            elif not _is_machinery(kind, name, value):
                place = (owner[0], f"{owner[1]}.{name}")
                described = self._described(value, place)
                if described is not _SOURCE:
                    self.attributes.setdefault(owner, {})[name] = described

    def _follow(self, value: Any) -> None:
        """Follow the functions in a method or in the value of a closure."""
        for part in ("fget", "fset", "func", "__func__"):
            inner = getattr(value, part, None) if isinstance(value, _WRAPPERS) else None
            if inner is not None:
                self._follow(inner)
        inner = functions.unwrapped(value)
        if isinstance(inner, types.FunctionType):
            self.describer.found.append(inner)

    def _described(self, value: Any, place: tuple[str, str]) -> Any:
        """Describe a value found at a place in the source, unless that place defines it."""
        self._follow(value)
        kind = type(value)
        is_named = (
            functions.named_dtype(value) is not None or functions.named_nki(value) is not None
        )
        is_data = kind in _DATA or array_of(value) is not None or isinstance(value, tuple | Enum)
        if not is_data and not is_named and self._is_sources(value, kind):
            return _SOURCE
        try:
            described = self.describer.captured(value, place[1])
        except UsageFailed as refused:
            found = refused.diagnostics[0]
            text = f"the closed world cannot take `{place[1]}` from the running program: "
            return request.Unavailable(text + found.message, found.help)
        return _SOURCE if described == Named(*place) else described

    def _is_sources(self, value: Any, kind: type) -> bool:
        """Return whether a value has no content that host code could have changed."""
        if isinstance(value, type):
            return functions.is_others(value.__module__)
        if isinstance(value, types.BuiltinFunctionType):
            return functions.named_python(value) is None
        inner = functions.unwrapped(value)
        if isinstance(inner, types.FunctionType):
            is_own = not functions.is_host(inner.__module__ or "")
            return not is_own or (inner is not value and not functions.is_found_by_name(inner))
        root = kind.__module__.partition(".")[0]
        return root in ("nkic", "types") or functions.is_known_module(root.removeprefix("_"))


def _is_machinery(kind: type, name: str, value: Any) -> bool:
    """Return whether an attribute belongs to how Python implements a class."""
    if issubclass(kind, Enum) and not isinstance(value, types.FunctionType):
        return True
    special = (name.startswith("__") and name.endswith("__")) or name.startswith("_abc_")
    record = issubclass(kind, tuple) and name.startswith("_")
    made = (
        isinstance(value, types.FunctionType)
        and value.__qualname__ == f"{kind.__qualname__}.{name}"
    )
    return special or record or (not made and hasattr(type(value), "__set__"))


def _imported(space: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the global variables that are modules usable in kernels, or names of NKI."""
    for name, value in space.items():
        if isinstance(value, types.ModuleType):
            module = value.__name__
            if functions.module_of_nki(module) or functions.is_known_module(module):
                yield name, value
        elif functions.named_nki(value) is not None:
            yield name, value
