"""Sums of times in the remarks of schedule."""

from __future__ import annotations

import pytest

from nkic.schedule.remarks import _union


@pytest.mark.parametrize(
    ("spans", "union"),
    [
        ([], []),
        ([(0, 4), (2, 6), (8, 9)], [(0, 6), (8, 9)]),
        ([(8, 9), (0, 4), (4, 5)], [(0, 5), (8, 9)]),
        ([(0, 9), (2, 3), (4, 12), (20, 21)], [(0, 12), (20, 21)]),
    ],
)
def test_times_at_work_are_counted_once(
    spans: list[tuple[int, int]], union: list[tuple[int, int]]
) -> None:
    assert _union(spans) == union
