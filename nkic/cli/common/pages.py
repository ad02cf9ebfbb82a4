"""Tables and Markdown on standard output: plain text, or formatted by Rich on a terminal.

Rich is imported for a terminal only: output to a file or a pipe is the same everywhere, and costs
no import.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from io import StringIO
from typing import TYPE_CHECKING

from nkic.base.text import aligned
from nkic.cli.common.streams import wants_colour

if TYPE_CHECKING:
    from rich.console import RenderableType

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
    """Return a page of Markdown."""
    if not wants_colour(sys.stdout, colour, os.environ):
        return text
    from rich.markdown import Markdown

    return _rendered(Markdown(text, code_theme="ansi_dark"))


def difference(text: str, colour: str) -> str:
    """Return a unified diff."""
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
