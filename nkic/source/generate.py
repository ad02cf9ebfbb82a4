"""Build the parser's tables from the grammar: `python -m nkic.source.generate`.

Lark reads the grammar and builds the LALR(1) table (refusing any conflict); this module converts it
to the plain data of `nkic.source.parser`, numbered in a fixed order so that the output is
deterministic.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lark import Lark
from lark.common import LexerConf
from lark.grammar import Rule
from lark.lexer import Lexer, PatternStr, TerminalDef

from nkic.source.parser import END, ERROR, GRAMMAR, TABLES, checksum, folder

# Words whose meaning depends on the following tokens. They have the highest numbers, so that the
# lexer recognises them by one comparison.
LOOKAHEAD_WORDS = ("WITH", "MATCH", "CASE", "TYPE")

Row = dict[str, tuple[bool, int]]  # symbol -> (whether to reduce, rule or next state)


class _NoLexer(Lexer):
    """A placeholder for a lexer, because only the tables are needed."""

    def __init__(self, lexer_conf: LexerConf) -> None:
        super().__init__()

    def lex(self, lexer_state: object, parser_state: object) -> Iterator[Any]:
        return iter(())


def generate(grammar: bytes) -> dict[str, Any]:
    lark = Lark(
        grammar.decode(),
        parser="lalr",
        lexer=_NoLexer,
        start="file",
        maybe_placeholders=True,
        strict=True,
    )
    data, memo = lark.memo_serialize([TerminalDef, Rule])
    rules = {number: row for number, row in sorted(memo.items()) if row["__type__"] == "Rule"}
    states = _states(data["parser"]["parser"])
    names = {symbol.name for rule in lark.rules for symbol in rule.expansion if symbol.is_term}
    plain = sorted(names - set(LOOKAHEAD_WORDS))
    terminals = [END, *plain, *LOOKAHEAD_WORDS, ERROR]
    nonterminals = list(dict.fromkeys(row["origin"]["name"] for row in rules.values()))
    order = {number: index for index, number in enumerate(rules)}
    return {
        "grammar": checksum(grammar),
        "terminals": terminals,
        "texts": _texts(lark, terminals),
        "patterns": {
            t.name: t.pattern.to_regexp()
            for t in lark.terminals
            if not isinstance(t.pattern, PatternStr)
        },
        "rules": [_rule(row, nonterminals) for row in rules.values()],
        **_actions(states, terminals, order),
        "gotos": [_gotos(row, nonterminals) for row in states],
    }


def _texts(lark: Lark, terminals: list[str]) -> dict[str, int]:
    fixed = {t.pattern.value: t.name for t in lark.terminals if isinstance(t.pattern, PatternStr)}
    return {text: terminals.index(fixed[text]) for text in sorted(fixed)}


def _states(table: dict[str, Any]) -> list[Row]:
    """Return the states in the order of a breadth-first walk from the start."""
    names = {int(number): str(name) for number, name in table["tokens"].items()}
    rows: dict[int, Row] = {
        state: {
            names[symbol]: (kind == 1, argument["@"] if kind == 1 else argument)
            for symbol, (kind, argument) in row.items()
        }
        for state, row in table["states"].items()
    }
    # Lark stops by testing the state; here the end of the tokens is one more shift.
    end = table["end_states"]["file"]
    rows[end][END] = (False, end)
    order = {table["start_states"]["file"]: 0}
    for state in (waiting := list(order)):
        for _, (is_reduce, target) in sorted(rows[state].items()):
            if not is_reduce and target not in order:
                order[target] = len(order)
                waiting.append(target)
    return [
        {
            symbol: (is_reduce, target if is_reduce else order[target])
            for symbol, (is_reduce, target) in sorted(rows[state].items())
        }
        for state in order
    ]


def _actions(
    states: list[Row], terminals: list[str], rule_order: dict[int, int]
) -> dict[str, list[Any]]:
    """Return, per state, its shifts and its reductions with the number of their lookahead set."""
    lookaheads: dict[tuple[int, ...], int] = {}
    rows = []
    for row in states:
        shifts: list[int] = []
        reduces: dict[int, list[int]] = {}
        for symbol, (is_reduce, target) in row.items():
            if is_reduce:
                reduces.setdefault(rule_order[target], []).append(terminals.index(symbol))
            elif symbol in terminals:
                shifts += [terminals.index(symbol), target]
        sets = {rule: tuple(sorted(lookahead)) for rule, lookahead in reduces.items()}
        numbered = [(r, lookaheads.setdefault(s, len(lookaheads))) for r, s in sets.items()]
        rows.append([shifts, [number for pair in numbered for number in pair]])
    return {"lookaheads": [list(lookahead) for lookahead in lookaheads], "actions": rows}


def _gotos(row: Row, nonterminals: list[str]) -> list[int]:
    pairs = [(nonterminals.index(s), t) for s, (_, t) in row.items() if s in nonterminals]
    return [number for pair in pairs for number in pair]


def _rule(row: dict[str, Any], nonterminals: list[str]) -> list[Any]:
    name, options, parts = row["origin"]["name"], row["options"], row["expansion"]
    keep_all = options["keep_all_tokens"]
    is_rule = [part["__type__"] == "NonTerminal" for part in parts]
    is_kept = [is_rule[i] or keep_all or not part["filter_out"] for i, part in enumerate(parts)]
    args = _with_gaps(is_kept, options["empty_indices"])
    spliced = [i for i, part in enumerate(parts) if is_rule[i] and part["name"].startswith("__")]
    only_one = options["expand1"] and not row["alias"] and len(args) == 1 and not spliced
    action = "+" if name.startswith("__") else "" if only_one else row["alias"] or name
    return [nonterminals.index(name), len(parts), action, args, spliced]


def _with_gaps(is_kept: list[bool], is_empty: Sequence[bool]) -> list[int]:
    """Return the positions of the kept parts, with -1 for each optional part that Lark omits."""
    positions = iter(i for i in range(len(is_kept)))
    all_parts = [-1 if gap else next(positions) for gap in is_empty or [False] * len(is_kept)]
    return [position for position in all_parts if position < 0 or is_kept[position]]


def main() -> None:
    grammar = Path(str(folder()))
    stored = generate(grammar.joinpath(GRAMMAR).read_bytes())
    lines = ",\n".join(
        f"{json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in stored.items()
    )
    grammar.joinpath(TABLES).write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
