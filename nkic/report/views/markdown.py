"""A run in a few lines of Markdown, for the summary of a job or a pull request."""

from __future__ import annotations

from nkic.base.text import clean
from nkic.report.compare.changes import Changes, plain
from nkic.report.insight.verdict import Insight
from nkic.report.run_report import RunReport, about, time_line


def markdown(
    insight: Insight, run: RunReport, compared: Changes | None = None, command: str = ""
) -> str:
    """Return the time and its likely error, the verdict, the changes against a baseline, and how to
    repeat the run.
    """
    title = f"### {plain(run.kernel)}: {plain(time_line(run))}"
    rows = about(run, insight.trace.executable, command)
    points = [f"- {plain(line)}" for line in insight.verdict.lines]
    table = [f"| {name} | {plain(clean(value))} |" for name, value in rows]
    changed = [compared.markdown] if compared is not None else []
    return "\n".join([title, "", *points, "", *changed, "| run | |", "|---|---|", *table]) + "\n"
