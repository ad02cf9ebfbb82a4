"""`python -m tests.mutate [--fixed] [--random N] [--seed S] [--room ROOM]`: see the package."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.mutate import points
from tests.mutate.fixed import FIXED
from tests.mutate.rooms import ROOMS, ROOT

KEPT = ("nkic", "tests", "samples", "grammar", "docs")
TIMEOUT = 240  # seconds: a mutant that takes longer is noticed
SURVIVED, KILLED = "survived", "killed"


class Mutant(NamedTuple):
    """A changed module, and the tests to ask."""

    room: str
    name: str
    path: str  # of the module, from the project's root
    text: str
    tests: tuple[str, ...]


def fixed() -> list[Mutant]:
    """The list of changes that once survived."""
    found = []
    for name, path, old, new, tests in FIXED:
        text = (ROOT / path).read_text("utf-8")
        if text.count(old) != 1:
            raise SystemExit(f"{path}: `{old}` is there {text.count(old)} times: {name}")
        found.append(Mutant("fixed", name, path, text.replace(old, new), tests))
    return found


def drawn(count: int, seed: int, only: str | None) -> list[Mutant]:
    """Different random changes, as many of each room as of the others."""
    rng, found = Random(seed), []
    texts: set[str] = set()
    names = [only] if only else list(ROOMS)
    while len(found) < count:
        name = names[len(found) % len(names)]
        room = ROOMS[name]
        modules = room.modules()
        weights = [points.count(path.read_text("utf-8")) for path in modules]
        (path,) = rng.choices(modules, weights)
        text = path.read_text("utf-8")
        one = points.point(text, rng.randrange(points.count(text)))
        if one.text in texts:
            continue
        texts.add(one.text)
        where = path.relative_to(ROOT)
        source = text.splitlines()[one.line - 1].strip()
        label = f"{where}:{one.line}: {one.what}: {source}"
        found.append(Mutant(name, label, str(where), one.text, _nearest(room.tests, path)))
    return found


def _nearest(tests: tuple[str, ...], module: Path) -> tuple[str, ...]:
    """The tests, those first that are called like the module."""
    words = set(module.stem.split("_"))
    return tuple(sorted(tests, key=lambda test: not words <= set(Path(test).stem.split("_"))))


def failing(tests: tuple[str, ...], project: Path) -> str:
    """The first of the tests that fails in the copy of the project; nothing if all pass."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-m", "not slow"]
    command += ["-p", "no:cacheprovider", "--no-header", *tests]
    environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command,
            cwd=project,
            env=environ,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "no end in sight"
    if done.returncode == 0:
        return ""
    found = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return found[0].split(" - ")[0] if found else "pytest itself"


def _red(suites: Iterable[tuple[str, ...]], project: Path) -> Iterator[str]:
    """What fails in each suite without any change."""
    return (failing(tests, project) for tests in suites)


def judged(mutant: Mutant, project: Path) -> str:
    """The test that notices the change; nothing if none does."""
    module = project / mutant.path
    before = module.read_bytes()
    module.write_text(mutant.text, "utf-8")
    try:
        return failing(mutant.tests, project)
    finally:
        module.write_bytes(before)


def main() -> int:
    """Exit code 1 if a mutant of the fixed list survives."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=__doc__)
    parser.add_argument("--fixed", action="store_true", help="only the fixed list")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="so many random ones")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--skip", type=int, default=0, metavar="N", help="but for the first N")
    parser.add_argument("--unchecked", action="store_true", help="no run without a change first")
    parser.add_argument("--room", choices=list(ROOMS))
    options = parser.parse_args()
    mutants = fixed() if options.fixed or not options.random else []
    mutants += drawn(options.random, options.seed, options.room)[options.skip :]
    table: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        for name in KEPT:
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, project / name, ignore=ignore)
        for name in ("pyproject.toml", "README.md", "CONTRIBUTING.md", "Makefile", "CHANGELOG.md"):
            shutil.copy(ROOT / name, project / name)
        suites = dict.fromkeys(tuple(sorted(mutant.tests)) for mutant in mutants)
        red = "" if options.unchecked else next(filter(None, _red(suites, project)), "")
        if red:
            raise SystemExit(f"the tests fail without any change: {red}")
        for mutant in mutants:
            start = time.monotonic()
            noticed = judged(mutant, project)
            verdict = KILLED if noticed else SURVIVED
            table[mutant.room, verdict] += 1
            taken = time.monotonic() - start
            print(f"{verdict:9} {taken:6.1f} s  {mutant.room:9} {mutant.name}", flush=True)
            print(f"          {noticed or 'nobody notices'}", flush=True)
    print("\n| room | killed | survived |\n|---|---:|---:|")
    for room in dict.fromkeys(room for room, _ in table):
        print(f"| {room} | {table[room, KILLED]} | {table[room, SURVIVED]} |")
    return 1 if table["fixed", SURVIVED] else 0


if __name__ == "__main__":
    raise SystemExit(main())
