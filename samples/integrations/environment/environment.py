"""An environment in the manner of OpenEnv and verifiers: kernels are actions, nkic is the judge."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from nkic.judge import Candidate, Evaluation, Judge, read_task


@dataclass(frozen=True)
class Observation:
    """What an author sees of a step. Hidden cases and seeds are left out."""

    text: str
    reward: float = 0.0
    done: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)


class KernelEnvironment:
    """Episodes of kernels for one task.

    The reward is 0 for a kernel that does not compile or cheats, 0.1 if it compiles, 0.2 if it
    runs, and 1 or the speedup over `baseline_ns` if it is correct. An episode ends after `steps`.
    """

    def __init__(
        self, task: str, *, baseline_ns: float | None = None, steps: int = 8, secret: str = ""
    ) -> None:
        self.task, self.baseline_ns, self.steps = read_task(task), baseline_ns, steps
        self.judge, self.taken = Judge(self.task, secret=secret or os.urandom(16)), 0

    def reset(self) -> Observation:
        """Begin an episode: the task's inputs and outputs in words."""
        self.taken = 0
        shown = [case for case in self.task.cases if not case.hidden]
        inputs = [f"{n}: {kind}" for case in shown for n, kind in case.inputs.items()]
        names = " or ".join(self.task.kernels) or "a kernel"
        return Observation(f"Write {names} for the task {self.task.name}: {', '.join(inputs)}")

    def step(self, code: str) -> tuple[Observation, float]:
        """Judge a kernel's text."""
        self.taken += 1
        found = self.judge.evaluate(Candidate.of_text(code))
        reward, done = self.reward(found), self.taken >= self.steps
        lines = [found.status, found.reason, *found.verdict, *(w["text"] for w in found.what_if)]
        known = {"time_ns": found.time_ns, "sha256": found.candidate_sha256}
        text = "\n".join(filter(None, lines))
        return Observation(text, reward, done, known), reward

    def reward(self, found: Evaluation) -> float:
        """Return the reward of an evaluation."""
        if found.correct:
            return self.baseline_ns / found.time_ns if self.baseline_ns and found.time_ns else 1.0
        return 0.0 if found.status == "cheat" else 0.1 * found.compiled + 0.1 * found.runnable
