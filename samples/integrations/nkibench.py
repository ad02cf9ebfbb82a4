"""NKIBench's cases as nkic's tasks: what the adapters of KDA and AccelOpt have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nkic.judge import Candidate, Evaluation, Judge, task_of

KERNELS = ("kernel", "optimized_kernel")
# Beside the reference's own functions: its inputs in the kernel's layout, and its outputs.
GLUE = """
from functools import lru_cache

@lru_cache(1)
def nkic_natural(seed):
    np.random.seed(seed)
    return get_inputs()

def nkic_inputs(seed):
    return dict(zip({parameters}, transform_to_nki_inputs(nkic_natural(seed))))

def nkic_expected(seed, **_):
    return forward(*nkic_natural(seed))
"""
TASK = """
name = "{name}"
kernels = {kernels}
reference = {{ function = "reference.py:nkic_expected", inputs = "nkic_inputs" }}
outputs = {{ mode = "l2", max_l2 = {tolerance} }}
limits = {{ seconds = {seconds}, memory = "12GiB" }}
case = [{{ inputs = {{ {inputs} }}, consts = {{ {consts} }}, seeds = {seeds} }}]
"""


def evaluate(
    kernel: str,
    reference: str,
    name: str,
    *,
    seeds: Sequence[int] = (0, 21, 42, 63, 84),
    tolerance: float = 2e-5,
    seconds: float = 900,
    more: str = "",
    **options: Any,
) -> Evaluation:
    """Evaluate a kernel's text on the inputs and outputs of a reference's text."""
    candidate = Candidate.of_text(kernel, name)
    reference += GLUE.format(parameters=candidate.parameters(*KERNELS))
    exec(reference, module := dict[str, Any](__name__="reference"))
    made = module["nkic_inputs"](seeds[0])
    arrays = {key: value for key, value in made.items() if hasattr(value, "dtype")}
    text = TASK.format(
        name=name,
        kernels=list(KERNELS),
        tolerance=tolerance,
        seconds=seconds,
        inputs=", ".join(f"{key} = '{a.dtype}{[*a.shape]}'" for key, a in arrays.items()),
        consts=", ".join(f"{key} = {made[key]}" for key in made if key not in arrays),
        seeds=list(seeds),
    )
    task = task_of((more + text).encode(), {"reference.py": reference.encode()})
    return Judge(task, **options).evaluate(candidate)
