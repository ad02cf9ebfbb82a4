"""The outcome of each kernel that `migrations` tried: rows of a file of results, and the tables in
docs/migration.md.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

NAMES = {
    "sdk": "examples of the SDK's documentation",
    "tests": "kernels that the SDK's tests call",
    "samples": "nki-samples",
    "bench": "NKIBench",
}
NOT_RUN, BITS, ROUNDING, DIFFERENT, FAILED = "not run", "bits", "rounding", "different", "failed"
_HEADS = (
    "kernels",
    "tried",
    "that Beta 1 runs",
    "rewritten",
    "same bits",
    "same bits for all shapes",
    "within rounding",
    "refused, with reason",
)


@dataclass(frozen=True)
class Row:
    """One kernel.

    `first` is the verdict for its own shapes, `worst` the worst of all shapes, `left` the number of
    errors that the migration reported in it and its callees; `whole` tells that its file had no
    error, `stable` that a second migration changed nothing. Cycles are those of the first shapes,
    before and after; `why` explains the worst verdict.
    """

    checkout: str
    name: str
    file: str
    first: str
    worst: str
    left: int = 0
    shapes: int = 0
    before: int = 0
    after: int = 0
    why: str = ""
    stable: bool = True
    whole: bool = True

    @property
    def label(self) -> str:
        return f"{self.checkout}: {self.name}"

    @property
    def is_rewritten(self) -> bool:
        """Return whether no error remains, and the new source compiles and runs."""
        return not self.left and self.first in (BITS, ROUNDING, DIFFERENT)


def read(path: Path | None) -> dict[str, Row]:
    """Read the rows of a file, by their labels; the last row of each label counts."""
    if path is None or not path.exists():
        return {}
    rows = (Row(**json.loads(line)) for line in path.read_text("utf-8").splitlines())
    return {row.label: row for row in rows}


def added(path: Path | None, row: Row) -> None:
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(row)) + "\n")


def tables(rows: Sequence[Row]) -> Iterator[str]:
    """Return the lines of both tables: sums by checkout, and every kernel that is not bitwise equal
    or needs a remark."""
    yield from _head(_HEADS)
    for name, title in NAMES.items():
        found = [row for row in rows if row.checkout == name]
        if found:
            yield _line([title, *map(str, _sums(found))])
    every = _sums(rows)
    yield _line(["all", *map(str, every)])
    yield ""
    yield f"Of the kernels that Beta 1 runs, {_percent(every[2], every[1])} % are rewritten; of"
    yield f"these, {_percent(every[3], every[2])} % give the same bits for their own shapes. "
    yield from _files(rows)
    yield ""
    yield from _head(("kernel", "own shapes", "all shapes", "why"))
    for row in rows:
        if row.worst != BITS or row.left or row.why or not row.stable:
            why = row.why if row.stable else "a second migration changes it"
            why = why or f"places left around it: {row.left}"
            yield _line([row.label, row.first, row.worst, why.replace("|", "\\|")])


def _files(rows: Sequence[Row]) -> Iterator[str]:
    """Count the files whose kernels are all rewritten, and those of them with no error left."""
    by_file: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.first != NOT_RUN:
            by_file.setdefault((row.checkout, row.file), []).append(row)
    good = [found for found in by_file.values() if all(row.is_rewritten for row in found)]
    whole = sum(all(row.whole for row in found) for found in good)
    yield f"Of {len(by_file)} files with such kernels, {len(good)} have them all rewritten; in"
    yield f"{whole} of these nothing else is left, host code included."


def _sums(rows: Sequence[Row]) -> tuple[int, ...]:
    run = [row for row in rows if row.first != NOT_RUN]
    rewritten = [row for row in run if row.is_rewritten]
    firsts = [row.first for row in rewritten]
    whole = sum(row.worst == BITS for row in rewritten)
    refused = sum(bool(row.why) for row in run if not row.is_rewritten)
    counts = (firsts.count(BITS), whole, firsts.count(ROUNDING), refused)
    return (len(rows), len(run), len(rewritten), *counts)


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / max(whole, 1):.1f}"


def _head(cells: Sequence[str]) -> tuple[str, str]:
    return _line(cells), "|---" * len(cells) + "|"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
