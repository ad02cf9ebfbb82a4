"""Evaluate: runs a resolved kernel's meta-program in its closed world.

What the kernel calls in `nki.*` records the program; this module knows nothing of that. An
error ends the evaluation with one diagnostic that points into the kernel's source.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from nkic.base.diagnostics import CompileFailed, NkicError, Reporter
from nkic.base.source import SourceFile
from nkic.specialise import builtins, failures, further, libraries, location, objects
from nkic.specialise.budget import Budget, Limits
from nkic.specialise.errors import KernelError
from nkic.specialise.guards import Guards, hooks
from nkic.specialise.live import Entry, Function
from nkic.specialise.modules import World
from nkic.specialise.namespace import Namespace
from nkic.specialise.translate import translate_expression
from nkic.syntax import nodes, scopes
from nkic.syntax.bindings import STDLIB, Import, Resolved, SourceModule
from nkic.syntax.places import function_at

Show = Callable[[str], None]
MISSING = object()  # a parameter without default


@dataclass(frozen=True)
class Parameter:
    """A parameter of the kernel.

    `default` is its value, evaluated, or MISSING; `annotation` is source (evaluate it with
    `Evaluator.value` if it is `nt.tensor`). `star` is "*" or "**" for those.
    """

    name: str
    default: Any
    annotation: nodes.Expression | None
    star: str = ""


class Evaluator:
    """One evaluation of a kernel: its modules, its budget, what it prints.

    `provided` are the namespaces of `nki`; Python's few modules are added here. `show` gets
    what kernel code prints.
    """

    def __init__(
        self,
        resolved: Resolved,
        provided: Mapping[str, Namespace],
        report: Reporter,
        *,
        show: Show,
        limits: Limits | None = None,
    ) -> None:
        self.resolved = resolved
        self.report = report
        self.budget = Budget(limits or Limits())
        guards = Guards(self.budget)
        base = {
            **builtins.namespace(self.budget, guards, show),
            **hooks(guards, self.budget),
            **libraries.FIELD_MARKERS,
            "@decorator": objects.check_decorator,
            "@base": objects.check_base,
            "@class": guards.finish_class,
        }
        spaces = {**libraries.libraries(self.budget, guards), **provided}
        self._world = World(resolved.library, spaces, base)
        self._entry: Callable[..., Any] | None = None

    def run(self, action: Callable[[], Any]) -> Any:
        """What `action` gives. Reports the error that ends it and raises `CompileFailed`."""
        return self._guarded(action)

    def enter(self, entry: Entry, value: Callable[[Any], Any]) -> None:
        """Makes a function of a running program the kernel; `value` evaluates descriptions."""
        self._world.given = {module: dict(found) for module, found in entry.globals}
        self._world.value = value
        self._entry = value(entry.function)

    def named(self, module: str, name: str) -> Any:
        """What a module calls `name` (`Outer.Inner`); the module itself where it is empty."""
        importer = self.resolved.kernel.module
        if module == "builtins":
            return self._world.base[name]
        if not name:
            return self._world.module(module, importer)
        first, *rest = name.split(".")
        holder = self.resolved.library.find(module, importer)
        if isinstance(holder, SourceModule):
            found = self._world.runtime(holder).get(first)
        else:
            found = self._world.member(Import(module, first), importer)
        for part in rest:
            found = getattr(found, part)
        return found

    def function_at(
        self,
        place: Function,
        cells: Callable[[Callable[..., Any]], Mapping[str, Any]],
        defaults: Mapping[str, Any],
    ) -> Callable[..., Any]:
        """The function at a place in source. `cells` are the variables around it."""
        found = self.resolved.library.find(place.module, self.resolved.kernel.module)
        if not isinstance(found, SourceModule):
            raise KernelError("host-module", f"there is no source for the module {place.module}")
        node = function_at(found, place.name, place.line)
        names = {name for name, _ in place.cells}
        return self._world.runtime(found).function(node, names, cells, defaults)

    def evaluate_kernel(self, arguments: Mapping[str, Any]) -> Any:
        """Calls the kernel with values by parameter name, and gives what it returns.

        Reports the error that ends the evaluation and raises `CompileFailed`.
        """
        return self._guarded(lambda: self._call(arguments))

    def parameters(self) -> tuple[Parameter, ...]:
        """The kernel's parameters with their defaults, in the order of the signature."""
        function = self._guarded(self._function)
        return tuple(_parameters(self.resolved.kernel.node.args, function))

    def value(self, expression: nodes.Expression, module: SourceModule | None = None) -> Any:
        """The value of an expression as it would be at the end of the kernel's module."""
        module = module or self.resolved.kernel.module
        runtime = self._world.runtime(module)
        code = translate_expression(module.source, expression, runtime.own)
        return self._guarded(lambda: eval(code, runtime.globals))

    def made(self, kind: Any, values: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """An object of a kernel's class. Raises what Python raises where the call does not fit."""
        return self._guarded(lambda: kind(*values, **named))

    def schedule(self) -> tuple[Any, ...]:
        """What `kernel.with_schedule([...])` asks for, where the file makes the kernel so."""
        kernel = self.resolved.kernel
        if kernel.scheduled is None:
            return ()
        found = self._guarded(lambda: self._world.runtime(kernel.module).get(kernel.name))
        return found.schedule if isinstance(found, objects.Kernel) else ()

    def library_function(self, source: SourceFile, name: str) -> Callable[..., Any]:
        """A function of our own standard library, which is written as kernel source.

        The path of `source` starts with `STDLIB`: errors inside point at the user's call.
        """
        assert source.path.startswith(STDLIB), source.path
        module = self.resolved.library.add("nkic.stdlib", source, trusted=True)
        found: Callable[..., Any] = self._world.runtime(module).get(name)
        return found

    def _function(self) -> Callable[..., Any]:
        if self._entry is not None:
            return self._entry
        kernel = self.resolved.kernel
        found = self._world.runtime(kernel.module).get(kernel.name)
        while isinstance(found, objects.Kernel):
            found = found.function
        function: Callable[..., Any] = found
        return function

    def _call(self, arguments: Mapping[str, Any]) -> Any:
        args: list[Any] = []
        named: dict[str, Any] = {}
        for parameter in self.parameters():
            if parameter.name not in arguments:
                continue
            value = arguments[parameter.name]
            if parameter.star == "*":
                args.extend(value)
            elif parameter.star == "**":
                named |= value
            else:
                named[parameter.name] = value
        return _invoke(self._function(), self.resolved.kernel.node.args, args, named)

    def _guarded(self, run: Callable[[], Any]) -> Any:
        """Runs kernel code; an error becomes a diagnostic."""
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(_depth() + self.budget.limits.depth + 100)
        try:
            result = run()
            if self.budget.spent:  # the kernel took the end of the steps for the end of a loop
                self.budget.tick()
            return result
        except NkicError:
            raise
        except Exception as error:
            if not self.budget.spent and not failures.is_ours(error):
                found = location.places(error.__traceback__)
                error.add_note(f"while nkic evaluated {found[0].span if found else 'a kernel'}")
                raise
            self._fail(error)
        finally:
            sys.setrecursionlimit(before)

    def _fail(self, error: Exception) -> None:
        self.report.add(failures.explain(error, self.resolved, self.budget))
        further.report_missing(self.resolved, self._world.provided, self.report)
        raise CompileFailed(self.report.all) from error


def provided_modules(others: Collection[str] = ()) -> frozenset[str]:
    """The names of all modules that kernels may import without source, for `resolve`."""
    return frozenset({*libraries.PROVIDED, *others})


def _invoke(
    function: Callable[..., Any], args: nodes.Arguments, rest: list[Any], named: dict[str, Any]
) -> Any:
    """Calls with keywords; what must stand by position is put there."""
    first = [arg.name for arg in args.posonlyargs]
    if rest:
        first += [arg.name for arg in args.args]
    given = [named.pop(name) for name in first if name in named]
    return function(*given, *rest, **named)


def _parameters(args: nodes.Arguments, function: Callable[..., Any]) -> list[Parameter]:
    plain = [*args.posonlyargs, *args.args]
    defaults = dict(function.__kwdefaults__ or {})
    values = function.__defaults__ or ()
    last = plain[len(plain) - len(values) :]
    defaults |= {arg.name: value for arg, value in zip(last, values, strict=True)}
    stars = {args.vararg: "*", args.kwarg: "**"}
    return [
        Parameter(arg.name, defaults.get(arg.name, MISSING), arg.annotation, stars.get(arg, ""))
        for arg in scopes.parameters(args)
    ]


def _depth() -> int:
    frame, depth = sys._getframe(), 0
    while frame.f_back is not None:
        frame, depth = frame.f_back, depth + 1
    return depth


location.root(Evaluator._guarded.__code__)
