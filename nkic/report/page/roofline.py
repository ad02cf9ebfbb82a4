"""The roofline of the page: operations per second over operations per byte of HBM."""

from __future__ import annotations

from html import escape
from math import ceil, floor, log10
from typing import NamedTuple

from nkic.report.insight.verdict import Insight

_LEFT, _RIGHT, _TOP, _BOTTOM = 104, 490, 14, 240  # the axes, in units of the picture


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
    def attainable(self) -> float:
        """The rate at this intensity if nothing else bounds it."""
        return min(self.peak, self.rate * self.intensity)

    @property
    def label(self) -> str:
        """The point in words."""
        return (
            f"{self.intensity:.1f} operations per byte, {self.reached / 1000:.2f} of "
            f"{self.attainable / 1000:.2f} attainable TFLOP/s "
            f"({100 * self.reached / self.attainable:.0f}%)"
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

    top, label, ridge = y(roof.peak), escape(roof.label), x(roof.ridge)
    at_x, at_y = x(roof.intensity), y(roof.reached)
    slope = low_x**0.7 * min(roof.ridge, high_x) ** 0.3
    slope_x, slope_y = x(slope), y(roof.rate * slope)
    line = f"{_LEFT},{y(roof.rate * low_x):.1f} {ridge:.1f},{top:.1f} {_RIGHT},{top:.1f}"
    parts = [
        *(_tick(x(n), _BOTTOM, f"{n:,g}", across=False) for n in _decades(low_x, high_x)),
        *(_tick(_LEFT, y(n), _tera(n), across=True) for n in _decades(low_y, high_y)),
        f'<polyline class="roof" points="{line}"/>',
        f'<line class="gap" x1="{at_x:.1f}" y1="{at_y:.1f}" x2="{at_x:.1f}" '
        f'y2="{y(roof.attainable):.1f}"/>',
        f'<circle class="point" cx="{at_x:.1f}" cy="{at_y:.1f}" r="5"/>',
        _text(_RIGHT, top - 8, f"peak of the tensor engine: {_tera(roof.peak)}", "end"),
        _text(slope_x + 8, slope_y + 8, f"HBM at {roof.rate:,.0f} GB/s", "start"),
        _text(min(at_x, _RIGHT - 76), at_y + 22, f"this run: {_tera(roof.reached)}", "middle"),
        _text(
            (_LEFT + _RIGHT) / 2,
            _BOTTOM + 42,
            f"operations per byte of HBM (ridge at {roof.ridge:,.0f})",
            "middle",
        ),
    ]
    return (
        f'<svg viewBox="0 0 {_RIGHT + 20} {_BOTTOM + 52}" role="img" '
        f'aria-label="Roofline: {label}">{"".join(parts)}</svg><p>{label}</p>'
    )


def _tick(x: float, y: float, label: str, across: bool) -> str:
    """Return a line of the grid from a point of an axis, and its label beside the axis."""
    if across:
        end, text = f'x2="{_RIGHT}" y2="{y:.1f}"', _text(x - 6, y + 4, label, "end")
    else:
        end, text = f'x2="{x:.1f}" y2="{_TOP}"', _text(x, y + 18, label, "middle")
    return f'<line class="axis" x1="{x:.1f}" y1="{y:.1f}" {end}/>{text}'


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _decades(low: float, high: float) -> list[float]:
    """Return the powers of ten between two numbers."""
    return [10.0**power for power in range(ceil(log10(low)), floor(log10(high)) + 1)]


def _tera(operations: float) -> str:
    """Format operations per nanosecond: `79 TFLOP/s`, `0.4 TFLOP/s`."""
    return f"{operations / 1000:.3g} TFLOP/s"


def _share(value: float, low: float, high: float) -> float:
    """Return the position of `value` between `low` and `high` on a logarithmic axis, 0 to 1."""
    return (log10(value) - log10(low)) / (log10(high) - log10(low))
