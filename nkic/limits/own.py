"""Applies limits to this process through the operating system. They cannot be raised again."""

from __future__ import annotations

import resource
from collections.abc import Mapping
from contextlib import suppress

from nkic.limits.table import LIMITS

SPARE = 5  # seconds of processor time between the warning signal and the one that kills


def apply(values: Mapping[str, int | None]) -> None:
    """Apply every limit that has a value; lower limits set by the system are kept."""
    for name, value in values.items():
        number = LIMITS[name].number
        if number is not None and value is not None:
            _lower(number, value)


def _lower(number: int, value: int) -> None:
    soft, hard = resource.getrlimit(number)
    spare = SPARE if number == resource.RLIMIT_CPU else 0
    with suppress(ValueError, OSError):  # the system may not support setting it
        resource.setrlimit(number, (_less(soft, value), _less(hard, value + spare)))


def _less(first: int, second: int) -> int:
    return second if first == resource.RLIM_INFINITY else min(first, second)
