"""A LALR parser that runs on the grammar's tables: tokens to syntax tree.

Lark builds the tables (see `tables`); this loop replaces Lark's own, which is four times slower for
a language with 17 levels of operators. It skips chains of unit reductions, and it passes each
node's exact span to the function that creates the node, including parentheses that leave no trace
in the tree.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from nkic.base.diagnostics import CompileFailed, refusal
from nkic.base.source import SourceFile, Span

# ------------------------------------------------------------------------------------------------
# Limits on the nesting of source and the length of names; Python's own limits where it has one.
# They bound the recursion of later stages: a tree nests at most `MAX_NESTING` deep, except for the
# chains named in `nkic.source.nodes`. docs/language.md lists them all.

MAX_BRACKETS = 200  # open brackets and f-string fields
MAX_BLOCKS = 100  # levels of indentation
MAX_FIELDS = 3  # fields within the formats of one f-string's fields
MAX_NESTING = 2000  # symbols on the parser's stack: also `not not …`, `x if a else …`
MAX_NAME = 255  # characters of a non-ASCII name: normalisation takes quadratic time


# ---- The interface between lexer and parser -----------------------------------------------------


class Token(NamedTuple):
    """A token of the source. `kind` is the terminal's number in the tables.

    Lines and columns count from 1. The tokens for line ends and indentation end where the last real
    token ended, so that a block's last token ends where its text does.
    """

    kind: int
    text: str
    line: int
    column: int
    end_line: int
    end_column: int

    def span(self, path: str) -> Span:
        """Return the token's span in the file at `path`."""
        return Span(path, *self[2:])


class Bracket(NamedTuple):
    """An open bracket: the text that closes it and its index among the tokens.

    `field_start` is the offset of an f-string field's text, or -1 for ordinary brackets.
    """

    closer: str
    token: int
    field_start: int = -1


class Tokens(NamedTuple):
    """All tokens of a file, terminated by the end token or, if the lexer failed, an ERROR token."""

    tokens: list[Token]
    failure: CompileFailed | None
    open_brackets: tuple[Bracket, ...]


# ------------------------------------------------------------------------------------------------
# Decode a file's bytes by Python's rules: byte order mark, declared encoding, or UTF-8.

_DECLARATION = re.compile(rb"[ \t\f]*#[^\n\r]*?coding[:=][ \t]*([-\w.]+)")
_BLANK = re.compile(rb"[ \t\f]*(?:#[^\n\r]*)?\Z")
_LINE_END = re.compile(rb"\r\n|\r|\n")


def decode(data: bytes, path: str) -> SourceFile:
    """Return the text of a source file, without its byte order mark."""
    marked = data.startswith(codecs.BOM_UTF8)
    data = data.removeprefix(codecs.BOM_UTF8)
    name, span = _declared(data, path)
    codec = _codec(name, span)
    if marked and not re.fullmatch("utf[-_]8([-_].*)?", name, re.IGNORECASE):  # as strict as Python
        message = f"the file starts with the byte order mark of UTF-8, but declares `{name}`"
        raise refusal("unknown-encoding", message, span, help="remove one of the two")
    try:
        text = data.decode(codec)
    except UnicodeError as error:
        raise _undecodable(data, error, name, path) from None
    if "\0" in text:
        raise _nul_byte(text, path)
    return SourceFile(path, text)


def _declared(data: bytes, path: str) -> tuple[str, Span]:
    """Return the encoding declared in one of the first two lines, and its span; or UTF-8."""
    for number, line in enumerate(_LINE_END.split(data, maxsplit=2)[:2], 1):
        if match := _DECLARATION.match(line):
            start, end = match.span(1)
            return match[1].decode("ascii", "replace"), Span(
                path, number, start + 1, number, end + 1
            )
        if not _BLANK.match(line):
            break
    return "utf-8", Span(path, 1, 1, 1, 1)


def _codec(name: str, span: Span) -> str:
    try:
        codec = codecs.lookup(name)
        "".encode(codec.name)  # rejects codecs that do not encode text, such as rot13
    except (LookupError, UnicodeError):
        message = f"there is no text encoding called `{name}`"
        help = "save the file as UTF-8 and remove the declaration"
        raise refusal("unknown-encoding", message, span, help=help) from None
    return "utf-8" if codec.name == "utf-8-sig" else codec.name


def _undecodable(data: bytes, error: UnicodeError, name: str, path: str) -> CompileFailed:
    start = error.start if isinstance(error, UnicodeDecodeError) else 0
    line, column = _position(data[:start].decode(name, "replace"))
    message = f"the byte 0x{data[start]:02X} is not a character in the encoding {name}"
    help = "save the file as UTF-8, or declare its encoding: `# -*- coding: latin-1 -*-`"
    return refusal("not-utf8", message, Span(path, line, column, line, column + 1), help=help)


def _nul_byte(text: str, path: str) -> CompileFailed:
    line, column = _position(text[: text.index("\0")])
    span = Span(path, line, column, line, column + 1)
    message = "the file contains a NUL character, which source text cannot contain"
    return refusal("nul-byte", message, span, help="save the file as plain text in UTF-8")


def _position(before: str) -> tuple[int, int]:
    lines = re.split("\r\n|\r|\n", before)
    return len(lines), len(lines[-1]) + 1


# ---- The parser's tables: Lark's LALR tables for `grammar/nki.lark`, as plain data --------------
# Building them takes half a second, so the package contains them in `grammar/tables.json`, written
# by `python -m nkic.source.generate`. They include a checksum of the grammar: after an edit of the
# grammar, they are rebuilt in memory at each start until that command is run.

GRAMMAR, TABLES = "nki.lark", "tables.json"
ERROR = "ERROR"  # the terminal at which the lexer failed; no state accepts it
END = "$END"


class Production(NamedTuple):
    """One alternative of a rule.

    `action` names the function that computes its value; "" stands for "the only kept part" and "+"
    for Lark's helpers that collect repetitions into a list. `args` holds the positions of the kept
    parts, with -1 for an omitted optional part; `spliced` those that are lists.
    """

    origin: int
    length: int
    action: str
    args: tuple[int, ...]
    spliced: tuple[int, ...]

    @property
    def is_unit(self) -> bool:
        """Whether this rule is a unit rule: it renames one part and has no other effect."""
        return self.length == 1 and self.action == ""


@dataclass(frozen=True, slots=True)
class Tables:
    """The lexer's and parser's data about the grammar.

    `actions[state][terminal]` is the state to shift to, or `~rule` to reduce by;
    `gotos[state][nonterminal]` is the state after a reduction. `terminals` holds names, `texts`
    maps the text of fixed terminals to their number, `patterns` maps the names of the others to a
    regex.
    """

    terminals: tuple[str, ...]
    texts: dict[str, int]
    patterns: dict[str, str]
    rules: tuple[Production, ...]
    actions: tuple[dict[int, int], ...]
    gotos: tuple[dict[int, int], ...]
    _jumps: dict[int, int] = field(default_factory=dict)

    def index(self, terminal: str) -> int:
        return self.terminals.index(terminal)


def folder() -> Path:
    """Return the package's `grammar/`, or the one beside `nkic/` in a checkout.

    importlib.resources would find it, too, but takes 6 ms of start-up time to import.
    """
    package = Path(__file__).parents[1]
    packaged = package / "grammar"
    return packaged if packaged.is_dir() else package.with_name("grammar")


def checksum(grammar: bytes) -> int:
    """Return the checksum that ties tables.json to the grammar it was built from."""
    return crc32(grammar.replace(b"\r\n", b"\n"))


@cache
def load() -> Tables:
    """Return the tables of the package's grammar, loaded once per process."""
    grammar = folder().joinpath(GRAMMAR).read_bytes()
    try:
        stored = json.loads(folder().joinpath(TABLES).read_bytes())
    except (OSError, ValueError):
        stored = {}
    if stored.get("grammar") != checksum(grammar):
        # Lark is needed only after an edit of the grammar.
        from nkic.source.generate import generate

        stored = generate(grammar)
    return unpack(stored)


def unpack(stored: dict[str, Any]) -> Tables:
    """Return tables from their stored form, see `nkic.source.generate`."""
    lookaheads = stored["lookaheads"]
    actions = []
    for shifts, reduces in stored["actions"]:
        row = _pairs(shifts)
        for rule, group in _pairs(reduces).items():
            row.update(dict.fromkeys(lookaheads[group], ~rule))
        actions.append(row)
    return Tables(
        terminals=tuple(stored["terminals"]),
        texts=stored["texts"],
        patterns=stored["patterns"],
        rules=tuple(
            Production(o, n, a, tuple(args), tuple(s)) for o, n, a, args, s in stored["rules"]
        ),
        actions=tuple(actions),
        gotos=tuple(_pairs(row) for row in stored["gotos"]),
    )


def _pairs(flat: list[int]) -> dict[int, int]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


# ---- The lexer's view of the grammar: the numbers of terminals and their patterns ---------------


class Words:
    """Terminals by role, and `pattern`, which matches any token with preceding blanks."""

    def __init__(self, tables: Tables) -> None:
        number = tables.index
        self.fixed = tables.texts
        self.keywords = {text: kind for text, kind in tables.texts.items() if text.isalpha()}
        self.name, self.number, self.string = number("NAME"), number("NUMBER"), number("STRING")
        self.fstring_start, self.fstring_end = number("FSTRING_START"), number("_FSTRING_END")
        self.field_open = number("_FIELD_OPEN")
        self.middle, self.raw_middle = number("FSTRING_MIDDLE"), number("RAW_FSTRING_MIDDLE")
        self.newline, self.indent, self.dedent = map(number, ("_NEWLINE", "_INDENT", "_DEDENT"))
        self.with_open, self.with_, self.match = map(number, ("_WITH_OPEN", "WITH", "MATCH"))
        self.case, self.type = number("CASE"), number("TYPE")
        self.end, self.error = number(END), number(ERROR)
        self.first_lookahead = min(self.with_, self.match, self.case, self.type)
        self.pattern = _master_pattern(tables)


def _master_pattern(tables: Tables) -> re.Pattern[str]:
    special = {*"()[]{}!:", ":="}
    operators = [text for text in tables.texts if not text.isalpha() and text not in special]
    operators.sort(key=len, reverse=True)  # the longest first
    name = tables.patterns["NAME"]
    groups = {
        # A whole word: no further word character follows, and no quote, since it may be a prefix.
        "word": rf"{name}(?![^\x00-!#-&(-/:-@\[-^`{{-\x7f])",
        "newline": r"(?:\#[^\n]*)?\n",
        "number": tables.patterns["NUMBER"],
        "operator": "|".join(map(re.escape, operators)),
        "opening": r"[(\[{]",
        "closing": r"[)\]}]",
        "string": tables.patterns["STRING"],
        "fstring": tables.patterns["FSTRING_START"],
        "colon": r":=?|!",
        "other_word": name,
        "continuation": r"\\\n",
        "bad": r"[\s\S]",
    }
    choices = "|".join(f"(?P<{group}>{pattern})" for group, pattern in groups.items())
    return re.compile(rf"[ \t\f]*(?:{choices})")


@cache
def words() -> Words:
    return Words(load())


@cache
def literal_pattern(quote: str, raw: bool) -> re.Pattern[str]:
    """Return a pattern for f-string text up to a brace, the string's end or a line's end."""
    first = re.escape(quote[0])
    plain = rf"[^\\{{}}\n{first}]" if len(quote) == 1 else rf"[^\\{{}}{first}]"
    inner_quote = "" if len(quote) == 1 else rf"|{first}(?!{first}{first})"
    named = "" if raw else r"|\\N\{[^{}\"'\n]*\}"
    return re.compile(rf"(?:{plain}+{inner_quote}{named}|\\(?=[{{}}])|\\[\s\S])*")


Pick = Callable[[list[Any]], Sequence[Any]]  # takes a rule's kept parts off the stack
Actions = dict[str, Callable[..., Any]]  # by rule or alias: (span, *kept parts) -> value

CALL, PASS, COLLECT, EXTEND = range(4)  # the modes of a reduction


class Reduction(NamedTuple):
    """A rule in executable form."""

    length: int
    origin: int
    mode: int
    pick: Pick
    action: Callable[..., Any]


@dataclass(eq=False)
class Unexpected(Exception):
    """The parser cannot continue at token `index`, with these states and values on its stack."""

    index: int
    states: list[int]
    values: list[Any]


class TooDeep(Unexpected):
    """The parser's stack is full."""


class Parser:
    """The tables with one function per rule. A parser can parse any number of files."""

    def __init__(self, tables: Tables, actions: Actions) -> None:
        self.tables = tables
        self._reductions = tuple(_reduction(rule, actions) for rule in tables.rules)
        self._jumps: dict[tuple[int, int, int], int] = {}

    def parse(self, tokens: list[Token], path: str) -> Any:
        """Return the value of the start rule. Raises `Unexpected` if the tokens do not fit."""
        actions, reductions, jumps = self.tables.actions, self._reductions, self._jumps
        new, last = tuple.__new__, tokens[0]
        state, states = 0, [0]
        firsts: list[Token] = []
        values: list[Any] = [None]  # the bottom is the value of omitted optional parts
        for index, token in enumerate(tokens):
            kind = token[0]
            row = actions[state]
            while (code := row.get(kind, 0)) < 0:
                length, origin, mode, pick, action = reductions[~code]
                if length:
                    first = firsts[-length]
                    where = first[2], first[3], last[4], last[5]
                else:
                    first, where = token, (token[2], token[3], token[2], token[3])
                if mode == CALL:
                    value = action(new(Span, (path, *where)), *pick(values))
                elif mode == EXTEND:
                    value = values[-length]
                    value.extend(pick(values))
                else:
                    value = pick(values) if mode == PASS else list(pick(values))
                if length:
                    del states[-length:], values[-length:], firsts[-length:]
                key = states[-1], origin, kind
                state = jumps.get(key) or self._jump(key)
                states.append(state)
                values.append(value)
                firsts.append(first)
                row = actions[state]
            if code == 0:
                raise Unexpected(index, states, values)
            if len(states) > MAX_NESTING:
                raise TooDeep(index, states, values)
            state = code
            states.append(state)
            values.append(token[1])
            firsts.append(token)
            last = token
        return values[1]

    def _jump(self, key: tuple[int, int, int]) -> int:
        """Return the state after a reduction and the unit reductions that must follow it."""
        below, origin, kind = key
        tables = self.tables
        state = tables.gotos[below][origin]
        while (code := tables.actions[state].get(kind, 0)) < 0 and tables.rules[~code].is_unit:
            state = tables.gotos[below][tables.rules[~code].origin]
        self._jumps[key] = state
        return state

    def accepts(self, states: list[int], kind: int) -> bool:
        """Whether a token of this kind is acceptable next; runs the tables without values."""
        states = list(states)
        while (code := self.tables.actions[states[-1]].get(kind, 0)) < 0:
            rule = self.tables.rules[~code]
            del states[len(states) - rule.length :]
            states.append(self.tables.gotos[states[-1]][rule.origin])
        return code > 0


def _reduction(rule: Production, actions: Actions) -> Reduction:
    if rule.action == "":
        (only,) = rule.args
        offset = only - rule.length if only >= 0 else 0
        return Reduction(rule.length, rule.origin, PASS, itemgetter(offset), list)
    if rule.action != "+":
        return Reduction(rule.length, rule.origin, CALL, _pick(rule), actions[rule.action])
    if rule.spliced == (0,):
        # a growing list: only the parts after the list itself
        grown = rule._replace(args=rule.args[1:], spliced=())
        return Reduction(rule.length, rule.origin, EXTEND, _pick(grown), list)
    return Reduction(rule.length, rule.origin, COLLECT, _pick(rule), list)


def _pick(rule: Production) -> Pick:
    offsets = [index - rule.length if index >= 0 else 0 for index in rule.args]
    if rule.spliced:
        return _pick_spliced(offsets, [index in rule.spliced for index in rule.args])
    if not offsets:
        return _pick_nothing
    if len(offsets) > 1:
        return itemgetter(*offsets)
    offset = offsets[0]
    return itemgetter(slice(offset, offset + 1 or None))


def _pick_nothing(values: list[Any]) -> Sequence[Any]:
    return ()


def _pick_spliced(offsets: list[int], spliced: list[bool]) -> Pick:
    parts = list(zip(offsets, spliced, strict=True))

    def pick(values: list[Any]) -> Sequence[Any]:
        parts_found: list[Any] = []
        for offset, is_list in parts:
            if is_list:
                parts_found += values[offset]
            else:
                parts_found.append(values[offset])
        return parts_found

    return pick
