"""The service as a process: its command, and how it ends."""

from __future__ import annotations

import re
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from nkic.serve.app import AGAIN_AFTER
from tests.cli.nkic_fixtures import folder, nkic
from tests.harness.commands import Run
from tests.judge.test_cheats import GOOD, OUT, RACING, REFERENCE
from tests.serve.process import TASK, Served, answers, served

__all__ = ["folder", "nkic"]  # fixtures
ONE = {"task": "softmax", "candidate": {"name": "good.py", "text": GOOD}}
LOOPS = "    for i in range(100000):\n        for j in range(100000): pass\n"
LONG = {"task": "softmax", "candidate": {"text": GOOD.replace(OUT, OUT + LOOPS)}, "wait": 0}


@pytest.mark.slow  # starts a service, and judges
def test_a_service_ends_when_it_has_answered(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a token of some length\n")
    options = ("--host", "0.0.0.0", "--token", str(tmp_path / "token"), "--grace", "100")
    header = {"Authorization": "Bearer a token of some length"}
    with served(tmp_path, *options) as service:
        assert httpx.post(f"{service.url}/evaluate", json=ONE).status_code == 401
        with socket.create_connection(("127.0.0.1", service.port)) as rude:
            rude.sendall(b"GARBAGE\r\n\r\n")
            assert b"400 Bad Request" in rude.recv(4096)
        answers: list[Any] = []

        def ask() -> None:
            url, more = f"{service.url}/evaluate", {"headers": header, "timeout": 200}
            answers.append(httpx.post(url, json=ONE, **more).json())  # type: ignore[arg-type]

        asking = threading.Thread(target=ask)
        asking.start()
        while httpx.get(f"{service.url}/health").json()["held"] == 0:
            pass
        service.process.send_signal(signal.SIGTERM)
        asking.join()
        assert answers[0]["evaluations"][0]["evaluation"]["status"] == "correct"
        assert service.process.wait(60) == 0


def test_a_service_that_cannot_start(
    tmp_path: Path, nkic: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "task.toml").write_text(TASK % 8)
    (tmp_path / "reference.py").write_text(REFERENCE)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        ran = nkic("serve", str(tmp_path / "task.toml"), "--port", port)
    said = f"cannot listen on 127.0.0.1:{port}: "
    assert ran.code == 2 and said in ran.err and "already in use" in ran.err
    assert "serving" not in ran.err
    monkeypatch.setattr("uvicorn.Server.run", lambda *_: sys.exit(3))  # when it starts
    ran = nkic("serve", str(tmp_path / "task.toml"), "--port", port)
    assert ran.code == 2 and "the service did not start" in ran.err
    assert "serving" not in ran.err


def test_a_service_tells_that_it_listens(
    tmp_path: Path, nkic: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ends(server: object) -> None: ...

    (tmp_path / "task.toml").write_text(TASK % 8)
    (tmp_path / "reference.py").write_text(REFERENCE)
    monkeypatch.setattr("uvicorn.Server.main_loop", ends)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    ran = nkic("serve", str(tmp_path / "task.toml"), "--port", port)
    assert ran.code == 0
    assert f"serving softmax on http://127.0.0.1:{port}\n" in ran.err  # also in a log


@pytest.mark.slow  # starts a service
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_service_returns_what_it_cannot_finish(tmp_path: Path, number: signal.Signals) -> None:
    with served(tmp_path, "--grace", "1", seconds=8) as service:
        endless = {"task": "softmax", "candidate": {"text": RACING}, "wait": 0}
        url = f"{service.url}/evaluate"
        (job,) = httpx.post(url, json=endless).json()["evaluations"]
        with httpx.stream("GET", f"{service.url}/events?id={job['id']}", timeout=60) as events:
            service.process.send_signal(number)
            told = events.read().decode()
        assert '"state": "returned"' in told and told.endswith("event: end\ndata: {}\n\n")
        assert service.process.wait(60) == 0


def begun(service: Served) -> str:
    """Return the id of a candidate that runs for long."""
    (job,) = httpx.post(f"{service.url}/evaluate", json=LONG).json()["evaluations"]
    while httpx.get(f"{service.url}/evaluations/{job['id']}").json()["state"] != "running":
        pass
    return str(job["id"])


@pytest.mark.slow  # starts a service
def test_a_service_that_is_interrupted_again_ends_at_once(tmp_path: Path) -> None:
    with served(tmp_path, "--grace", "900", seconds=900) as service:
        with httpx.stream("GET", f"{service.url}/events?id={begun(service)}", timeout=60) as events:
            service.process.send_signal(signal.SIGINT)
            while answers(service.url):
                time.sleep(0.1)
            time.sleep(2 * AGAIN_AFTER)  # it takes two that come together for one
            service.process.send_signal(signal.SIGINT)
            told = events.read().decode()
        assert '"state": "returned"' in told and told.endswith("event: end\ndata: {}\n\n")
        assert service.process.wait(60) == 128 + signal.SIGINT


@pytest.mark.slow  # starts a service
def test_a_service_that_is_interrupted_after_its_grace_ends_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with served(tmp_path, "--grace", "1", seconds=900) as service:
        with httpx.stream("GET", f"{service.url}/events?id={begun(service)}", timeout=60) as events:
            service.process.send_signal(signal.SIGINT)
            assert '"state": "returned"' in events.read().decode()
        time.sleep(2 * AGAIN_AFTER)  # now it waits for the candidate's end
        service.process.send_signal(signal.SIGINT)
        assert service.process.wait(60) == 128 + signal.SIGINT
        assert not list(tmp_path.glob("nkic-candidate-*"))


@pytest.mark.slow  # starts a service, and a cluster
def test_a_service_finishes_what_its_cluster_runs(tmp_path: Path) -> None:
    """A candidate is ended by its limit, and the other one waits for the only worker."""
    options = ("--cluster", "local:1", "--grace", "100")
    with served(tmp_path, *options, seconds=20) as service:
        endless = [{"name": f"{n}.py", "text": RACING} for n in range(2)]
        asked = {"task": "softmax", "candidates": endless, "wait": 0}
        jobs = httpx.post(f"{service.url}/evaluate", json=asked).json()["evaluations"]
        urls = [f"{service.url}/evaluations/{job['id']}" for job in jobs]
        while "running" not in (states := [httpx.get(url).json()["state"] for url in urls]):
            assert "done" not in states
        ids = "&".join(f"id={job['id']}" for job in jobs)
        with httpx.stream("GET", f"{service.url}/events?{ids}", timeout=100) as events:
            service.process.send_signal(signal.SIGTERM)
            told = events.read().decode()
        assert sorted(re.findall('"state": "([a-z]*)"', told)) == ["done", "returned"]
        assert service.process.wait(60) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "no task is given"),
        (("task.toml", "--host", "0.0.0.0"), "whoever reaches it could use it"),
        (("task.toml", "--token", "empty"), "`empty` is empty"),
        (("task.toml", "--token", "short"), "a token has fewer than 16 characters"),
        (("task.toml", "--secret", "short"), "the secret in `short` is short: it could be guessed"),
        (("task.toml", "task.toml"), "two tasks are called `softmax`"),
    ],
    ids=range(6),
)
def test_what_is_not_served(
    folder: Path, nkic: Run, options: tuple[str, ...], message: str
) -> None:
    (folder / "task.toml").write_text(TASK % 60)
    (folder / "reference.py").write_text(REFERENCE)
    (folder / "empty").write_text("\n")
    (folder / "short").write_text("secret\n")
    found = nkic("serve", *options)
    assert found.code == 2 and message in found.err


def test_a_missing_package_is_named(
    folder: Path, nkic: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nkic.base.diagnostics.find_spec", lambda name: None)
    found = nkic("serve", "task.toml")
    assert found.code == 2 and "pip install starlette uvicorn prometheus_client" in found.err
