"""Simulated times of published kernels stay within the errors that the report states
(docs/timing.md).
"""

from pathlib import Path

import pytest

from nkic.machine.targets import TARGETS
from nkic.report.critical import trusted
from tests.timing import left_out
from tests.timing.__main__ import OVERVIEWS, Found, overview, predicted, rank_correlation
from tests.timing.cases import CASES, Case
from tests.timing.trusted import kept, name_of

PRODUCTS = {case.version: case for case in CASES if case.module == "products"}
KEPT = {row.kernel: row for row in kept()}
SCANS = [case for case in CASES if case.module == "scans"]


def stated(case: Case) -> int:
    """Return the likely error in percent, by the critical path that is kept."""
    row = KEPT[name_of(case)]
    return trusted(row.shares, TARGETS[row.target]).percent


def test_a_blocked_product_takes_what_was_measured() -> None:
    found = predicted(PRODUCTS["v4"])
    kept_us = KEPT[name_of(PRODUCTS["v4"])].predicted
    assert found.predicted == pytest.approx(kept_us, rel=0.01), "make tests/timing/trusted.csv anew"
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
def test_products_are_as_near_as_the_report_says(version: str) -> None:
    assert abs(predicted(PRODUCTS[version]).error) < min(6, stated(PRODUCTS[version]))


@pytest.mark.slow
def test_scans_are_as_near_as_the_report_says_and_in_order() -> None:
    found = [predicted(case) for case in SCANS]
    assert all(abs(f.error) < stated(case) for f, case in zip(found, SCANS, strict=True))
    assert rank_correlation(found) > 0.9


def test_the_page_has_the_table_of_all_kernels() -> None:
    page = (Path(__file__).parents[2] / "docs" / "timing.md").read_text("utf-8")
    assert "\n".join(left_out.table()) in page, "python -m tests.timing.left_out prints it"
    assert page.count("| bmm_softmax | 11 |") == 1  # no second, older table
    _, count, median, tenth, *_ = (cell.strip(" %") for cell in left_out.table()[-1].split("|")[1:])
    said = f"half are predicted within {median} % and nine in ten within {tenth} %"
    assert f"Of {count} published kernels, {said}" in " ".join(page.split())


def test_candidates_of_equal_times_share_ranks_and_the_pick() -> None:
    found = [Found(measured, 10.0) for measured in (1.0, 1.2, 1.7)]
    assert rank_correlation([*found, Found(3.0, 20.0)]) == pytest.approx(0.775, abs=0.001)
    assert rank_correlation([*found[::-1], Found(3.0, 20.0)]) == pytest.approx(0.775, abs=0.001)
    assert left_out.picked([*found, Found(2.0, 11.0)]) == "100.0 % | 30.0 %"


def test_rank_correlation() -> None:
    orders = [(1.0, 10.0), (2.0, 30.0), (3.0, 20.0)]
    assert rank_correlation([Found(a, b) for a, b in orders]) == pytest.approx(0.5)
    assert rank_correlation([Found(a, -b) for a, b in orders]) == pytest.approx(-0.5)
