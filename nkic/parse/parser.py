"""A LALR parser that runs on the grammar's tables: tokens to syntax tree.

Lark builds the tables (see `tables`); this loop replaces Lark's own, which is four times slower for
a language with 17 levels of operators. It skips chains of unit reductions, and it passes each
node's exact span to the function that creates the node, including parentheses that leave no trace
in the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

from nkic.base.source import Span
from nkic.parse.limits import MAX_NESTING
from nkic.parse.tables import Production, Tables
from nkic.parse.tokens import Token

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
