"""A comparison as text and as JSON: what differs, by how much, and where.

Kernels work in tiles, so errors come as stripes: whole partitions, or columns of a tile. The
failing rows and columns, and a map of them, show that at a glance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite, isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.base.diagnostics import Diagnostic, make
from nkic.base.text import clean, grouped, plural
from nkic.machine.memory import PARTITIONS
from nkic.simulate.comparison.compare import WHOLE, Comparison, Mask, Point
from nkic.simulate.comparison.resemblance import resemblance

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
        for lines in (_points(comparison), _errors(comparison), _places(comparison))
    )
    notes = [paragraph for paragraph in (alike, *parts) if paragraph]
    message = f"output `{name}`: {verdict_text}"
    return make("outputs-differ", message, notes=notes, help=_advice(comparison, alike))


def verdict(comparison: Comparison) -> str:
    """Return the line for an output that passes, with its largest error."""
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
    """Yield the first failing element, the worst one, and the neighbours of the first."""
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


def _errors(comparison: Comparison) -> Iterator[str]:
    """Yield the histogram, without its empty bins."""
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
