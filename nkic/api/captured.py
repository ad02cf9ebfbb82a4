"""What a kernel of a running program uses besides its arguments.

The closed world evaluates modules from their source. Since they were imported, host code may have
changed a variable, an object or a class: so whatever the kernel, the functions that it can call and
their classes name is described, and overrides the source. What cannot be described is an error
where the kernel uses it.
"""

from __future__ import annotations

import functools
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

from nkic.api import functions, names
from nkic.api.arrays import array_of
from nkic.api.describe import Describer
from nkic.base.diagnostics import UsageFailed
from nkic.specialise import runtime_values
from nkic.specialise.runtime_values import LiveEntry, Named

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
        if not self._is_new(function) or names.is_host(str(space.get("__name__", ""))):
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
            if described is not _SOURCE and not isinstance(described, runtime_values.Unavailable)
        }
        if found and "<" not in function.__qualname__:
            self.attributes.setdefault((module, function.__qualname__), {}).update(found)

    def _names(self, module: str, space: Mapping[str, Any], used: frozenset[str]) -> None:
        """Describe the variables of a module among the names that code uses."""
        for name in sorted(used & space.keys()):
            value = space[name]
            if not isinstance(value, types.ModuleType):
                self._variable(module, name, value)
            elif not _is_others(value.__name__) and self._is_new(value.__name__, used):
                self._names(value.__name__, vars(value), used)

    def _variable(self, module: str, name: str, value: Any) -> None:
        if self._is_new(module, name):
            described = self._described(value, (module, name))
            if described is not _SOURCE:
                self.variables.setdefault(module, {})[name] = described

    def _class(self, kind: type) -> None:
        if _is_others(kind.__module__) or not self._is_new(kind):
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
        is_named = names.dtype(value) is not None or names.nki(value) is not None
        is_data = kind in _DATA or array_of(value) is not None or isinstance(value, tuple | Enum)
        if not is_data and not is_named and self._is_sources(value, kind):
            return _SOURCE
        try:
            described = self.describer.captured(value, place[1])
        except UsageFailed as refused:
            found = refused.diagnostics[0]
            text = f"the closed world cannot take `{place[1]}` from the running program: "
            return runtime_values.Unavailable(text + found.message, found.help)
        return _SOURCE if described == Named(*place) else described

    def _is_sources(self, value: Any, kind: type) -> bool:
        """Return whether a value has no content that host code could have changed."""
        if isinstance(value, type):
            return _is_others(value.__module__)
        if isinstance(value, types.BuiltinFunctionType):
            return names.known(value) is None
        inner = functions.unwrapped(value)
        if isinstance(inner, types.FunctionType):
            is_own = not names.is_host(inner.__module__ or "")
            return not is_own or (inner is not value and not functions.is_found_by_name(inner))
        root = kind.__module__.partition(".")[0]
        return root in ("nkic", "types") or names.is_known_module(root.removeprefix("_"))


def _is_others(module: str) -> bool:
    """Return whether a module is not the user's own."""
    return names.is_host(module) or module == "builtins" or bool(names.module_of_nki(module))


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
            if names.module_of_nki(module) or names.is_known_module(module):
                yield name, value
        elif names.nki(value) is not None:
            yield name, value
