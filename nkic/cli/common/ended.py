"""The watcher's report on a worker that ended without its own."""

from __future__ import annotations

import signal
from contextlib import suppress

from nkic.base.diagnostics import Diagnostic, NkicError, make
from nkic.base.source import Span
from nkic.cli.common import streams
from nkic.cli.common.session import Session
from nkic.limits import places
from nkic.limits.watcher import Ended, Reason

LIMIT, INTERNAL = 6, 70


def report(ended: Ended, tool: str, argv: list[str]) -> int:
    """Report in the format that the command line requests, and return the exit code."""
    streams.settle()
    session = Session.before_parsing(tool, argv)
    if ended.reason is Reason.SIGNAL:
        return ended.code
    with suppress(NkicError, OSError):  # a failed write does not change the verdict
        session.report([_diagnostic(ended, tool)])
        session.close()
        session.end()
    streams.release()
    return INTERNAL if ended.reason is Reason.CRASH else LIMIT


def _diagnostic(ended: Ended, tool: str) -> Diagnostic:
    span = places.read(ended.page.seen)
    if ended.reason is Reason.TIME:
        text = f"{tool} takes more than {ended.page.seconds:g} s (`--limit time`)"
        advice = "a single operation takes that long; --limit time=SECONDS sets another limit"
        return _timely(f"{text}, and does not stop by itself", span, advice)
    if ended.reason is Reason.CPU:
        advice = "--limit cpu=SECONDS sets another limit"
        return _timely(f"{tool} has used up its processor time", span, advice)
    if ended.reason is Reason.KILLED:
        text = f"{tool} was killed from outside, as the system does when it runs out of memory"
        return make("out-of-memory", text, span, help="try smaller shapes")
    name = signal.Signals(ended.code - 128).name
    return make("internal-error", f"internal error in {tool}: the interpreter ended with {name}")


def _timely(text: str, span: Span | None, advice: str) -> Diagnostic:
    label = "last seen here" if span is not None else ""
    return make("time-limit", text, span, label=label, help=advice)
