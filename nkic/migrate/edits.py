"""Edits of a kernel's text that follow an advice, where that is mechanical."""

from __future__ import annotations

import functools
import io
import itertools
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from nkic.base.diagnostics import NkicError
from nkic.base.source import SourceFile, Span
from nkic.machine.instructions.combined import (
    ACTIVATION,
    NEGATED,
    TRANSFER,
    adding_up,
    joined,
    joining,
    negating,
)
from nkic.report.verdict import Answer
from nkic.source import nodes
from nkic.source.nodes import walk
from nkic.source.parse import parse

Edit = tuple[Span, str]  # a part of the text, and what replaces it


def edited(source: SourceFile, answer: Answer) -> Iterator[str]:
    """Yield the texts that follow an advice, the likeliest first; none if only a person can."""
    kind, _, place = answer.name.partition(":")
    if answer.loads:
        if {line.path for line in answer.loads} == {source.path}:
            text, lines = _Text(source), [line.number for line in answer.loads]
            blocks = dict(part.split("*") for part in place.split(",")) if kind == "block" else {}
            yield from text.blocked(lines, blocks) if blocks else text.loaded_once(lines)
        return
    path, _, numbers = place.removeprefix(f"{source.path}:").rpartition(f"{source.path}:")
    if path or not place.startswith(f"{source.path}:"):
        return
    text = _Text(source)
    if kind.startswith(("trigger-", "engine-")):
        yield from text.with_keywords(int(numbers), answer.adds)
    elif kind == "buffers":
        lines = [int(number) for number in numbers.split(",")]
        yield from dict.fromkeys(
            [*text.declared_inside(lines, 0), *text.declared_inside(lines, -1)]
        )
    elif kind in ("fuse", "join"):
        yield from (text.fused if kind == "fuse" else text.joined)(*map(int, numbers.split(":")))
    elif kind == "accumulate":
        yield from text.summed(int(numbers))
    elif kind == "whole-rows":
        yield from text.in_one_transfer(int(numbers))
    elif kind == "larger-tiles":
        yield from text.widened(*map(int, numbers.split(":")))


TRACED = ("affine_range", "sequential_range")
SLICES = ("slice", "ds")


@dataclass(frozen=True)
class _Load:
    """The statements of one loop that make a tile and load it, and the loops around them.

    They are a declaration and a transfer, or the call of a function that loads.
    """

    made: tuple[nodes.Statement, ...]
    tile: str
    loops: list[nodes.For]

    @cached_property
    def read(self) -> list[str]:
        """The names that it reads; instead of a part of a tensor, or of a slice, which cannot be
        the key of a dictionary, the names that it depends on.
        """
        assigned = Counter(name for t in _targets_in(self.loops[:1]) for name in _names(t))
        parts = {
            name: n
            for loop in self.loops
            for n in loop.body
            if isinstance(n, nodes.Assign) and assigned[name := _name(n.targets[0])] == 1
            if isinstance(n.value, nodes.Subscript) or _is_slice(n.value)
        }

        def names(node: nodes.Node) -> Iterator[str]:
            for name in _names(node):
                if name in parts and parts[name].span < node.span:
                    yield from names(parts[name].value)
                else:
                    yield name

        return [*dict.fromkeys(n for each in self.made for n in names(each) if n != self.tile)]

    @property
    def is_traced(self) -> bool:
        """Whether Beta 1 traces a loop around it once: then it runs no `if` for each iteration."""
        calls = [loop.iter.func for loop in self.loops if isinstance(loop.iter, nodes.Call)]
        return any(isinstance(each, nodes.Attribute) and each.attr in TRACED for each in calls)

    def key(self, depth: int) -> list[str]:
        """Return the names that tell what is loaded apart, from the loop of a depth on."""
        assigned = _assigned(self.loops[depth:])
        return [name for name in self.read if name in assigned]


def _targets(node: nodes.Node) -> tuple[nodes.Expression, ...]:
    if isinstance(node, nodes.Assign):
        return node.targets
    kinds = nodes.For | nodes.AugAssign | nodes.AnnAssign | nodes.NamedExpr
    return (node.target,) if isinstance(node, kinds) else ()


def _is_slice(value: nodes.Expression) -> bool:
    """Whether a call makes a slice."""
    if not isinstance(value, nodes.Call):
        return False
    func = value.func
    return (func.attr if isinstance(func, nodes.Attribute) else _name(func)) in SLICES


def _assigned(loops: Iterable[nodes.For]) -> set[str]:
    """Return the names that loops assign, their own included."""
    return {name for target in _targets_in(loops) for name in _names(target)}


def _targets_in(loops: Iterable[nodes.For]) -> Iterator[nodes.Expression]:
    for loop in loops:
        for node in walk(loop):
            yield from _targets(node)


def _names(node: nodes.Node) -> dict[str, None]:
    """Return the names in a part of the source, in order."""
    return dict.fromkeys(n.id for n in walk(node) if isinstance(n, nodes.Name))


def _name(node: nodes.Node) -> str:
    """Return the identifier of a name; of other expressions, nothing."""
    return node.id if isinstance(node, nodes.Name) else ""


def _prefix(name: str) -> str:
    """Return what is before the last dot of a name."""
    return name.rpartition(".")[0]


def _dedented(lines: Sequence[str]) -> list[str]:
    return textwrap.dedent("".join(lines)).splitlines()


def _nested(loops: Sequence[str], depth: int, body: Sequence[str]) -> Iterator[str]:
    for number, line in enumerate([*loops, *body]):
        yield "    " * (depth + min(number, len(loops))) + line


class _Text:
    """A source with its syntax tree."""

    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self.lines = io.StringIO(source.text, newline="").readlines()  # LF, CRLF and CR end one
        self.has_crlf = "\r\n" in source.text and "\n" not in source.text.replace("\r\n", "")
        self.step = "\t" if re.search(r"(?m)^\t", source.text) else "    "
        self.all = [*walk(parse(source))]

    def of(self, span: Span) -> str:
        return self.source.text[self.source.slice_of(span)]

    def replaced(self, edits: Sequence[Edit], within: Span | None = None) -> str:
        if self.has_crlf:
            edits = [(span, re.sub(r"\r?\n", "\r\n", new)) for span, new in edits]
        return self.source.replaced(edits, within)

    # Keywords

    def with_keywords(self, line: int, added: str) -> Iterator[str]:
        """Add keywords to the only transfer of a line, or to its only instruction; if all of them
        are given, change their values.
        """
        calls = [call for call in self._calls(line) if self._name(call) == TRANSFER]
        calls = calls or [call for _, call in self._statements(line)]
        words = dict(part.split("=", 1) for part in added.split(", "))
        given = {k.arg: k.value.span for call in calls for k in call.keywords if k.arg}
        if len(calls) != 1 or not given:
            return
        call = calls[0]
        alias = self.of(call.func.span).removesuffix(self._name(call))
        if words.keys() & given.keys():
            if words.keys() <= given.keys():
                values = [(given[k], v.replace("nisa.", alias)) for k, v in words.items()]
                yield self.replaced(values)
            return
        head, _, _ = self.of(call.span).rpartition(")")
        kept = head.rstrip()
        comma = "" if kept.endswith(",") else ","
        new_words = added.replace("nisa.", alias)
        if "\n" in head[len(kept) :]:
            last = self.lines[call.keywords[-1].span.line - 1]
            indent = last[: len(last) - len(last.lstrip())]
            new = f"{kept}{comma}\n{indent}{new_words},{head[len(kept) :]})"
        else:
            new = f"{kept}{comma} {new_words})"
        yield self.replaced([(call.span, new)])

    def _calls(self, line: int) -> list[nodes.Call]:
        return [n for n in self.all if isinstance(n, nodes.Call) and n.span.line == line]

    def _name(self, call: nodes.Call) -> str:
        return call.func.attr if isinstance(call.func, nodes.Attribute) else ""

    # Declarations

    def declared_inside(self, lines: Sequence[int], which: int) -> Iterator[str]:
        """Move declarations into the loop that has all uses of their names: the innermost such
        loop, or with `which` -1 the outermost.
        """
        edits: list[Edit] = []
        for line in lines:
            statement = next((n for n in self._assignments() if n.span.line == line), None)
            loop = self._loop_of(statement, which) if statement is not None else None
            if statement is None or loop is None or not self._is_alone(statement):
                continue
            if (indent := self._indent(first := loop.body[0].span)).strip():
                continue
            edits.append((self._before(first), f"{indent}{self._with_comment(statement)}\n"))
            edits.append((self._line(statement.span), ""))
        if edits:
            yield self.replaced(self._joined(edits))

    def _joined(self, edits: list[Edit]) -> list[Edit]:
        joined: dict[Span, str] = {}
        for span, text in edits:
            joined[span] = joined.get(span, "") + text
        return [*joined.items()]

    def _assignments(self) -> Iterator[nodes.Assign]:
        for node in self.all:
            if isinstance(node, nodes.Assign) and isinstance(node.targets[0], nodes.Name):
                yield node

    def _loop_of(self, statement: nodes.Assign, which: int) -> nodes.For | None:
        target = statement.targets[0]
        assert isinstance(target, nodes.Name)
        function = self._around(statement.span, nodes.FunctionDef)
        loops = [
            loop
            for loop in self.all
            if isinstance(loop, nodes.For) and not loop.span.covers(statement.span)
        ]
        names = [
            n.span
            for n in self.all
            if isinstance(n, nodes.Name) and n.id == target.id and n is not target
            if function is None or function.span.covers(n.span)
        ]
        around = [loop for loop in loops if names and all(loop.span.covers(span) for span in names)]
        around.sort(key=lambda loop: loop.span.line, reverse=True)
        return around[which] if around else None

    def _around(self, span: Span, kind: type[nodes.FunctionDef]) -> nodes.FunctionDef | None:
        found = [node for node in self.all if isinstance(node, kind) and node.span.covers(span)]
        return max(found, key=lambda node: node.span.line, default=None)

    # Loads

    def loaded_once(self, lines: Sequence[int]) -> Iterator[str]:
        """Keep the tiles that these lines load: in front of the outermost loop, or of one in it."""
        loads = self._loads(lines)
        for depth in range(min((len(load.loops) for load in loads), default=0)):
            if not any(load.key(depth) and load.is_traced for load in loads):
                yield self.keeping([(load, depth) for load in loads])

    def keeping(self, loads: Sequence[tuple[_Load, int]]) -> str:
        """Keep the tile of each load from the loop of a depth on."""
        edits = [edit for load, depth in loads for edit in self._kept(load, depth)]
        return self.replaced(self._joined(edits))

    def _loads(self, lines: Sequence[int]) -> list[_Load]:
        """Return the loads of these lines; none if one cannot be kept."""
        loads = [load for line in lines if (load := self._load(line)) is not None]
        return loads if len(loads) == len(lines) else []

    def _load(self, line: int) -> _Load | None:
        """Return what makes the only tile that a line loads, if it is in a loop."""
        called = [
            n
            for n in self._assignments()
            if n.span.line == line and isinstance(n.value, nodes.Call)
        ]
        if len(called) == 1:
            return self._made((called[0],), _name(called[0].targets[0]))
        calls = [(s, call) for s, call in self._statements(line) if self._name(call) == TRANSFER]
        if len(calls) != 1:
            return None
        statement, call = calls[0]
        tile = next((_name(each.value) for each in call.keywords if each.arg == "dst"), "")
        declared = [n for n in self._assignments() if self._is_of(n, tile, statement)]
        return self._made((declared[0], statement), tile) if len(declared) == 1 else None

    def _key(self, load: _Load) -> tuple[str, str, int]:
        """Return what tells a load from others, wherever it is."""
        function = self._around(load.made[-1].span, nodes.FunctionDef)
        return function.name if function is not None else "", load.tile, len(load.made)

    def _made(self, made: tuple[nodes.Statement, ...], tile: str) -> _Load | None:
        """Return these statements, if they are of one loop and nothing else assigns the tile."""
        last = made[-1]
        loops = [n for n in self.all if isinstance(n, nodes.For) and n.span.covers(last.span)]
        loops.sort(key=lambda loop: loop.span[1:3])
        others = [n for n in self._assignments() if self._is_of(n, tile, last) and n not in made]
        is_one = loops and not others and all(each in loops[-1].body for each in made)
        is_one = is_one and all(map(self._is_alone, made))
        return _Load(made, tile, loops) if is_one and made[0].span <= last.span else None

    def _is_alone(self, statement: nodes.Statement) -> bool:
        """Return whether its lines hold nothing else but a comment."""
        span = statement.span
        after = self.lines[span.end_line - 1][span.end_column - 1 :].strip()
        return not self._indent(span).strip() and (not after or after.startswith("#"))

    def _with_comment(self, statement: nodes.Statement) -> str:
        span = statement.span
        return "".join(self.lines[span.line - 1 : span.end_line])[span.column - 1 :].rstrip()

    def _is_of(self, node: nodes.Assign, name: str, beside: nodes.Statement) -> bool:
        function = self._around(beside.span, nodes.FunctionDef)
        is_inside = function is None or function.span.covers(node.span)
        return is_inside and _name(node.targets[0]) == name

    def _kept(self, load: _Load, depth: int) -> Iterator[Edit]:
        """Yield the edits that keep a tile from the loop of this depth on.

        Those that differ between iterations are in a dictionary, by the names that tell them apart.
        """
        around, key = load.loops[depth], ", ".join(load.key(depth))
        *before, last = load.made
        made = [self._with_comment(each) for each in load.made]
        outer, inner = self._indent(around.span), self._indent(last.span)
        start = self._before(around.span)
        for each in before:
            yield self._line(each.span), ""
        if not key:
            yield start, "".join(f"{outer}{text}\n" for text in made)
            yield self._line(last.span), ""
            return
        kept = self._fresh(f"{load.tile}_kept")
        known = f"({key})" if "," in key else key
        made = [
            text.replace("\n", f"\n{self.step}") for text in (*made, f"{kept}[{key}] = {load.tile}")
        ]
        yield start, f"{outer}{kept} = {{}}\n"
        yield (
            self._line(last.span),
            f"{inner}if {known} not in {kept}:\n"
            + "".join(f"{inner}{self.step}{text}\n" for text in made)
            + f"{inner}{load.tile} = {kept}[{key}]\n",
        )

    def _fresh(self, name: str) -> str:
        """Return a name that the source does not use."""
        while any(isinstance(n, nodes.Name) and n.id == name for n in self.all):
            name += "_"
        return name

    # Blocks of loops

    def blocked(self, lines: Sequence[int], blocks: Mapping[str, str]) -> Iterator[str]:
        """Open the results of a block of iterations at once, so that they share what they load.

        A tile that does not depend on an inner one of these loops is kept for all its blocks, or,
        if memory is short, like the others until the loop around the products goes on.
        """
        loads = self._loads(lines)
        nest = self._nest(loads, blocks)
        if not nest or any(load.is_traced for load in loads):
            return
        try:
            text = _Text(SourceFile(self.source.path, self._reordered(nest, blocks)))
        except NkicError:  # such as statements in the line of their loop
            return
        known = {self._key(load) for load in loads}
        made = (text._load(line) for line in range(1, len(text.lines) + 1))
        moved = [each for each in made if each and text._key(each) in known]
        if len(moved) != len(loads):
            return
        outer = loads[0].loops.index(nest[0])
        short = outer + len(nest) + 1
        wide = {}
        for load in moved:
            free = [i for i, loop in enumerate(nest) if i and _name(loop.target) not in load.read]
            wide[load.tile] = outer + free[0] if free else short
        yield text.keeping([(load, wide[load.tile]) for load in moved])
        yield text.keeping([(load, short) for load in moved])

    def _nest(self, loads: Sequence[_Load], blocks: Mapping[str, str]) -> list[nodes.For]:
        """Return the loops of these names, each the only statement of the one around it, if another
        loop in the innermost one has all loads.
        """
        loops = [loop for load in loads[:1] for loop in load.loops]
        nest = [loop for loop in loops if _name(loop.target) in blocks]
        if len(nest) != len(blocks):
            return []
        is_nest = all(a.body == (b,) for a, b in itertools.pairwise(nest))
        within = [node for node in nest[-1].body if isinstance(node, nodes.For)]
        has_loads = len(within) == 1 and all(
            within[0].span.covers(load.made[-1].span) for load in loads
        )
        return nest if is_nest and has_loads and all(map(self._range, nest)) else []

    def _whole(self, statements: Sequence[nodes.Statement], after: int) -> list[str]:
        """Return the lines of statements, with comments after a line, and without their indent."""
        return _dedented(self.lines[after : statements[-1].span.end_line]) if statements else []

    def _range(self, loop: nodes.For) -> tuple[str, str, str] | None:
        """Return the start, stop and step of a loop over `range`."""
        call = loop.iter
        if not isinstance(call, nodes.Call) or _name(call.func) != "range" or loop.orelse:
            return None
        words = [self.of(each.span) for each in call.args]
        if len(words) == 1:
            words = ["0", *words]
        return (words[0], words[1], words[2] if len(words) == 3 else "1") if words else None

    def _reordered(self, nest: Sequence[nodes.For], blocks: Mapping[str, str]) -> str:
        """Return the text with a loop over blocks for each loop, and loops over each block around
        what comes before the loop in the innermost of them, in it, and after it.
        """
        body, names = nest[-1].body, [_name(loop.target) for loop in nest]
        (at,) = (i for i, node in enumerate(body) if isinstance(node, nodes.For))
        inner = body[at]
        assert isinstance(inner, nodes.For)
        indent = self._indent(nest[0].span)
        outer, loops = [], []
        for name, loop in zip(names, nest, strict=True):
            start, stop, step = self._range(loop) or ("", "", "")
            factor, first = blocks[name], self._fresh(f"{name}_block")
            size = f"{factor} * {step if step.isidentifier() or step.isdigit() else f'({step})'}"
            size = factor if step == "1" else size
            outer.append(f"for {first} in range({start}, {stop}, {size}):")
            loops.append(f"for {name} in range({first}, {first} + {size}, {step}):")
        made = [t for n in body[:at] for node in walk(n) for t in _targets(node)]
        saved = ", ".join(dict.fromkeys(_name(t) for t in made if _name(t)))
        kept = f"{self._fresh('opened')}[{', '.join(names)}]"
        deep, head = len(nest), self.lines[inner.span.line - 1 : inner.iter.span.end_line]
        before = self._whole(body[:at], nest[-1].iter.span.end_line)
        after = self._whole(body[at + 1 :], inner.span.end_line)
        again = [f"{saved} = {kept}"] if saved else []
        if saved:
            opened = [f"{kept.partition('[')[0]} = {{}}"]
            before.append(f"{kept} = {saved}")
        parts = [
            *_nested(outer, 0, opened if saved else []),
            *(_nested(loops, deep, before) if before else []),
            *_nested([], deep, _dedented(head)),
            *_nested(loops, deep + 1, [*again, *self._whole(inner.body, inner.iter.span.end_line)]),
            *(_nested(loops, deep, [*again, *after]) if after else []),
        ]
        text = "".join(f"{indent}{line}".rstrip() + "\n" for line in parts)
        return self.replaced([(self._line(nest[0].span), text)])

    def _indent(self, span: Span) -> str:
        return self.lines[span.line - 1][: span.column - 1]

    def _before(self, span: Span) -> Span:
        """Return the empty place in front of the line of a statement."""
        return Span(span.path, span.line, 1, span.line, 1)

    def _line(self, span: Span) -> Span:
        return Span(span.path, span.line, 1, span.end_line + 1, 1)

    # Sums in PSUM

    def summed(self, line: int) -> Iterator[str]:
        """Let PSUM add the products that a line adds to a sum: declare their tile in front of the
        loops of the sum, and add it once behind, or copy it where the first product is copied.
        """
        found = self._statements(line)
        given = self._keywords(found[0][1]) if len(found) == 1 else {}
        total, terms = given.get("dst", ""), [given.get("data1"), given.get("data2")]
        products = [term for term in terms if term and term != total]
        if len(products) != 1:
            return
        tile, result = (text.partition("[")[0].strip() for text in (products[0], total))
        made: nodes.Statement = found[0][0]
        once = made
        told: set[str] = set()  # names that tell the first product
        for choice in (n for n in self.all if isinstance(n, nodes.If)):
            branches = [choice.body, choice.orelse]
            if (made,) in branches and all(len(branch) == 1 for branch in branches):
                once, made = branches[1 - branches.index((made,))][0], choice
                told = {*_names(choice.test)}
        loops = [n for n in self.all if isinstance(n, nodes.For) and n.span.covers(made.span)]
        loops.sort(key=lambda loop: loop.span[1:3], reverse=True)
        told &= _assigned(loops)
        beside = [n for n in loops[0].body if n != made] if loops else []
        uses = [n for n in beside if {tile, result} & _names(n).keys()]
        declared = [n for n in uses if isinstance(n, nodes.Assign) and _name(n.targets[0]) == tile]
        if len(declared) != 1 or len(uses) != 2:
            return
        fixed, around = {*_names(once), *_names(declared[0])} - {tile}, list[nodes.For]()
        for loop in loops:
            others = [n for n in loop.body if n not in around] if around else []
            if fixed & _assigned([loop]) or any({tile, result} & _names(n).keys() for n in others):
                break
            if loop.orelse or (told and not told - _assigned(around)):
                break
            around.append(loop)
        moved = [made, declared[0]]
        if not around or made not in loops[0].body or not all(map(self._is_alone, [once, *moved])):
            return
        outer = around[-1].span
        after = Span(outer.path, outer.end_line + 1, 1, outer.end_line + 1, 1)
        edits = [(self._line(each.span), "") for each in moved]
        for place, each in ((self._before(outer), declared[0]), (after, once)):
            lines = self._whole((each,), each.span.line - 1)
            edits.append((place, "".join(f"{self._indent(outer)}{text}\n" for text in lines)))
        yield self.replaced(self._joined(edits))

    # Larger tiles

    def widened(self, line: int, width: int, count: int) -> Iterator[str]:
        """Let each iteration of the loop around a line do the work of `count` iterations, on tiles
        of so many times `width` columns, if it uses its number in slices alone.
        """
        around = [n for n in self.all if isinstance(n, nodes.For) and n.span.end_line >= line]
        loops = [loop for loop in around if loop.span.line < line]
        bounds = self._range(loops[-1]) if loops else None
        if bounds is None:
            return
        loop, total, uses = loops[-1], str(width * count), 0
        number = _names(loop.target).keys()
        start, stop, step = bounds
        wide = str(count * int(step)) if step.isdigit() else f"{count} * ({step})"
        edits = [(loop.iter.span, f"range({start}, {stop}, {wide})")]
        for node in (node for each in loop.body for node in walk(each)):
            uses += _name(node) in number
            parts: Sequence[nodes.Expression | None] = ()
            if isinstance(node, nodes.Slice):
                parts = (node.lower, node.upper)
            elif isinstance(node, nodes.Call) and self._name(node) == "ndarray":
                shape = [*node.args, *(k.value for k in node.keywords if k.arg == "shape")][:1]
                ends = [each.elts[-1] for each in shape if isinstance(each, nodes.Tuple)]
                edits += [(end.span, total) for end in ends if self.of(end.span) != "1"]
            elif isinstance(node, nodes.Call) and _is_slice(node):
                parts = node.args
            first, end = parts if len(parts) == 2 else (None, None)
            if first is not None and end is not None and number & _names(first).keys():
                is_size = isinstance(node, nodes.Call) and self._name(node) == "ds"
                is_simple = not re.search(r"[<>&|^]|\b(if|or|and|not)\b", self.of(first.span))
                begins = self.of(first.span) if is_simple else f"({self.of(first.span)})"
                edits.append((end.span, total if is_size else f"{begins} + {total}"))
                uses -= sum(_name(n) in number for part in (first, end) for n in walk(part))
        if not uses:
            yield self.replaced(edits)

    # Whole rows

    def in_one_transfer(self, line: int) -> Iterator[str]:
        """Load in front of a loop from 0 on, in one transfer, the columns that its iterations load
        in pieces, and give each a slice of the tile.
        """
        load = self._load(line)
        start, stop, _ = (self._range(load.loops[-1]) if load is not None else None) or ("",) * 3
        if load is None or start != "0" or len(load.made) != 2:
            return
        (declared, transfer), loop = load.made, load.loops[-1]
        number, row = _name(loop.target), self._fresh(f"{load.tile}_row")
        shapes = [n.elts for n in walk(declared) if isinstance(n, nodes.Tuple) and len(n.elts) == 2]
        parts = [n.elts[-1] for n in walk(transfer) if isinstance(n, nodes.Tuple) and n.elts]
        pieces = [n for n in parts if isinstance(n, nodes.Slice) and number in _names(n)]
        uses = [sum(_name(n) == number for n in walk(each)) for each in (transfer, *pieces)]
        others = {*_names(declared), *_names(transfer)} & _assigned([loop]) - {number, load.tile}
        if len(pieces) != 1 or len(shapes) != 1 or uses[0] != uses[1] or others:
            return
        lower = self.of(pieces[0].lower.span) if pieces[0].lower is not None else ""
        if not re.fullmatch(rf"{number}( \* [\w.]+)?", lower):
            return
        is_plain = lower == number or re.fullmatch(r"[\w.]+", stop)
        end = lower.replace(number, stop if is_plain else f"({stop})", 1)
        tile = next(n.span for n in walk(declared) if _name(n) == load.tile)
        filled = next(n.span for n in walk(transfer) if _name(n) == load.tile)
        comment = self._with_comment(declared).removeprefix(self.of(declared.span))
        made = [
            self.replaced([(tile, row), (shapes[0][-1].span, end)], declared.span) + comment,
            self.replaced([(filled, row), (pieces[0].span, f"0 : {end}")], transfer.span),
        ]
        lines = "".join(f"{self._indent(loop.span)}{text}\n" for text in made)
        view = f"{load.tile} = {row}[:, {self.of(pieces[0].span)}]"
        edits = [(self._line(declared.span), ""), (transfer.span, view)]
        yield self.replaced([(self._before(loop.span), lines), *edits])

    # Fused instructions

    def fused(self, first: int, second: int) -> Iterator[str]:
        """Let the activation of one line also add up what the next statement reduces, or the next
        after declarations.
        """
        for call, reduce, declared in self._in_a_row(first, second):
            given, reduced = self._keywords(call), self._keywords(reduce)
            needed = {"dst", "op"} | ({"data"} if self._name(call) == ACTIVATION else {"data1"})
            if needed <= given.keys() and "dst" in reduced:
                isa, ops = (self.of(call.func.span), given["op"])
                new = adding_up(given, reduced["dst"], _prefix(isa), _prefix(ops))
                yield self.replaced([self._as_one(call, reduce, [*declared, new])])

    def joined(self, first: int, second: int) -> Iterator[str]:
        """Let one instruction do what two in a row do, of which the second reads the result of the
        first.
        """
        for call, after, declared in self._in_a_row(first, second):
            given, then = self._keywords(call), self._keywords(after)
            reads = [name for name in then if name != "dst" and then[name] == given.get("dst")]
            found = len(reads) == 1 and joined(
                self._name(call), given, self._name(after), then, reads[0]
            )
            if not found:
                continue
            isa, lines = _prefix(self.of(call.func.span)), []
            if NEGATED in found[1].values() and re.match(r"[A-Za-z_]", given["operand0"]):
                given[NEGATED] = self._fresh("negated")
                lines = negating(given, isa)
            elif NEGATED in found[1].values():
                given[NEGATED] = f"-({given['operand0']})"
            lines = [*declared, *lines, joining(found, given, then, isa)]
            yield self.replaced(
                [self._as_one(call, after, lines), *self._unused(given["dst"], call)]
            )

    def _in_a_row(
        self, first: int, second: int
    ) -> Iterator[tuple[nodes.Call, nodes.Call, list[str]]]:
        """Yield the calls of two lines, if only declarations are between them, and no comments; and
        the declarations.
        """
        makers, readers = self._statements(first), self._statements(second)
        if len(makers) != 1 or len(readers) != 1:
            return
        calls = call, after = makers[0][1], readers[0][1]
        between = Span(call.span.path, *call.span[3:], *after.span[1:3])
        assigned = [n for n in self.all if isinstance(n, nodes.Assign) and between.covers(n.span)]
        declared = [self.of(n.span) for n in assigned if self._is_declaration(n)]
        left = functools.reduce(
            lambda text, each: text.replace(each, "", 1), declared, self.of(between)
        )
        is_plain = not left.strip() and not any("#" in self.of(each.span) for each in calls)
        is_beside = call.span.column == after.span.column  # no `if` or loop ends between
        if is_plain and is_beside:
            yield call, after, declared

    def _as_one(self, call: nodes.Call, after: nodes.Call, lines: Sequence[str]) -> Edit:
        """Return lines in place of two calls and of what is between them."""
        return call.span.to(after.span), f"\n{self._indent(call.span)}".join(lines)

    def _unused(self, tile: str, call: nodes.Call) -> Iterator[Edit]:
        """Yield the edit that takes away the declaration in front of a call of a tile that only the
        call and the next one use.
        """
        function = self._around(call.span, nodes.FunctionDef)
        if function is None or sum(_name(n) == tile for n in walk(function)) != 3:
            return
        for each in self._assignments():
            is_own = _name(each.targets[0]) == tile and function.span.covers(each.span)
            is_plain = self._is_declaration(each) and self._is_alone(each)
            if is_own and each.span < call.span and is_plain:
                yield self._line(each.span), ""

    def _is_declaration(self, statement: nodes.Assign) -> bool:
        value = statement.value
        return isinstance(value, nodes.Call) and self._name(value) == "ndarray"

    def _statements(self, line: int) -> list[tuple[nodes.Expr, nodes.Call]]:
        return [
            (node, node.value)
            for node in self.all
            if isinstance(node, nodes.Expr) and isinstance(node.value, nodes.Call)
            if node.span.line == line and not node.value.args
        ]

    def _keywords(self, call: nodes.Call) -> dict[str, str]:
        return {each.arg: self.of(each.value.span) for each in call.keywords if each.arg}
