"""The options that both tools share; the `Session` takes their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from nkic.base import diagnostics, explain
from nkic.base.levels import DEFAULT, Settings, Wish
from nkic.base.render import FORMATS
from nkic.cli.common.streams import COLOUR_CHOICES
from nkic.cli.common.table import Values, option, whole


def codes(incomplete: str) -> Values:
    """Return all codes that begin like the incomplete word, with their titles."""
    rows = diagnostics.codes().values()
    names = {name: row for row in rows for name in (row.number, row.slug)}
    return {n: explain.title(row) for n, row in names.items() if n.startswith(incomplete)}


def _limits(tool: str) -> Values:
    from nkic.limits.table import of  # rarely wanted

    return {
        name: f"{limit.meaning}  [default: {limit.shown(limit.defaults[tool])}]"
        for name, limit in of(tool or "nkic").items()
    }


_message = partial(option, group="Messages")
_level = partial(_message, complete=codes)
_help = partial(option, group="Help")


@dataclass(frozen=True, eq=False, repr=False)
class Shared:
    """The values of the shared options, by name."""

    message_format: str = _message(
        "--message-format",
        "Format of the messages on standard error.  [default: human]",
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
        "Colour; auto respects NO_COLOR, FORCE_COLOR and whether the output is a terminal.  "
        "[default: auto]",
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
        """Return the levels of warnings; `-Werror` and `-Werror=CODE` are values of -W. Raises
        `UsageFailed`.
        """
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
        """Return the limits that are given, by name. Raises `UsageFailed`."""
        if not self.limit:
            return {}
        from nkic.limits.table import read  # rarely wanted

        return read(tool, self.limit)
