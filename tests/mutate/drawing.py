"""Create mutants: those of the fixed list, and random ones."""

from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.mutate import points
from tests.mutate.fixed import FIXED
from tests.mutate.rooms import ROOMS, ROOT


class Mutant(NamedTuple):
    """A changed module, and the tests to run."""

    room: str
    name: str
    path: str  # of the module, from the project's root
    text: str
    tests: tuple[str, ...]


def fixed() -> list[Mutant]:
    """Return the list of changes that once survived."""
    found = []
    for name, path, old, new, tests in FIXED:
        text = (ROOT / path).read_text("utf-8")
        if text.count(old) != 1:
            raise SystemExit(f"{path}: `{old}` is there {text.count(old)} times: {name}")
        found.append(Mutant("fixed", name, path, text.replace(old, new), tests))
    return found


def drawn(count: int, seed: int, only: list[str] | None) -> list[Mutant]:
    """Draw different random changes, equally many from each room."""
    rng = Random(seed)
    found: list[Mutant] = []
    texts: set[str] = set()
    names = only or list(ROOMS)
    counts = {path: points.count(path.read_text("utf-8")) for name in names for path in _of(name)}
    while len(found) < count:
        name = names[len(found) % len(names)]
        modules = _of(name)
        (path,) = rng.choices(modules, [counts[path] for path in modules])
        text = path.read_text("utf-8")
        one = points.point(text, rng.randrange(counts[path]))
        if one.text in texts:
            continue
        texts.add(one.text)
        found.append(_mutant(name, path, text, one))
    return found


def every(modules: list[str]) -> list[Mutant]:
    """Return all changes of modules, which are named from the project's root, in the order of
    lines.
    """
    found: dict[str, Mutant] = {}
    for module in modules:
        path = ROOT / module
        (name,) = (name for name in ROOMS if path in _of(name))
        text = path.read_text("utf-8")
        for one in points.points(text):
            found.setdefault(one.text, _mutant(name, path, text, one))
    return list(found.values())


def _mutant(room: str, path: Path, text: str, one: points.Point) -> Mutant:
    where = path.relative_to(ROOT)
    source = text.splitlines()[one.line - 1].strip()
    label = f"{where}:{one.line}: {one.what}: {source}"
    return Mutant(room, label, str(where), one.text, _nearest(ROOMS[room].tests, path))


def _of(room: str) -> list[Path]:
    return ROOMS[room].modules()


def _nearest(tests: tuple[str, ...], module: Path) -> tuple[str, ...]:
    """Return the tests, with those named after the module first."""
    words = set(module.stem.split("_"))
    return tuple(sorted(tests, key=lambda test: not words <= set(Path(test).stem.split("_"))))
