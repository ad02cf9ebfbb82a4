"""Help in two sizes: -h fits on a screen, --help is complete."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])

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


class Option(click.Option):
    """An option that belongs to a named group of --help; `common` ones are also in -h."""

    def __init__(
        self, *names: Any, group: str = "General", common: bool = False, **settings: Any
    ) -> None:
        super().__init__(*names, **settings)
        self.group = group
        self.common = common


def option(group: str, *names: str, **settings: Any) -> Callable[[Function], Function]:
    """Return a decorator that adds an option to this group of --help."""
    return click.option(*names, cls=Option, group=group, **settings)


def adding(options: Sequence[Callable[[Any], Any]]) -> Callable[[Function], Function]:
    """Return a decorator that adds these options to a command, in order."""

    def decorated(function: Function) -> Function:
        for decorate in reversed(options):
            function = decorate(function)
        return function

    return decorated


class Tool(click.Command):
    """A command with examples: pairs of a command line and its description."""

    def __init__(
        self, *names: Any, examples: Sequence[tuple[str, str]] = (), **settings: Any
    ) -> None:
        super().__init__(*names, **settings)
        self.examples = examples

    def brief_help(self, ctx: click.Context) -> str:
        """Return the text of -h."""
        formatter = ctx.make_formatter()
        self.format_usage(ctx, formatter)
        self._write_examples(formatter)
        self._write_options(ctx, formatter, common_only=True)
        formatter.write(f"\nMore: {ctx.info_name} --help\n")
        return formatter.getvalue()

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the text of --help: usage, examples, description, options by group, exit codes."""
        self.format_usage(ctx, formatter)
        self._write_examples(formatter)
        self.format_help_text(ctx, formatter)
        self._write_options(ctx, formatter, common_only=False)
        with formatter.section("Exit codes"):
            formatter.write_dl(EXIT_CODES)
        self.format_epilog(ctx, formatter)

    def _write_examples(self, formatter: click.HelpFormatter) -> None:
        if not self.examples:
            return
        with formatter.section("Examples"):
            for line, meaning in self.examples:
                formatter.write(f"{'':{formatter.current_indent}}{line}\n")
                formatter.write(f"{'':{formatter.current_indent + 4}}{meaning}\n")

    def _write_options(
        self, ctx: click.Context, formatter: click.HelpFormatter, *, common_only: bool
    ) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record and (not common_only or getattr(param, "common", False)):
                groups.setdefault(_group(param, common_only), []).append(record)
        for name, rows in groups.items():
            with formatter.section(name):
                formatter.write_dl(rows)


def _group(param: click.Parameter, common_only: bool) -> str:
    if common_only:
        return "Common options"
    return getattr(param, "group", "Arguments" if isinstance(param, click.Argument) else "General")
