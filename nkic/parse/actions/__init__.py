"""The functions that create nodes, by the name of their rule, and the parser that calls them."""

from __future__ import annotations

from functools import cache

from nkic.parse.actions import calls, expressions, match, statements, strings
from nkic.parse.parser import Actions, Parser
from nkic.parse.tables import Tables, load

_MODULES = (expressions, calls, strings, statements, match)


def by_rule(tables: Tables) -> Actions:
    """Return a function for every rule of the grammar that needs one."""
    functions = {name: f for module in _MODULES for name, f in vars(module).items()}
    names = {rule.action for rule in tables.rules} - {"", "+"}
    return {name: functions[name] for name in sorted(names)}


@cache
def parser() -> Parser:
    """Return the parser of the package's grammar."""
    tables = load()
    return Parser(tables, by_rule(tables))
