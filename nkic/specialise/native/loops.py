"""`while register:` in the Python interpreter.

Python tests the register before the body and again after it, at two instructions of the same
expression. The first test opens the device loop and the second closes it, so that the body is
recorded once.
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
from nkic.syntax.scopes import nodes_in_scope
from nkic.syntax.walk import children


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
            deprecated.warn("a `while` loop over a register", deprecated.DYNAMIC_WHILE)
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
