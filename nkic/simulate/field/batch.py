"""Whether a row of a batch gets the same bits however many other rows there are.

Two programs of one kernel, for fewer and for more rows, are run over terms. The term of an element
is a random number that stands for how it was computed: the operation, the terms of its operands in
their order, and the type to which it was rounded. Rows that both programs have get the same inputs.
Where terms are equal, the same operations were done on the same numbers in the same order, which
gives the same bits, whatever the other rows hold (docs/equality.md, "Batches").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from math import prod
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nkic.artifact.records import Executable, InstructionRecord, PatternRecord
from nkic.base.diagnostics import bad_argument
from nkic.base.text import clean, grouped, plural
from nkic.machine.targets import Target
from nkic.simulate.field.domain import exchanges, line_of
from nkic.simulate.field.elements import (
    NOWHERE,
    PRIMES,
    Doubles,
    Elements,
    Integers,
    Size,
    choose,
    hashed,
    is_identity,
    made,
    product,
    reduced,
    rows_of,
)
from nkic.simulate.field.following import Field
from nkic.simulate.field.functions import FIELD, FUNCTIONS, Algebra, keyed
from nkic.simulate.field.rules import Store
from nkic.simulate.inputs import ArrayParameter, Generator, numbers, signature_of, to_storage
from nkic.simulate.memory import Memory
from nkic.simulate.outcome import RunOptions
from nkic.simulate.stage import simulate, simulate_ranks

MOST_LINES = 8
MOST_TERMS = 100_000_000  # that are kept to find the first instruction that differs
_NUMBERS, _CHOICES = Generator("randn", (0.0,)), Generator("uniform", (0.0, 2.0, 0.0))

# ---- Terms: an algebra without axioms -----------------------------------------------------------


def term(name: str, *operands: Elements) -> Elements:
    """Return the results of an operation; of constants, the run knows them."""
    residues = keyed(name, *(x.residues for x in operands))
    return _of(residues, sum(x.varies for x in operands) > 0, *operands)


def _of(residues: Integers, varies: Any, *operands: Elements) -> Elements:
    return made(residues, np.where(varies, np.nan, 0.0), Size(), *operands)


def constant(values: Any, bits: int = 24) -> Elements:
    numbers = np.array(values, np.float64)
    residues = hashed("constant", numbers.view(np.int64)[None])
    return made(residues, numbers, Size()).undecided(NOWHERE, np.isnan(numbers))


@lru_cache(maxsize=64)
def _weights(count: int) -> Integers:
    """Return a random number for each place of a row, (levels, count)."""
    return hashed("place", np.arange(count, dtype=np.int64)[None])


def _row(name: str, x: Elements, place: int = 0) -> Elements:
    """Return the reduction of each row of (…, N), whose order counts."""
    count = x.value.shape[-1]
    weights = _weights(count).reshape(-1, *(1,) * (x.value.ndim - 1), count)
    total = reduced(reduced(hashed("element", x.residues) * weights).sum(axis=-1))
    return _of(hashed(f"{name} of {count}", total), x.varies.any(axis=-1), rows_of(x))


def _matmul(left: Elements, right: Elements, place: int = 0) -> Elements:
    """Return left.T @ right. A product with a constant 0 adds nothing, if numbers are finite."""
    for one, other, turned in ((right, left, True), (left, right, False)):
        if is_identity(one):
            return other.moved(np.transpose) if turned else other
    sides = [
        np.where(x.value == 0, 0, hashed(name, x.residues))
        for name, x in (("left", left), ("right", right))
    ]
    known = next((n for n, x in enumerate((left, right)) if not x.varies.any()), None)
    if known is None:
        sides[0] = reduced(sides[0] * _weights(left.value.shape[0])[..., None])
    else:  # each column of constants has its own order of terms, without those that add nothing
        adds = (left, right)[known].value != 0
        order = np.maximum(np.cumsum(adds, axis=0) - 1, 0)
        sides[known] = reduced(sides[known] * _weights(len(adds))[:, order])
    varies = np.any(left.varies, axis=0)[:, None] | np.any(right.varies, axis=0)
    notes = rows_of(left, 0)
    column = notes._replace(origin=notes.origin[:, None], loose=notes.loose[:, None])
    return _of(hashed("product", product(*sides)), varies, column, rows_of(right, 0))


def _selected(mask: Elements, a: Elements, b: Elements, place: int = 0) -> Elements:
    known = choose(mask.value != 0, a, b)
    return choose(mask.varies, term("select", mask, a, b), known)


def _function(name: str, x: Elements, place: int = 0) -> Elements:
    return term(name, x)


def _operator(name: str, a: Elements, b: Elements, place: int = 0) -> Elements:
    return term(name, a) if name in FUNCTIONS or name == "logical_not" else term(name, a, b)


def _bypass(a: Elements, b: Elements, place: int = 0) -> Elements:
    return a


TERMS = Algebra(
    constant=constant,
    unknown=lambda shape: _of(np.zeros((len(PRIMES), *shape), np.int64), np.ones(shape, np.bool_)),
    add=partial(_operator, "add"),
    multiply=partial(_operator, "multiply"),
    negative=partial(_function, "negative"),
    invert=partial(_function, "inverse"),
    exp=partial(_function, "exp"),
    matmul=_matmul,
    sum_of=partial(_row, "add"),
    selected=_selected,
    prelu=partial(_operator, "prelu"),
    reduction=_row,
    functions={name: partial(_function, name) for name in FIELD.functions},
    operators={name: partial(_operator, name) for name in FIELD.operators} | {"bypass": _bypass},
)


class Rows(NamedTuple):
    """The dimension of an array along which its rows are, the row at which those begin that both
    programs have, and their number. An array that both have in one shape has no such dimension.
    """

    axis: int | None
    first: int = 0
    common: int = 0


class Terms(Field):
    """The terms of all elements of a rank.

    With `keeps`, `kept` gets the terms of all results; it is None if they are too many. With
    `known`, which is sorted, `parted` is the place of the first instruction with a result that is
    not among them; rows that the other program does not have are numbers then, so that results of
    these alone have no terms.
    """

    def __init__(
        self,
        executable: Executable,
        memory: Memory,
        target: Target,
        rows: Mapping[str, Rows],
        keeps: bool,
        known: Integers | None,
    ) -> None:
        self.rows, self.known = rows, known
        self.kept: list[Integers] | None = [] if keeps else None
        self.number = 0  # of terms that are kept
        self.parted: int | None = None
        super().__init__(executable, memory, target, {name: name for name in rows})

    def stored(self) -> Store:
        return Store(self.executable, TERMS)

    def input(self, pattern: PatternRecord, name: str) -> Elements:
        places = np.indices(self.executable.tensors[pattern.tensor].shape, np.int64)
        axis, first, common = self.rows[name]
        if axis is not None:
            places[axis] -= first
        flat = places.reshape(len(places), *self.store.shape(pattern))
        own = _of(hashed(f"input {name}", flat), np.ones(flat.shape[1:], np.bool_))
        if axis is None or self.known is None:
            return own
        is_common = (flat[axis] >= 0) & (flat[axis] < common)
        return choose(is_common, own, constant(self._values(pattern)))

    def _kept(
        self, record: InstructionRecord, result: Elements, values: Doubles, pattern: PatternRecord
    ) -> Elements:
        """Return a result as its type keeps it; constants have the `values` of the run."""
        varies, row = result.varies, record.row
        reads = [o.dtype for o in record.operands if type(o) is PatternRecord]
        moves = row is not None and row.moves and all(dtype is pattern.dtype for dtype in reads)
        in_pairs = row is not None and row.has_setting(row.pairs, record.attributes)
        of_type = hashed(f"to {pattern.dtype.name}{' in pairs' * in_pairs}", result.residues)
        numbers = constant(np.where(varies, 0.0, values))
        rows = np.where(varies, result.residues if moves else of_type, numbers.residues)
        if varies.any():
            self._note(_single(rows[:, varies]), record.place)
        return result._replace(residues=rows, value=np.where(varies, np.nan, numbers.value))

    def _note(self, terms: Integers, place: int) -> None:
        if self.kept is not None:
            self.kept.append(np.unique(terms))
            self.number += self.kept[-1].size
            self.kept = self.kept if self.number <= MOST_TERMS else None
        if self.known is not None and self.parted is None and self.known.size:
            at = np.minimum(np.searchsorted(self.known, terms), self.known.size - 1)
            if (self.known[at] != terms).any():
                self.parted = place


def _single(rows: Integers) -> Integers:
    """Return terms as one number each."""
    found: Integers = (rows[-1] << 31) + rows[-2]
    return found


# ---- Two programs -------------------------------------------------------------------------------

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Invariance:
    """The answer for a kernel compiled for fewer and for more rows.

    `verdict`: "invariant"; "dependent" if a run shows other bits, of `differing` among `compared`
    elements; "unconfirmed" if rows are computed in other ways, and a run on random numbers shows no
    other bits; "undecided" if terms have no meaning for `lines`. Otherwise `lines` has the first
    instruction whose results differ. `rows` names the arrays with rows, and their numbers.
    """

    verdict: Literal["invariant", "dependent", "unconfirmed", "undecided"]
    rows: tuple[str, ...]
    lines: tuple[str, ...] = ()
    differing: int = 0
    compared: int = 0

    def __bool__(self) -> bool:
        return self.verdict == "invariant"

    def __str__(self) -> str:
        return self.text.rstrip("\n")

    @property
    def text(self) -> str:
        share = f"{grouped(self.differing)} of {plural(self.compared, 'element')}"
        first = {
            "invariant": "invariant: a row gets the same bits in both, whatever the other rows "
            "hold, while all numbers are finite",
            "dependent": f"dependent: {share} of the rows in both have other bits on random "
            "numbers",
            "unconfirmed": "rows are computed in other ways, and have the same bits on random "
            "numbers",
            "undecided": "undecided: terms do not tell",
        }[self.verdict]
        return "".join(f"{text}\n" for text in (first, *self.lines, *self.rows))

    def as_json(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "rows": list(self.rows),
            "lines": list(self.lines),
            "differing": self.differing,
            "compared": self.compared,
        }


def batch_invariant(one: Executable, other: Executable, given: Arrays | None = None) -> Invariance:
    """Tell whether rows that two programs have in common get the same bits in both.

    `given` has the values of integer inputs of the program with more rows, by name. Raises
    `UsageFailed` if the programs are not one kernel for two numbers of rows, and what their runs
    raise.
    """
    return _Batches(one, other, given or {}).answer()


class _Batches:
    def __init__(self, one: Executable, other: Executable, given: Arrays) -> None:
        self.small, self.large = sorted((one, other), key=_size)
        few, many = signature_of(self.small), signature_of(self.large)
        self.inputs = _paired("inputs", few.inputs, many.inputs)
        self.outputs = _paired("outputs", few.outputs, many.outputs)
        self.given = given
        if all(_axis(*pair) is None for pair in (*self.inputs, *self.outputs)):
            text = "both kernels have the same shapes, so the same number of rows"
            raise bad_argument(text, "compile the kernel for another number of rows, too")

    def answer(self) -> Invariance:
        rows = tuple(
            f"{clean(few.name)}: {grouped(few.shape[axis])} of {grouped(many.shape[axis])} rows"
            for few, many in (*self.inputs, *self.outputs)
            if (axis := _axis(few, many)) is not None
        )
        if lacking := exchanges(self.small, self.large):
            return Invariance("undecided", rows, lacking[:MOST_LINES])
        for at_end in (False, True):
            less, more = (self._terms(program, at_end) for program in (self.small, self.large))
            both = [self._common(less, more, pair, at_end) for pair in self.outputs]
            lines = self._undecided(less, [a for a, _ in both], self.small)
            lines |= self._undecided(more, [b for _, b in both], self.large)
            if lines:
                return Invariance("undecided", rows, tuple(lines)[:MOST_LINES])
            if all((a.residues == b.residues).all() for a, b in both):
                continue
            differing, compared = self._run(at_end)
            verdict: Literal["dependent", "unconfirmed"] = (
                "dependent" if differing else "unconfirmed"
            )
            return Invariance(verdict, rows, self._parted(at_end), differing, compared)
        return Invariance("invariant", rows)

    def _common(
        self, less: Terms, more: Terms, pair: tuple[ArrayParameter, ArrayParameter], at_end: bool
    ) -> tuple[Elements, Elements]:
        """Return the elements of an output in the rows that both programs have."""
        few, many = pair
        first = less.of_output(few.tensor).moved(lambda x: x.reshape(few.shape))
        second = more.of_output(many.tensor).moved(lambda x: x.reshape(many.shape))
        return first, second.at(_slices(few, many, at_end))

    def _terms(
        self, program: Executable, at_end: bool, keeps: bool = False, known: Integers | None = None
    ) -> Terms:
        """Return what a run over terms found."""
        rows = {}
        for few, many in self.inputs:
            axis, name = _axis(few, many), few.name
            rows[name] = Rows(axis)
            if axis is not None:
                is_moved = at_end and program is self.large
                first = many.shape[axis] - few.shape[axis] if is_moved else 0
                rows[name] = Rows(axis, first, few.shape[axis])
        options, followers = RunOptions(), list[Terms]()

        def follow(memory: Memory) -> Terms:
            target = options.target_of(program)
            followers.append(Terms(program, memory, target, rows, keeps, known))
            return followers[0]

        simulate_ranks(program, [self._arrays(program, at_end)], options, follow=follow)
        return followers[0]

    def _arrays(self, program: Executable, at_end: bool) -> dict[str, NDArray[Any]]:
        """Return inputs of a program. In the rows that both have, they are the same."""
        arrays = {}
        for few, many in self.inputs:
            kind = _NUMBERS if few.dtype.is_float else _CHOICES
            name, dtype, place = many.name, many.dtype, _slices(few, many, at_end)
            if name in self.given:
                values = to_storage(numbers(self.given[name], dtype), dtype)
            else:
                values = kind.array(name, dtype, many.shape)
            arrays[name] = values if program is self.large else values[place].copy()
        return arrays

    def _run(self, at_end: bool) -> tuple[int, int]:
        """Return how many elements of common rows have other bits in an ordinary run, of all."""
        less, more = (
            simulate(program, self._arrays(program, at_end), RunOptions()).outputs
            for program in (self.small, self.large)
        )
        differing = compared = 0
        for few, many in self.outputs:
            same = more[many.name][_slices(few, many, at_end)]
            bits = (np.ascontiguousarray(x).view(np.uint8) for x in (less[few.name], same))
            off = np.not_equal(*bits).reshape(prod(few.shape), -1).any(axis=1)
            differing, compared = differing + int(off.sum()), compared + off.size
        return differing, compared

    def _parted(self, at_end: bool) -> tuple[str, ...]:
        """Return the first instruction of one program that has no like in the other."""
        for program, other in ((self.small, self.large), (self.large, self.small)):
            kept = self._terms(other, at_end, keeps=True).kept
            if kept is None:
                continue
            known = np.unique(np.concatenate([*kept, np.zeros(0, np.int64)]))
            found = self._terms(program, at_end, known=known)
            if found.parted is not None:
                name, line = found.comparison(found.parted), line_of(program, found.parted)
                return (f"the first that differs: {name} at {line}",)
        return ()

    def _undecided(
        self, trial: Terms, results: Sequence[Elements], program: Executable
    ) -> dict[str, None]:
        """Return what a program does that terms cannot follow, of what common rows depend on."""
        origins = np.concatenate([x.origin.reshape(-1) for x in results])
        places = trial.wholly | {int(n) - 1 for n in np.unique(origins) if n}
        told = (f"{trial.reason(place)} at {line_of(program, place)}" for place in sorted(places))
        return dict.fromkeys(f"undecided: {text}" for text in told)


def _size(program: Executable) -> int:
    signature = signature_of(program)
    return sum(prod(p.shape) for p in (*signature.inputs, *signature.outputs))


def _axis(few: ArrayParameter, many: ArrayParameter) -> int | None:
    """Return the dimension with more elements in the second array; None if none has."""
    found = [n for n, (a, b) in enumerate(zip(few.shape, many.shape, strict=True)) if a != b]
    return found[0] if found else None


def _slices(few: ArrayParameter, many: ArrayParameter, at_end: bool) -> tuple[slice, ...]:
    """Return where the first or last rows of the second array are, as many as the first has."""
    return tuple(
        slice(b - a, b) if at_end else slice(0, a)
        for a, b in zip(few.shape, many.shape, strict=True)
    )


def _paired(
    what: str, few: Sequence[ArrayParameter], many: Sequence[ArrayParameter]
) -> list[tuple[ArrayParameter, ArrayParameter]]:
    """Return the arrays of both programs in pairs. Raises `UsageFailed`."""
    named = {p.name: p for p in many}
    pairs = [(p, named[p.name]) for p in few if p.name in named]
    fits = [
        a.dtype is b.dtype
        and len(a.shape) == len(b.shape)
        and all(x <= y for x, y in zip(a.shape, b.shape, strict=True))
        and sum(x != y for x, y in zip(a.shape, b.shape, strict=True)) <= 1
        for a, b in pairs
    ]
    if len(pairs) != len(few) or len(few) != len(many) or not all(fits):
        shapes = [", ".join(f"{clean(p.name)} {p}" for p in side) for side in (few, many)]
        text = f"the {what} are not the same with more rows: {shapes[0]}, and {shapes[1]}"
        raise bad_argument(text, "compile one kernel twice, for two numbers of rows")
    return pairs
