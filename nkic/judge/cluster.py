"""A cluster of Dask as the place where candidates are judged.

The scheduler, its queue and its retries are Dask's. A task travels as the contents of its files,
once to each worker; candidates and evaluations travel as bytes. On a worker, each candidate has
its own process and limits, as here.
"""

from __future__ import annotations

import json
import logging
import multiprocessing
import time
from concurrent.futures import Future
from contextlib import ExitStack
from functools import cache, lru_cache, partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4
from weakref import WeakValueDictionary

import msgpack

import nkic
from nkic.base.diagnostics import UsageFailed, bad_value, need
from nkic.base.text import whole_number
from nkic.base.worker import ALONE, SAFE_PATH, deaf
from nkic.judge.evaluation import Evaluation
from nkic.judge.judge import Candidate, Judge
from nkic.judge.pool import LocalPool, Pool
from nkic.judge.task import task_of

LOCAL = "local:"
BEGUN = "nkic-begun"  # the topic of events that name what begins
ATTEMPTS = 3  # workers that may die of a candidate, in a cluster that is made here
PATIENCE = 10  # seconds to reach a scheduler
NANNYS = "Dask Worker process (from Nanny)"  # the name of a worker's process
DAEMON = "DASK_DISTRIBUTED__WORKER__DAEMON=False"
# What a cluster that is made here runs with; docs/cluster.md says so for others.
SETTINGS = {
    "distributed.worker.daemon": False,  # a worker starts the processes of candidates
    "distributed.scheduler.allowed-failures": ATTEMPTS - 1,
    "distributed.scheduler.worker-saturation": 1.0,  # nobody waits behind one that kills a worker
    "distributed.admin.log-format": "%(message)s",
    "distributed.scheduler.http.routes": [],  # nobody looks
    "distributed.worker.http.routes": [],
}


@cache
def identity() -> str:
    """Return the version of nkic and a hash of its source."""
    folder, digest = Path(nkic.__file__).parent, sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(sha256(path.read_bytes()).digest())
    return f"{nkic.__version__} ({digest.hexdigest()[:12]})"


def pool_of(cluster: str | None, jobs: int) -> Pool:
    """Return the pool of the cluster at an address, or of `jobs` processes here.

    Raises `UsageFailed`.
    """
    if cluster is None:
        return LocalPool(jobs)
    if jobs > 1:
        raise bad_value("--jobs and --cluster exclude each other", "the cluster has its own number")
    return ClusterPool(cluster)


class ClusterPool(Pool):
    """Judges candidates on the cluster at `address`; `local:N` makes one of N workers here.

    Raises `UsageFailed` if no scheduler answers, or a worker has another nkic.
    """

    def __init__(self, address: str) -> None:
        is_tls = address.startswith(LOCAL)
        need("a cluster needs", "distributed", *["cryptography"] * is_tls)
        import distributed as found

        distributed: Any = found  # its annotations are partial
        self._killed = distributed.KilledWorker
        self._quietly = distributed.utils.silence_logging_cmgr
        self._open = ExitStack()
        self._bundles: dict[Judge, Any] = {}
        self._waiting: WeakValueDictionary[str, Future[Evaluation]] = WeakValueDictionary()
        self._width, self._asked = 1, 0.0
        try:
            self._connect(address, distributed)
        except BaseException:
            self.__exit__()
            raise

    def _connect(self, address: str, distributed: Any) -> None:
        where: Any = address
        if address.startswith(LOCAL):
            import dask

            number = whole_number(address.removeprefix(LOCAL), 1024)
            if not number:
                text = f"--cluster: `{address}` has no number of workers"
                raise bad_value(text, "use local:2")
            dask.config.set(SETTINGS)
            ALONE.add(NANNYS)
            self._open.callback(ALONE.discard, NANNYS)
            # Who could reach it, or write where its workers import from, could run code.
            folder = self._open.enter_context(TemporaryDirectory(prefix="nkic-cluster-"))
            own = dask.config.set({"temporary-directory": folder})  # the scheduler's
            with own, deaf():  # ended while it loads, a worker shows it
                where = distributed.LocalCluster(
                    n_workers=number,
                    worker_class=_nanny(),
                    threads_per_worker=1,
                    dashboard_address="127.0.0.1:0",
                    local_directory=folder,
                    env={"TMPDIR": folder},
                    security=distributed.Security.temporary(),
                )
                self._open.callback(where.close)
        try:
            self._client = _client(distributed, where)
            self._open.callback(self._client.close)
            self._client.subscribe_topic(BEGUN, lambda event: self._begin(event[1]))
            self._check()
        except UsageFailed:
            raise
        except Exception as error:  # Dask's, by scheme: TypeError for tls:// without a key
            text = f"--cluster: no scheduler of Dask answers at `{address}`: {error}"
            help = "write tcp://HOST:PORT, or tls:// with Dask's settings of TLS, or local:2"
            raise bad_value(text, help) from error

    def __exit__(self, *error: object) -> None:
        with self._quietly("critical"):  # what still runs is killed, as it should be
            self._open.close()

    @property
    def width(self) -> int:
        """The threads of the cluster."""
        if time.monotonic() > self._asked + 1:  # it may grow
            try:
                self._width = max(1, sum(self._client.nthreads().values()))
            except OSError as error:
                raise bad_value("--cluster: its scheduler is gone", str(error)) from error
            self._asked = time.monotonic()
        return self._width

    @property
    def depth(self) -> int:
        """Four for each thread, so that the cluster never waits for this process."""
        return max(16, 4 * self.width)

    def submit(self, judge: Judge, candidate: Candidate) -> Future[Evaluation]:
        if judge not in self._bundles:  # Dask's own, so that it outlives the workers that have it
            self._bundles[judge] = self._client.submit(bytes, _bundle(judge), pure=False)
        judged: Future[Evaluation] = Future()
        if (known := judge.known(candidate)) is not None:
            judged.set_result(known)
            return judged
        key = f"judge-{uuid4()}"
        self._waiting[key] = judged
        asked = self._client.submit(
            begin_here,
            self._bundles[judge],
            (candidate.name, candidate.data, candidate.kernel),
            identity(),
            key=key,
        )
        asked.add_done_callback(partial(self._finish, judged, judge, candidate))
        judged.add_done_callback(lambda _: asked.release())  # if cancelled, nobody judges it
        return judged

    def _begin(self, key: str) -> None:
        """Make it impossible to cancel what a worker has begun. Other clients' keys come, too."""
        if (judged := self._waiting.pop(key, None)) is not None:
            judged.set_running_or_notify_cancel()

    def _finish(
        self, judged: Future[Evaluation], judge: Judge, candidate: Candidate, asked: Any
    ) -> None:
        """Pass on what a worker answered."""
        self._begin(asked.key)
        if judged.cancelled():
            return
        try:
            found = Evaluation.from_record(json.loads(asked.result()))
            judge.keep(candidate, found)
            judged.set_result(found)
        except self._killed as killed:
            count = killed.allowed_failures + 1
            problem = f"it was given up: {count} workers of the cluster died while they judged it"
            judged.set_result(judge.unjudged(candidate, problem))
        except UsageFailed as failed:
            judged.set_exception(failed)
        except BaseException as error:
            text = f"--cluster: {type(error).__name__}: {error}"
            judged.set_exception(bad_value(text, "look into the logs of its workers"))

    def _check(self) -> None:
        """Refuse a cluster whose workers cannot judge as this process does."""
        for worker, problem in self._client.run(unfit, identity(), on_error="return").items():
            if problem:
                help = "" if DAEMON in problem else "install the same nkic"
                raise bad_value(f"--cluster: worker {worker}: {problem}", help)


def _client(distributed: Any, where: Any) -> Any:
    """Return a client of a scheduler, connected; one that cannot connect is closed.

    As garbage, it would be closed at any time, and wait for ever for a lock if another one starts.
    """

    class Client(distributed.Client):  # type: ignore[misc]
        def start(self, **how: Any) -> None:
            try:
                super().start(**how)
            except BaseException:
                self.close()
                self._loop_runner.stop()  # also of one that has closed itself
                raise

    return Client(where, timeout=PATIENCE, set_as_default=False)


def _nanny() -> Any:
    """Return the class of what starts each worker, also those that follow dead ones."""
    from distributed import Nanny

    class Alone(Nanny):
        async def instantiate(self) -> Any:
            self.silence_logs = logging.CRITICAL  # a worker warns of what is given up
            with SAFE_PATH:
                return await super().instantiate()

    return Alone


def _bundle(judge: Judge) -> bytes:
    task = judge.task
    task.must_be_as_read()
    packed: bytes = msgpack.packb([task.toml, dict(task.files), str(task.folder), judge.options])
    return packed


# What follows runs on workers.


def unfit(wanted: str) -> str:
    """Return why this worker cannot judge for a process with the nkic `wanted`, or nothing."""
    if identity() != wanted:
        return f"it has nkic {identity()}, and {wanted} is needed"
    if multiprocessing.current_process().daemon:
        return f"it may not start processes: start it with {DAEMON} in its environment"
    return ""


@lru_cache(maxsize=16)
def _judge(bundle: bytes) -> Judge:
    toml, files, folder, options = msgpack.unpackb(bundle)
    return Judge(task_of(toml, files, Path(folder)), **options)  # the folder is but a name


def begin_here(bundle: bytes, candidate: tuple[str, bytes, str], wanted: str) -> str:
    """Tell the clients which candidate this worker begins, and judge it. Raises `UsageFailed`."""
    import distributed

    worker = distributed.get_worker()
    worker.log_event(BEGUN, worker.get_current_task())
    return judge_here(bundle, candidate, wanted)


def judge_here(bundle: bytes, candidate: tuple[str, bytes, str], wanted: str) -> str:
    """Judge a candidate on this worker; return its evaluation as JSON. Raises `UsageFailed`."""
    problem = unfit(wanted)
    if problem:
        raise bad_value(f"--cluster: a worker cannot judge: {problem}", "")
    return _judge(bundle).evaluate(Candidate(*candidate)).json(host=True)
