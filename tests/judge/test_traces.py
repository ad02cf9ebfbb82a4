"""FlashInfer-Bench's definitions, workloads, solutions and traces."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from nkic.base.diagnostics import UsageFailed
from nkic.cli.common import run
from nkic.cli.nkic import command
from nkic.judge import Judge
from nkic.judge.schemas import read_solution, read_suite
from tests.judge.test_cheats import CONSTANT, GOOD

DEFINITION: dict[str, Any] = {
    "name": "softmax",
    "op_type": "softmax",
    "axes": {"rows": {"type": "const", "value": 128}, "columns": {"type": "var"}},
    "inputs": {
        "x": {"shape": ["rows", "columns"], "dtype": "float32"},
        "scale": {"shape": None, "dtype": "float32"},
    },
    "outputs": {"y": {"shape": ["rows", "columns"], "dtype": "float32"}},
    "reference": "import numpy as np\n\ndef run(x, scale):\n"
    "    e = np.exp(x - x.max(axis=1, keepdims=True))\n"
    "    return scale * e / e.sum(axis=1, keepdims=True)\n",
}
INPUTS = {"x": {"type": "random"}, "scale": {"type": "scalar", "value": 1.0}}
WORKLOADS = [
    {"axes": {"columns": columns}, "inputs": INPUTS, "uuid": f"w{columns}"} for columns in (64, 32)
]
KERNEL = GOOD.replace("def k(x)", "def k(x, scale)")


def solution(name: str, text: str) -> dict[str, Any]:
    spec = {"language": "python", "target_hardware": ["trn2"], "entry_point": "main.py::k"}
    sources = [{"path": "main.py", "content": text}]
    return {"name": name, "definition": "softmax", "author": "me", "spec": spec, "sources": sources}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = [
        json.dumps({"definition": "softmax", "workload": w, "solution": None, "evaluation": None})
        for w in WORKLOADS
    ]
    other = json.dumps({"definition": "other", "workload": {"uuid": "x"}})
    Path("workloads.jsonl").write_text("\n".join([*lines, other, ""]))
    Path("definition.json").write_text(json.dumps(DEFINITION))
    wrong = CONSTANT.replace("def k(x)", "def k(x, scale)")
    texts = {"good": KERNEL + "\ndef other(): pass\n", "constant": wrong, "broken": "def k(x"}
    for name, text in texts.items():
        Path(f"{name}.json").write_text(json.dumps(solution(name, text)))
    return tmp_path


def test_solutions_become_traces(folder: Path) -> None:
    words = ["evaluate", "definition.json", "--workloads", "workloads.jsonl", "--no-sensitivity"]
    words += ["good.json", "constant.json", "broken.json", "--traces", "t.jsonl", "-q"]
    assert run(command, "nkic", words) == 1
    traces = [json.loads(line) for line in Path("t.jsonl").read_text().splitlines()]
    assert [(t["solution"], t["workload"]["uuid"], t["evaluation"]["status"]) for t in traces] == [
        ("good", "w64", "PASSED"),
        ("good", "w32", "PASSED"),
        ("constant", "w64", "INCORRECT_NUMERICAL"),
        ("constant", "w32", "INCORRECT_NUMERICAL"),
        ("broken", "w64", "COMPILE_ERROR"),
        ("broken", "w32", "COMPILE_ERROR"),
    ]
    first, _, wrong = (trace["evaluation"] for trace in traces[:3])
    assert 0.001 < first["performance"]["latency_ms"] < 0.1
    assert 0 < first["correctness"]["max_relative_error"] < 1e-3
    assert wrong["performance"] is None and wrong["correctness"]["max_absolute_error"] > 0.01
    assert first["environment"]["hardware"] == "trn2, simulated"
    assert traces[0]["workload"] == WORKLOADS[0]
    assert traces[4]["evaluation"]["correctness"] is None and traces[4]["evaluation"]["log"]


class Tensor:
    """What the reference sees of torch: it fails for anything that is no tensor."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def to(self, dtype: Any) -> Tensor:
        return Tensor(self.array.astype(dtype))

    def float(self) -> Tensor:
        return Tensor(self.array.astype(np.float32))

    def cpu(self) -> Tensor:
        return self

    def numpy(self) -> Any:
        return self.array


def test_a_reference_in_torch_gets_tensors(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch: Any = ModuleType("torch")
    torch.from_numpy, torch.float16, torch.Tensor = Tensor, np.float16, Tensor
    monkeypatch.setitem(sys.modules, "torch", torch)
    text = "import torch\ndef run(x, scale):\n    return {'y': torch.Tensor(x.array * scale)}\n"
    x = {"shape": ["rows", "columns"], "dtype": "float16"}
    inputs = {**DEFINITION["inputs"], "x": x}
    Path("d.json").write_text(json.dumps(DEFINITION | {"reference": text, "inputs": inputs}))
    task = read_suite("d.json", "workloads.jsonl").task
    reference = Judge(task).reference
    expected = reference.expected(task.cases[0], 0, None)
    given = reference.inputs(task.cases[0], 0, None)["x"].astype(np.float64)
    np.testing.assert_array_equal(expected["output_0"], given)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"axes": {"rows": {"type": "const", "value": 128}}}, "no size for axis `columns`"),
        ({"name": "else"}, "no workload is one of `else`"),
        ({"outputs": 3}, "is no definition with workloads"),
        ({"reference": "def"}, "SyntaxError"),
    ],
)
def test_a_wrong_definition_is_refused(change: Any, message: str, folder: Path) -> None:
    Path("definition.json").write_text(json.dumps(DEFINITION | change))
    with pytest.raises(UsageFailed) as raised:
        Judge(read_suite("definition.json", "workloads.jsonl").task)
    assert message in raised.value.diagnostics[0].message


def test_a_wrong_solution_is_refused(folder: Path) -> None:
    two = solution("two", KERNEL)
    two["sources"].append({"path": "more.py", "content": ""})
    wrong = [solution("wrong", KERNEL) for _ in range(4)]
    wrong[0]["sources"][0]["content"] = 3
    wrong[1]["sources"][0]["path"] = None
    wrong[2]["sources"][0]["content"] = "\ud800"
    wrong[3]["name"] = 0.5
    cases = [(two, "`two` has 2 files"), ({}, "is no solution"), (3, "JSON object")]
    for made, message in (*cases, *((each, "is no solution") for each in wrong)):
        Path("s.json").write_text(json.dumps(made))
        with pytest.raises(UsageFailed, match=message):
            read_solution("s.json")
    words = ["--workloads", "workloads.jsonl", "--time-only", "--jsonl", "o"]
    assert run(command, "nkic", ["evaluate", "definition.json", "s.json", "good.json", *words]) == 1
    first, second = map(json.loads, Path("o").read_text().splitlines())
    assert "is no solution" in first["problem"] and second["compiled"]  # a neighbour is judged
    Path("workloads.jsonl").write_text("{")
    with pytest.raises(UsageFailed, match="is not JSON"):
        read_suite("definition.json", "workloads.jsonl")
