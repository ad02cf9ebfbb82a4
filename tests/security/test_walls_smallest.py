"""Every limit at small values, through every door: a diagnostic says what ended, and where."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkic
from nkic.base import limits as table
from nkic.base.diagnostics import UsageFailed
from nkic.base.source import SourceFile
from nkic.judge.judge import Candidate, Judge
from nkic.judge.reference import Reference
from nkic.judge.task import read_task
from tests.api import kernels as k
from tests.harness.commands import ROOT

KERNEL = """
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def kernel(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=a)
    for i in range(2):
        nisa.activation(dst=t, op=nl.exp, data=t)
    print(f"{10 ** i:>3}")
    nisa.dma_copy(dst=out, src=t)
    return out
"""
BETA1 = """
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

@nki.jit
def kernel(a):
    return nl.exp(nl.load(a)) * 2.0
"""
A = np.ones((128, 64), np.float32)
EVALUATION = [n for n, row in table.of("nkic").items() if row.number is None] + ["memory"]
# Beyond the second number, steps suffice; in between, the budget ends in each part of the work.
STEPS = [*range(1, 130, 4), *range(130, 1200, 17)]


def of_text(text: str) -> Callable[..., object]:
    return lambda **limits: nkic.compile(
        SourceFile("k.py", text), inputs={"a": "f32[128,64]"}, limits=limits
    )


DOORS: dict[str, Callable[..., object]] = {
    "a text": of_text(KERNEL),
    "a text of Beta 1": of_text(BETA1),
    "compile": lambda **limits: nkic.compile(
        k.scaled, inputs={"x": A}, consts={"factor": 2.0}, evaluate="closed", limits=limits
    ),
    "call": lambda **limits: nkic.call(k.scaled, (A, 2.0), evaluate="closed", limits=limits),
}
CODES = {"runaway", "out-of-memory", "too-large", "too-deep"}


def ends_in_a_diagnostic(call: Callable[[], object]) -> bool:
    """Whether a call is refused; then by one of the limits, at a place."""
    try:
        call()
    except nkic.CompileError as error:
        (found,) = error.diagnostics
        assert found.code.slug in CODES and found.primary is not None, error
        return True
    return False


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", EVALUATION)
def test_an_evaluation_ends_at_its_limit(name: str, door: str) -> None:
    refused = [ends_in_a_diagnostic(partial(DOORS[door], **{name: n})) for n in (1, 2, 3)]
    assert all(refused) or name in ("length", "bits", "width", "depth")


@pytest.mark.parametrize("door", ["a text", "a text of Beta 1"])
def test_steps_may_end_anywhere(door: str) -> None:
    refused = [ends_in_a_diagnostic(partial(DOORS[door], steps=n)) for n in STEPS]
    assert refused == sorted(refused, reverse=True)  # more steps never do less
    assert refused[0] and not refused[-1]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"max_cycles": 1}, "cycle-limit"),
        ({"max_memory": 1}, "memory-limit"),
        ({"limits": {"memory": 1}}, "memory-limit"),
        ({"timeout": 1e-9}, "time-limit"),
    ],
)
def test_a_run_ends_at_its_limit(options: dict[str, Any], code: str) -> None:
    artifact = nkic.compile(k.scaled, inputs={"x": A}, consts={"factor": 2.0})
    with pytest.raises(nkic.RunError) as caught:
        nkic.run(artifact, {"x": A}, **options)
    assert [d.code.slug for d in caught.value.diagnostics] == [code]
    if "limits" not in options:
        with pytest.raises(nkic.RunError):
            nkic.call(k.scaled, (A, 2.0), **options)


# Forks a process for each limit at its least value, and prints its exit code and last words.
EACH = """
import json, os, sys
from nkic import cli
from nkic.base import limits
import nkic.cli.nkic, nkic.cli.nki_run, nkic.compiler.pipeline, nkic.simulate.machine

tool, *words = sys.argv[1:]
start = cli.start_nkic if tool == "nkic" else cli.start_nki_run
found = {}
for name, row in limits.of(tool).items():
    least = {"memory": limits.LEAST_MEMORY, "time": 0.000001}.get(name, row.minimum)
    said, into = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(into, 1)
        os.dup2(into, 2)
        sys.argv = [tool, *words, "--limit", f"{name}={least:f}".removesuffix(".000000")]
        os._exit(start())
    os.close(into)
    with open(said) as stream:
        text = stream.read()
    found[name] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text
print(json.dumps(found))
"""


@pytest.mark.slow  # 22 commands, of which test_walls_limits tries most, each once
@pytest.mark.parametrize(
    ("tool", "words", "codes"),
    [
        ("nkic", ["k.py", "--arg", "a=f32[128,64]", "-o", "x.neff"], {0, 1, 6}),
        ("nki-run", ["k.neff", "--fill", "zeros", "-o", "output_0=@x.npy"], {0, 6}),
    ],
)
def test_commands_end_at_each_limit(
    tool: str, words: list[str], codes: set[int], tmp_path: Path
) -> None:
    (tmp_path / "k.py").write_text(KERNEL)
    of_text(KERNEL)().save(tmp_path / "k.neff")  # type: ignore[attr-defined]
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "NKIC_CACHE": "0"}
    script = [sys.executable, "-c", EACH, tool, *words]
    ran = subprocess.run(script, cwd=tmp_path, env=environ, capture_output=True, text=True)
    found = json.loads(ran.stdout.splitlines()[-1])
    assert set(found) == set(table.of(tool))
    for name, (code, said) in found.items():
        assert code in codes and "internal error" not in said and "Traceback" not in said, name
        assert (code == 0) is ("error[" not in said), (name, said)
    assert sum(code != 0 for code, _ in found.values()) > 3


TASK = """
[reference]
REFERENCE
[outputs]
rtol = 1e-3
[limits]
LIMIT
[[case]]
name = "a"
inputs = { a = "f32[128,64]" }
"""


def judged(folder: Path, reference: str, limit: str) -> Any:
    (folder / "reference.py").write_text("import numpy\nf = lambda a: numpy.exp(numpy.exp(a))\n")
    task = TASK.replace("REFERENCE", reference).replace("LIMIT", limit)
    (folder / "task.toml").write_text(task)
    judge = Judge(read_task(folder / "task.toml"), sensitivity=False)
    return judge.evaluate(Candidate.of_text(KERNEL))


@pytest.mark.parametrize(("limit", "ended"), [("seconds = 1e-6", "time"), ("memory = 1", "memory")])
def test_a_candidate_ends_at_its_limit(limit: str, ended: str, tmp_path: Path) -> None:
    found = judged(tmp_path, 'function = "reference.py:f"', limit)
    assert (found.ended, found.correct) == (ended, False)
    assert "the task allows" in found.reason and not found.flags


def test_a_reference_ends_at_its_limit(tmp_path: Path) -> None:
    slow = KERNEL.replace("    print(", "    for _ in range(10 ** 6): sum(range(1000))\n    print(")
    (tmp_path / "slow.py").write_text(slow)
    text = TASK.replace("REFERENCE", 'kernel = "slow.py:kernel"').replace("LIMIT", "seconds = 0.7")
    (tmp_path / "task.toml").write_text(text)
    task = read_task(tmp_path / "task.toml")  # judged, the candidate might end first
    with pytest.raises(UsageFailed, match=r"\[reference\] kernel: it takes more than the 0.7 s"):
        Reference(task).expected(task.cases[0], 0, None)
