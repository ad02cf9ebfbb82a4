"""Where two functions that are equal over the field part: overflow, poles, and lost digits.

The field knows no size of numbers. So both functions are run on inputs that grow, shrink, move away
from zero or are all equal, until one is not finite where the other is, or their distance grows far
beyond that of inputs between -1 and 1. The end is narrowed by bisection; the instruction is the
first that makes infinity or NaN of numbers. What is found is shown by inputs; what is not found is
not excluded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import sqrt
from pathlib import Path
from traceback import extract_tb
from typing import Any, Literal, NamedTuple

import numpy as np

from nkic.artifact.records import Executable, InstructionRecord, PatternRecord, source_of
from nkic.base.text import clean
from nkic.machine.dtypes import DType
from nkic.machine.operands import AttributeKind
from nkic.simulate.beside import values_of
from nkic.simulate.compare import ToleranceSettings
from nkic.simulate.field.traced import is_library
from nkic.simulate.inputs import ArrayParameter, Generator, Numbers
from nkic.simulate.observed import Execution, Observer
from nkic.simulate.stage import Arrays, simulate_ranks

# ---- The inputs that are tried ------------------------------------------------------------------

Fills = Mapping[str, Generator]
GROWING = tuple(2.0**n for n in (3, 6, 10, 16, 24, 40, 64, 96, 124))
SHRINKING = tuple(2.0**-n for n in (6, 12, 24, 60, 126))
SEED = 1.0
_CLOSE = 1.002  # the ratio of both ends of a bisection
FAR = 100.0  # tolerances
FAR_FROM_USUAL = 16.0
ORDINARY, NEAR = 2.0**48, 64.0  # sizes, and ratios of sizes, that a kernel's user cares for


@dataclass(frozen=True)
class Way:
    """Inputs of a size: `grown` are those that have it, the others stay between -1 and 1.

    `form` is "within" for |x| up to the size, "around" for the size plus or minus one, "equal" for
    the size alone. `low` is the least of numbers otherwise between -1 and 1: 0 for functions that
    are not defined for negative numbers.
    """

    grown: tuple[str, ...]
    others: tuple[str, ...]
    form: str
    low: float

    def at(self, size: float) -> Fills:
        size = float(f"{size:.6g}")  # what `--fill` prints
        forms = {
            "within": Generator("uniform", (self.low * size, size, SEED)),
            "around": Generator("uniform", (size - 1, size + 1, SEED)),
            "equal": Generator("const", (size,)),
        }
        usual = Generator("uniform", (self.low, 1.0, SEED))
        return dict.fromkeys(self.grown, forms[self.form]) | dict.fromkeys(self.others, usual)

    def text(self, size: float) -> str:
        what = ", ".join(map(clean, self.grown)) if self.others else "all inputs"
        number = f"{size:.4g}"
        return {
            "within": f"{what} within {number}" if size else f"{what} 0",
            "around": f"{what} in {number} ± 1",
            "equal": f"{what} all equal to {number}",
        }[self.form]


def _ways(inputs: Sequence[ArrayParameter], low: float) -> Iterator[tuple[Way, Sequence[float]]]:
    """Return what is tried, each with its sizes, away from 1."""
    names = tuple(p.name for p in inputs)
    highest = min(p.dtype.highest for p in inputs)
    growing = [size for size in GROWING if size < highest / 2]
    for form in ("within", "around", "equal"):
        yield Way(names, (), form, low), growing
    yield Way(names, (), "within", low), (*SHRINKING, 0.0)
    for name in names if len(names) > 1 else ():
        one = Way((name,), tuple(n for n in names if n != name), "within", low)
        yield one, growing
        yield one, (*SHRINKING[1::2], 0.0)


# ---- What is found ------------------------------------------------------------------------------


class Look(NamedTuple):
    """Both functions at some inputs.

    `lost` tells for each whether it is not finite somewhere where the other is, `finite` the share
    of elements where both are; there, `distance` is the largest between them, in tolerances.
    """

    lost: tuple[bool, bool]
    finite: float
    distance: float


def looked(pairs: Iterable[tuple[Numbers, Numbers, DType]]) -> Look:
    """Compare the outputs of both, whose narrower types are given."""
    lost, finite, distance = [False, False], 1.0, 0.0
    for one, other, dtype in pairs:
        first, second = one.reshape(-1), other.reshape(-1)
        sound = np.isfinite(first), np.isfinite(second)
        for n in (0, 1):
            lost[n] |= bool((~sound[n] & sound[1 - n]).any())
        finite = min(finite, float((sound[0] & sound[1]).mean()))
        distance = max(distance, distance_of(first, second, dtype))
    return Look((lost[0], lost[1]), finite, distance)


def distance_of(one: Numbers, other: Numbers, dtype: DType) -> float:
    """Return the largest distance of numbers that are finite in both, in tolerances.

    The absolute tolerance is that of the largest of them.
    """
    both = np.isfinite(one) & np.isfinite(other)
    if not both.any():
        return 0.0
    rule, size = ToleranceSettings().rule("", dtype), np.abs(other[both])
    tolerance = rule.atol * max(float(size.max()), 1.0) + rule.rtol * size
    off = np.abs(one[both] - other[both])
    with np.errstate(divide="ignore"):  # integers have no tolerance
        return float(np.divide(off, tolerance, out=np.zeros_like(off), where=off > 0).max())


class Cause(NamedTuple):
    """Why a function fails: what happens, the line, and the numbers with which it does not yet."""

    place: str
    text: str
    within: str = ""


@dataclass(frozen=True)
class Limit:
    """Sizes of inputs from which on two equal functions part.

    `side` is the one that fails, 0 or 1; None if it is not known. The functions agree at the size
    `holds` and not at `fails`, which is smaller if inputs shrink; `fill` are the inputs there, as
    `--inputs` takes them. `other` is the largest size tried at which the other is right.
    """

    side: int | None
    way: Way
    holds: float
    fails: float
    other: float
    cause: Cause

    @property
    def fill(self) -> tuple[str, ...]:
        return tuple(f"{name}={fill}" for name, fill in sorted(self.way.at(self.fails).items()))

    def text(self, sides: tuple[str, str]) -> str:
        where = self.way.text(self.fails)
        if self.side is None:
            return f"limit: the results part, both finite, from {where} on"
        place = f" at {self.cause.place}" if self.cause.place else ""
        grows = self.fails > self.holds
        within = f" with {self.cause.within}" if self.cause.within and grows else ""
        upto = f" up to {self.other:.4g}" if grows else ""
        return (
            f"limit of {sides[self.side]}{place}: {self.cause.text}{within}, as with {where}; "
            f"{sides[1 - self.side]} stays finite{upto}"
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "side": self.side,
            "inputs": list(self.way.grown),
            "form": self.way.form,
            "holds": self.holds,
            "fails": self.fails,
            "other": self.other,
            "place": self.cause.place,
            "cause": self.cause.text,
            "within": self.cause.within,
            "fill": list(self.fill),
        }


def limits_of(
    inputs: Sequence[ArrayParameter],
    look: Callable[[Fills], Look],
    cause: Callable[[int | None, Fills, Fills], tuple[int | None, Cause]],
) -> tuple[Limit, ...]:
    """Return the limits that are found, one for each place and side.

    `inputs` are those of floating-point types. `look` runs both functions; `cause` tells why a side
    fails at the second of two fills and not at the first, and which does if that is not known.
    """
    if not inputs:
        return ()
    looks: dict[frozenset[tuple[str, Generator]], Look] = {}

    def once(fills: Fills) -> Look:  # at the size 1, many ways are one
        key = frozenset(fills.items())
        if key not in looks:
            looks[key] = look(fills)
        return looks[key]

    names = tuple(p.name for p in inputs)
    starts = {low: once(Way(names, (), "within", low).at(1.0)) for low in (-1.0, 0.0)}
    low = max(starts, key=lambda each: (starts[each].finite, each < 0))
    searching = _Searching(once, cause, starts[low].distance)
    for way, sizes in _ways(inputs, low):
        searching.go(way, sizes)
    return tuple(searching.found.values())


class _Searching:
    def __init__(
        self,
        look: Callable[[Fills], Look],
        cause: Callable[[int | None, Fills, Fills], tuple[int | None, Cause]],
        usual: float,  # the distance that rounding makes at numbers up to 1
    ) -> None:
        self.look, self.cause, self.usual = look, cause, usual
        self.found: dict[tuple[int | None, Cause], Limit] = {}

    def kind(self, look: Look) -> Literal[0, 1, "apart"] | None:
        """Return the side that is lost, "apart" if finite results differ, None if all is well."""
        if any(look.lost):
            return 0 if look.lost[0] else 1
        return "apart" if look.distance > max(FAR, FAR_FROM_USUAL * self.usual) else None

    def go(self, way: Way, sizes: Sequence[float]) -> None:
        """Follow one way to its first limit."""
        start = self.look(way.at(1.0))
        if self.kind(start) is not None or not start.finite:
            return
        holds = 1.0
        for number, size in enumerate(sizes):
            look = self.look(way.at(size))
            kind = self.kind(look)
            if kind is not None:
                self._note(way, holds, size, kind, sizes[number:])
            if kind is not None or not look.finite:
                return
            holds = size

    def _note(
        self, way: Way, holds: float, fails: float, kind: int | str, rest: Sequence[float]
    ) -> None:
        side, cause = self._explained(way, holds, fails, kind)
        if (side, cause._replace(within="")) in self.found:
            return
        while fails and max(fails / holds, holds / fails) > _CLOSE:
            middle = sqrt(fails) * sqrt(holds)
            good = self.kind(self.look(way.at(middle))) is None
            holds, fails = (middle, fails) if good else (holds, middle)
        kind = self.kind(self.look(way.at(fails))) or kind
        side, cause = self._explained(way, holds, fails, kind)
        other = fails
        for size in rest:
            look = self.look(way.at(size))
            if side is None or look.lost[1 - side] or not (look.finite or look.lost[side]):
                break
            other = size
        if fails < ORDINARY or other > NEAR * fails:  # else the order of a sum may explain it
            limit = Limit(side, way, holds, fails, other, cause)
            self.found.setdefault((side, cause._replace(within="")), limit)

    def _explained(
        self, way: Way, holds: float, fails: float, kind: int | str
    ) -> tuple[int | None, Cause]:
        known = kind if isinstance(kind, int) else None
        return self.cause(known, way.at(holds), way.at(fails))


# ---- The instruction ----------------------------------------------------------------------------


class Made(NamedTuple):
    """What made infinity or NaN of numbers: an instruction's place, its name, and what it made."""

    place: int
    name: str
    what: str


class Making(Observer):
    """Finds the first instruction that makes infinity or NaN of numbers.

    Of `watched`, an instruction's place, it keeps what is read instead: the least and the greatest
    number by tensor.
    """

    def __init__(self, watched: int | None = None) -> None:
        self.watched = watched
        self.first: Made | None = None
        self.read: dict[str, tuple[float, float]] = {}
        self._reads_numbers = False

    def before(self, execution: Execution) -> None:
        scene, record = execution.scene, execution.item.record
        self._reads_numbers = False
        if record.row is None or self.first or self.watched not in (None, record.place):
            return
        named = dict(zip(record.row.operand_index, record.operands, strict=False))
        for operand in record.row.operands:
            pattern = named.get(operand.name)
            if type(pattern) is not PatternRecord or not operand.access.reads:
                continue
            if not pattern.dtype.is_float or pattern.dynamic is not None:
                continue
            values = values_of(scene.tensors.memory, pattern)
            if not np.isfinite(values).all():
                self._reads_numbers = False
                return
            self._reads_numbers = True
            if self.watched is not None and values.size:
                name = scene.executable.tensors[pattern.tensor].name
                low, high = self.read.get(name, (np.inf, -np.inf))
                self.read[name] = min(low, float(values.min())), max(high, float(values.max()))

    def after(self, execution: Execution) -> None:
        if not self._reads_numbers or self.watched is not None:
            return
        scene, record = execution.scene, execution.item.record
        assert record.row is not None
        engine = execution.runner.engine
        for pattern in scene.executable.written(record, scene.target, engine).values():
            if pattern.dtype.is_float and pattern.dynamic is None:
                values = values_of(scene.tensors.memory, pattern)
                wrong = values[~np.isfinite(values)]
                if wrong.size:
                    what = "NaN" if np.isnan(wrong).any() else "infinity"
                    self.first = Made(record.place, named(record), what)
                    return


def named(record: InstructionRecord) -> str:
    """Return an instruction's name, with its function if it has one."""
    if record.row is None:
        return ""
    attributes = dict(zip(record.row.attribute_index, record.attributes, strict=True))
    function = attributes.get("op")
    return record.row.name + (f" ({function})" if function else "")


def line_of(program: Executable, place: int) -> str:
    """Return the file and line of an instruction, or the program's name if it has none."""
    span = source_of(program, place)
    return f"{clean(span.path)}:{span.line}" if span is not None else clean(program.name)


def exchanges(*programs: Executable) -> tuple[str, ...]:
    """Return the lines on which rank 0, which is the only one that is run, needs other ranks."""
    found: dict[str, None] = {}
    for program in programs:
        for item in chain.from_iterable(stream.items for stream in program.streams):
            if isinstance(item, InstructionRecord) and item.row is not None:
                for attribute, value in zip(item.row.attributes, item.attributes, strict=True):
                    is_groups = attribute.kind is AttributeKind.GROUPS
                    if is_groups and any(chain.from_iterable(value or ())):
                        place = line_of(program, item.place)
                        found[f"undecided: {item.row.name} with other ranks at {place}"] = None
    return tuple(found)


def cause_in_kernel(program: Executable, good: Arrays, bad: Arrays) -> Cause:
    """Return which instruction fails at `bad`, and what it reads at `good`, where it does not."""
    making = Making()
    simulate_ranks(program, [bad], observers=[making])
    made = making.first
    if made is None:
        return Cause("", "its result is not finite")
    watching = Making(made.place)
    simulate_ranks(program, [good], observers=[watching])
    ranges = [f"`{clean(n)}` beyond [{a:.4g}, {b:.4g}]" for n, (a, b) in watching.read.items()]
    return Cause(
        line_of(program, made.place),
        f"{made.name} makes {made.what} of numbers",
        " or ".join(ranges),
    )


def cause_in_function(call: Callable[[], object]) -> Cause:
    """Return which line of a function overflows, divides by zero, or makes NaN."""
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            call()
    except FloatingPointError as error:
        calls = extract_tb(error.__traceback__)
        frames = [frame for frame in calls if not is_library(frame.filename)]
        return Cause(f"{Path(frames[-1].filename).name}:{frames[-1].lineno}", str(error))
    return Cause("", "its result is not finite")
