"""What is known about a candidate: data, with one form as JSON.

Nothing in it depends on the machine or the moment, so that equal candidates have equal bytes.
`seconds` and `mib`, which do, are kept apart.
"""

from __future__ import annotations

import json
from bisect import bisect
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from operator import attrgetter
from typing import Any, NamedTuple

from nkic.report.compare import Timed, distinguishable
from nkic.report.critical import Reason

SCHEMA = 1
HIDDEN = "hidden seed"  # inputs that only the holder of the secret knows
STATEMENT = "statement"  # what a record says of a comparison in words, beside its numbers
Json = Mapping[str, Any]


@dataclass(frozen=True)
class Flag:
    """Something about a candidate that a number does not show. `cheat` makes it not correct; `case`
    is the one that showed it, if a single one did.
    """

    name: str
    text: str
    cheat: bool = False
    case: str = ""


@dataclass(frozen=True)
class CaseResult:
    """One run of a candidate.

    `inputs` says which: a seed, "hidden", or a family. `outputs` are comparisons, as `nki-run
    --json` has them, with the output's type; `problem` says why there are none.
    """

    case: str
    inputs: str
    passed: bool
    outputs: Sequence[Json] = ()
    problem: str = ""
    time_ns: float | None = None

    @property
    def words(self) -> str:
        """The result in words: how it compares with the reference."""
        if self.problem:
            return self.problem.partition("\n")[0]
        worst = [output for output in self.outputs if not output["passed"]]
        if not worst:
            return "same as the reference"
        first = worst[0]
        for key, words in (("l2", "relative L2 error"), ("cosine", "cosine with what is expected")):
            if first.get(key) is not None and not first["failures"]:
                return f"{first['name']}: its {words} is {first[key]:.8g}"
        text = f"{first['name']}: {first['failures']:,} of {first['elements']:,} elements differ"
        if (point := first.get("worst")) is not None:
            got, expected = (  # JSON has no infinity and no NaN
                "not finite" if point[key] is None else f"{point[key]:.6g}"
                for key in ("got", "expected")
            )
            text += f", at worst {got} instead of {expected}"
        return text


@dataclass(frozen=True)
class Evaluation:
    """The evaluation of a candidate on a task.

    `compiled`: all cases compile. `runnable`: all cases ran. `correct`: it ran, every comparison of
    the cases and of the required families passed, and no flag is a cheat. `families` are the
    comparisons on unusual inputs. `domain`: from which size of inputs on candidate and reference
    part, each with a `text`; None if that was not asked, or not found out. `proof`: up to which
    size it is proven to stay finite, likewise. `time_ns` is the sum of the times of the cases;
    `trust` the likely error of the one analysed, with its `sensitivity`: by figure, the changes of
    its time at both ends of the figure's likely error, and that error. `narrowest` is the narrowest
    float type on a path to each output, `sbuf_bytes` the most SBUF that a case reserves. `ended`
    says whether "time" or "memory" ended the candidate's process, or the "process" itself;
    `failed_on` on which `case` and `inputs` the `problem` arose, which are empty while it compiles.
    `report`, `metrics`, `verdict` and `what_if` describe the case `analysed`, the longest that is
    not hidden: the report of `nki-run --json`, whose `verdict` is the analysis of the time as data,
    the metrics of the vendor's profiler under its names, and the analysis as text. `mib` is the
    most memory that the candidate's process held; None if that is not known.
    """

    candidate: str
    candidate_sha256: str
    task: str
    task_sha256: str
    nkic: str
    compiled: bool = False
    runnable: bool = False
    correct: bool = False
    cases: Sequence[CaseResult] = ()
    families: Sequence[CaseResult] = ()
    domain: Sequence[Json] | None = None
    proof: Json | None = None
    flags: Sequence[Flag] = ()
    time_ns: float | None = None
    trust: Json = field(default_factory=dict)
    instructions: Mapping[str, int] = field(default_factory=dict)
    narrowest: Mapping[str, str] = field(default_factory=dict)
    sbuf_bytes: int = 0
    artifacts: Mapping[str, str] = field(default_factory=dict)
    report: Json = field(default_factory=dict)
    metrics: Json = field(default_factory=dict)
    verdict: Sequence[str] = ()
    what_if: Sequence[Json] = ()
    analysed: str = ""
    problem: str = ""
    ended: str = ""
    failed_on: Mapping[str, str] = field(default_factory=dict)
    diagnostics: Sequence[Json] = ()
    warnings: Sequence[Json] = ()
    seconds: float = field(default=0.0, compare=False)
    mib: float | None = field(default=None, compare=False)

    @property
    def status(self) -> str:
        if self.correct:
            return "correct"
        if any(flag.cheat for flag in self.flags):
            return "cheat"
        if self.runnable:
            return "wrong"
        if self.compiled:
            return "fails" if self.problem else "compiled"
        return "refused"

    @property
    def reason(self) -> str:
        """Why it is not correct, in one line; empty if it is."""
        if self.correct:
            return ""
        cheats = [flag.text for flag in self.flags if flag.cheat]
        results = (*self.cases, *self.families)  # of the families, those required are first
        wrong = [f"{r.case} ({r.inputs}): {r.words}" for r in results if not r.passed]
        lines = self.problem.splitlines()  # warnings may come before the error
        found = [line for line in lines if ": error[" in line] or lines[:1]
        return (cheats or found or wrong or [""])[0]

    def shown(self, cases: Collection[str]) -> Evaluation:
        """Return what an author may see who knows these cases and their seeds, and no others.

        It has what is known of each case; of the others, only that it is wrong there, or fails.
        """

        def known(case: str, inputs: str = "") -> bool:
            return case in cases and inputs != HIDDEN

        ran = tuple(r for r in self.cases if known(r.case, r.inputs))
        artifacts = {case: each for case, each in self.artifacts.items() if known(case)}
        stops_here = not self.failed_on or known(**self.failed_on)
        if (len(ran), len(artifacts)) == (len(self.cases), len(self.artifacts)) and stops_here:
            return self
        told = ["problem", "ended", "failed_on", "diagnostics"] if stops_here else []
        if known(self.analysed):
            told += ["analysed", "report", "metrics", "verdict", "what_if", "trust"]
        last = {result.case: result.time_ns for result in ran}
        times = [time for case in cases if (time := last.get(case)) is not None]
        found = Evaluation(  # a field that is not named here is not shown
            *(self.candidate, self.candidate_sha256, self.task, self.task_sha256, self.nkic),
            compiled=self.compiled or (bool(artifacts) and {*cases} <= {*artifacts}),
            runnable=self.runnable,
            correct=self.correct,
            cases=ran,
            families=tuple(result for result in self.families if known(result.case)),
            flags=tuple(
                flag
                if not flag.case or known(flag.case)
                else Flag(flag.name, f"`{flag.name}`, though not on what is shown", flag.cheat)
                for flag in self.flags
            ),
            time_ns=sum(times) if times and len(times) == len(cases) else None,
            artifacts=artifacts,
            **{name: getattr(self, name) for name in told},
        )
        if found.problem or not self.reason:
            return found
        does = "fails" if self.problem else "is wrong"
        return replace(found, problem=found.reason or f"it {does}, though not on what is shown")

    def record(self, host: bool = False) -> dict[str, Any]:
        """Return the evaluation as JSON data; `host` adds what it cost here."""
        record = {"schema": SCHEMA, "status": self.status, **asdict(self)}
        for name in ("cases", "families"):
            results: Sequence[CaseResult] = getattr(self, name)
            record[name] = [{**asdict(result), STATEMENT: result.words} for result in results]
        seconds, mib = record.pop("seconds"), record.pop("mib")
        return {**record, "host": {"seconds": round(seconds, 3), "mib": mib}} if host else record

    @classmethod
    def from_record(cls, record: Json) -> Evaluation:
        """Return the evaluation of a record, which has the same JSON.

        Raises `ValueError` for what is no record of this schema.
        """
        if record.get("schema") != SCHEMA:
            raise ValueError(f"the schema is {record.get('schema')!r}, not {SCHEMA}")
        known = {f.name: record[f.name] for f in fields(cls) if f.name in record}
        try:
            for name, kind in (("cases", CaseResult), ("families", CaseResult), ("flags", Flag)):
                given = ({k: v for k, v in e.items() if k != STATEMENT} for e in record[name])
                known[name] = tuple(kind(**each) for each in given)
            if known.get("domain") is not None:
                known["domain"] = tuple(known["domain"])
            host = record.get("host", {})
            return cls(**known, seconds=host.get("seconds", 0.0), mib=host.get("mib"))
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"it is no evaluation: {error}") from None

    def json(self, host: bool = False) -> str:
        """Return the evaluation as one line of strict JSON."""
        return json.dumps(self.record(host), allow_nan=False, ensure_ascii=True, sort_keys=True)


# ------------------------------------------------------------------------------------------------
# The order of candidates, as far as the clock lets it be told: each place is a band.

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
