"""`nkic evaluate`: candidates of a task, ranked, as a table and as lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from nkic.base import files
from nkic.base.diagnostics import bad_value
from nkic.base.files import STANDARD
from nkic.base.text import aligned, clean, plural
from nkic.cli.common import Session
from nkic.cli.nkic.options import EvaluateLine
from nkic.judge import Candidate, Evaluation, Judge, Results, placed, read_task, traces

NO, YES = 1, 0
MAX_SECRET = 4096  # bytes
NAMED = 8  # candidates


def evaluate(line: EvaluateLine, session: Session) -> int:
    """Judge the candidates, report, and return the exit code: 0 if all are correct."""
    if not line.candidates:
        raise bad_value("no candidate is given", "nkic evaluate TASK.toml CANDIDATE.py")
    if session.limits:
        raise bad_value("`--limit` is about this process", "write [limits] into the task")
    secret = files.read_bytes(line.secret, MAX_SECRET) if line.secret is not None else b""
    if line.secret is not None and not secret.strip():
        raise bad_value(f"--secret: `{line.secret}` is empty", "write any words into it")
    suite = traces.read_suite(line.task, line.workloads) if line.workloads is not None else None
    judge = Judge(
        suite.task if suite else read_task(line.task),
        secret=secret.strip(),
        families=not line.no_families,
        sensitivity=not line.no_sensitivity,
        results=Results(line.results) if line.results is not None else None,
        time_only=line.time_only,
    )
    candidates = [
        traces.read_solution(path) if suite and path.endswith(".json") else Candidate.read(path)
        for path in line.candidates
    ]
    found = []
    for evaluation in judge.evaluate_all(candidates, line.jobs):
        found.append(evaluation)
        session.status(f"{evaluation.candidate}: {evaluation.status}")
    if line.jsonl is not None:
        text = "".join(f"{each.json(line.host)}\n" for each in found)
        files.write(line.jsonl, text)
        if line.jsonl != STANDARD:
            session.wrote("jsonl", line.jsonl)
    if suite and line.traces is not None:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        records = [r for each in found for r in traces.traces_of(suite, each, now)]
        files.write(line.traces, "".join(f"{json.dumps(record)}\n" for record in records))
    if line.jsonl != STANDARD and session.verbosity >= 0:
        files.write(STANDARD, _table(found))
    right = sum(e.compiled if line.time_only else e.correct for e in found)
    return YES if right == len(found) else NO


def _table(found: Sequence[Evaluation]) -> str:
    """Return the candidates in their places, then those that are out of the running."""
    places = placed(found)
    ranked = {id(place.evaluation) for place in places}
    others = [evaluation for evaluation in found if id(evaluation) not in ranked]
    rows = [(place.words, *_row(place.evaluation)) for place in places]
    rows += [("-", *_row(evaluation)) for evaluation in others]
    right = sum(evaluation.correct for evaluation in found)
    text = f"{aligned(rows)}{right} of {plural(len(found), 'candidate')} correct\n"
    worth = [clean(p.evaluation.candidate) for p in places if p.worth_a_device]
    if len(places) > 1 and len(worth) > 1:
        named = ", ".join(worth[:NAMED]) + (
            f" and {len(worth) - NAMED} more" * (len(worth) > NAMED)
        )
        text += f"the clock cannot tell the first {len(worth)} apart: {named}\n"
    return text


def _row(evaluation: Evaluation) -> tuple[str, str, str, str]:
    time = f"{evaluation.time_ns / 1000:,.2f} us" if evaluation.time_ns is not None else "-"
    told = [evaluation.reason] if evaluation.reason else []
    differs = [result.inputs for result in evaluation.families if not result.passed]
    if evaluation.correct and differs:
        told.append(f"differs from the reference on inputs that are {', '.join(differs)}")
    told += [flag.text for flag in evaluation.flags if not flag.cheat]
    if not told and evaluation.verdict:
        told = [evaluation.verdict[0]]
    return clean(evaluation.candidate), evaluation.status, time, clean("; ".join(told))
