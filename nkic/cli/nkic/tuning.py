"""`nkic tune`: the choices of a kernel, ranked, and the kernel with the best of them."""

from __future__ import annotations

import re

from nkic.base import files
from nkic.base.diagnostics import bad_value
from nkic.base.files import STANDARD
from nkic.cli.common import Session
from nkic.cli.nkic.options import TuneLine
from nkic.tuning import tune

NO, YES = 1, 0
_TIME = re.compile(r"(\d+(?:\.\d+)?)(s|m|h|)")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}


def tuned(line: TuneLine, session: Session) -> int:
    """Tune, report, and return the exit code: 0 if a point is right."""
    if session.limits:
        raise bad_value("`--limit` is about this process", "write [limits] into the task")
    found = tune(
        line.kernel,
        line.task,
        _wishes(line.vary),
        jobs=line.jobs,
        trials=line.trials,
        best=line.best,
        seed=line.seed,
        budget=_seconds(line.budget),
        results=line.results,
        told=session.status,
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
    """Return the values by name. Raises `UsageFailed`."""
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
    if match is None:
        raise bad_value(f"--budget: `{text}` is no time", "write 90s, 10m or 2h")
    return float(match[1]) * _SECONDS[match[2]]
