"""The kernel's parameters, and the sources of their types and values.

For every parameter the first of: `--arg` or `--const`, `--like`, the inline block, the annotation
`nt.tensor[...]` (a shape; the dtype comes from elsewhere), the default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from shlex import quote
from typing import Any, NoReturn

from nkic.base.device import KernelError
from nkic.base.diagnostics import CompileFailed, Reporter, did_you_mean
from nkic.base.profiles import Profile
from nkic.base.source import CallChain, Span
from nkic.base.text import grouped
from nkic.language.trace import Trace
from nkic.language.versions import LANGUAGE
from nkic.machine.dtypes import DType
from nkic.machine.targets import MAX_RANK, Buffer
from nkic.machine.tiles import AS_INT32
from nkic.program.program import Tensor, TensorParameter
from nkic.source import nodes
from nkic.source.bindings import Kernel, Resolved
from nkic.specialise.request import Request, Spread, TensorType

UNKNOWN = TensorType()


@dataclass(frozen=True)
class KernelParameter:
    """`default` is its source text, or ""."""

    name: str
    annotated: TensorType
    default: str


@dataclass(frozen=True)
class BoundArguments:
    """The kernel's arguments: tensors by type, other values in the request's form.

    A parameter in neither keeps its default.
    """

    parameters: tuple[KernelParameter, ...]
    tensors: dict[str, TensorType]
    values: dict[str, Any]

    def shown(self, texts: Mapping[str, str]) -> dict[str, str]:
        """Return every argument as text, for `nki-run inspect`; `texts` are those of values."""
        texts = {**texts, **{name: str(kind) for name, kind in self.tensors.items()}}
        return {p.name: texts.get(p.name, p.default) for p in self.parameters}


Evaluate = Callable[[nodes.Expression], Any]


def bind(
    kernel: Kernel, request: Request, report: Reporter, evaluate: Evaluate, called: bool = False
) -> BoundArguments:
    """Match the request with the kernel's parameters. Errors are fatal and list all problems.

    `evaluate` returns the value of an annotation. With `called`, the arguments are those of a
    Python call, and include `*args` and `**kwargs`; otherwise a parameter `**kwargs` takes the
    values that no other parameter takes.
    """
    declared = tuple(parameters(kernel, evaluate))
    _check_names(kernel, declared, request, report, called)
    if not called:
        request = replace(request, consts=_with_keywords(kernel, declared, request.consts))
    _check_lists(kernel, request, report)
    types = {p.name: _type(p, request) for p in declared if p.name not in request.consts}
    tensors = {name: kind for name, kind in types.items() if kind.is_complete and not kind.note}
    missing = [
        p for p in declared if p.name in types and p.name not in tensors and _is_required(p, types)
    ]
    if missing:
        _missing(kernel, declared, types, missing, request, report)
    return BoundArguments(declared, tensors, dict(request.consts))


def _is_required(parameter: KernelParameter, types: dict[str, TensorType]) -> bool:
    """Return whether a type is required: there is no default, or the given type is unusable."""
    kind = types[parameter.name]
    return not parameter.default or (kind.origin != "" and kind != parameter.annotated)


def _type(parameter: KernelParameter, request: Request) -> TensorType:
    requested = request.args.get(parameter.name) or request.like.get(parameter.name) or UNKNOWN
    return requested.filled(parameter.annotated)


def parameters(kernel: Kernel, evaluate: Evaluate) -> Iterator[KernelParameter]:
    """Yield the parameters in order, without `*args` and `**kwargs`."""
    args, text_of = kernel.node.args, kernel.module.source.text_of
    plain = (*args.posonlyargs, *args.args)
    first = len(plain) - len(args.defaults)
    for position, arg in enumerate(plain):
        default = text_of(args.defaults[position - first].span) if position >= first else ""
        yield KernelParameter(arg.name, _annotated(arg, evaluate), default)
    for arg, value in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        default = text_of(value.span) if value else ""
        yield KernelParameter(arg.name, _annotated(arg, evaluate), default)


def _annotated(arg: nodes.Arg, evaluate: Evaluate) -> TensorType:
    """Return the shape in `nt.tensor[128, 512]`; other annotations are ignored."""
    note = arg.annotation
    if not isinstance(note, nodes.Subscript) or _last_name(note.value) != "tensor":
        return UNKNOWN
    shape = getattr(evaluate(note), "shape", ())
    is_valid = shape and all(type(size) is int and size > 0 for size in shape)
    return TensorType(shape=tuple(shape), origin="annotation") if is_valid else UNKNOWN


def _last_name(expression: nodes.Expression | None) -> str:
    if isinstance(expression, nodes.Attribute):
        return expression.attr
    return expression.id if isinstance(expression, nodes.Name) else ""


def _with_keywords(
    kernel: Kernel, declared: tuple[KernelParameter, ...], consts: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the values by parameter, those of `**kwargs` in one dictionary."""
    into, names = kernel.node.args.kwarg, {parameter.name for parameter in declared}
    more = {name: value for name, value in consts.items() if name not in names}
    if into is None or not more:
        return dict(consts)
    return {**{name: consts[name] for name in consts if name in names}, into.name: more}


def _check_names(
    kernel: Kernel,
    declared: tuple[KernelParameter, ...],
    request: Request,
    report: Reporter,
    called: bool,
) -> None:
    args = kernel.node.args
    stars = [arg.name for arg in (args.vararg, args.kwarg) if arg is not None]
    names = [*(p.name for p in declared), *(stars if called else ())]
    values = request.consts if called or args.kwarg is None else ()
    unknown = [name for name in (*request.args, *values) if name not in names]
    if not unknown:
        return
    listed = ", ".join(f"`{name}`" for name in unknown)
    report.fatal(
        "unknown-argument",
        f"kernel `{kernel.name}` has no argument {listed}",
        kernel.node.name_span,
        label=f"its arguments are {', '.join(names) or 'none'}",
        help=did_you_mean(unknown[0], names),
    )


def _check_lists(kernel: Kernel, request: Request, report: Reporter) -> None:
    """Report lists, which NKI 0.3 does not accept; source: its update guide."""
    lists = [name for name, value in request.consts.items() if isinstance(value, list)]
    if lists and request.profile is Profile.NKI_0_3:
        text = f"`{lists[0]}` is a list, which kernels of NKI 0.3 do not accept as an argument"
        help = f"give a tuple: {tuple(request.consts[lists[0]])!r}"
        report.error("not-in-nki", text, kernel.node.name_span, help=help)


def _missing(
    kernel: Kernel,
    declared: tuple[KernelParameter, ...],
    types: dict[str, TensorType],
    missing: list[KernelParameter],
    request: Request,
    report: Reporter,
) -> NoReturn:
    names = ", ".join(f"`{p.name}`" for p in missing)
    lines = [f"  {p.name}: {_described(p, types, request, p in missing)}" for p in declared]
    report.fatal(
        "argument-type-missing",
        f"kernel `{kernel.name}` cannot be compiled: no type for {names}",
        kernel.node.name_span,
        notes=["\n".join([f"{kernel.name}(", *lines, ")"])],
        help=f"complete and run: {_command(kernel, declared, types, missing, request)}",
    )


def _described(
    parameter: KernelParameter, types: dict[str, TensorType], request: Request, missing: bool
) -> str:
    kind = types.get(parameter.name)
    if kind is None:
        return f"{request.consts[parameter.name]!r} (given)"
    if kind.note:
        return f"{kind.origin}: {kind.note}"
    if kind.origin and (missing or kind.is_complete):
        return f"{kind} ({kind.origin})"
    return f"{parameter.default} (default)" if parameter.default else "missing"


def _command(
    kernel: Kernel,
    declared: tuple[KernelParameter, ...],
    types: dict[str, TensorType],
    missing: list[KernelParameter],
    request: Request,
) -> str:
    """Return a command line with all known arguments, and likely types for missing ones."""
    args = kernel.node.args
    notes = {arg.name: arg.annotation for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)}
    example = next((kind for kind in types.values() if kind.is_complete), None)
    counts = {
        node.args[-1].id
        for node in nodes.walk(kernel.node)
        if isinstance(node, nodes.Call) and node.args and isinstance(node.args[-1], nodes.Name)
        if isinstance(node.func, nodes.Name) and node.func.id == "range"
    }

    def value_of(name: str) -> str | None:
        return "1" if name in counts else _VALUES.get(_last_name(notes[name]))

    command = ["nkic", kernel.module.source.path, "-k", kernel.name]
    for parameter in declared:
        kind = types.get(parameter.name)
        if kind is None:
            command += ["--const", quote(f"{parameter.name}={request.consts[parameter.name]!r}")]
        elif kind.is_complete and not kind.note:
            command += ["--arg", quote(f"{parameter.name}={kind}")]
        elif (value := value_of(parameter.name)) and parameter in missing:
            command += ["--const", quote(f"{parameter.name}={value}")]
        elif parameter in missing:
            command += ["--arg", quote(f"{parameter.name}={_guess(kind, example)}")]
    return " ".join(command)


_VALUES = {"int": "1", "float": "1.0", "bool": "True", "str": "'text'"}  # examples, by annotation


def _guess(kind: TensorType, example: TensorType | None) -> str:
    filled = kind.filled(example or UNKNOWN)
    dtype = filled.dtype.name if filled.dtype else "float32"
    return f"{dtype}[{','.join(map(str, filled.shape or (128, 512)))}]"


# ---- The trace of a kernel, its inputs and its instances, for both kinds of evaluation ----------

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


@contextmanager
def recording(kernel: Kernel, report: Reporter) -> Iterator[None]:
    """Report an error of what is recorded outside the kernel's own code: inputs and results.

    The steps and bytes of an evaluation can end there, too.
    """
    try:
        yield
    except KernelError as error:
        if not report.errors:  # else it follows from them
            report.error(
                error.slug,
                error.message,
                error.span or kernel.node.name_span,
                labels=error.labels,
                notes=error.notes,
                help=error.help,
            )
        raise CompileFailed(report.all) from error


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
