"""nki-autotune's `autotune.runner.driver`, with nkic in place of a device.

A job has no reference, so nothing is compared.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from autotune.runner.types import KernelJob, ProfileResult

from nkic.judge import Candidate, Evaluation, Judge, task_of

TASK = """
kernels = ["{job.func_name}"]
reference = {{ function = "reference.py:expected" }}
outputs = {{ mode = "skip" }}
case = [{{ inputs = {{ {inputs} }}, lnc = {job.lnc}, seeds = [{seed}] }}]
"""
EXPECTED = "def expected(**_):\n    return __import__('numpy').zeros({job.output_shape})\n"


def evaluate(name: str, job: KernelJob, seed: int) -> Evaluation:
    """Compile, run and profile a job's kernel."""
    kinds = {key: f"{dtype}{[*shape]}" for key, (shape, dtype) in job.input_specs.items()}
    inputs = ", ".join(f"{key} = '{kind}'" for key, kind in kinds.items())
    task = TASK.format(job=job, seed=seed, inputs=inputs).encode()
    reference = EXPECTED.format(job=job).encode()
    judge = Judge(task_of(task, {"reference.py": reference}), families=False, orders=0, sensitivity=False)
    return judge.evaluate(Candidate.of_text(job.source, name))


def run_pipeline(
    kernels: Mapping[str, KernelJob],
    seed: int,
    collect_compiler_logs: bool,
    collect_detailed_profile: bool,
) -> tuple[list[ProfileResult], dict[str, str]]:
    """Profile kernels: results, and what the compiler says about each."""
    results, logs = [], dict[str, str]()
    for name, job in kernels.items():
        found = evaluate(name, job, seed)
        dtype = next(iter(job.input_specs.values()))[1]
        said = f"{list(job.output_shape)} {dtype}" if found.correct else found.problem
        summary = dict(found.metrics) if found.correct else None
        detailed = dict(found.report) if collect_detailed_profile and found.correct else None
        results.append(ProfileResult(name, said or found.reason, summary, detailed))
        warnings = "".join(json.dumps(warning) + "\n" for warning in found.warnings)
        logs |= {name: found.problem or warnings} if collect_compiler_logs else {}
    return results, logs
