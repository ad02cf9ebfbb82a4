"""Thousands of kernels that try to escape, to exhaust the compiler or to crash it: none succeeds.

Each is compiled by the command, in this process. Its exit code is 0, 1 or 6; nothing is executed,
opened or written; and the work, counted in calls, is bounded.
"""

import builtins
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from nkic.cli.common import run
from nkic.cli.nkic import command
from nkic.source.parse import parse
from tests.harness.hostile import program, programs

STEPS = 2_000_000  # limit for each kernel
CALLS = 20_000_000  # limit of calls of Python functions in one compilation, library code included
MEMORY = 512 << 10  # KiB by which the process may grow in one compilation
VERDICTS = {0, 1, 6}
PROCESSES = ("os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn",
             "subprocess.Popen", "pty.spawn", "socket.connect", "ctypes.dlopen", "os.remove",
             "os.rename", "os.mkdir", "os.chmod", "os.kill")  # fmt: skip
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Watch:
    """Record forbidden operations while a kernel is compiled."""

    def __init__(self) -> None:
        self.opened: list[str] = []
        self.on = False

    def hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Audit hook; Python cannot remove it."""
        if not self.on:
            return
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITES
        if event in PROCESSES or writes:
            self.opened.append(f"{event} {arguments[:2]}")

    def canary(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        """Return a replacement for a function that kernel code must never reach.

        Calls of `open` are allowed from files of Python and nkic, which have absolute paths.
        """

        def call(*args: Any, **more: Any) -> Any:
            caller = sys._getframe(1).f_code.co_filename
            if self.on and (name != "open" or not Path(caller).is_absolute()):
                self.opened.append(name)
                raise RuntimeError(name)
            return real(*args, **more)

        return call


WATCH = Watch()
sys.addaudithook(WATCH.hook)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which kernels are compiled, with the canaries in place."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NKIC_CRASH_DIR", str(tmp_path))
    for holder, name in ((os, "system"), (os, "popen"), (subprocess, "Popen"), (builtins, "open")):
        monkeypatch.setattr(holder, name, WATCH.canary(name, getattr(holder, name)))
    return tmp_path


@contextmanager
def counted() -> Iterator[list[int]]:
    """Count calls of Python functions; the list holds their number."""
    calls = [0]

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        calls[0] += event == "call"

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield calls
    finally:
        sys.setprofile(before)


def compiled(folder: Path, text: str) -> tuple[int, int]:
    """Return the command's exit code, and the number of calls."""
    (folder / "k.py").write_text(text, encoding="utf-8")
    WATCH.opened.clear()
    with counted() as calls:
        WATCH.on = True
        try:
            code = run(command, "nkic", ["k.py", "--check", "--limit", f"steps={STEPS}"])
        finally:
            WATCH.on = False
    return code, calls[0]


def stands(folder: Path, capfd: pytest.CaptureFixture[str], text: str) -> None:
    """Assert that a hostile kernel causes nothing but an exit code."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    capfd.readouterr()
    code, calls = compiled(folder, text)
    said = capfd.readouterr()
    assert code in VERDICTS, said.err
    assert "Traceback" not in said.err
    assert WATCH.opened == []
    assert [path.name for path in folder.iterdir()] == ["k.py"]
    assert calls <= CALLS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before <= MEMORY
    parse.cache_clear()


QUIET = settings(
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@settings(QUIET, max_examples=50)
@given(text=programs())
def test_hostile_kernels_get_a_verdict(
    text: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    stands(folder, capfd, text)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(100))
def test_a_hundred_thousand_hostile_kernels_get_a_verdict(
    chunk: int, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    @seed(chunk)
    @settings(QUIET, max_examples=1000, derandomize=False)
    @given(text=programs())
    def one_chunk(text: str) -> None:
        stands(folder, capfd, text)

    one_chunk()


# ---- tests of this test ------------------------------------------------------------------------


def test_the_canaries_sing(folder: Path) -> None:
    WATCH.opened.clear()
    WATCH.on = True
    try:
        for attempt in (
            lambda: os.system("true"),
            lambda: eval("open('x')"),
            lambda: subprocess.Popen(["true"]),
        ):
            with pytest.raises(RuntimeError):
                attempt()
        (folder / "written").write_text("x")
    finally:
        WATCH.on = False
    assert WATCH.opened[:3] == ["system", "open", "Popen"]
    assert WATCH.opened[3].startswith("open (")


def test_a_kernel_without_harm_passes(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    stands(folder, capfd, program([], [["x = 1"]]))
    assert compiled(folder, program([], [["x = 1"]]))[0] == 0
