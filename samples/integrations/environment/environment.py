"""An environment in the manner of OpenEnv and verifiers: kernels are actions, a service judges."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from nkic.judge import Evaluation


@dataclass(frozen=True)
class Observation:
    """What an author sees of a step. Hidden cases are left out."""

    text: str
    reward: float = 0.0
    done: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)


class KernelEnvironment:
    """Episodes of `steps` kernels for a task of the service at `url` (`nkic serve`).

    The reward is 0 for a kernel that does not compile or cheats, 0.1 if it compiles, 0.2 if it
    runs, and 1 or the speedup over `baseline_ns` on what is shown if it is correct everywhere.
    """

    def __init__(
        self, url: str, task: str, *, token: str = "", baseline_ns: float = 0.0, steps: int = 8
    ) -> None:
        self.url, self.name, self.token, self.taken = url, task, token, 0
        self.baseline_ns, self.steps = baseline_ns, steps
        self.task = next(t for t in self._asked("/tasks")["tasks"] if t["name"] == task)

    def reset(self) -> Observation:
        """Begin an episode: the task's inputs and outputs in words."""
        self.taken = 0
        inputs = [f"{n}: {kind}" for c in self.task["cases"] for n, kind in c["inputs"].items()]
        names = " or ".join(self.task["kernels"]) or "a kernel"
        return Observation(f"Write {names} for the task {self.name}: {', '.join(inputs)}")

    def step(self, code: str) -> tuple[Observation, float]:
        """Judge a kernel's text. Asking again is the same evaluation, so a long one is no loss."""
        self.taken += 1
        body = json.dumps({"task": self.name, "candidate": {"text": code}, "wait": 600}).encode()
        while (job := self._asked("/evaluate", body)["evaluations"][0])["evaluation"] is None:
            assert job["state"] != "failed", job["problem"]
        known = [case["name"] for case in self.task["cases"]]
        found = Evaluation.from_record(job["evaluation"]).shown(known)
        lines = [found.status, found.reason, *found.verdict, *(w["text"] for w in found.what_if)]
        text, about = "\n".join(filter(None, lines)), {"time_ns": found.time_ns}
        seen = Observation(text, self.reward(found), self.taken >= self.steps, about)
        return seen, seen.reward

    def reward(self, found: Evaluation) -> float:
        if found.correct:
            return self.baseline_ns / found.time_ns if self.baseline_ns and found.time_ns else 1.0
        return 0.0 if found.status == "cheat" else 0.1 * found.compiled + 0.1 * found.runnable

    def _asked(self, path: str, body: bytes | None = None) -> Any:
        """Ask the service; wait as long as it says if it has no room."""
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"}
        try:
            with urlopen(Request(self.url + path, body, headers)) as answer:
                return json.load(answer)
        except HTTPError as error:
            if error.code != 429:
                raise
            time.sleep(int(error.headers["Retry-After"]))
            return self._asked(path, body)
