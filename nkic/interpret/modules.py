"""Modules during evaluation: names are defined lazily.

The code of a module is never run from top to bottom: the statements that define a name run once, in
source order, when kernel code first uses the name. Statements whose names no kernel code uses never
run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from nkic.base.device import KernelError, Missing
from nkic.base.diagnostics import Label, did_you_mean
from nkic.base.source import NOWHERE, SHIPPED, SourceFile, Span
from nkic.interpret import attributes
from nkic.interpret.attributes import ModuleNamespace, Provided, of_provided
from nkic.interpret.compile.functions import compile_expression, compile_function, compile_statement
from nkic.interpret.machine import CALLABLES
from nkic.interpret.objects import UNSET, Class, Code, Frame, Function, ImportFailed, Written
from nkic.source import bindings, nodes, scopes
from nkic.source.bindings import (
    Binding,
    BindingKind,
    HostModule,
    Import,
    Modules,
    ProvidedModule,
    SourceModule,
)

if TYPE_CHECKING:
    from nkic.interpret.machine import Machine


class Table:
    """A provided module that is a table of values."""

    def __init__(self, name: str, contents: Mapping[str, Any], advice: str = "") -> None:
        self.name = name
        self.contents = contents
        self.advice = advice

    def get(self, m: Machine, name: str) -> Any:
        return self.contents.get(name, UNSET)

    def missing(self, name: str) -> Exception:
        text = f"`{self.name}` has no `{name}`"
        return Missing("unknown-attribute", text, name, lambda: self._nearest(name) or self.advice)

    def _nearest(self, name: str) -> str:
        return did_you_mean(name, self.names())

    def submodule(self, name: str) -> tuple[str, str, str]:
        """Return slug, message and advice of the error about a missing submodule."""
        return "import-failed", f"`{self.name}` has no module `{name}`", self._nearest(name)

    def names(self) -> list[str]:
        return sorted(name for name in self.contents if not name.startswith("_"))

    def keeps(self, name: str) -> bool:
        """Return True: a table does not change."""
        return True


class OpaqueImport:
    """A module that is not kernel source, or a member of one.

    It may be imported and stored; every other use by a kernel is an error.
    """

    __slots__ = ("at", "error", "imported", "name")

    def __init__(
        self, name: str, imported: str, error: tuple[str, str, str] | None, at: Span | None
    ) -> None:
        self.name = name
        self.imported = imported
        self.error = error
        self.at = at

    def refuse(self, *_: Any, **__: Any) -> NoReturn:
        """Raise the error about its use."""
        if self.error is not None:
            slug, text, help = self.error
            raise KernelError(slug, text, help=help, span=self.at)
        labels = [Label(self.at, "imported here")] if self.at is not None else []
        raise _host_error(self.name, self.imported, labels)

    def __repr__(self) -> str:
        return f"<host module '{self.name}'>"

    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = refuse
    __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = refuse
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = refuse
    __neg__ = __int__ = __float__ = __index__ = __bool__ = __or__ = __ror__ = refuse
    __call__ = __len__ = __iter__ = __getitem__ = refuse
    __hash__ = object.__hash__
    as_base = accepts = refuse


def _host_error(name: str, imported: str, labels: list[Label]) -> KernelError:
    if imported.startswith("."):
        text, help = f"there is no file for the module `{imported}`", "check the path of the import"
        return KernelError("import-failed", text, help=help, labels=labels)
    root = imported.partition(".")[0]
    text = f"`{name}` belongs to the module `{root}`, which kernel code cannot use"
    help = INSTEAD.get(root, "")
    if root in sys.stdlib_module_names:
        help = help or "move the work to host code and pass the result in"
    elif not help:
        text = f"there is no source for the module `{root}`"
        text += f", which has `{name}`" if name != root else ""
        help = (
            "if it is kernel source, add its folder with `--include`; if it is "
            "host code, pass its result to the kernel as an argument"
        )
    return KernelError("host-module", text, help=help, labels=labels)


# Advice about modules that kernels cannot use.
INSTEAD = {
    "torch": "pass tensors as arguments; use `nl` dtypes and `nisa` instructions on them",
    "jax": "pass tensors as arguments; use `nl` dtypes and `nisa` instructions on them",
    "time": "a kernel cannot depend on the clock: the simulator reports its cycles",
    "random": "pass random data in, or use `nl.rand`, which generates numbers on the device",
    "logging": "use `print`: it shows compile-time values",
    "warnings": "use `print`",
    "inspect": "pass the information as an argument",
}


class World:
    """All modules of one evaluation. `provided` holds the modules without source, by name."""

    def __init__(
        self, machine: Machine, library: Modules, provided: Mapping[str, ModuleNamespace]
    ) -> None:
        self.machine = machine
        self.library = library
        self.provided = provided
        # Of a running program: module-level variables, and by module and qualified name the
        # attributes of classes and the defaults of functions.
        self.program_variables: Mapping[str, Mapping[str, Any]] = {}
        self.program_attributes: Mapping[tuple[str, str], Mapping[str, Any]] = {}
        self.rebuild: Callable[[Any], Any] = lambda described: described
        self.is_defining = False  # whether a module-level statement runs
        self._runtimes: dict[str, Runtime] = {}
        self._values: dict[str, Provided] = {}
        self._written: dict[str, WrittenRuntime] = {}
        self._noted: list[Class | Function] = []

    def runtime(self, module: SourceModule) -> Runtime:
        path = module.source.path
        if path not in self._runtimes:
            self._runtimes[path] = Runtime(self, module)
        return self._runtimes[path]

    def written(self, value: Written) -> Any:
        """Return the value of a name of the library that is kernel source."""
        runtime = self._written.get(value.module)
        if runtime is None:
            runtime = self._written[value.module] = WrittenRuntime(self, value)
        return runtime.get(value.name)

    @contextmanager
    def defining(self) -> Iterator[None]:
        """Run a statement of a module, which sees variables as the source defines them.

        Functions see the values that the running program has given them since.
        """
        if self.is_defining or not (self.program_variables or self.program_attributes):
            yield
            return
        self.is_defining = True
        for runtime in self._runtimes.values():
            runtime.switch()
        try:
            yield
        finally:
            self.is_defining = False
            for runtime in self._runtimes.values():
                runtime.switch()
        while self._noted:
            self._update(self._noted.pop())

    def note(self, made: Class | Function) -> None:
        """Take note of a class or function that a module-level statement has made."""
        self._noted.append(made)

    def _update(self, made: Class | Function) -> None:
        """Give a class its attributes, or a function its defaults, in the running program."""
        module = made.module if isinstance(made, Class) else made.runtime.module.name
        described = self.program_attributes.get((module, made.qualname), {})
        values: dict[str, Any] = {}
        for name, value in described.items():
            try:
                values[name] = self.rebuild(value)
            except KernelError as error:  # its use is an error
                reason = (error.slug, error.message, error.help)
                values[name] = OpaqueImport(name, name, reason, None)
        if isinstance(made, Class):
            made.members |= values
            return
        with_defaults = made.code.positional[len(made.code.positional) - len(made.defaults) :]
        pairs = zip(with_defaults, made.defaults, strict=True)
        made.defaults = tuple([values.get(name, value) for name, value in pairs])
        kept = made.keyword_defaults
        made.keyword_defaults = {name: values.get(name, value) for name, value in kept.items()}

    def module(self, request: str, importer: SourceModule, *, soft: bool = False) -> Any:
        """Return the value of an imported module. If `soft`, raise `ImportError` for host code."""
        resolved = self.library.find(request, importer)
        if isinstance(resolved, SourceModule):
            return self.runtime(resolved).value
        if isinstance(resolved, ProvidedModule):
            return self.provide(resolved.name)
        if soft:
            raise ImportError(f"{resolved.name} is not kernel source")
        return self._host(resolved.name, Import(request), importer)

    def _host(self, name: str, target: Import, importer: SourceModule) -> OpaqueImport:
        """Return a placeholder for a host module or its member; NKI modules word the error."""
        parent, _, last = target.request.rpartition(".")
        space = self.provided.get(parent)
        error = space.submodule(last) if space is not None else None
        at = next((b.span for b in importer.bindings.values() if b.target == target), None)
        return OpaqueImport(name, target.request, error, at)

    def provide(self, name: str) -> Provided:
        if name not in self._values:
            self._values[name] = Provided(self, name, self.provided[name])
        return self._values[name]

    def member(self, target: Import, importer: SourceModule, *, soft: bool = False) -> Any:
        """Return the value of `from request import member`."""
        member = target.member or ""
        module = self.library.find(target.request, importer)
        if isinstance(module, ProvidedModule):
            try:
                return of_provided(self.machine, self.provide(module.name), member)
            except AttributeError as error:
                if soft:
                    raise ImportError(str(error)) from None
                raise
        if isinstance(module, SourceModule) and module is not importer:
            holder, binding = self.library.binding(module, member)
            if binding is not None:
                return self.runtime(holder).get(member)
        separator = "" if target.request.endswith(".") else "."
        inner = self.library.find(f"{target.request}{separator}{member}", importer)
        if not isinstance(inner, HostModule):
            return self.module(f"{target.request}{separator}{member}", importer)
        if isinstance(module, HostModule):
            if soft:
                raise ImportError(f"{module.name} is not kernel source")
            return self._host(member, target, importer)
        text = f"`{module.source.path}` has no `{member}` to import"
        raise ImportFailed(text, did_you_mean(member, module.bindings))


class ModuleBody:
    """The owner of the frame of a module-level statement."""

    __slots__ = ("globals", "name", "runtime")

    def __init__(self, runtime: Runtime) -> None:
        self.name = "<module>"
        self.runtime = runtime
        self.globals = runtime.globals


class Runtime:
    """One module: its globals, and the set of its statements that have run."""

    is_library = False  # whether messages and instructions leave out the frames of its code

    def __init__(self, world: World, module: SourceModule) -> None:
        self.world = world
        self.machine = world.machine
        self.module = module
        self.value = ModuleValue(self)
        self._done: set[int] = set()
        self._running: list[int] = []
        self._pending: set[str] = set()
        self._aside: dict[str, Any] = {}
        base = self.machine.builtins.items()
        self.globals: dict[str, Any] = {k: v for k, v in base if not self.defines(k)}
        self.globals["__name__"] = module.name
        self.body = ModuleBody(self)

    def defines(self, name: str) -> bool:
        """Whether the module binds the name, directly or by a star import."""
        if name in self.module.bindings or name in self._program_variables():
            return True
        if not self.module.stars or name.startswith("_"):
            return False
        _, binding = self.world.library.binding(self.module, name)
        return binding is not None or self._starred(name) is not None

    def _starred(self, name: str) -> str | None:
        stars = self.world.library.provided_stars(self.module)
        return next((star for star in stars if name in self.world.provided[star].names()), None)

    def starred_names(self) -> list[str]:
        """Return the names that the module's star imports bind."""
        stars = self.world.library.provided_stars(self.module)
        return [name for star in stars for name in self.world.provided[star].names()]

    def get(self, name: str) -> Any:
        """Return the value of a global name, as seen from other modules."""
        value = self.globals.get(name, UNSET)
        return self.find(name) if value is UNSET else value

    def lookup(self, name: str) -> Any:
        """Return the value of a global name. Raises `NameError` if there is none."""
        value = self.globals.get(name, UNSET)
        if value is not UNSET:
            return value
        try:
            return self.find(name)
        except KeyError:
            raise NameError(f"name '{name}' is not defined", name=name) from None

    def find(self, name: str) -> Any:
        """Compute the value of a name not in `globals` yet. Raises `KeyError` if there is none."""
        binding = self.module.bindings.get(name)
        variables = self._program_variables()
        if name in variables and (binding is None or not self.world.is_defining):
            self.globals[name] = self.world.rebuild(variables[name])
            return self.globals[name]
        if binding is not None:
            self._define(binding)
            return self.globals[name]
        holder, star_binding = self.world.library.binding(self.module, name)
        if star_binding is not None:
            value = self.world.runtime(holder).get(name)
        else:
            star = self._starred(name) if self.module.stars else None
            if star is None:
                raise KeyError(name)
            value = of_provided(self.machine, self.world.provide(star), name)
        self.globals[name] = value
        return value

    def _program_variables(self) -> Mapping[str, Any]:
        """Return the variables whose values the running program supplies."""
        return self.world.program_variables.get(self.module.name, {})

    def switch(self) -> None:
        """Exchange the values that the program gives to variables for those in the source."""
        names_ = self._program_variables().keys() & self.module.bindings.keys()
        shown = {name: self.globals.pop(name) for name in names_ if name in self.globals}
        self.globals |= self._aside
        self._aside = shown

    # ---- running ---------------------------------------------------------------------------

    def run(self, code: Code) -> Any:
        """Run module-level code and return its result."""
        frame: Frame = [self.machine, code.node, self.body, *code.unset_locals]
        for slot in code.cell_locals:
            frame[slot] = [UNSET]
        outcome = self.machine.run(code, frame)
        return None if outcome is None else outcome[0]

    def evaluate(self, expression: nodes.Expression) -> Any:
        """Evaluate an expression in the scope at the end of the module."""
        return self.run(compile_expression(self.module.source, expression))

    def function(
        self,
        node: scopes.Function,
        around: str,
        enclosing: Collection[str],
        cells: Callable[[Function], Mapping[str, Any]],
        defaults: Mapping[str, Any],
    ) -> Function:
        """Return a function of this file without its decorators, however deeply it is nested.

        `around` is the qualified name of the outer function; `enclosing` names the variables of the
        outer functions; `cells` returns their values given
        the new function, which may be one of them.
        """
        code, cell_names = compile_function(self.module.source, node, around, enclosing)
        new_cells: dict[str, list[Any]] = {name: [UNSET] for name in cell_names}
        plain = tuple(defaults[name] for name in code.positional if name in defaults)
        named = {name: defaults[name] for name in code.keyword_only if name in defaults}
        new_function = Function(
            code, self, plain, named, tuple(new_cells[name] for name in cell_names)
        )
        for name, value in cells(new_function).items():
            if name in new_cells:
                new_cells[name][0] = value
        return new_function

    def _define(self, binding: Binding) -> None:
        """Run the statements that define a name, once and in source order.

        While another statement of this module runs, only the statements before it run, so that it
        sees the value that the name had at that point. The others run when that statement is done.
        """
        before = self._running[-1] if self._running else len(self.module.tree.body)
        if binding.kind is not BindingKind.VALUE:
            before = len(self.module.tree.body)
        for index in binding.statements:
            if index < before and index not in self._done:
                self._run_readers(binding, index)
                self._run(index)
            elif index > before:
                self._pending.add(binding.name)
        if binding.name not in self.globals and binding.name not in self._aside:
            raise _circular(binding) if before in binding.statements else KeyError(binding.name)
        while self._pending and not self._running:
            self._define(self.module.bindings[self._pending.pop()])

    def _run_readers(self, binding: Binding, index: int) -> None:
        """Run the statements that read the previous value of a name before it is rebound."""
        earlier = [other for other in binding.statements if other < index]
        if not earlier or binding.kind is not BindingKind.VALUE:
            return
        for number in range(earlier[-1] + 1, index):
            node = self.module.tree.body[number]
            if isinstance(node, nodes.Assign | nodes.AnnAssign) and number not in self._done:
                uses = scopes.free_names([node])
                if any(use.id == binding.name for use in uses):
                    self._run(number)

    def _run(self, index: int) -> None:
        self._done.add(index)
        self._running.append(index)
        try:
            with self.world.defining():
                self.run(compile_statement(self.module.source, self.module.tree.body[index]))
        except BaseException:
            self._done.discard(index)
            raise
        finally:
            self._running.pop()

    def import_module(self, soft: bool, request: str) -> Any:
        """Execute `import request` from a statement of this module."""
        return self.world.module(request, self.module, soft=soft)

    def import_member(self, soft: bool, request: str, member: str) -> Any:
        """Execute `from request import member` from a statement of this module."""
        return self.world.member(Import(request, member), self.module, soft=soft)


_CHARACTER_STEPS = 12  # steps for parsing and compiling a character of the library's source


class WrittenRuntime(Runtime):
    """A library module that is kernel source: a definition is parsed and run when it is used."""

    is_library = True

    def __init__(self, world: World, value: Written) -> None:
        self.files = value.files
        source = SourceFile(f"{SHIPPED}.library>/{value.module}.py", "")
        module = SourceModule(value.module, source, nodes.Module(NOWHERE, ()), {}, trusted=True)
        super().__init__(world, module)
        self.globals |= value.natives
        self.machine.runs_library = True

    def defines(self, name: str) -> bool:
        return name in self.files

    def find(self, name: str) -> Any:
        file = self.files[name]
        self.machine.charge(_CHARACTER_STEPS * len(file.text))
        tree = self.world.library.add(self.module.name, file, trusted=True).tree
        for statement in tree.body:
            self.run(compile_statement(file, statement))
        return self.globals[name]


def _circular(binding: Binding) -> KernelError:
    return KernelError(
        "circular-definition",
        f"`{binding.name}` is used to compute its own value",
        help="give it an initial value, or compute it inside a function",
    )


class ModuleValue:
    """A module of kernel source, as other modules see it: `helpers.tile_size`."""

    __slots__ = ("runtime",)
    is_module = True

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime

    @property
    def module_name(self) -> str:
        return self.runtime.module.name

    def __repr__(self) -> str:
        return f"<module '{self.runtime.module.name}'>"


def of_source(m: Machine, module: ModuleValue, name: str) -> Any:
    """Return `module.name`; a package may have submodules."""
    runtime = module.runtime
    if name in ("__name__", "__doc__"):
        return runtime.module.name if name == "__name__" else None
    if runtime.defines(name) and not bindings.is_hidden(name):
        return runtime.get(name)
    source = runtime.module
    if source.source.path.endswith("__init__.py") and not bindings.is_special(name):
        inner = runtime.world.library.find(f".{name}", source)
        if isinstance(inner, SourceModule):
            return runtime.world.runtime(inner).value
    text = f"`{source.source.path}` has no `{name}`"
    advise = partial(did_you_mean, name, source.bindings)
    raise attributes.hidden(name) or Missing("unknown-attribute", text, name, advise)


CALLABLES[OpaqueImport] = lambda m, module, args, named: module.refuse()
attributes.SPECIAL |= {
    ModuleValue: of_source,
    OpaqueImport: lambda m, module, name: module.refuse(),
}
