"""The stage: evaluates a resolved kernel for its arguments and returns a program.

The kernel is evaluated once for every instance of the launch grid: on one core in row-major order;
on several cores (`lnc`) once for each core, whose number is the program id; or core by core if
several instances are distributed over the cores.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from nkic.base.device import KernelError
from nkic.base.diagnostics import CompileFailed, Diagnostic, Reporter, make, respelt
from nkic.base.limits import Limits
from nkic.base.profiles import Profile
from nkic.interpret import library
from nkic.interpret.classes import bind, enter_cells
from nkic.interpret.interpreter import MISSING, Interpreter, parameters
from nkic.interpret.objects import Class, Function
from nkic.language import provide
from nkic.language.hosted import Kernel
from nkic.language.namespace import Namespace, missing, submodule
from nkic.language.trace import tracing
from nkic.program.program import Program, TensorParameter
from nkic.source import nodes, scopes
from nkic.source.bindings import Binding, Resolved, SourceModule
from nkic.source.nodes import children
from nkic.specialise.closed import World
from nkic.specialise.constants import Constants, Rebuilder
from nkic.specialise.ordering import Ordering
from nkic.specialise.outputs import Outputs, text
from nkic.specialise.request import Request
from nkic.specialise.signature import (
    BoundArguments,
    declare_inputs,
    instances,
    recording,
    start_trace,
)
from nkic.specialise.signature import bind as bind_arguments

# ------------------------------------------------------------------------------------------------
# The functions of kernels: undecorated ones, and those that a function of the file makes.
# `-k 'scaled_by(3)'` calls such a function.


def made_kernel(interpreter: Interpreter) -> Any:
    """Call the function and return its kernel; the command line gives literals as arguments.

    The kernel is what the function returns, or else what it defines under the kernel's name: it may
    return several values, or a function that launches the kernel.
    """
    kernel = interpreter.resolved.kernel
    assert kernel.maker is not None
    name = kernel.maker.name
    args, named = _arguments(kernel.making)

    def call() -> Any:
        maker, m = interpreter.world.runtime(kernel.module).get(name), interpreter.machine
        if not isinstance(maker, Function) or maker.code.is_generator:
            return plain(m.call(maker, args, named))
        frame = bind(m, maker, args, named)
        enter_cells(maker.code, frame, maker.cells)
        result = m.run(maker.code, frame)
        returned = plain(result[0]) if result is not None else None
        if isinstance(returned, Function) and returned.code.node is kernel.node:
            return returned
        return plain(maker.code.locals(frame).get(kernel.name, returned))

    return interpreter.run(call)


def undecorated(interpreter: Interpreter) -> Any:
    """Return the kernel's function without its decorators, which are meant for host code."""
    kernel = interpreter.resolved.kernel
    args = kernel.node.args
    plain = (*args.posonlyargs, *args.args)
    arguments: list[tuple[nodes.Arg, nodes.Expression | None]] = [
        *zip(plain[len(plain) - len(args.defaults) :], args.defaults, strict=True),
        *zip(args.kwonlyargs, args.kw_defaults, strict=True),
    ]

    def make() -> Any:
        runtime = interpreter.world.runtime(kernel.module)
        defaults = {
            arg.name: runtime.evaluate(value) for arg, value in arguments if value is not None
        }
        return runtime.function(kernel.node, "", (), lambda function: {}, defaults)

    return interpreter.run(make)


def plain(kernel: Any) -> Any:
    while isinstance(kernel, Kernel):
        kernel = kernel.function
    return kernel


def _arguments(making: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    try:
        call = ast.parse(making, mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise ValueError(making)
        args = tuple(ast.literal_eval(value) for value in call.args)
        return args, {
            keyword.arg or "": ast.literal_eval(keyword.value) for keyword in call.keywords
        }
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise KernelError(
            "argument-kind",
            f"`{making}` cannot be called: its arguments are not literals",
            help="write numbers, text in quotes, and tuples, lists and dicts of these",
        ) from error


# ---- Names that a kernel uses from NKI's modules but that do not exist --------------------------
# The first one ends the evaluation. To report all of them in one run, the names in the rest of the
# kernel are then looked up statically. Code in branches is ignored, because it may be unreachable
# for a reason.

Definition = nodes.FunctionDef | nodes.ClassDef
Spaces = Mapping[str, Namespace]


def report_missing(resolved: Resolved, spaces: Spaces, report: Reporter) -> None:
    """Report one error for each missing name in code that is certainly evaluated."""
    for definition in resolved.reached:
        module = resolved.library.modules[definition.span.path]
        for diagnostic in () if module.trusted else _missing(definition, module, spaces):
            if diagnostic.primary is not None and not report.knows(
                diagnostic.code.slug, diagnostic.primary.span
            ):
                report.add(diagnostic)


def _missing(definition: Definition, module: SourceModule, spaces: Spaces) -> Iterator[Diagnostic]:
    evaluated = list(_always_evaluated(definition))
    inner = (item for item in (definition, *evaluated) if isinstance(item, scopes.Scope))
    local = frozenset(name for scope in inner for name in scopes.bound(scope))
    used = {item.id for item in evaluated if isinstance(item, nodes.Name)} - local
    for name in sorted(used & module.bindings.keys()):
        yield from _missing_module(module.bindings[name], module, spaces)
    for node in evaluated:
        name = _module_name(node.value, module, local) if isinstance(node, nodes.Attribute) else ""
        if not isinstance(node, nodes.Attribute) or name not in spaces:
            continue
        error = missing(spaces[name], node.attr)
        if error is not None and f"{name}.{node.attr}" not in spaces:
            fixes = respelt(error.help, module.source, node.span)
            yield make(error.slug, error.message, node.span, help=error.help, fixes=fixes)


def _missing_module(binding: Binding, module: SourceModule, spaces: Spaces) -> Iterator[Diagnostic]:
    """Yield the error for `import nki.isaa as nisa`."""
    request = binding.target.request if binding.target is not None else ""
    parent, _, last = request.rpartition(".")
    if parent in spaces and request not in spaces:
        absent = submodule(spaces[parent], last)
        fixes = respelt(absent.help, module.source, binding.span)
        yield make(absent.slug, absent.text, binding.span, help=absent.help, fixes=fixes)


_MAX_PARTS = 8  # at most, in a module's full name


def _module_name(node: nodes.Expression, module: SourceModule, local: frozenset[str]) -> str:
    path: list[str] = []
    while isinstance(node, nodes.Attribute) and len(path) < _MAX_PARTS:
        path.append(node.attr)
        node = node.value
    if not isinstance(node, nodes.Name) or node.id in local or node.id not in module.bindings:
        return ""
    target = module.bindings[node.id].target
    if target is None:
        return ""
    member = [target.member] if target.member else []
    return ".".join([target.request, *member, *reversed(path)])


def _always_evaluated(definition: Definition) -> Iterator[nodes.Node]:
    """Yield the nodes of a definition that are always evaluated: no branches, but conditions."""
    waiting = list(scopes.inside(definition))
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, nodes.If | nodes.IfExp | nodes.While):
            waiting.append(node.test)
        elif isinstance(node, scopes.Scope):
            waiting += [*scopes.outside(node), *scopes.inside(node)]
        elif isinstance(node, nodes.Assign | nodes.AnnAssign):
            waiting += [node.value] if node.value is not None else []  # not annotations
        elif not isinstance(node, nodes.Try | nodes.Match | nodes.BoolOp):
            waiting += children(node)


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
    with tracing(trace), recording(resolved.kernel, report):
        annotation = World(resolved, trace, limits).interpreter.value
        bound = bind_arguments(
            resolved.kernel, request, report, annotation, request.entry is not None
        )
        inputs = declare_inputs(bound, request, trace, resolved.kernel)
        outputs = Outputs(trace, inputs, resolved.kernel)
        order = Ordering(resolved.kernel, report)
        texts: dict[str, str] = {}
        for core, ids in instances(request):
            world = World(resolved, trace, limits)
            start = trace.begin(ids, core)
            try:
                order.read(_schedule(request, world), request.schedule)
                outputs.take(_call(bound, inputs, request, world, texts))
            except CompileFailed:
                break
            order.apply(trace.body, start)
        else:
            order.finish()
        return outputs.program(bound.shown(texts), request)


def _schedule(request: Request, world: World) -> tuple[Any, ...]:
    """Return the edges of `with_schedule` in the file."""
    kernel = world.interpreter.resolved.kernel
    scheduled = world.interpreter.kernel() if request.entry is None and kernel.scheduled else None
    return scheduled.schedule if isinstance(scheduled, Kernel) else ()


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
            return made_kernel(interpreter)
        in_class = "." in interpreter.resolved.kernel.name
        if request.entry is None and (in_class or request.profile is Profile.BETA1):
            return undecorated(interpreter)
        if request.entry is None:
            return plain(interpreter.kernel())
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
        value = plain(value)
        if isinstance(value, Function | Class):
            return value.qualname
        kind = machine.class_of(value)
        if kind.is_a(ENUM):
            return f"{kind.qualname}.{machine.attribute(value, 'name')}"
        return f"{kind.qualname}(…)"

    return {name: text(value, other) for name, value in {**defaults, **values}.items()}
