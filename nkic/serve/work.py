"""What the service holds: evaluations that are asked for, and those that are done.

The pool has the queue. An evaluation's id is the hash of all that it depends on, so that asking
again is the same evaluation.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress

from prometheus_client import CollectorRegistry, Gauge, Histogram
from prometheus_client import Counter as Total

from nkic.base.diagnostics import NkicError
from nkic.judge import Candidate, Evaluation, Judge, Pool
from nkic.serve.limits import Limits, Refused

AGAIN = ("failed", "returned")  # ends after which asking again begins again


class Job:
    """One evaluation: queued, running, then done, failed (by the task) or returned undone."""

    def __init__(self, id: str, task: str, token: int) -> None:
        self.id, self.task, self.token = id, task, token
        self.ended = asyncio.Event()
        self.future: Future[Evaluation] | None = None
        self.evaluation, self.problem, self.end = b"", "", ""

    @property
    def state(self) -> str:
        running = self.future is not None and self.future.running()
        return self.end or ("running" if running else "queued")

    @property
    def json(self) -> bytes:
        """The job as JSON, with the evaluation's own bytes."""
        told = {"id": self.id, "task": self.task, "state": self.state}
        head = json.dumps(told | ({"problem": self.problem} if self.problem else {}))
        return head[:-1].encode() + b', "evaluation": ' + (self.evaluation or b"null") + b"}"


class Work:
    """The jobs of the service. Every method runs in the thread of the event loop."""

    def __init__(self, judges: Mapping[str, Judge], pool: Pool, limits: Limits) -> None:
        self.judges, self.pool, self.limits = judges, pool, limits
        self.jobs: dict[str, Job] = {}  # those that are done: the oldest first
        self.held: Counter[int] = Counter()  # jobs that are not done, by token
        self.bytes, self.stopping = 0, False
        self.spent, self.judged = 0.0, 0  # seconds, and candidates that took them
        to = self.registry = CollectorRegistry()
        labels = ("task", "status")
        self.done = Total("nkic_evaluations", "Evaluations that are done.", labels, registry=to)
        self.seconds = Histogram(
            "nkic_evaluation_seconds", "What they took.", ("task",), registry=to
        )
        self.answers = Total("nkic_answers", "Answers, by HTTP status.", ("code",), registry=to)
        Gauge("nkic_held", "Candidates that are not done.", registry=to).set_function(
            self.held.total
        )

    def accept(self, task: str, candidates: Sequence[Candidate], token: int) -> list[Job]:
        """Return the jobs of candidates; all are taken, or none. Raises `Refused`."""
        judge = self.judges.get(task)
        if judge is None:
            raise Refused(404, "there is no such task; GET /tasks lists them")
        if self.stopping:
            raise Refused(503, "the service is about to end", {"Retry-After": "30"})
        asked = {judge.key(candidate): candidate for candidate in candidates}
        new = [key for key in asked if key not in self.jobs or self.jobs[key].end in AGAIN]
        for what, held, most in (
            ("queue", self.held.total(), self.limits.queue),
            ("token", self.held[token], self.limits.token),
        ):
            if new and held + len(new) > most:
                text = f"{held} candidates of this {what} are not done; {most} may be"
                raise Refused(429, text, {"Retry-After": str(self._pause(len(new)))})
        for key in new:
            self._begin(judge, key, asked[key], token)
        return [self.jobs[judge.key(candidate)] for candidate in candidates]

    def _begin(self, judge: Judge, key: str, candidate: Candidate, token: int) -> None:
        job = self.jobs[key] = Job(key, judge.task.name, token)
        self.held[token] += 1
        loop = asyncio.get_running_loop()

        def told(_: object) -> None:
            with suppress(RuntimeError):  # the service has ended
                loop.call_soon_threadsafe(self._finish, job)

        job.future = self.pool.submit(judge, candidate)
        job.future.add_done_callback(told)

    def _finish(self, job: Job) -> None:
        if job.end or job.future is None:
            return
        try:
            found = job.future.result(0)
        except NkicError as error:
            self._end(job, "failed", str(error))
        except BaseException as error:
            returned = self.stopping or job.future.cancelled()
            self._end(job, "returned" if returned else "failed", f"{type(error).__name__}")
        else:
            job.evaluation = found.json().encode()
            self.done.labels(job.task, found.status).inc()
            self.seconds.labels(job.task).observe(found.seconds)
            self.spent, self.judged = self.spent + found.seconds, self.judged + 1
            self._end(job, "done")
            self._keep(job)

    def _end(self, job: Job, end: str, problem: str = "") -> None:
        job.end, job.problem, job.future = end, problem, None
        self.held[job.token] -= 1
        job.ended.set()

    def _keep(self, job: Job) -> None:
        self.jobs[job.id] = self.jobs.pop(job.id)  # the youngest
        self.bytes += len(job.evaluation)
        while self.bytes > self.limits.kept:
            oldest = next(one for one in self.jobs.values() if one.end)
            self.bytes -= len(oldest.evaluation)
            del self.jobs[oldest.id]

    async def wait(self, jobs: Iterable[Job], seconds: float) -> bool:
        """Wait until all jobs ended, for some seconds at most; return whether they did."""
        try:
            async with asyncio.timeout(seconds):
                for job in jobs:
                    await job.ended.wait()
        except TimeoutError:
            return False
        return True

    def stop(self) -> None:
        """Take no more, return what does not run, and what still runs when the grace is over."""
        self.stopping = True
        for job in [job for job in self.jobs.values() if not job.end]:
            if job.future is not None and job.future.cancel():
                self._return(job)
        asyncio.get_running_loop().call_later(self.limits.grace, self._give_up)

    def _give_up(self) -> None:
        for job in [job for job in self.jobs.values() if not job.end]:
            self._return(job)

    def _return(self, job: Job) -> None:
        if not job.end:
            self._end(job, "returned", "the service ended before it was judged; ask again")

    def _pause(self, more: int) -> int:
        """Return the seconds after which there may be room for more."""
        mean = self.spent / self.judged if self.judged else 1.0
        return max(1, min(60, round(mean * more / self.pool.width)))
