"""Comparison of an output with its expected values: whether, where and how far it differs.

NaN is equal to nothing, including itself, unless the rule says so. A finite element whose
counterpart is not finite fails under any pass rate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.machine.dtypes import FLOAT8_E8M0FNU, TFLOAT32, DType
from nkic.simulate.comparison.tolerance import Tolerance, ToleranceSettings
from nkic.simulate.io.numbers import Numbers, numbers, stored

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
        """The number of elements that were compared."""
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
        return _ulps(got, expected, dtype) + _zero_signs_differ(got, expected)
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


def _zero_signs_differ(got: Numbers, expected: Numbers) -> Mask:
    """Return where one is 0 and the other -0: equal as numbers, not as bits."""
    zeros = (got == 0) & (expected == 0)
    mask: Mask = zeros & (np.signbit(got) != np.signbit(expected))
    return mask


def _ordinals(values: Numbers, dtype: DType) -> NDArray[np.int64]:
    """Return integers in the order of a type's values, neighbours one apart; both zeros are 0."""
    codes = stored(values, dtype)
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
