"""The table of options: the fields of the dataclasses that hold a command's words.

A field's annotation and its row say everything about an option. The parser, both sizes of help,
completion, the rules about options that exclude each other, the paths of ranks and docs/commands.md
are made from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Values = Mapping[str, str]  # the words that an option takes, each with its meaning


@dataclass(eq=False, repr=False)
class Row:
    """An option or, if its name has no dash, an argument."""

    names: tuple[str, ...]
    help: str
    group: str
    metavar: str | None = None
    common: bool = False  # whether -h shows it
    default: Any = None
    values: Values | Callable[[str], Values] | None = None  # that help lists
    only: bool = False  # whether it takes nothing else
    between: tuple[int | None, int | None] = (None, None)
    alone: str | None = None  # its value if it is given without one
    counts: bool = False
    of: str = ""  # the subcommands that take it; empty if all of them do
    modes: str = ""  # the modes of the command that accept it
    does: str = ""  # what it makes the command do instead, if it selects a mode
    needs: tuple[str, ...] = ()  # fields of which one must be given, too
    reads: Callable[[str], str] | None = None  # returns the path in a value: of a file to read
    writes: Callable[[str], str] | None = None  # the same of a file to write
    complete: Callable[[str], Values] | None = None  # more values, which help does not list

    @property
    def name(self) -> str:
        """The spelling for messages: the longest."""
        return max(self.names, key=len).partition("/")[0]

    def listed(self, tool: str) -> Values:
        """Return the values that help lists."""
        return (self.values(tool) if callable(self.values) else self.values) or {}


def option(spelling: str, help: str, group: str = "General", **facts: Any) -> Any:
    """Return the field of an option (`-o, --output PATH`) or an argument (`FILE` or `[FILE]`)."""
    *names, last = spelling.replace(", ", " ").split()
    if last.startswith("-") or not names:
        names.append(last)
    metavar = last if last != names[-1] else None
    return field(kw_only=True, metadata={"row": Row(tuple(names), help, group, metavar, **facts)})


class Option(click.Option):
    """An option of the parser, with its row."""

    def __init__(self, names: list[str], row: Row, **settings: Any) -> None:
        super().__init__(names, help=row.help, metavar=row.metavar, **settings)
        self.row = row

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the values that begin like the incomplete word."""
        from click.shell_completion import CompletionItem  # the shell waits: only when it asks

        tool = ctx.find_root().info_name or ""
        words = {**self.row.listed(tool), **(self.row.complete or (lambda tool: {}))(incomplete)}
        items = [CompletionItem(w, help=words[w]) for w in words if w.startswith(incomplete)]
        return items or super().shell_complete(ctx, incomplete)


def rows(kind: Any) -> dict[str, Row]:
    """Return the rows of a dataclass, by field."""
    return {f.name: f.metadata["row"] for f in fields(kind)}


def parameters(kind: Any, command: str = "") -> Iterator[click.Parameter]:
    """Yield the parser's parameters for a subcommand; without one, those of all."""
    for each in fields(kind):
        row: Row = each.metadata["row"]
        if not row.of or not command or command in row.of.split():
            yield _parameter(each.name, str(each.type), row)


def _parameter(name: str, kind: str, row: Row) -> click.Parameter:
    is_many = kind.startswith("tuple")
    if not row.names[0].startswith("-"):
        count = -1 if is_many else 1
        return click.Argument([name], metavar=row.names[0], required=False, nargs=count)
    settings: dict[str, Any] = {"multiple": is_many, "default": _default(kind, row)}
    if row.counts:
        settings = {"count": True}
    elif kind.startswith("bool"):
        settings |= {"is_flag": True}
    elif row.alone is not None:
        settings |= {"is_flag": False, "flag_value": row.alone}
    elif kind.startswith("int"):
        settings |= {"type": click.IntRange(*row.between)}
    elif row.only:
        settings |= {"type": click.Choice(tuple(row.listed("")))}
    return Option([*row.names, name], row, **settings)


def _default(kind: str, row: Row) -> Any:
    if kind.startswith("tuple"):
        return ()
    return False if kind == "bool" and row.default is None else row.default


def filled(kind: Any, values: Mapping[str, Any]) -> Any:
    """Return an instance with these values, and defaults for what a subcommand does not take."""
    defaults = {f.name: _default(str(f.type), f.metadata["row"]) for f in fields(kind)}
    return kind(**{name: values.get(name, default) for name, default in defaults.items()})


def whole(value: str) -> str:
    """Return the path in a value that is a path."""
    return value


def after_equals(value: str) -> str:
    """Return the path in `KIND=PATH`; without one, standard output."""
    return value.partition("=")[2] or "-"


def named(value: str) -> str:
    """Return the path in `PATH`, `NAME=@PATH` or `NAME=TYPE=@PATH`; empty if there is none."""
    if not is_named(value):
        return value
    what = value.partition("=")[2]
    return what if what == "-" else what.rpartition("@")[2] if "@" in what else ""


def is_named(value: str) -> bool:
    """Whether a value is `NAME=WHAT`, and not the path of a file."""
    name, equals, _ = value.partition("=")
    return bool(equals) and "/" not in name and not name.startswith(".")
