"""What a tuning found: the ranked points, the front of time and SBUF, and why others fail."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from nkic.base.text import aligned, clean, plural, size
from nkic.judge import Placed, placed
from nkic.tuning.outcome import Outcome
from nkic.tuning.picture import Dot, svg
from nkic.tuning.space import OPTIMISE, Space, label

SCHEMA = 1
SHOWN = 20  # rows of the table


def front(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the points than which none is both faster and smaller, the fastest first."""
    found: list[Outcome] = []
    for outcome in sorted(outcomes, key=lambda o: o.cost):
        if not found or outcome.cost[1] < found[-1].cost[1]:
            found.append(outcome)
    return found


@dataclass(frozen=True)
class Tuned:
    """The result of a tuning. `over` says that its time was over before its end."""

    space: Space
    outcomes: Sequence[Outcome]
    over: bool = False

    @property
    def correct(self) -> list[Outcome]:
        """The points that were run and are right, the fastest first, then the smallest."""
        return sorted((o for o in self.outcomes if o.correct), key=lambda o: o.cost)

    @cached_property
    def distinct(self) -> dict[tuple[str, ...], list[Outcome]]:
        """The correct points by the programs that they compile to, the fastest first."""
        found: dict[tuple[str, ...], list[Outcome]] = {}
        for outcome in self.correct:
            found.setdefault(outcome.program, []).append(outcome)
        return found

    @property
    def best(self) -> Outcome | None:
        """The fastest point of those that were compared with the reference; None without one."""
        return next(iter(self.correct), None)

    @property
    def front(self) -> list[Outcome]:
        """The correct points than which no correct one is both faster and smaller."""
        return front(self.correct)

    @property
    def text(self) -> str:
        """The kernel's text with the best choices; as it is without a best point."""
        return self.space.text(self.best.point) if self.best else self.space.source.text

    @property
    def svg(self) -> str:
        """A picture of time and SBUF of all points that compile."""
        best, edge = self.best, {o.label for o in self.front}
        dots = [
            Dot(o.label, o.status, o.us, o.cost[1], o.label in edge, o is best)
            for o in self.outcomes
            if o.evaluation.time_ns is not None
        ]
        return svg(f"{self.space.source.path}: {self.counts}", dots)

    @cached_property
    def places(self) -> dict[tuple[str, ...], Placed]:
        """The places of the correct programs: each is a band."""
        found = placed([group[0].evaluation for group in self.distinct.values()])
        by_program = {tuple(p.evaluation.artifacts.values()): p for p in found}
        return {program: by_program[program] for program in self.distinct}

    @property
    def counts(self) -> str:
        """How many points there are, and what became of them."""
        by_status: dict[str, int] = defaultdict(int)
        for outcome in self.outcomes:
            by_status[outcome.status] += 1
        names = {"compiled": "estimated alone"}
        told = [f"{n:,} {names.get(name, name)}" for name, n in sorted(by_status.items())]
        untried = self.space.size - len(self.outcomes)
        told += [f"{untried:,} not tried"] if untried else []
        return f"{plural(self.space.size, 'point')}: {', '.join(told)}"

    @property
    def table(self) -> str:
        """Everything for a terminal."""
        parts = [aligned([*self._rows()], right=(2, 3))] if self.correct else []
        failures = [*self._failures()]
        parts += [aligned(failures, right=(0,))] if failures else []
        parts += [f"{line}\n" for line in (self.counts, *self._remarks())]
        return "".join(parts)

    def _rows(self) -> Iterator[tuple[str, ...]]:
        yield "place", "point", "us", "SBUF", ""
        edge, present = {o.label for o in self.front}, label(self.space.present)
        for group in islice(self.distinct.values(), SHOWN):
            outcome, names = group[0], {o.label for o in group}
            place = self.places[outcome.program]
            words = ["the best"] if outcome is self.best else []
            if place.worth_a_device and outcome is not self.best:
                words.append("not distinguishable from the best")
            words += ["on the front"] if names & edge else []
            words += ["as the file is"] if present in names else []
            words += [f"the same program as {plural(len(group) - 1, 'other')}"] * (len(group) > 1)
            reserved = size(outcome.evaluation.sbuf_bytes)
            yield place.words, outcome.label, f"{outcome.us:,.2f}", reserved, "; ".join(words)

    def _failures(self) -> Iterator[tuple[str, ...]]:
        """Yield the reasons why points fail: how many points, and what the first of them says."""
        for (status, code, _), group in self.failures.items():
            example = f"{clean(group[0].reason[1])} ({group[0].label})"
            yield plural(len(group), "point"), status, code, example

    @cached_property
    def failures(self) -> dict[tuple[str, str, str], list[Outcome]]:
        """The points that fail by reason, the most frequent first: status, code, and message
        without its numbers.
        """
        kinds: dict[tuple[str, str, str], list[Outcome]] = defaultdict(list)
        for outcome in self.outcomes:
            if not outcome.open:
                kinds[outcome.kind].append(outcome)
        return dict(sorted(kinds.items(), key=lambda pair: (-len(pair[1]), pair[0])))

    def _remarks(self) -> Iterator[str]:
        """Yield what a person must know to use the result."""
        if self.best is None:
            yield "no point was compared with the reference and is right"
        elif self.best.point.get(OPTIMISE, "1") != "1":
            level = self.best.point[OPTIMISE]
            yield f"the best is compiled with -O {level}: write `optimise = {level}` into the task"
        if self.over:
            yield "the time of --budget is over; with --results FILE a tuning continues"
        for choice in self.space.choices:
            programs = defaultdict(set)
            for o in self.outcomes:
                if o.evaluation.time_ns is not None:
                    others = tuple(v for name, v in o.point.items() if name != choice.name)
                    programs[others].add((o.point[choice.name], o.program))
            several = [found for found in programs.values() if len(found) > 1]
            if several and all(len({program for _, program in found}) == 1 for found in several):
                yield f"`{choice.name}` changes nothing: the compiled programs are equal"

    def jsonl(self) -> str:
        """Every point as a line of JSON: the correct ones first, by place."""
        edge = {o.label for o in self.front}
        others = [outcome for outcome in self.outcomes if not outcome.correct]
        return "".join(self._line(o, o.label in edge) for o in [*self.correct, *others])

    def _line(self, outcome: Outcome, on_front: bool) -> str:
        place, (code, reason) = self.places.get(outcome.program), outcome.reason
        found = outcome.evaluation
        record = {
            "schema": SCHEMA,
            "point": outcome.point,
            "status": outcome.status,
            "code": code,
            "reason": reason,
            "time_ns": found.time_ns,
            "sbuf_bytes": found.sbuf_bytes,
            "candidate_sha256": found.candidate_sha256,
            "artifacts": found.artifacts,
            "front": on_front,
            "place": [place.best, place.worst] if place and outcome.correct else None,
            "worth_a_device": bool(place and outcome.correct and place.worth_a_device),
        }
        return json.dumps(record, allow_nan=False, sort_keys=True) + "\n"
