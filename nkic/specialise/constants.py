"""Conversion of the request's constants to kernel values.

Dotted names are resolved, and `Config(rows=2)` becomes an object of the kernel's class. JSON values
become one, too, if the parameter is annotated with a class: `{"rows": 2}`, a list for a NamedTuple,
or the name or value of an enumeration's member.
"""

from __future__ import annotations

from typing import Any

from nkic.base.diagnostics import UsageFailed, make
from nkic.base.source import NOWHERE
from nkic.base.suggest import did_you_mean
from nkic.evaluate import library
from nkic.evaluate.objects import Class
from nkic.language.namespace import suggested
from nkic.language.texts import brief
from nkic.machine import dtypes
from nkic.specialise.closed import World
from nkic.specialise.literals import DottedName, MadeObject
from nkic.specialise.rebuild import Rebuilder
from nkic.specialise.runtime_values import RuntimeValue
from nkic.syntax import nodes, scopes

_ENUM = library.modules()["enum"]["Enum"]
SHORT = {"nl": "nki.language", "nisa": "nki.isa"}


class Constants:
    """Resolves names among dtypes, then NKI's modules, then the kernel's own file."""

    def __init__(self, world: World, rebuilder: Rebuilder) -> None:
        self.world = world
        self.interpreter = world.interpreter
        self.machine = world.interpreter.machine
        self.rebuilder = rebuilder

    def argument(self, argument: str, constant: Any) -> Any:
        """Return the value of an argument, converted to the class that annotates the parameter."""
        value = self.value(argument, constant)
        plain = isinstance(value, dict | list | tuple | str | int)
        kind = self._annotated(argument) if plain else None
        if kind is None or self.machine.isinstance(value, kind):
            return value
        if kind.is_a(_ENUM):
            return self._member(argument, kind, value)
        if isinstance(value, dict):
            return self._object(argument, kind, (), value)
        is_row = isinstance(value, list | tuple) and issubclass(kind.payload, tuple)
        return self._object(argument, kind, tuple(value), {}) if is_row else value

    def _annotated(self, argument: str) -> Any:
        """Return the class of the kernel's file that annotates a parameter, or None."""
        kernel = self.interpreter.resolved.kernel
        notes = {arg.name: arg.annotation for arg in scopes.parameters(kernel.node.args)}
        note = notes.get(argument)
        if isinstance(note, nodes.Subscript):  # Optional[Config]
            note = note.slice
        if isinstance(note, nodes.BinOp):  # Config | None
            note = note.left
        if isinstance(note, nodes.Constant) and str(note.value).isidentifier():
            note = nodes.Name(NOWHERE, str(note.value))
        if not isinstance(note, nodes.Name) or note.id not in kernel.module.bindings:
            return None
        kind = self.interpreter.value(note)
        return kind if _is_own(kind) else None

    def _member(self, argument: str, kind: Class, value: Any) -> Any:
        """Return a member of an enumeration by its name or value."""
        names = []
        for member in self.machine.iterate(kind):
            name = self.machine.attribute(member, "name")
            if value in (name, self.machine.attribute(member, "value")):
                return member
            names.append(name)
        listed = ", ".join(names)
        raise _bad(argument, f"{value!r} is not a member of {kind.name}", f"it has {listed}")

    def _object(self, argument: str, kind: Any, values: tuple[Any, ...], named: Any) -> Any:
        if not _is_own(kind):
            raise _bad(argument, f"`{brief(kind)}` is not a class of the kernel's file")
        try:
            return self.machine.call(kind, values, named)
        except TypeError as error:
            raise _bad(argument, str(error)) from error

    def value(self, argument: str, constant: Any) -> Any:
        """Return the value of an argument. Raises `UsageFailed` for an unknown name."""
        if isinstance(constant, RuntimeValue):
            return self.rebuilder.value(constant)
        if isinstance(constant, DottedName):
            return self._named(argument, constant.text)
        if isinstance(constant, MadeObject):
            values = tuple(self.value(argument, element) for element in constant.values)
            named = {
                name: self.value(argument, element) for name, element in constant.named.items()
            }
            return self._object(argument, self._named(argument, constant.kind.text), values, named)
        if isinstance(constant, list):
            return [self.value(argument, element) for element in constant]
        if isinstance(constant, tuple):
            return tuple(self.value(argument, element) for element in constant)
        if isinstance(constant, dict):
            return {key: self.value(argument, element) for key, element in constant.items()}
        return constant

    def _named(self, argument: str, text: str) -> Any:
        dtype = dtypes.find(text)
        if dtype is not None:
            return dtype
        path, _, last = text.rpartition(".")
        module = SHORT.get(path, path)
        space = self.world.spaces.get(module)
        if space is not None:
            if last not in space.names():
                near = suggested(self.world.namespaces[module], last)
                raise _unknown(argument, text, near)
            return space.get(self.machine, last)
        first, *attributes = text.split(".")
        bindings = self.interpreter.resolved.kernel.module.bindings
        if first not in bindings:
            raise _unknown(argument, text, did_you_mean(first, (*bindings, *dtypes.DTYPES)))
        expression: nodes.Expression = nodes.Name(NOWHERE, first)
        for name in attributes:
            expression = nodes.Attribute(NOWHERE, expression, name)
        return self.interpreter.value(expression)


def _is_own(value: Any) -> bool:
    """Return whether `value` is a class defined by kernel code."""
    return isinstance(value, Class) and value.machine is not None


def _unknown(argument: str, text: str, near: str) -> UsageFailed:
    message = f"`{text}` is neither a literal nor a name of NKI or of the kernel's file"
    return _bad(argument, message, near or f"strings are quoted: --const {argument}='\"{text}\"'")


def _bad(argument: str, message: str, help: str = "") -> UsageFailed:
    return UsageFailed([make("bad-argument", f"argument `{argument}`: {message}", help=help)])
