"""A service in a process of its own, as users start it."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx

from tests.harness.commands import hear_signals
from tests.judge.test_cheats import REFERENCE

TASK = """
name = "softmax"
[reference]
function = "reference.py:softmax"
[outputs]
rtol = 1e-3
atol = 1e-5
[[case]]
inputs = { x = "f32[128,64]" }
[limits]
seconds = %g
"""
START = 120.0  # seconds


class Served(NamedTuple):
    """A service that runs."""

    port: int
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def served(folder: Path, *options: str, seconds: float = 60) -> Iterator[Served]:
    """Start `nkic serve`, wait until it answers, and end it."""
    (folder / "task.toml").write_text(TASK % seconds)
    (folder / "reference.py").write_text(REFERENCE)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    line = [sys.executable, "-m", "nkic.cli.nkic", "serve", str(folder / "task.toml")]
    process = subprocess.Popen([*line, "--port", str(port), *options], preexec_fn=hear_signals)
    found = Served(port, process)
    until = time.monotonic() + START
    try:
        while not answers(found.url):
            assert process.poll() is None and time.monotonic() < until
            time.sleep(0.1)
        yield found
    finally:
        process.kill()
        process.wait()


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health").status_code == 200
    except httpx.TransportError:
        return False
