"""Locations in a traced kernel: conversion of Python's frames to spans of source.

The innermost frame gives the expression being evaluated, and the frames below it the calls that led
to it. Frames of Python's own modules, of frameworks and of nkic are skipped; those of nkic's
standard library are not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import CodeType, FrameType, TracebackType
from typing import Any, NamedTuple

from nkic.base.source import NOWHERE, SHIPPED, CallChain, SourceFile, Span
from nkic.specialise.iterations import assignments, variables
from nkic.specialise.native import bytecode
from nkic.specialise.native.sources import Sources

_CHAINS = 1 << 16
_COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>"})  # functions until 3.11


def run(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """Call a kernel. Frames from this one outward do not belong to it."""
    return function(*args, **named)


class CallSite(NamedTuple):
    """A kernel's frame, in a traceback or in the current call."""

    span: Span
    frame: FrameType
    offset: int  # of the bytecode instruction, in bytes


class _Code:
    """Cached facts about a code object; `source` is None if it is not kernel code."""

    __slots__ = ("code", "inlined", "instructions", "loops", "number", "source", "spans")

    def __init__(self, number: int, code: CodeType, source: SourceFile | None) -> None:
        self.number = number
        self.code = code  # kept alive because its id is a key
        self.source = source
        self.inlined = code.co_name in _COMPREHENSIONS
        self.spans: dict[int, Span] = {}
        self.loops: dict[int, tuple[str, ...]] = {}
        self.instructions = bytecode.Instructions(code)


_ROOT = _Code(0, run.__code__, None)


class CallSites:
    """The locations of one trace. Equal call chains are interned."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self._codes_by_id: dict[int, _Code] = {id(run.__code__): _ROOT}
        self._chains: dict[tuple[int, ...], CallChain] = {}
        self._interned: dict[CallChain, CallChain] = {}

    def here(self) -> CallChain:
        """Return the expression being evaluated, with the calls that led to it.

        A comprehension counts as part of the enclosing function.
        """
        frame: FrameType | None = sys._getframe(1)
        codes = self._codes_by_id
        path: list[int] = []
        inlined = False
        while frame is not None:
            code = codes.get(id(frame.f_code)) or self._new(frame)
            if code is _ROOT:
                break
            if code.source is not None:
                if not inlined:
                    path.append(code.number)
                    path.append(frame.f_lasti)
                inlined = code.inlined
            frame = frame.f_back
        key = tuple(path)
        chain = self._chains.get(key)
        return chain if chain is not None else self._remember(key, sys._getframe(1))

    def iterations(self) -> str:
        """Return the iterations of the loops around the location and around all callers: "i=3 j=0".

        Until Python 3.11 a comprehension has a separate frame; its loops are those of the enclosing
        function.
        """
        frame: FrameType | None = sys._getframe(1)
        result: list[str] = []
        names: tuple[str, ...] | None = None
        while frame is not None:
            code = self._codes_by_id.get(id(frame.f_code)) or self._new(frame)
            if code is _ROOT:
                break
            if code.source is not None:
                names = self._variables(code, frame.f_lasti) if names is None else names
                if not code.inlined:
                    result[:0] = assignments(names, frame.f_locals) if names else ()
                    names = None
            frame = frame.f_back
        return " ".join(result)

    def _variables(self, code: _Code, offset: int) -> tuple[str, ...]:
        """Return the variables of the loops around an instruction."""
        names = code.loops.get(offset)
        if names is None:
            span = self._span(code, offset)
            names = code.loops[offset] = variables(self.sources.module(span.path), span)
        return names

    def _remember(self, key: tuple[int, ...], frame: FrameType) -> CallChain:
        if len(self._chains) >= _CHAINS:
            self._chains.clear()
        chain = self._chains[key] = self.chain_of(
            [site.span for site in self._kernel_frames(frame)]
        )
        return chain

    def _new(self, frame: FrameType) -> _Code:
        code = frame.f_code
        result = _Code(len(self._codes_by_id), code, self.sources.of(code, frame.f_globals))
        self._codes_by_id[id(code)] = result
        return result

    def _kernel_frames(self, frame: FrameType | None) -> Iterator[CallSite]:
        """Yield the kernel's frames from `frame` outward."""
        inlined = False
        while frame is not None:
            code = self._codes_by_id.get(id(frame.f_code)) or self._new(frame)
            if code is _ROOT:
                return
            if code.source is not None:
                if not inlined:
                    yield CallSite(self._span(code, frame.f_lasti), frame, frame.f_lasti)
                inlined = code.inlined
            frame = frame.f_back

    def testing_frame(self) -> CallSite | None:
        """Return the frame that tests a value's truth, if it is the kernel's own."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_globals.get("__name__", "").startswith("nkic."):
            frame = frame.f_back
        site = next(self._kernel_frames(frame), None)
        return site if site is not None and site.frame is frame else None

    def in_user_files(self, limit: int) -> list[CallSite]:
        """Return the innermost locations in the user's own files, at most `limit`."""
        sites = (
            p for p in self._kernel_frames(sys._getframe(1)) if not p.span.path.startswith(SHIPPED)
        )
        return [site for site, _ in zip(sites, range(limit), strict=False)]

    def of(self, traceback: TracebackType | None) -> list[CallSite]:
        """Return the locations of a traceback, innermost first."""
        sites: list[tuple[CallSite, bool]] = []
        while traceback is not None:
            frame = traceback.tb_frame
            code = self._codes_by_id.get(id(frame.f_code)) or self._new(frame)
            if code.source is not None:
                site = CallSite(self._span(code, traceback.tb_lasti), frame, traceback.tb_lasti)
                sites.append((site, code.inlined))
            traceback = traceback.tb_next
        user_sites: list[CallSite] = []
        inlined = False
        for site, is_inlined in reversed(sites):
            if not inlined:
                user_sites.append(site)
            inlined = is_inlined
        return user_sites

    def chain_of(self, spans: list[Span]) -> CallChain:
        """Return the call chain through these spans, innermost first."""
        chain: CallChain | None = None
        for span in reversed(spans):
            link = CallChain(span, chain)
            chain = self._interned.setdefault(link, link)
        return chain or CallChain(NOWHERE)

    def _span(self, code: _Code, offset: int) -> Span:
        span = code.spans.get(offset)
        if span is None:
            span = code.spans[offset] = self._find(code, offset)
        return span

    def _find(self, code: _Code, offset: int) -> Span:
        source = code.source
        assert source is not None
        line, end_line, column, end_column = code.instructions.positions[max(offset, 0) // 2]
        line = line or code.code.co_firstlineno
        if column is None or end_column is None:  # Python runs without column information
            return Span(source.path, line, 1, line, len(source.line(line)) + 1)
        end_line = end_line or line
        start, end = _characters(source, line, column), _characters(source, end_line, end_column)
        span = Span(source.path, line, start, end_line, end)
        module = self.sources.module(span.path)
        if module is None:
            return span
        call = module.calls.get((span.end_line, span.end_column))
        # For a call that spans lines, Python reports the part from the method's name on.
        within = call.span if call is not None and call.span.covers(span) else span
        return bytecode.span(code.instructions, max(offset, 0), module, span, within)


def _characters(source: SourceFile, line: int, bytes_before: int) -> int:
    """Return the column, counted from 1, after a number of bytes of UTF-8."""
    text = source.line(line)
    if text.isascii():
        return bytes_before + 1
    return len(text.encode("utf-8")[:bytes_before].decode("utf-8", "ignore")) + 1
