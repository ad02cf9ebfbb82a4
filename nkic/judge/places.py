"""The order of candidates, as far as the clock lets it be told: each place is a band."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from nkic.judge.evaluation import Evaluation
from nkic.report.compare.ranking import Timed, distinguishable
from nkic.report.trust import Reason

BANDED = 20  # places whose band is worked out
FAR = 3.0  # ratio of two times that no band spans


class Placed(NamedTuple):
    """A candidate and its place, from 1: likely from `best` to `worst` on a device.

    `worst` is 0 if it was not worked out. A candidate is `worth_a_device` if it cannot be told from
    the fastest.
    """

    evaluation: Evaluation
    best: int
    worst: int
    worth_a_device: bool

    @property
    def words(self) -> str:
        """`1`, `1-3`, or `25` for a place without a band."""
        return f"{self.best}-{self.worst}" if self.worst > self.best else f"{self.best}"


def placed(evaluations: Sequence[Evaluation]) -> list[Placed]:
    """Return the candidates that are in the running, fastest first.

    Those are the correct ones; if none has run, those that compile.
    """
    ran = any(evaluation.runnable for evaluation in evaluations)
    timed = [
        (_timed(number, evaluation), evaluation)
        for number, evaluation in enumerate(evaluations)
        if evaluation.time_ns and (evaluation.correct if ran else evaluation.compiled)
    ]
    timed.sort(key=lambda pair: (pair[0].time_ns, pair[0].name))
    runs = [run for run, _ in timed]
    found = []
    for at, (run, evaluation) in enumerate(timed):
        worth = at == 0 or not distinguishable(runs[0], run)
        if at >= BANDED:
            found.append(Placed(evaluation, at + 1, 0, worth))
            continue
        faster = [distinguishable(other, run) for other in runs[:at]]
        end = bisect(runs, FAR * run.time_ns, key=attrgetter("time_ns"))
        same = sum(not distinguishable(run, other) for other in runs[at + 1 : end])
        found.append(Placed(evaluation, 1 + sum(faster), at + 1 + same, worth))
    return found


def _timed(number: int, evaluation: Evaluation) -> Timed:
    """Return an evaluation as a run to be ranked.

    What timing again has shown of a figure takes the place of its share of the critical path.
    """
    trust = evaluation.trust
    reasons = {r["figure"]: Reason(**r) for r in trust.get("reasons", ())}
    for figure, (more, less, error) in trust.get("sensitivity", {}).items():
        effect = more if abs(more) >= abs(less) else -less
        reasons[figure] = Reason(figure, effect / error, error)
    return Timed(f"{number:06}", evaluation.time_ns or 0.0, reasons)
