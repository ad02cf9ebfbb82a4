"""What an output that differs looks like: a factor, an offset, a transpose, a shift, another tile.

The mistakes that kernels make leave such patterns, and a pattern names the mistake better than the
list of its elements does. One is claimed only if nearly all elements agree with it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nkic.machine.memory import PARTITIONS
from nkic.simulate.io.numbers import Numbers

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
    """A constant factor or offset."""
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
    """Return whether nearly all elements are close."""
    allowed = _CLOSE * np.abs(other) + 0.1 * _CLOSE * np.abs(other).max(initial=0.0)
    return bool((np.abs(one - other) <= allowed).mean() >= _ALIKE)
