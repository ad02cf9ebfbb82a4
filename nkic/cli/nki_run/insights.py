"""Analysis of a run: its trace, and the verdict on it."""

from __future__ import annotations

from nkic.base.diagnostics import Diagnostic, LimitHit, make
from nkic.cli.common import Session
from nkic.cli.nki_run.options import CommandLine
from nkic.report.insight.verdict import QUESTION_EVENTS, Insight, insight
from nkic.simulate import Result

MAX_EVENTS = 100_000  # per rank; longer runs have no verdict
MAX_REPORTED = 1_000_000  # the same if a report was requested
MAX_QUESTION_EVENTS = 2_000_000  # events that are then run again, over all questions


def wants_reports(line: CommandLine) -> bool:
    """Whether an option needs the trace of the run."""
    return bool(line.report or line.against or line.baseline or ">" in (line.fail_if or ""))


def events_wanted(line: CommandLine, session: Session) -> int:
    """Return how many events a run has to keep for the requested reports."""
    if wants_reports(line):
        return MAX_REPORTED
    return MAX_EVENTS if session.verbosity >= 0 or line.json else 0  # for the likely error


def insight_of(result: Result, line: CommandLine, session: Session) -> Insight | None:
    """Return the analysis of a run; None for a run that was too long to be recorded."""
    recorded = result.recorded
    needs_verdict = line.verdict and (session.verbosity >= 0 or line.json)
    if not needs_verdict and not wants_reports(line):
        return None
    if recorded is None or not (recorded.trace.events or wants_reports(line)):
        return None
    if not recorded.trace.complete:
        if wants_reports(line):
            raise LimitHit([_too_many()])
        session.status(f"no verdict: more than {events_wanted(line, session):,} events")
        return None
    max_events = MAX_QUESTION_EVENTS if wants_reports(line) else QUESTION_EVENTS
    return insight(recorded.trace, recorded.again if recorded.can_repeat else None, max_events)


def _too_many() -> Diagnostic:
    text = f"the run has more than {MAX_REPORTED:,} events, too many for a report"
    return make(
        "memory-limit", text, help="report on a smaller shape, or on fewer iterations of a loop"
    )


def tell_verdict(analysis: Insight, session: Session) -> None:
    """Report the verdict, in at most six lines."""
    session.tell("verdict", "\n".join(analysis.verdict.lines), verdict=analysis.verdict.as_json())
