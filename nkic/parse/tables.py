"""The parser's tables: Lark's LALR tables for `grammar/nki.lark`, as plain data.

Building them takes half a second, so the package contains them in `grammar/tables.json`, written by
`python -m nkic.parse.generate`. They include a checksum of the grammar: after an edit of the
grammar, they are rebuilt in memory at each start until that command is run.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

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
        """Return the number of the terminal with this name."""
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
        from nkic.parse.generate import generate

        stored = generate(grammar)
    return unpack(stored)


def unpack(stored: dict[str, Any]) -> Tables:
    """Return tables from their stored form, see `nkic.parse.generate`."""
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
