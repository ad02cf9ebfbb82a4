"""Trace: calls a live function with its arguments and returns a program.

The function is called once for every instance of the launch grid, as in the closed world. Both
record through the same API, and give the same program for the same kernel.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from enum import Enum
from types import FunctionType
from typing import Any, NamedTuple

from nkic.base.diagnostics import CompileFailed, NkicError, Reporter
from nkic.base.kernel_errors import KernelError
from nkic.base.profiles import Profile
from nkic.base.source import SourceFile
from nkic.evaluate.failures import MAX_CALLS
from nkic.ir.program import Program, TensorParameter
from nkic.language import library, provide
from nkic.language.trace import tracing
from nkic.specialise.instances import declare_inputs, instances, start_trace
from nkic.specialise.native import call_sites, failures
from nkic.specialise.native.kernel import LiveKernel, kernel_node
from nkic.specialise.native.loops import Whiles, left_early, returned
from nkic.specialise.native.sources import Parse, Sources
from nkic.specialise.native.surface import spaces
from nkic.specialise.native.values import Copier
from nkic.specialise.native.variables import Variables
from nkic.specialise.ordering import Ordering
from nkic.specialise.outputs import Outputs
from nkic.specialise.request import Request
from nkic.specialise.shown import text
from nkic.specialise.signature import BoundArguments, bind
from nkic.syntax import nodes
from nkic.syntax.bindings import Kernel, Resolved


class Traced(NamedTuple):
    """A program, with the source that later stages need for messages."""

    program: Program
    resolved: Resolved
    sources: Mapping[str, SourceFile]


def trace_kernel(kernel: LiveKernel, request: Request, report: Reporter, parse: Parse) -> Traced:
    """Return the program of a live function for `request`.

    Raises `CompileFailed` with the kernel's own traceback if an NKI error ends the evaluation, and
    any exception of the function itself.
    """
    sources = Sources(kernel.source_of, parse)
    node = kernel_node(kernel.function, sources, parse)
    resolved = Resolved(node, sources, (), request.profile)  # type: ignore[arg-type]
    tracer = _Tracer(kernel, request, report, resolved, sources)
    with tracing(tracer.trace):
        program = tracer.program()
    return Traced(program, resolved, sources.files)


class _Tracer:
    """One trace and its inputs."""

    def __init__(
        self,
        kernel: LiveKernel,
        request: Request,
        report: Reporter,
        resolved: Resolved,
        sources: Sources,
    ) -> None:
        self.kernel = kernel
        self.request = request
        self.report = report
        self.resolved = resolved
        self.call_sites = call_sites.CallSites(sources)
        self.trace = trace = start_trace(resolved, request, report)
        trace.spaces = spaces(request.profile)
        trace.library = trace.spaces[library.MODULE].__getattr__
        trace.here = self.call_sites.here
        trace.loop_context = lambda: failures.loop_context(
            self.call_sites.in_user_files(MAX_CALLS), self.call_sites
        )
        trace.iterations = self.call_sites.iterations
        trace.decide = Whiles(trace, self.call_sites).decide
        trace.remember = Variables(self.call_sites).remember

    def program(self) -> Program:
        """Call the kernel for every instance."""
        trace, request, node = self.trace, self.request, self.resolved.kernel
        annotations = _annotations(self.kernel.function, node)
        bound = bind(node, request, self.report, annotations, called=True)
        inputs = declare_inputs(bound, request, trace, node)
        outputs = Outputs(trace, inputs, node)
        order = Ordering(node, self.report)
        order.read(request.schedule)
        for core, ids in instances(request):
            start = trace.begin(ids, core)
            arguments = self._arguments(bound, inputs)
            texts = {name: text(value, _other) for name, value in arguments.items()}
            outputs.take(self._call(arguments))
            order.apply(trace.body, start)
        order.finish()
        return outputs.program(bound.shown(texts), request)

    def _call(self, arguments: dict[str, Any]) -> Any:
        function = self.kernel.function
        call = inspect.BoundArguments(inspect.signature(function), arguments)
        try:
            result = call_sites.run(function, *call.args, **call.kwargs)
        except NkicError:
            raise
        except Exception as error:  # after errors that were reported, another one follows from them
            if not self.report.errors and not isinstance(error, KernelError):
                raise
            if isinstance(error, KernelError) and not failures.follows(error, self.report):
                self.report.add(failures.explain(error, self.call_sites, self.resolved))
            failed = CompileFailed(self.report.all)
            failed.frames = failures.user_traceback(error.__traceback__)
            raise failed from None
        self._check_loops()
        return result

    def _arguments(
        self, bound: BoundArguments, inputs: tuple[TensorParameter, ...]
    ) -> dict[str, Any]:
        """Return the arguments by parameter, in the order of the signature."""
        tensors = {p.name: provide.argument_tensor(p.tensor, self.trace.profile) for p in inputs}

        replace = self.kernel.replace
        copier = Copier(lambda value, path: replace(value, tensors), self.kernel.enters)
        values = {name: copier.value(v, name) for name, v in self.kernel.arguments.items()}
        values |= {name: tensors[name] for name in bound.tensors}
        names = inspect.signature(self.kernel.function).parameters
        return {name: values[name] for name in names if name in values}

    def _check_loops(self) -> None:
        """Report device loops that were left early."""
        trace = self.trace
        abandoned_loops = [*trace.abandoned_loops, *(loop.at for loop in trace.loops)]
        if trace.profile is Profile.BETA1:
            errors = [returned(at.primary, self.call_sites) for at in abandoned_loops]
        else:
            errors = [left_early(at.primary, self.call_sites) for at in abandoned_loops[:1]]
        for error in filter(None, errors):
            self.report.fatal(error.slug, error.message, error.span, help=error.help)


def _other(value: Any) -> str:
    """Return the text of an object or a function."""
    if isinstance(value, Enum):
        return f"{type(value).__qualname__}.{value._name_}"
    name = getattr(value, "__qualname__", None) if callable(value) else None
    return name if isinstance(name, str) else f"{type(value).__qualname__}(…)"


def _annotations(function: FunctionType, kernel: Kernel) -> Callable[[nodes.Expression], Any]:
    """Return an evaluator of annotations: `nt.tensor[128, 512]` gives a shape."""

    def evaluate(note: nodes.Expression) -> Any:
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        try:
            free_variables = {name: cell.cell_contents for name, cell in cells}
            text = kernel.module.source.text_of(note.span)
            return eval(
                compile(text.strip(), "<annotation>", "eval"), function.__globals__, free_variables
            )
        except Exception:  # an annotation of the user's own that fails
            return None

    return evaluate
