"""Reconstruction of a running program's values, from descriptions, in the closed world."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from nkic.base.kernel_errors import KernelError
from nkic.base.profiles import Profile
from nkic.evaluate import attributes
from nkic.evaluate.classes import blank
from nkic.evaluate.modules import OpaqueImport
from nkic.evaluate.objects import Class
from nkic.evaluate.sets import KernelFrozenSet, KernelSet
from nkic.language.objects import ReplicaGroup
from nkic.language.provide import OLD_ROOT
from nkic.machine import dtypes
from nkic.specialise import runtime_values
from nkic.specialise.closed import World
from nkic.specialise.numpy.values import host, wrapped

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
        """Return the value that `description` describes."""
        make = _MAKERS.get(type(description))
        if make is None:
            return description
        made = self.objects.get(getattr(description, "number", -1), _NOT_MADE)
        return make(self, description) if made is _NOT_MADE else made

    def _live(self, description: runtime_values.RuntimeValue) -> Any:
        return self.value(description.value)

    def _inner_tensor(self, description: runtime_values.InnerTensor) -> Any:
        return self.tensors[description.name]

    def _back_reference(self, description: runtime_values.BackReference) -> Any:
        return self.value(self.descriptions[description.number])

    def _constant(self, description: runtime_values.ConstantData) -> Any:
        known = dtypes.DTYPES.get(description.dtype)
        dtype = host().dtype(description.dtype) if known is None else known.dtype
        return wrapped(host().frombuffer(description.data, dtype).reshape(description.shape).copy())

    def _unavailable(self, description: runtime_values.Unavailable) -> Any:
        raise KernelError("host-module", description.text, help=description.help)

    def _tuple(self, description: tuple[Any, ...]) -> Any:
        return tuple(map(self.value, description))

    def _collection(self, description: runtime_values.Collection) -> Any:
        if description.kind == "frozenset":
            return KernelFrozenSet(map(self.value, description.values))
        elements: Any = [] if description.kind == "list" else KernelSet()
        self.objects[description.number] = elements
        add = elements.append if description.kind == "list" else elements.add
        for element in description.values:
            add(self.value(element))
        return elements

    def _table(self, description: runtime_values.Table) -> Any:
        table = self.objects[description.number] = {}
        for key, element in description.items:
            table[self.value(key)] = self.value(element)
        return table

    def _made(self, description: runtime_values.Made) -> Any:
        values = tuple(map(self.value, description.values))
        made = self.objects[description.number] = self.machine.call(
            self.value(description.owner), values, None
        )
        return made

    # ---- values defined by source -------------------------------------------------------------

    def _named(self, description: runtime_values.Named) -> Any:
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

    def _of_nki(self, description: runtime_values.Named) -> Any:
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

    def _member(self, description: runtime_values.Member) -> Any:
        owner = description.owner
        if isinstance(owner, runtime_values.Named) and owner.module.partition(".")[0] == NKI:
            try:
                return self.machine.attribute(self._of_nki(owner), description.name)
            except (KernelError, AttributeError):  # for example a class of buffers: nl.sbuf itself
                return self._of_nki(runtime_values.Named(owner.module, description.name))
        kind = self.value(owner)
        if description.name:
            return self.machine.attribute(kind, description.name)
        return self.machine.call(kind, (description.value,), None)

    def _instance(self, description: runtime_values.Instance) -> Any:
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

    def _record(self, description: runtime_values.Record) -> Any:
        values = tuple(map(self.value, description.values))
        return self.machine.call(self.value(description.owner), values, None)

    def _function(self, description: runtime_values.Function) -> Any:
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

    def _bound(self, description: runtime_values.BoundAttribute) -> Any:
        return self.machine.attribute(self.value(description.owner), description.name)

    def _partial(self, description: runtime_values.Partial) -> Any:
        named = {name: self.value(argument) for name, argument in description.named}
        function, values = self.value(description.function), map(self.value, description.values)
        partial = self.interpreter.lookup("functools", "partial")
        return self.machine.call(partial, (function, *values), named)


def _no_source(description: runtime_values.Named) -> KernelError:
    return KernelError(
        "host-module",
        f"`{description.module}.{description.name}` cannot be used in kernels",
        help="pass a number, text, a tensor, or an object whose class kernel code can use",
    )


_MAKERS: dict[type, Callable[[Rebuilder, Any], Any]] = {
    tuple: Rebuilder._tuple,
    runtime_values.RuntimeValue: Rebuilder._live,
    runtime_values.InnerTensor: Rebuilder._inner_tensor,
    runtime_values.BackReference: Rebuilder._back_reference,
    runtime_values.ConstantData: Rebuilder._constant,
    runtime_values.Unavailable: Rebuilder._unavailable,
    runtime_values.Collection: Rebuilder._collection,
    runtime_values.Table: Rebuilder._table,
    runtime_values.Made: Rebuilder._made,
    runtime_values.Named: Rebuilder._named,
    runtime_values.Member: Rebuilder._member,
    runtime_values.Instance: Rebuilder._instance,
    runtime_values.Record: Rebuilder._record,
    runtime_values.Function: Rebuilder._function,
    runtime_values.BoundAttribute: Rebuilder._bound,
    runtime_values.Partial: Rebuilder._partial,
}
