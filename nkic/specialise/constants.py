"""Conversion of the request's constants to kernel values.

Dotted names are resolved, and `Config(rows=2)` becomes an object of the kernel's class. JSON values
become one, too, if the parameter is annotated with a class: `{"rows": 2}`, a list for a NamedTuple,
or the name or value of an enumeration's member.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from nkic.base.device import KernelError
from nkic.base.diagnostics import UsageFailed, did_you_mean, make
from nkic.base.profiles import Profile
from nkic.base.source import NOWHERE
from nkic.interpret import attributes, library
from nkic.interpret.classes import blank
from nkic.interpret.containers import KernelFrozenSet, KernelSet
from nkic.interpret.modules import OpaqueImport
from nkic.interpret.objects import Class
from nkic.language.hosted import ReplicaGroup, brief
from nkic.language.namespace import suggested
from nkic.language.provide import OLD_ROOT
from nkic.machine import dtypes
from nkic.source import nodes, scopes
from nkic.specialise import request
from nkic.specialise.closed import World
from nkic.specialise.inline import DottedName, MadeObject
from nkic.specialise.numpy import host, wrapped
from nkic.specialise.request import RuntimeValue

# ------------------------------------------------------------------------------------------------
# Reconstruction of a running program's values, from descriptions, in the closed world.

NKI = "nki"
_NOT_MADE = object()
_SEARCHED = ("nki.language", "nki.isa", "nki.collectives", "nki.typing", "nki")


class Rebuilder:
    """Makes values from descriptions; `tensors` has the tensor parts by name, `descriptions` all
    numbered ones.

    Raises `KernelError`, and any exception of evaluating the user's source.
    """

    def __init__(
        self, world: World, tensors: Mapping[str, Any], descriptions: Mapping[int, Any]
    ) -> None:
        self.world = world
        self.interpreter = world.interpreter
        self.machine = world.interpreter.machine
        self.tensors = tensors
        self.descriptions = descriptions
        self.objects: dict[int, Any] = {}

    def value(self, description: Any) -> Any:
        make = _MAKERS.get(type(description))
        if make is None:
            return description
        made = self.objects.get(getattr(description, "number", -1), _NOT_MADE)
        return make(self, description) if made is _NOT_MADE else made

    def _constant(self, description: request.ConstantData) -> Any:
        known = dtypes.DTYPES.get(description.dtype)
        dtype = host().dtype(description.dtype) if known is None else known.dtype
        return wrapped(host().frombuffer(description.data, dtype).reshape(description.shape).copy())

    def _unavailable(self, description: request.Unavailable) -> Any:
        raise KernelError("host-module", description.text, help=description.help)

    def _collection(self, description: request.Collection) -> Any:
        if description.kind == "frozenset":
            return KernelFrozenSet(map(self.value, description.values))
        elements: Any = [] if description.kind == "list" else KernelSet()
        self.objects[description.number] = elements
        add = elements.append if description.kind == "list" else elements.add
        for element in description.values:
            add(self.value(element))
        return elements

    def _table(self, description: request.Table) -> Any:
        table = self.objects[description.number] = {}
        for key, element in description.items:
            table[self.value(key)] = self.value(element)
        return table

    def _made(self, description: request.Made) -> Any:
        values = tuple(map(self.value, description.values))
        made = self.machine.call(self.value(description.owner), values, None)
        self.objects[description.number] = made
        return made

    # ---- values defined by source -------------------------------------------------------------

    def _named(self, description: request.Named) -> Any:
        root = description.module.partition(".")[0]
        if root == NKI:
            return self._of_nki(description)
        dtype = dtypes.find(description.name) if root == "dtypes" else None
        if dtype is not None:
            return dtype
        value = self.interpreter.lookup(description.module, description.name)
        if isinstance(value, OpaqueImport):
            raise _no_source(description)
        return value

    def _of_nki(self, description: request.Named) -> Any:
        """Return a name of NKI, from its module or from any other one.

        The search is needed because packages that pose as `nki` may define names elsewhere.
        """
        first, *attributes = description.name.split(".")
        modules: tuple[str, ...] = (description.module, *_SEARCHED)
        if self.interpreter.resolved.profile is Profile.BETA1:
            modules = (*(f"{OLD_ROOT}.{name}" for name in modules), *modules)
        for module in modules:
            space = self.world.spaces.get(module)
            if space is None or (first and first not in space.names()):
                continue
            if not first:
                return self.interpreter.world.provide(module)
            value = space.get(self.machine, first)
            return functools.reduce(self.machine.attribute, attributes, value)
        raise _no_source(description)

    def _member(self, description: request.Member) -> Any:
        owner = description.owner
        if isinstance(owner, request.Named) and owner.module.partition(".")[0] == NKI:
            try:
                return self.machine.attribute(self._of_nki(owner), description.name)
            except (KernelError, AttributeError):  # for example a class of buffers: nl.sbuf itself
                return self._of_nki(request.Named(owner.module, description.name))
        kind = self.value(owner)
        if description.name:
            return self.machine.attribute(kind, description.name)
        return self.machine.call(kind, (description.value,), None)

    def _instance(self, description: request.Instance) -> Any:
        kind = self.value(description.owner)
        if isinstance(kind, Class) and kind.payload is ReplicaGroup:  # of another `nki`
            groups = self.value(dict(description.fields).get("groups"))
            instance = self.objects[description.number] = self.machine.call(kind, (groups,), None)
            return instance
        if not isinstance(kind, Class) or kind.machine is None:
            raise KernelError("host-module", f"objects of `{kind!r}` cannot be used in kernels")
        instance = self.objects[description.number] = blank(self.machine, kind)
        for name, field in description.fields:
            attributes.write_field(self.machine, instance, name, self.value(field))
        return instance

    def _record(self, description: request.Record) -> Any:
        values = tuple(map(self.value, description.values))
        return self.machine.call(self.value(description.owner), values, None)

    def _function(self, description: request.Function) -> Any:
        def cells(function: Any) -> Mapping[str, Any]:
            self.objects[description.number] = function  # before its cells, which may contain it
            return {name: self.value(cell) for name, cell in description.cells}

        defaults = {name: self.value(described) for name, described in description.defaults}
        free_variables = [name for name, _ in description.cells]
        location = (description.module, description.name, description.line, description.column)
        function = self.interpreter.function_at(
            *location, description.around, free_variables, cells, defaults
        )
        attributes = {name: self.value(value) for name, value in description.attributes}
        for name in ("__name__", "__qualname__", "__doc__"):
            if name in attributes:
                setattr(function, name.strip("_"), attributes.pop(name))
        function.attributes = attributes or None
        return function

    def _partial(self, description: request.Partial) -> Any:
        named = {name: self.value(argument) for name, argument in description.named}
        function, values = self.value(description.function), map(self.value, description.values)
        partial = self.interpreter.lookup("functools", "partial")
        return self.machine.call(partial, (function, *values), named)


def _no_source(description: request.Named) -> KernelError:
    return KernelError(
        "host-module",
        f"`{description.module}.{description.name}` cannot be used in kernels",
        help="pass a number, text, a tensor, or an object whose class kernel code can use",
    )


_MAKERS: dict[type, Callable[[Rebuilder, Any], Any]] = {
    tuple: lambda maker, described: tuple(map(maker.value, described)),
    request.RuntimeValue: lambda maker, described: maker.value(described.value),
    request.InnerTensor: lambda maker, described: maker.tensors[described.name],
    request.BackReference: lambda maker, described: maker.value(
        maker.descriptions[described.number]
    ),
    request.ConstantData: Rebuilder._constant,
    request.Unavailable: Rebuilder._unavailable,
    request.Collection: Rebuilder._collection,
    request.Table: Rebuilder._table,
    request.Made: Rebuilder._made,
    request.Named: Rebuilder._named,
    request.Member: Rebuilder._member,
    request.Instance: Rebuilder._instance,
    request.Record: Rebuilder._record,
    request.Function: Rebuilder._function,
    request.BoundAttribute: lambda maker, described: maker.machine.attribute(
        maker.value(described.owner), described.name
    ),
    request.Partial: Rebuilder._partial,
}


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
