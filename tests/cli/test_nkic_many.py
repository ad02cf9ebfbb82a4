"""Many files: each as alone, one summary, the exit code of the worst; --fix, --watch, reports."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from xml.etree import ElementTree

import pytest

from nkic.base import watcher
from nkic.cli.common import Session
from nkic.cli.common.crash import in_report
from nkic.cli.common.options import filled
from nkic.cli.nkic import many
from nkic.cli.nkic.many import found_in
from nkic.cli.nkic.options import CommandLine
from tests.cli.nkic_fixtures import folder as folder
from tests.cli.nkic_fixtures import nkic as nkic
from tests.harness.commands import KERNEL, ROOT, Run, hear_signals

WRONG = KERNEL.replace("nl.multiply", "nl.multipy")
ODD = "error[NKI0204]: `nki.language` has no `multipy`"


@pytest.fixture
def project(folder: Path) -> Path:
    """Return the folder with a wrong kernel, a folder of kernels, and files without any."""
    (folder / "bad.py").write_text(WRONG, "utf-8")
    for name, text in (
        ("deep/inner/k.py", KERNEL),
        ("deep/helper.py", "def f(x):\n    return x\n"),
        ("deep/none.py", "import nki\n"),
        ("deep/.hidden/x.py", WRONG),
        ("deep/env/pyvenv.cfg", ""),
        ("deep/env/lib/x.py", WRONG),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return folder


def rows(out: str) -> list[list[str]]:
    return [line.split() for line in out.splitlines()]


def test_many_files_have_one_summary_and_the_exit_code_of_the_worst(
    project: Path, nkic: Run
) -> None:
    ran = nkic("k.py", "bad.py", "deep", "gone.py", "-j", "3", "-o", "out", "--color", "never")
    assert ran.code == 2
    assert rows(ran.out)[1:] == [
        ["k.py", "ok", "0", "0", "double", "0%", "3,747"],
        ["bad.py", "rejected", "1", "0", "-", "-", "-"],
        ["deep/inner/k.py", "ok", "0", "0", "double", "0%", "3,747"],
        ["gone.py", "not", "done", "1", "0", "-", "-", "-"],
        ["6", "files:", "2", "ok,", "1", "rejected,", "1", "not", "done,", "2", "no", "kernels"],
    ]
    found = sorted(str(path.relative_to("out")) for path in Path("out").rglob("*.neff"))
    assert found == ["inner/k.neff", "k.neff"]
    assert rows(nkic("deep/none.py", "deep", "--check").out)[1:] == [
        ["deep/none.py", "no", "kernels", "0", "0", "-", "-", "-"],
        ["deep/inner/k.py", "ok", "0", "0", "-", "-", "-"],
        ["3", "files:", "1", "ok,", "2", "no", "kernels"],
    ]
    alone = nkic("k.py", "-o", "alone.neff")
    assert alone.code == 0
    assert Path("alone.neff").read_bytes() == Path("out/k.neff").read_bytes()
    wrong = nkic("bad.py").err
    assert wrong.removesuffix("1 error\n") in ran.err
    assert ran.err.endswith("\n2 errors\n") and "gone.py" in ran.err


TWO = (
    KERNEL
    + """

@nki.jit
def halve(b, n=2):
    out = nl.ndarray(b.shape, dtype=b.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=b)
    return out
"""
)


def test_each_kernel_of_a_file_that_has_types_is_compiled(project: Path, nkic: Run) -> None:
    Path("two.py").write_text(TWO.replace("# [args]\n", "# [args]\n# b = 'bfloat16[128, 4]'\n"))
    ran = nkic("two.py", "k.py", "-o", "out", "--color", "never")
    assert ran.code == 0, ran.err
    assert rows(ran.out)[1][:6] == ["two.py", "ok", "0", "0", "double,", "halve"]
    found = sorted(path.name for path in Path("out").iterdir())
    assert found == ["k.neff", "two-double.neff", "two-halve.neff"]
    assert nkic("two.py", "-k", "halve", "-o", "alone.neff").code == 0
    assert Path("alone.neff").read_bytes() == Path("out/two-halve.neff").read_bytes()
    Path("two.py").write_text(TWO)  # no types for the second
    assert rows(nkic("two.py", "k.py", "-o", "one").out)[1][:5] == [
        "two.py",
        "ok",
        "0",
        "0",
        "double",
    ]


def test_a_project_gives_types(project: Path, nkic: Run) -> None:
    settings = '[tool.nkic.kernels.halve]\nargs = { b = "float32[128, 8]" }\n'
    Path("pyproject.toml").write_text(settings)
    Path("two.py").write_text(TWO)
    ran = nkic("two.py", "-k", "halve", "--print", "config")
    row = next(line for line in ran.out.splitlines() if line.startswith("argument b"))
    assert row.split()[2:] == [
        "float32[128,8]",
        "`b`",
        "of",
        "[tool.nkic.kernels.halve]",
        "in",
        "pyproject.toml",
    ]
    ran = nkic("two.py", "deep", "-o", "out")
    assert ran.code == 0 and "double, halve" in ran.out, ran.err
    Path("pyproject.toml").write_text(settings.replace("args", "arg"))
    ran = nkic("two.py", "-k", "halve", "--check")
    assert ran.code == 2 and "unknown key `arg` in [tool.nkic.kernels.halve] in pyproj" in ran.err
    Path("pyproject.toml").write_text("[tool.nkic.kernels]\nhalve = 'float32[128, 8]'\n")
    ran = nkic("two.py", "-k", "halve", "--check")
    assert ran.code == 2 and "kernels under [tool.nkic] must be tables" in ran.err


def test_the_only_kernel_with_settings_is_meant(project: Path, nkic: Run) -> None:
    table = '[tool.nkic.kernels.double]\ntarget = "trn1"\nargs = { a = "float32[128, 8]" }\n'
    Path("pyproject.toml").write_text(table)
    Path("one.py").write_text(KERNEL[KERNEL.index("import nki") :])
    ran = nkic("one.py", "--print", "config")
    assert {"trn1", "float32[128,8]"} <= set(ran.out.split())
    assert nkic("one.py", "--check").code == 0
    ran = nkic("k.py", "--print", "config")  # its block comes first, and does not say the target
    assert {"trn1", "float32[128,64]"} <= set(ran.out.split())


def test_messages_are_in_the_order_of_the_files(project: Path, nkic: Run) -> None:
    text = "import time\n" + "x = [i for i in range(100)]\n" * 500 + WRONG
    Path("slow.py").write_text(text, "utf-8")
    ran = nkic("slow.py", "bad.py", "--check", "-j", "2", "--message-format", "json")
    events = [json.loads(line) for line in ran.err.splitlines()]
    assert [event["type"] for event in events] == ["diagnostic", "file"] * 2
    assert [e["path"] for e in events if e["type"] == "file"] == ["slow.py", "bad.py"]
    assert events[1] | {"path": ""} == {
        **{"schema": 1, "type": "file", "path": "", "result": "rejected", "exit": 1},
        **{"errors": 1, "warnings": 0, "written": [], "resources": None},
    }


def test_sarif_json_and_junit_are_about_all_files(project: Path, nkic: Run) -> None:
    Path("bad2.py").write_text("\n" + WRONG, "utf-8")
    words = ("bad.py", "k.py", "bad2.py", "deep/none.py", "gone.py")
    ran = nkic(*words, "--check", "--json", "--message-file", "m.sarif", "--junit", "j.xml")
    (log,) = json.loads(Path("m.sarif").read_text("utf-8"))["runs"]
    places = [result["locations"][0]["physicalLocation"] for result in log["results"]]
    assert [place["artifactLocation"]["uri"] for place in places] == ["bad.py", "bad2.py"]
    assert [place["region"]["startLine"] for place in places] == [14, 15]
    assert len({r["partialFingerprints"]["primaryLocationLineHash"] for r in log["results"]}) == 2
    told = json.loads(ran.out)["files"]
    assert [(one["path"], one["exit"]) for one in told] == [
        *(("bad.py", 1), ("k.py", 0), ("bad2.py", 1), ("deep/none.py", 0), ("gone.py", 2)),
    ]
    suites = ElementTree.fromstring(Path("j.xml").read_text("utf-8"))
    counts = {
        name: int(suites.get(name, "")) for name in ("tests", "failures", "errors", "skipped")
    }
    assert counts == {"tests": 5, "failures": 2, "errors": 1, "skipped": 1}
    failure = suites.find("testsuite/testcase[@name='bad.py']/failure")
    assert failure is not None and failure.text == f"bad.py:14:49: {ODD}"


def test_what_several_files_cannot_have_is_refused_clearly(project: Path, nkic: Run) -> None:
    (project / "file").write_text("", "utf-8")
    (project / "empty").mkdir()
    for words, said in {
        "k.py bad.py -o out.neff": "-o: `out.neff` is a file, and there are several to write",
        "k.py bad.py -o file": "-o: `file` is a file, and there are several to write",
        "k.py deep/inner/k.py": "`k.py` and `deep/inner/k.py` would both be written to `k.neff`",
        "k.py bad.py --emit asm=-": "--emit asm=-: several files would be written to it",
        "k.py bad.py --print kernels": "`--print` is about one file",
        "deep --report resources": "`--report` is about one file",
        "k.py - --check": "standard input is compiled alone",
        "k.py --json": "`--json` is for `--print`, and for several files",
        "k.py --with-source": "`--with-source` needs `--bug-report`",
        "k.py --watch --json": "`--watch` and `--json` cannot be used together",
        "empty": "there is no Python file in the folder",
    }.items():
        ran = nkic(*words.split())
        assert (ran.code, ran.out) == (2, ""), words
        assert said in ran.err, words
    assert list(project.glob("*.neff")) == []


def test_other_outputs_go_to_the_folder(project: Path, nkic: Run) -> None:
    assert nkic("k.py", "deep", "--emit", "ir,asm", "-o", "out").code == 0
    found = sorted(str(path.relative_to("out")) for path in Path("out").rglob("*.*"))
    assert found == ["inner/k.asm", "inner/k.ir", "k.asm", "k.ir"]


def test_a_file_is_found_once_and_one_with_j_is_as_alone(project: Path, nkic: Run) -> None:
    names = [one.path for one in found_in(["./deep/inner/k.py", "deep", "k.py", "k.py"])]
    assert names == ["deep/inner/k.py", "deep/helper.py", "deep/none.py", "k.py"]
    assert nkic("k.py", "-j", "1", "-o", "one.neff").code == 0
    assert Path("one.neff").is_file()


def test_a_process_that_dies_is_one_file_alone(
    project: Path, nkic: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compile_file(line: object, session: object, given: object) -> int:
        if "bad.py" in str(getattr(line, "source", "")):
            os.kill(os.getpid(), signal.SIGKILL)
        return 0

    monkeypatch.setattr("nkic.cli.nkic._compile_file", compile_file)
    ran = nkic("bad.py", "k.py", "--check")
    assert ran.code == 6
    assert [row[:3] for row in rows(ran.out)[1:3]] == [
        ["bad.py", "over", "a"],
        ["k.py", "ok", "0"],
    ]
    assert "nkic was killed from outside" in ran.err


def test_a_broken_answer_is_an_internal_error_about_its_file() -> None:
    pool = many.Pool(lambda line, session, given: 0, Session("nkic"), 1)
    pool.work = lambda line, connection: connection.send_bytes(b"[") or 0  # type: ignore
    (outcome,) = pool.outcomes([filled(CommandLine, {"sources": ("x.py",)})])
    assert (outcome.code, outcome.result) == (70, "internal error")
    assert "no answer about `x.py`" in outcome.diagnostics[0].message


def test_a_hard_limit_of_time_is_that_of_each_file(project: Path, nkic: Run) -> None:
    endless = KERNEL.replace(
        "    tile =", "    n = sum(i for i in range(10**6) for j in range(99))\n    tile =", 1
    )
    Path("bad.py").write_text(endless, "utf-8")
    ran = nkic("bad.py", "k.py", "--check", "--limit", "time=0.5", "--limit", "steps=9999999999")
    assert ran.code == 6 and rows(ran.out)[2][:2] == ["k.py", "ok"]
    assert rows(ran.out)[1][:4] == ["bad.py", "over", "a", "limit"]


# ---- --baseline ---------------------------------------------------------------------------------


def test_cycles_are_compared_with_an_earlier_result(project: Path, nkic: Run) -> None:
    Path("b.py").write_text(KERNEL, "utf-8")
    Path("base.json").write_text(nkic("k.py", "b.py", "--json").out, "utf-8")
    twice = "    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=factor)\n"
    Path("k.py").write_text(KERNEL.replace(twice, 2 * twice), "utf-8")
    words = ("k.py", "b.py", "deep", "-o", "out", "--baseline", "base.json")
    ran = nkic(*words)
    assert ran.code == 0
    assert rows(ran.out)[1][-2:] == ["3,962", "(+5.7%)"] and "(+0.0%)" in ran.out
    assert rows(ran.out)[3][-1] == "3,747"  # a new file
    ran = nkic(*words, "--fail-if", "cycles>+2%,psum_banks>6", "--message-format", "json", "--json")
    assert ran.code == 1
    (error,) = [event for event in map(json.loads, ran.err.splitlines()) if "code" in event]
    assert (error["code"], error["spans"][0]["file"]) == ("NKI1008", "k.py")
    assert "is 3,962, more than 3,822" in error["message"]
    told = json.loads(ran.out)["files"][0]
    assert (told["exit"], told["before"]["cycles"]) == (1, 3747)
    assert nkic(*words, "--fail-if", "cycles>+6%").code == 0
    ran = nkic(*words, "--fail-if", "dma_bytes>+0")
    assert ran.code == 2 and "known are: cycles, sbuf_peak, psum_banks" in ran.err
    ran = nkic("k.py", "--baseline", "k.py")
    assert ran.code == 2 and "is not the output of `nkic --json`" in ran.err


# ---- --fix --------------------------------------------------------------------------------------


def test_fixes_are_applied_reported_and_checked_again(project: Path, nkic: Run) -> None:
    text = "\ufeff" + WRONG.replace("nl.ndarray(a.shape, dtype", "nl.ndarry(a.shape, dtype", 1)
    Path("bad.py").write_bytes(text.replace("\n", "\r\n").encode())
    Path("bad.py").chmod(0o750)
    ran = nkic("bad.py", "k.py", "--fix", "--check")
    assert ran.code == 0
    assert Path("bad.py").read_bytes() == ("\ufeff" + KERNEL).replace("\n", "\r\n").encode()
    assert stat.S_IMODE(Path("bad.py").stat().st_mode) == 0o750
    fixed = [line for line in ran.err.splitlines() if line.startswith("fixed")]
    assert fixed == [
        "fixed bad.py:12:15: write `ndarray`",
        "fixed bad.py:14:52: write `multiply`",
    ]
    assert [path.name for path in project.iterdir() if path.suffix == ".tmp"] == []


def test_what_is_no_safe_fix_stays(project: Path, nkic: Run) -> None:
    text = KERNEL.replace("nl.multiply", "nl.mutlipy")
    Path("bad.py").write_text(text, "utf-8")
    ran = nkic("bad.py", "--fix", "--check")
    assert ran.code == 1 and Path("bad.py").read_text("utf-8") == text
    assert "fixed" not in ran.err and "mutlipy" in ran.err


def test_a_module_that_a_kernel_imports_is_fixed_if_it_is_named(project: Path, nkic: Run) -> None:
    helper = "import nki.language as nl\n\n\ndef op():\n    return nl.multipy\n"
    kernel = "from helper import op\n" + KERNEL.replace("nl.multiply", "op()")
    kernel = kernel.replace("from helper import op\n# ///", "# ///").replace(
        "import nki\n", "import nki\nfrom helper import op\n", 1
    )
    Path("helper.py").write_text(helper, "utf-8")
    Path("k.py").write_text(kernel, "utf-8")
    assert nkic("k.py", "--fix", "--check").code == 1
    assert Path("helper.py").read_text("utf-8") == helper
    assert nkic("k.py", "helper.py", "--fix", "--check").code == 0
    assert "nl.multiply\n" in Path("helper.py").read_text("utf-8")


# ---- --bug-report -------------------------------------------------------------------------------


def test_a_report_of_a_fault_has_no_source_unless_asked(project: Path, nkic: Run) -> None:
    assert nkic("bad.py", "--check", "--bug-report", "r").code == 1
    texts = {path.name: path.read_text("utf-8") for path in Path("r").iterdir()}
    assert texts.keys() == {"run.json", "results.json", "messages.jsonl"}
    assert json.loads(texts["run.json"])["arguments"] == ["bad.py", "--check", "--bug-report", "r"]
    assert json.loads(texts["run.json"])["packages"]["numpy"]
    assert json.loads(texts["messages.jsonl"])["code"] == "NKI0204"
    assert not any("tensor_scalar" in text for text in texts.values())
    assert nkic("bad.py", "--check", "--bug-report", "s", "--with-source").code == 1
    assert Path("s/source/0-bad.py").read_text("utf-8") == WRONG


@pytest.mark.parametrize("into", [".", "r"])
def test_a_report_has_a_folder_of_its_own(into: str, project: Path, nkic: Run) -> None:
    """What is there already, such as source of an earlier report, would be passed on with it."""
    Path("r").mkdir()
    assert nkic("bad.py", "--check", "--bug-report", "r", "--with-source").code == 1
    before = {path: path.read_bytes() for path in Path().rglob("*.*") if path.is_file()}
    done = nkic("bad.py", "--check", "--bug-report", into)
    assert done.code == 2 and f"--bug-report {into}: the folder is not empty" in done.err
    assert {path: path.read_bytes() for path in Path().rglob("*.*") if path.is_file()} == before


def test_a_report_does_not_go_into_a_folder_that_cannot_be_listed(
    project: Path, nkic: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("r").mkdir()

    def denied(folder: Path) -> None:
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr(Path, "iterdir", denied)
    done = nkic("bad.py", "--check", "--bug-report", "r")
    assert done.code == 2 and "cannot read `r`: permission denied" in done.err


HOSTILE = ("..", "a\nb.py", "..\\..\\k.py", "c:k.py", "k\x1b[2J.py", "日本.py", "x" * 250 + ".py")


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("folder", ["", "/home/someone/", "../../"])
def test_a_file_in_a_report_has_a_plain_name(folder: str, name: str) -> None:
    found = in_report(7, folder + name)
    assert re.fullmatch(r"7-[A-Za-z0-9_.-]{1,100}", found)


def test_a_report_has_files_of_any_name_and_no_secret(
    project: Path, nkic: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NKIC_TOKEN", "confidential")
    hostile = Path("x" * 200 + "\n..\\k.py")
    hostile.write_text(WRONG, "utf-8")
    words = ("--check", "--bug-report", "r", "--with-source")
    assert nkic(str(hostile), *words).code == 1
    texts = [path.read_text("utf-8") for path in Path("r").rglob("*.*")]
    assert len(texts) == 4 and texts.count(WRONG) == 1
    assert not any("confidential" in text for text in texts)


# ---- --watch ------------------------------------------------------------------------------------


@contextmanager
def watching(*words: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "nkic.cli.nkic", *words, "--watch", "--check"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=hear_signals,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        process.wait(10)


def summary(process: subprocess.Popen[str]) -> list[str]:
    """Return the next table, up to its last line."""
    assert process.stdout is not None
    lines: list[str] = []
    while not lines or " files: " not in f" {lines[-1]}":
        line = process.stdout.readline()
        assert line, "it ended"
        lines.append(line.strip())
    return [line.split()[0] for line in lines[1:-1]] + [lines[-1]]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_changes_is_compiled_again_until_a_signal(project: Path, number: int) -> None:
    Path("helper.py").write_text("def op(nl):\n    return nl.multiply\n", "utf-8")
    text = KERNEL.replace("nl.multiply", "op(nl)").replace(
        "import nki\n", "import nki\nfrom helper import op\n", 1
    )
    Path("k.py").write_text(text, "utf-8")
    with watching("k.py", "bad.py") as process:
        assert summary(process) == ["k.py", "bad.py", "2 files: 1 ok, 1 rejected"]
        Path("helper.py").write_text("def op(nl):\n    return nl.multipy\n", "utf-8")
        assert summary(process) == ["k.py", "2 files: 2 rejected"]
        if number == signal.SIGTERM:
            Path("bad.py").write_text(KERNEL, "utf-8")
            assert summary(process) == ["bad.py", "2 files: 1 ok, 1 rejected"]
        begun = time.monotonic()
        process.send_signal(number)
        assert process.wait(10) == 1
        assert time.monotonic() - begun < 2


def test_watching_says_what_it_needs(
    project: Path, nkic: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nkic.base.diagnostics.find_spec", lambda name: None)
    ran = nkic("k.py", "--watch")
    assert ran.code == 2 and "--watch needs watchfiles" in ran.err
    assert "python -m pip install watchfiles" in ran.err


def test_an_interrupt_ends_the_processes_of_the_files(project: Path) -> None:
    endless = KERNEL.replace(
        "    tile =", "    n = sum(i for i in range(10**6) for j in range(9999))\n    tile =", 1
    )
    Path("bad.py").write_text(endless, "utf-8")
    words = [sys.executable, "-m", "nkic.cli.nkic", "bad.py", "k.py", "--limit", "steps=9999999999"]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(words, env=environ, preexec_fn=hear_signals, start_new_session=True)
    wait_until(Path("k.neff").exists)
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 130

    def nobody_is_left() -> bool:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return True
        return False

    wait_until(nobody_is_left)


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_watched_process_may_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher, "_page", watcher.Page())
    assert watcher.fork() is None
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    ended = watcher.fork(again=True)
    if ended is None:
        os._exit(9)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)  # a watcher ends with its command
    assert (ended.reason, ended.code) == (watcher.Reason.ITSELF, 9)


def test_a_folder_without_kernels_is_no_file(folder: Path, nkic: Run) -> None:
    Path("empty").mkdir()
    assert nkic("empty", "k.py").code == 0
