"""Tolerances: a rule for each output, by default that of its type.

The defaults allow two steps of the type's grid (rtol), and near zero one step at 1 (atol), the size
of differences between summation orders; float32, in which all arithmetic is done, has 1e-5 for
both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nkic.machine.dtypes import DType

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
        """Return the rule for an output."""
        mode = self._setting("mode", name) or "close"
        rule = _default(mode, dtype)
        settings = {key: self._setting(key, name) for key in MODES[mode]}
        explicit = {key: value for key, value in settings.items() if value is not None}
        return Tolerance(**{**vars(rule), **explicit, "equal_nan": self.equal_nan})

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
