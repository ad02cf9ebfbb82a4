"""What each instruction of small kernels stores, over each algebra, is what tests/data/equal says.

A line of a page has the line of a kernel, the instruction, and checksums of what it stores: over
the field, in an order and without one; as terms; as intervals of inputs within 1, with the least
and the greatest bound. Those that are not drawn are also run as terms of some rows, and beside
intervals of inputs of another size. NKIC_BLESS=1 writes the pages again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

from nkic.artifact.records import Executable, InstructionRecord, PatternRecord
from nkic.simulate.field.batch import Rows, Terms
from nkic.simulate.field.domain import line_of
from nkic.simulate.field.elements import Elements
from nkic.simulate.field.following import Field
from nkic.simulate.field.functions import Order, ordered
from nkic.simulate.field.intervals import HIGH, LOW, Excluding
from nkic.simulate.field.rules import Results
from nkic.simulate.inputs import Generator, numbers, signature_of, to_storage
from nkic.simulate.memory import Memory
from nkic.simulate.outcome import RunOptions
from nkic.simulate.stage import simulate_ranks
from tests.equal.drawn import KINDS, TYPE
from tests.equal.kernels import compiled
from tests.equal.recorded import PAGES, page, sum_of, sum_of_elements
from tests.equal.written import WRITTEN
from tests.harness.bless import compare_file, short_sum

STEPS = 5  # of each kind, in a page of its own each
PARTS = 20  # pages of kernels that are written
CORES, ALONE = ("by_core", "handed_over", "sent"), ("microscaled",)
FIELDS = ("residues", "value", "origin", "loose")


def drawn(kinds: Sequence[str], seed: int) -> str:
    """Return a kernel of a step of each kind, each of inputs alone."""
    steps = [KINDS[kind](Random(seed), f"t{n}", ["x", "w"]) for n, kind in enumerate(kinds)]
    return "\n".join(
        (*map(dedent, steps), f"out = {' + '.join(f't{n}' for n in range(len(kinds)))}")
    )


class Watched(Field):
    """Keeps the text of what each instruction stores."""

    order: Order | None = None

    def __init__(self, *args: Any) -> None:
        self.texts = defaultdict[int, list[str]](list)
        super().__init__(*args)

    def _finish(
        self,
        record: InstructionRecord,
        results: Results | None,
        written: Mapping[str, PatternRecord],
        are_constant: bool,
    ) -> None:
        super()._finish(record, results, written, are_constant)
        for pattern in written.values():
            self.texts[record.place].append(self.text(self.store.read(pattern)))

    def text(self, stored: Elements | None) -> str:
        return sum_of_elements(stored)

    def end_texts(self) -> Iterator[str]:
        """Yield what is told of the whole run."""
        store = self.store
        wholes = [store.whole(n) for n in range(len(self.executable.tensors)) if store.size(n)]
        yield f"tensors {sum_of(*(whole[f] for whole in wholes for f in FIELDS))}"
        yield f"sizes {sum_of(*(store.size(n) for n in range(len(self.executable.tensors))))}"
        if self.order is not None:
            yield f"one way {self.order.one_way()}"
        yield from (f"casts {sorted(self.casts)}",) * bool(self.casts)
        yield from (f"wholly {sorted(self.wholly)}",) * bool(self.wholly)
        yield from (f"{n}: {self.reason(n)}" for n in sorted(self.texts) if n in self._reasons)


class WatchedTerms(Watched, Terms):
    def end_texts(self) -> Iterator[str]:
        yield from [*super().end_texts()][:2]
        yield f"{self.number} terms, parted at {self.parted}"


class WatchedBounds(Watched, Excluding):
    """Goes on where a result could not be excluded, and keeps all such places."""

    def __init__(self, *args: Any) -> None:
        self.failures = dict[int, str]()
        super().__init__(*args)

    def text(self, stored: Elements | None) -> str:
        if stored is None:
            return "none"
        low, high = stored.residues[LOW].min(), stored.residues[HIGH].max()
        return f"{sum_of_elements(stored)} [{low:.6g}, {high:.6g}]"

    def _fail(self, record: InstructionRecord, why: str) -> None:
        self.failures.setdefault(record.place, why)

    def end_texts(self) -> Iterator[str]:
        yield from [*super().end_texts()][:1]
        yield f"peak {self.peak:.8g}, facts {sum_of(self.facts.known[:, : self.facts.next])}"
        for place, why in sorted(self.failures.items()):
            yield f"{place}: {why}"


def watched(program: Executable, is_written: bool) -> Iterator[Watched]:
    """Run a program over each algebra; one that is written over more."""
    fill, target = Generator("uniform", (0.0, 1.0, 1.0)), RunOptions().target_of(program)
    arrays = {
        p.name: to_storage(numbers(fill.array(p.name, p.dtype, p.shape), p.dtype), p.dtype)
        for p in signature_of(program).inputs
    }
    names = [each.name for each in program.inputs]

    def run(kind: type[Watched], *more: Any) -> Any:
        found = list[Watched]()

        def follow(memory: Memory) -> Watched:
            found.append(kind(program, memory, target, *more))
            return found[0]

        simulate_ranks(program, [arrays], RunOptions(), follow=follow)
        return found[0]

    for is_free in (False, True):
        order = Order()
        order._met.update((0.5, 2.0, 3.0))
        order.begin(is_free)
        order.follow(0)
        with ordered(order):
            found = run(Watched, {name: name for name in names}, 1)
        found.order = order
        yield found
    terms = run(WatchedTerms, dict.fromkeys(names, Rows(None)), True, None)
    yield terms
    yield run(WatchedBounds, 1.0, -1.0)
    if is_written:
        known = np.unique(np.concatenate([*(terms.kept or ()), np.zeros(0, np.int64)]))
        rows = {names[0]: Rows(0, 4, 16), names[-1]: Rows(None)}
        yield run(WatchedTerms, rows, False, known)
        yield run(WatchedBounds, 40.0, 0.0)


def entry(body: str, type_: str, is_written: bool) -> Iterator[str]:
    program = compiled(body, type_, type_).executable
    runs = [*watched(program, is_written)]
    for place in sorted({place for run in runs for place in run.texts}):
        line = line_of(program, place).partition(":")[2]
        texts = (short(run.texts[place]) for run in runs)
        yield f"{place} of line {line}, {runs[0].comparison(place)}: {' '.join(texts)}"
    for run in runs:
        yield from (f"  {type(run).__name__[7:].lower()} {text}" for text in run.end_texts())


def short(texts: Sequence[str]) -> str:
    """Return the only text, or one for those of all iterations of a loop."""
    return texts[0] if len(texts) == 1 else f"{len(texts)}:{short_sum(' '.join(texts))}"


def compare_page(name: str, bodies: Mapping[str, str], type_: str, is_written: bool) -> None:
    lines = list[str]()
    for title, body in bodies.items():
        lines += [f"> {title}", *entry(body, type_, is_written), ""]
    compare_file(PAGES / f"kernels_{name}.txt", page(lines))


@pytest.mark.parametrize("seed", range(STEPS))
def test_a_step_of_each_kind(seed: int) -> None:
    groups = ([kind for kind in KINDS if kind not in {*ALONE, *CORES}], CORES, ALONE)
    bodies = {", ".join(kinds): drawn(kinds, seed) for kinds in groups}
    compare_page(f"drawn_{seed}", bodies, TYPE, False)


@pytest.mark.parametrize("part", range(PARTS))
def test_written_kernels(part: int) -> None:
    bodies = dict([*WRITTEN.items()][part::PARTS])
    compare_page(f"written_{part}", bodies, "float32[24,32]", True)
