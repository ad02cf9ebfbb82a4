"""`while register:` where Python itself evaluates it.

Python asks for the truth of the register before the body and again after it, at two instructions
of the same expression. The first time the loop on the device is opened, the second time it is
closed, so that the body is recorded once.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType
from typing import NamedTuple

from nkic.base.device import left_by
from nkic.base.kernel_errors import KernelError
from nkic.base.source import Span
from nkic.language.registers import VirtualRegister
from nkic.language.trace import OpenLoop, Trace
from nkic.language.versions import deprecated
from nkic.specialise.native.call_sites import CallSite, CallSites
from nkic.syntax import nodes
from nkic.syntax.walk import children


class _Open(NamedTuple):
    frame: FrameType
    span: Span
    offset: int
    loop: OpenLoop


class Whiles:
    """The loops of one trace that Python is inside of."""

    def __init__(self, trace: Trace, places: CallSites) -> None:
        self._trace = trace
        self._places = places
        self._open: list[_Open] = []

    def decide(self, register: VirtualRegister) -> bool:
        """The truth of a register: whether the loop goes on, which it does once."""
        place = self._places.asking()
        node = self._node(place) if place is not None else None
        if place is None or node is None:
            register._no_choice()
        last = self._open[-1] if self._open else None
        if last is None or (last.frame, last.span) != (place.frame, place.span):
            deprecated.warn("a `while` loop over a register", deprecated.DYNAMIC_WHILE)
            self._open.append(_Open(place.frame, place.span, place.offset, register.open()))
            return True
        if last.offset == place.offset and not _only_continues(node):
            raise KernelError(
                "device-loop-misuse",
                "this device loop was left before its end, or its body has `continue`",
                help="write the body as a function, for nl.while_loop(register, body)",
            )
        self._open.pop()
        self._trace.close_loop(last.loop)
        return False

    def _node(self, place: CallSite) -> nodes.While | None:
        """The `while` whose test is at a place."""
        module = self._places.sources.module(place.span.path)
        node = module.statement_at(place.span) if module is not None else None
        if not isinstance(node, nodes.While) or node.test.span != place.span:
            return None
        return None if isinstance(node.test, nodes.BoolOp | nodes.UnaryOp) else node


def _only_continues(node: nodes.While) -> bool:
    """The body goes back to the test early, and leaves the loop in no other way."""
    found = {type(one) for statement in node.body for one in _own(statement)}
    return nodes.Continue in found and not found & {nodes.Break, nodes.Return, nodes.Try}


def left_early(head: Span, places: CallSites) -> KernelError:
    """The error about a loop on the device, with its head there, that was left before its end."""
    module = places.sources.module(head.path)
    loop = module.statement_at(head) if module is not None else None
    for statement in loop.body if isinstance(loop, nodes.For | nodes.While) else ():
        for word, node in _leaving(statement):
            return left_by(word, node.span)
    text = "an exception cannot leave a loop that runs on the device"
    help = "catch it inside the loop's body"
    return KernelError("device-loop-misuse", text, help=help, span=head)


def returned(head: Span, places: CallSites) -> KernelError | None:
    """The error about a `return` in a loop of Beta 1, with its head there; None where none is."""
    module = places.sources.module(head.path)
    loop = module.statement_at(head) if module is not None else None
    for statement in loop.body if isinstance(loop, nodes.For) else ():
        for word, node in _leaving(statement):
            if word == "return":
                text = (
                    "`return` inside of a loop whose body is traced once ends the function after "
                    "all iterations; Python ends it in the first one"
                )
                help = "write it after the loop, or compile the file from the command line"
                return KernelError("device-loop-misuse", text, help=help, span=node.span)
    return None


def _leaving(node: nodes.Node, is_inside: bool = False) -> Iterator[tuple[str, nodes.Node]]:
    """What in a loop's body leaves it; a `break` inside of another loop does not."""
    if isinstance(node, nodes.Return):
        yield "return", node
    elif isinstance(node, nodes.Break) and not is_inside:
        yield "break", node
    elif not isinstance(node, nodes.FunctionDef | nodes.ClassDef | nodes.Lambda):
        is_loop = isinstance(node, nodes.For | nodes.While)
        for child in children(node):
            yield from _leaving(child, is_inside or is_loop)


def _own(node: nodes.Node) -> Iterator[nodes.Node]:
    yield node
    if not isinstance(node, nodes.FunctionDef | nodes.ClassDef | nodes.Lambda):
        for child in children(node):
            yield from _own(child)
