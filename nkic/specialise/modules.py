"""Modules while a kernel is evaluated: names get their values when they are first asked for.

A module's code is never run from top to bottom. Its global names live in a dict whose
`__builtins__` make what is missing: the statements that define a name run once, in the order
of the source, when some kernel code first uses the name. What no kernel code uses never runs.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from nkic.base.suggest import did_you_mean
from nkic.specialise.errors import KernelError
from nkic.specialise.guards import KernelValue
from nkic.specialise.namespace import HostValue, Namespace, has_name, names_of, submodule
from nkic.specialise.translate import translate, translate_expression
from nkic.syntax import names, nodes, scopes
from nkic.syntax.bindings import (
    Binding,
    HostModule,
    Import,
    Kind,
    Modules,
    ProvidedModule,
    SourceModule,
)


class World:
    """All modules of one evaluation. `base` is what every module's code sees: builtins, hooks."""

    def __init__(
        self,
        library: Modules,
        provided: Mapping[str, Namespace],
        base: Mapping[str, Any],
    ) -> None:
        self.library = library
        self.provided = provided
        self.base = base
        self.given: Mapping[str, Mapping[str, Any]] = {}  # variables of a running program
        self.value: Callable[[Any], Any] = lambda given: given
        self._runtimes: dict[str, Runtime] = {}

    def runtime(self, module: SourceModule) -> Runtime:
        """The running form of a module."""
        path = module.source.path
        if path not in self._runtimes:
            self._runtimes[path] = Runtime(self, module)
        return self._runtimes[path]

    def module(self, request: str, importer: SourceModule, *, soft: bool = False) -> Any:
        """The value of an imported module. `soft`: `ImportError` where it is host code."""
        found = self.library.find(request, importer)
        if isinstance(found, SourceModule):
            return self.runtime(found).value
        if isinstance(found, ProvidedModule):
            return self._provided(found.name)
        if soft:
            raise ImportError(f"{found.name} is not kernel source")
        return self._host(found.name, Import(request), importer)

    def _host(self, name: str, target: Import, importer: SourceModule) -> HostValue:
        """What stands for a host module or a part of one; of NKI there is more to say."""
        parent, _, last = target.request.rpartition(".")
        space = self.provided.get(parent)
        absent = submodule(space, last) if space is not None else None
        at = next((b.span for b in importer.bindings.values() if b.target == target), None)
        return HostValue(name, target.request, absent, at)

    def _provided(self, name: str) -> Any:
        """A provided module; its own modules become reachable as its attributes."""
        space = self.provided[name]
        for inner, value in self.provided.items():
            parent, _, last = inner.rpartition(".")
            if parent == name:
                space.__dict__.setdefault(last, value)
        return space

    def member(self, target: Import, importer: SourceModule, *, soft: bool = False) -> Any:
        """The value of `from request import member`."""
        member = target.member or ""
        module = self.library.find(target.request, importer)
        if isinstance(module, ProvidedModule):
            return _attribute(self._provided(module.name), member, soft)
        if isinstance(module, SourceModule) and module is not importer:
            holder, found = self.library.binding(module, member)
            if found is not None:
                return self.runtime(holder).get(member)
        separator = "" if target.request.endswith(".") else "."
        inner = self.library.find(f"{target.request}{separator}{member}", importer)
        if not isinstance(inner, HostModule):
            return self.module(f"{target.request}{separator}{member}", importer)
        if isinstance(module, HostModule):
            if soft:
                raise ImportError(f"{module.name} is not kernel source")
            return self._host(member, target, importer)
        raise _no_member(module, member, importer)


def _attribute(space: Namespace, member: str, soft: bool) -> Any:
    try:
        return getattr(space, member)
    except AttributeError as error:
        if soft:
            raise ImportError(str(error)) from None
        raise


def _no_member(module: SourceModule, member: str, importer: SourceModule) -> Exception:
    text = f"`{module.source.path}` has no `{member}` to import"
    return ImportFailed(text, did_you_mean(member, module.bindings))


class ImportFailed(KernelError, ImportError):
    """An import of kernel source that fails; `except ImportError` catches it."""

    def __init__(self, message: str, help: str) -> None:
        KernelError.__init__(self, "import-failed", message, help=help)


class Lazy(dict[str, Any]):
    """What a module's code looks up that is not among its globals yet."""

    def __init__(self, runtime: Runtime, base: Mapping[str, Any]) -> None:
        super().__init__(base)
        self._runtime = runtime

    def __missing__(self, name: str) -> Any:
        return self._runtime.find(name)

    def starred(self) -> list[str]:
        """The names that the module's star imports give it."""
        world, module = self._runtime.world, self._runtime.module
        spaces = (world.provided[name] for name in world.library.provided_stars(module))
        return [name for space in spaces for name in names_of(space)]


class Runtime:
    """One module: its globals, and which of its statements have run."""

    def __init__(self, world: World, module: SourceModule) -> None:
        self.world = world
        self.module = module
        self.value = ModuleValue(self)
        self._done: set[int] = set()
        self._running: list[int] = []
        self._pending: set[str] = set()
        self.own = frozenset(name for name in names.BUILTINS if self.defines(name))
        # A copy of the base makes look-ups fast; names that the module defines must be missing.
        base = {name: value for name, value in world.base.items() if not self.defines(name)}
        self.globals: dict[str, Any] = {
            **base,
            "__name__": module.name,
            "__builtins__": Lazy(self, {**base, "__build_class__": builtins.__build_class__}),
            "@module": self.import_module,
            "@member": self.import_member,
        }

    def defines(self, name: str) -> bool:
        """The module, or what it imports with a star, binds the name."""
        if name in self.module.bindings or name in self._given():
            return True
        if not self.module.stars or name.startswith(("@", "_")):
            return False
        _, found = self.world.library.binding(self.module, name)
        return found is not None or self._starred(name) is not None

    def _starred(self, name: str) -> Namespace | None:
        stars = self.world.library.provided_stars(self.module)
        spaces = (self.world.provided[star] for star in stars)
        return next((space for space in spaces if has_name(space, name)), None)

    def get(self, name: str) -> Any:
        """The value of a global name, as seen from other modules."""
        return self.globals[name] if name in self.globals else self.find(name)

    def find(self, name: str) -> Any:
        """Makes the value of a name; `KeyError`, which becomes `NameError`, if there is none."""
        binding = self.module.bindings.get(name)
        if name in self._given() and (binding is None or binding.kind is Kind.VALUE):
            self.globals[name] = self.world.value(self._given()[name])
            return self.globals[name]
        if binding is not None:
            self._define(binding)
            return self.globals[name]
        holder, found = self.world.library.binding(self.module, name)
        if found is not None:
            value = self.world.runtime(holder).get(name)
        else:
            space = self._starred(name) if self.module.stars else None
            if space is None:
                raise KeyError(name)
            value = getattr(space, name)
        self.globals[name] = value
        return value

    def _given(self) -> Mapping[str, Any]:
        """The variables whose values the running program gives."""
        return self.world.given.get(self.module.name, {})

    def function(
        self,
        node: nodes.FunctionDef | nodes.Lambda,
        names: Collection[str],
        cells: Callable[[Callable[..., Any]], Mapping[str, Any]],
        defaults: Mapping[str, Any],
    ) -> Callable[..., Any]:
        """A function of this file without its decorators, whatever functions are around it.

        `names` are the variables of those; `cells` gives their values once there is a function,
        which may be one of them.
        """
        bare = replace(node, args=replace(node.args, defaults=(), kw_defaults=_none(node.args)))
        space = {name: value for name, value in self.globals.items() if name not in names}

        source, own = self.module.source, self.own.union(names)
        if isinstance(bare, nodes.Lambda):
            made = eval(translate_expression(source, bare, own), space)
        else:
            exec(translate(source, replace(bare, decorators=()), own), space)
            made = space[bare.name]
        _set_defaults(made, node.args, defaults)
        space.update(cells(made))
        function: Callable[..., Any] = made
        return function

    def _define(self, binding: Binding) -> None:
        """Runs the statements that make a name's value, once and in order.

        While a statement of this module runs, only those before it: it sees the name as it was
        there. The rest follows when that statement is done.
        """
        before = self._running[-1] if self._running else len(self.module.tree.body)
        if binding.kind is not Kind.VALUE:
            before = len(self.module.tree.body)
        for index in binding.statements:
            if index < before and index not in self._done:
                self._run_readers(binding, index)
                self._run(index)
            elif index > before:
                self._pending.add(binding.name)
        if binding.name not in self.globals:
            raise _circular(binding) if before in binding.statements else KeyError(binding.name)
        self._run_pending()

    def _run_readers(self, binding: Binding, index: int) -> None:
        """Statements that read the name's former value run before it changes."""
        earlier = [other for other in binding.statements if other < index]
        if not earlier or binding.kind is not Kind.VALUE:
            return
        for number in range(earlier[-1] + 1, index):
            node = self.module.tree.body[number]
            if isinstance(node, nodes.Assign | nodes.AnnAssign) and number not in self._done:
                uses = scopes.taken_from_outside([node])
                if any(use.id == binding.name for use in uses):
                    self._run(number)

    def _run_pending(self) -> None:
        while self._pending and not self._running:
            self._define(self.module.bindings[self._pending.pop()])

    def _run(self, index: int) -> None:
        self._done.add(index)
        self._running.append(index)
        statement = self.module.tree.body[index]
        try:
            exec(translate(self.module.source, statement, self.own), self.globals)
        except BaseException:
            self._done.discard(index)
            raise
        finally:
            self._running.pop()

    def import_module(self, soft: bool, request: str) -> Any:
        """`import request`, from a statement of this module."""
        return self.world.module(request, self.module, soft=soft)

    def import_member(self, soft: bool, request: str, member: str) -> Any:
        """`from request import member`, likewise."""
        return self.world.member(Import(request, member), self.module, soft=soft)


def _none(args: nodes.Arguments) -> tuple[None, ...]:
    return (None,) * len(args.kwonlyargs)


def _set_defaults(made: Any, args: nodes.Arguments, defaults: Mapping[str, Any]) -> None:
    plain = [arg.name for arg in (*args.posonlyargs, *args.args)]
    made.__defaults__ = tuple(defaults[name] for name in plain if name in defaults) or None
    named = [arg.name for arg in args.kwonlyargs if arg.name in defaults]
    made.__kwdefaults__ = {name: defaults[name] for name in named} or None


def _circular(binding: Binding) -> KernelError:
    return KernelError(
        "circular-definition",
        f"`{binding.name}` is needed to compute its own value",
        help="give it a first value, or compute it inside a function",
    )


class ModuleValue(KernelValue):
    """A module of kernel source, as other modules see it: `helpers.tile_size`."""

    __slots__ = ("__dict__",)

    def __init__(self, runtime: Runtime) -> None:
        self.__dict__["@runtime"] = runtime

    def __getattr__(self, name: str) -> Any:
        if names.is_special(name):
            raise AttributeError(name)
        runtime: Runtime = self.__dict__["@runtime"]
        if runtime.defines(name):
            return runtime.get(name)
        module = runtime.module
        if module.source.path.endswith("__init__.py"):
            inner = runtime.world.library.find(f".{name}", module)
            if isinstance(inner, SourceModule):
                return runtime.world.runtime(inner).value
        text = f"`{module.source.path}` has no `{name}`"
        raise KernelError("unknown-attribute", text, help=did_you_mean(name, module.bindings))

    def __repr__(self) -> str:
        return f"<module '{self.__dict__['@runtime'].module.name}'>"
