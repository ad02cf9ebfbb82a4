"""`nkic evaluate`, `nkic tune` and `nkic serve`: candidates judged."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain, count
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nkic.base import files, watcher
from nkic.base.diagnostics import UsageFailed, bad_value, need
from nkic.base.files import STANDARD
from nkic.base.text import aligned, clean, plural
from nkic.cli.common import Session
from nkic.cli.common.options import refuse_losses
from nkic.cli.nkic.options import EvaluateLine, ServeLine, TuneLine
from nkic.compiler.pipeline import PRINTED
from nkic.judge import (
    Candidate,
    Evaluation,
    Judge,
    Results,
    placed,
    read_task,
    schemas,
)
from nkic.judge.cluster import pool_of

if TYPE_CHECKING:
    from nkic.judge.tuning import Tuned

NO, YES = 1, 0
MAX_SECRET = 4096  # bytes
SHORTEST = 16  # bytes of a secret or token
RANDOM = "python -c 'import secrets; print(secrets.token_urlsafe())' makes one"
NAMED = 8  # candidates
CLOSING = 60.0  # seconds that the workers of a cluster here may take to start and to end
SUFFIXES = {".py", ".neff", *PRINTED}  # of candidates in a folder
Source = str | Candidate  # a path, or what is read already


def evaluate(line: EvaluateLine, session: Session) -> int:
    """Judge the candidates, report, and return the exit code: 0 if all are correct."""
    _let_a_cluster_close(line.cluster)
    if not line.candidates:
        raise bad_value("no candidate is given", "nkic evaluate TASK.toml CANDIDATE.py")
    suite = schemas.read_suite(line.task, line.workloads) if line.workloads is not None else None
    task = suite.task if suite else read_task(line.task)
    reference = files.real(Path(line.task).parent / task.reference_file)
    sources = [source for path in line.candidates for source in _sources(path, reference)]
    in_folders = [("a candidate", source) for source in sources if isinstance(source, str)]
    also_read = [("the reference", str(reference)), *in_folders]
    part = next((name for name in _parts(line.jsonl) if not os.path.lexists(name)), "")
    refuse_losses(line, session, also_read, [("--jsonl", part)] if part else [])
    judge = Judge(
        task,
        secret=secret_of(line.secret),
        families=not line.no_families,
        domain=line.domain,
        sensitivity=not line.no_sensitivity,
        results=Results(line.results) if line.results is not None else None,
        time_only=line.time_only and line.best is None,
    )
    read = _read if suite is None else _read_solution
    given: Sequence[Candidate] = _Read(sources, read)
    dataset = None
    if line.dataset is not None:
        suite = suite or schemas.suite_of(judge)
        given, dataset = [*given], schemas.Dataset(suite)  # the texts that are judged
    now = datetime.now(UTC).isoformat(timespec="seconds")
    found, records = dict[int, Evaluation](), list[Any]()
    # The lines are kept before the pool is closed, which may take longer than an interrupt waits.
    with (
        _new_folder(line.dataset),
        pool_of(line.cluster, line.jobs) as pool,
        _jsonl(line.jsonl, session) as write,
    ):
        numbered: Iterable[tuple[int, Evaluation]] = (
            enumerate(judge.evaluate_all(given, pool=pool))
            if line.best is None
            else judge.evaluate_best(given, line.best, pool=pool)
        )
        for number, evaluation in numbered:
            if suite and evaluation.status != "compiled":
                traces = schemas.traces_of(suite, evaluation, now)
                records += traces if line.traces is not None else ()
                if dataset is not None:
                    dataset.add(evaluation, given[number], traces)
            short = replace(evaluation, report={}, metrics={}, what_if=(), diagnostics=())
            found[number] = short
            write(f"{evaluation.json(line.host)}\n")
            session.status(clean(f"{evaluation.candidate}: {evaluation.status}"))
    if line.jsonl not in (None, STANDARD):
        session.wrote("jsonl", line.jsonl)
    if suite and line.traces is not None:
        files.write(line.traces, "".join(f"{json.dumps(record)}\n" for record in records))
    if dataset is not None and line.dataset is not None:
        dataset.write(line.dataset)
        session.wrote("dataset", line.dataset)
    if line.jsonl != STANDARD and session.verbosity >= 0:
        files.write(STANDARD, _table([*found.values()]))
    right = sum(e.compiled if judge.time_only else e.correct for e in found.values())
    return YES if right >= min(line.best or len(found), len(found)) else NO


@contextmanager
def _new_folder(path: str | None) -> Iterator[None]:
    """Make the folder of a data set before the work that fills it; without that, it is none."""
    if path is None:
        yield
        return
    if path == STANDARD or os.path.lexists(path):
        text = "is no folder" if path == STANDARD else "exists"
        raise bad_value(f"--dataset: `{path}` {text}", "name a folder that does not exist")
    files.make_folder(path)
    try:
        yield
    except BaseException:
        Path(path).rmdir()
        raise


class _Read(Sequence[Candidate]):
    """Candidates that are read when they are judged, so that many cost no memory."""

    def __init__(self, sources: Sequence[Source], read: Callable[[Source], Candidate]) -> None:
        self.sources, self.read = sources, read

    def __len__(self) -> int:
        return len(self.sources)

    def __getitem__(self, number: Any) -> Any:
        return self.read(self.sources[number])


def _sources(path: str, reference: Path) -> Sequence[Source]:
    """Return the files of a folder but the reference, or one file; what is no file is read now."""
    if files.is_folder(path):
        found = (p for p in files.in_folder(path, "**/*", path) if p.suffix in SUFFIXES)
        if not (names := sorted(str(p) for p in found if files.real(p) != reference)):
            kinds = ", ".join(sorted(SUFFIXES))
            help = f"its {kinds} files are candidates, unless they are links out of it"
            raise bad_value(f"no candidate is in `{path}`", help)
        return names
    if path.endswith(".toml"):
        help = "give one task, then kernels: nkic evaluate TASK.toml CANDIDATE.py"
        raise bad_value(f"`{path}` is no candidate: a TOML file is a task", help)
    return [path if files.is_file(path) else Candidate.read(path)]


def _read(source: Source, read: Callable[[str], Candidate] = Candidate.read) -> Candidate:
    """Read a candidate; that it cannot be read is its own problem, not that of its neighbours."""
    try:
        return read(source) if isinstance(source, str) else source
    except UsageFailed as failed:
        return Candidate(str(source), b"", problem=str(failed))


def _read_solution(source: Source) -> Candidate:
    is_solution = isinstance(source, str) and source.endswith(".json")
    return _read(source, schemas.read_solution if is_solution else Candidate.read)


def secret_of(path: str | None) -> bytes:
    if path is None:
        return b""
    secret = files.read_bytes(path, MAX_SECRET).strip()
    if len(secret) < SHORTEST:
        text = f"--secret: `{path}` is empty" if not secret else f"the secret in `{path}` is short"
        raise bad_value(f"{text}: it could be guessed, and must have {SHORTEST} bytes", RANDOM)
    return secret


def _let_a_cluster_close(cluster: str | None) -> None:
    """Have this process killed later after a signal: its workers' folder would be left."""
    page = watcher.page()
    if cluster is not None and page is not None:
        page.grace = CLOSING


def _parts(path: str | None) -> Iterator[str]:
    """Yield where lines of an interrupted run may be kept: beside the file, if that keeps any. The
    first that is not there is taken; others are of earlier runs.
    """
    if path is not None and path != STANDARD and files.keeps(path):
        part = f"{files.real(path) if Path(path).is_symlink() else path}.part"
        yield from chain([part], (f"{part}{number}" for number in count(2)))


@contextmanager
def _jsonl(path: str | None, session: Session) -> Iterator[Callable[[str], object]]:
    """Give what writes a line to the file of JSON lines. The file is whole, or as it was: lines of
    a run that does not reach its end are kept beside it.
    """
    if path is None or path == STANDARD:
        yield str if path is None else partial(files.write, STANDARD)
        return
    lines, tried = 0, list[str]()

    def parts() -> Iterator[str]:
        for name in _parts(path):
            tried.append(name)
            yield name

    def write(line: str) -> None:
        nonlocal lines
        stream.write(line.encode())
        lines += 1

    try:
        with files.replacing(path, parts=parts()) as stream:
            yield write
    except BaseException:
        if lines and tried:
            part = tried[-1]
            text = f"`{path}` is not written: what was done is in `{part}`"
            session.tell("part", f"{text}, {plural(lines, 'line')}", path=part, lines=lines)
        raise


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
    told += [each["text"] for each in (*(evaluation.domain or ()), evaluation.proof) if each]
    told += [flag.text for flag in evaluation.flags if not flag.cheat]
    if not told and evaluation.verdict:
        told = [evaluation.verdict[0]]
    return clean(evaluation.candidate), evaluation.status, time, clean("; ".join(told))


_TIME = re.compile(r"(\d+(?:\.\d+)?)(s|m|h|)")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}


class _Kept(Exception):
    """The lines are written, and are not the whole."""


def tuned(line: TuneLine, session: Session) -> int:
    """Tune, report, and return the exit code: 0 if a point is right."""
    from nkic.judge.tuning import tune

    _let_a_cluster_close(line.cluster)
    task = read_task(line.task)
    reference = [("the reference", str(task.folder / task.reference_file))]
    part = next((name for name in _parts(line.jsonl) if not os.path.lexists(name)), "")
    refuse_losses(line, session, reference, [("--jsonl", part)] if part else [])

    def stopped(found: Tuned) -> None:
        """Keep the lines of what was found beside the file, which stays as it was, and say it."""
        with suppress(_Kept), _jsonl(line.jsonl, session) as write:
            for each in found.jsonl().splitlines(keepends=True):
                write(each)
            raise _Kept
        if line.jsonl != STANDARD and session.verbosity >= 0:
            with suppress(UsageFailed, OSError):  # of a terminal that is closed
                files.write(STANDARD, found.table)

    found = tune(
        line.kernel,
        task,
        _wishes(line.vary),
        jobs=line.jobs,
        cluster=line.cluster,
        trials=line.trials,
        best=line.best,
        seed=line.seed,
        budget=_seconds(line.budget),
        results=line.results,
        told=lambda text: session.status(clean(text)),
        stopped=stopped,
    )
    source = found.text if found.best is not None else None
    for kind, path, text in (
        ("jsonl", line.jsonl, found.jsonl()),
        ("plot", line.plot, found.svg),
        ("source", line.write, source),
    ):
        if path is not None and text is not None:
            files.write(path, text)
            if path != STANDARD:
                session.wrote(kind, path)
    if line.jsonl != STANDARD and session.verbosity >= 0:
        files.write(STANDARD, found.table)
    return YES if found.best is not None else NO


def _wishes(words: tuple[str, ...]) -> dict[str, str]:
    wishes: dict[str, str] = {}
    for word in words:
        name, equals, values = word.partition("=")
        if not equals or not name.strip():
            raise bad_value(f"--vary {word}: no NAME=VALUES", "as in --vary tile=128,256")
        if name.strip() in wishes:
            raise bad_value(f"--vary {word}: `{name}` is varied twice", "give all its values once")
        wishes[name.strip()] = values
    return wishes


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    match = _TIME.fullmatch(text)
    seconds = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    if not 0 < seconds < inf:
        raise bad_value(f"--budget: `{text}` is no time", "write 90s, 10m or 2h")
    return seconds


MAX_TOKENS = 1 << 20  # bytes of the file of tokens
LATEST = 10.0  # seconds after the end of all that runs, when the process is killed


def serve(line: ServeLine, session: Session) -> int:
    need("`nkic serve` needs", "starlette", "uvicorn", "prometheus_client")
    from nkic.serve.app import Service, run
    from nkic.serve.limits import Limits, is_here

    if not line.tasks:
        raise bad_value("no task is given", "nkic serve TASK.toml")
    tokens = _tokens(line)
    if not tokens and not is_here(line.host):
        text = f"--host {line.host}: whoever reaches it could use it"
        raise bad_value(text, "give --token FILE, or NKIC_TOKEN in the environment")
    results = Results(line.results) if line.results is not None else None
    secret = secret_of(line.secret)
    judges = [Judge(read_task(path), secret=secret, results=results) for path in line.tasks]
    names = [judge.task.name for judge in judges]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise bad_value(f"two tasks are called `{twice}`", "write name = '…' into one")
    page = watcher.page()
    if page is not None:
        page.grace = line.grace + max(judge.task.seconds for judge in judges) + LATEST
    with pool_of(line.cluster, line.jobs) as pool:
        limits = Limits(queue=line.queue, grace=line.grace)
        url = f"http://{line.host}:{line.port}"

        def listens() -> None:
            session.tell("serving", f"serving {', '.join(names)} on {url}", tasks=names, url=url)

        run(Service(judges, pool, tokens, limits), line.host, line.port, listens)
    return 0


def _tokens(line: ServeLine) -> list[str]:
    given = os.environ.get("NKIC_TOKEN", "")
    if line.token is not None:
        given = files.read_bytes(line.token, MAX_TOKENS).decode("utf-8", "replace")
        if not given.strip():
            raise bad_value(f"--token: `{line.token}` is empty", "write a token into it")
    tokens = [token.strip() for token in given.splitlines() if token.strip()]
    if any(len(token) < SHORTEST for token in tokens):
        raise bad_value(f"a token has fewer than {SHORTEST} characters", RANDOM)
    return tokens
