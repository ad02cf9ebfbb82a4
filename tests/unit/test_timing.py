"""Simulated times of published kernels stay within the errors that the report states
(docs/timing.md).
"""

from __future__ import annotations

import pytest

from tests.timing.__main__ import OVERVIEWS, Found, overview, predicted, rank_correlation
from tests.timing.cases import CASES

PRODUCTS = {case.version: case for case in CASES if case.module == "products"}
SCANS = [case for case in CASES if case.module == "scans"]


def test_a_blocked_product_takes_what_was_measured() -> None:
    found = predicted(PRODUCTS["v4"])
    assert abs(found.error) < 2
    assert found.estimate == pytest.approx(found.predicted, rel=1e-6)


@pytest.mark.parametrize("example", OVERVIEWS)
def test_the_examples_of_the_overview_take_what_their_pictures_show(
    example: tuple[str, bool],
) -> None:
    """Triggers, first bytes, semaphores, a table and an exponential, one after the other."""
    assert overview(*example) == pytest.approx(OVERVIEWS[example], rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("version", PRODUCTS)
def test_products_are_as_near_as_the_page_says(version: str) -> None:
    assert abs(predicted(PRODUCTS[version]).error) < 6


@pytest.mark.slow
def test_scans_are_as_near_as_the_page_says_and_in_order() -> None:
    found = [predicted(case) for case in SCANS]
    assert max(abs(one.error) for one in found) < 15
    assert rank_correlation(found) > 0.9


def test_rank_correlation() -> None:
    orders = [(1.0, 10.0), (2.0, 30.0), (3.0, 20.0)]
    assert rank_correlation([Found(a, b) for a, b in orders]) == pytest.approx(0.5)
    assert rank_correlation([Found(a, -b) for a, b in orders]) == pytest.approx(-0.5)
