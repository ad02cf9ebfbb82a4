"""The functions that make nodes, by the name of their rule."""

from __future__ import annotations

from functools import cache

from nkic.parse import (
    build_calls,
    build_expressions,
    build_patterns,
    build_statements,
    build_strings,
)
from nkic.parse.parser import Actions, Parser
from nkic.parse.tables import Tables, load

_MODULES = (build_expressions, build_calls, build_strings, build_statements, build_patterns)


def actions(tables: Tables) -> Actions:
    """A function for every rule of the grammar that needs one."""
    functions = {name: f for module in _MODULES for name, f in vars(module).items()}
    names = {rule.action for rule in tables.rules} - {"", "+"}
    return {name: functions[name] for name in sorted(names)}


@cache
def parser() -> Parser:
    """The parser of the package's grammar."""
    tables = load()
    return Parser(tables, actions(tables))
