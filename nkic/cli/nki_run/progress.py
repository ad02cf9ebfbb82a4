"""A progress bar on a terminal for runs of more than a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from nkic.cli.common import Session

if TYPE_CHECKING:
    from rich.progress import Progress

AFTER = 1.0  # seconds until the bar appears


class Bar:
    """A progress bar that appears once the run has lasted long enough.

    `total` is the number of instructions, None if it is determined at run time.
    """

    def __init__(self, stream: TextIO, total: int | None, after: float = AFTER) -> None:
        self.stream = stream
        self.total = total
        self.begin = time.monotonic() + after
        self.progress: Progress | None = None

    def __call__(self, done: int) -> None:
        """Report that `done` instructions have been executed."""
        if time.monotonic() < self.begin:
            return
        if self.progress is None:
            self.progress = self._make_progress()
            self.progress.start()
        self.progress.update(self.progress.task_ids[0], completed=done)

    def _make_progress(self) -> Progress:
        # Imported here because most runs are over before there is anything to show.
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeRemainingColumn as Remaining

        console = Console(file=self.stream, highlight=False, emoji=False, markup=False)
        columns = (TextColumn("{task.description}", markup=False), BarColumn())
        counters = (MofNCompleteColumn(), Remaining())
        progress = Progress(
            *columns, *counters, console=console, transient=True, refresh_per_second=4
        )
        progress.add_task("instructions", total=self.total)
        return progress

    def close(self) -> None:
        """Remove the bar."""
        if self.progress is not None:
            self.progress.stop()


@contextmanager
def shown(session: Session, total: int | None) -> Iterator[Bar | None]:
    """Show a bar on standard error if that is a terminal that a person reads."""
    is_interactive = session.verbosity >= 0 and session.format == "human"
    bar = Bar(sys.stderr, total) if is_interactive and sys.stderr.isatty() else None
    try:
        yield bar
    finally:
        if bar is not None:
            bar.close()
