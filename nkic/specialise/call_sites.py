"""Locations in a traced kernel: conversion of Python's frames to spans of source.

The innermost frame gives the expression being evaluated, and the frames below it the calls that led
to it. Frames of Python's own modules, of frameworks and of nkic are skipped; those of nkic's
standard library are not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dis import opname
from functools import cached_property, lru_cache
from types import CodeType, FrameType, TracebackType
from typing import Any, NamedTuple

from nkic.base.diagnostics import CompileFailed
from nkic.base.source import NOWHERE, SHIPPED, CallChain, SourceFile, Span
from nkic.language import library
from nkic.source import nodes
from nkic.source.bindings import STDLIB, SourceModule
from nkic.source.nodes import walk
from nkic.specialise.ordering import assignments, variables

# ---- The source files of traced code, read on demand --------------------------------------------

Parse = Callable[[SourceFile], nodes.Module]
FindSource = Callable[[CodeType, Mapping[str, Any]], SourceFile | None]


@lru_cache(maxsize=256)
def _module(source: SourceFile, parse: Parse) -> SourceModule | None:
    """Return the file as a module without bindings, or None if it cannot be parsed."""
    try:
        tree = parse(source)
    except CompileFailed:  # its Python is newer than nkic's grammar
        return None
    return _as_module(source, tree)


def _as_module(source: SourceFile, tree: nodes.Module) -> SourceModule:
    trusted = source.path.startswith(SHIPPED)
    return SourceModule(source.path, source, tree, {}, trusted=trusted)


class Sources(Mapping[str, SourceModule]):
    """The source files of one trace, by their path in spans."""

    def __init__(self, find: FindSource, parse: Parse) -> None:
        self.files: dict[str, SourceFile] = {}
        self._find = find
        self._parse = parse
        self._allowed: dict[str, SourceFile] = {}
        self._modules: dict[str, SourceModule] = {}

    @property
    def modules(self) -> Mapping[str, SourceModule]:
        """The files themselves: this class stands in for a kernel's library of modules."""
        return self

    def allow(self, code: CodeType, file: SourceFile) -> None:
        """Declare the file of a code object to be a kernel's although its text is unavailable."""
        self._allowed[code.co_filename] = file

    def add_module(self, source: SourceFile, tree: nodes.Module) -> SourceModule:
        module = self._modules[source.path] = _as_module(source, tree)
        return module

    def of(self, code: CodeType, space: Mapping[str, Any]) -> SourceFile | None:
        """Return the file of a code object, or None if it is not kernel code."""
        if code.co_filename.startswith(STDLIB):
            source = next(f for f in library.sources().values() if f.path == code.co_filename)
        else:
            file = self._allowed.get(code.co_filename) or self._find(code, space)
            if file is None:
                return None
            source = file
        self.files[source.path] = source
        return source

    def module(self, path: str) -> SourceModule | None:
        file = self.files.get(path)
        synthesised = self._modules.get(path)
        return (
            synthesised if synthesised is not None or file is None else _module(file, self._parse)
        )

    def get(self, key: str, default: Any = None) -> Any:
        module = self.module(key)
        return default if module is None else module

    def __getitem__(self, path: str) -> SourceModule:
        module = self.module(path)
        if module is None:
            raise KeyError(path)
        return module

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)

    __hash__ = object.__hash__


# ------------------------------------------------------------------------------------------------
# The part of an expression or statement that Python evaluates, if it reports only the whole.
# The names of bytecode instructions are those of CPython 3.11. Later versions report more precise
# positions by themselves, which are kept.

_ENTERING = "BEFORE_WITH"
_TESTING = nodes.If | nodes.While | nodes.Assert | nodes.IfExp
_COMPREHENSIONS = nodes.ListComp | nodes.SetComp | nodes.DictComp | nodes.GeneratorExp
_FUNCTIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
_DISPLAYS = nodes.List | nodes.Tuple | nodes.Set


class Instructions:
    """The bytecode of a code object, by offset in bytes."""

    def __init__(self, code: CodeType) -> None:
        self._code = code

    @property
    def of_comprehension(self) -> bool:
        """Whether this is the function of a comprehension, whose first iterator is its argument."""
        return self._code.co_name in _FUNCTIONS

    @cached_property
    def positions(self) -> list[Any]:
        return list(self._code.co_positions())

    @cached_property
    def _bytes(self) -> bytes:
        return self._code.co_code

    def name(self, offset: int) -> str:
        return opname[self._bytes[offset]]

    def iteration(self, offset: int) -> int:
        """Return the number of earlier instructions with the same name and position."""
        operation, position = self._bytes[offset], self.positions[offset // 2]
        before = (at for at in range(0, offset, 2) if self._bytes[at] == operation)
        return sum(self.positions[at // 2] == position for at in before)


def span_at(
    code: Instructions, offset: int, module: SourceModule, reported: Span, otherwise: Span
) -> Span:
    """Return the span of the value that the instruction at `offset` tests, iterates or enters.

    `reported` is the position that Python reports, `otherwise` the span of the call, if any.
    """
    name = code.name(offset)
    find = next((find for prefixes, find in _FINDERS if name.startswith(prefixes)), None)
    if find is None or (name == "CALL" and otherwise != reported):
        return otherwise
    for node in walk(module.statement_at(reported) or module.tree):
        position = find(node, code, offset) if node.span == reported else None
        if position is not None:
            return position
    return otherwise


def _tested(node: nodes.Node, code: Instructions, offset: int) -> Span | None:
    if isinstance(node, _TESTING):
        return node.test.span
    return node.operand.span if isinstance(node, nodes.UnaryOp) else None


def _iterated(node: nodes.Node, code: Instructions, offset: int) -> Span | None:
    if isinstance(node, nodes.For):
        return node.iter.span
    if not isinstance(node, _COMPREHENSIONS):
        return None
    inner = code.of_comprehension and code.name(offset) == "GET_ITER"
    return _at(node.generators, code.iteration(offset) + inner, "iter")  # the first is made outside


def _unpacked(node: nodes.Node, code: Instructions, offset: int) -> Span | None:
    if not isinstance(node, _DISPLAYS | nodes.Call):
        return None
    elements = node.args if isinstance(node, nodes.Call) else node.elts
    starred = [element for element in elements if isinstance(element, nodes.Starred)]
    return _at(starred, code.iteration(offset))


def _entered(node: nodes.Node, code: Instructions, offset: int) -> Span | None:
    """Return the context manager's span: entered in order, and left in reverse on every path."""
    if not isinstance(node, nodes.With):
        return None
    iteration = code.iteration(offset) % len(node.items)
    index = iteration if code.name(offset) == _ENTERING else len(node.items) - 1 - iteration
    return _at(node.items, index, "context_expr")


def _at(children: Sequence[Any], index: int, field: str = "") -> Span | None:
    if index >= len(children):
        return None
    child = getattr(children[index], field) if field else children[index]
    position: Span = child.span
    return position


_FINDERS: tuple[tuple[tuple[str, ...], Callable[..., Span | None]], ...] = (
    (("POP_JUMP", "JUMP_IF", "TO_BOOL", "UNARY_NOT"), _tested),
    (("GET_ITER", "FOR_ITER"), _iterated),
    (("LIST_EXTEND", "SET_UPDATE"), _unpacked),
    ((_ENTERING, "WITH_EXCEPT_START", "CALL"), _entered),
)


_CHAINS = 1 << 16
_SCOPES = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>"})  # functions until 3.11


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
        self.inlined = code.co_name in _SCOPES
        self.spans: dict[int, Span] = {}
        self.loops: dict[int, tuple[str, ...]] = {}
        self.instructions = Instructions(code)


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
        return span_at(code.instructions, max(offset, 0), module, span, within)


def _characters(source: SourceFile, line: int, bytes_before: int) -> int:
    """Return the column, counted from 1, after a number of bytes of UTF-8."""
    text = source.line(line)
    if text.isascii():
        return bytes_before + 1
    return len(text.encode("utf-8")[:bytes_before].decode("utf-8", "ignore")) + 1
