"""Reconstruction of a running program's values, from descriptions, in the closed world."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from nkic.base.kernel_errors import KernelError
from nkic.base.profiles import Profile
from nkic.evaluate import library
from nkic.evaluate.classes import blank
from nkic.evaluate.modules import Foreign
from nkic.evaluate.objects import Class
from nkic.evaluate.sets import KernelFrozenSet, KernelSet
from nkic.language.objects import ReplicaGroup
from nkic.language.provide import OLD_ROOT
from nkic.machine import dtypes
from nkic.specialise import runtime_values
from nkic.specialise.closed import World

_PARTIAL = library.modules()["functools"]["partial"]
NKI = "nki"
_SEARCHED = ("nki.language", "nki.isa", "nki.collectives", "nki.typing", "nki")


class Rebuilder:
    """Makes values from descriptions; `tensors` has the tensor parts by name.

    Raises `KernelError`, and any exception of evaluating the user's source.
    """

    def __init__(self, world: World, tensors: Mapping[str, Any]) -> None:
        self.world = world
        self.interpreter = world.interpreter
        self.machine = world.interpreter.machine
        self.tensors = tensors
        self.made: dict[int, Any] = {}

    def value(self, given: Any) -> Any:
        """Return the value that `given` describes."""
        make = _MAKERS.get(type(given))
        return given if make is None else make(self, given)

    def _live(self, given: runtime_values.RuntimeValue) -> Any:
        return self.value(given.value)

    def _part(self, given: runtime_values.Part) -> Any:
        return self.tensors[given.name]

    def _again(self, given: runtime_values.Again) -> Any:
        return self.made[given.number]

    def _tuple(self, given: tuple[Any, ...]) -> Any:
        return tuple(map(self.value, given))

    def _many(self, given: runtime_values.Many) -> Any:
        if given.kind == "frozenset":
            return KernelFrozenSet(map(self.value, given.values))
        found: Any = [] if given.kind == "list" else KernelSet()
        self.made[given.number] = found
        add = found.append if given.kind == "list" else found.add
        for element in given.values:
            add(self.value(element))
        return found

    def _table(self, given: runtime_values.Table) -> Any:
        found = self.made[given.number] = {}
        for key, element in given.items:
            found[self.value(key)] = self.value(element)
        return found

    # ---- values defined by source -------------------------------------------------------------

    def _named(self, given: runtime_values.Named) -> Any:
        root = given.module.partition(".")[0]
        if root == NKI:
            return self._of_nki(given)
        dtype = dtypes.find(given.name) if root == "dtypes" else None
        if dtype is not None:
            return dtype
        found = self.interpreter.lookup(given.module, given.name)
        if isinstance(found, Foreign):
            raise _no_source(given)
        return found

    def _of_nki(self, given: runtime_values.Named) -> Any:
        """Return a name of NKI, from its module or from any other one.

        The search is needed because packages that pose as `nki` may define names elsewhere.
        """
        first, *rest = given.name.split(".")
        modules: tuple[str, ...] = (given.module, *_SEARCHED)
        if self.interpreter.resolved.profile is Profile.BETA1:
            modules = (*(f"{OLD_ROOT}.{name}" for name in modules), *modules)
        for module in modules:
            space = self.world.spaces.get(module)
            if space is None or (first and first not in space.names()):
                continue
            if not first:
                return self.interpreter.world.provide(module)
            found = space.get(self.machine, first)
            return functools.reduce(self.machine.attribute, rest, found)
        raise _no_source(given)

    def _member(self, given: runtime_values.Member) -> Any:
        owner = given.owner
        if isinstance(owner, runtime_values.Named) and owner.module.partition(".")[0] == NKI:
            try:
                return self.machine.attribute(self._of_nki(owner), given.name)
            except (KernelError, AttributeError):  # for example a class of buffers: nl.sbuf itself
                return self._of_nki(runtime_values.Named(owner.module, given.name))
        kind = self.value(owner)
        if given.name:
            return self.machine.attribute(kind, given.name)
        return self.machine.call(kind, (given.value,), None)

    def _instance(self, given: runtime_values.Instance) -> Any:
        kind = self.value(given.owner)
        if isinstance(kind, Class) and kind.payload is ReplicaGroup:  # of another `nki`
            groups = self.value(dict(given.fields).get("groups"))
            found = self.made[given.number] = self.machine.call(kind, (groups,), None)
            return found
        if not isinstance(kind, Class) or kind.machine is None:
            raise KernelError("host-module", f"objects of `{kind!r}` cannot be used in kernels")
        found = self.made[given.number] = blank(self.machine, kind)
        for name, field in given.fields:
            found.fields[name] = self.value(field)
        return found

    def _record(self, given: runtime_values.Record) -> Any:
        values = tuple(map(self.value, given.values))
        return self.machine.call(self.value(given.owner), values, None)

    def _function(self, given: runtime_values.Function) -> Any:
        def cells(function: Any) -> Mapping[str, Any]:
            self.made[given.number] = function  # before its cells, which may contain it
            return {name: self.value(cell) for name, cell in given.cells}

        defaults = {name: self.value(described) for name, described in given.defaults}
        free_variables = [name for name, _ in given.cells]
        place = (given.module, given.name, given.line)
        return self.interpreter.function_at(*place, free_variables, cells, defaults)

    def _bound(self, given: runtime_values.BoundAttribute) -> Any:
        return self.machine.attribute(self.value(given.owner), given.name)

    def _partial(self, given: runtime_values.Partial) -> Any:
        named = {name: self.value(argument) for name, argument in given.named}
        function, values = self.value(given.function), map(self.value, given.values)
        return self.machine.call(_PARTIAL, (function, *values), named)


def _no_source(given: runtime_values.Named) -> KernelError:
    return KernelError(
        "host-module",
        f"`{given.module}.{given.name}` cannot be used in kernels",
        help="pass a number, text, a tensor, or an object whose class kernel code can use",
    )


_MAKERS: dict[type, Callable[[Rebuilder, Any], Any]] = {
    tuple: Rebuilder._tuple,
    runtime_values.RuntimeValue: Rebuilder._live,
    runtime_values.Part: Rebuilder._part,
    runtime_values.Again: Rebuilder._again,
    runtime_values.Many: Rebuilder._many,
    runtime_values.Table: Rebuilder._table,
    runtime_values.Named: Rebuilder._named,
    runtime_values.Member: Rebuilder._member,
    runtime_values.Instance: Rebuilder._instance,
    runtime_values.Record: Rebuilder._record,
    runtime_values.Function: Rebuilder._function,
    runtime_values.BoundAttribute: Rebuilder._bound,
    runtime_values.Partial: Rebuilder._partial,
}
