"""Run mutants one after another in forks of one process that has collected the tests.

First, a run without a change records which test enters which function. A mutant is then tried with
the tests that enter its function, the quickest first, until one fails.
"""

import gc
import json
import os
import resource
import select
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.mutate.live import Caches, Calls, Live, changed

MEMORY = 6 << 30  # bytes of address space: a mutant may allocate without end
KEEN = 10  # a test that has killed a mutant is ordered as if it took a tenth of its time
SPARE = 8.0  # seconds of CPU that a test may take beyond ten times its usual ones
WALL = 300.0  # seconds for one test of a mutant: one that waits for ever takes no CPU


class Asked(NamedTuple):
    """A test: whether it passes, its seconds of CPU, and the code that it enters."""

    passes: bool
    seconds: float
    entered: frozenset[str]


class Verdict(NamedTuple):
    noticed: str  # the test that failed, or nothing
    asked: int  # the number of tests that enter the changed code
    early: bool  # it ran on import: this process cannot test it


Map = dict[str, Asked]


def _forked(work: Callable[[int], None], wall: float | None = WALL) -> str:
    """Run a function in a fork, which writes to the given pipe."""
    sys.stdout.flush()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.setpgid(0, 0)
        nothing = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(nothing, stream)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        try:
            work(writer)
        finally:
            os._exit(0)
    os.close(writer)
    text = _read(reader, child, wall)
    os.close(reader)
    return text


def _read(reader: int, child: int, wall: float | None) -> str:
    """Read all that the child writes; end the child if it is silent for this number of seconds."""
    pieces = []
    while select.select([reader], [], [], wall)[0]:
        piece = os.read(reader, 1 << 16)
        if not piece:
            break
        pieces.append(piece)
    else:
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return b"".join(pieces).decode()


def _run(items: list[pytest.Item], index: int) -> bool:
    """Return whether a test passes; the next test decides which fixtures stay."""
    item, following = items[index], items[index + 1] if index + 1 < len(items) else None
    before = item.session.testsfailed
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    return item.session.testsfailed == before


def _write(path: Path, items: list[pytest.Item], caches: Caches) -> None:
    """Add a line for each test to the map: its name, whether it passes, seconds and functions."""

    def work(_: int) -> None:
        with path.open("a", encoding="utf-8") as file:
            for index, item in enumerate(items):
                caches.empty()
                calls, start = Calls(), time.process_time()
                sys.settrace(calls)
                passed = _run(items, index)
                sys.settrace(None)
                line = [item.nodeid, passed, time.process_time() - start, sorted(calls.names())]
                print(json.dumps(line), file=file, flush=True)

    _forked(work, None)


def _read_map(path: Path) -> Map:
    found: Map = {}
    for line in path.read_text("utf-8").splitlines() if path.exists() else ():
        name, passed, seconds, keys = json.loads(line)
        found[name] = Asked(passed, seconds, frozenset(keys))
    return found


def mapped(path: Path, items: list[pytest.Item], caches: Caches) -> Map:
    """Return every test that passes without a change; tests missing in the map are added to it."""
    known = _read_map(path)
    if missing := [item for item in items if item.nodeid not in known]:
        _write(path, missing, caches)
        known = _read_map(path)
    return {name: one for name, one in known.items() if one.passes}


class Judge:
    """A plugin that runs the collected tests on mutants instead of once."""

    def __init__(self, calls: Calls, path: Path, limit: float) -> None:
        self.calls, self.path, self.limit = calls, path, limit
        self.caches: Caches
        self.sound: dict[str, bool] = {}
        self.kills: Counter[str] = Counter()  # tests that killed others run earlier
        self.mutants: Sequence[tuple[str, str]] = ()
        self.told: Callable[[int, Verdict, float], None] = lambda *_: None

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Replace the usual loop."""
        sys.settrace(None)
        gc.unfreeze()  # what is frozen after collection would not be found, nor changed
        for path, _ in self.mutants:  # some are imported only at their first use
            import_module(path.removesuffix(".py").replace("/", "."))
        live, self.caches = Live(self.calls.names()), Caches()
        tests = mapped(self.path, session.items, self.caches)
        items = {item.nodeid: item for item in session.items if item.nodeid in tests}
        for index, (path, text) in enumerate(self.mutants):
            start = time.monotonic()
            verdict = self.verdict(live, items, tests, path, text)
            while verdict.noticed and not self.passes(items[verdict.noticed]):
                del tests[verdict.noticed], items[verdict.noticed]
                verdict = self.verdict(live, items, tests, path, text)
            self.told(index, verdict, time.monotonic() - start)
        return True

    def passes(self, item: pytest.Item) -> bool:
        """Return whether a test passes without a change now: the map may be older."""
        if item.nodeid not in self.sound:

            def work(writer: int) -> None:
                os.write(writer, b"passes" if _run([item], 0) else b"fails")

            self.sound[item.nodeid] = _forked(work) == "passes"
        return self.sound[item.nodeid]

    def order(self, tests: Map, path: str) -> list[str]:
        """Order the tests by alternating, for equal time, between the quickest and those that enter
        little else.
        """
        kills = {name: self.kills[name] + self.kills[f"{path} {name}"] for name in tests}
        quick = sorted(tests, key=lambda name: tests[name].seconds / (1 + kills[name]))
        plain = sorted(tests, key=lambda name: (len(tests[name].entered), tests[name].seconds))
        found: dict[str, None] = {}
        given = [0.0, 0.0]
        queues = [iter(quick), iter(plain)]
        while len(found) < len(tests):
            side = given[1] < given[0]
            name = next(name for name in queues[side] if name not in found)
            given[side] += tests[name].seconds
            found[name] = None
        return list(found)

    def verdict(
        self, live: Live, items: dict[str, pytest.Item], tests: Map, path: str, text: str
    ) -> Verdict:
        """Run the tests that enter the changed code."""
        keys = changed(path, text)
        names = self.order(
            {name: tests[name] for name in items if keys & tests[name].entered}, path
        )
        chosen, early = [items[name] for name in names], bool(keys & live.early)

        def work(writer: int) -> None:
            if not (live.put(path, text) or early):
                return
            self.caches.empty()
            left = self.limit
            for index, name in enumerate(names):
                left -= tests[name].seconds
                if left < 0:
                    break
                os.write(writer, f"{name}\n".encode())
                signal.setitimer(signal.ITIMER_PROF, SPARE + 10 * tests[name].seconds)
                if not _run(chosen, index):
                    return
            os.write(writer, b"\n")

        told = _forked(work).split("\n")
        if told == [""]:  # no function took the change: a closure of other names, say
            return Verdict("", len(names), True)
        # The last name is that of the test that failed, timed out or ended the process.
        noticed = "" if told[-2:] == ["", ""] else told[-2]
        self.kills[noticed] += KEEN
        self.kills[f"{path} {noticed}"] += KEEN * KEEN  # of the same module
        return Verdict(noticed, len(names), early)
