"""Timing figures by least squares: those with which the simulated time is closest to the
observed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from nkic.calibrate.profiles import Observation
from nkic.machine.clock import TABLE
from nkic.machine.targets import Target

STEPS = 30
NUDGE = 1e-3  # share by which a figure is changed to find its effect
PULL = 1e-6  # weight of a figure's default: matters only where the observations determine nothing
Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Fit:
    """The fitted figures by name, and the error of the simulated time with and without them.

    `error` and `before` are medians of relative errors, as is `left_out`: of each observation with
    the figures that the others give. `silent` are figures of which no observation tells anything.
    """

    figures: Mapping[str, float]
    error: float
    before: float
    left_out: float = 0.0
    silent: Sequence[str] = ()


def fitted(observations: Sequence[Observation], target: Target) -> Fit:
    """Fit the figures that the observations concern, by Gauss-Newton from the target's own."""
    names = sorted({name for observation in observations for name in observation.probe.figures})
    first = np.array([target.figures[name] for name in names])
    scale = np.maximum(np.abs(first), 1.0)
    share = first / scale
    for _ in range(STEPS):
        errors = _relative_errors(observations, target, names, share * scale)
        slopes = _slopes(observations, target, names, share, scale, errors)
        lhs = np.vstack([slopes, PULL * np.eye(len(names))])
        rhs = np.concatenate([-errors, PULL * (first / scale - share)])
        change = np.linalg.lstsq(lhs, rhs, rcond=None)[0]
        share = np.array([_bounded(n, v) for n, v in zip(names, share + change, strict=True)])
        if np.abs(change).max() < 1e-9:
            break
    after = _relative_errors(observations, target, names, share * scale)
    start = _relative_errors(observations, target, names, first)
    figures = {n: float(v) for n, v in zip(names, share * scale, strict=True)}
    slopes = _slopes(observations, target, names, share, scale, after)
    silent = [name for name, column in zip(names, slopes.T, strict=True) if not column.any()]
    error, before, left_out = (
        float(np.median(np.abs(errors))) for errors in (after, start, _left_out(slopes, after))
    )
    return Fit(figures, error, before, left_out, silent)


def _left_out(slopes: Vector, errors: Vector) -> Vector:
    """Return the error of each observation with the figures that follow from the others.

    Near the solution the problem is linear, and leaving a row out changes its error by a factor.
    """
    inverse = np.linalg.inv(slopes.T @ slopes + PULL * np.eye(slopes.shape[1]))
    weights = np.einsum("ij,jk,ik->i", slopes, inverse, slopes)
    return np.asarray(errors / np.maximum(1 - weights, PULL))


def _bounded(name: str, share: float) -> float:
    return max(share, 1e-3) if TABLE[name].minimum > 0 else max(share, 0.0)


def _relative_errors(
    observations: Sequence[Observation], target: Target, names: list[str], values: Vector
) -> Vector:
    """Return the relative errors of the simulated times with these values."""
    figures = {**target.figures, **dict(zip(names, map(float, values), strict=True))}
    machine = replace(target, figures=MappingProxyType(figures))
    return np.array(
        [observation.probe.predicted(machine) / observation.ns - 1 for observation in observations]
    )


def _nudge(name: str, scale: float) -> float:
    """Return the change of a figure for its slope: cycles are integers, so at least two of them."""
    return NUDGE if TABLE[name].unit == "share" else max(NUDGE, 2 / scale)


def _slopes(
    observations: Sequence[Observation],
    target: Target,
    names: list[str],
    share: Vector,
    scale: Vector,
    errors: Vector,
) -> Vector:
    columns = []
    for i in range(len(names)):
        moved = share.copy()
        moved[i] += _nudge(names[i], scale[i])
        after = _relative_errors(observations, target, names, moved * scale)
        columns.append((after - errors) / (moved[i] - share[i]))
    return np.array(columns).T
