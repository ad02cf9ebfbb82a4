"""What a command may take of the machine: set once its command line is understood."""

from __future__ import annotations

import os
import time

from nkic.cli.common.session import Session
from nkic.limits import own, table, watcher
from nkic.limits.page import NEVER


def raise_around(session: Session, seconds: float | None) -> None:
    """Sets every limit of this process; `seconds` is the option for time. Does nothing where the
    process is not the command's own, as in tests.
    """
    if not session.own_process:
        return
    cpu = seconds if session.tool == "nkic" else None
    own.apply(table.values(session.tool, session.limits, cpu, os.environ))
    page = watcher.page()
    if page is not None and seconds is not None:
        page.limit(time.monotonic() + seconds, seconds)


def lift_time() -> None:
    """The work is done: who reads the output may take their time. Processor time goes on."""
    page = watcher.page()
    if page is not None:
        page.limit(NEVER, NEVER)
