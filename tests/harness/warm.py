"""Run Python in processes that are forked from one that has imported nkic.

To start Python and import nkic takes most of the time of a test of a command. Tests of the start
itself, and of variables that Python reads when it starts, start Python anew.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[2]
IMPORTED = (
    *("nkic.cli.nkic.carry_out", "nkic.compiler.pipeline", "nkic.compiler.forms"),
    *("nkic.cli.nki_run.running", "nkic.cli.nki_run.carry_out", "nkic.cli.nki_run.inspecting"),
    *("nkic.nki.modules", "nkic.api", "nkic.base.render.text", "nkic.base.limits", "pytest"),
)
# Of Python's variables, those that mean the same in the processes and here.
EVERYWHERE = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE"}
COMMAND = "import sys; from nkic.cli import {0} as start; sys.exit(start())"
NKIC, NKI_RUN = COMMAND.format("start_nkic"), COMMAND.format("start_nki_run")


def script(path: Path | str) -> str:
    """Return the code that runs a file as a script."""
    return f"import runpy; runpy.run_path({str(path)!r}, run_name='__main__')"


@dataclass
class Child:
    pid: int
    link: socket.socket

    def wait(self, timeout: float = 120) -> int:
        """Return the exit code; a signal's is negative."""
        self.link.settimeout(timeout)
        try:
            ended = int(_line(self.link))
        except TimeoutError:
            os.kill(self.pid, signal.SIGKILL)
            raise
        RUNNING.remove(self)
        return ended


RUNNING: list[Child] = []  # at most one


def run(
    code: str,
    *words: str,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    timeout: float = 120,
) -> subprocess.CompletedProcess[bytes]:
    """Run `code` with these arguments, as `python -c` does, until it ends."""
    env = dict(os.environ if env is None else env)
    if any(env.get(name) != os.environ.get(name) for name in {*env, *os.environ} if _early(name)):
        env["PYTHONPATH"] = str(ROOT)
        command = [sys.executable, "-c", code, *words]
        return subprocess.run(
            command, cwd=cwd, env=env, input=stdin, capture_output=True, timeout=timeout
        )
    with ExitStack() as stack:
        given, out, err = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(3))
        given.write(stdin)
        given.seek(0)
        child = start(code, *words, cwd=cwd, env=env, files=(given, out, err))
        ended = child.wait(timeout)
        for file in (out, err):
            file.seek(0)
        return subprocess.CompletedProcess([code, *words], ended, out.read(), err.read())


def run_text(code: str, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Like `run`, with output as text."""
    done = run(code, *words, **options)
    out, err = (part.decode("utf-8", "backslashreplace") for part in (done.stdout, done.stderr))
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)


def _early(name: str) -> bool:
    """Return whether Python reads a variable when it starts."""
    return name.startswith(("PYTHON", "LC_", "LANG")) and name not in EVERYWHERE


def start(
    code: str,
    *words: str,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    files: tuple[IO[bytes], IO[bytes], IO[bytes]],
) -> Child:
    """Start `code` on these standard streams. Only one runs at a time: an earlier one is ended."""
    link = _server()
    while RUNNING:
        with suppress(ProcessLookupError):
            os.kill(RUNNING[0].pid, signal.SIGKILL)
        RUNNING[0].wait()
    link.settimeout(60)
    socket.send_fds(link, [b"!"], [file.fileno() for file in files])
    request = [code, words, str(cwd), dict(os.environ if env is None else env)]
    link.sendall(json.dumps(request).encode() + b"\n")
    RUNNING.append(Child(int(_line(link)), link))
    return RUNNING[0]


@cache
def _server() -> socket.socket:
    """Start the process that has imported nkic; it ends with this one."""
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.harness.warm", str(theirs.fileno())],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )
    atexit.register(process.wait)
    atexit.register(ours.close)
    return ours


def _line(link: socket.socket) -> bytes:
    found = b""
    while not found.endswith(b"\n"):
        part = link.recv(1)
        assert part, "the process that others are forked from has ended"
        found += part
    return found


def serve(link: socket.socket) -> None:
    """Fork a process for each request, and say how it ended."""
    lines = link.makefile("r", encoding="utf-8")
    while fds := socket.recv_fds(link, 1, 3)[1]:
        request = json.loads(lines.readline())
        pid = os.fork()
        if not pid:
            for number, fd in enumerate(fds):
                os.dup2(fd, number)
            os.closerange(3, max(*fds, link.fileno()) + 1)
            _become(*request)
        for fd in fds:
            os.close(fd)
        link.sendall(f"{pid}\n".encode())
        ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        link.sendall(f"{ended}\n".encode())


def _become(code: str, words: list[str], cwd: str, env: dict[str, str]) -> None:
    """Continue as `python -c code words` would."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    tempfile.tempdir = None  # the variables decide
    # Streams of their own: the old ones remember whether their files can be sought.
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, "utf-8", "backslashreplace", closefd=False)
    sys.argv, sys.path[0] = ["-c", *words], ""
    paths = env.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[1:1] = [path for path in paths if path and path not in sys.path]
    exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
    sys.exit()


if __name__ == "__main__":
    for name in IMPORTED:
        import_module(name)
    serve(socket.socket(fileno=int(sys.argv[1])))
