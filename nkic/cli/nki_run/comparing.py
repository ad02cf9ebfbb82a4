"""Two runs or two compiled kernels compared; --baseline: this run compared with another."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from nkic.base import files
from nkic.base.diagnostics import UsageFailed, bad_value, make
from nkic.base.files import STANDARD
from nkic.base.text import clean
from nkic.cli.common import Session
from nkic.cli.nki_run.options import CommandLine, CompareLine
from nkic.neff.container import PREFIX
from nkic.neff.limits import LIMITS
from nkic.neff.listing.diff import diff
from nkic.report.compare import budget
from nkic.report.compare.changes import Changes, changes
from nkic.report.compare.profiles import LIMIT, Profile, profile_of, read_profile

NO = 1  # the exit code of an exceeded budget


def compare_files(line: CompareLine, session: Session) -> int:
    """Report what changed from the first file to the second, and return the exit code."""
    first, second = line.before, line.after
    paths = [_markdown_path(request) for request in line.report]
    contents = [files.read_bytes(path, max(LIMIT, LIMITS.file_bytes)) for path in (first, second)]
    are_kernels = [data.startswith(PREFIX) for data in contents]
    if are_kernels == [True, True]:
        return _compiled(line, contents)
    if any(are_kernels):
        text = "one of the files is a compiled kernel, the other is not"
        raise bad_value(text, "compare two files of the same kind")
    before, after = (read_profile(d, p) for d, p in zip(contents, (first, second), strict=True))
    comparison = changes(before, after)
    text = json.dumps(comparison.as_json(), indent=1) + "\n" if line.json else comparison.text
    files.write(STANDARD, text)
    for path in paths:
        files.write(path, comparison.markdown)
        session.artifact("md", path)
    return judge(line.fail_if, session, before, after)


def _compiled(line: CompareLine, contents: list[bytes]) -> int:
    if line.fail_if is not None or line.report:
        option = "--fail-if" if line.fail_if is not None else "--report"
        text = f"`{option}` applies to runs, and these are compiled kernels"
        help = "compare the files of nki-run --json"
        raise UsageFailed([make("conflicting-options", text, help=help)])
    difference = diff(*contents)
    if line.json:
        record = {"schema": 1, "verdict": difference.verdict, "sections": difference.sections}
        files.write(STANDARD, json.dumps({**record, "lines": difference.lines}, indent=1) + "\n")
    else:
        text = "".join(f"{clean(each)}\n" for each in (difference.summary, *difference.lines))
        files.write(STANDARD, text)
    return 0


def _markdown_path(request: str) -> str:
    """Return the path in `md=FILE`. Raises `UsageFailed`."""
    kind, _, path = request.partition("=")
    if kind != "md" or not path:
        text = f"--report {clean(request)}: of two files only md=FILE is possible"
        raise bad_value(text, "leave it out, or write md=FILE")
    return path


def baseline_of(line: CommandLine) -> Profile | None:
    """Return the profile of --baseline, which is read before the run. Raises `UsageFailed`."""
    budget.rules(line.fail_if)
    if line.baseline is None:
        return None
    return read_profile(files.read_bytes(line.baseline, LIMIT), line.baseline)


def tell_changes(session: Session, before: Profile, profile: Mapping[str, Any]) -> Changes:
    """Report what this run changes, in a few lines."""
    comparison = changes(before, profile_of(profile))
    rows = [row for row in comparison.figures if row.change]
    shown = [f"{r.name} {r.before:,.0f} to {r.after:,.0f} ({r.share})" for r in rows]
    text = f"against the baseline: {', '.join(shown) or 'no change'}"
    session.tell("baseline", text, changes=comparison.as_json())
    return comparison


def judge(rules: str | None, session: Session, before: Profile | None, after: Profile) -> int:
    """Check the limits of --fail-if, and return the exit code."""
    figures = before.figures if before is not None else None
    diagnostics = budget.broken(budget.rules(rules), after.figures, figures, after.capacities)
    if diagnostics:
        session.report(diagnostics)
    return NO if diagnostics else 0
