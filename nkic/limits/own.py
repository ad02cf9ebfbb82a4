"""Holds this process to its limits, by the system's own means: there is no way back up."""

from __future__ import annotations

import resource
from collections.abc import Mapping
from contextlib import suppress

from nkic.limits.table import LIMITS

SPARE = 5  # seconds of processor time between the signal that says so and the one that ends it


def apply(values: Mapping[str, int | None]) -> None:
    """Sets every limit that has a value; one that the system has set lower stays."""
    for name, value in values.items():
        number = LIMITS[name].number
        if number is not None and value is not None:
            _lower(number, value)


def _lower(number: int, value: int) -> None:
    soft, hard = resource.getrlimit(number)
    spare = SPARE if number == resource.RLIMIT_CPU else 0
    with suppress(ValueError, OSError):  # a system that knows the limit and does not set it
        resource.setrlimit(number, (_less(soft, value), _less(hard, value + spare)))


def _less(one: int, other: int) -> int:
    return other if one == resource.RLIM_INFINITY else min(one, other)
