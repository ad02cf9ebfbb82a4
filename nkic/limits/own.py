"""Applies limits to this process through the operating system. They cannot be raised again."""

from __future__ import annotations

import resource
from contextlib import suppress

from nkic.limits.table import LEAST_MEMORY, LIMITS, MEASURED, Values

SPARE = 5  # seconds of processor time between the warning signal and the one that kills


def apply(values: Values) -> None:
    """Apply every limit that has a value; lower limits set by the system are kept."""
    for name, value in values.items():
        number = LIMITS[name].number
        if number is not None and number != MEASURED and value is not None:
            _lower(number, max(int(value), LEAST_MEMORY if name == "memory" else 0))


def _lower(number: int, value: int) -> None:
    soft, hard = resource.getrlimit(number)
    spare = SPARE if number == resource.RLIMIT_CPU else 0
    with suppress(ValueError, OSError):  # the system may not support setting it
        resource.setrlimit(number, (_less(soft, value), _less(hard, value + spare)))


def _less(first: int, second: int) -> int:
    return second if first == resource.RLIM_INFINITY else min(first, second)
