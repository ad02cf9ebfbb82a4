"""A run in a few lines of Markdown, for the summary of a job or a pull request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nkic.report.compare.changes import Changes, plain
from nkic.report.insight.verdict import Insight


def markdown(insight: Insight, run: Mapping[str, Any], compared: Changes | None = None) -> str:
    """Return the time, the verdict, and the changes against a baseline."""
    verdict = insight.verdict
    title = f"### {plain(run['kernel'])} on {plain(run['target'])}: {run['cycles']:,} cycles"
    points = [f"- {plain(line)}" for line in verdict.lines]
    changed = ["", compared.markdown] if compared is not None else []
    return "\n".join([title, "", *points, *changed]) + "\n"
