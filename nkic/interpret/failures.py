"""Turn an exception that ended a kernel into one diagnostic that names the place and the reason.

The place is the innermost frame of the user's own source; every call that led there is a label. The
values of the names in the failing expression are shown as notes.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from nkic.base.device import SECOND_WAY, KernelError
from nkic.base.diagnostics import Diagnostic, Label, did_you_mean, make, respelt
from nkic.base.source import NOWHERE, SHIPPED, SourceFile, Span
from nkic.interpret import attributes, exceptions
from nkic.interpret.classes import TypingForm, is_languages, parameters, passed_on
from nkic.interpret.machine import Machine
from nkic.interpret.modules import ModuleBody, ModuleValue, OpaqueImport
from nkic.interpret.objects import (
    Builtin,
    Class,
    ErrorInstance,
    Frame,
    Function,
    HostFunction,
    Instance,
    Method,
    Refused,
)
from nkic.interpret.texts import brief
from nkic.source import bindings, nodes
from nkic.source.bindings import Resolved, SourceModule
from nkic.source.nodes import walk

MAX_CALLS = 8  # the most calls of a chain that are examined
_MAX_SHOWN = 4  # the most values, or notes, that are shown
_LOOP_VALUES = (int, float, str, type(None))


class _Reason(NamedTuple):
    """The slug, message and advice for an exception."""

    slug: str
    message: str
    help: str = ""
    argument: str = ""  # the argument of the failing call that the message points at


class ActiveNode(NamedTuple):
    """A frame of the kernel and the node that it was evaluating."""

    frame: Frame
    node: nodes.Node

    @property
    def span(self) -> Span:
        return self.node.span

    @property
    def body(self) -> Any:
        """The owner of the frame: a function, a class body or a module."""
        return self.frame[2]

    def locals(self) -> dict[str, Any]:
        code = getattr(self.body, "code", None)
        return code.locals(self.frame) if code is not None else {}


class Failure:
    """An exception and the kernel's frames that it passed through."""

    def __init__(self, error: BaseException, machine: Machine, resolved: Resolved) -> None:
        self.error = error
        self.machine = machine
        self.resolved = resolved
        frames = getattr(error, "nkic_frames", [])
        self.places = [ActiveNode(frame, node) for frame, node in frames]
        user_places = [p for p in self.places if not p.span.path.startswith(SHIPPED)]
        self.own = user_places or self.places

    @property
    def inner(self) -> ActiveNode | None:
        """The innermost frame of the user's own source."""
        return self.own[0] if self.own else None

    @property
    def span(self) -> Span:
        return self.own[0].span if self.own else NOWHERE

    @property
    def while_importing(self) -> bool:
        """Whether the failing statement is at module level, run at the first use of its name."""
        return self.inner is not None and isinstance(self.inner.body, ModuleBody)

    def module(self) -> SourceModule | None:
        return self.resolved.library.modules.get(self.span.path)

    def source(self, span: Span) -> SourceFile | None:
        module = self.resolved.library.modules.get(span.path)
        return module.source if module else None

    def text(self, span: Span) -> str:
        source = self.source(span)
        return " ".join(source.text_of(span).split()) if source else ""

    def call(self) -> nodes.Call | None:
        """Return the failing call, if the failing node is a call."""
        node = self.inner.node if self.inner is not None else None
        return node if isinstance(node, nodes.Call) else None

    def statement(self) -> nodes.Statement | None:
        if self.inner is not None and isinstance(self.inner.node, nodes.Raise | nodes.Assert):
            return self.inner.node
        module = self.module()
        return module.statement_at(self.span) if module else None

    def kind(self) -> str:
        """Return the name of the exception's class."""
        return _name_of(self.error)

    def message(self) -> str:
        """Return the text of the exception, whatever its `__str__` does."""
        if not isinstance(self.error, ErrorInstance):
            return str(self.error)
        try:
            return self.machine.str(self.error)
        except Exception as error:
            return f"its `__str__` failed with {_name_of(error)}"

    def is_a(self, name: str) -> bool:
        """Whether the exception is an instance of the Python exception class of that name."""
        return exceptions.is_a(self.machine, self.error, name)


def _name_of(error: BaseException) -> str:
    return error.cls.name if isinstance(error, ErrorInstance) else type(error).__name__


def follows(failure: Failure) -> bool:
    """Return whether the exception follows from a call that was refused, and reported: the failing
    expression, or a function of nkic's own that it calls, has its result.
    """
    refused = failure.machine.refused
    named = (n for n in _expressions(failure) if isinstance(n, nodes.Name | nodes.Attribute))
    values = [value for node in named for value in _computed(failure, node)]
    for place in failure.places:
        if place is failure.inner:
            break
        values += place.locals().values()
    return any(isinstance(value, refused) for value in values)


def explain(failure: Failure) -> Diagnostic:
    """Return the diagnostic for an exception that ended the evaluation of a kernel."""
    error = failure.error
    reason = _reason(failure)
    span = _span(failure, reason)
    kernel_error = error if isinstance(error, KernelError) else None
    # The error's own span replaces the innermost frame.
    moved = kernel_error is not None and kernel_error.span is not None
    calls = [caller_node.span for caller_node in failure.own[0 if moved else 1 :]]
    labels = [Label(caller_span, "called from here") for caller_span in shortened(calls)]
    if labels and (failure.while_importing or (moved and not isinstance(error, Refused))):
        labels[0] = replace(labels[0], text="used here")
    return make(
        reason.slug,
        reason.message,
        span if span != NOWHERE else failure.resolved.kernel.node.name_span,
        labels=[
            *(kernel_error.labels if kernel_error else ()),
            *iterations_of(failure.own[:MAX_CALLS], failure.resolved),
            *labels,
        ],
        notes=[
            *(kernel_error.notes if kernel_error else ()),
            *_values(failure, reason.slug),
            *_notes(failure),
            *_second_way(failure, reason),
        ],
        help=reason.help,
        fixes=respelt(reason.help, failure.source(span), span),
    )


# Errors about Python features that the closed world lacks, by slug and by message.
_UNSUPPORTED = frozenset({"hidden-attribute", "host-module", "not-in-nki"})
_UNSUPPORTED_TEXT = re.compile(
    "'DType' object is not callable|`numpy` has no|@: '\\w+' and 'ndarray'"
)


def _second_way(failure: Failure, reason: _Reason) -> list[str]:
    """Point at native tracing, which supports the Python features that the closed world lacks."""
    name = getattr(failure.error, "name", None)
    builtin = reason.slug == "unknown-name" and hasattr(builtins, str(name))
    if builtin or reason.slug in _UNSUPPORTED or _UNSUPPORTED_TEXT.search(reason.message):
        return [SECOND_WAY]
    return []


def _notes(failure: Failure) -> list[str]:
    fields = failure.error.fields if isinstance(failure.error, ErrorInstance) else {}
    return [note for note in fields.get("__notes__", []) if isinstance(note, str)][:_MAX_SHOWN]


def shortened(calls: list[Span]) -> list[Span]:
    """Return the nearest and the outermost calls of a long chain."""
    spans = [span for span in dict.fromkeys(calls) if span != NOWHERE]  # recursion repeats spans
    return spans if len(spans) <= MAX_CALLS else [*spans[: MAX_CALLS - 2], *spans[-2:]]


def _span(failure: Failure, reason: _Reason) -> Span:
    error, call = failure.error, failure.call()
    if isinstance(error, KernelError) and error.span is not None:
        return error.span
    argument, position = reason.argument, None
    if isinstance(error, KernelError) and error.argument:
        argument, position = error.argument, error.position
    if argument and call is not None:
        return (bindings.argument_of(call, argument, position) or call).span
    return failure.span


# ---- iterations of loops ------------------------------------------------------------------------


def iterations_of(places: list[ActiveNode], resolved: Resolved) -> list[Label]:
    """Return a label such as ``here `i` is 3` for every loop around the places, outermost first."""
    labels: list[Label] = []
    for active in places:
        module = resolved.library.modules.get(active.span.path)
        local = active.locals()
        for loop in module.loops_around(active.span) if module is not None else ():
            labels += loop_values(loop, local, partial(brief, None))
    return labels


def loop_values(
    loop: nodes.For, local: Mapping[str, Any], show: Callable[[Any], str]
) -> Iterator[Label]:
    """Yield the values of a loop's variables that are numbers, text or None."""
    targets = [node.id for node in walk(loop.target) if isinstance(node, nodes.Name)]
    values = {name: local[name] for name in targets if name in local}
    shown = [f"`{name}` is {show(v)}" for name, v in values.items() if _is_plain(v)]
    if shown:
        yield Label(loop.target.span, f"here {', '.join(shown)}")


def _is_plain(value: Any) -> bool:
    return value.__class__ in _LOOP_VALUES or value.__class__ is bool


# ---- messages by kind of exception --------------------------------------------------------------


def _reason(failure: Failure) -> _Reason:
    error = failure.error
    if isinstance(error, KernelError):
        return _Reason(error.slug, error.message, error.help)
    if isinstance(error, RecursionError):
        depth = failure.machine.limits.depth
        return _Reason(
            "too-deep",
            f"functions call each other to a depth of more than about {depth}",
            "check that the recursion ends, or use a loop",
        )
    if isinstance(error, MemoryError):
        text = "the value does not fit in memory"
        return _Reason("too-large", text, "use smaller lists and strings")
    if isinstance(failure.statement(), nodes.Raise):
        return _raised(failure)
    for name, explainer in _EXPLAINERS:
        if failure.is_a(name):
            return explainer(failure)
    return _raised(failure)


def _raised(failure: Failure) -> _Reason:
    """Explain an exception that the kernel raised, or a kind without its own entry in the table."""
    name, text = failure.kind(), failure.message()
    slug = "kernel-raised" if isinstance(failure.statement(), nodes.Raise) else "wrong-value"
    return _Reason(slug, f"{name}: {text}" if text else name)


def _assertion(failure: Failure) -> _Reason:
    node, text = failure.statement(), failure.message()
    if not isinstance(node, nodes.Assert):
        return _raised(failure)
    test = failure.text(node.test.span)
    return _Reason("assertion-failed", text or f"assertion failed: {test}")


def _python_message(slug: str) -> Callable[[Failure], _Reason]:
    """Explain an exception by Python's own message."""

    def explain_by_message(failure: Failure) -> _Reason:
        text = failure.message().partition("; use sys.")[0] or "the operation failed"
        advices = (advice for pattern, advice in _ADVICE if re.search(pattern, text))
        return _Reason(slug, text, next(advices, ""))

    return explain_by_message


def _name_error(failure: Failure) -> _Reason:
    error: Any = failure.error
    text = failure.message()
    name = getattr(error, "name", None) or [*text.split("'"), "?"][1]
    if failure.is_a("UnboundLocalError"):
        text = f"`{name}` is used before it has a value"
        return _Reason("unset-variable", text, "assign a value to it on every path that leads here")
    refused = bindings.REFUSED_BUILTINS.get(name)
    if refused:
        return _Reason("unknown-name", f"`{name}` is not available", refused)
    advice = bindings.customary(name) or did_you_mean(name, _visible(failure))
    return _Reason("unknown-name", f"`{name}` is not defined", advice)


def _visible(failure: Failure) -> list[str]:
    if failure.inner is None:
        return []
    runtime = failure.inner.body.runtime
    visible = [*failure.inner.locals(), *runtime.module.bindings, *failure.machine.builtins]
    return [name for name in (*visible, *runtime.starred_names()) if not name.startswith(".")]


def _key_error(failure: Failure) -> _Reason:
    key = failure.error.args[0] if failure.error.args else None
    owner = next((o for o in _owners(failure) if isinstance(o, dict)), None)
    m = failure.machine
    keys = ", ".join(brief(m, other) for other in list(owner)[:8]) if owner is not None else ""
    suffix = f"; it has {keys}" if keys else ""
    texts = [k for k in owner or () if isinstance(k, str)]
    suggestion = did_you_mean(key, texts) if isinstance(key, str) else ""
    return _Reason("wrong-index", f"the dict has no key {brief(m, key)}{suffix}", suggestion)


def _index_error(failure: Failure) -> _Reason:
    owner = next((o for o in _owners(failure) if isinstance(o, list | tuple | str)), None)
    size = f"; its length is {len(owner)}" if owner is not None else ""
    return _Reason("wrong-index", f"{failure.message()}{size}")


def _owners(failure: Failure) -> Iterator[Any]:
    """Yield the values that are subscripted in the failing expression."""
    for node in _expressions(failure):
        if isinstance(node, nodes.Subscript):
            yield from _computed(failure, node.value)


_ADVICE = [
    ("'NkiInstruction'", "an instruction does not return a tensor: use the dst that it wrote"),
    ("NoneType", attributes.NONE_ADVICE),
    (
        "'DType' object is not callable",
        "a dtype is passed as it is; `float(x)` converts a number, `nl.copy(t, dtype=…)` a tile",
    ),
    (
        "non-iterable int object",
        "it is one number; a tensor's sizes are in its `shape`, and `range(n)` counts",
    ),
    (
        "'int' object is not callable",
        "remove the parentheses: it is a number; a tensor's sizes are in its `shape`",
    ),
    ("object is not callable", "remove the parentheses: it is a value"),
    ("can only concatenate|unsupported .*'str'", 'put values into text with f"{value}"'),
    ("not enough values|too many values", "compare the number of values with the targets"),
    ("division by zero|division or modulo", "test for 0 with an `if`"),
    ("'float' object cannot be interpreted", "use `//` for whole numbers"),
]
_NO_SUCH = re.compile(r"got an unexpected keyword argument '(\w+)'")
_WRONG_CALL = re.compile(r"(missing|takes) .*argument|got (an unexpected keyword|multiple values)")


def _type_error(failure: Failure) -> _Reason:
    """Explain a type error; if the arguments of a call do not match, list the parameters."""
    reason = _python_message("wrong-type")(failure)
    text = re.sub(r"^\S*<locals>\.", "", reason.message)
    reason = reason._replace(message=text)
    call = failure.call()
    if call is None or not _WRONG_CALL.search(reason.message):
        return reason
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    values = [value for argument in arguments for value in _computed(failure, argument)]
    lambdas = any(isinstance(argument, nodes.Lambda) for argument in arguments)
    if (callee := passed_on(text, values, lambdas)) is not None:
        advice = f"`{callee}` is called by the function it is passed to: accept these arguments"
        return _Reason("wrong-call", text, advice)
    function = next(_computed(failure, call.func), None)
    owner = function.function if isinstance(function, Method) else function
    if owner is not None and _is_librarys(owner):
        name = owner.name.rpartition(".")[2]
        text = f"`{name}` is called with the wrong number or names of arguments"
        return reason._replace(message=text)
    parameter_names = parameters(function)
    if parameter_names is None:
        return reason._replace(slug="wrong-call") if is_languages(owner) else reason
    unknown = _NO_SUCH.search(text)
    suggestion = did_you_mean(unknown[1], parameter_names) if unknown else ""
    listed = ", ".join(parameter_names)
    help = suggestion or f"its parameters are {listed or 'none'}"
    return _Reason("wrong-call", text, help, unknown[1] if unknown else "")


def _is_librarys(function: Any) -> bool:
    if isinstance(function, Builtin):
        return function.call.__module__.startswith("nkic.interpret")
    return isinstance(function, Function) and function.runtime.is_library


def _saying(slug: str, text: str, advice: str) -> Callable[[Failure], _Reason]:
    """Explain an exception by a text that may hold its message."""
    return lambda failure: _Reason(slug, text.replace("{}", failure.message()), advice)


_EXPLAINERS: list[tuple[str, Callable[[Failure], _Reason]]] = [
    ("AssertionError", _assertion),
    ("NameError", _name_error),
    (
        "FrozenInstanceError",
        _saying(
            "wrong-value",
            "{}: its class is frozen",
            "make a changed copy: `dataclasses.replace(value, name=…)`",
        ),
    ),
    ("AttributeError", _python_message("unknown-attribute")),
    ("KeyError", _key_error),
    ("IndexError", _index_error),
    (
        "ImportError",
        _saying("import-failed", "{}", "check the name, or add its folder with `--include`"),
    ),
    ("TypeError", _type_error),
    (
        "StopIteration",
        _saying(
            "wrong-value",
            "`next` was called when no elements were left",
            "give it a default: `next(elements, None)`",
        ),
    ),
    ("ArithmeticError", _python_message("wrong-value")),
    ("ValueError", _python_message("wrong-value")),
]


# ---- values -------------------------------------------------------------------------------------

_WITH_VALUES = frozenset({"assertion-failed", "wrong-index", "wrong-value", "wrong-type"})
_MODULES = (attributes.Provided, ModuleValue, OpaqueImport)
_NOT_SHOWN = (Class, Function, Builtin, HostFunction, Method, *_MODULES, TypingForm)


def _values(failure: Failure, slug: str) -> list[str]:
    """Return notes such as ``n` is 7` for the names and attributes in the failing expression."""
    if slug not in _WITH_VALUES:
        return []
    notes: dict[str, None] = {}
    expressions = _expressions(failure)
    owners = {id(node.value) for node in expressions if isinstance(node, nodes.Attribute)}
    for node in expressions:
        if isinstance(node, nodes.Name | nodes.Attribute) and id(node) not in owners:
            notes |= dict.fromkeys(_note(failure, node))
    return list(notes)[:_MAX_SHOWN]


def _note(failure: Failure, node: nodes.Name | nodes.Attribute) -> Iterator[str]:
    machine = failure.machine
    for value in _computed(failure, node):
        if isinstance(value, _NOT_SHOWN) or machine.is_quiet(value):
            continue
        yield f"`{failure.text(node.span)}` is {brief(machine, value)}"


def _expressions(failure: Failure) -> list[nodes.Node]:
    """Return the nodes of the failing expression; of an assertion, those of its test."""
    node = failure.statement()
    if isinstance(node, nodes.Assert):
        return list(walk(node.test))
    return list(walk(failure.inner.node)) if failure.inner is not None else []


def _computed(failure: Failure, node: nodes.Expression) -> Iterator[Any]:
    """Yield the value of a name, or of an attribute path, in the failing frame, if it is set."""
    path: list[str] = []
    while isinstance(node, nodes.Attribute):
        path.insert(0, node.attr)
        node = node.value
    if not isinstance(node, nodes.Name) or any(map(bindings.is_hidden, path)):
        return
    inner = failure.inner
    variables = {**inner.body.globals, **inner.locals()} if inner is not None else {}
    if node.id not in variables:
        return
    value = variables[node.id]
    try:
        for name in path:
            if isinstance(value, Instance) and name not in value.fields:
                return  # reading a property may have side effects
            value = attributes.get(failure.machine, value, name)
    except Exception:  # a property that raises has no value to show
        return
    yield value
