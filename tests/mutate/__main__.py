"""`python -m tests.mutate [--random N] [--seed S] [--every FILE] [--map FILE]`: see the package."""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from itertools import chain
from pathlib import Path

import pytest

from tests.mutate.alone import copied, failing, judged
from tests.mutate.drawing import Mutant, drawn, every, fixed
from tests.mutate.forked import Judge, Verdict
from tests.mutate.live import Calls
from tests.mutate.rooms import NEAR, ROOMS, ROOT

SURVIVED, KILLED = "survived", "killed"


class Table:
    """What became of the mutants, by room, told as it is found."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()

    def add(self, mutant: Mutant, noticed: str, taken: float) -> None:
        verdict = KILLED if noticed else SURVIVED
        self.counts[mutant.room, verdict] += 1
        print(f"{verdict:9} {taken:6.1f} s  {mutant.room:9} {mutant.name}", flush=True)
        print(f"          {noticed or 'nobody notices'}", flush=True)

    def print(self) -> None:
        """A line for every room."""
        print("\n| room | killed | survived |\n|---|---:|---:|")
        for room in dict.fromkeys(room for room, _ in self.counts):
            print(f"| {room} | {self.counts[room, KILLED]} | {self.counts[room, SURVIVED]} |")


def separately(mutants: list[Mutant], table: Table, unchecked: bool) -> None:
    """Each in a process of its own, in a copy of the project."""
    if not mutants:
        return
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        copied(project)
        suites = dict.fromkeys(tuple(sorted(mutant.tests)) for mutant in mutants)
        found = () if unchecked else (failing(tests, project) for tests in suites)
        if red := next(filter(None, found), ""):
            raise SystemExit(f"the tests fail without any change: {red}")
        for mutant in mutants:
            start = time.monotonic()
            table.add(mutant, judged(mutant, project), time.monotonic() - start)


def together(
    mutants: list[Mutant], table: Table, tests: list[str], path: Path, limit: float, select: str
) -> list[Mutant]:
    """All in copies of one process; those are left of which it cannot tell."""
    calls = Calls()
    judge = Judge(calls, path, limit)
    judge.mutants = [(mutant.path, mutant.text) for mutant in mutants]
    left = []

    def told(index: int, verdict: Verdict, taken: float) -> None:
        if verdict.noticed or not verdict.early:
            noticed = verdict.noticed and f"{verdict.noticed} (of {verdict.asked})"
            table.add(mutants[index], noticed, taken)
        else:
            left.append(mutants[index])

    judge.told = told
    arguments = ["-q", "-s", "-n", "0", "-m", "not slow", "-p", "no:cacheprovider", "-k", select]
    sys.settrace(calls)  # what runs while tests are collected
    pytest.main([*arguments, "--no-header", "--no-summary", *tests], plugins=[judge])
    return left


def asked(mutants: list[Mutant]) -> list[str]:
    """Return the tests for random mutants of these rooms."""
    rooms = [ROOMS[name] for name in dict.fromkeys(mutant.room for mutant in mutants)]
    return list(dict.fromkeys(chain.from_iterable(r.tests if r.own else NEAR for r in rooms)))


def main() -> int:
    """Exit code 1 if a mutant of the fixed list survives."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=__doc__)
    parser.add_argument("--fixed", action="store_true", help="only the fixed list")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="so many random ones")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", nargs="*", default=[], metavar="FILE", help="all of modules")
    parser.add_argument("--skip", type=int, default=0, metavar="N", help="but for the first N")
    parser.add_argument("--only", type=int, nargs="*", metavar="I", help="those, from 0 on")
    parser.add_argument("--unchecked", action="store_true", help="no run without a change first")
    parser.add_argument("--room", action="append", help="may be given again")
    parser.add_argument("--map", type=Path, help="keep here which test enters which function")
    parser.add_argument("--limit", type=float, default=60, metavar="S", help="CPU for one mutant")
    parser.add_argument("--tests", nargs="*", default=[], help="to ask of random ones")
    parser.add_argument("--select", default="", help="pytest's -k, to leave tests out")
    options = parser.parse_args()
    os.chdir(ROOT)
    table = Table()
    if options.fixed or not (options.random or options.every):
        separately(fixed(), table, options.unchecked)
    mutants = drawn(options.random, options.seed, options.room) + every(options.every)
    mutants = mutants[options.skip :]
    if options.only is not None:
        mutants = [mutants[index] for index in options.only]
    if mutants:
        with tempfile.TemporaryDirectory() as folder:
            path = options.map or Path(folder) / "map.json"
            tests = options.tests or asked(mutants)
            left = together(mutants, table, tests, path, options.limit, options.select)
        separately(left, table, options.unchecked)
    table.print()
    return 1 if table.counts["fixed", SURVIVED] else 0


if __name__ == "__main__":
    raise SystemExit(main())
