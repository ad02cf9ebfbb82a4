"""The interpreter: evaluates a resolved kernel in its closed world.

What the kernel calls in modules that the language provides records a program; this room knows
nothing of that. An error ends the evaluation with one diagnostic that points into the source.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from nkic.base.diagnostics import CompileFailed, Label, NkicError, Reporter
from nkic.base.evaluation import DEFAULT_LIMITS, Limits
from nkic.base.source import SourceFile
from nkic.evaluate import builtins, failures, library, objects, types
from nkic.evaluate.attributes import Space
from nkic.evaluate.errors import KernelError
from nkic.evaluate.machine import Machine
from nkic.evaluate.modules import INSTEAD, Table, World
from nkic.evaluate.objects import Function
from nkic.syntax import nodes, scopes
from nkic.syntax.bindings import STDLIB, Import, Resolved, SourceModule
from nkic.syntax.places import function_at

Show = Callable[[str], None]
MISSING = object()  # a parameter without default
# Frames of Python's that the closures of one level take, at most: expressions nest so deep.
_FRAMES_PER_LEVEL = 3200


@dataclass(frozen=True)
class FunctionParameter:
    """A parameter of the kernel.

    `default` is its value, evaluated, or MISSING; `annotation` is source. `star` is "*" or "**"
    for those.
    """

    name: str
    default: Any
    annotation: nodes.Expression | None
    star: str = ""


class Interpreter:
    """One evaluation of a kernel: its machine, its modules, what it prints.

    `provided` are the modules of the language; Python's are added here. `show` gets what kernel
    code prints. `function_of` finds the kernel's function in the value of its name.
    """

    def __init__(
        self,
        resolved: Resolved,
        provided: Mapping[str, Space],
        report: Reporter,
        *,
        show: Show,
        limits: Limits | None = None,
    ) -> None:
        self.resolved = resolved
        self.report = report
        self.machine = Machine(limits or DEFAULT_LIMITS, types.table())
        self.machine.builtins = builtins.table()
        self.machine.show = show
        tables = {
            name: Table(name, found, INSTEAD.get(name, ""))
            for name, found in library.modules().items()
        }
        self.world = World(self.machine, resolved.library, {**tables, **provided})
        self.entry: Function | None = None

    def run(self, action: Callable[[], Any]) -> Any:
        """What `action` gives. Reports the error that ends it and raises `CompileFailed`."""
        machine, before = self.machine, sys.getrecursionlimit()
        sys.setrecursionlimit(before + machine.limits.depth * _FRAMES_PER_LEVEL)
        objects.enter(machine)
        try:
            return action()
        except NkicError:
            raise
        except Exception as error:
            if not _is_the_kernels(error):
                found = getattr(error, "nkic_frames", [])
                error.add_note(f"while nkic evaluated {found[0][1].span if found else 'a kernel'}")
                raise
            self.report.add(failures.explain(error, machine, self.resolved))
            raise CompileFailed(self.report.all) from error
        finally:
            objects.leave()
            sys.setrecursionlimit(before)

    # ---- the kernel ------------------------------------------------------------------------

    def kernel(self) -> Any:
        """The value of the kernel's name."""
        kernel = self.resolved.kernel
        return self.run(lambda: self.world.runtime(kernel.module).get(kernel.name))

    def call(self, function: Any, arguments: Mapping[str, Any]) -> Any:
        """Calls a function with values by the names of its parameters; what a decorator of the
        kernel's own has put in its place, with values by the kernel's.
        """
        known = parameters(function) if isinstance(function, Function) else []
        if not {parameter.name for parameter in known}.issuperset(arguments):
            return self._call_decorated(function, dict(arguments))
        args: list[Any] = []
        named: dict[str, Any] = {}
        for parameter in known:
            if parameter.name not in arguments:
                continue
            value = arguments[parameter.name]
            if parameter.star == "*":
                args.extend(value)
            elif parameter.star == "**":
                named |= value
            else:
                named[parameter.name] = value
        first = list(function.code.positional[: function.code.positional_only])
        if args:
            first = list(function.code.positional)
        given = [named.pop(name) for name in first if name in named]
        return self.run(lambda: self.machine.call(function, (*given, *args), named))

    def _call_decorated(self, function: Any, values: dict[str, Any]) -> Any:
        """As a caller writes it: by position as far as the kernel's `def` allows, else by name."""
        own, given = self.resolved.kernel.node.args, []
        for parameter in (*own.posonlyargs, *own.args):
            if parameter.name not in values:
                break
            given.append(values.pop(parameter.name))
        return self.run(lambda: self.machine.call(function, tuple(given), values))

    # ---- values ----------------------------------------------------------------------------

    def value(self, expression: nodes.Expression, module: SourceModule | None = None) -> Any:
        """The value of an expression as it would be at the end of a module: the kernel's."""
        runtime = self.world.runtime(module or self.resolved.kernel.module)
        return self.run(lambda: runtime.evaluate(expression))

    def made(self, cls: Any, values: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """An object of a kernel's class."""
        return self.run(lambda: self.machine.call(cls, values, named))

    def named(self, module: str, name: str) -> Any:
        """What a module calls `name` (`Outer.Inner`); the module itself where it is empty."""
        importer, world = self.resolved.kernel.module, self.world
        if module == "builtins":
            return self.machine.builtins[name]
        if not name:
            return world.module(module, importer)
        first, *rest = name.split(".")
        holder = self.resolved.library.find(module, importer)
        if isinstance(holder, SourceModule):
            found = world.runtime(holder).get(first)
        else:
            found = world.member(Import(module, first), importer)
        for part in rest:
            found = self.machine.attribute(found, part)
        return found

    def function_at(
        self,
        module: str,
        name: str,
        line: int,
        around: Collection[str],
        cells: Callable[[Function], Mapping[str, Any]],
        defaults: Mapping[str, Any],
    ) -> Function:
        """The function at a place in source. `around` are the variables around it."""
        found = self.resolved.library.find(module, self.resolved.kernel.module)
        if not isinstance(found, SourceModule):
            raise KernelError("host-module", f"the source of the module {module} is not available")
        node = function_at(found, name, line)
        return self.world.runtime(found).function(node, around, cells, defaults)

    def library_function(self, source: SourceFile, name: str) -> Any:
        """A function of our own standard library, which is written as kernel source.

        The path of `source` starts with `STDLIB`: errors inside point at the user's call.
        """
        assert source.path.startswith(STDLIB), source.path
        module = self.resolved.library.add("nkic.stdlib", source, trusted=True)
        return self.world.runtime(module).get(name)

    def loop_context(self) -> list[Label]:
        """The turns of the loops around the place and around the nearest calls."""
        places = [failures.ActiveNode(frame, frame[1]) for frame in reversed(self.machine.stack)]
        own = [p for p in places if not p.span.path.startswith(STDLIB)]
        return failures.iterations_of(own[: failures.CALLS], self.resolved)


# Where the language's functions are called, and what stands in for NumPy's.
_BOUNDARY = frozenset(
    {"nkic.specialise.surface", "nkic.specialise.numpy_names", "nkic.language.tensors.arrays"}
)


def _is_the_kernels(error: BaseException) -> bool:
    """The exception speaks of the kernel, not of a defect in our own functions."""
    if isinstance(error, KernelError | objects.ErrorInstance | RecursionError | MemoryError):
        return True
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    module = str(traceback.tb_frame.f_globals.get("__name__", "")) if traceback else ""
    return module in _BOUNDARY or not module.startswith("nkic.") or "nkic.evaluate" in module


def parameters(function: Function) -> list[FunctionParameter]:
    """The parameters of a function with their defaults, in the order of the signature."""
    args = function.code.args
    plain = [*args.posonlyargs, *args.args]
    defaults = dict(function.named_defaults)
    last = plain[len(plain) - len(function.defaults) :]
    defaults |= {arg.name: value for arg, value in zip(last, function.defaults, strict=True)}
    stars = {args.vararg: "*", args.kwarg: "**"}
    return [
        FunctionParameter(
            arg.name, defaults.get(arg.name, MISSING), arg.annotation, stars.get(arg, "")
        )
        for arg in scopes.parameters(args)
    ]


def provided_modules(others: Collection[str] = ()) -> frozenset[str]:
    """The names of all modules that kernels may import without source, for `resolve`."""
    return frozenset({*library.modules(), *others})
