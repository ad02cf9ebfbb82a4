"""One run of a tool: the requested messages, everything that was reported, and its limits."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from nkic.base import files, levels
from nkic.base.diagnostics import ArtifactFailed, Diagnostic, Level, UsageFailed
from nkic.base.levels import DEFAULT, SPEED_FAMILY, Settings
from nkic.base.render import FORMATS, SARIF, from_root, render, summary
from nkic.base.source import SourceFile, Sources
from nkic.base.text import clean, plural
from nkic.cli.common.streams import COLOUR_CHOICES, paint_for

if TYPE_CHECKING:
    from nkic.cli.common.options import Shared


def _no_source(path: str) -> SourceFile | None:
    """Return no source: a path in a diagnostic may come from an artifact, and is not opened."""
    return None


@dataclass
class Session:
    """The state of a run, made by `run`, filled by the shared options, passed to the function."""

    tool: str
    argv: tuple[str, ...] = ()
    format: str = "human"
    message_file: str | None = None
    color: str = "auto"
    verbosity: int = 0
    limits: Mapping[str, float | None] = field(default_factory=dict)
    """The limits that the command line sets."""
    renamed: list[Diagnostic] = field(default_factory=list)
    """Warnings of options in the spelling of an earlier release."""
    own_process: bool = False
    """Whether the process serves this command alone, so that irrevocable limits may be set."""
    max_errors: int = 0
    """The number of errors after which the tool stops searching for more; 0 for no limit."""
    levels: Settings = DEFAULT
    """The levels of warnings, which `levels.apply` applies before `report`."""
    sources: Sources = _no_source
    """The source of excerpts: the tool sets it to the texts that it has read."""
    attachments: dict[str, str] = field(default_factory=dict)
    """Texts by name that go into a crash report: the kernel, the last good program."""
    inputs: Callable[[], Sequence[str]] = tuple
    """Returns the files that were read: the tool sets it."""
    hidden: int = 0
    """The number of warnings that were found but are shown only on request."""
    _reported: list[Diagnostic] = field(default_factory=list)
    _json_lines: list[str] = field(default_factory=list)

    @classmethod
    def before_parsing(cls, tool: str, argv: Sequence[str]) -> Session:
        """Return a session for errors in the command line itself, in the format it requests."""
        session = cls(tool, tuple(argv), message_file=_last_value(argv, "--message-file"))
        format, color = _last_value(argv, "--message-format"), _last_value(argv, "--color")
        session.format = format if format in FORMATS else session.format
        session.color = color if color in COLOUR_CHOICES else session.color
        return session

    def adopt(self, shared: Shared) -> None:
        self.format, self.color = shared.message_format, shared.color
        self.message_file = shared.message_file
        self.verbosity = shared.verbose - shared.quiet
        self.levels, self.limits = shared.levels(), shared.limits(self.tool)

    def limit(self, name: str) -> float | None:
        from nkic.base.limits import default  # --help runs without it

        return self.limits[name] if name in self.limits else default(self.tool, name)

    def set_limits(self) -> None:
        """Set every limit of the process if it belongs to the command, unlike in tests."""
        from nkic.base import limits, watcher

        if not self.own_process:
            return
        limits.apply(limits.values(self.tool, self.limits, os.environ))
        page, seconds = watcher.page(), self.limit("time")
        if page is not None and seconds is not None:
            page.limit(time.monotonic() + seconds, seconds)

    def lift_time_limit(self) -> None:
        """Lift the limit of elapsed time when the work is done, because a reader of the output may
        be slow. The limit of processor time stays.
        """
        from nkic.base import watcher

        if (mine := watcher.page()) is not None:
            mine.limit(watcher.NEVER, watcher.NEVER)

    def warn_of_settings(self) -> None:
        """Report variables that look like settings of nkic but are not, and old spellings."""
        from nkic.base import files

        found = [*files.unknown(os.environ), *self.renamed]
        warnings = levels.apply(found, self.levels)
        if any(diagnostic.level is Level.ERROR for diagnostic in warnings):
            raise UsageFailed(warnings)
        if warnings and self.verbosity >= 0:
            self.report(warnings)

    def report(self, diagnostics: Sequence[Diagnostic]) -> None:
        """Write diagnostics to standard error, and keep their machine form for --message-file."""
        if self.message_file is not None:
            self._json_lines.append(render(diagnostics, "json", self.sources))
        if self.format != SARIF:
            paint = paint_for(sys.stderr, self.color)
            _write(self._gap() + render(diagnostics, self.format, self.sources, paint))
        self._reported += diagnostics

    def has_reported(self, diagnostic: Diagnostic) -> bool:
        return diagnostic in self._reported

    def begin_again(self) -> None:
        """Forget what was reported: it is about files that have changed."""
        self._reported.clear()
        self._json_lines.clear()
        self.hidden = 0

    def artifact(self, kind: str, path: str, **fields: object) -> None:
        """Report to programs that a file was written; `status` tells people."""
        self.event("artifact", kind=kind, path=path, **fields)

    def wrote(self, kind: str, path: str) -> None:
        """Report that a file was written: to programs, and to people who asked for details."""
        self.artifact(kind, path)
        self.status(f"wrote {path}", 1)

    def status(self, text: str, level: int = 0) -> None:
        """Write a line about progress to standard error, for people, unless -q is given.

        In a pipe, and for `level` 1 and above, at least that many -v are needed.
        """
        needed = max(level, 0 if sys.stderr.isatty() else 1)
        if self.format not in ("json", SARIF) and self.verbosity >= needed:
            _write(self._for_people(clean(text, keep="\n\t")))

    def tell(self, type: str, text: str, /, **fields: object) -> None:
        """Report requested information: `text` to people, an event of this type to programs."""
        self.event(type, **fields)
        if self.verbosity >= 0 and self.format not in ("json", SARIF):
            _write(self._for_people(clean(text, keep="\n\t")))

    def event(self, type: str, /, **fields: object) -> None:
        """Keep an event for --message-file, and write it in the format for programs."""
        from nkic.base.render import text  # --help runs without it

        line = text.event(type, **fields)
        self._json_lines.append(line)
        if self.format == "json":
            _write(line)

    def close(self) -> None:
        """Write the summary line for people, and the file for machines."""
        has_location = any(d.primary for d in self._reported)  # usage errors need no summary
        if has_location and self.format == "human" and self.verbosity >= 0:
            text = "; ".join(
                filter(None, (summary(self._reported, self.max_errors), self._hidden_summary()))
            )
            _write(f"{self._gap()}{text}\n")
        elif self.hidden:
            self.status(self._hidden_summary())
        if self.message_file is not None:
            is_log = self.message_file.endswith(".sarif")
            files.write(self.message_file, self._log() if is_log else "".join(self._json_lines))

    def _hidden_summary(self) -> str:
        """Return how many remarks were not shown, and how to show them."""
        if not self.hidden:
            return ""
        return (
            f"{plural(self.hidden, 'remark')} about speed not shown: -W {SPEED_FAMILY} shows them"
        )

    def end(self) -> None:
        """Write the SARIF log if requested; nothing may be reported after it."""
        if self.format == SARIF:
            _write(self._log())

    def _log(self) -> str:
        from nkic.base.render import sarif  # slow to import, and rarely wanted

        return sarif.log(self._reported, sarif.SarifRun(self.sources, self.tool, from_root))

    def _for_people(self, text: str) -> str:
        """Escape a kernel's text so that it cannot give commands to the service that reads it."""
        if self.format == "github":
            from nkic.base.render.text import harmless

            text = harmless(text)
        return text + "\n"

    def _gap(self) -> str:
        """The blank line between two diagnostics, and before the summary, in the human format."""
        return "\n" if self._reported and self.format == "human" else ""


def _write(text: str) -> None:
    """Write to standard error.

    If it cannot be written, as on a full disk, the exit code still tells the verdict; a closed pipe
    ends the run.
    """
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except BrokenPipeError:
        raise
    except (OSError, ValueError):
        pass


def _last_value(argv: Sequence[str], option: str) -> str | None:
    """Return the last value given to an option, found without parsing the rest."""
    value = None
    for index, argument in enumerate(argv):
        if argument == "--":
            break
        if argument.startswith(option + "="):
            value = argument.partition("=")[2]
        elif argument == option and index + 1 < len(argv):
            value = argv[index + 1]
    return value


@contextmanager
def of_file(path: str | None) -> Iterator[None]:
    """Name the file in errors of a block that reads it: the reader sees bytes, not their path."""
    try:
        yield
    except ArtifactFailed as refused:
        if path is None:
            raise
        named = [replace(d, message=f"`{clean(path)}`: {d.message}") for d in refused.diagnostics]
        raise ArtifactFailed(named) from refused
