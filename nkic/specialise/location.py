"""Where the kernel is: from Python's frames to spans of kernel source.

Kernel functions run as Python code objects that carry the lines and columns of the source
(`translate`). The frames of the running program therefore say which expression is being
evaluated, and the frames below it how evaluation got there.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from types import CodeType, FrameType, TracebackType
from typing import NamedTuple

from nkic.base.source import NOWHERE, SHIPPED, CallChain, SourceFile, Span

_Position = tuple[int | None, int | None, int | None, int | None]


class _Code:
    """What is known of one code object. `spans` holds the places that were asked for."""

    __slots__ = ("alive", "number", "positions", "source", "spans")

    def __init__(self, number: int, code: CodeType, source: SourceFile) -> None:
        self.number = number
        self.source = source
        self.spans: dict[int, Span] = {}
        self.positions: list[_Position] | None = None
        key = id(code)
        self.alive = weakref.ref(code, lambda _: _known.pop(key, None))

    def span(self, code: CodeType, offset: int) -> Span:
        """The source of the instruction at byte `offset`."""
        found = self.spans.get(offset)
        if found is None:
            found = self.spans[offset] = self._find(code, offset)
        return found

    def _find(self, code: CodeType, offset: int) -> Span:
        if self.positions is None:
            self.positions = list(code.co_positions())
        line, end_line, column, end_column = self.positions[offset // 2]
        line = line or code.co_firstlineno
        end_line = end_line or line
        start = _characters(self.source, line, column or 0)
        end = _characters(self.source, end_line, end_column or 0)
        return Span(self.source.path, line, start, end_line, end)


def _characters(source: SourceFile, line: int, bytes_before: int) -> int:
    """The column, counted from 1, that stands after so many bytes of UTF-8."""
    text = source.line(line)
    if text.isascii():
        return bytes_before + 1
    return len(text.encode("utf-8")[:bytes_before].decode("utf-8", "ignore")) + 1


# Codes are keyed by identity because hashing a code object hashes all its constants. The
# numbers are never used twice, so that chains stay right after a code object is gone.
_known: dict[int, _Code] = {}
_count = 0
_chains: dict[tuple[int, ...], CallChain] = {}
_interned: dict[CallChain, CallChain] = {}
_CHAINS = 1 << 16


def register(code: CodeType, source: SourceFile) -> None:
    """Makes `code`, and every code object inside it, known as code of `source`."""
    global _count
    _count += 1
    _known[id(code)] = _Code(_count, code, source)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            register(constant, source)


_ROOT = _Code(0, register.__code__, SourceFile("<root>", ""))


def root(code: CodeType) -> None:
    """Frames of `code`, the function of ours that starts kernels, end every chain."""
    _known[id(code)] = _ROOT


def is_kernel_code(code: CodeType) -> bool:
    """The code was translated from kernel source."""
    return _known.get(id(code), _ROOT) is not _ROOT


def here() -> CallChain:
    """The expression that the kernel is evaluating, with the calls that led there.

    Equal chains are one object. Frames of our own functions in between do not count.
    """
    frame: FrameType | None = sys._getframe(1)
    known = _known
    path: list[int] = []
    while frame is not None:
        code = known.get(id(frame.f_code))
        if code is not None:
            if code is _ROOT:
                break
            path.append(code.number)
            path.append(frame.f_lasti)
        frame = frame.f_back
    key = tuple(path)
    chain = _chains.get(key)
    return chain if chain is not None else _remember(key, sys._getframe(1))


def _remember(key: tuple[int, ...], frame: FrameType) -> CallChain:
    if len(_chains) >= _CHAINS:
        _chains.clear()
    _chains[key] = chain = _chain(_spans(frame))
    return chain


def _spans(frame: FrameType | None) -> list[Span]:
    """The spans of all kernel frames from `frame` on, innermost first."""
    found = []
    while frame is not None:
        code = _known.get(id(frame.f_code))
        if code is _ROOT:
            break
        if code is not None:
            found.append(code.span(frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return found


def _chain(spans: list[Span]) -> CallChain:
    chain: CallChain | None = None
    for span in reversed(spans):
        link = CallChain(span, chain)
        chain = _interned.setdefault(link, link)
    return chain or CallChain(NOWHERE)


class Place(NamedTuple):
    """A kernel frame, of a traceback or of the call that is going on."""

    span: Span
    frame: FrameType


def user_places(most: int) -> list[Place]:
    """The innermost frames of the user's own source, at most so many."""
    found: list[Place] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and len(found) < most:
        code = _known.get(id(frame.f_code))
        if code is _ROOT:
            break
        if code is not None and not code.source.path.startswith(SHIPPED):
            found.append(Place(code.span(frame.f_code, frame.f_lasti), frame))
        frame = frame.f_back
    return found


def places(traceback: TracebackType | None) -> list[Place]:
    """The kernel frames of a traceback, innermost first."""
    return list(_places(traceback))[::-1]


def _places(traceback: TracebackType | None) -> Iterator[Place]:
    while traceback is not None:
        frame = traceback.tb_frame
        code = _known.get(id(frame.f_code))
        if code is not None and code is not _ROOT:
            yield Place(code.span(frame.f_code, traceback.tb_lasti), frame)
        traceback = traceback.tb_next


def chain_of(found: list[Place]) -> CallChain:
    """The chain of calls that `places` found."""
    return _chain([place.span for place in found])
