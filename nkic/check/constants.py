"""Constants that overflow the dtype to which an instruction converts them."""

from __future__ import annotations

from nkic.machine.arguments import shown
from nkic.machine.dtypes import FLOAT32, DType
from nkic.machine.facts import Facts
from nkic.machine.operands import Row, Violation


def beyond_type(row: Row, facts: Facts) -> Violation | None:
    """Return a violation for the first number that becomes infinity, NaN, or another integer."""
    for name, into in row.constants:
        value = facts.operands[name] if name in facts.operands else facts.attributes[name]
        if type(value) is not float and type(value) is not int:
            continue
        dtype = facts.tile(into).dtype if into else FLOAT32
        if dtype.overflows(value):
            return _violation(name, value, dtype)
    return None


def _violation(name: str, value: float, dtype: DType) -> Violation:
    text = f"`{name}` is {shown(value)}, which becomes {_result_of(value, dtype)} in {dtype.name}"
    if dtype.is_integer:
        limits = f"{int(dtype.lowest)} to {int(dtype.highest)}"
        return _overflow(name, f"{text}, which holds {limits}", f"use a number from {limits}")
    sign, largest = "-" if value < 0 else "", f"{dtype.highest:.8g}"
    limit = f"{text}, whose largest finite number is {largest}"
    meant = f", or float('{sign}inf') if infinity is meant" if dtype.has_inf else ""
    return _overflow(name, limit, f"use {sign}{largest}{meant}")


def _overflow(name: str, text: str, help: str) -> Violation:
    return Violation("constant-overflow", text, name, help)


def _result_of(value: float, dtype: DType) -> str:
    """Describe the result of converting a number beyond the dtype's limits."""
    if dtype.is_integer:
        return str(int(dtype.lowest if value < 0 else dtype.highest))
    if not dtype.has_inf:
        return "NaN"
    return "-infinity" if value < 0 else "infinity"
