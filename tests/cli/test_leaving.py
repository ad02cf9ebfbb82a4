"""How the commands exit: meaningful exit codes, no lost output, no traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nkic.base.levels import page
from tests.harness.commands import ROOT, hear_signals

NKIC = f"{sys.executable} -m nkic.cli.nkic"
FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")


def shell(line: str, folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("NKI", "PYTHON"))}
    kept["NKIC_CACHE"] = "0"
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line.replace('NKIC', NKIC)}"],
        cwd=folder,
        env={**kept, "PYTHONPATH": str(ROOT), **environ},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )


@FULL
@pytest.mark.parametrize(
    ("words", "code"),
    [("nosuch.py", 2), ("bad.py --check", 1), ("nosuch.py --message-format json", 2)],
)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_messages_that_cannot_be_written_do_not_change_the_verdict(
    tmp_path: Path, words: str, code: int, unbuffered: str
) -> None:
    (tmp_path / "bad.py").write_text("def f(:\n")
    done = shell(f"NKIC {words} 2>/dev/full", tmp_path, PYTHONUNBUFFERED=unbuffered)
    assert (done.returncode, done.stdout) == (code, "")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_goes_away_is_noticed(tmp_path: Path, unbuffered: str) -> None:
    line = "NKIC --explain all | head -1"
    done = shell(line, tmp_path, PYTHONUNBUFFERED=unbuffered)
    assert (done.returncode, done.stderr) == (141, "")
    assert done.stdout == "# NKI0001 unknown-option: Unknown option\n"


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_slow_reader_gets_everything(tmp_path: Path, unbuffered: str) -> None:
    """The output is several times the capacity of a pipe."""
    line = "NKIC --explain all | (sleep 0.3; cat)"
    done = shell(line, tmp_path, PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == 0
    assert len(done.stdout) > 200_000
    assert done.stdout == page("all").rstrip() + "\n"


def test_an_interrupt_at_any_import_ends_with_130(tmp_path: Path) -> None:
    """SIGINT arrives during the n-th module lookup, for a few n."""
    code = """if True:
        import os, signal, sys
        class Interrupt:
            left = int(sys.argv.pop(1))
            def find_spec(self, name, path=None, target=None):
                self.left -= 1
                if self.left == 0:
                    os.kill(os.getpid(), signal.SIGINT)
        import nkic.cli
        sys.meta_path.insert(0, Interrupt())
        sys.exit(nkic.cli.start_nkic())
    """
    for number in (1, 3, 7, 20, 60, 120, 180):
        done = subprocess.run(
            [sys.executable, "-c", code, str(number), "nosuch.py"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            preexec_fn=hear_signals,
        )
        assert (done.returncode, done.stdout, done.stderr) == (130, "", ""), number


def test_the_worker_ends_without_freeing_its_objects(tmp_path: Path) -> None:
    """Output through a pipe is still complete, and the exit code is the command's."""
    code = """if True:
        import atexit, sys
        import nkic.cli
        atexit.register(print, "the interpreter was shut down")
        sys.exit(nkic.cli.start_nkic())
    """
    for words, number in ((["--explain", "all"], 0), (["nosuch.py"], 2)):
        done = subprocess.run(
            [sys.executable, "-c", code, *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            encoding="utf-8",
            timeout=60,
        )
        assert (done.returncode, "shut down" in done.stdout) == (number, False)
        assert done.stdout.strip() == ("" if number else page("all").strip())
