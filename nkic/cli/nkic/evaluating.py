"""`nkic evaluate`: candidates of a task, ranked, as a table and as lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nkic.base import files
from nkic.base.diagnostics import bad_value
from nkic.base.files import STANDARD
from nkic.base.text import aligned, clean, plural
from nkic.cli.common import Session
from nkic.cli.nkic.options import EvaluateLine
from nkic.judge import (
    Candidate,
    Evaluation,
    Judge,
    LocalPool,
    Pool,
    Results,
    placed,
    read_task,
    traces,
)

NO, YES = 1, 0
MAX_SECRET = 4096  # bytes
NAMED = 8  # candidates
SUFFIXES = {".py", ".neff"}  # of candidates in a folder


def evaluate(line: EvaluateLine, session: Session) -> int:
    """Judge the candidates, report, and return the exit code: 0 if all are correct."""
    if not line.candidates:
        raise bad_value("no candidate is given", "nkic evaluate TASK.toml CANDIDATE.py")
    if session.limits:
        raise bad_value("`--limit` is about this process", "write [limits] into the task")
    suite = traces.read_suite(line.task, line.workloads) if line.workloads is not None else None
    judge = Judge(
        suite.task if suite else read_task(line.task),
        secret=secret_of(line.secret),
        families=not line.no_families,
        sensitivity=not line.no_sensitivity,
        results=Results(line.results) if line.results is not None else None,
        time_only=line.time_only,
    )
    sources = [source for path in line.candidates for source in _sources(path)]
    read = _read if suite is None else _read_solution
    now = datetime.now(UTC).isoformat(timespec="seconds")
    found, records = list[Evaluation](), list[Any]()
    right = 0
    with ExitStack() as stack:
        write = _lines(line.jsonl, stack)
        pool = stack.enter_context(pool_of(line.cluster, line.jobs))
        for evaluation in judge.evaluate_all(map(read, sources), pool=pool):
            if suite and line.traces is not None:
                records += traces.traces_of(suite, evaluation, now)
            found.append(replace(evaluation, report={}, metrics={}, what_if=(), diagnostics=()))
            right += evaluation.compiled if line.time_only else evaluation.correct
            session.status(f"{evaluation.candidate}: {evaluation.status}")
            write(f"{evaluation.json(line.host)}\n")
    if line.jsonl not in (None, STANDARD):
        session.wrote("jsonl", line.jsonl)
    if suite and line.traces is not None:
        files.write(line.traces, "".join(f"{json.dumps(record)}\n" for record in records))
    if line.jsonl != STANDARD and session.verbosity >= 0:
        files.write(STANDARD, _table(found))
    return YES if right == len(found) else NO


def _sources(path: str) -> Sequence[str | Candidate]:
    """Return the files of a folder, or one; what is no file is read now."""
    if Path(path).is_dir():
        return sorted(str(p) for p in Path(path).rglob("*") if p.suffix in SUFFIXES)
    return [path if Path(path).is_file() else Candidate.read(path)]


def _read(source: str | Candidate) -> Candidate:
    return Candidate.read(source) if isinstance(source, str) else source


def _read_solution(source: str | Candidate) -> Candidate:
    is_solution = isinstance(source, str) and source.endswith(".json")
    return traces.read_solution(str(source)) if is_solution else _read(source)


def secret_of(path: str | None) -> bytes:
    """Return the secret of a file."""
    if path is None:
        return b""
    secret = files.read_bytes(path, MAX_SECRET).strip()
    if not secret:
        raise bad_value(f"--secret: `{path}` is empty", "write any words into it")
    return secret


def pool_of(cluster: str | None, jobs: int) -> Pool:
    """Return where candidates are judged."""
    if cluster is None:
        return LocalPool(jobs)
    from nkic.judge.cluster import ClusterPool  # Dask

    return ClusterPool(cluster)


def _lines(path: str | None, stack: ExitStack) -> Callable[[str], object]:
    """Return what writes a line to the file of JSON lines."""
    if path is None:
        return str
    if path == STANDARD:
        return lambda line: files.write(STANDARD, line)
    stream = stack.enter_context(files.replacing(path))
    return lambda line: stream.write(line.encode())


def _table(found: Sequence[Evaluation]) -> str:
    """Return the candidates in their places, then those that are out of the running."""
    places = placed(found)
    ranked = {id(place.evaluation) for place in places}
    others = [evaluation for evaluation in found if id(evaluation) not in ranked]
    rows = [(place.words, *_row(place.evaluation)) for place in places]
    rows += [("-", *_row(evaluation)) for evaluation in others]
    ran = any(evaluation.runnable for evaluation in found)
    right = sum(evaluation.correct if ran else evaluation.compiled for evaluation in found)
    verdict = "correct" if ran else "compiled, none run"
    text = f"{aligned(rows)}{right} of {plural(len(found), 'candidate')} {verdict}\n"
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
