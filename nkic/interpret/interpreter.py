"""The interpreter: evaluates a resolved kernel in the closed world.

Calls into the modules that the language provides record a program; this package does not depend on
that. An error ends the evaluation with one diagnostic that points into the source.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from nkic.base.device import KernelError
from nkic.base.diagnostics import CompileFailed, Label, NkicError, Reporter
from nkic.base.limits import DEFAULT_LIMITS, Limits
from nkic.base.source import SourceFile
from nkic.interpret import builtins, failures, library, objects, types
from nkic.interpret.attributes import ModuleNamespace
from nkic.interpret.machine import Machine
from nkic.interpret.modules import INSTEAD, Table, World
from nkic.interpret.objects import Function
from nkic.source import nodes, scopes
from nkic.source.bindings import STDLIB, Import, Resolved, SourceModule

Show = Callable[[str], None]
MISSING = object()  # a parameter without default
# The most Python frames that the closures of one kernel call need, because expressions nest.
_FRAMES_PER_LEVEL = 3200


@dataclass(frozen=True)
class FunctionParameter:
    """A parameter of the kernel.

    `default` is its evaluated value, or MISSING; `annotation` is the syntax tree of the annotation.
    `star` is "*" for a variadic positional parameter, "**" for a variadic keyword parameter, else
    "".
    """

    name: str
    default: Any
    annotation: nodes.Expression | None
    star: str = ""


class Interpreter:
    """One evaluation of a kernel: its machine, its modules and its printed output.

    `provided` holds the modules of the language; the supported modules of Python's standard library
    are added here. `show` receives the text that kernel code prints.
    """

    def __init__(
        self,
        resolved: Resolved,
        provided: Mapping[str, ModuleNamespace],
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
            name: Table(name, contents, INSTEAD.get(name, ""))
            for name, contents in library.modules().items()
        }
        self.world = World(self.machine, resolved.library, {**tables, **provided})
        self.entry: Function | None = None

    def run(self, action: Callable[[], Any]) -> Any:
        """Return `action()`. Report the error that ends it and raise `CompileFailed`."""
        machine, before = self.machine, sys.getrecursionlimit()
        sys.setrecursionlimit(before + machine.limits.depth * _FRAMES_PER_LEVEL)
        objects.enter(machine)
        try:
            return action()
        except NkicError:
            raise
        except Exception as error:
            if not _is_the_kernels(error):
                frames = getattr(error, "nkic_frames", [])
                error.add_note(
                    f"while nkic evaluated {frames[0][1].span if frames else 'a kernel'}"
                )
                raise
            failure = failures.Failure(error, machine, self.resolved)
            if not (self.report.errors and failures.follows(failure)):
                self.report.add(failures.explain(failure))
            raise CompileFailed(self.report.all) from error
        finally:
            objects.leave()
            sys.setrecursionlimit(before)

    # ---- the kernel ------------------------------------------------------------------------

    def kernel(self) -> Any:
        """Return the value bound to the kernel's name."""
        kernel = self.resolved.kernel
        return self.run(lambda: self.world.runtime(kernel.module).get(kernel.name))

    def call(self, function: Any, arguments: Mapping[str, Any]) -> Any:
        """Call a function with a mapping from parameter names to values.

        If the kernel's own decorators replaced the function by one with other parameters, the
        values are passed by the signature of the kernel's `def`.
        """
        signature = parameters(function) if isinstance(function, Function) else []
        if not {parameter.name for parameter in signature}.issuperset(arguments):
            return self._call_decorated(function, dict(arguments))
        args: list[Any] = []
        named: dict[str, Any] = {}
        for parameter in signature:
            if parameter.name not in arguments:
                continue
            value = arguments[parameter.name]
            if parameter.star == "*":
                args.extend(value)
            elif parameter.star == "**":
                named |= value
            else:
                named[parameter.name] = value
        by_position = list(function.code.positional[: function.code.positional_only])
        if args:
            by_position = list(function.code.positional)
        positional = [named.pop(name) for name in by_position if name in named]
        return self.run(lambda: self.machine.call(function, (*positional, *args), named))

    def _call_decorated(self, function: Any, values: dict[str, Any]) -> Any:
        """Pass values by position as far as the kernel's `def` allows, the others by keyword."""
        signature, positional = self.resolved.kernel.node.args, []
        for parameter in (*signature.posonlyargs, *signature.args):
            if parameter.name not in values:
                break
            positional.append(values.pop(parameter.name))
        return self.run(lambda: self.machine.call(function, tuple(positional), values))

    # ---- values ----------------------------------------------------------------------------

    def value(self, expression: nodes.Expression, module: SourceModule | None = None) -> Any:
        """Evaluate an expression as at the end of a module, by default the kernel's."""
        runtime = self.world.runtime(module or self.resolved.kernel.module)
        return self.run(lambda: runtime.evaluate(expression))

    def lookup(self, module: str, name: str) -> Any:
        """Return the value of `name` (`Outer.Inner`) in a module; of "", the module itself."""
        importer, world = self.resolved.kernel.module, self.world
        if module == "builtins":
            return self.machine.builtins[name]
        if not name:
            return world.module(module, importer)
        first, *rest = name.split(".")
        holder = self.resolved.library.find(module, importer)
        if isinstance(holder, SourceModule):
            value = world.runtime(holder).get(first)
        else:
            value = world.member(Import(module, first), importer)
        for part in rest:
            value = self.machine.attribute(value, part)
        return value

    def function_at(
        self,
        module: str,
        name: str,
        line: int,
        column: int,
        around: str,
        enclosing: Collection[str],
        cells: Callable[[Function], Mapping[str, Any]],
        defaults: Mapping[str, Any],
    ) -> Function:
        """Return the function defined at a place in the source.

        `around` is the qualified name of the outer function, or empty; `enclosing` names the
        variables of outer functions, `cells` returns their values, and
        `defaults` holds the default values by parameter name.
        """
        source_module = self.resolved.library.find(module, self.resolved.kernel.module)
        if not isinstance(source_module, SourceModule):
            raise KernelError("host-module", f"the source of the module {module} is not available")
        node = source_module.function_at(name, line, column)
        runtime = self.world.runtime(source_module)
        return runtime.function(node, around, enclosing, cells, defaults)

    def library_function(self, source: SourceFile, name: str) -> Any:
        """Return a function of nkic's own standard library, which is written as kernel source.

        The path of `source` starts with `STDLIB`, so that errors inside it point at the user's
        call.
        """
        assert source.path.startswith(STDLIB), source.path
        module = self.resolved.library.add("nkic.stdlib", source, trusted=True)
        return self.world.runtime(module).get(name)

    def loop_context(self) -> list[Label]:
        """Label the current iterations of the loops around the current node and its callers."""
        places = [
            failures.ActiveNode(frame, frame[1]) for frame in reversed(self.machine.users_frames())
        ]
        user_places = [p for p in places if not p.span.path.startswith(STDLIB)]
        return failures.iterations_of(user_places[: failures.MAX_CALLS], self.resolved)


# Modules whose functions kernel code calls, and the modules that stand in for NumPy.
_BOUNDARY = ("nkic.language.foreign", "nkic.specialise.closed", "nkic.specialise.numpy")


def _is_the_kernels(error: BaseException) -> bool:
    """Whether the exception is an error of the kernel rather than a defect in nkic."""
    if isinstance(error, KernelError | objects.ErrorInstance | RecursionError | MemoryError):
        return True
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    module = str(traceback.tb_frame.f_globals.get("__name__", "")) if traceback else ""
    return module in _BOUNDARY or not module.startswith("nkic.") or "nkic.interpret" in module


def parameters(function: Function) -> list[FunctionParameter]:
    """Return the parameters of a function with their defaults, in signature order."""
    args = function.code.args
    plain = [*args.posonlyargs, *args.args]
    defaults = dict(function.keyword_defaults)
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
    """Return the names of all modules that kernels may import without source, for `resolve`."""
    return frozenset({*library.modules(), *others})
