"""Comparison of an output with its expected values: whether, where and how far it differs.

NaN is equal to nothing, including itself, unless the rule says so. A finite element whose
counterpart is not finite fails under any pass rate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from math import fsum, isfinite, isnan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nkic.base.diagnostics import Diagnostic, make
from nkic.base.text import clean, grouped, plural
from nkic.machine.dtypes import FLOAT8_E8M0FNU, TFLOAT32, DType
from nkic.machine.targets import PARTITIONS
from nkic.simulate.inputs import Numbers, numbers, to_storage

# ---- Tolerances: a rule for each output, by default that of its type ----------------------------
# The defaults allow two steps of the type's grid (rtol), and near zero one step at 1 (atol), the
# size of differences between summation orders; float32, in which all arithmetic is done, has 1e-5
# for both.

EVERY = ""  # the name of settings for all outputs
# The settings that each mode uses.
MODES = {
    "close": ("rtol", "atol", "min_pass_rate"),
    "range": ("rtol", "atol", "min_pass_rate"),
    "ulp": ("max_ulp", "min_pass_rate"),
    "cosine": ("min_cosine",),
    "l2": ("max_l2",),
    "exact": ("min_pass_rate",),
    "skip": (),
}
_LIMITS = {"min_cosine": (-1.0, 1.0), "min_pass_rate": (0.0, 1.0), "max_ulp": (0.0, 2.0**32)}


def out_of_range(key: str, value: Any) -> str:
    """Return which number a field must be, if a value is none; "" if it is."""
    low, high = _LIMITS.get(key, (0.0, 1e300))
    if type(value) in (int, float) and low <= value <= high:
        return ""
    return (
        f"a number from {low:g} to {high:g}" if key in _LIMITS else f"a number of at least {low:g}"
    )


@dataclass(frozen=True)
class Tolerance:
    """How an output is compared.

    close: |got - expected| <= atol + rtol * |expected|, for each element; range: the same with the
    largest |expected| of all; ulp: at most `max_ulp` steps of the type's grid apart; cosine: the
    angle between both arrays has at least this cosine; l2: the length of the difference, as a share
    of the length of the expected array, is at most `max_l2`; exact: the same bits.
    """

    mode: str
    rtol: float = 0.0
    atol: float = 0.0
    max_ulp: float = 0.0
    min_cosine: float = 1.0
    max_l2: float = 0.0
    min_pass_rate: float = 1.0
    equal_nan: bool = False

    def __str__(self) -> str:
        used = [(name, getattr(self, name)) for name in MODES[self.mode]]
        parts = [f"{n} {v:g}" for n, v in used if n != "min_pass_rate" or v < 1]
        parts += ["NaN equals NaN"] if self.equal_nan else []
        return ", ".join([self.mode, *parts])


@dataclass(frozen=True)
class ToleranceSettings:
    """The user's tolerances: for each field of `Tolerance`, values by output name."""

    by_name: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    equal_nan: bool = False

    @classmethod
    def of_all(cls, **values: float | None) -> ToleranceSettings:
        """Return these settings for all outputs; None for a default."""
        return cls({key: {EVERY: value} for key, value in values.items() if value is not None})

    def rule(self, name: str, dtype: DType) -> Tolerance:
        mode = self.mode(name)
        rule = _default(mode, dtype)
        settings = {key: self._setting(key, name) for key in MODES[mode]}
        explicit = {key: value for key, value in settings.items() if value is not None}
        return Tolerance(**{**vars(rule), **explicit, "equal_nan": self.equal_nan})

    def mode(self, name: str) -> str:
        return self._setting("mode", name) or "close"

    def ignored(self, modes: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Yield the fields, and the outputs that they are for, that no output of them uses."""
        for key, values in self.by_name.items():
            using = {n for n, mode in modes.items() if key == "mode" or key in MODES[mode]}
            for name in values:
                if not (using if name == EVERY else name in using):
                    yield key, name

    def _setting(self, key: str, name: str) -> Any:
        values = self.by_name.get(key, {})
        return values.get(name, values.get(EVERY))


def _default(mode: str, dtype: DType) -> Tolerance:
    element = dtype.element or dtype
    if not element.is_float:
        return Tolerance(mode, max_ulp=0, min_cosine=0.99999, max_l2=1e-5)
    if element.size == 4:
        return Tolerance(mode, rtol=1e-5, atol=1e-5, max_ulp=4, min_cosine=0.99999, max_l2=1e-5)
    step = 2.0**-element.mantissa_bits
    return Tolerance(mode, rtol=2 * step, atol=step, max_ulp=1, min_cosine=0.999, max_l2=2 * step)


# --------------------------------------------------------------------------------------------------

Mask = NDArray[np.bool_]
# Upper ends of the histogram's bins: in tolerances, or in steps of the grid.
BINS = (1.0, 2.0, 10.0, 100.0)
ULP_BINS = (0.0, 1.0, 4.0, 16.0, 256.0)


@dataclass(frozen=True)
class Point:
    """One element. `ulp` is the distance in steps of the type's grid, or None if one is NaN."""

    index: tuple[int, ...]
    got: float
    expected: float
    difference: float
    ulp: int | None


@dataclass(frozen=True)
class Comparison:
    """The verdict on one output.

    `worst` is the element with the largest error, `first` the first that fails. `histogram` counts
    elements by error: upper ends in `unit`, with "above" and "not finite" as the last bins. `wrong`
    tells for each element whether it fails; `got` and `expected` are the numbers. `whole` is the
    cosine or the relative L2 error of the whole array, if the rule is about it.
    """

    name: str
    dtype: DType
    rule: Tolerance
    passed: bool
    failures: int
    not_finite: int
    first: Point | None
    worst: Point | None
    unit: str
    histogram: tuple[tuple[float | None, int], ...]
    whole: float | None
    wrong: Mask
    got: Numbers
    expected: Numbers

    @property
    def elements(self) -> int:
        return self.got.size


@np.errstate(all="ignore")  # non-finite values are counted rather than warned about
def compare(
    name: str, output: NDArray[Any], dtype: DType, expected: Numbers, rule: Tolerance
) -> Comparison:
    """Compare an output in storage type with numbers of its shape (packed: unpacked)."""
    got, expected = np.atleast_1d(numbers(output, dtype)), np.atleast_1d(expected)
    element = dtype.element or dtype
    errors = _errors(got, expected, element, rule)
    wrong = _wrong(got, expected, errors, rule)
    mismatch = np.isfinite(got) != np.isfinite(expected)
    whole = WHOLE[rule.mode](got, expected) if rule.mode in WHOLE else None
    failures = int(np.count_nonzero(wrong))
    return Comparison(
        name,
        dtype,
        rule,
        passed=_passed(failures, bool(mismatch.any()), got.size, whole, rule),
        failures=failures,
        not_finite=int(np.count_nonzero(wrong & ~(np.isfinite(got) & np.isfinite(expected)))),
        first=_point(_first(wrong), got, expected, element),
        worst=_point(_worst(errors, wrong), got, expected, element),
        unit="ulp" if rule.mode in ("ulp", "exact") else "tolerance",
        histogram=_histogram(errors, wrong, ULP_BINS if rule.mode in ("ulp", "exact") else BINS),
        whole=whole,
        wrong=wrong,
        got=got,
        expected=expected,
    )


def agreement(
    old: Mapping[str, NDArray[Any]],
    new: Mapping[str, NDArray[Any]],
    old_types: Mapping[str, DType],
    new_types: Mapping[str, DType],
) -> str:
    """Return how the outputs of two programs agree: "bits", "rounding" within the tolerances of
    their types, or "different".
    """
    if old.keys() != new.keys():
        return "different"
    settings, verdict = ToleranceSettings(equal_nan=True), "bits"
    for name, array in old.items():
        dtype, after = old_types[name], new[name]
        if array.shape == after.shape and array.tobytes() == after.tobytes():
            continue
        if array.shape != after.shape or dtype is not new_types[name]:
            return "different"
        if not compare(
            name, after, dtype, numbers(array, dtype), settings.rule(name, dtype)
        ).passed:
            return "different"
        verdict = "rounding"
    return verdict


def _errors(got: Numbers, expected: Numbers, dtype: DType, rule: Tolerance) -> Numbers:
    """Return the error of each element: in tolerances (1: just allowed), or in steps of the grid.

    It is NaN if the numbers are not both finite.
    """
    if rule.mode == "ulp":
        return _ulps(got, expected, dtype)
    if rule.mode == "exact":
        zeros = (got == 0) & (expected == 0)  # equal as numbers, not as bits
        mask: Mask = zeros & (np.signbit(got) != np.signbit(expected))
        return _ulps(got, expected, dtype) + mask
    off = np.abs(got - expected)
    errors = np.where(off == 0, 0.0, off / _allowed(expected, rule))
    errors[~(np.isfinite(got) & np.isfinite(expected))] = np.nan
    return errors


def _allowed(expected: Numbers, rule: Tolerance) -> Numbers | np.float64:
    if rule.mode == "close":
        return rule.atol + rule.rtol * np.abs(expected)
    # A rule about the whole array ranks elements by their distance.
    rtol, atol = (1.0, 0.0) if rule.mode in WHOLE else (rule.rtol, rule.atol)
    finite = np.abs(expected[np.isfinite(expected)])
    return np.float64(atol + rtol * finite.max(initial=0.0))


def _wrong(got: Numbers, expected: Numbers, errors: Numbers, rule: Tolerance) -> Mask:
    limit = {"ulp": rule.max_ulp, "exact": 0.0, **dict.fromkeys(WHOLE, np.inf)}.get(rule.mode, 1.0)
    right = (errors <= limit) | (np.isinf(got) & (got == expected))
    if rule.equal_nan:
        right |= np.isnan(got) & np.isnan(expected)
    wrong: Mask = ~right
    return wrong


def _passed(failures: int, mismatch: bool, size: int, whole: float | None, rule: Tolerance) -> bool:
    if whole is not None:
        near = whole >= rule.min_cosine if rule.mode == "cosine" else whole <= rule.max_l2
        return not failures and near
    if not failures:
        return True
    return not mismatch and (size - failures) / size >= rule.min_pass_rate


def _cosine(got: Numbers, expected: Numbers) -> float:
    """Return the cosine of the finite elements, without BLAS: its sums differ between machines."""
    finite = np.isfinite(got) & np.isfinite(expected)
    a, b = got[finite], expected[finite]
    lengths = np.sqrt((a * a).sum()) * np.sqrt((b * b).sum())
    if lengths == 0:
        return 1.0 if not a.any() and not b.any() else 0.0
    return float((a * b).sum() / lengths)


def _l2(got: Numbers, expected: Numbers) -> float:
    """Return the length of the difference of the finite elements, as a share of the length of
    what was expected.
    """
    finite = np.isfinite(got) & np.isfinite(expected)
    wanted, off = expected[finite], got[finite] - expected[finite]
    off_length, length = np.sqrt((off * off).sum()), np.sqrt((wanted * wanted).sum())
    if off_length == 0:
        return 0.0
    return float(off_length / length) if length else float("inf")


WHOLE: Mapping[str, Callable[[Numbers, Numbers], float]] = {"cosine": _cosine, "l2": _l2}


def _ulps(got: Numbers, expected: Numbers, dtype: DType) -> Numbers:
    """Return the steps of the grid between the elements, after rounding `expected` to the grid."""
    steps = np.abs(_ordinals(got, dtype) - _ordinals(expected, dtype))
    distance: Numbers = steps.astype(np.float64)
    distance[~(np.isfinite(got) & np.isfinite(expected))] = np.nan
    return distance


def _ordinals(values: Numbers, dtype: DType) -> NDArray[np.int64]:
    """Return integers in the order of a type's values, neighbours one apart; both zeros are 0."""
    codes = to_storage(values, dtype)
    if not dtype.is_float:
        return codes.astype(np.int64)
    if dtype is TFLOAT32:
        return _signed(codes.view(np.uint32) >> np.uint32(13), 19)
    bits = codes.view(f"u{dtype.size}")
    if dtype is FLOAT8_E8M0FNU:
        return bits.astype(np.int64)
    return _signed(bits, 1 + dtype.exponent_bits + dtype.mantissa_bits)


def _signed(bits: NDArray[Any], width: int) -> NDArray[np.int64]:
    wide = bits.astype(np.int64)
    magnitude = wide & ((1 << (width - 1)) - 1)
    return np.where(wide >> (width - 1), -magnitude, magnitude)


def _first(wrong: Mask) -> int | None:
    return int(wrong.argmax()) if wrong.any() else None


def _worst(errors: Numbers, wrong: Mask) -> int | None:
    """Return the element with the largest error.

    The first failure without a numeric error, such as a NaN, is worst of all; if no element has an
    error, return the first that fails.
    """
    lost = wrong & np.isnan(errors)
    if lost.any():
        return _first(lost)
    if errors.size and not np.isnan(errors).all():
        return int(np.nanargmax(errors))
    return _first(wrong)


def _point(flat_index: int | None, got: Numbers, expected: Numbers, dtype: DType) -> Point | None:
    if flat_index is None:
        return None
    index = tuple(int(i) for i in np.unravel_index(flat_index, got.shape))
    element = slice(flat_index, flat_index + 1)
    pair = got.reshape(-1)[element], expected.reshape(-1)[element]
    ulp = _ulps(*pair, dtype)[0]
    a, b = float(pair[0][0]), float(pair[1][0])
    return Point(index, a, b, abs(a - b), None if np.isnan(ulp) else int(ulp))


def _histogram(
    errors: Numbers, wrong: Mask, ends: tuple[float, ...]
) -> tuple[tuple[float | None, int], ...]:
    """Count elements by error: up to each end, above the last (None), and not finite (end NaN).

    Only failing elements count as not finite. Equal infinities count into the first bin.
    """
    finite = errors[~np.isnan(errors)]
    places = np.searchsorted(np.array(ends), finite, side="left")
    counts = np.bincount(places, minlength=len(ends) + 1)
    lost = int(np.count_nonzero(np.isnan(errors) & wrong))
    counts[0] += errors.size - finite.size - lost
    return (*zip((*ends, None), map(int, counts), strict=True), (float("nan"), lost))


# ---- Summary statistics of an array -------------------------------------------------------------

_BLOCK = 1 << 18


@dataclass(frozen=True)
class Stats:
    """Minimum, mean and maximum of the finite elements (None without any), and a hash of the bytes.

    `nan` and `inf` count the elements that are NaN or infinite.
    """

    minimum: float | None
    mean: float | None
    maximum: float | None
    nan: int
    inf: int
    sha256: str


def stats_of(stored: NDArray[Any], dtype: DType) -> Stats:
    flat = np.ascontiguousarray(stored).reshape(-1)
    # a block at a time: float64 takes eight times the bytes of a narrow type
    blocks = [flat[start : start + _BLOCK] for start in range(0, flat.size, _BLOCK)]
    parts = [_part(numbers(block, dtype)) for block in blocks]
    finite = [part for part in parts if part.size]
    count = sum(part.size for part in finite)
    return Stats(
        min((part.minimum for part in finite), default=None),
        fsum(part.total for part in finite) / count if count else None,
        max((part.maximum for part in finite), default=None),
        sum(part.nan for part in parts),
        sum(part.inf for part in parts),
        sha256(flat.data).hexdigest(),
    )


class _Part(NamedTuple):
    minimum: float
    total: float
    maximum: float
    size: int
    nan: int
    inf: int


def _part(values: Numbers) -> _Part:
    nan = int(np.count_nonzero(np.isnan(values)))
    inf = int(np.count_nonzero(np.isinf(values)))
    finite = values[np.isfinite(values)] if nan or inf else values
    if not finite.size:
        return _Part(0.0, 0.0, 0.0, 0, nan, inf)
    total, count = float(finite.sum()), finite.size
    return _Part(float(finite.min()), total, float(finite.max()), count, nan, inf)


# ------------------------------------------------------------------------------------------------
# What an output that differs looks like: a factor, an offset, a transpose, a shift, another tile.
# The mistakes that kernels make leave such patterns, and a pattern names the mistake better than
# the list of its elements does. One is claimed only if nearly all elements agree with it.

_ALIKE = 0.995  # the share of elements that agree with a pattern
_CLOSE = 0.01  # relative to the number, and a tenth of it to the largest one
_SHIFTS = (1, -1, PARTITIONS, -PARTITIONS, 512, -512)


def resemblance(got: Numbers, expected: Numbers) -> str:
    """Return what `got` looks like beside `expected`, or ""."""
    if got.size < 2:
        return ""
    with np.errstate(all="ignore"):
        return next(filter(None, _patterns(got, expected)), "")


def _patterns(got: Numbers, expected: Numbers) -> Iterator[str]:
    yield _not_finite(got, expected)
    finite = np.isfinite(got) & np.isfinite(expected)
    if not expected[finite].any():
        return
    if not got.any():
        yield "every element is 0: nothing is added to it, or it is not what the kernel computed"
        return
    if finite.all():
        yield _scaled(got, expected)
        if (expected != expected.flat[0]).any():
            yield _moved(got, expected)


def _not_finite(got: Numbers, expected: Numbers) -> str:
    """NaN or infinity in whole rows or columns, or everywhere."""
    for name, lost in (("NaN", np.isnan), ("infinite", np.isinf)):
        bad = lost(got) & ~lost(expected)
        if bad.all():
            return f"every element is {name}"
        lines = bad.reshape(-1, bad.shape[-1])
        for word, axis in (("row", 1), ("column", 0)):
            count = int(lines.all(axis).sum())
            if count and min(lines.shape) > 1 and bad.sum() == count * lines.shape[axis]:
                what = f"{word}s are" if count > 1 else f"{word} is"
                return (
                    f"{count} whole {what} {name}, and nothing else: look at what it is divided by"
                )
    return ""


def _scaled(got: Numbers, expected: Numbers) -> str:
    nonzero = np.abs(expected) > _CLOSE * np.abs(expected).max()
    factor = float(np.median(got[nonzero] / expected[nonzero]))
    if abs(factor - 1) > 2 * _CLOSE and factor and _alike(got, expected * factor):
        return f"every element is {factor:.4g} times the expected one: a factor is missing or extra"
    offset = float(np.median(got - expected))
    spread = np.abs(expected).max()
    if abs(offset) > 2 * _CLOSE * spread and _alike(got - offset, expected):
        return f"every element is the expected one {offset:+.4g}: a term is missing or extra"
    return ""


def _moved(got: Numbers, expected: Numbers) -> str:
    """The expected elements in other places: transposed, shifted, or in another tile."""
    turned = expected.T.reshape(expected.shape)
    if expected.ndim == 2 and _alike(got, turned) and not _alike(turned, expected):
        return "it holds the expected elements transposed: an operand or the result is transposed"
    if tile := _wrong_tiles(got, expected):
        return tile
    for axis, size in enumerate(expected.shape):
        for shift in _SHIFTS:
            if abs(shift) <= size // 2 and _shifted(got, expected, axis, shift):
                place = f"{abs(shift)} {'further' if shift > 0 else 'earlier'} along axis {axis}"
                return f"it holds the expected elements {place}: an index or a tile is shifted"
    return ""


def _shifted(got: Numbers, expected: Numbers, axis: int, shift: int) -> bool:
    first, second = np.moveaxis(got, axis, 0), np.moveaxis(expected, axis, 0)
    if shift < 0:
        first, second, shift = second, first, -shift
    still = _alike(second[shift:], second[:-shift])  # it looks the same when it is shifted
    return not still and _alike(first[shift:], second[:-shift])


def _wrong_tiles(got: Numbers, expected: Numbers) -> str:
    """Tiles of 128 rows: which are wrong, and whether the first holds what another should."""
    rows = expected.shape[0]
    if expected.ndim < 2 or rows % PARTITIONS or not PARTITIONS < rows <= PARTITIONS * 64:
        return ""
    tiles = [slice(at, at + PARTITIONS) for at in range(0, rows, PARTITIONS)]
    wrong = [n for n, tile in enumerate(tiles) if not _alike(got[tile], expected[tile])]
    if not wrong or len(wrong) == len(tiles):
        return ""
    first = wrong[0]
    which = (
        f"tile {first} is" if len(wrong) == 1 else f"{len(wrong)} tiles, from tile {first} on, are"
    )
    text = f"only {which} wrong, of {len(tiles)} tiles of {PARTITIONS} rows"
    for other, tile in enumerate(tiles):
        if other != first and _alike(got[tiles[first]], expected[tile]):
            return f"{text}: tile {first} holds what tile {other} should"
    return text


def _alike(one: Numbers, other: Numbers) -> bool:
    allowed = _CLOSE * np.abs(other) + 0.1 * _CLOSE * np.abs(other).max(initial=0.0)
    return bool((np.abs(one - other) <= allowed).mean() >= _ALIKE)


# ---- A comparison as text and as JSON: what differs, by how much, and where ---------------------
# Kernels work in tiles, so errors come as stripes: whole partitions, or columns of a tile. The
# failing rows and columns, and a map of them, show that at a glance.

RANGES = 6  # of indices that a line shows
MAP_ROWS, MAP_COLUMNS = 16, 64
_ROUNDED = 0.1  # of the largest number, the most that is taken for a difference of rounding
SHADES = ".:#"  # no element of a cell fails, some, all
_UNITS = {"ulp": "ulp", "tolerance": "x tolerance"}


def diagnostic(comparison: Comparison, cause: str = "") -> Diagnostic:
    """Return the error for an output that differs from its expected values.

    `cause` is what is known to be wrong with the kernel.
    """
    name = clean(comparison.name)
    rule = comparison.rule
    if comparison.whole is not None and not comparison.failures:
        is_cosine = rule.mode == "cosine"
        what = "cosine with" if is_cosine else "relative L2 error against"
        limit = f"below {rule.min_cosine:g}" if is_cosine else f"above {rule.max_l2:g}"
        verdict_text = f"the {what} what was expected is {comparison.whole:.8g}, {limit}"
    else:
        share = f"{grouped(comparison.failures)} of {plural(comparison.elements, 'element')}"
        rate = rule.min_pass_rate
        allowed = f", more than the {1 - rate:.3%} allowed" if 0 < rate < 1 else ""
        verdict_text = f"{share} differ from what was expected ({rule}){allowed}"
    alike = cause or resemblance(comparison.got, comparison.expected)
    parts = (
        "\n".join(lines)
        for lines in (_points(comparison), _error_lines(comparison), _places(comparison))
    )
    notes = [paragraph for paragraph in (alike, *parts) if paragraph]
    message = f"output `{name}`: {verdict_text}"
    return make("outputs-differ", message, notes=notes, help=_advice(comparison, alike))


def verdict(comparison: Comparison) -> str:
    text = f"{clean(comparison.name)}: as expected ({comparison.rule})"
    if comparison.failures:
        elements = plural(comparison.elements, "element")
        text += f", {grouped(comparison.failures)} of {elements} beyond it"
    if comparison.whole is not None:
        return f"{text}, {comparison.rule.mode} {comparison.whole:.8g}"
    if comparison.worst is None or comparison.worst.difference == 0:
        return f"{text}, all equal"
    index = _index_text(comparison.worst.index)
    return f"{text}, largest error {_error_text(comparison.worst)} at {index}"


def as_json(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison as JSON; numbers that JSON lacks are null."""
    return {
        "name": comparison.name,
        "passed": comparison.passed,
        "rule": vars(comparison.rule),
        "elements": comparison.elements,
        "failures": comparison.failures,
        "not_finite": comparison.not_finite,
        **{m: _number(comparison.whole) if m == comparison.rule.mode else None for m in WHOLE},
        "first": _point_json(comparison.first),
        "worst": _point_json(comparison.worst),
        "unit": comparison.unit,
        "histogram": [{"up_to": _number(end), "count": n} for end, n in comparison.histogram[:-1]],
        "failing": [
            [list(pair) for pair in _ranges(indices)] for indices in _failing(comparison.wrong)
        ],
    }


def _point_json(point: Point | None) -> dict[str, Any] | None:
    if point is None:
        return None
    return {
        "index": list(point.index),
        "got": _number(point.got),
        "expected": _number(point.expected),
        "difference": _number(point.difference),
        "ulp": point.ulp,
    }


def _number(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None


def _points(comparison: Comparison) -> Iterator[str]:
    if comparison.first is not None:
        yield f"first: {_described(comparison.first)}"
    if comparison.worst is not None and comparison.worst != comparison.first:
        yield f"worst: {_described(comparison.worst)}"
    if comparison.first is not None:
        yield from _neighbours(comparison, comparison.first.index)


def _described(point: Point) -> str:
    return (
        f"{_index_text(point.index)} is {_shown(point.got)}, expected {_shown(point.expected)}"
        f" (off by {_error_text(point)})"
    )


def _error_text(point: Point) -> str:
    ulp = "" if point.ulp is None else f", {point.ulp:,} ulp"
    return f"{point.difference:.4g}{ulp}"


def _index_text(index: Sequence[int]) -> str:
    return f"[{', '.join(map(str, index))}]"


def _shown(value: float) -> str:
    return f"{value:.9g}"


def _neighbours(comparison: Comparison, index: tuple[int, ...]) -> Iterator[str]:
    """Yield the elements around `index` in the last two dimensions; a star marks failures."""
    lead, last = index[:-2], index[-2:]
    shape = comparison.got.shape[-2:]
    spans = [range(max(0, i - 1), min(n, i + 2)) for i, n in zip(last, shape, strict=True)]
    if comparison.got.size == 1 or not spans:
        return
    window = np.ix_(*spans)
    parts = (
        comparison.got[lead][window],
        comparison.expected[lead][window],
        comparison.wrong[lead][window],
    )
    got, expected, wrong = (np.atleast_2d(part) for part in parts)
    left = [list(map(_cell, *rows)) for rows in zip(got, wrong, strict=True)]
    right = [[_cell(value) for value in row] for row in expected]
    span = ", ".join(f"{s.start}:{s.stop}" for s in spans)
    yield f"the surrounding elements, [{', '.join([*map(str, lead), span])}], got and expected:"
    cells = max(len(cell) for row in (*left, *right) for cell in row)
    for a, b in zip(left, right, strict=True):
        yield f"  {'  '.join(c.rjust(cells) for c in a)}  |  {'  '.join(c.rjust(cells) for c in b)}"


def _cell(value: float, bad: bool = False) -> str:
    return f"{value:.6g}{'*' if bad else ' '}"


def _error_lines(comparison: Comparison) -> Iterator[str]:
    unit, before = _UNITS[comparison.unit], None
    if comparison.whole is not None:  # has no tolerance for elements
        return
    scale = "steps of the grid" if comparison.unit == "ulp" else "tolerances"
    yield f"elements by error, in {scale}:"
    for end, count in comparison.histogram:
        if count:
            yield f"  {_bin_text(before, end, unit):<22} {grouped(count):>12}"
        before = end


def _bin_text(before: float | None, end: float | None, unit: str) -> str:
    if end is None:
        return f"above {before:g} {unit}"
    if isnan(end):
        return "NaN or infinite"
    return f"up to {end:g} {unit}" if end else "none"


def _places(comparison: Comparison) -> Iterator[str]:
    """Yield the indices of each dimension with failing elements, and a map of them."""
    shape = comparison.wrong.shape
    if not comparison.failures or not shape:
        return
    if comparison.wrong.all():  # a map would show nothing more
        yield "it fails everywhere"
        return
    yield "where it fails:"
    for axis, indices in enumerate(_failing(comparison.wrong)):
        yield f"  {_axis(axis, len(shape), shape[axis], indices)}"
    if len(shape) > 1 and shape[0] > PARTITIONS:
        yield from _partitions(_failing(comparison.wrong)[0])
    yield from _map(comparison.wrong)


def _failing(wrong: Mask) -> list[NDArray[np.intp]]:
    """Return, for every axis, the indices at which some element fails."""
    axes = range(wrong.ndim)
    return [
        np.flatnonzero(wrong.any(axis=tuple(other for other in axes if other != axis)))
        for axis in axes
    ]


def _axis(axis: int, axes: int, size: int, indices: NDArray[np.intp]) -> str:
    word = f"axis {axis}"
    if axes > 1 and axis in (0, axes - 1):
        word = f"{'rows' if axis == 0 else 'columns'} (axis {axis})"
    if len(indices) == size:
        return f"{word}: all {grouped(size)}"
    return f"{word}: {_listed(indices)}, {grouped(len(indices))} of {grouped(size)}"


def _partitions(rows: NDArray[np.intp]) -> Iterator[str]:
    """Yield the failing partitions, if only some partitions of the row tiles fail."""
    partitions = np.unique(rows % PARTITIONS)
    if len(partitions) < PARTITIONS:
        count = f"{len(partitions)} of {PARTITIONS}"
        yield f"  partitions, for tiles of {PARTITIONS} rows: {_listed(partitions)}, {count}"


def _listed(indices: NDArray[np.intp]) -> str:
    ranges = _ranges(indices)
    words = [f"{a}" if a == b else f"{a}-{b}" for a, b in ranges[:RANGES]]
    return ", ".join(words) + (f", and {len(ranges) - RANGES} more" if len(ranges) > RANGES else "")


def _ranges(indices: NDArray[np.intp]) -> list[tuple[int, int]]:
    """Return runs of neighbouring indices, as first and last."""
    cuts = np.flatnonzero(np.diff(indices) > 1) + 1
    return [(int(run[0]), int(run[-1])) for run in np.split(indices, cuts) if len(run)]


def _map(wrong: Mask) -> Iterator[str]:
    """Yield rows of cells; a cell covers a power of two of rows and columns, so that tiles show."""
    plane = wrong.reshape(-1, wrong.shape[-1]).astype(np.float64)
    steps = [_step(n, limit) for n, limit in zip(plane.shape, (MAP_ROWS, MAP_COLUMNS), strict=True)]
    if plane.shape[0] <= steps[0] and plane.shape[1] <= steps[1]:
        return
    sums, areas = _summed(plane, steps), _summed(np.ones_like(plane), steps)
    yield f"  map, {steps[0]} x {steps[1]} elements in each cell, # all of them fail, : some:"
    for row in np.where(sums == areas, 2, np.where(sums > 0, 1, 0)):
        yield "    " + "".join(SHADES[level] for level in row)


def _step(size: int, limit: int) -> int:
    step = 1
    while size > step * limit:
        step *= 2
    return step


def _summed(plane: NDArray[np.float64], steps: Sequence[int]) -> NDArray[np.float64]:
    for axis, step in enumerate(steps):
        plane = np.add.reduceat(plane, np.arange(0, plane.shape[axis], step), axis=axis)
    return plane


def _advice(comparison: Comparison, alike: str) -> str:
    if (
        comparison.not_finite
        and not comparison.rule.equal_nan
        and np.isnan(comparison.expected).any()
    ):
        return "NaN equals nothing unless --compare equal-nan is given"
    worst, largest = comparison.worst, np.abs(comparison.expected).max(initial=0.0)
    if alike or worst is None or worst.difference > _ROUNDED * largest:
        return ""  # no rounding is that large
    if comparison.rule.mode in ("close", "range") and not comparison.not_finite:
        keeps = "NKI_PRECISE_FP=0 or `--no-precise-fp` keeps float32 between instructions"
        return f"{keeps}: what still differs is logic"
    return ""
