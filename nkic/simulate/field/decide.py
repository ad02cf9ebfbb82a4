"""Whether two programs compute the same function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import ceil, log2, prod
from typing import Any, Literal, NamedTuple, Protocol
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from nkic.artifact.records import Executable
from nkic.base.diagnostics import bad_argument
from nkic.base.text import clean, grouped, plural
from nkic.machine.dtypes import FLOAT32, DType
from nkic.simulate.compare import Comparison, ToleranceSettings, compare
from nkic.simulate.field.domain import (
    Cause,
    Fills,
    Limit,
    Look,
    cause_in_kernel,
    distance_of,
    exchanges,
    limits_of,
    line_of,
    looked,
)
from nkic.simulate.field.elements import BITS, TOP, Elements, Size
from nkic.simulate.field.following import Field
from nkic.simulate.field.functions import Order, ordered
from nkic.simulate.field.intervals import Proof, proven
from nkic.simulate.field.tensors import array_of, libraries
from nkic.simulate.field.traced import Places, Traced, Untraceable, flat
from nkic.simulate.inputs import (
    ArrayParameter,
    Generator,
    Numbers,
    numbers,
    signature_of,
    to_storage,
    unpacked_shape,
)
from nkic.simulate.memory import Memory
from nkic.simulate.outcome import RunOptions
from nkic.simulate.stage import simulate, simulate_ranks

# --------------------------------------------------------------------------------------------------

Verdict = Literal["equal", "different", "unconfirmed", "undecided"]
Arrays = Mapping[str, NDArray[Any]]
WANTED_BITS = 40  # of certainty
MOST_TRIALS = 8
MOST_ORDERS, ORDERED_ELEMENTS = 64, 1 << 20  # trials of orders, and elements in all of them
MOST_LINES = 8
CAUTION = 100.0  # times the tolerance, where rounding may be what differs
_INDICES = Generator("uniform", (0.0, 2.0, 0.0))
_FILLS = (
    *(Generator("randn", (1.0,)), Generator("randn", (2.0,))),
    *(Generator("uniform", (0.0, 1.0, 1.0)), Generator("uniform", (-8.0, 8.0, 1.0))),
    *(Generator("const", (0.001,)), Generator("const", (1.5,)), Generator("const", (-2.0,))),
    *(Generator("uniform", (-100.0, 100.0, 1.0)), Generator("iota"), Generator("zeros")),
)


@dataclass(frozen=True)
class Counterexample:
    """Inputs at which the outputs differ: a fill as `--fill` takes it, and the comparison."""

    fill: str
    comparison: Comparison

    @property
    def text(self) -> str:
        found, point = self.comparison, self.comparison.worst or self.comparison.first
        count = f"{grouped(found.failures)} of {plural(found.elements, 'element')}"
        text = f"with --fill {self.fill}, {count} of {clean(found.name)} differ"
        if point is None:
            return text
        index = ", ".join(map(str, point.index))
        return f"{text}: [{index}] is {point.got:.9g} and {point.expected:.9g}"


@dataclass(frozen=True)
class Equality:
    """The answer for two programs.

    `verdict`: "equal"; "different", with a counterexample; "unconfirmed" if they differ over the
    field, but no input was found at which they differ by more than rounding; "undecided" if the
    field has no meaning for `lines`, or lacks axioms of functions that they use. `bits`: the
    probability that the programs are not equal is below 2^-bits. If `orders` is not 0, they are
    equal in so many random orders of elements, with no bound for others, and `one_way` names
    comparisons that had one outcome in all of these. `casts` names the lines that round, by
    program. `limits` are sizes of inputs from which on equal programs part: one overflows, say.
    `proofs` tells up to which size a program is proven to stay finite, by side.
    """

    verdict: Verdict
    bits: float
    trials: int
    lines: tuple[str, ...] = ()
    casts: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    orders: int = 0
    one_way: tuple[str, ...] = ()
    counterexample: Counterexample | None = None
    limits: tuple[Limit, ...] = ()
    proofs: tuple[Proof | None, Proof | None] = (None, None)
    sides: tuple[str, str] = ("the first kernel", "the second kernel")

    def __bool__(self) -> bool:
        return self.verdict == "equal"

    def __str__(self) -> str:
        return self.text.rstrip("\n")

    @property
    def text(self) -> str:
        found = self.counterexample
        trials = f"{plural(self.orders or self.trials, 'trial')} over a finite field"
        first = {
            "equal": f"equal in the orders of elements that were tried ({trials})"
            if self.orders
            else f"equal: the same functions of their inputs, wrong with a probability below "
            f"2^-{self.bits:.0f} ({trials})",
            "different": "different: the outputs differ by more than rounding",
            "unconfirmed": "differ over the field, no difference beyond rounding found",
            "undecided": "undecided: the field does not tell",
        }[self.verdict]
        texts = [first, found.text if found else "", *self.lines]
        if self.given and self.verdict == "equal":
            texts.append(f"for these values of integer inputs: {', '.join(map(clean, self.given))}")
        if self.orders:
            texts += self.one_way or ("each comparison of each element had both outcomes",)
        texts += self.casts
        texts += [limit.text(self.sides) for limit in self.limits[:MOST_LINES]]
        proofs = zip(self.proofs, self.sides, strict=True)
        texts += [proof.text(side) for proof, side in proofs if proof is not None]
        if self.verdict == "equal":
            texts.append("" if self.limits else "no inputs were found at which only one overflows")
            texts.append("rounding is not compared")
        return "".join(f"{text}\n" for text in texts if text)

    def as_json(self) -> dict[str, Any]:
        found = self.counterexample
        return {
            "verdict": self.verdict,
            "bits": round(self.bits, 1),
            "trials": self.trials,
            "lines": list(self.lines),
            "casts": list(self.casts),
            "given": list(self.given),
            "orders": self.orders,
            "one_way": list(self.one_way),
            "limits": [limit.as_json() for limit in self.limits],
            "proofs": [proof and proof.as_json() for proof in self.proofs],
            "counterexample": {"fill": found.fill, "output": found.comparison.name}
            if found
            else None,
        }


class _Pair(NamedTuple):
    first: ArrayParameter
    second: ArrayParameter

    @property
    def narrow(self) -> DType:
        return min(self.first.dtype, self.second.dtype, key=lambda dtype: dtype.size)


class Trial(Protocol):
    """What one run over the field found: as `Field`, whose places are those of a file."""

    wholly: set[int]

    def of_output(self, tensor: int) -> Elements: ...
    def reason(self, place: int) -> str: ...
    def comparison(self, place: int) -> str: ...


class Side(Protocol):
    """One of the two functions that are compared."""

    role: str

    @property
    def inputs(self) -> Sequence[ArrayParameter]: ...
    @property
    def outputs(self) -> Sequence[ArrayParameter]: ...
    def trial(self, arrays: Arrays, names: Mapping[str, str], seed: int) -> Trial: ...
    def run(self, arrays: Arrays, precise: bool = False) -> Mapping[str, Numbers]: ...
    def cause(self, good: Arrays, bad: Arrays) -> Cause: ...
    def digits_lost(self, arrays: Arrays) -> bool | None: ...
    def proof(self, arrays: Arrays) -> Proof | None: ...
    def line(self, place: int) -> str: ...
    def casts(self, trial: Any) -> str: ...


class Kernel:
    """A compiled kernel, which follows an ordinary run."""

    def __init__(self, program: Executable, role: str) -> None:
        self.role, self.program, signature = role, program, signature_of(program)
        self.inputs: Sequence[ArrayParameter] = signature.inputs
        self.outputs: Sequence[ArrayParameter] = signature.outputs

    def trial(self, arrays: Arrays, names: Mapping[str, str], seed: int) -> Field:
        options, fields = RunOptions(), []

        def follow(memory: Memory) -> Field:
            target = options.target_of(self.program)
            fields.append(Field(self.program, memory, target, names, seed))
            return fields[0]

        simulate_ranks(self.program, [arrays], options, follow=follow)
        return fields[0]

    def run(self, arrays: Arrays, precise: bool = False) -> dict[str, Numbers]:
        found = simulate(self.program, arrays, RunOptions(precise=precise)).outputs
        return {p.name: numbers(found[p.name], p.dtype) for p in self.outputs}

    def cause(self, good: Arrays, bad: Arrays) -> Cause:
        return cause_in_kernel(self.program, good, bad)

    def digits_lost(self, arrays: Arrays) -> bool | None:
        return None

    def proof(self, arrays: Arrays) -> Proof | None:
        return proven(self.program, arrays) if any(p.dtype.is_float for p in self.inputs) else None

    def line(self, place: int) -> str:
        return line_of(self.program, place)

    def casts(self, trial: Field) -> str:
        """Return which lines round what depends on inputs."""
        lines: dict[str, set[str]] = {}
        for dtype, place in trial.casts:
            lines.setdefault(dtype, set()).add(self.line(place))
        texts = [
            f"{dtype} at {', '.join(sorted(where)[:MOST_LINES])}"
            for dtype, where in sorted(lines.items())
        ]
        name = clean(self.program.name)
        return f"taken as exact in {name}: rounding to {'; '.join(texts)}" if texts else ""


class Reference:
    """A function of NumPy arrays or torch tensors, for inputs like those of a kernel."""

    role = "the function"

    def __init__(self, function: Callable[..., Any], like: Sequence[ArrayParameter]) -> None:
        for wrapped in ("_orig_mod", "_torchdynamo_orig_callable"):  # by torch.compile
            function = getattr(function, wrapped, function)
        self.function, self.wholly = function, set[int]()
        try:
            parameters = inspect.signature(
                getattr(function, "forward", function)
            ).parameters.values()
        except (TypeError, ValueError) as error:
            raise bad_argument(f"the function cannot be used: {error}") from None
        own = [p.name for p in parameters if p.default is p.empty]
        kinds = {p.name: p for p in like}
        if kinds.keys() != set(own) and len(own) != len(like):
            text = f"the function has the parameters {', '.join(own)}, and the kernel the inputs "
            raise bad_argument(text + ", ".join(kinds))
        self.inputs: Sequence[ArrayParameter] = [
            (kinds[name] if kinds.keys() == set(own) else p)._replace(name=name)
            for name, p in zip(own, like, strict=True)
        ]
        ones = {
            p.name: to_storage(np.ones(unpacked_shape(p.shape, p.dtype)), p.dtype)
            for p in self.inputs
        }
        found = self._tried(ones)
        self.places = Places(self.library.name)
        self.outputs: Sequence[ArrayParameter] = [
            ArrayParameter(name, FLOAT32, array.shape, number)
            for number, (name, array) in enumerate(found.items())
        ]
        self._found: Sequence[Traced] = ()

    def _tried(self, arrays: Arrays) -> Mapping[str, Numbers]:
        """Run the function on what it takes: of two libraries, the first with which it runs."""
        first, *others = libraries(self.function)
        self.library = first
        try:
            return self.run(arrays)
        except Exception:
            for self.library in others:
                with suppress(Exception):
                    return self.run(arrays)
            self.library = first
            raise

    def _called(self, given: Mapping[str, Any]) -> list[Any]:
        numbers = {n: self.library.given(x) for n, x in given.items() if isinstance(x, np.ndarray)}
        found = self.library.called(lambda: self.function(**{**given, **numbers}))
        return [*found] if isinstance(found, tuple | list) else [found]

    def _natural(self, arrays: Arrays) -> dict[str, NDArray[Any]]:
        return {
            p.name: numbers(arrays[p.name], p.dtype).astype(np.float32 if p.dtype.is_float else int)
            for p in self.inputs
        }

    def run(self, arrays: Arrays, precise: bool = False) -> dict[str, Numbers]:
        with np.errstate(all="ignore"):
            found = [array_of(x) for x in self._called(self._natural(arrays))]
        return {f"output_{n}": x.astype(np.float32).astype(np.float64) for n, x in enumerate(found)}

    def cause(self, good: Arrays, bad: Arrays) -> Cause:
        return self.library.cause(lambda: self._called(self._natural(bad)))

    def digits_lost(self, arrays: Arrays) -> bool | None:
        """Return whether float32 gives other results than float64."""
        exact = {
            n: np.asarray(a, a.dtype.type if a.dtype.kind != "f" else float)
            for n, a in self._natural(arrays).items()
        }
        with np.errstate(all="ignore"), suppress(RuntimeError):  # torch does not mix its types
            found = zip(self.run(arrays).values(), self._called(exact), strict=True)
            return any(
                distance_of(one, array_of(other).astype(float), FLOAT32) > CAUTION
                for one, other in found
            )
        return None

    def proof(self, arrays: Arrays) -> Proof | None:
        return None

    def trial(self, arrays: Arrays, names: Mapping[str, str], seed: int) -> Reference:
        traced = dict[str, Traced]()
        for p in self.inputs:
            if p.dtype.is_float:
                state = np.random.default_rng([seed, crc32(names[p.name].encode())])
                traced[p.name] = Traced.variable(state, p.shape, self.places)
        first = next(iter(traced.values()))
        given = self._natural(arrays) | {n: self.library.traced(x) for n, x in traced.items()}
        with np.errstate(all="ignore"):
            found = self.library.followed(lambda: self._called(given), first)
            self._found = [self.library.elements(x, first) for x in found]
        if [x.shape for x in self._found] != [p.shape for p in self.outputs]:
            raise Untraceable("results of other shapes over the field")
        return self

    def of_output(self, tensor: int) -> Elements:
        return flat(self._found[tensor])

    def reason(self, place: int) -> str:
        return f"{self.places.name(place)} compares values, or takes a function with few axioms"

    def comparison(self, place: int) -> str:
        return self.places.name(place)

    def line(self, place: int) -> str:
        return self.places.line(place)

    def casts(self, trial: Any) -> str:
        lines = sorted({(dtype, self.line(place)) for dtype, place in self.places.casts})
        texts = [f"{dtype} at {line}" for dtype, line in lines[:MOST_LINES]]
        return f"taken as exact in the function: rounding to {'; '.join(texts)}" if texts else ""


def equal(
    first: Executable,
    second: Executable | Callable[..., Any],
    given: Arrays | None = None,
    seed: int = 0,
) -> Equality:
    """Compare two programs, or one with a function of NumPy arrays or torch tensors.

    `given` has the values of integer inputs, by the first's names. Raises `UsageFailed` if they
    have different inputs or outputs, and what their runs raise.
    """
    kernel = Kernel(first, "the first kernel")
    other: Side = (
        Kernel(second, "the second kernel")
        if isinstance(second, Executable)
        else Reference(second, kernel.inputs)
    )
    comparing = _Comparing(kernel, other, given or {}, seed)
    programs = [one for one in (first, second) if isinstance(one, Executable)]
    if lines := exchanges(*programs):
        return Equality("undecided", 0.0, 0, lines[:MOST_LINES])
    return comparing.answer()


class _Comparing:
    def __init__(self, first: Side, second: Side, given: Arrays, seed: int) -> None:
        self.sides, self.given, self.seed = (first, second), given, seed
        self.inputs = _paired("inputs", first.inputs, second.inputs)
        self.outputs = _paired("outputs", first.outputs, second.outputs)
        self.wrong: list[set[int]] = [set(), set()]  # places of undecided and loose elements
        self.undecided = self.differs = self.is_firm = self.ordered = False
        self.size, self.order = Size(), Order()
        elements = sum(prod(p.first.shape) for p in (*self.inputs, *self.outputs))
        self.most = min(max(ORDERED_ELEMENTS // max(elements, 1), MOST_TRIALS), MOST_ORDERS)
        self.smallest = max(min(prod(p.first.shape) for p in self.outputs), 1)

    def answer(self) -> Equality:
        trials, lacking = 0, ""
        found: Sequence[Trial] = ()
        try:
            while not self.differs and self._goes_on(trials):
                found = self._trial(self.seed + trials)
                trials += 1
                if trials == 1 and self.order.seen and not (self.undecided or self.differs):
                    self.ordered = not self._is_equal_in_every_order()
                    if not self.ordered:
                        trials = self._needed
        except Untraceable as error:
            self.undecided, lacking = True, f"undecided: {error}"
        bits = 0.0 if self.ordered else self._bits * trials
        if self.order.has_roots:
            bits = min(bits, float(trials * self.smallest))
        casts = tuple(side.casts(trial) for side, trial in zip(self.sides, found, strict=False))
        integers = tuple(p.first.name for p in self.inputs if not p.first.dtype.is_float)
        answer = Equality("equal", bits, trials, casts=tuple(filter(None, casts)), given=integers)
        if not (self.undecided or self.differs):
            usual = Generator("uniform", (0.0, 1.0, 1.0))
            each = zip(self.sides, self._arrays(usual), strict=True)
            one, other = (side.proof(arrays) for side, arrays in each)
            roles = self.sides[0].role, self.sides[1].role
            if self.ordered:
                answer = replace(answer, orders=trials, one_way=self._one_way(found))
            return replace(answer, limits=self._limits(), proofs=(one, other), sides=roles)
        lines = (lacking,) if lacking else tuple(self._lines(found))
        example = self._counterexample()
        verdict: Verdict = "unconfirmed" if self.is_firm and not self.undecided else "undecided"
        return replace(
            answer,
            verdict="different" if example else verdict,
            lines=() if example else lines,
            counterexample=example,
        )

    @property
    def _bits(self) -> float:
        return max(BITS - log2(max(self.size.top + self.size.bottom, 1.0)), 1.0)

    def _goes_on(self, trials: int) -> bool:
        more = self.ordered and not self.undecided and trials < self.most and self.order.one_way()
        return trials < self._needed or bool(more)

    @property
    def _needed(self) -> int:
        """The number of trials: more for few elements if they are chosen, or have one of two signs,
        as the root of a square.
        """
        chosen = ceil(WANTED_BITS / self.smallest) if self.ordered or self.order.has_roots else 0
        needed = min(max(2, ceil(WANTED_BITS / self._bits)), MOST_TRIALS)
        return max(needed, min(chosen, self.most))

    def _trial(self, seed: int) -> list[Trial]:
        trials = self._run(seed)
        for one, other in self._results(trials):
            self._compare(one, other)
        self.undecided |= any(trial.wholly for trial in trials)
        return trials

    def _run(self, seed: int, is_free: bool = False) -> list[Trial]:
        trials = []
        self.order.begin(is_free)
        both = self._arrays(Generator("randn", (float(seed),)))
        for number, (side, arrays) in enumerate(zip(self.sides, both, strict=True)):
            names = {pair[number].name: pair.first.name for pair in self.inputs}
            self.order.follow(number)
            with ordered(self.order):
                trials.append(side.trial(arrays, names, seed))
        return trials

    def _results(self, trials: Sequence[Trial]) -> Iterator[list[Elements]]:
        for pair in self.outputs:
            both = zip(trials, pair, strict=True)
            results = [trial.of_output(parameter.tensor) for trial, parameter in both]
            self.size = self.size.joined(results[0].size.sum(results[1].size))
            yield results

    def _is_equal_in_every_order(self) -> bool:
        """Return whether the programs agree where maximum is an operation of a random group."""
        return all(
            (_agree(one, other) & (one.origin == 0) & (other.origin == 0)).all()
            for number in range(self._needed)
            for one, other in self._results(self._run(self.seed + number, is_free=True))
        )

    def _one_way(self, trials: Sequence[Trial]) -> tuple[str, ...]:
        found = {
            f"{grouped(some)} of {plural(every, 'element')} had one outcome alone, "
            f"{trials[side].comparison(place)} at {self.sides[side].line(place)}": None
            for (side, place), (some, every) in self.order.one_way().items()
        }
        return tuple(found)[:MOST_LINES]

    def _compare(self, one: Elements, other: Elements) -> None:
        same = _agree(one, other)
        decided = (one.origin == 0) & (other.origin == 0)
        differ = decided & ~same
        is_firm = differ & (one.loose == 0) & (other.loose == 0)
        self.undecided |= not decided.all()
        self.differs |= bool(differ.any())
        deep = max(one.size.depth, other.size.depth) > TOP
        self.is_firm |= bool(is_firm.any()) and not deep
        for places, elements in zip(self.wrong, (one, other), strict=True):
            places |= {int(n) - 1 for n in np.unique(elements.origin) if n}
            if differ.any() and not is_firm.any():
                places |= {int(n) - 1 for n in np.unique(elements.loose[differ]) if n}

    def _limits(self) -> tuple[Limit, ...]:
        """Return where the functions, which are equal, part on numbers of float32."""

        def cause(side: int | None, good: Fills, bad: Fills) -> tuple[int | None, Cause]:
            places = (0, 1) if side is None else (side,)
            found = {
                n: self.sides[n].cause(self._arrays(good)[n], self._arrays(bad)[n]) for n in places
            }
            if side is not None:
                return side, found[side]
            made = [n for n in places if found[n].place]
            if len(made) == 1:
                return made[0], found[made[0]]
            lost = self.sides[1].digits_lost(self._arrays(bad)[1])
            return (None if lost is None else int(lost)), Cause("", "digits are lost")

        floats = [p.first._replace(dtype=p.narrow) for p in self.inputs if p.first.dtype.is_float]
        return limits_of(floats, self._look, cause)

    def _look(self, fills: Fills) -> Look:
        each = zip(self.sides, self._arrays(fills), strict=True)
        runs = [side.run(arrays, precise=True) for side, arrays in each]
        return looked(
            (runs[0][pair.first.name], runs[1][pair.second.name], pair.narrow)
            for pair in self.outputs
        )

    def _arrays(self, fill: Generator | Fills) -> tuple[dict[str, NDArray[Any]], ...]:
        """Return the inputs of both programs: the same numbers."""
        both: tuple[dict[str, NDArray[Any]], ...] = ({}, {})
        for pair in self.inputs:
            dtype, name = pair.narrow, pair.first.name
            if name in self.given:
                values = numbers(self.given[name], pair.first.dtype)
            else:
                own = fill if isinstance(fill, Generator) else fill.get(name, _INDICES)
                source = own if dtype.is_float else _INDICES
                values = numbers(source.array(name, dtype, pair.first.shape), dtype)
            for number, arrays in enumerate(both):
                arrays[pair[number].name] = to_storage(values, pair[number].dtype)
        return both

    def _lines(self, trials: Sequence[Trial]) -> list[str]:
        found: dict[str, None] = {}
        for side, trial, places in zip(self.sides, trials, self.wrong, strict=True):
            for place in sorted(places | trial.wholly):
                found[f"undecided: {trial.reason(place)} at {side.line(place)}"] = None
        return [*found][:MOST_LINES]

    def _counterexample(self) -> Counterexample | None:
        """Return inputs at which ordinary runs differ by more than the tolerance."""
        caution = 1.0 if self.is_firm else CAUTION
        for fill in _FILLS:
            each = zip(self.sides, self._arrays(fill), strict=True)
            results = [side.run(arrays) for side, arrays in each]
            for pair in self.outputs:
                comparison = _compared(pair, results, caution)
                both = comparison.got, comparison.expected
                finite = self.is_firm or not any(np.isinf(x).any() for x in both)
                if not comparison.passed and finite:  # overflow is no other function
                    return Counterexample(str(fill), comparison)
        return None


def _agree(one: Elements, other: Elements) -> NDArray[np.bool_]:
    infinite = np.isinf(one.value) | np.isinf(other.value)
    residues = one.residues[TOP] == other.residues[TOP]
    same: NDArray[np.bool_] = np.where(infinite, one.value == other.value, residues)
    return same


def _compared(pair: _Pair, results: Sequence[Mapping[str, Numbers]], caution: float) -> Comparison:
    rule = ToleranceSettings(equal_nan=True).rule(pair.first.name, pair.narrow)
    rule = replace(rule, rtol=rule.rtol * caution, atol=rule.atol * caution)
    output = to_storage(results[0][pair.first.name], pair.first.dtype)
    expected = results[1][pair.second.name]
    return compare(pair.first.name, output, pair.first.dtype, expected, rule)


def _paired(
    what: str, first: Sequence[ArrayParameter], second: Sequence[ArrayParameter]
) -> list[_Pair]:
    """Return the arrays of both programs in pairs: by name, or else in order."""
    named = {p.name: p for p in second}
    if {p.name for p in first} == set(named):
        pairs = [_Pair(p, named[p.name]) for p in first]
    elif len(first) == len(second):
        pairs = [_Pair(*both) for both in zip(first, second, strict=True)]
    else:
        pairs = []
    if not pairs or any(p.first.shape != p.second.shape for p in pairs):
        shapes = [", ".join(f"{clean(p.name)} {p}" for p in side) for side in (first, second)]
        text = f"the kernels have different {what}: {shapes[0]}, and {shapes[1]}"
        help = "compare kernels of the same shapes; of one kernel for two numbers of rows, "
        help += "--batch or nkic.batch_invariant tells whether a row gets the same bits"
        raise bad_argument(text, help)
    return pairs
