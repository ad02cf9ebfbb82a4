"""The parser's tables: `grammar/nki.lark` as Lark's LALR construction sees it, as plain data.

Building them takes half a second, so the package carries them in `grammar/tables.json`,
written by `python -m nkic.parse.generate`. They hold the checksum of the grammar they were made
from: after an edit of the grammar they are built anew in memory until somebody runs that.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

GRAMMAR, TABLES = "nki.lark", "tables.json"
ERROR = "ERROR"  # the terminal at which the lexer gave up; no state accepts it
END = "$END"


class Production(NamedTuple):
    """One alternative of a rule.

    `action` names the function that makes its value, "" stands for "the only part kept" and
    "+" for Lark's helpers that collect repetitions into a list. `args` are the positions of
    the parts kept, -1 for an optional part left out; `spliced` are those that are lists.
    """

    origin: int
    length: int
    action: str
    args: tuple[int, ...]
    spliced: tuple[int, ...]

    @property
    def is_unit(self) -> bool:
        """Whether reducing by this rule renames one part and does nothing else."""
        return self.length == 1 and self.action == ""


@dataclass(frozen=True, slots=True)
class Tables:
    """What the lexer and the parser need to know of the grammar.

    `actions[state][terminal]` is the state to go to, or `~rule` to reduce by it;
    `gotos[state][nonterminal]` is the state after a reduction. `terminals` are names,
    `texts` maps the fixed ones' text to their index, `patterns` the others' name to a regex.
    """

    terminals: tuple[str, ...]
    texts: dict[str, int]
    patterns: dict[str, str]
    rules: tuple[Production, ...]
    actions: tuple[dict[int, int], ...]
    gotos: tuple[dict[int, int], ...]
    _jumps: dict[int, int] = field(default_factory=dict)

    def index(self, terminal: str) -> int:
        """The number of the terminal with this name."""
        return self.terminals.index(terminal)


def folder() -> Traversable:
    """The package's `grammar/`; the one beside `nkic/` in a checkout that is not installed."""
    try:
        return resources.files("nkic.grammar")
    except ModuleNotFoundError:
        return Path(__file__).parents[2] / "grammar"


def checksum(grammar: bytes) -> int:
    """What ties tables.json to the grammar it was made from."""
    return crc32(grammar.replace(b"\r\n", b"\n"))


@cache
def load() -> Tables:
    """The tables of the package's grammar, each process once."""
    grammar = folder().joinpath(GRAMMAR).read_bytes()
    try:
        stored = json.loads(folder().joinpath(TABLES).read_bytes())
    except (OSError, ValueError):
        stored = {}
    if stored.get("grammar") != checksum(grammar):
        # Imports Lark, which only somebody who edits the grammar needs.
        from nkic.parse.generate import generate

        stored = generate(grammar)
    return unpack(stored)


def unpack(stored: dict[str, Any]) -> Tables:
    """Tables from their stored form, see `nkic.parse.generate`."""
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
