"""Finding the best point: estimate many, run the best, and return only what was compared.

The compiler's estimate is the time of a run, so that most points need not be run. Every step
depends on the outcomes of earlier ones alone, and these come from the results that are kept: a
tuning that was stopped takes the same steps again, without their cost, and goes on.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.util import find_spec
from itertools import islice
from typing import Any

from nkic.base import files
from nkic.base.diagnostics import UsageFailed, make
from nkic.base.source import SourceFile
from nkic.judge import Candidate, Judge, Results, Task, read_task
from nkic.judge.task import task_of
from nkic.parse.decoding import decode
from nkic.tuning.outcome import Outcome
from nkic.tuning.result import Tuned, front
from nkic.tuning.space import OPTIMISE, Point, Space, label, space_of

TRIALS, BEST = 200, 8
MAX_BYTES = 64 << 20  # size of a kernel's file
ESTIMATES = 0.8  # of the time that is allowed: the rest is for comparing the best
ASKS = 20  # for each trial, of a search that repeats itself


def tune(
    kernel: str | os.PathLike[str] | SourceFile,
    task: str | os.PathLike[str] | Task,
    vary: Mapping[str, str | Sequence[Any]] | None = None,
    *,
    jobs: int = 1,
    trials: int = TRIALS,
    best: int = BEST,
    seed: int = 0,
    budget: float | None = None,
    results: str | os.PathLike[str] | None = None,
    told: Callable[[str], None] = lambda text: None,
) -> Tuned:
    """Find the values of a kernel's choices with which it is fastest, and right.

    `vary` has the values by choice (`{"tile": [128, 256], "-O": "0..2"}`); without it they are
    those that the file marks. At most `trials` points are compiled, `jobs` at a time: all of a
    space that has no more, otherwise those that Optuna asks for. The `best` by the compiler's
    estimate, and the front of time and SBUF, are run and compared with the reference. `budget` is
    in seconds. `results` is a file that keeps evaluations, with which a tuning that was stopped
    continues. `told` hears about each point. Raises `UsageFailed`, or `CompileFailed` for a file
    that cannot be read.
    """
    if not isinstance(kernel, SourceFile):
        path = os.fspath(kernel)
        kernel = decode(files.read_bytes(path, MAX_BYTES), path)
    task = task if isinstance(task, Task) else read_task(task)
    space = space_of(kernel, task, vary or {})
    if space.size > trials and find_spec("optuna") is None:
        text = f"{space.size:,} points are more than the {trials:,} trials, and a search needs "
        help = f"python -m pip install optuna; or --trials {space.size} to try them all"
        raise UsageFailed([make("bad-usage", f"{text}optuna, which is not installed", help=help)])
    tuner = _Tuner(space, task, Results(results) if results is not None else None, budget, told)
    with ThreadPoolExecutor(jobs) as tuner.pool:  # a thread waits for one point's process
        tuner.estimate(trials, jobs, seed)
        cut, tuner.over = tuner.over, False
        tuner.compare(best)
    return Tuned(space, tuple(tuner.found.values()), cut or tuner.over)


class _Tuner:
    """One tuning: what it has found, by point."""

    pool: ThreadPoolExecutor

    def __init__(
        self,
        space: Space,
        task: Task,
        results: Results | None,
        budget: float | None,
        told: Callable[[str], None],
    ) -> None:
        self.space, self.told = space, told
        self.began, self.budget, self.over = time.monotonic(), budget, False
        self.found: dict[str, Outcome] = {}
        self.judges: dict[tuple[str, bool], Judge] = {}
        levels = [choice.values for choice in space.choices if choice.name == OPTIMISE]
        for level in levels[0] if levels else ("",):
            head = f"optimise = {level}\n".encode() + task.toml
            at_level = task_of(head, task.files, task.folder) if level else task
            for runs in (False, True):
                self.judges[level, runs] = Judge(
                    at_level,
                    families=False,
                    sensitivity=False,
                    time_only=not runs,
                    results=results,
                )

    # ---- estimates ----

    def estimate(self, trials: int, jobs: int, seed: int) -> None:
        """Compile all points, or as many as there are trials."""
        if self.space.size <= trials:
            self._outcomes([*self.space.points()], runs=False)
        else:
            self._search(trials, jobs, seed)

    def _search(self, trials: int, jobs: int, seed: int) -> None:
        import optuna  # an extra

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=jobs > 1)
        study = optuna.create_study(sampler=sampler)
        study.enqueue_trial({c.name: _index(c.values, c.present) for c in self.space.choices})
        pruned = optuna.trial.TrialState.PRUNED
        for _ in range(ASKS * trials // jobs):
            if self.over or len(self.found) >= trials:
                break
            asked = [study.ask() for _ in range(jobs)]
            points = [self._asked(trial) for trial in asked]
            new = {label(p): p for p in points if label(p) not in self.found}
            self._outcomes([*islice(new.values(), trials - len(self.found))], runs=False)
            for trial, point in zip(asked, points, strict=True):
                outcome = self.found.get(label(point))
                if outcome is not None and outcome.open:
                    study.tell(trial, outcome.us)
                else:
                    study.tell(trial, state=pruned)

    def _asked(self, trial: Any) -> Point:
        """Return the point of a trial, which is made of the numbers of the values."""
        return {
            c.name: c.values[trial.suggest_int(c.name, 0, len(c.values) - 1)]
            for c in self.space.choices
        }

    # ---- comparisons ----

    def compare(self, best: int) -> None:
        """Run points until the best, and the front, are ones that were compared.

        Points that compile to the same programs are compared once.
        """
        first = True
        while first or not self.over:
            standing = [outcome for outcome in self.found.values() if outcome.open]
            programs: dict[tuple[str, ...], Outcome] = {}
            for outcome in sorted(standing, key=lambda o: o.cost):
                programs.setdefault(outcome.program, outcome)
            leading = {o.label: o for o in [*islice(programs.values(), best), *front(standing)]}
            wanted = {o.program: o for o in leading.values() if not o.correct}
            if not wanted:
                break
            self._outcomes([o.point for o in wanted.values()], runs=True, must=first)
            first = False
            for name, outcome in self.found.items():
                ran = (
                    self.found[wanted[outcome.program].label] if outcome.program in wanted else None
                )
                if ran is not None and ran.status != "compiled" and outcome.status == "compiled":
                    self.found[name] = replace(ran, point=outcome.point)

    # ---- one point ----

    def _outcomes(self, points: Sequence[Point], runs: bool, must: bool = False) -> None:
        """Find out about points, several at a time; fewer of them if the time is over."""

        def one(point: Point) -> Outcome | None:
            return self._outcome(point, runs, must)

        for outcome in self.pool.map(one, points):
            if outcome is None:
                self.over = True
            else:
                self.found[outcome.label] = outcome
                self.told(f"{outcome.label}: {outcome.status}")

    def _outcome(self, point: Point, runs: bool, must: bool) -> Outcome | None:
        """Return what is known about a point, or find out; None if the time is over."""
        judge = self.judges[point.get(OPTIMISE, ""), runs]
        candidate = Candidate.of_text(self.space.text(point), self.space.source.path)
        known = judge.known(candidate)
        spent = time.monotonic() - self.began
        until = float("inf") if self.budget is None else self.budget * (1 if runs else ESTIMATES)
        if spent >= until and not known and not must:
            return None
        return Outcome(point, known or judge.evaluate(candidate))


def _index(values: Sequence[str], present: str) -> int:
    return values.index(present) if present in values else 0
