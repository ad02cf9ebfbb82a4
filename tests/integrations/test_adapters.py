"""The adapters of samples/integrations, on small stand-ins for what they adapt nkic to."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from email.message import Message
from io import BytesIO
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast
from urllib.error import HTTPError
from urllib.request import Request

import pytest
from starlette.testclient import TestClient

from nkic.judge import Candidate, Judge, LocalPool, read_task
from nkic.serve.app import Service
from nkic.serve.limits import Limits

FOLDER = Path(__file__).parents[2] / "samples" / "integrations"
REFERENCE = """
import numpy as np

def get_inputs():
    return [np.random.normal(size=(256, 64)).astype(np.float32), 2.0]

def forward(x, k):
    return x * np.float32(k)

def transform_to_nki_inputs(inputs):
    return [inputs[0].reshape(2, 128, 64), inputs[1]]
"""
KERNEL = """
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def kernel(v1, k):
    out = nl.ndarray((2, 128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    for i in range(2):
        nl.store(out[i], nl.multiply(nl.load(v1[i]), k))
    return out
"""
WRONG = KERNEL.replace("k))", "k * 1.001))")
KDA = """
import json
from types import SimpleNamespace

PILOT_OPS = ["twice"]
_NKI_IMPORT_PREAMBLE = "import numpy as np"

def load_summary(root):
    return ["twice"]

def resolve_case(root, op, case_id, candidate):
    path = candidate or root / "kernel.py"
    about = {
        "initial_code": (root / "reference.py").read_text(),
        "multi_seed_seeds": [0, 21],
        "tolerance": {"rtol": 2e-5},
    }
    return SimpleNamespace(
        op=op, case_id="1", name="twice[case=1]", kernel_path=path,
        kernel_src=path.read_text, profile_kwargs=lambda: about,
    )
"""
HARNESS = """
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl
import torch
from torch_xla.core import xla_model as xm

@nki.jit
def ref(x, k):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.multiply(nl.load(x), k))
    return out

def test_nki(ref_func, test_func):
    device = xm.xla_device()
    for k in (2, 3):
        x = torch.from_numpy(np.random.rand(128, 8).astype(np.float32)).to(device=device)
        a, b = ref_func(x, k), test_func(x, k)
        a, b = a.detach().cpu().numpy(), b.detach().cpu().numpy()
        if not np.allclose(a, b, atol=1e-4, rtol=1e-2):
            return False
    return True

if __name__ == "__main__":
    test_result = test_nki(ref, solution)
"""
SOLUTION = """
@nki.jit
def solution(x, factor):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.multiply(nl.load(x), factor))
    return out
"""
TYPES = """
from typing import NamedTuple

class KernelJob(NamedTuple):
    source: str
    func_name: str
    output_shape: tuple
    input_specs: dict
    neuronx_cc_args: tuple = ()
    lnc: int = 1

class ProfileResult(NamedTuple):
    kernel_name: str
    hardware_output: str
    profiler_summary: dict | None = None
    profile_detailed: dict | None = None
"""
Load = Callable[[str, str], ModuleType]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Return a function that imports a module of an adapter as its users do."""
    before = {*sys.modules}

    def load(folder: str, name: str) -> ModuleType:
        monkeypatch.syspath_prepend(FOLDER / folder)
        return importlib.import_module(name)

    yield load
    for name in {*sys.modules} - before:
        if str(FOLDER) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def test_kda_verify(
    tmp_path: Path,
    load: Load,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "adapter").mkdir()
    (tmp_path / "adapter" / "nkibench_case.py").write_text(KDA)
    (tmp_path / "reference.py").write_text(REFERENCE)
    (tmp_path / "kernel.py").write_text(KERNEL)
    (tmp_path / "wrong.py").write_text(WRONG)
    monkeypatch.setenv("KDA_ROOT", str(tmp_path))
    monkeypatch.setenv("NKIBENCH_ROOT", str(tmp_path))
    monkeypatch.setattr(sys, "path", [*sys.path])
    module = load("kda", "verify")

    def verify(*words: str) -> tuple[int, list[str]]:
        monkeypatch.setattr(sys, "argv", ["verify.py", *words])
        return module.main(), capsys.readouterr().out.splitlines()

    code, lines = verify("--build-baselines", "--fast")
    assert code == 0 and lines[0].startswith("PASS twice[case=1] 0.0")
    assert lines[0].endswith("1.000x") and lines[1] == "geomean speedup 1.000x"
    assert '"baseline_latency_ms": 0.0' in (tmp_path / "baselines.json").read_text()
    wrong = str(tmp_path / "wrong.py")
    code, lines = verify("--op", "twice", "--candidate", wrong, "--fast")
    assert code == 1 and lines[0].startswith("FAIL twice[case=1] case0 (seed 0): output_0: its rel")
    for name in ("adapter", "adapter.nkibench_case"):
        sys.modules.pop(name)


def test_accelopt_profile(tmp_path: Path, load: Load) -> None:
    wrapper = load("accelopt", "accelopt.kernel_wrapper")
    (tmp_path / "reference.py").write_text(REFERENCE)
    (tmp_path / "kernel.py").write_text(KERNEL)
    (tmp_path / "wrong.py").write_text(WRONG)
    reference = str(tmp_path / "reference.py")
    found = wrapper.NKIKernel(str(tmp_path / "kernel.py"), reference).profile(["hbm_read_bytes"])
    assert (found.compiled, found.correct, found.runnable) == (True, True, True)
    assert found.metadata["hbm_read_bytes"] == 256 * 64 * 4
    assert found.metadata["latency"] == found.metadata["min_ms"] > 0
    found = wrapper.NKIKernel(str(tmp_path / "wrong.py"), reference).profile()
    assert (found.compiled, found.correct, found.runnable) == (True, False, True)
    assert "correctness_error" in found.metadata and "latency" not in found.metadata


def test_autocomp_backend(tmp_path: Path, load: Load) -> None:
    backend = load("autocomp", "eval_backend").NkicEvalBackend()
    (tmp_path / "0_test.py").write_text(HARNESS)
    prob: Any = SimpleNamespace(prob_type="trn", prob_id=0, test_file=tmp_path / "0_test.py")
    codes = [SOLUTION, SOLUTION.replace("factor))", "2))"), "def solution(x"]
    right, special, broken = backend.evaluate_code(prob, codes, "trn")
    assert right["correct"] and right["stdout"] == f"Latency: {right['latency']:.3f} ms\n"
    assert not special["correct"] and "case1 (seed 1): output_0: 1,024 of" in special["stderr"]
    assert not broken["correct"] and broken["stderr"]
    assert any("bound by" in line for line in backend.get_hw_feedback(prob, codes[:1])[0])


def test_nki_autotune_pipeline(tmp_path: Path, load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = tmp_path / "autotune" / "runner"
    runner.mkdir(parents=True)
    (tmp_path / "autotune" / "__init__.py").touch()
    (runner / "__init__.py").touch()
    (runner / "types.py").write_text(TYPES)
    monkeypatch.syspath_prepend(tmp_path)
    driver = load("nki_autotune", "autotune.runner.driver")
    specs = {"v1": ((2, 128, 64), "float32")}
    good = driver.KernelJob(KERNEL.replace("v1, k):", "v1, k=2):"), "kernel", (2, 128, 64), specs)
    bad = good._replace(source=KERNEL.replace("range(2)", "range(3)"))
    (ran, failed), logs = driver.run_pipeline({"a.py": good, "b.py": bad}, 0, True, False)
    assert ran.hardware_output == "[2, 128, 64] float32" and ran.profiler_summary["total_time"] > 0
    assert not failed.hardware_output.startswith("[") and failed.profiler_summary is None
    assert logs["b.py"] == failed.hardware_output
    sys.modules.pop("autotune.runner.types")


def test_an_environment(tmp_path: Path, load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "reference.py").write_text("def twice(v1):\n    return v1 * 2\n")
    (tmp_path / "task.toml").write_text(
        "name = 'twice'\nkernels = ['kernel']\nfamilies = []\n"
        "reference = { function = 'reference.py:twice' }\n"
        "case = [{ name = 'secret', hidden = true, inputs = { v1 = 'f32[2,128,96]' } }, "
        "{ name = 'known', inputs = { v1 = 'f32[2,128,64]' } }]\n"
    )
    module = load("environment", "environment")
    tokens = ["a token of some length"]
    with LocalPool() as pool:
        task = read_task(tmp_path / "task.toml")
        service = Service([Judge(task)], pool, tokens, Limits())
        with TestClient(service.app) as client:
            refusals = [429]

            def urlopen(request: Request) -> BytesIO:
                if request.data is not None and refusals:  # no room: asked again
                    headers = Message()
                    headers["Retry-After"] = "0"
                    raise HTTPError(request.full_url, refusals.pop(), "", headers, None)
                how, data = request.get_method(), cast(bytes | None, request.data)
                asked = client.request(how, request.full_url, content=data, headers=request.headers)
                asked.raise_for_status()
                return BytesIO(asked.content)

            monkeypatch.setattr(module, "urlopen", urlopen)
            made = module.KernelEnvironment("http://x", "twice", token=tokens[0], steps=2)
            assert made.reset().text == "Write kernel for the task twice: v1: float32[2,128,64]"
            right = KERNEL.replace("v1, k):", "v1, k=2):").replace("(2, 128, 64)", "v1.shape")
            seen, reward = made.step(right)
            assert reward == 1.0 and seen.text.startswith("correct\nbound by") and not seen.done
            alone = Judge(replace(task, cases=task.cases[1:])).evaluate(Candidate.of_text(right))
            assert seen.metadata == {"time_ns": alone.time_ns}  # the hidden case is no part of it
            assert seen.text.splitlines()[1:][: len(alone.verdict)] == [*alone.verdict]
            seen, reward = made.step(right.replace("k))", "k + 1))"))
            assert reward == pytest.approx(0.2) and seen.text.startswith("wrong") and seen.done
            assert "known (seed 0): " in seen.text and "secret" not in seen.text
            made.baseline_ns = 2 * seen.metadata["time_ns"]
            assert made.step(right)[1] == pytest.approx(2.0, rel=0.01)
            assert made.step("def kernel(v1):\n    return 1\n")[1] == 0.0
            special = right.replace("v1, k=2):\n", "v1, k=2):\n    k += v1.shape[2] == 96\n")
            assert made.step(special)[0].text.startswith("cheat\nit is right on the known inputs")
            only = right.replace("v1, k=2):\n", "v1, k=2):\n    assert v1.shape[2] == 64\n")
            assert made.step(only)[0].text == "fails\nit fails, though not on what is shown"


def test_an_adapter_is_short() -> None:
    """At most 60 lines of code each: what an adapter needs beyond that belongs into nkic."""
    for path in FOLDER.rglob("*.py"):
        lines = [line for line in path.read_text().splitlines() if line.strip()]
        assert len(lines) <= 60, path
    assert all(
        (folder / "README.md").exists() for folder in FOLDER.iterdir() if any(folder.glob("*.py"))
    )
