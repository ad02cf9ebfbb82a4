"""From an exception that a kernel raised to one diagnostic that says where and why.

The place is the innermost frame of the user's own source; every call that led there is a
label. Values that the failing expression names are shown as they were.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import FrozenInstanceError, replace
from traceback import walk_tb
from types import CodeType, FrameType
from typing import Any, NamedTuple

from nkic.base.diagnostics import Diagnostic, Label, make
from nkic.base.source import NOWHERE, SHIPPED, CallChain, SourceFile, Span
from nkic.base.suggest import did_you_mean, respelt
from nkic.machine.dtypes import DType
from nkic.machine.memory import Buffer
from nkic.specialise import location
from nkic.specialise.budget import Budget
from nkic.specialise.errors import KernelError
from nkic.specialise.guards import KernelValue
from nkic.specialise.location import Place
from nkic.specialise.modules import Lazy
from nkic.specialise.namespace import HostValue, Namespace
from nkic.specialise.scope import Refused
from nkic.specialise.texts import brief
from nkic.specialise.turns import CALLS, turns
from nkic.syntax import names, nodes
from nkic.syntax.bindings import Resolved, SourceModule, primary
from nkic.syntax.walk import walk

_NAMED = 4  # values


class _Said(NamedTuple):
    """What a kind of exception has to say."""

    slug: str
    message: str
    help: str = ""
    argument: str = ""  # of the call that fails: then the message points there


class Failure(NamedTuple):
    """An exception with the kernel frames it passed."""

    error: BaseException
    found: list[Place]
    resolved: Resolved
    budget: Budget

    @property
    def chain(self) -> CallChain:
        """The calls, from the innermost place in the user's own source."""
        return primary(location.chain_of(self.found))

    @property
    def inner(self) -> Place | None:
        """The innermost frame of the user's own source."""
        own = (p for p in self.found if not p.span.path.startswith(SHIPPED))
        return next(own, self.found[0] if self.found else None)

    @property
    def while_importing(self) -> bool:
        """The failing statement is one of module level, evaluated when its name was used."""
        return self.inner is not None and self.inner.frame.f_code.co_name == "<module>"

    def module(self) -> SourceModule | None:
        """The module of that frame."""
        return self.resolved.library.modules.get(self.chain.span.path)

    def source(self, span: Span) -> SourceFile | None:
        """The file of a span."""
        module = self.resolved.library.modules.get(span.path)
        return module.source if module else None

    def text(self, span: Span) -> str:
        """The source under a span, on one line."""
        source = self.source(span)
        return " ".join(source.text_of(span).split()) if source else ""


def is_ours(error: BaseException) -> bool:
    """The exception speaks of the kernel: it was raised by kernel code or by one of our checks.

    Others come from deeper inside our own functions: a defect of ours, not the kernel's.
    """
    if isinstance(error, KernelError | RecursionError | MemoryError | StopIteration):
        return True
    own = True
    for frame, _ in walk_tb(error.__traceback__):
        if location.is_kernel_code(frame.f_code):
            own = True
        else:
            module = str(frame.f_globals.get("__name__", ""))
            own = own and (module in _LANGUAGE or not module.startswith("nkic."))
    return own


_LANGUAGE = frozenset(
    f"nkic.specialise.{name}"
    for name in [
        *("guards", "methods", "builtins", "texts", "kernel_sets", "objects", "libraries"),
        *("modules", "namespace", "kinds", "nesting", "kernel_enums"),
    ]
)


def explain(error: BaseException, resolved: Resolved, budget: Budget) -> Diagnostic:
    """The diagnostic for an exception that ended the evaluation of a kernel."""
    failure = Failure(error, location.places(error.__traceback__), resolved, budget)
    said = _said(failure)
    chain = failure.chain
    span = _span(failure, chain, said)
    given = error if isinstance(error, KernelError) else None
    moved = given is not None and given.span is not None  # away from the innermost call
    calls = chain.user_frames()[0 if moved else 1 :]
    labels = [Label(caller, "called from here") for caller in _shortened(calls)]
    if labels and (failure.while_importing or (moved and not isinstance(error, Refused))):
        labels[0] = replace(labels[0], text="used here")
    return make(
        said.slug,
        said.message,
        span if span != NOWHERE else None,
        labels=[*(given.labels if given else ()), *_turns(failure), *labels],
        notes=[*(given.notes if given else ()), *_values(failure, said.slug)],
        help=said.help,
        fixes=respelt(said.help, failure.source(span), span),
    )


def _turns(failure: Failure) -> list[Label]:
    """The turns of the loops around the place and around the nearest calls."""
    modules = failure.resolved.library.modules
    own = [place for place in failure.found if not place.span.path.startswith(SHIPPED)]
    nearest = ((modules.get(p.span.path), p.frame, p.span) for p in own[:CALLS])
    return [label for place in nearest for label in turns(*place)]


def _shortened(calls: list[Span]) -> list[Span]:
    """The nearest and the first calls of a long chain."""
    found = [span for span in dict.fromkeys(calls) if span != NOWHERE]  # once, if it recurs
    return found if len(found) <= CALLS else [*found[: CALLS - 2], *found[-2:]]


def _span(failure: Failure, chain: CallChain, said: _Said) -> Span:
    error = failure.error
    if isinstance(error, KernelError) and error.span is not None:
        return error.span
    if isinstance(error, KernelError) and error.argument:
        return failure.resolved.locate(chain, error.argument, error.position)
    if said.argument:
        return failure.resolved.locate(chain, said.argument)
    call = failure.resolved.call_at(chain)
    return call.span if call is not None else chain.span


# ---- what to say --------------------------------------------------------------------------------


def _said(failure: Failure) -> _Said:
    error = failure.error
    if failure.budget.spent:
        return _runaway(failure)
    if isinstance(error, KernelError):
        return _Said(error.slug, error.message, error.help)
    for kind, say in _SAY:
        if isinstance(error, kind):
            return say(failure)
    return _raised(failure)


def _runaway(failure: Failure) -> _Said:
    steps = failure.budget.limits.steps
    return _Said(
        "runaway",
        f"the kernel is still not evaluated after {steps:,} steps "
        "(calls, turns of loops, instructions)",
        "check that the loop ends; loops over data belong on the device: `nl.fori_loop`",
    )


def _statement(failure: Failure) -> nodes.Statement | None:
    module = failure.module()
    return module.statement_at(failure.chain.span) if module else None


def _assertion(failure: Failure) -> _Said:
    node, text = _statement(failure), str(failure.error)
    if not isinstance(node, nodes.Assert):
        return _raised(failure)
    test = failure.text(node.test.span)
    return _Said("assertion-failed", text or f"assertion failed: {test}")


def _raised(failure: Failure) -> _Said:
    """An exception that the kernel raised itself, or one without words of its own here."""
    name, text = type(failure.error).__name__, str(failure.error)
    slug = "kernel-raised" if isinstance(_statement(failure), nodes.Raise) else "wrong-value"
    return _Said(slug, f"{name}: {text}" if text else name)


def _unless_raised(slug: str) -> Callable[[Failure], _Said]:
    """Python's own message, unless the kernel has a `raise` there."""

    def say(failure: Failure) -> _Said:
        if isinstance(_statement(failure), nodes.Raise):
            return _raised(failure)
        return _with_advice(_Said(slug, _sentence(str(failure.error))))

    return say


def _sentence(text: str) -> str:
    """Python's message, without what it says of our own functions and of Python's settings."""
    ours = _OUR_FUNCTION.match(text)
    if ours:
        return f"`{ours[1]}` is called with the wrong number or names of arguments"
    return text.partition("; use sys.")[0] or "the operation failed"


_OUR_FUNCTION = re.compile(r"(?:Builtins|Guards|Texts)\.(\w+?)_?\(\)")


def _name_error(failure: Failure) -> _Said:
    error = failure.error
    if isinstance(error, UnboundLocalError):
        text = f"`{error.name or _quoted(error)}` is used before it has a value"
        return _Said("unset-variable", text, "give it a value on every way that leads here")
    name = getattr(error, "name", None) or _quoted(error)
    refused = names.REFUSED_BUILTINS.get(name)
    if refused:
        return _Said("unknown-name", f"`{name}` is not available", refused)
    advice = names.customary(name) or did_you_mean(name, _visible(failure))
    return _Said("unknown-name", f"`{name}` is not defined", advice)


def _quoted(error: BaseException) -> str:
    return [*str(error).split("'"), "?"][1]


def _visible(failure: Failure) -> list[str]:
    if failure.inner is None:
        return []
    frame = failure.inner.frame
    module = failure.module()
    known = [*frame.f_locals, *(module.bindings if module else ()), *names.BUILTINS]
    known += frame.f_builtins.starred() if isinstance(frame.f_builtins, Lazy) else []
    return [name for name in known if not name.startswith("@")]


def _attribute_error(failure: Failure) -> _Said:
    error = failure.error
    assert isinstance(error, AttributeError)
    if error.name is None or isinstance(_statement(failure), nodes.Raise):
        return _unless_raised("unknown-attribute")(failure)
    owner = error.obj
    kind = f"`{owner.__name__}`" if isinstance(owner, type) else f"a `{type(owner).__name__}`"
    if owner is None:
        return _Said("unknown-attribute", f"None has no attribute `{error.name}`", _NONE)
    known = [name for name in dir(owner) if not name.startswith("_")]
    advice = did_you_mean(error.name, known)
    return _Said("unknown-attribute", f"{kind} has no attribute `{error.name}`", advice)


def _frozen(failure: Failure) -> _Said:
    advice = "make a changed copy: `dataclasses.replace(value, name=…)`"
    return _Said("wrong-value", f"{failure.error}: its class is frozen", advice)


def _key_error(failure: Failure) -> _Said:
    if isinstance(_statement(failure), nodes.Raise):
        return _raised(failure)
    key = failure.error.args[0] if failure.error.args else None
    owner = next((o for o in _owners(failure) if isinstance(o, dict) and key not in o), None)
    keys = ", ".join(brief(known) for known in list(owner)[:8]) if owner is not None else ""
    more = f"; it has {keys}" if keys else ""
    near = (
        did_you_mean(key, [k for k in owner or () if isinstance(k, str)])
        if (isinstance(key, str))
        else ""
    )
    return _Said("wrong-index", f"the dict has no key {brief(key)}{more}", near)


def _index_error(failure: Failure) -> _Said:
    if isinstance(_statement(failure), nodes.Raise):
        return _raised(failure)
    owner = next((o for o in _owners(failure) if isinstance(o, list | tuple | str)), None)
    size = f"; its length is {len(owner)}" if owner is not None else ""
    return _Said("wrong-index", f"{failure.error}{size}")


def _owners(failure: Failure) -> Iterator[Any]:
    """The values that are subscripted in the failing expression."""
    for node in _expressions(failure):
        if isinstance(node, nodes.Subscript):
            yield from _computed(failure, node.value)


def _recursion(failure: Failure) -> _Said:
    depth = failure.budget.limits.depth
    return _Said(
        "too-deep",
        f"functions call each other more than about {depth} levels deep",
        "check that the recursion ends, or use a loop",
    )


def _exhausted(failure: Failure) -> _Said:
    text = "`next` asks for more elements than there are"
    return _Said("wrong-value", text, "give it a default: `next(elements, None)`")


def _memory(failure: Failure) -> _Said:
    return _Said("too-large", "the value does not fit into memory", "use smaller lists and texts")


def _with_advice(said: _Said) -> _Said:
    """What to do about the commonest of Python's messages."""
    if said.help or said.slug == "kernel-raised":
        return said
    found = (advice for pattern, advice in _ADVICE if re.search(pattern, said.message))
    return said._replace(help=next(found, ""))


_NONE = "None is what a function without `return` gives, and a field without a value"
_ADVICE = [
    ("NoneType", _NONE),
    ("object is not callable", "leave out the parentheses: it is a value"),
    ("can only concatenate|unsupported .*'str'", 'put values into text with f"{value}"'),
    ("not enough values|too many values", "count the names on the left"),
    ("division by zero|division or modulo", "leave the case of 0 out with `if`"),
    ("'float' object cannot be interpreted", "use `//` for whole numbers"),
]
_NO_SUCH = re.compile(r"got an unexpected keyword argument '(\w+)'")
_WRONG_CALL = re.compile(r"(missing|takes) .*argument|got (an unexpected keyword|multiple values)")


def _type_error(failure: Failure) -> _Said:
    """Python's own message; of a call that does not fit, with the parameters there are."""
    said = _with_advice(_unless_raised("wrong-type")(failure))
    call = failure.resolved.call_at(failure.chain)
    if said.slug != "wrong-type" or call is None or not _WRONG_CALL.search(said.message):
        return said
    parameters = next(_parameters(failure, call.func), None)
    if parameters is None:
        return said
    text = re.sub(r"^\S*<locals>\.", "", said.message)
    unknown = _NO_SUCH.search(text)
    near = did_you_mean(unknown[1], parameters) if unknown else ""
    listed = ", ".join(parameters)
    help = near or f"its parameters are {listed or 'none'}"
    return _Said("wrong-call", text, help, unknown[1] if unknown else "")


def _parameters(failure: Failure, function: nodes.Expression) -> Iterator[list[str]]:
    """Names of the parameters of what is called, if that is a function."""
    for value in _computed(failure, function):
        with suppress(TypeError, ValueError):
            yield [name for name in inspect.signature(value).parameters if name[0] != "@"]


def _import_error(failure: Failure) -> _Said:
    return _Said(
        "import-failed", str(failure.error), "check the name, or add its folder with `--include`"
    )


_SAY: list[tuple[type[BaseException], Callable[[Failure], _Said]]] = [
    (AssertionError, _assertion),
    (NameError, _name_error),
    (FrozenInstanceError, _frozen),
    (AttributeError, _attribute_error),
    (KeyError, _key_error),
    (IndexError, _index_error),
    (RecursionError, _recursion),
    (MemoryError, _memory),
    (ImportError, _import_error),
    (TypeError, _type_error),
    (StopIteration, _exhausted),
    (ArithmeticError, _unless_raised("wrong-value")),
    (ValueError, _unless_raised("wrong-value")),
]


# ---- values -------------------------------------------------------------------------------------


def _values(failure: Failure, slug: str) -> list[str]:
    """``n` is 7` for the names and attributes that the failing expression reads."""
    if slug not in _WITH_VALUES:
        return []
    notes: dict[str, None] = {}
    found = _expressions(failure)
    owners = {id(node.value) for node in found if isinstance(node, nodes.Attribute)}
    for node in found:
        if isinstance(node, nodes.Name | nodes.Attribute) and id(node) not in owners:
            notes |= dict.fromkeys(_note(failure, node))
    return list(notes)[:_NAMED]


_WITH_VALUES = frozenset({"assertion-failed", "wrong-index", "wrong-value", "wrong-type"})


def _note(failure: Failure, node: nodes.Name | nodes.Attribute) -> Iterator[str]:
    for value in _computed(failure, node):
        if not callable(value) and not isinstance(value, _NOT_SHOWN):
            yield f"`{failure.text(node.span)}` is {brief(value)}"


_NOT_SHOWN = (type, Namespace, HostValue, KernelValue, Buffer, DType)


def _expressions(failure: Failure) -> list[nodes.Node]:
    """The failing expression and what is in it: of an assertion, its test."""
    node = _statement(failure)
    if isinstance(node, nodes.Assert):
        return list(walk(node.test))
    span = failure.chain.span
    return [n for n in walk(node) if span.covers(n.span)] if node is not None else []


def _computed(failure: Failure, node: nodes.Expression) -> Iterator[Any]:
    """The value of a name, or of attributes of one, as the failing frame has it; none if unset."""
    code = _plain_code(node)
    if code is None or failure.inner is None:
        return
    frame: FrameType = failure.inner.frame
    local = {name: value for name, value in frame.f_locals.items() if not name.startswith("@")}
    try:
        yield eval(code, {"__builtins__": {}}, {**_globals(frame), **local})
    except Exception:  # whatever a property raises, there is no value to show
        return


def _globals(frame: FrameType) -> dict[str, Any]:
    return {name: value for name, value in frame.f_globals.items() if name.isidentifier()}


def _plain_code(node: nodes.Expression) -> CodeType | None:
    """Code for `name.attribute.attribute`; None for expressions that may have effects."""
    path: list[str] = []
    while isinstance(node, nodes.Attribute):
        path.insert(0, node.attr)
        node = node.value
    if not isinstance(node, nodes.Name) or any(map(names.is_hidden, path)):
        return None
    tree: ast.expr = ast.Name(node.id, ast.Load())
    for attribute in path:
        tree = ast.Attribute(tree, attribute, ast.Load())
    return compile(ast.fix_missing_locations(ast.Expression(tree)), "<values>", "eval")
