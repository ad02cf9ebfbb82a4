"""Candidates that would win without being right, and the guard that each of them meets.

Each is judged twice: with its guard it is no winner; what the guard looks at, taken away, lets it
win. So a guard that is lost turns a test red.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkic
from nkic.artifact.encode import write
from nkic.artifact.read import load
from nkic.base.diagnostics import UsageFailed
from nkic.base.files import DECIDING
from nkic.base.source import SourceFile
from nkic.judge import Candidate, Evaluation, Judge, Task, read_task
from nkic.judge.process import Ended, Process
from nkic.simulate.compare import ToleranceSettings
from tests.faults.inject import of_records

TASK = """
narrowest = "float32"
required_families = ["large"]
families = ["zeros"]
[reference]
function = "reference.py:softmax"
[outputs]
rtol = 1e-3
atol = 1e-5
[[case]]
name = "wide"
inputs = { x = "f32[128,64]" }
[[case]]
name = "narrow"
inputs = { x = "f32[128,32]" }
hidden = true
[limits]
seconds = 60
"""
REFERENCE = """
import numpy as np

def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
"""
HEAD = "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n\n@nki.jit\ndef k(x):\n"
OUT = "    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n"
RIGHT = """    t = nl.load(x)
    e = nl.exp(nl.subtract(t, nl.max(t, axis=1, keepdims=True)))
    nl.store(out, nl.divide(e, nl.sum(e, axis=1, keepdims=True)))
    return out
"""
GOOD = HEAD + OUT + RIGHT
UNGUARDED = GOOD.replace("nl.exp(nl.subtract(t, nl.max(t, axis=1, keepdims=True)))", "nl.exp(t)")
CONSTANT = f"{HEAD}{OUT}    nl.store(out, nl.full(x.shape, 1 / 64, nl.float32))\n    return out\n"
ROUNDED = GOOD.replace("nl.load(x)", "nl.copy(nl.load(x), dtype=nl.bfloat16)")
IN_PLACE = GOOD.replace("nl.store(out", "nl.store(x").replace("return out", "return x")
SHAPED = (
    GOOD.replace(OUT, OUT + "    n = 1.0 if x.shape[1] == 64 else 2.0\n")
    .replace("nl.divide(e,", "nl.multiply(nl.divide(e,")
    .replace("keepdims=True)))\n    return", "keepdims=True)), n))\n    return")
)
UNINITIALISED = f"""{HEAD}{OUT}    t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nl.store(out, t)
    return out
"""
SCALES = """    t = nl.copy(nl.load(x), dtype=nl.float32)
    u = nl.copy(nl.load(s), dtype=nl.float32)
    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=u)
    nl.store(out, t)
    return out
"""
COPIES = f"{HEAD}{OUT}    nl.store(out, nl.load(x))\n    return out\n"
RACING = f"{HEAD}{OUT}    while True: pass\n"
READS = f"{HEAD}{OUT}    open('reference.py')\n{RIGHT}"
TALKS = GOOD.replace(OUT, OUT + '    print(\'{"correct": true, "time_ns": 1}\')\n')


FILE = b"\x82\xa4data\xc4\x01x\xa8warnings\x90"  # {"data": b"x", "warnings": []}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("task")
    (path / "task.toml").write_text(TASK)
    (path / "reference.py").write_text(REFERENCE)
    return path


@pytest.fixture(scope="module")
def task(folder: Path) -> Task:
    return read_task(folder / "task.toml")


@pytest.fixture(scope="module")
def judge(task: Task) -> Judge:
    return Judge(task, secret="mine")


def judged(judge: Judge, text: str) -> Evaluation:
    return judge.evaluate(Candidate.of_text(text))


def flags(evaluation: Evaluation) -> set[str]:
    return {flag.name for flag in evaluation.flags}


def test_a_right_candidate_is_correct(judge: Judge) -> None:
    found = judged(judge, GOOD)
    assert found.correct and found.status == "correct" and not found.flags
    assert [(r.case, r.inputs, r.passed) for r in found.cases] == [
        ("wide", "seed 0", True),
        ("wide", "hidden seed", True),
        ("narrow", "seed 0", True),
        ("narrow", "hidden seed", True),
    ]
    assert [r.inputs for r in found.families] == ["large", "zeros"]
    assert found.narrowest == {"output_0": "float32"} and found.instructions["activation"] == 1
    assert found.metrics["hbm_read_bytes"] == 128 * 64 * 4
    assert found.sbuf_bytes >= 128 * 64 * 4
    assert found.time_ns and found.report["cycles"] > 0 and found.verdict
    verdict = found.report["verdict"]
    assert found.verdict[0].startswith(f"bound by {verdict['bound']}") and verdict["path"]
    assert 0 < verdict["busy"]["ACT"] < 1 and verdict["answers"][0]["gain"] > 0


@pytest.mark.parametrize("link", [False, True])
def test_a_candidate_reads_no_array_of_this_machine(link: bool, judge: Judge, folder: Path) -> None:
    """It could be what the task expects, or anyone's."""
    np.save(folder / "expected.npy", np.ones((128, 64), np.float32))
    path = folder / ("link.npy" if link else "expected.npy")
    if link and not path.is_symlink():
        path.symlink_to("expected.npy")
    text = GOOD.replace("nl.load(x)", f"nl.load(nl.shared_constant({str(path)!r}))")
    found = judged(judge, text)
    assert text != GOOD and found.status == "refused" and "neither in the kernel" in found.reason


def test_the_same_evaluation_has_the_same_bytes(judge: Judge, task: Task) -> None:
    first, second = judged(judge, GOOD), judged(Judge(task, secret="mine"), GOOD)
    assert first.json() == second.json() and "host" not in json.loads(first.json())
    assert set(json.loads(first.json(host=True))["host"]) == {"seconds", "mib"}


@pytest.mark.parametrize("form", ["ir", "sched", "asm"])
def test_a_printed_program_is_judged_as_its_kernel(form: str, task: Task, tmp_path: Path) -> None:
    """A program has the shapes of one case, and is refused for another."""
    (tmp_path / "k.py").write_text(GOOD)
    words = ["k.py", "--arg", "x=f32[128,64]", "--emit", f"{form}={tmp_path}/k.{form}", "-q"]
    subprocess.run([sys.executable, "-m", "nkic.cli.nkic", *words], cwd=tmp_path, check=True)
    one = Judge(dataclasses.replace(task, cases=task.cases[:1]), families=False)
    found, own = one.evaluate(Candidate.read(tmp_path / f"k.{form}")), judged(one, GOOD)
    assert found.correct and found.time_ns == own.time_ns
    assert found.instructions == own.instructions and found.narrowest == own.narrowest
    two = Judge(task, families=False, orders=0).evaluate(Candidate.read(tmp_path / f"k.{form}"))
    assert two.status == "fails" and "float32[128, 32] in the call" in two.reason
    wrong = (tmp_path / f"k.{form}").read_bytes().replace(b"activation", b"activatoin")
    assert one.evaluate(Candidate(f"k.{form}", wrong)).status == "refused"


def test_the_memory_of_a_candidate_is_that_of_its_process(judge: Judge) -> None:
    small = judged(judge, GOOD)
    large = judged(judge, GOOD.replace(OUT, OUT + "    many = [i for i in range(900_000)]\n"))
    assert small.mib is not None and large.mib is not None and small.mib + 5 < large.mib < 1000


def test_an_unguarded_candidate_is_seen_by_a_family(judge: Judge, task: Task) -> None:
    found = judged(judge, UNGUARDED)
    assert not found.correct and all(r.passed for r in found.cases)
    assert found.reason.startswith("wide (large): output_0: ")
    (large,) = (r for r in found.families if r.inputs == "large")
    assert not large.passed and "elements differ" in large.words
    told = {r["inputs"]: r["statement"] for r in found.record()["families"]}
    assert "elements differ, at worst not finite instead of" in told["large"]
    assert told["zeros"] == "same as the reference"
    assert judged(Judge(dataclasses.replace(task, required=())), UNGUARDED).correct


def test_a_constant_is_named(judge: Judge) -> None:
    found = judged(judge, CONSTANT)
    assert found.status == "cheat" and "constant" in flags(found)


def test_lower_precision_is_seen_in_the_program(judge: Judge, task: Task) -> None:
    found = judged(judge, ROUNDED)
    assert (
        found.narrowest == {"output_0": "bfloat16"}
        and "narrow" in flags(found)
        and not found.correct
    )
    loose = dataclasses.replace(task, narrowest=None)
    assert "narrow" not in flags(judged(Judge(loose), ROUNDED))


def test_only_what_flows_into_an_output_counts(judge: Judge) -> None:
    other = "    low = nl.ndarray(x.shape, dtype=nl.bfloat16, buffer=nl.shared_hbm)\n"
    text = GOOD.replace(OUT, OUT + other).replace("return out", "return out, low")
    text = text.replace(
        "    return", "    nl.store(low, nl.copy(t, dtype=nl.bfloat16))\n    return"
    )
    found = judged(judge, text)
    assert found.narrowest == {"output_0": "float32", "output_1": "bfloat16"}
    assert "`output_1` is computed in bfloat16" in found.reason
    mixed = text.replace("nl.store(out, nl.divide(", "nl.store(out, nl.multiply(1.0, nl.divide(")
    mixed = mixed.replace(
        "keepdims=True)))\n    nl.store(low", "keepdims=True))))\n    nl.store(low"
    )
    assert judged(judge, mixed).narrowest == found.narrowest


@pytest.mark.parametrize(
    ("inputs", "right", "wrong"),
    [
        ('x = "bf16[128,64]", s = "f32[128,1]"', "bfloat16", "float8_e4m3"),
        ('x = "bf16[128,64]", s = "float8_e4m3[128,1]"', "bfloat16", "float8_e4m3"),
        ('x = "f16[128,64]", s = "f16[128,1]"', "float16", "bfloat16"),
    ],
)
def test_the_measure_of_several_inputs(tmp_path: Path, inputs: str, right: str, wrong: str) -> None:
    (tmp_path / "reference.py").write_text("def scale(x, s):\n    return x * s\n")
    function = '[reference]\nfunction = "reference.py:scale"\n'
    (tmp_path / "task.toml").write_text(f"{function}[[case]]\ninputs = {{ {inputs} }}\n")
    judge = Judge(read_task(tmp_path / "task.toml"), families=False, orders=0)
    text = (HEAD + OUT).replace("def k(x)", "def k(x, s)") + SCALES
    for dtype, is_right in ((right, True), (wrong, False)):
        found = judged(judge, text.replace("dtype=x.dtype", f"dtype=nl.{dtype}"))
        assert found.runnable and found.correct == is_right


@pytest.mark.parametrize("mode", ["close", "ulp", "l2"])
def test_a_narrow_output_is_measured_as_the_inputs_are(tmp_path: Path, mode: str) -> None:
    """The defaults are by type; that of the output is the candidate's choice."""
    (tmp_path / "reference.py").write_text("def double(x):\n    return x * 2\n")
    function = '[reference]\nfunction = "reference.py:double"\n'
    (tmp_path / "task.toml").write_text(
        f'{function}[outputs]\nmode = "{mode}"\n[[case]]\ninputs = {{ x = "f32[128,64]" }}\n'
    )
    judge = Judge(read_task(tmp_path / "task.toml"), families=False, orders=0)
    text = f"{HEAD}{OUT}    nl.store(out, nl.multiply(nl.load(x), 2.0))\n    return out\n"
    assert judged(judge, text).correct
    for narrow in ("bfloat16", "float16", "float8_e4m3"):
        found = judged(judge, text.replace("dtype=x.dtype", f"dtype=nl.{narrow}"))
        assert found.runnable and not found.correct
    stated = dataclasses.replace(judge.task, outputs=ToleranceSettings.of_all(rtol=1e-2))
    assert judged(Judge(stated), text.replace("x.dtype", "nl.bfloat16", 1)).correct


def test_inputs_may_not_be_written(judge: Judge, task: Task) -> None:
    found = judged(judge, IN_PLACE)
    assert found.reason == "it writes its inputs: x" and found.status == "cheat"
    assert judged(Judge(dataclasses.replace(task, may_write=frozenset("x"))), IN_PLACE).correct


def test_a_special_case_fails_where_its_author_did_not_look(judge: Judge, task: Task) -> None:
    found = judged(judge, SHAPED)
    assert "special-cased" in flags(found) and found.status == "cheat"
    known = dataclasses.replace(task, cases=task.cases[:1])
    assert judged(Judge(known), SHAPED).correct


def test_no_author_knows_a_shape_that_the_secret_chooses(folder: Path) -> None:
    """SHAPED is right on 64 columns alone, and its author has read the task."""
    known = "".join(TASK.partition('[[case]]\nname = "narrow"')[0])
    sized = 'inputs = { x = "f32[128,n]" }\nsizes = { n = [32, 48, 80, 96] }\nhidden = true\n'
    (folder / "sized.toml").write_text(f'{known}[[case]]\nname = "drawn"\n{sized}')
    task = read_task(folder / "sized.toml")
    found = judged(Judge(task, secret="mine", orders=0), SHAPED)
    assert "special-cased" in flags(found) and found.status == "cheat"
    assert [r.case for r in found.cases if not r.passed] == ["drawn", "drawn"]
    assert judged(Judge(task, secret="mine", orders=0), GOOD).correct
    assert judged(Judge(task, orders=0), SHAPED).correct


@pytest.mark.parametrize("words", ['target = "trn3"', "lnc = 2"])
def test_a_candidate_does_not_choose_its_machine(task: Task, words: str) -> None:
    judge = Judge(task, families=False, orders=0)
    own = judged(judge, f"# /// nkic\n# {words}\n# ///\n{GOOD}")
    assert own.correct and own.time_ns == judged(judge, GOOD).time_ns
    settings: dict[str, Any] = {"lnc": 2} if "lnc" in words else {"target": "trn3"}
    file = nkic.compile(SourceFile("k.py", GOOD), inputs={"x": "f32[128,64]"}, **settings)
    compiled = judge.evaluate(Candidate("k.neff", file.data))
    lnc, target = settings.get("lnc", 1), settings.get("target", "trn2")
    assert compiled.problem.startswith(f"it is compiled for lnc {lnc} on {target}; ")


def test_the_environment_decides_nothing(task: Task, folder: Path) -> None:
    """It is that of a process of its own, since ours gave its environment to the fork server."""
    words = [sys.executable, "-P", "-m", "nkic.cli.nkic", "evaluate", "task.toml", "good.py"]
    (folder / "good.py").write_text(GOOD)
    (folder / "pyproject.toml").write_text('[tool.nkic]\nnki = "beta1"\n')
    here = Judge(task).evaluate(Candidate("good.py", GOOD.encode()))
    loud = {
        "NEURON_PLATFORM_TARGET_OVERRIDE": "trn1",
        "NKIC_NKI": "0.3",
        "NEURON_LOGICAL_NC_CONFIG": "2",
        "NEURON_CC_FLAGS": "--disable-dge",
        "NKI_PRECISE_FP": "0",
    }
    assert set(loud) <= set(DECIDING)
    for environment in ({}, loud, {"NKI_PRECISE_FP": "neither"}):
        ended = subprocess.run(
            [*words, "--jsonl", "-", "-q"],
            cwd=folder,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert ended.stdout == f"{here.json()}\n"


def test_a_constant_is_named_from_one_seed(task: Task) -> None:
    plain = dataclasses.replace(
        task, cases=task.cases[:1], required=(), families=("zeros", "sorted")
    )
    assert "constant" in flags(judged(Judge(plain), CONSTANT))
    assert not flags(judged(Judge(plain, families=False), CONSTANT)) - {"no-work"}
    assert not flags(judged(Judge(plain), GOOD))


def test_a_lost_wait_fails(task: Task) -> None:
    """A compiled kernel whose results depend on an order that nothing fixes."""
    one = dataclasses.replace(task, cases=task.cases[:1], required=(), families=())
    found = nkic.compile(SourceFile("k.py", GOOD), inputs={"x": "f32[128,64]"})
    faults = [f for f in of_records(load(found.data)) if f.kind == "lost wait"]
    assert len(faults) == 4
    for fault in faults:
        broken = Judge(one).evaluate(Candidate("k.neff", write(fault.make())))
        assert broken.status == "fails" and "NKI0807" in broken.reason


@pytest.mark.parametrize("cores", [1, 2])
def test_other_orders_that_change_a_result_are_named(
    task: Task, cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of one core are proven not to: nothing else is asked of it."""
    ask = Process.ask

    def asked(self: Process, do: str, **request: Any) -> Any:
        return {"failed": "in order 1, x differs"} if do == "fuzz" else ask(self, do, **request)

    monkeypatch.setattr(Process, "ask", asked)
    case = dataclasses.replace(task.cases[0], lnc=cores, grid=(cores,))
    text = GOOD.replace("def k(x):", "def k(x):\n    n = 128 // nl.num_programs(0)")
    text = text.replace(
        "    t = nl.load(x)",
        "    mine = nl.ds(nl.program_id(0) * n, n)\n    t = nl.load(x[mine, :])",
    ).replace("nl.store(out,", "nl.store(out[mine, :],")
    found = judged(Judge(dataclasses.replace(task, cases=(case,))), text)
    if cores == 1:
        assert found.correct
    else:
        assert found.status == "cheat" and found.reason == "in order 1, x differs"


def test_a_broken_file_is_refused(task: Task) -> None:
    found = nkic.compile(SourceFile("k.py", GOOD), inputs={"x": "f32[128,64]"})
    for data in (found.data[:-1], found.data[:200]):
        broken = Judge(task).evaluate(Candidate("k.neff", data))
        assert broken.status == "refused" and broken.diagnostics and "ended" not in broken.reason


def test_uninitialised_memory_is_no_output(judge: Judge) -> None:
    found = judged(judge, UNINITIALISED)
    assert found.status in ("refused", "fails")
    assert any("uninitialised" in d["message"] for d in found.diagnostics)


def test_a_copy_does_no_work(judge: Judge) -> None:
    found = judged(judge, COPIES)
    assert "no-work" in flags(found) and found.status == "wrong"


def test_nothing_outside_is_read(judge: Judge) -> None:
    assert judged(judge, READS).status == "refused"


def test_files_beside_a_candidate_are_not_read(
    judge: Judge, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the task's reference nor a helper: a candidate is what its bytes are."""
    monkeypatch.chdir(folder)
    (folder / "helper.py").write_text("SCALE = 1.0\n")
    (folder / "k.py").write_text(GOOD)
    for name, used in (("helper", "helper.SCALE"), ("reference", "reference.softmax")):
        text = GOOD.replace("import nki\n", f"import nki\nimport {name}\n")
        text = text.replace(OUT, f"{OUT}    used = {used}\n")
        for path in ("k.py", str(folder / "k.py")):
            found = judge.evaluate(Candidate.of_text(text, path))
            assert found.status == "refused" and name in found.reason
            assert found.diagnostics[0]["spans"][0]["file"] == "k.py"


def test_what_a_kernel_prints_is_no_result(judge: Judge) -> None:
    found = judged(judge, TALKS)
    assert found.correct and found.time_ns != 1


def test_time_and_memory_are_those_of_the_task(task: Task) -> None:
    endless = Judge(dataclasses.replace(task, seconds=0.5))
    found = judged(endless, RACING)
    assert found.status == "refused" and "more than the 0.5 s" in found.problem
    large = GOOD.replace(OUT, OUT + "    big = [[0] * 1000000 for _ in range(400)]\n")
    found = judged(Judge(dataclasses.replace(task, memory=700 << 20)), large)
    assert found.status == "refused" and found.problem


@pytest.mark.parametrize("answer", [b"", b"\xc1", b"\x93\x01\x02\x03", b"\x81\xa4data\xa1x", FILE])
def test_an_answer_that_is_none_fails(
    answer: bytes, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if a candidate had taken over its process: its words are bytes, and checked."""
    enter = Process.__enter__

    class Pipe:
        def __init__(self, real: Any) -> None:
            self.real = real

        def send_bytes(self, data: bytes) -> None: ...

        def poll(self, seconds: float) -> bool:
            return True

        def recv_bytes(self, limit: int) -> bytes:
            return answer

        def close(self) -> None:
            self.real.close()

    def entered(self: Process) -> Process:
        process = enter(self)
        process._connection = Pipe(process._connection)
        return process

    monkeypatch.setattr(Process, "__enter__", entered)
    monkeypatch.setattr("nkic.judge.process._GRACE", 0.01)
    found = judged(Judge(task), GOOD)
    assert found.status == "refused" and found.problem


def test_several_at_a_time_come_in_their_order(judge: Judge) -> None:
    texts = [GOOD, CONSTANT, GOOD, "def k(x"]

    def candidates() -> Iterator[Candidate]:
        for number, text in enumerate(texts):
            yield Candidate.of_text(text, f"{number}.py")

    found = list(judge.evaluate_all(candidates(), jobs=2))
    assert [e.candidate for e in found] == ["0.py", "1.py", "2.py", "3.py"]
    assert [e.status for e in found] == ["correct", "cheat", "correct", "refused"]


REFERENCES = {
    "def softmax(x): return x / y": "NameError: name 'y' is not defined (line 1)",
    "def softmax(y): return y": "TypeError",
    "def softmax(x): return {}": "returns nothing for case wide",
    "def soft(x): return x": "has no function `softmax`",
    "import nothing_of_this_name": "ModuleNotFoundError",
}


@pytest.mark.parametrize("text", REFERENCES)
def test_a_reference_that_fails_is_an_error_of_the_task(text: str, tmp_path: Path) -> None:
    (tmp_path / "task.toml").write_text(TASK)
    (tmp_path / "reference.py").write_text(text)
    with pytest.raises(UsageFailed) as raised:
        judged(Judge(read_task(tmp_path / "task.toml")), GOOD)
    (found,) = raised.value.diagnostics
    assert REFERENCES[text] in found.message
    assert ("its parameters are" in (found.help or "")) == text.startswith("def softmax(y)")


def test_a_required_family_that_was_not_reached_is_not_passed(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, runs = Process.ask, count(1)

    def asked(self: Process, do: str, **request: Any) -> Any:
        if do == "run" and next(runs) > len(judge.task.cases):  # that of the first family
            raise Ended("it takes too long")
        return ask(self, do, **request)

    monkeypatch.setattr(Process, "ask", asked)
    found = judged(judge, GOOD)
    assert all(r.passed for r in found.cases) and not found.families
    assert not found.correct and found.problem == "it takes too long"


def test_arrays_in_a_file_and_another_kernel_are_references(task: Task, folder: Path) -> None:
    files = {"good.py": GOOD.encode()}
    other = dataclasses.replace(task, reference=("kernel", "good.py:k"), files=files)
    assert judged(Judge(other), GOOD).correct
    assert not judged(Judge(other), CONSTANT).correct
    case = task.cases[0]
    wanted = Judge(task).reference.expected(case, 0, None)
    np.savez(folder / "expected.npz", output_0=wanted["output_0"])
    file = dataclasses.replace(
        task,
        reference=("npz", "expected.npz"),
        files={"expected.npz": (folder / "expected.npz").read_bytes()},
        cases=(case,),
        required=(),
    )
    assert judged(Judge(file), GOOD).correct
    with pytest.raises(UsageFailed, match="required_families"):
        Judge(dataclasses.replace(file, required=("large",)))
