"""The commands' limits hold whatever the kernel does; exceeding one prints one line and exits 6."""

import os
import re
import resource
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nkic.base import limits, watcher
from nkic.base.diagnostics import UsageFailed
from nkic.base.limits import Limits
from nkic.base.watcher import NEVER, Page
from tests.harness import warm
from tests.harness.commands import KERNEL, ROOT

STUCK = """
import sys, time
from nkic.base.source import Span
from nkic.base import watch, watcher
import nkic.compiler.pipeline

def stuck(*_, **__):
    watch.note(Span("k.py", 7, 5, 7, 9))
    print("stuck", flush=True)
    {body}

wanted = nkic.compiler.pipeline.compile_source
for module in [*sys.modules.values()]:  # those that have imported it already
    if vars(module).get(wanted.__name__) is wanted:
        setattr(module, wanted.__name__, stuck)
from nkic.cli import start_nkic
sys.exit(start_nkic())
"""
# A single operation of Python that takes minutes: every number has the same hash.
ENDLESS = "set([i * (2**61 - 1) for i in range(200000)])"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "k.py").write_text(KERNEL, encoding="utf-8")
    return tmp_path


def environment() -> dict[str, str]:
    kept = {name: text for name, text in os.environ.items() if not name.startswith("NKI")}
    return {**kept, "NKIC_CACHE": "0"}


class Stuck:
    """nkic on k.py with `body` in place of compiling, which has begun."""

    def __init__(self, folder: Path, body: str, *words: str) -> None:
        code, words = STUCK.format(body=body), ("k.py", "--check", *words)
        self.said = tempfile.TemporaryFile()  # noqa: SIM115
        read, write = os.pipe()
        with os.fdopen(read, "rb") as heard:
            with os.fdopen(write, "wb") as out:
                files = (self.said, out, self.said)
                self.child = warm.start(code, *words, cwd=folder, env=environment(), files=files)
            assert heard.readline() == b"stuck\n"

    def send_signal(self, sent: signal.Signals) -> None:
        os.kill(self.child.pid, sent)

    def ended(self) -> tuple[int, str]:
        code = self.child.wait(60)
        with self.said as file:
            file.seek(0)
            said = file.read().decode()
        assert "Traceback" not in said
        return code, said


def nkic(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return warm.run_text(warm.NKIC, *words, cwd=folder, env=environment())


# ---- time ------------------------------------------------------------------------------------


def test_time_ends_one_operation_that_no_signal_reaches(folder: Path) -> None:
    code, said = Stuck(folder, ENDLESS, "--limit", "time=0.5").ended()
    assert code == 6
    first = said.splitlines()[0]
    assert first.startswith("k.py:7:5: error[NKI0904]: nkic takes more than 0.5 s (`--limit time`)")
    assert "--limit time=SECONDS sets another limit" in said


def test_the_message_comes_in_the_form_that_was_asked_for(folder: Path) -> None:
    words = ("--limit", "time=0.5", "--message-format", "short")
    code, said = Stuck(folder, ENDLESS, *words).ended()
    assert code == 6
    assert re.fullmatch(r"k\.py:7:5: error\[NKI0904\]: .*\n", said)


def test_processor_time_ends_it_too(folder: Path) -> None:
    code, said = Stuck(folder, ENDLESS, "--limit", "cpu=1").ended()
    assert (code, said.count("error[NKI0904]")) == (6, 1)
    assert "has used up its processor time" in said


def test_the_runner_is_ended_too(folder: Path) -> None:
    assert nkic(folder, "k.py", "-o", "k.neff").returncode == 0
    script = STUCK.format(body=ENDLESS)
    for name, other in (
        ("nkic.compiler.pipeline.compile_source", "nkic.cli.nki_run.running.simulate_ranks"),
        ("nkic.compiler.pipeline", "nkic.cli.nki_run.running"),
        ("start_nkic", "start_nki_run"),
    ):
        script = script.replace(name, other)
    words = ("k.neff", "--fill", "zeros", "--limit", "time=0.5", "--outputs", "o.npz")
    done = warm.run_text(script, *words, cwd=folder, env=environment())
    assert (done.returncode, done.stdout) == (6, "stuck\n"), done.stderr
    assert "error[NKI0904]: nki-run takes more than 0.5 s (`--limit time`)" in done.stderr
    assert not (folder / "o.npz").exists()


@pytest.mark.parametrize(
    ("sent", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGQUIT, 131)],
)
def test_signals_end_one_operation(folder: Path, sent: signal.Signals, code: int) -> None:
    child = Stuck(folder, ENDLESS)
    child.send_signal(sent)
    assert child.ended() == (code, "")


def test_the_worker_does_not_outlive_its_watcher(folder: Path) -> None:
    body = f"open('pid', 'w').write(str(__import__('os').getpid())); {ENDLESS}"
    child = Stuck(folder, body)
    while not (worker := (folder / "pid").read_text() if (folder / "pid").exists() else ""):
        time.sleep(0.01)
    assert int(worker) != child.child.pid
    child.send_signal(signal.SIGKILL)
    assert child.ended() == (-signal.SIGKILL, "")
    for _ in range(500):
        if not _runs(int(worker)):
            return
        time.sleep(0.02)
    os.kill(int(worker), signal.SIGKILL)
    raise AssertionError("the worker goes on")


def _runs(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def test_a_crash_of_the_interpreter_is_said(folder: Path) -> None:
    code, said = Stuck(folder, "__import__('os').abort()").ended()
    assert (code, said) == (
        70,
        "error[NKI9001]: internal error in nkic: the interpreter ended with SIGABRT\n",
    )


def test_a_worker_that_the_system_kills(folder: Path) -> None:
    child = Stuck(folder, "__import__('os').kill(__import__('os').getpid(), 9)")
    code, said = child.ended()
    assert code == 6
    assert said.startswith("k.py:7:5: error[NKI9002]: nkic was killed from outside")


def test_an_interrupt_is_heeded_once(folder: Path) -> None:
    """The second interrupt must not disturb the cleanup that the first one started."""
    body = (
        "\n    try: open('ready', 'w').close(); time.sleep(60)\n    finally:"
        "\n        time.sleep(0.5); open('cleaned', 'w').close()"
    )
    child = Stuck(folder, body)
    while not (folder / "ready").exists():
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    assert child.ended() == (130, "")
    assert (folder / "cleaned").exists()


# ---- memory and other resources --------------------------------------------------------------


def test_memory(folder: Path) -> None:
    code, said = Stuck(folder, "bytearray(3 << 30)", "--limit", "memory=1GiB").ended()
    assert code == 6
    text = "error[NKI9002]: the kernel needs more memory than this process may use: 1.0 GiB\n"
    assert said.startswith(text)
    assert "--limit memory=SIZE" in said


def test_the_size_of_a_file(folder: Path) -> None:
    done = nkic(folder, "k.py", "-o", "k.neff", "--limit", "file-size=1K")
    assert done.returncode == 6
    assert done.stderr.startswith("error[NKI0006]: cannot write `k.neff`: file too large")
    assert "--limit file-size=SIZE" in done.stderr
    assert sorted(one.name for one in folder.iterdir()) == ["k.py"]
    done = nkic(folder, "k.py", "-o", "k.neff", "--limit", "file-size=none")
    assert done.returncode == 0


def test_open_files(folder: Path) -> None:
    done = nkic(folder, "k.py", "--check", "--limit", "files=3")
    assert done.returncode == 6, done.stderr
    assert "too many open files" in done.stderr
    assert "--limit files=NUMBER" in done.stderr


LIMITS_SEEN = """
    import resource as r
    found = [r.getrlimit(n) for n in (r.RLIMIT_CORE, r.RLIMIT_NOFILE, r.RLIMIT_CPU)]
    open("seen", "w").write(str(found))
    sys.exit(0)
"""


def test_what_a_worker_may_take(folder: Path) -> None:
    """Core dumps, files, processor time: both the soft and the hard limit."""
    child = Stuck(folder, LIMITS_SEEN, "--limit", "time=40")
    child.ended()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    files = 512 if most == resource.RLIM_INFINITY else min(512, most)
    assert (folder / "seen").read_text() == str([(0, 0), (files, files), (100, 105)])


def test_the_tests_process_is_left_alone() -> None:
    assert watcher.page() is None


# ---- the table -------------------------------------------------------------------------------


def test_the_documented_table_is_the_table() -> None:
    text = (ROOT / "docs/security.md").read_text("utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    wanted = []
    for name, limit in limits.LIMITS.items():
        defaults = limit.defaults
        shown = [limit.shown(defaults[t]) if t in defaults else "-" for t in ("nkic", "nki-run")]
        wanted.append(f"| `{name}` | {limit.meaning} | {shown[0]} | {shown[1]} | {limit.when} |")
    assert [row for row in rows if row.split("`")[1] in limits.LIMITS] == wanted


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("memry=1G", "nkic has no limit `memry`"),
        ("steps=none", "expected a number of steps"),
        ("depth=901", "must be at most 900"),
        ("memory=lots", "expected a number of bytes"),
        ("memory=255MiB", "must be at least 256.0 MiB"),
        ("memory=0", "must be at least 256.0 MiB"),
        ("cpu=-1", "expected a number of seconds"),
        ("cpu=1K", "expected a number of seconds"),
        ("files", "expected a number of files"),
    ],
)
def test_wrong_words(word: str, said: str) -> None:
    with pytest.raises(UsageFailed, match=re.escape(said)):
        limits.read("nkic", [word])
    with pytest.raises(UsageFailed, match="given twice"):
        limits.read("nkic", ["cpu=1", "cpu=2"])


def test_what_a_kernel_may_compute_is_set_like_the_rest() -> None:
    found = limits.evaluation(limits.read("nkic", ["steps=5000", "bits=64", "cpu=none"]))
    assert found == Limits(steps=5000, bits=64)
    with pytest.raises(UsageFailed, match="nki-run has no limit `steps`"):
        limits.read("nki-run", ["steps=5000"])


def test_words() -> None:
    found = limits.read("nkic", ["memory=2GiB", "cpu=none", "file-size=500K", "files=64"])
    assert found == {"memory": 2 << 30, "cpu": None, "file-size": 500 << 10, "files": 64}


def test_values_follow_the_machine_and_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "machine_memory", lambda: 4 << 30)
    found = limits.values("nkic", {"time": 100.5}, {})
    assert (found["memory"], found["cpu"], found["processes"]) == (4 << 30, 160, 0)
    assert limits.values("nki-run", {}, {})["memory"] == 4 << 30
    assert limits.values("nki-run", {}, {limits.THREADS: "4"})["processes"] is None
    with pytest.raises(UsageFailed, match="cannot be used together"):
        limits.values("nki-run", {"processes": 0}, {limits.THREADS: "4"})
    assert limits.values("nkic", {"memory": None, "cpu": 7}, {})["memory"] is None
    monkeypatch.setattr(limits, "machine_memory", lambda: 64 << 30)
    assert limits.values("nkic", {}, {})["memory"] == 8 << 30
    assert limits.values("nki-run", {}, {})["memory"] == 64 << 30


class System:
    """setrlimit and getrlimit, backed by a table."""

    def __init__(self, before: tuple[int, int]) -> None:
        self.now = before

    def getrlimit(self, number: int) -> tuple[int, int]:
        return self.now

    def setrlimit(self, number: int, values: tuple[int, int]) -> None:
        self.now = values


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("files", (1024, 4096), (512, 512)),
        ("files", (100, 200), (100, 200)),
        ("files", (100, -1), (100, 512)),
        ("cpu", (-1, -1), (512, 517)),
    ],
)
def test_a_limit_is_only_lowered(
    monkeypatch: pytest.MonkeyPatch, name: str, before: Any, after: Any
) -> None:
    system = System(before)
    monkeypatch.setattr(resource, "getrlimit", system.getrlimit)
    monkeypatch.setattr(resource, "setrlimit", system.setrlimit)
    limits.apply({name: 512})
    assert system.now == after
    limits.apply({name: None})
    assert system.now == after


# ---- the page --------------------------------------------------------------------------------


@pytest.fixture
def page() -> Iterator[Page]:
    yield Page()


def test_a_page_keeps_time_and_place(page: Page) -> None:
    assert (page.deadline, page.seen) == (NEVER, "")
    page.see("1\n2\nsome/päth")
    page.limit(5.0, 2.5)
    assert (page.deadline, page.seconds, page.seen) == (5.0, 2.5, "1\n2\nsome/päth")
    page.see("x" * 5000)  # too long: the previous location stays
    assert page.seen == "1\n2\nsome/päth"
    page.limit(NEVER, NEVER)
    assert page.seconds == NEVER


def test_no_deadline_is_read_that_nobody_has_set(page: Page) -> None:
    """The watcher kills at once what it takes to be late, while the worker writes its places."""
    page.limit(1e9, 900.0)
    worker = os.fork()
    if worker == 0:
        while True:
            page.see("kernel.py:12:5")
            page.limit(1e9, 900.0)
    try:
        end, seen = time.monotonic() + 2, set()
        while time.monotonic() < end:
            seen |= {page.deadline, page.seconds}
    finally:
        os.kill(worker, signal.SIGKILL)
        os.waitpid(worker, 0)
    assert seen == {1e9, 900.0}
