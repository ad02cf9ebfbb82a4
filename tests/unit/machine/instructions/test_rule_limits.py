"""Find the limits of every row by trying every size, type and value.

tests/data/limits has a page for each row. Its lines show the range in which a change is legal and
the error beyond it, with a checksum of the words of all messages and of their help. `NKIC_BLESS=1`
writes the pages again; read the difference as a change of what kernels may do.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

import pytest

from nkic.machine.instructions import ROWS
from nkic.machine.operands import Row
from nkic.machine.targets import TARGETS, TRN2, TRN3, Target
from tests.harness.bless import compare_file, short_sum
from tests.unit.instances import LEGAL, Settings
from tests.unit.machine.instructions.changes import VARIANTS, Change, answer, changes_of, said_of

PAGES = Path(__file__).parents[3] / "data/limits"
WORDS = 12  # the number of legal values of one attribute that are combined with other changes


class Asked:
    """The answers of one row on one target, by the changed property."""

    def __init__(self, row: Row, target: Target, variant: Settings) -> None:
        self.row, self.target, self.variant = row, target, variant
        self.answers: dict[str, list[tuple[Change, str]]] = defaultdict(list)
        self.words: set[tuple[str, ...]] = set()  # of all messages
        for change in changes_of(row, variant):
            self.answers[change.what].append((change, self.said(change.changes)))

    def said(self, changes: Settings) -> str:
        """Return the answer to changes of the variant."""
        found = said_of(self.row, self.target, {**self.variant, **changes})
        self.words |= {(one.slug, one.operand, one.message, one.help) for one in found}
        return answer(found)

    def lines(self) -> Iterator[str]:
        """Return a line for each kind of change: runs of numbers, and other values, by answer."""
        for what, found in self.answers.items():
            yield f"{what}: {'; '.join(_by_answer(found))}"
        yield f"with other attributes: {self._together()}"
        told = "".join(f"{' | '.join(words)}\n" for words in sorted(self.words))
        yield f"in {len(self.words)} messages: {short_sum(told)}"

    def _together(self) -> str:
        """Count the answers when a legal attribute or engine is combined with another change."""
        names = {"engine", *self.row.attribute_index}
        settings = [
            change
            for what in sorted(names & self.answers.keys())
            for change in [c for c, said in self.answers[what] if said == "legal"][:WORDS]
        ]
        others = [
            next(run)[0]
            for found in self.answers.values()
            for _, run in groupby(found, key=lambda pair: pair[1])
        ]
        said = Counter(
            self.said({**one.changes, **other.changes})
            for one in settings
            for other in others
            if one.what != other.what
        )
        return ", ".join(f"{count} {word}" for word, count in sorted(said.items()))


def _by_answer(found: list[tuple[Change, str]]) -> Iterator[str]:
    if all(change.value.lstrip("-").isdigit() for change, _ in found):
        for said, run in groupby(found, key=lambda pair: pair[1]):
            values = [change.value for change, _ in run]
            yield f"{values[0]}{f' to {values[-1]}' if len(values) > 1 else ''} {said}"
        return
    values_of: dict[str, list[str]] = defaultdict(list)
    for change, said in found:
        values_of[said].append(change.value)
    for said, values in values_of.items():
        yield f"{' '.join(values)}: {said}"


def usual_target(row: Row, variant: Settings) -> Target:
    """Return trn2, or trn3 if trn2 does not have the row."""
    return TRN2 if not said_of(row, TRN2, variant) else TRN3


def page(row: Row) -> Iterator[str]:
    """Return the usual instance, then the variants: all lines for one target, and the different
    lines for the others.
    """
    targets = [target for target in TARGETS.values() if target.generation >= row.generation]
    for what, variant in {"": {}, **VARIANTS.get(row.name, {})}.items():
        first = usual_target(row, variant)
        others = [target for target in targets if target is not first]
        usual = [*Asked(row, first, variant).lines()]
        yield from (f"{first.name} {what}".rstrip(), *_indented(usual))
        for target in others:
            lines = [*Asked(row, target, variant).lines()]
            yield f"{target.name} {what}".rstrip()
            yield from _indented(line for line in lines if line not in usual)


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)


@pytest.mark.parametrize("name", LEGAL)
def test_limits_are_where_they_were(name: str) -> None:
    path, found = PAGES / f"{name}.txt", "".join(f"{line}\n" for line in page(ROWS[name]))
    compare_file(path, found)


@pytest.mark.parametrize("name", VARIANTS)
def test_variants_are_legal(name: str) -> None:
    row = ROWS[name]
    found = {what: answer(said_of(row, TRN3, variant)) for what, variant in VARIANTS[name].items()}
    assert found == dict.fromkeys(VARIANTS[name], "legal")


def test_every_page_is_of_a_row() -> None:
    assert {path.stem for path in PAGES.iterdir()} == set(ROWS)
