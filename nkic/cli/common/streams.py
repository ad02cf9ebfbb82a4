"""The standard streams: safe to write to, released at exit, and formatted on a terminal.

Rich is imported for a terminal only: output to a file or a pipe is the same everywhere, and costs
no import.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TextIO

from nkic.base.render import Paint
from nkic.base.text import FALLBACK, aligned

if TYPE_CHECKING:
    from rich.console import RenderableType

COLOUR_CHOICES = ("auto", "always", "never")


def settle() -> None:
    """Make standard output and error accept any text, even if they were closed."""
    sys.stdout = sys.stdout or _Closed()
    sys.stderr = sys.stderr or _nowhere()
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=FALLBACK)
            if isinstance(stream.buffer, io.RawIOBase) and stream is getattr(sys, f"__{name}__"):
                setattr(sys, name, _buffered(stream))


def _buffered(stream: io.TextIOWrapper) -> TextIO:
    """Return the same stream with a buffer.

    Without one (PYTHONUNBUFFERED), Python silently drops what the system does not accept at once,
    such as the rest of a text larger than a pipe's buffer.
    """
    return open(stream.fileno(), "w", encoding=stream.encoding, errors=FALLBACK, closefd=False)


class _Closed(io.TextIOBase):
    """Standard output that was closed from the start.

    The requested output cannot be written, and exit code 0 would claim that it was.
    """

    encoding, errors = "utf-8", FALLBACK

    @property
    def buffer(self) -> _Closed:
        """The stream for bytes, which are rejected as well."""
        return self

    def write(self, data: object) -> NoReturn:
        raise OSError(errno.EBADF, "it is closed")


def release() -> None:
    """Flush both streams before exit.

    Output that cannot be written is discarded: a second attempt by the interpreter would change the
    exit code.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with _nowhere() as nowhere, suppress(OSError, ValueError):
                os.dup2(nowhere.fileno(), stream.fileno())


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


def paint_for(stream: TextIO, choice: str) -> Paint:
    """Return how to write to `stream` for a value of --color; reads the environment when called."""
    encoding = (stream.encoding or "ascii").lower().replace("-", "")
    return Paint(wants_colour(stream, choice, os.environ), not encoding.startswith("utf"))


def wants_colour(stream: TextIO, choice: str, environ: Mapping[str, str]) -> bool:
    """Whether to use colour: --color, then NO_COLOR, then FORCE_COLOR or CLICOLOR_FORCE, then
    isatty.

    An empty NO_COLOR does not count (no-color.org), nor does 0 as a value of the other two.
    """
    if choice != "auto":
        return choice == "always"
    if environ.get("NO_COLOR"):
        return False
    if any(environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return stream.isatty() and environ.get("TERM") != "dumb"


Rows = Sequence[Sequence[str]]


def table(rows: Rows, colour: str) -> str:
    """Return rows of cells, of which the first is the head, formatted according to `--color`."""
    if not wants_colour(sys.stdout, colour, os.environ):
        return aligned(rows)
    from rich import box
    from rich.table import Table

    rich_table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for head in rows[0]:
        rich_table.add_column(head, overflow="fold")  # no text is cut off
    for row in rows[1:]:
        rich_table.add_row(*row)
    return _rendered(rich_table)


def markdown(text: str, colour: str) -> str:
    if not wants_colour(sys.stdout, colour, os.environ):
        return text
    from rich.markdown import Markdown

    return _rendered(Markdown(text, code_theme="ansi_dark"))


def difference(text: str, colour: str) -> str:
    head_styles = {"---": "bold", "+++": "bold", "@@ ": "cyan"}
    line_styles = {"+": "green", "-": "red"}
    return styled(
        text, colour, lambda line: head_styles.get(line[:3], line_styles.get(line[:1], ""))
    )


def styled(text: str, colour: str, style_of: Callable[[str], str]) -> str:
    """Return the lines, each in the style that `style_of` gives it, without folding."""
    if not wants_colour(sys.stdout, colour, os.environ):
        return text
    from rich.text import Text

    lines = (Text(line, style_of(line)) for line in text.splitlines())
    return _rendered(Text("\n").join(lines), folds=False)


def _rendered(renderable: RenderableType, *, folds: bool = True) -> str:
    """Return text in the terminal's sixteen colours, wrapped at its width if `folds`."""
    from rich.console import Console

    console = Console(file=StringIO(), force_terminal=True, color_system="standard", emoji=False)
    with console.capture() as capture:
        console.print(renderable, soft_wrap=not folds)
    return "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines())
