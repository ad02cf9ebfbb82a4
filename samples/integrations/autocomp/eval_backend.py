"""Autocomp's `EvalBackend` for Trainium, with nkic in place of a device."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from nkic.judge import Candidate, Evaluation, Judge, task_of

GLUE = (Path(__file__).parent / "harness.py").read_text()
IMPORTS = "import numpy as np\nimport nki\nimport nki.isa as nisa\nimport nki.language as nl\n"
TASK = """
target = "{}"
kernels = ["solution"]
reference = {{ function = "harness.py:expected", inputs = "inputs" }}
outputs = {{ atol = {}, rtol = {} }}
limits = {{ seconds = 600, memory = "12GiB" }}
"""


@cache
def evaluate(test: str, code: str) -> Evaluation:
    """Evaluate a candidate's text with the text of a harness."""
    candidate = Candidate.of_text(IMPORTS + code, "solution.py")
    reference = re.findall(r"test_nki\(\s*(\w+)\s*,", test.partition("__main__")[2])[0]
    harness = f"{GLUE}\nTEST = {test!r}\nREFERENCE = {reference!r}\n"
    harness += f"PARAMETERS = {candidate.parameters('solution')}\n"
    exec(harness, module := dict[str, Any](__name__="harness"))
    target = [*re.findall(r'TARGET_OVERRIDE"\] = "(\w+)"', test), "trn2"][0]
    text = TASK.format(target, *re.findall(r"atol=([\d.e-]+), rtol=([\d.e-]+)", test)[0])
    for number in range(len(module["calls"](test))):
        arrays, consts = map(", ".join, module["toml"](number))
        text += f"[[case]]\nseeds = [{number}]\ninputs = {{ {arrays} }}\nconsts = {{ {consts} }}\n"
    task = task_of(text.encode(), {"harness.py": harness.encode()})
    return Judge(task, orders=0, sensitivity=False).evaluate(candidate)


class NkicEvalBackend:
    """A candidate's correctness and latency in ms, and what bounds it, for Autocomp's search."""

    def evaluations(self, prob: Any, codes: list[str]) -> list[Evaluation]:
        """Evaluate candidates of a problem."""
        file = prob.test_file
        if not file:
            from autocomp.common import HARNESSES_DIR

            file = next((HARNESSES_DIR / prob.prob_type).glob(f"{prob.prob_id}_*.py"))
        return [evaluate(Path(file).read_text(), code) for code in codes]

    def evaluate_code(
        self, prob: Any, code_strs: list[str], simulator: str
    ) -> list[dict[str, Any]]:
        """Return what Autocomp's own backend for Trainium does."""
        results = []
        for found in self.evaluations(prob, code_strs):
            latency = round((found.time_ns or 0) / 1e6, 3)
            good = {"latency": latency, "stdout": f"Latency: {latency:.3f} ms\n"}
            result = {"correct": found.correct, "stderr": found.problem or found.reason}
            results.append({"stdout": "", **result, **(good if found.correct else {})})
        return results

    def get_hw_feedback(self, prob: Any, code_strs: list[str]) -> list[list[str]]:
        """Return what bounds the time of each candidate, and what changes would bring."""
        found = self.evaluations(prob, code_strs)
        return [[*one.verdict, *(change["text"] for change in one.what_if)] for one in found]

    def get_backend_specific_rules(self) -> list[str]:
        """Return the rules of this backend for prompts: none."""
        return []
