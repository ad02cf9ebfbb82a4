"""Specialise: a resolved kernel and its arguments to a program.

The kernel is evaluated once for every instance of the launch grid, in row-major order on one
core; with several cores (`lnc`), once for each core, which sees itself as the program id, or
core by core where several instances are spread over the cores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any, NamedTuple

from nkic.base.diagnostics import CompileFailed, Reporter
from nkic.base.source import CallChain, SourceFile
from nkic.ir.program import Parameter, Program
from nkic.ir.tensors import Tensor
from nkic.machine.memory import Buffer
from nkic.specialise import provide, views
from nkic.specialise.budget import RECORDING, VIEWING
from nkic.specialise.constant_data import refuse_written
from nkic.specialise.constants import Constants
from nkic.specialise.evaluate import Evaluator
from nkic.specialise.library import MODULE
from nkic.specialise.namespace import Namespace
from nkic.specialise.naming import Names
from nkic.specialise.ordering import Ordering
from nkic.specialise.outputs import Outputs
from nkic.specialise.rebuild import Rebuilder
from nkic.specialise.request import Request, Spread, TensorType
from nkic.specialise.signature import Bound, bind
from nkic.specialise.tensor import NkiTensor
from nkic.specialise.trace import Trace, tracing
from nkic.syntax.bindings import Resolved


def specialise(resolved: Resolved, request: Request, report: Reporter) -> Program:
    """The program of `resolved` for `request`.

    Illegal instructions are reported and left out. Where an error ends the evaluation, the
    program is what was recorded until then: it serves to find further errors.
    """
    _check_cores(request, report)
    trace = Trace(request.target, request.profile, report, _grid(request))
    trace.name_of = Names(resolved).of
    trace.locate = resolved.locate
    trace.module_of = resolved.library.modules.get
    with tracing(trace):
        annotation = _world(resolved, trace).evaluator.value
        bound = bind(resolved.kernel, request, report, annotation)
        inputs = tuple(_inputs(bound, request, trace, resolved))
        if request.lnc == 1:
            trace.own_inputs = frozenset(p.tensor.number for p in inputs)
        outputs = Outputs(trace, inputs, resolved.kernel)
        order = Ordering(resolved.kernel, report)
        for core, ids in _instances(request):
            world = _world(resolved, trace)
            start = trace.begin(ids, core)
            try:
                order.read(_schedule(request, world))
                outputs.take(world.evaluator.run(partial(_call, bound, inputs, request, world)))
            except CompileFailed:
                break
            order.apply(trace.body, start)
        else:
            order.finish()
        found = outputs.parameters()
        refuse_written([trace.tensors[n] for n in trace.constants], trace.written)
    return Program(
        name=resolved.kernel.name,
        target=request.target,
        tensors=tuple(trace.tensors),
        inputs=inputs,
        outputs=found,
        cores=trace.cores,
        constants=trace.constants,
        messages=tuple(trace.messages),
        arguments=bound.shown(),
        returned=outputs.form,
        reads=trace.reads,
    )


def _schedule(request: Request, world: World) -> tuple[Any, ...]:
    """What `with_schedule` was given, in the file and by a running program."""
    own = world.evaluator.schedule() if request.entry is None else ()
    return (*own, *request.schedule)


class World(NamedTuple):
    """What one instance of the kernel is evaluated in: module-level values start afresh."""

    evaluator: Evaluator
    spaces: dict[str, Namespace]


def _world(resolved: Resolved, trace: Trace) -> World:
    """A world whose `nki` records into `trace`."""

    def load(file: SourceFile, name: str) -> Callable[..., Any]:
        return evaluator.library_function(file, name)

    spaces = provide.namespaces(trace.profile, load)
    evaluator = Evaluator(resolved, spaces, trace.report, show=trace.messages.append)
    trace.library = partial(getattr, spaces[MODULE])
    trace.recording = evaluator.budget.at_cost(RECORDING)
    trace.viewing = evaluator.budget.at_cost(VIEWING)
    return World(evaluator, spaces)


def _check_cores(request: Request, report: Reporter) -> None:
    target, lnc = request.target, request.lnc
    if lnc > target.max_cores:
        report.fatal(
            "bad-grid",
            f"a kernel on {target.name} runs on at most {target.max_cores} cores, not {lnc}",
            help="leave out `lnc`, or choose another target",
        )
    if request.spread is None and lnc > 1 and request.grid not in ((), (lnc,)):
        report.fatal(
            "bad-grid",
            f"with {lnc} cores the launch grid is {lnc}, one instance per core, not {request.grid}",
        )


def _grid(request: Request) -> tuple[int, ...]:
    return (request.lnc,) if request.lnc > 1 and request.spread is None else request.grid


def _instances(request: Request) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Core and program ids of every kernel instance, in the order of evaluation."""
    spread, cores = request.spread or Spread(), request.lnc
    found = list(product(*map(range, _grid(request))))
    for core in range(cores):
        yield from ((core, ids) for ids in found if cores == 1 or spread.core(ids, cores) == core)


def _inputs(
    bound: Bound, request: Request, trace: Trace, resolved: Resolved
) -> Iterator[Parameter]:
    """A tensor in shared HBM for every tensor argument and every tensor inside an argument, in
    the order of the signature.
    """
    at = CallChain(resolved.kernel.node.name_span)
    order = {parameter.name: n for n, parameter in enumerate(bound.parameters)}
    kinds = {**bound.tensors, **request.parts}
    for name in sorted(kinds, key=lambda name: order.get(name.partition(".")[0], len(order))):
        yield Parameter(name, _input(name, kinds[name], trace, at))


def _input(name: str, kind: TensorType, trace: Trace, at: CallChain) -> Tensor:
    if kind.dtype is None or kind.shape is None:
        raise ValueError(f"the type of {name} is not complete")
    return trace.declare(kind.shape, kind.dtype, Buffer.SHARED_HBM, name, at)


def _call(bound: Bound, inputs: tuple[Parameter, ...], request: Request, world: World) -> Any:
    """Calls the kernel; gives what it returns."""
    evaluator = world.evaluator
    tensors = {p.name: NkiTensor(views.whole(p.tensor)) for p in inputs}
    rebuilder = Rebuilder(world.spaces, evaluator, tensors)
    if request.entry is not None:
        evaluator.enter(request.entry, rebuilder.value)
    constants = Constants(world.spaces, evaluator, rebuilder)
    values = {name: constants.argument(name, value) for name, value in bound.values.items()}
    arguments = {name: tensors[name] for name in bound.tensors}
    return evaluator.evaluate_kernel({**values, **arguments})
