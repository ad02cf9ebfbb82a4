"""Trace: calls a live function with its arguments and returns a program.

The function is called once for every instance of the launch grid, as in the closed world. Both
record through the same API, and give the same program for the same kernel.
"""

from __future__ import annotations

import builtins
import ctypes
import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from traceback import walk_tb
from types import CodeType, FrameType, FunctionType, SimpleNamespace, TracebackType
from typing import Any, NamedTuple

from nkic.base.device import KernelError, left_by
from nkic.base.diagnostics import (
    CompileFailed,
    Diagnostic,
    Label,
    NkicError,
    Reporter,
    make,
    respelt,
)
from nkic.base.profiles import Profile
from nkic.base.source import NOWHERE, SHIPPED, SourceFile, Span
from nkic.interpret.failures import MAX_CALLS, loop_values, shortened
from nkic.language import library, provide, versions
from nkic.language.hosted import NKIObject, brief
from nkic.language.namespace import Namespace
from nkic.language.registers import VirtualRegister
from nkic.language.trace import OpenLoop, Trace, has_failed, tracing
from nkic.program.program import Program, TensorParameter
from nkic.source import nodes, scopes
from nkic.source.bindings import Kernel, Resolved
from nkic.source.nodes import children
from nkic.source.scopes import nodes_in_scope
from nkic.specialise import call_sites
from nkic.specialise.call_sites import CallSite, CallSites, Parse, Sources
from nkic.specialise.ordering import Ordering
from nkic.specialise.outputs import Outputs, text
from nkic.specialise.request import Request
from nkic.specialise.signature import (
    BoundArguments,
    bind,
    declare_inputs,
    instances,
    recording,
    start_trace,
)

# ---- Copies of live arguments with tensors in place of arrays -----------------------------------
# Containers and objects that hold arrays are copied, all others are passed as they are; the
# caller's objects are never changed.

KEEP = object()  # returned by `replace` for an unchanged value
Replace = Callable[[Any, str], Any]
_IMMUTABLE = frozenset({type(None), bool, int, float, complex, str, bytes, range, slice})
_LEAVES = (
    *(int, float, complex, str, bytes, type, Enum),
    *(types.FunctionType, types.BuiltinFunctionType, types.ModuleType),
)
_MAX_DEPTH = 500


class Copier:
    """Copies the values of one call.

    `replace(value, path)` returns the tensor of an array, and KEEP for other values;
    `enters(kind)` tells whether objects of a class are traversed.
    """

    def __init__(self, replace: Replace, enters: Callable[[type], bool]) -> None:
        self._replace = replace
        self._enters = enters
        self._copies: dict[int, Any] = {}
        self._used_early: set[int] = set()  # used before they were complete
        self._alive: list[Any] = []
        self._depth = 0

    def value(self, value: Any, path: str) -> Any:
        """Return the value, or a copy with tensors inside. `path` is its location in the call."""
        if type(value) in _IMMUTABLE:
            return value
        copied = self._copies.get(id(value), KEEP)
        if copied is not KEEP:
            self._used_early.add(id(value))
            return copied
        replaced = self._replace(value, path)
        if replaced is not KEEP:
            return replaced
        if self._depth > _MAX_DEPTH or isinstance(value, _LEAVES):
            return value
        self._alive.append(value)  # so that its id is not reused
        self._depth += 1
        try:
            return self._inside(value, path)
        finally:
            self._depth -= 1

    def _inside(self, value: Any, path: str) -> Any:
        if isinstance(value, tuple):
            return self._tuple(value, path)
        if type(value) in (list, set, dict):
            return self._container(value, path)
        if isinstance(value, frozenset):
            return self._rebuilt(value, self._set(value, path))
        if isinstance(value, functools.partial):
            return self._partial(value, path)
        if isinstance(value, types.MethodType):
            owner = self.value(value.__self__, path)
            same = owner is value.__self__
            return value if same else types.MethodType(value.__func__, owner)
        return self._object(value, path) if self._enters(type(value)) else value

    def _tuple(self, value: tuple[Any, ...], path: str) -> Any:
        names = getattr(type(value), "_fields", None) or range(len(value))
        elements = [
            self.value(element, f"{path}.{n}") for n, element in zip(names, value, strict=True)
        ]
        if all(new is old for new, old in zip(elements, value, strict=True)):
            return value
        return tuple.__new__(type(value), elements)

    def _set(self, value: Any, path: str) -> list[Any]:
        elements = sorted(value, key=repr)  # the iteration order depends on the process
        return [self.value(element, f"{path}.{n}") for n, element in enumerate(elements)]

    def _rebuilt(self, value: Any, elements: list[Any]) -> Any:
        same = {id(element) for element in value} == {id(element) for element in elements}
        return value if same else type(value)(elements)

    def _container(self, value: Any, path: str) -> Any:
        copied = self._copies[id(value)] = type(value)()
        if isinstance(value, dict):
            for key, element in value.items():
                copied[key] = self.value(element, f"{path}.{key}")
            same = all(copied[key] is element for key, element in value.items())
        elif isinstance(value, list):
            copied.extend(self.value(element, f"{path}.{n}") for n, element in enumerate(value))
            same = all(new is old for new, old in zip(copied, value, strict=True))
        else:
            copied.update(self._set(value, path))
            same = {id(element) for element in copied} == {id(element) for element in value}
        return self._finished(value, copied, same)

    def _object(self, value: Any, path: str) -> Any:
        try:
            copied = object.__new__(type(value))
        except TypeError:  # the class is implemented in C
            return value
        self._copies[id(value)] = copied
        same = True
        for name, element in list(fields(value)):
            new = self.value(element, f"{path}.{name}")
            same = same and new is element
            object.__setattr__(copied, name, new)
        return self._finished(value, copied, same)

    def _finished(self, value: Any, copied: Any, same: bool) -> Any:
        """Return the value itself if it holds no tensor, unless it is part of a cycle."""
        if same and id(value) not in self._used_early:
            self._copies[id(value)] = value
            return value
        return copied

    def _partial(self, value: functools.partial[Any], path: str) -> Any:
        function = self.value(value.func, f"{path}.func")
        args = [self.value(argument, f"{path}.args.{n}") for n, argument in enumerate(value.args)]
        named = {k: self.value(argument, f"{path}.{k}") for k, argument in value.keywords.items()}
        pairs = [(function, value.func), *zip(args, value.args, strict=True)]
        pairs += [(argument, value.keywords[k]) for k, argument in named.items()]
        same = all(new is old for new, old in pairs)
        return value if same else functools.partial(function, *args, **named)


def fields(value: Any) -> Iterator[tuple[str, Any]]:
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                yield name, getattr(value, name)
    yield from getattr(value, "__dict__", {}).items()


# ---- A live function as a kernel to trace -------------------------------------------------------

FindSource = Callable[[CodeType, Mapping[str, Any]], SourceFile | None]


@dataclass(frozen=True)
class LiveKernel:
    """A function of the running program, and its arguments.

    `arguments` are live values by parameter; arguments that are tensors are only in the request.
    `replace(value, tensors)` returns the kernel's version of a value inside an argument, such as
    the tensor for an array, and KEEP for most values. Objects of a class that `enters` refuses are
    not traversed. `source_of` returns the file of a code object, given its global variables, or
    None for code that is not the kernel's: Python's own, frameworks, nkic.
    """

    function: FunctionType
    arguments: Mapping[str, Any]
    replace: Callable[[Any, Mapping[str, Any]], Any]
    enters: Callable[[type], bool]
    source_of: FindSource


def kernel_node(function: FunctionType, sources: Sources, parse: Parse) -> Kernel:
    """Return the definition in its source, or one synthesised from the signature."""
    code = function.__code__
    file = sources.of(code, function.__globals__)
    module = sources.module(file.path) if file is not None else None
    if module is not None:
        try:
            node = module.function_at(code.co_name, code.co_firstlineno)
        except LookupError:  # the file has changed since, or Python runs other code
            node = None
        if isinstance(node, nodes.FunctionDef):
            return Kernel(function.__name__, module, node)
    return _made_up(function, file, sources, parse)


def _made_up(
    function: FunctionType, file: SourceFile | None, sources: Sources, parse: Parse
) -> Kernel:
    code = function.__code__
    path = file.path if file is not None else code.co_filename
    text = f"def {function.__name__}{_parameters(function)}:\n    pass\n"
    source = SourceFile(path, "\n" * (code.co_firstlineno - 1) + text)
    if file is None:
        sources.allow(code, SourceFile(path, ""))
    module = sources.add_module(source, parse(source))
    node = module.tree.body[0]
    assert isinstance(node, nodes.FunctionDef)
    return Kernel(function.__name__, module, node)


def _parameters(function: FunctionType) -> str:
    """Return the signature as source, without annotations; defaults are unused numbers."""
    signature = inspect.signature(function)
    empty = inspect.Parameter.empty
    plain = [
        p.replace(annotation=empty, default=empty if p.default is empty else 0)
        for p in signature.parameters.values()
    ]
    return str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))


# ---- Restoring a kernel's variables in the Python interpreter -----------------------------------
# Beta 1 traces the body of a loop once: a number that the body changes has the same value in every
# iteration.

_PLAIN = frozenset({int, float, bool})


class Variables:
    """The variables of the kernel's functions; `places` has the current location."""

    def __init__(self, call_sites: CallSites) -> None:
        self._call_sites = call_sites

    def remember(self) -> Callable[[], Sequence[str]]:
        """Save the numbers in variables that the body of the current loop assigns.

        Returns a function that restores them and returns the names of those that had changed.
        """
        frame, names = _kernels(), self._assigned()
        local = frame.f_locals
        before = {n: local[n] for n in names if n in local and type(local[n]) in _PLAIN}

        def restore() -> Sequence[str]:
            local: Any = frame.f_locals
            changed = {name: old for name, old in before.items() if local.get(name) != old}
            if changed:
                local.update(changed)
                # Write `f_locals` back to the frame; until Python 3.13 it is a copy.
                if sys.version_info < (3, 13):
                    ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
            return tuple(changed)

        return restore

    def _assigned(self) -> tuple[str, ...]:
        span = self._call_sites.here().span
        module = self._call_sites.sources.module(span.path)
        loop = module.statement_at(span) if module is not None else None
        return scopes.loop_carried(loop.body) if isinstance(loop, nodes.For) else ()


def _kernels() -> FrameType:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("nkic."):
        frame = frame.f_back
    assert frame is not None
    return frame


# ---- `while register:` in the Python interpreter ------------------------------------------------
# Python tests the register before the body and again after it, at two instructions of the same
# expression. The first test opens the device loop and the second closes it, so that the body is
# recorded once.


class _Open(NamedTuple):
    frame: FrameType
    span: Span
    offset: int
    loop: OpenLoop


class Whiles:
    """The open `while` loops of one trace."""

    def __init__(self, trace: Trace, call_sites: CallSites) -> None:
        self._trace = trace
        self._call_sites = call_sites
        self._open: list[_Open] = []

    def decide(self, register: VirtualRegister) -> bool:
        """Return the truth of a register in a loop's test: True once, then False."""
        site = self._call_sites.testing_frame()
        node = self._node(site) if site is not None else None
        if site is None or node is None:
            register._refuse_decision()
        last = self._open[-1] if self._open else None
        if last is None or (last.frame, last.span) != (site.frame, site.span):
            versions.warn("a `while` loop over a register", versions.DYNAMIC_WHILE)
            self._open.append(_Open(site.frame, site.span, site.offset, register.open()))
            return True
        if last.offset == site.offset and not _only_continues(node):
            raise KernelError(
                "device-loop-misuse",
                "this device loop was left before its end, or its body has `continue`",
                help="write the body as a function, for nl.while_loop(register, body)",
            )
        self._open.pop()
        self._trace.close_loop(last.loop)
        return False

    def _node(self, site: CallSite) -> nodes.While | None:
        """Return the `while` statement whose test is at a location."""
        module = self._call_sites.sources.module(site.span.path)
        node = module.statement_at(site.span) if module is not None else None
        if not isinstance(node, nodes.While) or node.test.span != site.span:
            return None
        return None if isinstance(node.test, nodes.BoolOp | nodes.UnaryOp) else node


def _only_continues(node: nodes.While) -> bool:
    """Return whether the body has `continue`, and no other statement that leaves it early."""
    kinds = set(map(type, nodes_in_scope(node.body)))
    return nodes.Continue in kinds and not kinds & {nodes.Break, nodes.Return, nodes.Try}


def left_early(head: Span, call_sites: CallSites) -> KernelError:
    """Return the error for a device loop at `head` that was left early."""
    for keyword, node in _statements_leaving(head, call_sites):
        return left_by(keyword, node.span)
    text = "an exception cannot leave a loop that runs on the device"
    help = "catch it inside the loop's body"
    return KernelError("device-loop-misuse", text, help=help, span=head)


def returned(head: Span, call_sites: CallSites) -> KernelError | None:
    """Return the error for a `return` in a loop of Beta 1 at `head`, or None if there is none."""
    for keyword, node in _statements_leaving(head, call_sites):
        if keyword == "return":
            text = (
                "`return` inside of a loop whose body is traced once ends the function after all "
                "iterations; Python ends it in the first one"
            )
            help = "write it after the loop, or compile the file from the command line"
            return KernelError("device-loop-misuse", text, help=help, span=node.span)
    return None


def _statements_leaving(head: Span, call_sites: CallSites) -> Iterator[tuple[str, nodes.Node]]:
    """Yield the statements that leave the loop at `head`, with their keywords."""
    module = call_sites.sources.module(head.path)
    loop = module.statement_at(head) if module is not None else None
    for statement in loop.body if isinstance(loop, nodes.For | nodes.While) else ():
        yield from _leaving(statement)


def _leaving(node: nodes.Node, is_inside: bool = False) -> Iterator[tuple[str, nodes.Node]]:
    """Yield the statements of a loop's body that leave it, except `break` in nested loops."""
    if isinstance(node, nodes.Return):
        yield "return", node
    elif isinstance(node, nodes.Break) and not is_inside:
        yield "break", node
    elif not isinstance(node, nodes.FunctionDef | nodes.ClassDef | nodes.Lambda):
        is_loop = isinstance(node, nodes.For | nodes.While)
        for child in children(node):
            yield from _leaving(child, is_inside or is_loop)


# ------------------------------------------------------------------------------------------------
# Conversion of errors in traced kernels to diagnostics, and tracebacks without nkic's frames.


def explain(error: KernelError, call_sites: CallSites, resolved: Resolved) -> Diagnostic:
    sites = call_sites.of(error.__traceback__)
    user_sites = [site for site in sites if not site.span.path.startswith(SHIPPED)] or sites
    span = error.span or _span(error, user_sites, call_sites, resolved)
    calls = [site.span for site in user_sites[0 if error.span is not None else 1 :]]
    labels = [Label(at, "called from here") for at in shortened(calls)]
    module = call_sites.sources.module(span.path)
    source = module.source if module is not None else None
    return make(
        error.slug,
        error.message,
        span if span != NOWHERE else None,
        labels=[*error.labels, *loop_context(user_sites[:MAX_CALLS], call_sites), *labels],
        notes=error.notes,
        help=error.help,
        fixes=respelt(error.help, source, span),
    )


def follows(error: KernelError, report: Reporter) -> bool:
    """Return whether a function of nkic failed because a call in it was refused, and reported."""
    frames = (frame for frame, _ in walk_tb(error.__traceback__))
    inside = (f for f in frames if str(f.f_globals.get("__name__", "")).startswith("nkic."))
    return bool(report.errors) and any(has_failed(v) for f in inside for v in f.f_locals.values())


def _span(
    error: KernelError, sites: list[CallSite], call_sites: CallSites, resolved: Resolved
) -> Span:
    if not sites:
        return NOWHERE
    if not error.argument:
        return sites[0].span
    return resolved.locate(call_sites.chain_of([sites[0].span]), error.argument, error.position)


def loop_context(sites: list[CallSite], call_sites: CallSites) -> list[Label]:
    """Return ``here `i` is 3`` for the loops around the locations, outermost first."""
    return [label for site in sites for label in _loop_context(site, call_sites)]


def _loop_context(site: CallSite, call_sites: CallSites) -> Iterator[Label]:
    module = call_sites.sources.module(site.span.path)
    local = site.frame.f_locals
    for loop in module.loops_around(site.span) if module is not None else ():
        yield from loop_values(loop, local, brief)


def user_traceback(traceback: TracebackType | None) -> TracebackType | None:
    """Return a traceback without nkic's frames."""
    entries: list[TracebackType] = []
    while traceback is not None:
        name = str(traceback.tb_frame.f_globals.get("__name__", ""))
        if name != "nkic" and not name.startswith("nkic."):
            entries.append(traceback)
        traceback = traceback.tb_next
    result: TracebackType | None = None
    for entry in reversed(entries):
        result = TracebackType(result, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return result


# ------------------------------------------------------------------------------------------------
# The modules of NKI for traced kernels, with the standard library executed by Python.

Spaces = Mapping[str, Namespace]


@cache
def spaces(profile: Profile) -> Spaces:
    """Return every module by name. They hold no state of a kernel, so all traces share them."""
    functions = _Library(lambda: modules)
    modules = provide.namespaces(profile, functions.load, NKIObject)
    return modules


class _Placeholder:
    """A placeholder for a library name until all of its files are executed."""

    def __init__(self, name: str) -> None:
        self.name = name


class _Library:
    """Executes the files of the standard library, which is nkic's own code."""

    def __init__(self, spaces: Callable[[], Spaces]) -> None:
        self._spaces = spaces
        self._functions: dict[str, Any] = {}

    def load(self, file: SourceFile, name: str) -> Callable[..., Any]:
        if not self._functions:
            self._execute()
        function: Callable[..., Any] = self._functions[name]
        return function

    def _execute(self) -> None:
        namespace = {**vars(builtins), "__import__": self._import}
        files = dict.fromkeys(library.sources().values())
        globals_of = {
            file: {"__name__": library.MODULE, "__builtins__": namespace} for file in files
        }
        for file, space in globals_of.items():
            exec(compile(file.text, file.path, "exec", dont_inherit=True), space)
        functions = {name: globals_of[file][name] for name, file in library.sources().items()}
        members = {**vars(self._spaces()[library.MODULE]), **functions}
        for space in globals_of.values():
            later = {n: members[v.name] for n, v in space.items() if isinstance(v, _Placeholder)}
            space.update(later)
        self._functions.update(functions)

    def _import(
        self,
        name: str,
        space: Any = None,
        local: Any = None,
        fromlist: Sequence[str] | None = None,
        level: int = 0,
    ) -> Any:
        """`import` in the library: NKI, the library itself, or Python's own modules."""
        if name == library.MODULE:
            return SimpleNamespace(**{member: _Placeholder(member) for member in fromlist or ()})
        modules = self._spaces()
        if name not in modules:
            return builtins.__import__(name, space, local, fromlist or (), level)
        if fromlist:
            return modules[name]
        inner = {n.partition(".")[2]: s for n, s in modules.items() if n.startswith("nki.")}
        return SimpleNamespace(**{n: s for n, s in inner.items() if "." not in n})


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
    with tracing(tracer.trace), recording(node, report):
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
        trace.loop_context = lambda: loop_context(
            self.call_sites.in_user_files(MAX_CALLS), self.call_sites
        )
        trace.iterations = self.call_sites.iterations
        trace.decide = Whiles(trace, self.call_sites).decide
        trace.remember = Variables(self.call_sites).remember

    def program(self) -> Program:
        trace, request, node = self.trace, self.request, self.resolved.kernel
        annotations = _annotations(self.kernel.function, node)
        bound = bind(node, request, self.report, annotations, called=True)
        inputs = declare_inputs(bound, request, trace, node)
        outputs = Outputs(trace, inputs, node)
        order = Ordering(node, self.report)
        order.read((), request.schedule)
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
            if isinstance(error, KernelError) and not follows(error, self.report):
                self.report.add(explain(error, self.call_sites, self.resolved))
            failed = CompileFailed(self.report.all)
            failed.frames = user_traceback(error.__traceback__)
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
