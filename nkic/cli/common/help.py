"""A command: parsed by its table of options, with help in two sizes: -h fits on a screen, --help
is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import click

from nkic import __version__
from nkic.base import explain
from nkic.cli.common import old, pages
from nkic.cli.common.options import Shared
from nkic.cli.common.session import Session
from nkic.cli.common.table import Option, filled, parameters

EXIT_CODES = (
    ("0", "success"),
    ("1", "kernel rejected, outputs differ, or budget exceeded"),
    ("2", "the command line is wrong, or a file cannot be read or written"),
    ("3", "the artifact is rejected"),
    ("4", "the input data is rejected"),
    ("5", "the simulated program failed"),
    ("6", "a limit of time, cycles or memory was reached"),
    ("70", "internal error"),
    ("130, 141, 143", "interrupted, broken pipe, terminated"),
)
Act = Callable[[Any, Session], int | None]


class Tool(click.Command):
    """A command, or one of its subcommands.

    `line` is the dataclass of its words, which `act` carries out; `only` is the subcommand whose
    rows it takes. `examples` are pairs of a command line and its description, `old` is the
    spellings of earlier releases, and `commands` are the subcommands: the first word names one.
    Without one, the tool is the subcommand `plain`, and still takes the options of the others; if
    `plain` is empty, it is a command of its own.
    """

    def __init__(
        self,
        line: Any,
        act: Act,
        help: str,
        *,
        only: str = "",
        examples: Sequence[tuple[str, str]] = (),
        old: Mapping[str, str] | None = None,
        commands: Mapping[str, Tool] | None = None,
        plain: str = "",
    ) -> None:
        super().__init__(None, help=help, add_help_option=False)
        self.line, self.act, self.only, self.examples = line, act, only, examples
        self.old, self.commands, self.plain = old or {}, commands or {}, plain
        self.suite = self  # the tool that this is a subcommand of
        for command in self.commands.values():
            command.suite = self

    @cached_property
    def table(self) -> list[click.Parameter]:
        """The options and arguments."""
        return [*parameters(self.line, self.only), *parameters(Shared)]

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
        words, command, warnings = old.translated(str(info_name), args, self.old)
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
        """Return the text that an option of the group Help asks for."""
        if shared.explain is not None:
            return pages.markdown(explain.page(shared.explain), session.color)
        if shared.version:
            return f"{session.tool} {__version__}"
        if shared.h or (shared.help and self.plain):
            return self.brief_help(ctx)
        return ctx.get_help() if shared.help else None

    def invoke(self, ctx: click.Context) -> int:
        """Carry out the command line, and return the exit code."""
        return self.act(filled(self.line, ctx.params), ctx.ensure_object(Session)) or 0

    def shell_complete(self, ctx: click.Context, incomplete: str) -> Any:
        """Return the subcommands and options that begin like the incomplete word."""
        from click.shell_completion import CompletionItem  # the shell waits: only when it asks

        names = [name for name in self.commands if incomplete and name.startswith(incomplete)]
        return [*map(CompletionItem, names), *super().shell_complete(ctx, incomplete)]

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
        """Return the words of the usage line."""
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
                formatter.write_dl([(n, _first(str(c.help))) for n, c in self.commands.items()])

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


def _first(text: str) -> str:
    """Return the first sentence."""
    return " ".join(text.split()).partition(". ")[0].partition(": ")[0].rstrip(".")
