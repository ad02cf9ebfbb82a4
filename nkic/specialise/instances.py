"""The trace of a kernel, its inputs and its instances, for both kinds of evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

from nkic.base.diagnostics import Reporter
from nkic.base.source import CallChain, Span
from nkic.base.text import grouped
from nkic.ir.program import TensorParameter
from nkic.ir.tensors import Tensor
from nkic.language.trace import Trace
from nkic.language.versions.since import LANGUAGE
from nkic.machine.dtypes import DType
from nkic.machine.memory import MAX_RANK, Buffer
from nkic.machine.tiles import AS_INT32
from nkic.specialise.request import Request, Spread, TensorType
from nkic.specialise.signature import BoundArguments
from nkic.syntax import nodes
from nkic.syntax.bindings import Kernel, Resolved

MAX_INSTANCES = 2**20  # instances of a launch grid; each is evaluated on its own


def start_trace(resolved: Resolved, request: Request, report: Reporter) -> Trace:
    """Return the trace of a kernel for `request`. Reports grids that the target cannot run."""
    _check_cores(request, report)
    trace = Trace(request.target, request.profile, report, grid(request))
    trace.lnc = request.lnc
    trace.name_of = Names(resolved).of
    trace.locate = resolved.locate
    trace.module_of = resolved.library.modules.get
    return trace


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
    if (count := prod(request.grid)) > MAX_INSTANCES:
        report.fatal(
            "bad-grid",
            f"the launch grid {request.grid} has {grouped(count)} instances; the limit is"
            f" {grouped(MAX_INSTANCES)}",
            help="launch fewer instances, and loop over the tiles of each inside the kernel",
        )


def grid(request: Request) -> tuple[int, ...]:
    """Return the launch grid that kernels see."""
    return (request.lnc,) if request.lnc > 1 and request.spread is None else request.grid


def instances(request: Request) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield core and program ids of every kernel instance, in order of evaluation."""
    spread, cores = request.spread or Spread(), request.lnc
    all_ids = list(product(*map(range, grid(request))))
    for core in range(cores):
        yield from ((core, ids) for ids in all_ids if cores == 1 or spread.core(ids, cores) == core)


def declare_inputs(
    bound: BoundArguments, request: Request, trace: Trace, kernel: Kernel
) -> tuple[TensorParameter, ...]:
    """Declare a tensor in shared HBM for every tensor argument, or part of an argument.

    They are in the order of the signature.
    """
    at = CallChain(kernel.node.name_span)
    order = {parameter.name: n for n, parameter in enumerate(bound.parameters)}
    kinds = {**bound.tensors, **request.parts}
    names = sorted(kinds, key=lambda name: order.get(name.partition(".")[0], len(order)))
    inputs = tuple(TensorParameter(name, _input(name, kinds[name], trace, at)) for name in names)
    if request.lnc == 1:
        trace.own_inputs = frozenset(parameter.tensor.number for parameter in inputs)
    return inputs


def _input(name: str, kind: TensorType, trace: Trace, at: CallChain) -> Tensor:
    if kind.dtype is None or kind.shape is None:
        raise ValueError(f"the type of {name} is incomplete")
    if kind.dtype.is_wide:
        _check_wide(name, kind.dtype, trace, at)
    if len(kind.shape) > MAX_RANK:
        rank = len(kind.shape)
        text = f"argument `{name}` has {rank} dimensions; a tensor has at most {MAX_RANK}"
        trace.report.fatal("bad-shape", text, at.primary, help="reshape it before the call")
    return trace.declare(kind.shape, kind.dtype, Buffer.SHARED_HBM, name, at)


def _check_wide(name: str, dtype: DType, trace: Trace, at: CallChain) -> None:
    """Report nl.int64, which was added with the scalars of NKI 0.7."""
    since, label = LANGUAGE[dtype.name].since, trace.profile.label
    if trace.profile < since:
        text = f"argument `{name}` is {dtype}, which is not a dtype of NKI {label}"
        trace.report.fatal("unknown-dtype", text, at.primary, help=AS_INT32.partition(";")[0])


class Names:
    """The names of tensors in messages and listings: the variables to which they are assigned.

    They are looked up in the source, and memoised by location.
    """

    def __init__(self, resolved: Resolved) -> None:
        self.modules = resolved.library.modules
        self._cache: dict[int, tuple[CallChain, str]] = {}  # by id of the location

    def of(self, at: CallChain) -> str:
        """Return `x` for `x = nl.ndarray(…)`, or "" if the call is part of a larger expression."""
        cached = self._cache.get(id(at))
        if cached is None:
            cached = self._cache[id(at)] = (at, self._find(at.primary))
        return cached[1]

    def _find(self, span: Span) -> str:
        module = self.modules.get(span.path)
        statement = module.statement_at(span) if module is not None else None
        if not isinstance(statement, nodes.Assign) or statement.value.span != span:
            return ""
        target = statement.targets[0]
        return target.id if isinstance(target, nodes.Name) else ""
