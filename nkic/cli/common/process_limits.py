"""The command's resource limits, set once its command line is parsed, and its environment
variables.
"""

from __future__ import annotations

import os
import time

from nkic.base import environment, levels
from nkic.base.diagnostics import Level, UsageFailed
from nkic.cli.common.session import Session
from nkic.limits import own, table, watcher
from nkic.limits.page import NEVER


def warn_of_settings(session: Session) -> None:
    """Report variables that look like settings of nkic but are not, and old spellings."""
    found = [*environment.unknown(os.environ), *session.renamed]
    warnings = levels.apply(found, session.levels)
    if any(diagnostic.level is Level.ERROR for diagnostic in warnings):
        raise UsageFailed(warnings)
    if warnings and session.verbosity >= 0:
        session.report(warnings)


def set_limits(session: Session) -> None:
    """Set every limit of this process.

    Does nothing if the process does not belong to the command, as in tests.
    """
    if not session.own_process:
        return
    own.apply(table.values(session.tool, session.limits, os.environ))
    page, seconds = watcher.page(), session.limit("time")
    if page is not None and seconds is not None:
        page.limit(time.monotonic() + seconds, seconds)


def lift_time_limit() -> None:
    """Lift the limit of elapsed time when the work is done, because a reader of the output may be
    slow.

    The limit of processor time stays.
    """
    page = watcher.page()
    if page is not None:
        page.limit(NEVER, NEVER)
