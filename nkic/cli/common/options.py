"""The list of options: the fields of the dataclasses that hold a command's words.

A field's annotation and its row say everything about an option. The parser, both sizes of help,
completion, the checks of options that exclude or need each other, the paths of ranks and
docs/commands.md are made from them. The options that both tools share are `Shared`; the `Session`
takes their values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import click
from click.core import ParameterSource

from nkic.base import diagnostics, files, levels
from nkic.base.diagnostics import UsageFailed, bad_value, make
from nkic.base.levels import DEFAULT, Settings, Wish
from nkic.base.render import FORMATS
from nkic.cli.common.streams import COLOUR_CHOICES

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
    tells: bool = True  # whether help tells the default
    values: Values | Callable[[str], Values] | None = None  # that help lists
    only: bool = False  # whether it takes nothing else
    between: tuple[int | None, int | None] = (None, None)
    alone: str | None = None  # its value if it is given without one
    counts: bool = False
    of: str = ""  # the subcommands that take it; empty if all of them do
    modes: str = ""  # the modes of the command that accept it
    does: str = ""  # what it makes the command do instead, if it selects a mode
    needs: tuple[str, ...] = ()  # fields of which one must be given, too
    excludes: Mapping[str, str] = field(default_factory=dict)  # fields, each with the reason
    more: bool = False  # whether it asks for more than the artifact: then nothing is cached
    about: str = ""  # what it says about a kernel, which a printed program already has
    reads: Callable[[str], str] | None = None  # returns the path in a value: of a file to read
    writes: Callable[[str], str] | None = None  # the same of a file to write
    complete: Callable[[str], Values] | None = None  # more values, which help does not list

    @property
    def name(self) -> str:
        """The spelling for messages: the longest."""
        return max(self.names, key=len).partition("/")[0]

    @property
    def text(self) -> str:
        if self.default is None or not self.tells:
            return self.help
        shown = self.name.lstrip("-") if self.default is True else self.default
        return f"{self.help}  [default: {shown}]"

    def listed(self, tool: str) -> Values:
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
        super().__init__(names, help=row.text, metavar=row.metavar, **settings)
        self.row = row

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem  # the shell waits: only when it asks

        tool = ctx.find_root().info_name or ""
        words = {**self.row.listed(tool), **(self.row.complete or (lambda tool: {}))(incomplete)}
        items = [CompletionItem(w, help=words[w]) for w in words if w.startswith(incomplete)]
        if not items and re.search("FILE|FOLDER|PATH", self.row.metavar or ""):
            return [CompletionItem(incomplete, type="file")]
        return items or super().shell_complete(ctx, incomplete)


class Argument(click.Argument):
    """An argument of the parser; instead of the first, a subcommand may be named."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem  # the shell waits: only when it asks

        names = {} if ctx.params.get(str(self.name)) else getattr(ctx.command, "commands", {})
        items = [CompletionItem(name) for name in names if name.startswith(incomplete)]
        return [*items, CompletionItem(incomplete, type="file")]


def rows(kind: Any) -> dict[str, Row]:
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
        return Argument([name], metavar=row.names[0], required=False, nargs=-1 if is_many else 1)
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


def paths(line: Any, use: str) -> Iterator[tuple[str, str]]:
    """Yield the options that read (`reads`) or write (`writes`) files, each with its path."""
    for name, row in rows(type(line)).items():
        path_in = getattr(row, use)
        if path_in is None:
            continue
        value = getattr(line, name)
        for text in value if isinstance(value, tuple) else filter(None, [value]):
            given = {"task": "the task", "candidates": "a candidate"}.get(name, "the kernel")
            by = row.name if row.name.startswith("-") else given
            by += f" {text.partition('=')[0].partition('@')[0]}" if name == "report" else ""
            yield by, path_in(text)


Paths = Iterable[tuple[str, str]]


def refuse_losses(line: Any, session: Any, also_read: Paths = (), also_written: Paths = ()) -> None:
    """Refuse, before any work, what cannot be written, and what would replace what `line` reads or
    writes. `also_read` and `also_written` are files that it does not name. Raises `UsageFailed`.
    """
    reads = [("reads", *each) for each in [*also_read, *paths(line, "reads")]]
    written = [*paths(line, "writes"), *also_written]
    own = [("-o", line.output)] if getattr(line, "output", None) else []
    message_file, session.message_file = session.message_file, None  # nothing is said in it yet
    shared = filled(Shared, {"message_file": message_file})
    uses = [*reads, *(("writes", *each) for each in [*own, *written])]
    _refuse_losses(paths(shared, "writes"), uses)
    session.message_file = message_file
    _refuse_losses(written, reads)


def _refuse_losses(written: Paths, named: Iterable[tuple[str, str, str]]) -> None:
    used = {files.real(path): (use, by) for use, by, path in named if "\0" not in path}
    for by, path in written:
        files.refuse_unwritable(path)
        if path == files.STANDARD or not files.keeps(path):
            continue
        if other := used.get(files.real(path)):
            how = "read" if other[0] == "reads" else "written"
            fail(f"`{by}`: `{path}` is {how} by this run ({other[1]})", "choose another file")
        used[files.real(path)] = "writes", by


def is_named(value: str) -> bool:
    """Whether a value is `NAME=WHAT`, and not the path of a file."""
    name, equals, _ = value.partition("=")
    return bool(equals) and "/" not in name and not name.startswith(".")


def codes(incomplete: str) -> Values:
    """Return all codes that begin like the incomplete word, with their titles."""
    rows = diagnostics.codes().values()
    names = {name: row for row in rows for name in (row.number, row.slug)}
    return {n: levels.title(row) for n, row in names.items() if n.startswith(incomplete)}


def _limits(tool: str) -> Values:
    from nkic.base.limits import of  # rarely wanted

    return {
        name: f"{limit.meaning}  [default: {limit.shown(limit.defaults[tool])}]"
        for name, limit in of(tool or "nkic").items()
    }


machine_option = partial(
    option,
    "--machine FILE.toml",
    "Use timing figures other than the target's own; `nki-run calibrate --print machine` lists "
    "them.",
)
_message = partial(option, group="Messages")
_level = partial(_message, complete=codes)
_help = partial(option, group="Help")


@dataclass(frozen=True, eq=False, repr=False)
class Shared:
    """The values of the shared options, by name."""

    message_format: str = _message(
        "--message-format",
        "Format of the messages on standard error.",
        values=dict.fromkeys(FORMATS, ""),
        only=True,
        default="human",
        common=True,
    )
    message_file: str | None = _message(
        "--message-file PATH",
        "Also write the messages to PATH: SARIF if it ends in .sarif, else JSON lines.",
        writes=whole,
    )
    warn: tuple[str, ...] = _level(
        "-W CODE",
        "Warn about CODE, even if it is off by default. -Werror: treat every warning as an error; "
        "-Werror=CODE: only this one. CODE is a number, a name or a family (05).",
    )
    allow: tuple[str, ...] = _level("-A CODE", "Suppress the warning CODE.")
    deny: tuple[str, ...] = _level("-D CODE", "Treat the warning CODE as an error.")
    color: str = _message(
        "--color",
        "Colour; auto respects NO_COLOR, FORCE_COLOR and whether the output is a terminal.",
        values=dict.fromkeys(COLOUR_CHOICES, ""),
        only=True,
        default="auto",
    )
    quiet: int = _message("-q, --quiet", "Print less.", counts=True)
    verbose: int = _message("-v, --verbose", "Print more.", counts=True)
    limit: tuple[str, ...] = option(
        "--limit NAME=VALUE",
        "Stop when the command takes more than this; `none` removes a limit that may be removed.",
        group="Limits",
        values=_limits,
        common=True,
    )

    explain: str | None = _help(
        "--explain CODE",
        "Explain a message's code, such as NKI0501; `all` prints every page.",
        common=True,
        complete=codes,
    )
    version: bool = _help("--version", "Print name and version.")
    h: bool = _help("-h", "Show the short help.")
    help: bool = _help("--help", "Show this help.")

    def levels(self) -> Settings:
        """Return the levels of warnings; `-Werror…` are values of -W. Raises `UsageFailed`."""
        settings = DEFAULT
        for value in self.warn:
            name, equals, code = value.partition("=")
            if name != "error":
                settings = settings.adding(Wish.WARN, value)
            elif equals:
                settings = settings.adding(Wish.DENY, code)
            else:
                settings = replace(settings, all_errors=True)
        for wish, values in ((Wish.ALLOW, self.allow), (Wish.DENY, self.deny)):
            for value in values:
                settings = settings.adding(wish, value)
        return settings

    def limits(self, tool: str) -> Mapping[str, float | None]:
        if not self.limit:
            return {}
        from nkic.base.limits import read  # rarely wanted

        return read(tool, self.limit)


Given = Mapping[str, str]  # the spelling on the command line, by field


def given_options() -> Given:
    """Return the options and arguments given to the running command, in the order of its table.

    An option counts even if its value equals the default; shared options do not count. Raises
    `UsageFailed` for an empty value, such as that of an unset variable of the shell.
    """
    context = click.get_current_context()
    given: dict[str, str] = {}
    for parameter in context.command.get_params(context):
        name, opts = str(parameter.name), parameter.opts
        is_given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if not (is_given and parameter.expose_value) or name in rows(Shared):
            continue
        value, metavar = context.params[name], str(parameter.metavar).strip("[]…")
        if value == ():
            continue
        if isinstance(parameter, click.Argument):
            given[name] = value if isinstance(value, str) else " ".join(value)
        elif value is False and parameter.secondary_opts:
            given[name] = parameter.secondary_opts[0]
        else:
            given[name] = next((name for name in opts if name.startswith("--")), opts[0])
        if value == "" or (isinstance(value, tuple) and "" in value):
            what = metavar if isinstance(parameter, click.Argument) else given[name]
            raise bad_value(f"{what}: the value is empty", f"give {metavar}, or leave it out")
    return given


def refuse_by_table(table: Mapping[str, Row], given: Given, mode: str = "") -> None:
    """Raise `UsageFailed` for the first option that the mode does not accept, or that lacks what it
    needs. `mode` is the name in `Row.modes`, by default the field that is given.
    """
    field = next((name for name, row in table.items() if row.does and name in given), None)
    mode = mode or field or ""
    for name, spelling in given.items():
        if field is not None and name != field and mode not in table[name].modes.split():
            refuse_pair(given[field], spelling, f"`{given[field]}` {table[field].does}")
    for name, spelling in given.items():
        required = table[name].needs
        if required and not any(other in given for other in required):
            needed = " or ".join(f"`{table[other].name}`" for other in required)
            fail(f"`{spelling}` needs {needed}", f"add {needed}, or leave out `{spelling}`")


def refuse_excluded(table: Mapping[str, Row], given: Given) -> None:
    for name, spelling in given.items():
        for other, why in table[name].excludes.items():
            refuse(given, spelling, [other], why)


def refuse(given: Given, option: str, others: Iterable[str], why: str) -> None:
    """Raise `UsageFailed` for the first of `others` that is given together with `option`."""
    for name in others:
        if name in given:
            refuse_pair(option, given[name], why)


def refuse_pair(option: str, other: str, why: str, help: str = "") -> NoReturn:
    fail(f"`{option}` and `{other}` cannot be used together: {why}", help or f"leave out `{other}`")


def fail(text: str, help: str) -> NoReturn:
    raise UsageFailed([make("conflicting-options", text, help=help)])
