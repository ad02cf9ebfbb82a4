"""The stage: evaluates a resolved kernel for its arguments and returns a program.

The kernel is evaluated once for every instance of the launch grid: on one core in row-major order;
on several cores (`lnc`) once for each core, whose number is the program id; or core by core if
several instances are distributed over the cores.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nkic.base.diagnostics import CompileFailed, Reporter
from nkic.base.evaluation import Limits
from nkic.base.profiles import Profile
from nkic.evaluate import library
from nkic.evaluate.interpreter import MISSING, parameters
from nkic.evaluate.objects import Class, Function
from nkic.ir.program import Program, TensorParameter
from nkic.language import provide
from nkic.language.objects import Kernel
from nkic.language.trace import tracing
from nkic.specialise import makers
from nkic.specialise.closed import World
from nkic.specialise.constants import Constants
from nkic.specialise.instances import declare_inputs, instances, start_trace
from nkic.specialise.missing_names import report_missing
from nkic.specialise.ordering import Ordering
from nkic.specialise.outputs import Outputs
from nkic.specialise.rebuild import Rebuilder
from nkic.specialise.request import Request
from nkic.specialise.shown import text
from nkic.specialise.signature import BoundArguments, bind
from nkic.syntax.bindings import Resolved

ENUM = library.modules()["enum"]["Enum"]


def specialise(
    resolved: Resolved, request: Request, report: Reporter, limits: Limits | None = None
) -> Program:
    """Return the program of `resolved` for `request`.

    Illegal instructions are reported and omitted. If an error ends the evaluation, the program is
    what was recorded until then: it serves to find further errors. `limits` apply to each instance
    of the kernel.
    """
    trace = start_trace(resolved, request, report)
    with tracing(trace):
        annotation = World(resolved, trace, limits).interpreter.value
        bound = bind(resolved.kernel, request, report, annotation, request.entry is not None)
        inputs = declare_inputs(bound, request, trace, resolved.kernel)
        outputs = Outputs(trace, inputs, resolved.kernel)
        order = Ordering(resolved.kernel, report)
        texts: dict[str, str] = {}
        for core, ids in instances(request):
            world = World(resolved, trace, limits)
            start = trace.begin(ids, core)
            try:
                order.read(_schedule(request, world))
                outputs.take(_call(bound, inputs, request, world, texts))
            except CompileFailed:
                break
            order.apply(trace.body, start)
        else:
            order.finish()
        return outputs.program(bound.shown(texts), request)


def _schedule(request: Request, world: World) -> tuple[Any, ...]:
    """Return the edges of `with_schedule`, in the file and in a running program."""
    kernel = world.interpreter.resolved.kernel
    scheduled = world.interpreter.kernel() if request.entry is None and kernel.scheduled else None
    in_file = scheduled.schedule if isinstance(scheduled, Kernel) else ()
    return (*in_file, *request.schedule)


def _call(
    bound: BoundArguments,
    inputs: tuple[TensorParameter, ...],
    request: Request,
    world: World,
    texts: dict[str, str],
) -> Any:
    """Call the kernel and return its result; `texts` receives its arguments as text.

    After an error, look for further misspelt names.
    """
    try:
        return _called(bound, inputs, request, world, texts)
    except CompileFailed:
        interpreter = world.interpreter
        report_missing(interpreter.resolved, world.namespaces, interpreter.report)
        raise CompileFailed(interpreter.report.all) from None


def _called(
    bound: BoundArguments,
    inputs: tuple[TensorParameter, ...],
    request: Request,
    world: World,
    texts: dict[str, str],
) -> Any:
    interpreter = world.interpreter
    tensors = {p.name: provide.argument_tensor(p.tensor, request.profile) for p in inputs}
    rebuilder = Rebuilder(world, tensors, request.entry.objects if request.entry else {})
    constants = Constants(world, rebuilder)

    def arguments() -> dict[str, Any]:
        values = {name: constants.argument(name, value) for name, value in bound.values.items()}
        return {**values, **{name: tensors[name] for name in bound.tensors}}

    def enter() -> Any:
        if request.entry is None and interpreter.resolved.kernel.maker is not None:
            return makers.made_kernel(interpreter)
        in_class = "." in interpreter.resolved.kernel.name
        if request.entry is None and (in_class or request.profile is Profile.BETA1):
            return makers.undecorated(interpreter)
        if request.entry is None:
            return makers.plain(interpreter.kernel())
        variables_by_module = {
            module: dict(variables) for module, variables in request.entry.globals
        }
        interpreter.world.program_variables = variables_by_module
        interpreter.world.program_attributes = {
            owner: dict(values) for owner, values in request.entry.attributes
        }
        interpreter.world.rebuild = rebuilder.value
        return rebuilder.value(request.entry.function)

    function = interpreter.run(enter)
    values = interpreter.run(arguments)
    if not texts:
        texts |= interpreter.run(lambda: _texts(world, function, values))
    return interpreter.call(function, values)


def _texts(world: World, function: Any, values: Mapping[str, Any]) -> dict[str, str]:
    """Return the arguments as text, with the defaults of those that are left out."""
    machine = world.interpreter.machine
    declared = parameters(function) if isinstance(function, Function) else []
    defaults = {p.name: p.default for p in declared if p.default is not MISSING}

    def other(value: Any) -> str:
        value = makers.plain(value)
        if isinstance(value, Function | Class):
            return value.qualname
        kind = machine.class_of(value)
        if kind.is_a(ENUM):
            return f"{kind.qualname}.{machine.attribute(value, 'name')}"
        return f"{kind.qualname}(…)"

    return {name: text(value, other) for name, value in {**defaults, **values}.items()}
