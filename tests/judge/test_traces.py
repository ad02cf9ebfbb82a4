"""FlashInfer-Bench's definitions, workloads, solutions and traces."""

from __future__ import annotations

import json
import sys
from hashlib import sha256
from io import BytesIO, TextIOWrapper
from math import inf, isnan, nan
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import nkic
from nkic.base.diagnostics import UsageFailed
from nkic.base.source import SourceFile
from nkic.cli.common import run
from nkic.cli.nkic import command
from nkic.judge import Candidate, Evaluation, Judge
from nkic.judge.schemas import read_solution, read_suite, suite_of
from nkic.judge.task import task_of
from tests.judge.test_cheats import CONSTANT, GOOD, REFERENCE

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


def test_an_output_of_another_type_is_no_solution(folder: Path) -> None:
    """The type is part of a definition; its name there may be another one of the same type."""
    Path("halves.py").write_text(KERNEL.replace("dtype=x.dtype", "dtype=nl.float16", 1))
    words = ["evaluate", "definition.json", "--workloads", "workloads.jsonl", "--no-sensitivity"]
    words += ["halves.py", "--traces", "t.jsonl", "-q"]
    wide, narrow = DEFINITION["outputs"]["y"], {"shape": ["rows", "columns"], "dtype": "fp16"}
    for output, status in ((wide, "INCORRECT_DTYPE"), (narrow, "PASSED")):
        Path("definition.json").write_text(json.dumps({**DEFINITION, "outputs": {"y": output}}))
        run(command, "nkic", words)
        lines = Path("t.jsonl").read_text().splitlines()
        found = [json.loads(line)["evaluation"] for line in lines]
        assert [each["status"] for each in found] == [status] * 2
        assert [each["performance"] is None for each in found] == [status != "PASSED"] * 2
    case = "[[case]]\ninputs = { x = 'f32[128,64]' }\nconsts = { scale = 1.0 }\n"
    head = "name = 't'\nfamilies = []\n[reference]\nfunction = 'reference.py:run'\n"
    Path("reference.py").write_text(DEFINITION["reference"])
    texts = {"": "INCORRECT_DTYPE", "[outputs]\ndtype = 'f16'\n": "PASSED"}
    for number, (outputs, status) in enumerate(texts.items()):
        Path("task.toml").write_text(head + outputs + case)
        folder = Path(f"set{number}")
        run(command, "nkic", ["evaluate", "task.toml", "halves.py", "--dataset", str(folder)])
        (line,) = (folder / "traces/t.jsonl").read_text().splitlines()
        assert json.loads(line)["evaluation"]["status"] == status
        assert run(command, "nkic", ["evaluate", "task.toml", "halves.py", "-q"]) == number ^ 1


TWO = """
import nki
import nki.language as nl

@nki.jit
def k(x):
    wide = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    half = nl.ndarray(x.shape, dtype=nl.float16, buffer=nl.shared_hbm)
    nl.store(wide, nl.add(nl.load(x), 1.0))
    nl.store(half, nl.add(nl.load(x), 2.0))
    return wide, half
"""


@pytest.mark.parametrize(
    ("outputs", "status"),
    [
        ({"output_1": "float32", "output_0": "float16"}, "PASSED"),
        ({"output_0": "float16", "output_1": "float32"}, "INCORRECT_DTYPE"),
        ({"a": "float32", "b": "float64"}, "INCORRECT_DTYPE"),  # no kernel returns it
    ],
)
def test_types_of_a_definition_go_by_the_order_of_its_outputs(
    outputs: dict[str, str], status: str, folder: Path
) -> None:
    shape = ["rows", "columns"]
    made = DEFINITION | {
        "inputs": {"x": DEFINITION["inputs"]["x"]},
        "outputs": {name: {"shape": shape, "dtype": dtype} for name, dtype in outputs.items()},
        "reference": "def run(x):\n    return x + 1, x + 2\n",
    }
    Path("definition.json").write_text(json.dumps(made))
    Path("two.py").write_text(TWO)
    words = ["evaluate", "definition.json", "--workloads", "workloads.jsonl", "--no-sensitivity"]
    run(command, "nkic", [*words, "two.py", "--traces", "t.jsonl", "-q"])
    lines = Path("t.jsonl").read_text().splitlines()
    assert {json.loads(line)["evaluation"]["status"] for line in lines} == {status}


def test_a_task_is_written_in_the_same_form_and_read_again(folder: Path) -> None:
    case = "[[case]]\nname = 'w%d'\ninputs = { x = 'f32[128,%d]' }\nconsts = { scale = 1.0 }\n"
    cases = "".join(case % (n, n) for n in (64, 32)) + case % (16, 16) + "hidden = true\n"
    head = "name = 'softmax'\nfamilies = []\n[reference]\nfunction = 'reference.py:run'\n"
    Path("task.toml").write_text(f"kernels = ['k']\n{head}{cases}")
    Path("reference.py").write_text(DEFINITION["reference"])
    Path("good.py").write_text(KERNEL)
    Path("broken.py").write_text("def k(x")
    words = ["evaluate", "task.toml", "good.py", "broken.py", "--no-sensitivity", "--dataset", "d"]
    assert run(command, "nkic", words) == 1 and run(command, "nkic", words) == 2  # it exists
    definition = json.loads(Path("d/definitions/softmax.json").read_text())
    assert definition["axes"]["axis1"] == {"type": "var"} and "w16" not in json.dumps(definition)
    assert definition["inputs"]["scale"] == {"shape": None, "dtype": "float32"}
    assert definition["outputs"]["output_0"]["shape"] == ["axis0", "axis1"]
    traces = [json.loads(line) for line in Path("d/traces/softmax.jsonl").read_text().splitlines()]
    assert [(t["workload"]["axes"], t["evaluation"]["status"]) for t in traces] == [
        *(({"axis1": n}, "PASSED") for n in (64, 32)),
        *(({"axis1": n}, "COMPILE_ERROR") for n in (64, 32)),
    ]
    solution, broken = sorted(Path("d/solutions/softmax").iterdir())
    assert json.loads(broken.read_text())["sources"][0]["content"] == "def k(x"
    workloads = "d/workloads/softmax.jsonl"
    words = ["evaluate", "d/definitions/softmax.json", "--workloads", workloads, str(solution)]
    assert run(command, "nkic", [*words, "--traces", "t.jsonl"]) == 0
    again = [json.loads(line) for line in Path("t.jsonl").read_text().splitlines()]
    for old, new in zip(traces, again, strict=False):
        assert {**new["evaluation"], "timestamp": ""} == {**old["evaluation"], "timestamp": ""}
    assert len(again) == 2 and again[1]["workload"] == traces[1]["workload"]


SEVERAL = """import numpy as np
from ml_dtypes import bfloat16

def several(x, n, **consts):
    assert isinstance(x, np.ndarray) and x.dtype == np.float32 and n.dtype == np.int32
    same = (x * consts["scale"])[::-1]
    short = same.astype(bfloat16)
    return {"same": same, "wide": x + np.float32(2**-12), "count": n + 1, "short": short}
"""


def test_a_written_reference_takes_torch_and_returns_its_types(torch: Any) -> None:
    """As FlashInfer-Bench runs it; what an output holds does not go through an input's type."""
    types = "[outputs.wide]\ndtype = 'f32'\n[outputs.count]\ndtype = 'i32'\n"
    case = "[[case]]\ninputs = { x = 'f16[2,3]', n = 'i32[2]' }\nconsts = { scale = 2.0 }\n"
    head = "name = 'several'\n[reference]\nfunction = 'reference.py:several'\n"
    task = task_of(f"{head}{types}{case}".encode(), {"reference.py": SEVERAL.encode()})
    space: dict[str, Any] = {}
    exec(suite_of(Judge(task)).definition["reference"], space)
    x, n = np.ones((2, 3), np.float16), np.full(2, 2**20 + 1, np.int32)
    for given in ((Tensor(x), Tensor(n)), (x.astype(np.float32), n)):
        *found, short = space["run"](*given, 2.0)
        same, wide, count = found
        is_tensor = isinstance(given[0], Tensor)
        if is_tensor:
            assert (same.dtype, wide.dtype) == (torch.float16, torch.float32)
            assert (count.dtype, short.dtype) == (torch.int32, torch.float16)
        arrays = [each.array if is_tensor else each for each in (*found, short)]
        assert [float(array.max()) for array in arrays] == [2.0, 1 + 2**-12, 2**20 + 2, 2.0]


def test_a_dataset_has_each_solution_once_as_it_was_judged(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FlashInfer-Bench refuses a name that is there twice. A trace's solution is in the set."""
    head = "name = 'softmax'\nfamilies = []\n[reference]\nfunction = 'reference.py:softmax'\n"
    Path("task.toml").write_text(
        f"{head}[[case]]\nname = 'one'\ninputs = {{ x = 'f32[128,64]' }}\n"
    )
    Path("reference.py").write_text(REFERENCE)
    for name, text in {"good.py": GOOD, "broken.py": "def k(x", "other.py": CONSTANT}.items():
        Path(name).write_text(text)
    compiled = nkic.compile(SourceFile("k.py", GOOD), inputs={"x": "f32[128,64]"})
    Path("k.neff").write_bytes(compiled.data)
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(GOOD.encode())))
    evaluate = Judge.evaluate

    def then_changed(judge: Judge, candidate: Candidate) -> Evaluation:
        found = evaluate(judge, candidate)
        Path("good.py").write_text("changed")
        return found

    monkeypatch.setattr(Judge, "evaluate", then_changed)
    words = ["evaluate", "task.toml", "good.py", "broken.py", "other.py", "good.py", "k.neff", "-"]
    assert run(command, "nkic", [*words, "--no-sensitivity", "--dataset", "d"]) == 1
    made = [json.loads(path.read_text()) for path in sorted(Path("d/solutions/softmax").iterdir())]
    assert {each["name"]: each["sources"][0]["content"] for each in made} == {
        **{"good.py": GOOD, "other.py": CONSTANT, "-": GOOD}
    }
    assert len(made) == 3 and not any(m["spec"]["destination_passing_style"] for m in made)
    lines = Path("d/traces/softmax.jsonl").read_text().splitlines()
    told = [(trace["solution"], trace["evaluation"]["status"]) for trace in map(json.loads, lines)]
    assert told == [("good.py", "PASSED"), ("other.py", "INCORRECT_NUMERICAL"), ("-", "PASSED")]


def test_two_texts_of_one_name_are_two_solutions(folder: Path) -> None:
    wrong = CONSTANT.replace("def k(x)", "def k(x, scale)")
    Path("same.json").write_text(json.dumps(solution("good", wrong)))
    words = ["evaluate", "definition.json", "good.json", "same.json", "--dataset", "d"]
    assert run(command, "nkic", [*words, "--workloads", "workloads.jsonl"]) == 1
    lines = Path("d/traces/softmax.jsonl").read_text().splitlines()
    told = {(t["solution"], t["evaluation"]["status"]) for t in map(json.loads, lines)}
    other = f"good {sha256(wrong.encode()).hexdigest()[:12]}"
    assert told == {("good", "PASSED"), (other, "INCORRECT_NUMERICAL")}


@pytest.mark.parametrize(
    ("path", "message"), [("good.json/d", "cannot write"), ("-", "is no folder")]
)
def test_a_folder_that_cannot_be_made_is_refused_before_the_work(
    path: str,
    message: str,
    folder: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Judge, "evaluate", None)
    words = ["evaluate", "definition.json", "good.json", "--workloads", "workloads.jsonl"]
    assert run(command, "nkic", [*words, "--dataset", path]) == 2
    assert message in capfd.readouterr().err and not Path("-").exists()


def test_a_run_without_an_end_leaves_no_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(judge: Judge, candidate: Candidate) -> Evaluation:
        raise UsageFailed([])

    monkeypatch.setattr(Judge, "evaluate", fails)
    words = ["evaluate", "definition.json", "good.json", "--workloads", "workloads.jsonl"]
    assert run(command, "nkic", [*words, "--dataset", "d"]) == 2 and not Path("d").exists()


def test_a_dataset_tells_nothing_of_hidden_cases(folder: Path) -> None:
    case = "[[case]]\nname = 'w%d'\ninputs = { x = 'f32[128,%d]' }\n"
    head = "name = 'softmax'\nkernels = ['k']\nfamilies = []\n"
    head += "[reference]\nfunction = 'reference.py:softmax'\n"
    Path("task.toml").write_text(f"{head}{case % (64, 64)}{case % (96, 96)}hidden = true\n")
    Path("reference.py").write_text(REFERENCE)
    Path("secret").write_text("sixteen of bytes")
    tells = '    assert x.shape[1] == 64, "the width is " + str(x.shape[1])\n    t = '
    Path("tells.py").write_text(GOOD.replace("    t = ", tells, 1))
    Path("constant.py").write_text(CONSTANT)
    words = ["evaluate", "task.toml", "tells.py", "constant.py", "--no-sensitivity"]
    assert run(command, "nkic", [*words, "--secret", "secret", "--dataset", "d"]) == 1
    text = Path("d/traces/softmax.jsonl").read_text()
    told = [trace["evaluation"] for trace in map(json.loads, text.splitlines())]
    assert "width" not in text and "hidden" not in text and "w96" not in text
    assert (told[0]["status"], told[0]["log"]) == (
        *("RUNTIME_ERROR", "it fails, though not on what is shown"),
    )
    assert told[1]["status"] == "INCORRECT_NUMERICAL"


class Kind:
    """A type of torch's."""

    __module__ = "torch"

    def __init__(self, name: str) -> None:
        self.name = name


class Tensor:
    """The part of torch's tensors that references use: it fails for anything else."""

    def __init__(self, array: Any, dtype: Kind | None = None) -> None:
        self.dtype = dtype or getattr(sys.modules["torch"], array.dtype.name)
        self.array = array.astype(self.dtype.name)

    def is_floating_point(self) -> bool:
        return bool(self.array.dtype.kind == "f")

    def to(self, dtype: Kind) -> Tensor:
        return Tensor(self.array, dtype)

    def float(self) -> Tensor:
        return Tensor(self.array.astype(np.float32))

    def double(self) -> Tensor:
        return Tensor(self.array.astype(np.float64))

    def detach(self) -> Tensor:
        return self

    def cpu(self) -> Tensor:
        return self

    def numpy(self) -> Any:
        return self.array

    def new_tensor(self, data: Any, dtype: Kind | None = None) -> Tensor:
        if data.dtype.kind == "V" or min(data.strides) < 0:
            raise TypeError("torch has neither types of other packages nor negative strides")
        return Tensor(data, dtype or self.dtype)


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A stand-in for torch, which is not needed here and not always there."""
    module: Any = ModuleType("torch")
    module.from_numpy = module.Tensor = Tensor
    for name in ("float16", "float32", "float64", "int32"):
        setattr(module, name, Kind(name))
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[reference]\nkernel = 'good.py:k'\n", "is no definition of FlashInfer-Bench"),
        ("values = { x = 'ones' }\n", "is no definition of FlashInfer-Bench"),
        ("[[case]]\ninputs = {}\n", "is no definition of FlashInfer-Bench"),
        ("consts = { scale = 'high' }\n", "different inputs, or other constants"),
        ("[[case]]\ninputs = { x = 'f32[2,128,4]' }\n", "no float32 of shapes"),
        (
            "consts = { scale = 1.0 }\n[outputs]\ndtype = 'float8_e4m3'\n",
            "no float8_e4m3 of shapes",
        ),
    ],
)
def test_what_a_definition_cannot_say(
    text: str, message: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    reference = "" if "[reference]" in text else "[reference]\nfunction = 'reference.py:run'\n"
    case = "[[case]]\nname = 'one'\ninputs = { x = 'f32[128,64]' }\n"
    Path("task.toml").write_text(reference + case + text)
    Path("reference.py").write_text(DEFINITION["reference"])
    Path("good.py").write_text(KERNEL)
    words = ["evaluate", "task.toml", "good.py", "--dataset", "d"]
    assert run(command, "nkic", words) == 2 and message in capfd.readouterr().err
    assert not Path("d").exists()


@pytest.mark.usefixtures("torch")
def test_a_reference_in_torch_gets_tensors(folder: Path) -> None:
    text = "import torch\ndef run(x, scale):\n    y = torch.Tensor(x.array, torch.float64)\n"
    text += "    y.array += 2**-30 * scale\n    return {'y': y}\n"
    x = {"shape": ["rows", "columns"], "dtype": "float16"}
    inputs = {**DEFINITION["inputs"], "x": x}
    Path("d.json").write_text(json.dumps(DEFINITION | {"reference": text, "inputs": inputs}))
    task = read_suite("d.json", "workloads.jsonl").task
    reference = Judge(task).reference
    expected = reference.expected(task.cases[0], 0, None)
    given = reference.inputs(task.cases[0], 0, None)["x"].astype(np.float64)
    np.testing.assert_array_equal(expected["output_0"], given + 2**-30)


@pytest.mark.parametrize(
    ("head", "wanted"),
    [
        ('"""Not for torch."""\nimport torchless\n', False),
        ("import torch (\n", False),  # Python says more of it
        ("import numpy, torch.nn as nn\n", True),
        ("from torch.nn import functional\n", True),
        ("import importlib\nt = importlib.import_module('torch')\n", True),
        ("from .torch import x\n", False),
        ("x = " + "-" * 100_000 + "1\n", False),  # Python has too little memory for it
    ],
)
def test_a_reference_gets_tensors_if_it_imports_torch(
    head: str, wanted: bool, folder: Path
) -> None:
    definition = DEFINITION | {"reference": head + DEFINITION["reference"]}
    Path("d.json").write_text(json.dumps(definition))
    (text,) = read_suite("d.json", "workloads.jsonl").task.files.values()
    assert f"    if {wanted}:\n" in text.decode()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"axes": {"rows": {"type": "const", "value": 128}}}, "no size for axis `columns`"),
        ({"name": "else"}, "no workload is one of `else`"),
        ({"outputs": 3}, "definition.json with workloads.jsonl: AttributeError"),
        *(
            ({"outputs": {"y": {"shape": [], "dtype": d}}}, f"the dtype {d!r} is no text")
            for d in (7, None, ["float16"])
        ),
        ({"reference": "def"}, "SyntaxError"),
    ],
)
def test_a_wrong_definition_is_refused(change: Any, message: str, folder: Path) -> None:
    Path("definition.json").write_text(json.dumps(DEFINITION | change))
    with pytest.raises(UsageFailed) as raised:
        Judge(read_suite("definition.json", "workloads.jsonl").task)
    assert message in raised.value.diagnostics[0].message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"uuid": 3}, "the uuid 3 of a workload is no text"),
        ({"inputs": {}}, "workload w: the value of the scalar `scale` is None"),
        ({"inputs": {"scale": {"type": "scalar", "value": [1]}}}, r"`scale` is \[1\]"),
        *(
            ({"inputs": {"scale": {"type": "scalar", "value": value}}}, f"`scale` is {value}")
            for value in (2**64, -(2**63) - 1)
        ),
    ],
)
def test_a_wrong_workload_is_refused(change: Any, message: str, folder: Path) -> None:
    workload = {"uuid": "w", "axes": {"rows": 128, "columns": 64}} | change
    Path("w.jsonl").write_text(json.dumps(workload))
    with pytest.raises(UsageFailed, match=message):
        read_suite("definition.json", "w.jsonl")


@pytest.mark.parametrize("value", [-inf, inf, nan, 1e22, 2, True, 2**64 - 1, -(2**63)])
def test_a_scalar_may_be_any_number(value: float, folder: Path) -> None:
    """Such as what a mask adds."""
    scale = {"type": "scalar", "value": value}
    workload = {"uuid": "w", "axes": {"rows": 128, "columns": 64}, "inputs": {"scale": scale}}
    Path("w.jsonl").write_text(json.dumps(workload))
    (case,) = read_suite("definition.json", "w.jsonl").task.cases
    found = case.consts["scale"]
    assert type(found) is type(value) and (found == value or (isnan(found) and isnan(value)))


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
