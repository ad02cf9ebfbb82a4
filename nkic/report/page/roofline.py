"""The roofline of the page: operations per second over operations per byte of HBM."""

from __future__ import annotations

from html import escape
from math import log10
from typing import NamedTuple

from nkic.report.insight.verdict import Insight

_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 570, 20, 250  # the axes, in units of the picture


class Roofline(NamedTuple):
    """A run and its machine: `peak` and `reached` in operations per ns, `rate` in bytes per ns,
    `intensity` in operations per byte.
    """

    peak: float
    rate: float
    intensity: float
    reached: float

    @property
    def ridge(self) -> float:
        """The intensity from which operations, not transfers, bound the rate."""
        return self.peak / self.rate

    @property
    def label(self) -> str:
        """The point in words."""
        attainable = min(self.peak, self.rate * self.intensity)
        return (
            f"{self.intensity:.1f} operations per byte, {self.reached / 1000:.2f} of "
            f"{attainable / 1000:.2f} attainable TFLOP/s ({100 * self.reached / attainable:.0f}%)"
        )


def roofline(insight: Insight) -> str:
    """Return the picture of a run with matrix products; a sentence for others."""
    target, end = insight.accounts.target, insight.trace.end
    operations = sum(cost.operations for cost in insight.accounts.by_line.values())
    moved = sum(cost.hbm for cost in insight.accounts.by_line.values())
    if not operations or not moved or not end:
        return "<p>No matrix products: the roofline does not apply to this kernel.</p>"
    cores = max(1, insight.trace.executable.cores)
    peak, rate = target.peak_operations * cores, target.peak_rate * cores
    return _picture(Roofline(peak, rate, operations / moved, operations * 1000 / end))


def _picture(roof: Roofline) -> str:
    """Return the picture, on logarithmic axes that contain the run and the ridge."""
    low_x, high_x = min(1.0, roof.intensity / 2), max(roof.ridge * 16, roof.intensity * 2)
    low_y, high_y = min(roof.reached / 2, roof.rate * low_x), roof.peak * 2

    def x(intensity: float) -> float:
        return _LEFT + (_RIGHT - _LEFT) * _share(intensity, low_x, high_x)

    def y(operations: float) -> float:
        return _BOTTOM - (_BOTTOM - _TOP) * _share(operations, low_y, high_y)

    top, label = f"{y(roof.peak):.1f}", escape(roof.label)
    line = f"{x(low_x):.1f},{y(roof.rate * low_x):.1f} {x(roof.ridge):.1f},{top}"
    return (
        '<svg viewBox="0 0 600 290" width="600" role="img" '
        f'aria-label="Roofline: {label}">'
        f'<line class="axis" x1="{_LEFT}" y1="{_BOTTOM}" x2="{_RIGHT}" y2="{_BOTTOM}"/>'
        f'<line class="axis" x1="{_LEFT}" y1="{_TOP}" x2="{_LEFT}" y2="{_BOTTOM}"/>'
        f'<polyline class="roof" points="{line} {x(high_x):.1f},{top}"/>'
        f'<circle class="point" cx="{x(roof.intensity):.1f}" cy="{y(roof.reached):.1f}" r="5"/>'
        f'<text x="320" y="280" text-anchor="middle">operations per byte of HBM '
        f"(ridge point {roof.ridge:.0f})</text>"
        f'<text x="{_LEFT - 4}" y="{top}" text-anchor="end">{roof.peak / 1000:.0f} T</text></svg>'
        f"<p>{label}</p>"
    )


def _share(value: float, low: float, high: float) -> float:
    """Return the position of `value` between `low` and `high` on a logarithmic axis, 0 to 1."""
    return (log10(value) - log10(low)) / (log10(high) - log10(low))
