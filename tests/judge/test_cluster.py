"""A cluster of processes judges as this process does, whatever happens to its workers."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import dask
import distributed
import msgpack
import psutil
import pytest

import nkic
from nkic.base.diagnostics import UsageFailed
from nkic.judge import Candidate, Evaluation, Judge, read_task
from nkic.judge.cluster import SETTINGS, ClusterPool, _bundle, _client, identity, judge_here, unfit
from tests.harness.commands import ROOT, hear_signals
from tests.judge.test_cheats import GOOD, REFERENCE, ROUNDED, TASK
from tests.judge.test_pool import until

LocalCluster: Any = distributed.LocalCluster
# Loaded by workers: candidates that say so do to a worker what no candidate can.
HOSTILE = """
import os, time
from nkic.judge import Judge

def evaluate(judge, candidate, evaluate=Judge.evaluate):
    if b"hold it" in candidate.data:
        print(candidate.name, file=open("begun", "a"), flush=True)
        while not os.path.exists("go"):
            time.sleep(0.05)
    if b"kill the worker" in candidate.data:
        time.sleep(4)  # a nanny forgets a worker that ends while it starts
        os._exit(1)
    held = []
    while b"fill the worker" in candidate.data:
        held.append(b"x" * (32 << 20))
        time.sleep(0.05)
    return evaluate(judge, candidate)

Judge.evaluate = evaluate
"""


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    folder = tmp_path_factory.mktemp("task")
    (folder / "task.toml").write_text(TASK)
    (folder / "reference.py").write_text(REFERENCE)
    return Judge(read_task(folder / "task.toml"), secret="mine", families=False, orders=0)


def candidates(count: int, text: str = GOOD) -> list[Candidate]:
    return [Candidate.of_text(f"{text}# {n}\n", f"{n}.py") for n in range(count)]


def lines(found: Iterator[Evaluation]) -> list[str]:
    return [evaluation.json() for evaluation in found]


@contextmanager
def cluster(workers: int, **options: Any) -> Iterator[Any]:
    with (
        dask.config.set(SETTINGS),
        LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=None, **options
        ) as made,
    ):
        yield made


def test_a_worker_needs_the_contents_of_a_task_alone(judge: Judge) -> None:
    for candidate in (Candidate.of_text(ROUNDED), Candidate.of_text("no kernel")):
        bundle = _bundle(judge)
        assert str(judge.task.folder).encode() in bundle  # its name is the task's default name
        elsewhere = msgpack.unpackb(bundle)
        elsewhere[2] = f"/nowhere/{judge.task.folder.name}"
        told = judge_here(
            msgpack.packb(elsewhere), (candidate.name, candidate.data, ""), identity()
        )
        assert Evaluation.from_record(json.loads(told)).json() == judge.evaluate(candidate).json()


def test_a_worker_says_if_it_has_another_nkic(judge: Judge) -> None:
    assert unfit(identity()) == ""
    with pytest.raises(UsageFailed, match=r"it has nkic .*, and 9\.9 \(beef\) is needed"):
        judge_here(_bundle(judge), ("a.py", b"", ""), "9.9 (beef)")


@pytest.mark.parametrize("address", ["local:", "local:0", "local:two"])
def test_a_number_of_workers_is_a_number(address: str) -> None:
    with pytest.raises(UsageFailed, match="has no number of workers"):
        ClusterPool(address)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "tls://127.0.0.1:1", "ucx://x:1", "x"])
def test_an_address_where_nobody_answers(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """tls:// without a key, and ucx:// without its library, are TypeErrors of Dask's."""
    monkeypatch.setattr("nkic.judge.cluster.PATIENCE", 0.2)
    before = {*threading.enumerate()}
    with pytest.raises(UsageFailed, match="no scheduler of Dask answers") as raised:
        ClusterPool(address)
    assert "tcp://HOST:PORT" in (raised.value.diagnostics[0].help or "")
    loops = [thread for thread in threading.enumerate() if thread.name == "IO loop"]
    assert {*loops} <= before, "a client is left to the garbage collector, which can wait for ever"


@pytest.mark.slow  # starts workers
def test_a_cluster_gives_the_same_bytes_in_the_same_order(judge: Judge) -> None:
    given = [*candidates(4), *candidates(4, ROUNDED), Candidate.of_text("no kernel")]
    with ClusterPool("local:2") as pool:
        found = list(judge.evaluate_all(given, pool=pool))
        other = Judge(judge.task, time_only=True)
        assert [e.status for e in other.evaluate_all(given[:1], pool=pool)] == ["compiled"]
    assert [e.json() for e in found] == lines(judge.evaluate_all(given))
    assert [e.status for e in found] == ["correct"] * 4 + ["cheat"] * 4 + ["refused"]
    assert all(evaluation.seconds > 0 for evaluation in found)


@pytest.mark.slow  # starts workers
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_terminal_ends_a_cluster_of_ours_with_all_that_it_made(
    judge: Judge, tmp_path: Path, number: signal.Signals
) -> None:
    """A terminal sends its signals to the workers as well."""
    endless = GOOD.replace("    out =", "    while nl: pass\n    out =", 1)
    (tmp_path / "tmp").mkdir()
    for name, text in {"good.py": GOOD, "endless.py": endless}.items():
        (tmp_path / name).write_text(text)
    words = (str(judge.task.folder / "task.toml"), "good.py", "endless.py", "--cluster", "local:2")
    process = subprocess.Popen(
        [sys.executable, "-m", "nkic.cli.nkic", "evaluate", *words, "-v", "--jsonl", "o.jsonl"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path / "tmp")},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=hear_signals,
        start_new_session=True,
    )
    with process:
        assert process.stdout is not None and process.stdout.readline() == "good.py: correct\n"
        os.killpg(process.pid, number)
        said = process.stdout.read()
        assert process.wait(60) == 128 + number
    assert said == "`o.jsonl` is not written: what was done is in `o.jsonl.part`, 1 line\n"
    assert [*(tmp_path / "tmp").iterdir()] == []
    assert until(lambda: not alive(process.pid), 10), alive(process.pid)


def alive(session: int) -> list[str]:
    """Return the commands of the processes of a session."""
    found = []
    for process in psutil.process_iter(["status", "cmdline"]):
        with suppress(ProcessLookupError):
            if os.getsid(process.pid) == session and process.info["status"] != "zombie":
                found.append(" ".join(process.info["cmdline"]))
    return found


@pytest.mark.slow  # starts a worker
def test_a_cluster_of_ours_answers_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    with (pool := ClusterPool("local:1")):
        monkeypatch.setattr("nkic.judge.cluster.PATIENCE", 1)
        told = pool._client.scheduler_info()
        (worker,) = told["workers"].values()
        for address in (told["address"], told["address"].replace("tls:", "tcp:")):
            with pytest.raises((OSError, TypeError)):  # TypeError: tls without a certificate
                _client(distributed, address)
        folder = Path(worker["local_directory"]).parents[1]
        assert folder.name.startswith("nkic-cluster-") and folder.stat().st_mode & 0o77 == 0
        (port, *_) = told["services"].values()
        with socket.create_connection(("127.0.0.1", port)) as looking:
            looking.sendall(b"GET /info/main/workers.html HTTP/1.0\r\n\r\n")
            assert b" 404 " in looking.recv(99)
    assert not folder.exists()


@pytest.mark.slow  # starts workers
def test_a_worker_that_is_killed_loses_nothing(judge: Judge) -> None:
    given = candidates(16)
    with cluster(2) as made, (pool := ClusterPool(made.scheduler_address)):
        pids = set(pool._client.run(os.getpid).values())
        found = judge.evaluate_all(given, pool=pool)
        first = [next(found), next(found)]
        os.kill(min(pids), 9)
        rest = list(found)
        made.wait_for_workers(2)
        assert min(pids) not in pool._client.run(os.getpid).values()
    assert [e.json() for e in first + rest] == lines(judge.evaluate_all(given, jobs=2))


@pytest.mark.slow  # workers die, and others are started
@pytest.mark.parametrize("does", ["kill the worker", "fill the worker"])
def test_a_candidate_that_workers_die_of_is_given_up(
    judge: Judge, tmp_path: Path, does: str
) -> None:
    (tmp_path / "hostile.py").write_text(HOSTILE)
    given = candidates(7)
    given[2] = Candidate.of_text(f"{GOOD}# {does}\n", "hostile.py")
    hostile = {"preload": [str(tmp_path / "hostile.py")], "memory_limit": "600MiB"}
    with cluster(2, **hostile) as made, ClusterPool(made.scheduler_address) as pool:
        found = list(judge.evaluate_all(given, pool=pool))
    assert found[2].problem == "it was given up: 3 workers of the cluster died while they judged it"
    assert not found[2].correct and found[2].candidate == "hostile.py"
    del found[2], given[2]
    assert [e.json() for e in found] == lines(judge.evaluate_all(given, jobs=2))


@pytest.mark.slow  # starts workers
def test_what_a_worker_has_begun_runs_and_the_rest_can_be_cancelled(
    judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "held.py").write_text(HOSTILE)
    held = {"preload": [str(tmp_path / "held.py")]}
    with cluster(2, **held) as made, (pool := ClusterPool(made.scheduler_address)):
        assert (pool.width, pool.depth) == (2, 16)
        given = candidates(16, f"{GOOD}# hold it\n")
        futures = dict(zip(given, (pool.submit(judge, each) for each in given), strict=True))
        assert until(lambda: sum(map(Future.running, futures.values())) == 2, 60)
        runs = {each.name: future for each, future in futures.items() if not future.cancel()}
        assert len(runs) == 2
        assert until(lambda: sum(pool._client.run(waiting).values()) == 0, 60)
        (tmp_path / "go").touch()
        assert all(future.result(60).correct for future in runs.values())
        assert all(e.correct for e in judge.evaluate_all(candidates(4), pool=pool))
    assert {*(tmp_path / "begun").read_text().split()} == {*runs}


def waiting(dask_worker: Any) -> int:
    """Return the number of tasks that this worker has and does not run."""
    return len(dask_worker.state.ready)


@pytest.mark.slow  # starts a worker of another version
def test_a_worker_of_another_version_is_refused(judge: Judge, tmp_path: Path) -> None:
    source = Path(nkic.__file__).parent
    shutil.copytree(source, tmp_path / "nkic", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(source.parent / "grammar", tmp_path / "nkic" / "grammar")
    with (tmp_path / "nkic" / "__init__.py").open("a") as stream:
        stream.write("# another\n")
    with cluster(0) as made, ClusterPool(made.scheduler_address) as pool:
        found = judge.evaluate_all(candidates(2), pool=pool)  # waits for a worker
        line = ["-m", "distributed.cli.dask_worker", made.scheduler_address, "--no-nanny"]
        there = {"PYTHONPATH": str(tmp_path)}
        worker = subprocess.Popen([sys.executable, *line], cwd=tmp_path, env=os.environ | there)
        try:
            with pytest.raises(UsageFailed, match=r"it has nkic 0.*, and 0.* is needed"):
                next(found)
            with pytest.raises(UsageFailed, match=r"worker tcp://.*: it has nkic 0.* is needed"):
                ClusterPool(made.scheduler_address)
        finally:
            worker.kill()
            worker.wait()


@pytest.mark.slow  # starts workers
def test_a_worker_that_may_not_start_processes_is_refused() -> None:
    with dask.config.set({"distributed.worker.daemon": True}):
        made = LocalCluster(n_workers=1, dashboard_address=None)
    match = "DASK_DISTRIBUTED__WORKER__DAEMON=False"
    with made, pytest.raises(UsageFailed, match=match) as refused:
        ClusterPool(made.scheduler_address)
    assert refused.value.diagnostics[0].help == ""  # it is the same nkic


@pytest.mark.slow  # starts workers
def test_a_cluster_that_ends_ends_the_work_with_an_error(judge: Judge) -> None:
    with cluster(1) as made:
        pool = ClusterPool(made.scheduler_address)
        found = judge.evaluate_all(candidates(30), pool=pool)
        next(found)
    with pool, pytest.raises(UsageFailed, match="--cluster: "):
        list(found)
