"""The adapters of samples/integrations on the public repositories that they are for.

A repository is fetched by whoever runs this; an environment variable says where it is.
"""

from __future__ import annotations

import ast
import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nkic.judge import Candidate, Judge, read_task
from tests.integrations.test_adapters import FOLDER

pytestmark = pytest.mark.slow  # kernels of full size: minutes
AUTOTUNE = """
import json
import sys
from autotune.runner.api import profile
from autotune.runner.types import KernelJob

if __name__ == "__main__":
    sources = json.load(sys.stdin)
    specs = {name: ((2048, 2048), "bfloat16") for name in ("lhs_T", "rhs")}
    jobs = {f"{n}.py": KernelJob(s, n, (2048, 2048), specs) for n, s in sources.items()}
    found = profile(jobs, "", 0, "trn2", False).results
    times = [(result.profiler_summary or {}).get("total_time") for result in found]
    print(json.dumps([[result.hardware_output for result in found], times]))
"""
AUTOCOMP = """
import json
from pathlib import Path
from types import SimpleNamespace
from eval_backend import NkicEvalBackend

if __name__ == "__main__":
    code = Path("sols/trn-advanced-nki2/3_rope_ref.py").read_text()
    codes = [code, code.replace("nl.subtract", "nl.add")]
    prob = SimpleNamespace(test_file="harnesses/trn-advanced-nki2/3_rope_test.py")
    print(json.dumps(NkicEvalBackend().evaluate_code(prob, codes, "trn")))
"""


def checkout(variable: str, repository: str) -> Path:
    """Return the folder of a repository, or skip the test."""
    folder = os.environ.get(variable)
    if not folder:
        pytest.skip(f"set {variable} to a checkout of github.com/{repository}")
    return Path(folder).resolve()


def python(*words: str | Path, folders: list[Path], **options: str) -> str:
    places = {**options, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    given = places.pop("given", None)
    where = places.pop("where", None)
    command = [sys.executable, *map(str, words)]
    environment = os.environ | places
    done = subprocess.run(
        command, env=environment, input=given, cwd=where, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_kda() -> None:
    kda = checkout("NKIC_KDA", "Jerry2423/kda-for-trainium")
    bench = checkout("NKIC_ACCELOPT", "zhang677/AccelOpt") / "NKIBench"
    verify, best = FOLDER / "kda" / "verify.py", kda / "workspaces" / "silu" / "runs" / "silu_v1.py"
    places = {"KDA_ROOT": str(kda), "NKIBENCH_ROOT": str(bench)}
    said = python(verify, "--op", "silu", "--candidate", best, "--fast", folders=[], **places)
    assert said.startswith("PASS silu[case=2]")


def test_accelopt(tmp_path: Path) -> None:
    pytest.importorskip("pandas", reason="sequential_profile.py needs pandas")
    accelopt = checkout("NKIC_ACCELOPT", "zhang677/AccelOpt")
    bench = accelopt / "NKIBench"
    kernel, task = (
        next((bench / folder).glob("mamba_*.py")) for folder in ("kernels", "reference")
    )
    (tmp_path / "candidates.csv").write_text(f"kernel,task\n{kernel},{task}\n")
    python(
        *(accelopt / "scripts" / "sequential_profile.py", "--candidates_path"),
        *(tmp_path / "candidates.csv", "--save_fields_path"),
        *(accelopt / "prompts" / "profile_list.json", "--output_path", tmp_path / "out.csv"),
        *("--nc_id", "0", "--rel_tol", "3e-5"),
        folders=[FOLDER / "accelopt", accelopt],
    )
    (row,) = csv.DictReader((tmp_path / "out.csv").read_text().splitlines())
    found = json.loads(row["profile"])
    assert found["latency"] > 0 and found["hbm_read_bytes"] > 0


def test_autocomp(tmp_path: Path) -> None:
    autocomp = checkout("NKIC_AUTOCOMP", "ucb-bar/autocomp")
    (tmp_path / "script.py").write_text(AUTOCOMP)
    folders = [FOLDER / "autocomp", autocomp]
    right, wrong = json.loads(python(tmp_path / "script.py", folders=folders, where=str(autocomp)))
    assert right["correct"] and right["latency"] > 0
    assert not wrong["correct"] and "elements differ" in wrong["stderr"]


def test_nki_autotune(tmp_path: Path) -> None:
    """The ladder of kernel_transforms.py: what fits into PSUM, and its order."""
    autotune = checkout("NKIC_AUTOTUNE", "awslabs/nki-autotune")
    text = (autotune / "kernel_transforms.py").read_text()
    head = "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n\n@nki.jit\n"
    rungs = {
        node.name: head + (ast.get_source_segment(text, node) or "")
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef) and node.name in ("kernel_0", "kernel_14", "kernel_15")
    }
    (tmp_path / "script.py").write_text(AUTOTUNE)
    folders = [FOLDER / "nki_autotune", autotune / "autotune" / "src"]
    said = python(tmp_path / "script.py", folders=folders, given=json.dumps(rungs))
    outputs, (_, slower, faster) = json.loads(said)
    assert "no room for `psum_acc` in PSUM" in outputs[0]
    assert slower > faster > 0


def test_walks_of_nki_autotune(tmp_path: Path) -> None:
    """Kernels of its KernelMDP: the same ones from the same seed, and a task that judges them."""
    pytest.importorskip("networkx", reason="nki-autotune needs networkx")
    autotune = checkout("NKIC_AUTOTUNE", "awslabs/nki-autotune")
    script, folders = FOLDER / "nki_autotune" / "walk.py", [autotune / "nkigym" / "src"]
    for folder in ("once", "again"):
        python(script, tmp_path / folder, "12", "3", folders=folders)
    found, again = (sorted((tmp_path / n / "candidates").iterdir()) for n in ("once", "again"))
    assert [path.read_text() for path in found] == [path.read_text() for path in again]
    judge = Judge(read_task(tmp_path / "once" / "task.toml"), families=False)
    assert [judge.evaluate(Candidate.read(path)).correct for path in found[::4]] == [True] * 3
