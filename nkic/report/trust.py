"""The likely error of a simulated time, from the figures of the clock on its critical path.

A figure contributes its likely error times the share of the path that it makes. Contributions of
different figures are independent, as is that of the model: the rules of the clock, and the order
that a device's compiler chose. `tests/timing/trusted.py` compares what is stated with published
times (docs/timing.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import hypot

from nkic.machine.engines import Engine
from nkic.machine.targets import Target, likely_error
from nkic.report.insight.critical import critical_path
from nkic.report.insight.exposure import exposure
from nkic.trace import Trace

# Calibrated so that 90 % of the checked kernels are within what is stated for them.
MODEL = 0.2
# Of a time that consists of latencies, in addition: no published kernel is known whose time does,
# and in which order a device's compiler puts them is not either.
LATENT = 0.4
LATENCIES = ("dma.start_", "dma.done_", ".duration_", ".fill_", "semaphore")
CHECKED = "80 published kernels, of which 96 % are within what is stated for them"
SHOWN = 3  # figures that are named
LEAST_SHARE = 0.0005  # of the critical path, of a figure that is kept
# The figure that makes the time of an engine, if a run was too long to be recorded.
RATES: Mapping[Engine, str] = {
    Engine.DMA: "dma.engine_rate",
    Engine.SYNC: "dma.trigger_hwdge_ns",
    **{e: f"{e.value}.clock_mhz" for e in Engine if e not in (Engine.DMA, Engine.SYNC)},
}


@dataclass(frozen=True)
class Reason:
    """A figure, the share of the critical path that it makes (negative of a rate), and its likely
    error.
    """

    figure: str
    share: float
    error: float

    @property
    def effect(self) -> float:
        """The error of the time that follows, as a share of it."""
        return abs(self.share * self.error)


@dataclass(frozen=True)
class Trust:
    """The likely error of a time in percent, and its reasons, greatest effect first."""

    percent: int
    reasons: tuple[Reason, ...] = ()
    model_percent: int = 0
    checked: str = CHECKED

    @property
    def words(self) -> str:
        """`dma.engine_rate 9 %, the model 15 %`"""
        told = [r for r in self.reasons[:SHOWN] if r.effect >= 0.005]
        parts = [f"{r.figure} {100 * r.effect:.0f} %" for r in told]
        return ", ".join([*parts, f"the model {self.model_percent} %"])

    @property
    def path(self) -> str:
        """`dma.engine_rate makes 97 % of the critical path and is likely within 9 %`"""
        return "; ".join(
            f"{r.figure} makes {100 * abs(r.share):.0f} % of the critical path and is likely "
            f"within {100 * r.error:.0f} %"
            for r in self.reasons[:SHOWN]
            if abs(r.share) >= 0.005
        )


def trust_of(trace: Trace | None, target: Target, busy: Mapping[Engine, float]) -> Trust:
    """Return the trust in a run's time; without a complete trace, by the engines' `busy` shares."""
    if trace is not None and trace.complete and trace.events:
        return trusted(exposure(trace, critical_path(trace)), target)
    engine = max(busy, key=lambda engine: busy[engine], default=Engine.DMA)
    return trusted({RATES[engine]: min(1.0, busy.get(engine, 0.0))}, target)


def trusted(shares: Mapping[str, float], target: Target) -> Trust:
    """Return the trust in a time of whose critical path the figures make these shares."""
    reasons = [
        Reason(name, round(share, 4), round(likely_error(name, target), 4))
        for name, share in shares.items()
        if abs(share) >= LEAST_SHARE
    ]
    reasons.sort(key=lambda reason: (-reason.effect, reason.figure))
    model = _model(shares)
    error = hypot(model, *(reason.effect for reason in reasons))
    return Trust(round(100 * error), tuple(reasons), round(100 * model))


def _model(shares: Mapping[str, float]) -> float:
    """Return the likely error of the model, for a path of which figures make these shares."""
    waiting = (
        abs(share) for name, share in shares.items() if any(word in name for word in LATENCIES)
    )
    return hypot(MODEL, LATENT * min(1.0, sum(waiting)))


NOTHING = Trust(100)
