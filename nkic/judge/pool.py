"""Where candidates are judged: in processes here, or on a cluster; a few at a time, in order.

Nothing else in this package knows which: it submits, and reads futures.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from math import inf
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Protocol, TypeVar

from nkic.judge.evaluation import Evaluation
from nkic.judge.process import end_those_of

if TYPE_CHECKING:
    from nkic.judge.judge import Candidate, Judge

AHEAD = 2048  # evaluations that wait for an earlier one
TICK = 0.1  # seconds
R = TypeVar("R")


class Pool(AbstractContextManager["Pool"], Protocol):
    """A place where candidates are judged. Its block's end gives up what is not done."""

    @property
    def width(self) -> int:
        """The number of candidates that it judges at a time."""

    @property
    def depth(self) -> int:
        """The number of candidates that keep it busy, those that wait included."""
        return self.width

    def submit(self, judge: Judge, candidate: Candidate) -> Future[Evaluation]:
        """Judge a candidate; the future raises what `Judge.evaluate` raises. One that is cancelled
        is not judged, unless that has begun.
        """

    def as_they_come(
        self, candidates: Iterable[tuple[Judge, Candidate]], until: float = inf
    ) -> Iterator[tuple[int, Evaluation]]:
        """Yield the evaluations of candidates with the candidates' numbers, as they come.

        At most `depth` candidates are taken and not done, and none is taken that is more than
        `AHEAD` after the oldest of these, so that a reader who wants order keeps few. At the time
        `until` (`time.monotonic`), those that have not begun are given up.
        """
        numbered = enumerate(candidates)
        running: dict[Future[Evaluation], int] = {}  # in the order of their numbers
        done: SimpleQueue[Future[Evaluation]] = SimpleQueue()
        last = -1
        try:
            while True:
                if time.monotonic() >= until:
                    until = inf
                    for future in running:
                        future.cancel()
                while len(running) < self.depth and (
                    last - next(iter(running.values()), last) < AHEAD
                ):
                    taken = next(numbered, None)
                    if taken is None:
                        break
                    last, (judge, candidate) = taken
                    future = self.submit(judge, candidate)
                    running[future] = last
                    future.add_done_callback(done.put)
                if not running:
                    return
                # Without a timeout, a signal that comes just before the wait would not end it.
                with suppress(Empty):
                    future = done.get(timeout=TICK)
                    number = running.pop(future)
                    if not future.cancelled():
                        yield number, future.result()
        finally:
            for future in running:
                future.cancel()


class LocalPool(Pool):
    """Judges `jobs` candidates at a time here: a thread waits for the process of each."""

    def __init__(self, jobs: int = 1) -> None:
        self._jobs = jobs
        self._own: set[threading.Thread] = set()
        own = self._own
        self._threads = ThreadPoolExecutor(
            jobs, "nkic-judge", lambda: own.add(threading.current_thread())
        )

    def __exit__(self, kind: object = None, *error: object) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        try:  # interrupted, `join` would have Python 3.11 take a thread for ended
            while kind is None and any(thread.is_alive() for thread in self._own):
                time.sleep(TICK / 10)
        finally:
            while any(thread.is_alive() for thread in self._own):  # one may start another process
                end_those_of(self._own)
                time.sleep(TICK)

    @property
    def width(self) -> int:
        return self._jobs

    def submit(self, judge: Judge, candidate: Candidate) -> Future[Evaluation]:
        return self._threads.submit(judge.evaluate, candidate)


def in_order(numbered: Iterable[tuple[int, R]]) -> Iterator[R]:
    """Yield results in the order of their numbers."""
    early: dict[int, R] = {}
    following = 0
    for number, result in numbered:
        early[number] = result
        while following in early:
            yield early.pop(following)
            following += 1
