"""Grade kernels of the course: `python course/grade.py [EXERCISE [FILE ...]]`.

The judge of nkic (docs/evaluate.md) finds what is right and how fast it is; this counts points.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from nkic.base.diagnostics import UsageFailed
from nkic.base.text import clean
from nkic.judge import Candidate, Case, CaseResult, Evaluation, Judge, read_task

COURSE = Path(__file__).resolve().parent
TIMES = tomllib.loads((COURSE / "times.toml").read_text("utf-8"))  # the reference's, in us
VISIBLE, HIDDEN, TIME = 4, 3, 3  # points
# The time points of a kernel that takes up to so many times as long as the reference.
BANDS = ((1.1, TIME), (1.5, 2), (2.5, 1))
WORTH = 0.02  # share of the time that advice must save


@dataclass(frozen=True)
class Part:
    """The points for one thing, of how many, and why."""

    name: str
    points: int
    most: int
    why: Sequence[str] = ("counts once all above is right",)


@dataclass(frozen=True)
class Grade:
    """A kernel's points, and what to do for more of them."""

    exercise: str
    file: str
    parts: Sequence[Part]
    more: Sequence[str]

    @property
    def points(self) -> int:
        return sum(part.points for part in self.parts)

    def __str__(self) -> str:
        most = sum(part.most for part in self.parts)
        # What a hand-in says, its name included, stays in its line: it imitates no points.
        lines = [f"{self.exercise}: {self.points} of {most} points  ({clean(self.file)})"]
        for part in self.parts:
            first, *more = part.why
            lines.append(f"  {part.name:<8} {part.points} of {part.most}  {clean(first)}")
            lines += [" " * 19 + clean(line) for line in more]
        return "\n".join([*lines, *(f"  {clean(line)}" for line in self.more)])


def grade(folder: Path, file: str) -> Grade:
    """Judge a kernel on an exercise. Raises `UsageFailed` for files that cannot be read."""
    task, candidate = read_task(folder / "task.toml"), Candidate.read(file)
    judge = partial(Judge, families=False, sensitivity=False)
    whole = judge(task)
    found = whole.evaluate(candidate)
    flags = [*found.flags]

    def right(name: str, most: int, hidden: bool) -> Part:
        wrong = {}
        for case in (case for case in whole.cases if case.hidden is hidden):
            alone = found
            if not found.runnable:  # one case stops all: look at each
                alone = judge(replace(task, cases=(case,))).evaluate(candidate)
                flags.extend(alone.flags)
            wrong[case.name] = _complaint(alone, case)
        # `special-cased` is being wrong on hidden cases, which costs their points alone.
        cheats = [flag.text for flag in flags if flag.cheat and flag.name != "special-cased"]
        return _counted(name, most, dict.fromkeys(wrong, cheats[0]) if cheats else wrong)

    parts = [right("visible", VISIBLE, False), Part("hidden", 0, HIDDEN), Part("time", 0, TIME)]
    if parts[0].points == VISIBLE:
        parts[1] = right("hidden", HIDDEN, True)
    page = os.path.relpath(folder / "README.md")
    more = [f"next: fix the first error above; {page} says how to begin"]
    if parts[1].points == HIDDEN:
        parts[2] = _time(folder.name, found)
        more = [] if parts[2].points == TIME else _advice(found)
    return Grade(folder.name, file, parts, more)


def _advice(found: Evaluation) -> list[str]:
    """Return what bounds the time, and the best advice of each kind with what it would save."""
    kinds = dict[str, str]()
    for each in found.what_if:  # the best come first
        if each["advice"] and each["gain"] >= WORTH:
            text = f"{each['text']} ({each['gain']:.0%} less time)"
            kinds.setdefault(each["name"].partition(":")[0], text)
    return [f"improve: {line}" for line in (*found.verdict[:2], *kinds.values())]


def _complaint(found: Evaluation, case: Case) -> str:
    """Return what is wrong with a case, and the compiler's help; empty if it is right."""
    results = [result for result in found.cases if result.case == case.name]
    if results and (found.runnable or not results[-1].passed):
        return next((_differs(result) for result in results if not result.passed), "")
    reason = found.reason or "it was not judged"
    helps = [each["help"] for each in found.diagnostics if each["level"] == "error"]
    return "\n".join([reason, *(f"  help: {help}" for help in helps[:1] if help)])


def _differs(result: CaseResult) -> str:
    """Return how an output is wrong, with its first wrong element."""
    for first in (output["first"] for output in result.outputs if output["first"]):
        numbers = [first[name] for name in ("got", "expected")]  # None: NaN or infinite
        got, expected = ("not finite" if one is None else f"{one:.6g}" for one in numbers)
        return f"{result.words}\n  {first['index']} is {got}, expected {expected}"
    return result.words


def _counted(name: str, most: int, wrong: dict[str, str]) -> Part:
    """Return the points for the cases without a complaint; each complaint is said once. Without
    cases there are none: the sizes of all of them may need a secret.
    """
    said: dict[str, list[str]] = {}
    for case, complaint in wrong.items():
        said.setdefault(complaint or "right", []).append(case)
    told = [f"{'; '.join(cases)}: {complaint}" for complaint, cases in said.items()]
    why = "\n".join(told).splitlines()
    points = most * len(said.get("right", ())) // len(wrong) if wrong else 0
    return Part(name, points, most, why or ["no case was judged"])


def _time(exercise: str, found: Evaluation) -> Part:
    took = (found.time_ns or 0.0) / 1000
    least = TIMES.get(exercise, took)
    points = next((points for ratio, points in BANDS if took <= ratio * least), 0)
    beside = f"the reference takes {least:,.2f} us: {took / least:.2f} times its time"
    return Part("time", points, TIME, [f"{took:,.2f} us; {beside}"])


def main(words: Sequence[str] | None = None) -> int:
    """Grade, print, and return 0 if every kernel has every point, 1 if not, 2 for wrong use."""
    parser = argparse.ArgumentParser(description="grade kernels of the course")
    exercises = sorted(path.parent.name for path in COURSE.glob("*/task.toml"))

    def exercise(path: str) -> str:
        name = Path(path).resolve().name if path else ""  # a shell completes: `course/5_softmax/`
        if name not in exercises:
            text = f"`{clean(path)}` is no exercise; they are {', '.join(exercises)}"
            raise argparse.ArgumentTypeError(text)
        return name

    parser.add_argument(
        "exercise",
        nargs="?",
        metavar="EXERCISE",
        type=exercise,
        help="its name or folder; all, if left out",
    )
    parser.add_argument("file", nargs="*", help="kernels; the exercise's kernel.py, if left out")
    parser.add_argument("--json", action="store_true", help="print a line of JSON for each kernel")
    given = parser.parse_args(words)
    grades = []
    try:
        for name in [given.exercise] if given.exercise else exercises:
            for file in given.file or [os.path.relpath(COURSE / name / "kernel.py")]:
                grades.append(grade(COURSE / name, file))
                found = {**asdict(grades[-1]), "points": grades[-1].points}
                print(json.dumps(found) if given.json else grades[-1], flush=True)
    except UsageFailed as failed:
        print(f"grade.py: {clean(str(failed))}", file=sys.stderr)
        return 2
    points, most = sum(each.points for each in grades), len(grades) * (VISIBLE + HIDDEN + TIME)
    if len(grades) > 1 and not given.json:
        print(f"all: {points} of {most} points")
    return 0 if points == most else 1


if __name__ == "__main__":
    sys.exit(main())
