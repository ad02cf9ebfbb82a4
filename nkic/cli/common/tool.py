"""A command: parsed by its list of options, with help in two sizes: -h fits on a screen, --help
is complete; spellings of earlier releases; errors about a command line, with the nearest option.

A table of earlier spellings maps an option to its new words: {} is a value, {name} and {rest} are
the parts of a value NAME=REST. A first word without a dash is the subcommand that takes them now.
What cannot be translated begins with `REFUSED`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import click

from nkic import __version__
from nkic.base import files, levels
from nkic.base.diagnostics import Diagnostic, Level, UsageFailed, did_you_mean, make
from nkic.cli.common import streams
from nkic.cli.common.options import Option, Shared, filled, parameters, refuse_losses
from nkic.cli.common.session import Session

REFUSED = "!"


class Translated(NamedTuple):
    """Words of a command line, the subcommand that they need, and warnings."""

    words: list[str]
    command: str
    warnings: list[Diagnostic]


def translated(tool: str, words: Sequence[str], old: Mapping[str, str]) -> Translated:
    """Return the words in today's spelling. Raises `UsageFailed`."""
    found: list[str] = []
    command, warnings, left = "", list[Diagnostic](), iter(words)
    for word in left:
        if word == "--":
            found += [word, *left]
            break
        name = word[:2] if word[1:2] != "-" else word.partition("=")[0]
        if name not in old:
            found.append(word)
            continue
        now = old[name]
        count = now.count("{}") + now.count("{rest}")
        attached = [word[len(name) :].removeprefix("=")] if word != name else []
        values = attached if attached and count else [*islice(left, count)]
        if now.startswith(REFUSED) or len(values) < count:
            raise UsageFailed([_renamed(name, spelt(tool, now), Level.ERROR)])
        new = [_filled_word(part, values) for part in now.split()]
        if attached and not count:  # an option whose value could be left out
            new[-1] += f"={attached[0]}"
        warnings.append(_renamed(name, spelt(tool, " ".join(new)), Level.WARNING))
        if not new[0].startswith("-"):
            command = new.pop(0)
        found += new
    return Translated(found, command, warnings)


def _filled_word(part: str, values: list[str]) -> str:
    name, equals, rest = values[0].rpartition("=") if values else ("", "", "")
    part = part.replace("{name}", name + equals).replace("{rest}", rest)
    return part.replace("{}", values.pop(0)) if "{}" in part else part


def spelt(tool: str, now: str) -> str:
    now = now.removeprefix(REFUSED).replace("{name}", "").replace("{rest}", "{}")
    return now.replace("{}", "…") if now.startswith("-") else f"{tool} {now}".replace("{}", "…")


def _renamed(name: str, now: str, level: Level) -> Diagnostic:
    advice = "write the new spelling; the next release does not take the old one"
    advice = advice if level is Level.WARNING else f"write `{now}`"
    return make("old-spelling", f"`{name}` is now spelt `{now}`", help=advice, level=level)


EXIT_CODES = (
    ("0", "success"),
    ("1", "kernel rejected, outputs differ, or budget exceeded"),
    ("2", "the command line is wrong, or a file cannot be read or written"),
    ("3", "the artifact is rejected"),
    ("4", "the input data is rejected"),
    ("5", "the simulated program failed"),
    ("6", "a limit of time, cycles or memory was reached"),
    ("70", "internal error"),
    ("129, 130, 141, 143", "terminal closed, interrupted, broken pipe, terminated"),
)
Act = Callable[[Any, Session], int | None]


class Tool(click.Command):
    """A command, or one of its subcommands.

    `line` is the dataclass of its words, which `act` carries out; `only` is the subcommand whose
    rows it takes, `without` are the shared options that it does not take. `examples` are pairs of
    a command line and its description, `old` is the spellings of earlier releases, and `commands`
    are the subcommands: the first word names one. Without one, the tool is the subcommand `plain`,
    and still takes the options of the others; if `plain` is empty, it is a command of its own.
    `elsewhere` says what to write here for options and commands that others have.
    """

    def __init__(
        self,
        line: Any,
        act: Act,
        help: str,
        *,
        only: str = "",
        without: Container[str] = (),
        examples: Sequence[tuple[str, str]] = (),
        old: Mapping[str, str] | None = None,
        commands: Mapping[str, Tool] | None = None,
        plain: str = "",
        elsewhere: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(None, help=help, add_help_option=False)
        self.line, self.act, self.only, self.examples = line, act, only, examples
        self.without = without
        self.old, self.commands, self.plain = old or {}, commands or {}, plain
        self.elsewhere = elsewhere or {}
        self.suite = self  # the tool that this is a subcommand of
        for command in self.commands.values():
            command.suite = self

    @cached_property
    def table(self) -> list[click.Parameter]:
        shared = [each for each in parameters(Shared) if each.name not in self.without]
        return [*parameters(self.line, self.only), *shared]

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the options and arguments, which are made when they are first asked for."""
        return self.table

    # ---- parsing -------------------------------------------------------------------------------

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> click.Context:
        """Parse a command line: its first word may name a subcommand. Raises `UsageFailed`."""
        if args and args[0] in self.commands:
            name = f"{info_name} {args[0]}"
            return self.commands[args[0]].make_context(name, args[1:], parent, **extra)
        word = args[0] if args and args[0] in self.elsewhere and args[0][:1] != "-" else ""
        if word and not files.is_file(word) and not files.is_folder(word):
            text = f"{info_name} has no command `{word}`"
            raise UsageFailed([make("bad-usage", text, help=self.elsewhere[word])])
        words, command, warnings = translated(str(info_name), args, self.old)
        if isinstance(extra.get("obj"), Session):
            extra["obj"].renamed += warnings
        if command:
            name = f"{info_name} {command}"
            return self.commands[command].make_context(name, words, parent, **extra)
        return super().make_context(info_name, words, parent, **extra)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words, of which the session takes the options that both tools share."""
        left = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:
            shared, session = filled(Shared, ctx.params), ctx.ensure_object(Session)
            session.adopt(shared)
            answer = self._answer(ctx, shared, session)
            if answer is not None:
                click.echo(answer.rstrip(), color=True)  # colour has already been decided
                ctx.exit()
            arguments = (param for param in self.table if isinstance(param, click.Argument))
            for param in arguments:  # after --help, which needs none
                if ctx.params[str(param.name)] is None and not str(param.metavar).startswith("["):
                    raise click.MissingParameter(ctx=ctx, param=param)
        return left

    def _answer(self, ctx: click.Context, shared: Shared, session: Session) -> str | None:
        if shared.explain is not None:
            return streams.markdown(levels.page(shared.explain), session.color)
        if shared.version:
            return f"{session.tool} {__version__}"
        if shared.h or (shared.help and self.plain):
            return self.brief_help(ctx)
        return ctx.get_help() if shared.help else None

    def invoke(self, ctx: click.Context) -> int:
        line = filled(self.line, ctx.params)
        session = ctx.ensure_object(Session)
        refuse_losses(line, session)
        return self.act(line, session) or 0

    # ---- help ----------------------------------------------------------------------------------

    def brief_help(self, ctx: click.Context) -> str:
        """Return the text of -h; with subcommands, also that of --help."""
        formatter = ctx.make_formatter()
        self.format_usage(ctx, formatter)
        self._write_examples(formatter)
        self._write_commands(formatter)
        self._write_options(ctx, formatter, common_only=True)
        more = f"More: {ctx.info_name} --help"
        if self.plain:
            more = f"Without a command: {ctx.info_name} {self.plain}.  More: "
            more += f"{ctx.info_name} COMMAND --help"
        formatter.write(f"\n{more}\n")
        return formatter.getvalue()

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the text of --help: usage, examples, description, options by group, exit codes."""
        self.format_usage(ctx, formatter)
        self._write_examples(formatter)
        self.format_help_text(ctx, formatter)
        self._write_commands(formatter)
        self._write_options(ctx, formatter, common_only=False)
        with formatter.section("Exit codes"):
            formatter.write_dl(EXIT_CODES)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        pieces = super().collect_usage_pieces(ctx)
        return ["[COMMAND]", *pieces] if self.commands else pieces

    def _write_examples(self, formatter: click.HelpFormatter) -> None:
        if not self.examples:
            return
        with formatter.section("Examples"):
            for line, meaning in self.examples:
                formatter.write(f"{'':{formatter.current_indent}}{line}\n")
                formatter.write(f"{'':{formatter.current_indent + 4}}{meaning}\n")

    def _write_commands(self, formatter: click.HelpFormatter) -> None:
        if self.commands:
            with formatter.section("Commands"):
                texts = [(n, " ".join(str(c.help).split())) for n, c in self.commands.items()]
                first = [(n, t.partition(". ")[0].partition(": ")[0]) for n, t in texts]
                formatter.write_dl([(n, sentence.rstrip(".")) for n, sentence in first])

    def _write_options(
        self, ctx: click.Context, formatter: click.HelpFormatter, *, common_only: bool
    ) -> None:
        """Write the options by group, those of this subcommand alone first."""
        tool = (ctx.find_root().info_name or "").partition(" ")[0]
        groups: dict[str, list[tuple[str, str]]] = {}
        options = [param for param in self.table if isinstance(param, Option)]
        for param in sorted(options, key=lambda param: not param.row.of):
            row, record = param.row, param.get_help_record(ctx)
            is_shown = not common_only or (row.common and not (row.of and self.commands))
            if record is not None and is_shown:
                is_own = not common_only or bool(row.of)
                values = row.listed(tool) if is_own and not row.only else {}
                entries = groups.setdefault(row.group if is_own else "Common options", [])
                entries += [record, *((f"    {value}", text) for value, text in values.items())]
        for name, entries in groups.items():
            with formatter.section(name):
                formatter.write_dl(entries)


_ARRAYS = re.compile(r"unexpected extra argument \((\S+\.npz)\)")


def diagnostic(error: click.ClickException, tool: str) -> Diagnostic:
    """Return Click's error as a diagnostic, with the nearest option if one was misspelt."""
    context = getattr(error, "ctx", None)
    advice = f"`{context.command_path if context else tool} --help` shows every option"
    if isinstance(error, click.NoSuchOption):
        near = context and isinstance(context.command, Tool) and _near(error, context.command, tool)
        text = f"no such option: `{error.option_name}`"
        return make("unknown-option", text, help=near or advice)
    if isinstance(error, click.MissingParameter):
        return make("missing-argument", f"missing {_name(error)}", help=advice)
    if isinstance(error, click.BadParameter):
        return make("bad-value", f"{_name(error)}: {_sentence(error.message)}", help=advice)
    text = _sentence(error.format_message().removeprefix("Got "))
    arrays = _ARRAYS.fullmatch(text)
    if arrays and context and "--inputs" in _names(context.command):
        advice = f"arrays are given with `--inputs {arrays[1]}`"
    return make("bad-usage", text, help=advice)


def _near(error: click.NoSuchOption, command: Tool, tool: str) -> str:
    """Return where an unknown option belongs: a subcommand, an option's value, or another name."""
    name, word = error.option_name, error.option_name.lstrip("-")
    if name in command.elsewhere:
        return command.elsewhere[name]
    for other, subcommand in command.suite.commands.items():
        if name in _names(subcommand):
            return f"it is an option of `{tool} {other}`"
    if (now := command.suite.old.get(name)) is not None:
        return f"it is now spelt `{spelt(tool, now)}`"
    for param in command.table:
        row = param.row if isinstance(param, Option) else None
        if row is not None and word in row.listed(tool):
            value = str(row.metavar).partition("=")[2].strip("]…,")
            return f"did you mean `{row.name} {word}{'=' * bool(value)}{value}`?"
    if len(word) == 1:  # every letter is near every other
        return f"did you mean `{other}`?" if (other := name.swapcase()) in _names(command) else ""
    return did_you_mean(name, _names(command))


def _names(command: Tool) -> list[str]:
    return [name for param in command.table for name in (*param.opts, *param.secondary_opts)]


def _name(error: click.BadParameter) -> str:
    """Return `--color`, or the argument's name as in the usage line."""
    hint = error.param_hint or (error.param.get_error_hint(error.ctx) if error.param else "value")
    return (hint if isinstance(hint, str) else " / ".join(hint)).replace("'", "`")


def _sentence(text: str) -> str:
    """Return Click's sentence in the style of nkic's messages: no capital, no full stop."""
    return text[:1].lower() + text[1:].rstrip().removesuffix(".")
