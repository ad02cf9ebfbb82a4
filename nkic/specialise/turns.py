"""Which turn of the unrolled loops an error belongs to: the loop variables around its place."""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType

from nkic.base.diagnostics import Label
from nkic.base.source import Span
from nkic.specialise.texts import brief
from nkic.syntax import nodes
from nkic.syntax.bindings import SourceModule
from nkic.syntax.walk import walk

CALLS = 8  # of a chain, so many are looked at
_PLAIN = (int, float, str, type(None))


def turns(module: SourceModule | None, frame: FrameType, span: Span) -> list[Label]:
    """``here `i` is 3` at the head of every loop around `span`, outermost first."""
    loops = module.loops_around(span) if module is not None else ()
    return [label for loop in loops for label in _values(loop, frame)]


def _values(loop: nodes.For, frame: FrameType) -> Iterator[Label]:
    names = [node.id for node in walk(loop.target) if isinstance(node, nodes.Name)]
    known = {name: frame.f_locals[name] for name in names if name in frame.f_locals}
    shown = [f"`{name}` is {brief(v)}" for name, v in known.items() if isinstance(v, _PLAIN)]
    if shown:
        yield Label(loop.target.span, f"here {', '.join(shown)}")
