"""Described values of a running program as values of the kernel's closed world."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from nkic.base.kernel_errors import KernelError
from nkic.evaluate import library
from nkic.evaluate.classes import blank
from nkic.evaluate.modules import Foreign
from nkic.evaluate.objects import Class
from nkic.evaluate.sets import KernelFrozenSet, KernelSet
from nkic.language.objects import ReplicaGroup
from nkic.machine import dtypes
from nkic.specialise import live
from nkic.specialise.closed import World

_PARTIAL = library.modules()["functools"]["partial"]
NKI = "nki"
_LOOKED_IN = ("nki.language", "nki.isa", "nki.collectives", "nki.typing", "nki")


class Rebuilder:
    """Makes values from descriptions; `tensors` are the parts by name.

    Raises `KernelError`, and whatever the evaluation of the user's source raises.
    """

    def __init__(self, world: World, tensors: Mapping[str, Any]) -> None:
        self.world = world
        self.interpreter = world.interpreter
        self.machine = world.interpreter.machine
        self.tensors = tensors
        self.made: dict[int, Any] = {}

    def value(self, given: Any) -> Any:
        """The value that `given` describes."""
        make = _MAKERS.get(type(given))
        return given if make is None else make(self, given)

    def _live(self, given: live.Live) -> Any:
        return self.value(given.value)

    def _part(self, given: live.Part) -> Any:
        return self.tensors[given.name]

    def _again(self, given: live.Again) -> Any:
        return self.made[given.number]

    def _tuple(self, given: tuple[Any, ...]) -> Any:
        return tuple(map(self.value, given))

    def _many(self, given: live.Many) -> Any:
        if given.kind == "frozenset":
            return KernelFrozenSet(map(self.value, given.values))
        found: Any = [] if given.kind == "list" else KernelSet()
        self.made[given.number] = found
        add = found.append if given.kind == "list" else found.add
        for one in given.values:
            add(self.value(one))
        return found

    def _table(self, given: live.Table) -> Any:
        found = self.made[given.number] = {}
        for key, one in given.items:
            found[self.value(key)] = self.value(one)
        return found

    # ---- what source defines -----------------------------------------------------------------

    def _named(self, given: live.Named) -> Any:
        root = given.module.partition(".")[0]
        if root == NKI:
            return self._of_nki(given)
        dtype = dtypes.find(given.name) if root == "dtypes" else None
        if dtype is not None:
            return dtype
        found = self.interpreter.named(given.module, given.name)
        if isinstance(found, Foreign):
            raise _no_source(given)
        return found

    def _of_nki(self, given: live.Named) -> Any:
        """A name of NKI: of the module that is named, or, since packages that pose as `nki`
        define things where they like, of any other.
        """
        first, *rest = given.name.split(".")
        for module in (given.module, *_LOOKED_IN):
            space = self.world.spaces.get(module)
            if space is None or (first and first not in space.names()):
                continue
            if not first:
                return self.interpreter.world.provide(module)
            found = space.get(self.machine, first)
            return functools.reduce(self.machine.attribute, rest, found)
        raise _no_source(given)

    def _member(self, given: live.Member) -> Any:
        owner = given.owner
        if isinstance(owner, live.Named) and owner.module.partition(".")[0] == NKI:
            try:
                return self.machine.attribute(self._of_nki(owner), given.name)
            except (KernelError, AttributeError):  # such as a class of buffers: nl.sbuf itself
                return self._of_nki(live.Named(owner.module, given.name))
        kind = self.value(owner)
        if given.name:
            return self.machine.attribute(kind, given.name)
        return self.machine.call(kind, (given.value,), None)

    def _instance(self, given: live.Instance) -> Any:
        kind = self.value(given.owner)
        if isinstance(kind, Class) and kind.payload is ReplicaGroup:  # of another `nki`
            groups = self.value(dict(given.fields).get("groups"))
            found = self.made[given.number] = self.machine.call(kind, (groups,), None)
            return found
        if not isinstance(kind, Class) or kind.machine is None:
            raise KernelError("host-module", f"objects of `{kind!r}` have no meaning in kernels")
        found = self.made[given.number] = blank(self.machine, kind)
        for name, one in given.fields:
            found.fields[name] = self.value(one)
        return found

    def _record(self, given: live.Record) -> Any:
        values = tuple(map(self.value, given.values))
        return self.machine.call(self.value(given.owner), values, None)

    def _function(self, given: live.Function) -> Any:
        def cells(function: Any) -> Mapping[str, Any]:
            self.made[given.number] = function  # before its cells, which may hold it
            return {name: self.value(one) for name, one in given.cells}

        defaults = {name: self.value(one) for name, one in given.defaults}
        around = [name for name, _ in given.cells]
        place = (given.module, given.name, given.line)
        return self.interpreter.function_at(*place, around, cells, defaults)

    def _bound(self, given: live.Bound) -> Any:
        return self.machine.attribute(self.value(given.owner), given.name)

    def _partial(self, given: live.Partial) -> Any:
        named = {name: self.value(one) for name, one in given.named}
        function, values = self.value(given.function), map(self.value, given.values)
        return self.machine.call(_PARTIAL, (function, *values), named)


def _no_source(given: live.Named) -> KernelError:
    return KernelError(
        "host-module",
        f"`{given.module}.{given.name}` has no meaning in kernels",
        help="pass a number, text, a tensor, or an object whose class kernel code can use",
    )


_MAKERS: dict[type, Callable[[Rebuilder, Any], Any]] = {
    tuple: Rebuilder._tuple,
    live.Live: Rebuilder._live,
    live.Part: Rebuilder._part,
    live.Again: Rebuilder._again,
    live.Many: Rebuilder._many,
    live.Table: Rebuilder._table,
    live.Named: Rebuilder._named,
    live.Member: Rebuilder._member,
    live.Instance: Rebuilder._instance,
    live.Record: Rebuilder._record,
    live.Function: Rebuilder._function,
    live.Bound: Rebuilder._bound,
    live.Partial: Rebuilder._partial,
}
