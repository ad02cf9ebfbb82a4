"""The order of runs: told where the figures that they do not share let it be told."""

from dataclasses import replace

import numpy as np
import pytest

import nkic
from nkic.machine.targets import TARGETS
from nkic.report.compare import Timed, band, distinguishable, order, ranked
from nkic.report.critical import trusted
from tests.timing.trusted import kept, pairs
from tests.unit.report.test_trust import compiled


def timed(name: str, us: float, target: str = "trn2", **shares: float) -> Timed:
    named = {figure.replace("__", "."): share for figure, share in shares.items()}
    reasons = trusted(named, TARGETS[target]).reasons
    return Timed(name, us * 1000, {reason.figure: reason for reason in reasons})


def test_published_candidates_that_are_told_apart_are_in_the_device_s_order() -> None:
    count, right = pairs(kept())
    assert count >= 190 and np.mean(right) >= 0.9
    assert len(right) / count >= 0.15  # a band that tells nothing is no answer


def test_errors_that_two_runs_share_cancel() -> None:
    moving = timed("a", 100, dma__engine_rate=-1.0)
    again = timed("b", 115, dma__engine_rate=-1.0)
    products = timed("c", 115, tensor__clock_mhz=-1.0)
    assert distinguishable(moving, again)
    assert not distinguishable(moving, products)
    assert band(moving, products) > 2 * band(moving, again) > 0


def test_an_order_has_a_band_and_a_reason() -> None:
    moving = timed("a", 100, dma__engine_rate=-1.0)
    found = order(moving, timed("b", 104, tensor__clock_mhz=-1.0))
    assert found.low < 1 < found.ratio < found.high
    assert found.ratio == pytest.approx(1.04)
    assert not found.distinguishable and found.figures[0] == "dma.engine_rate"
    assert "the second takes 1.04 of the first's time, likely 0." in found.words
    assert ": not distinguishable (dma.engine_rate" in found.words
    assert order(moving, timed("b", 60, dma__engine_rate=-1.0)).words.endswith(": faster")


def test_places_go_to_runs_that_can_be_told_apart() -> None:
    runs = [timed(n, us, dma__engine_rate=-1.0) for n, us in (("c", 200), ("b", 102), ("a", 100))]
    rows = list(ranked(runs))
    assert [(row.name, row.place) for row in rows] == [("a", 1), ("b", 1), ("c", 3)]
    assert [row.words for row in rows] == [
        *("fastest", "not distinguishable from the fastest", "slower"),
    ]
    assert rows[2].low < rows[2].times == 2.0 < rows[2].high


def test_runs_are_ranked_from_python() -> None:
    runs = {
        f"{n} columns": nkic.run(compiled(n), {"a": np.ones((128, n), np.float32)})
        for n in (2048, 512)
    }
    text = str(nkic.rank(runs))
    assert [line.split()[:2] for line in text.splitlines()[1:]] == [["1", "512"], ["2", "2048"]]
    assert text.splitlines()[-1].endswith("slower")
    assert [band.name for band in nkic.rank(runs.values())] == ["run 1", "run 0"]
    (only,) = nkic.rank([*runs.values()][:1])
    assert (only.name, only.words) == ("run 0", "fastest")
    with pytest.raises(nkic.RunError, match="runs is empty"):
        nkic.rank([])


def test_an_error_without_bounds_in_a_file_is_a_wide_band() -> None:
    wild = timed("a", 1e-300, dma__engine_rate=-1.0)
    (figure, reason), *_ = wild.reasons.items()
    wild = wild._replace(reasons={figure: replace(reason, error=1e300)})
    found = order(timed("b", 1e300, tensor__clock_mhz=-1.0), wild)
    assert found.distinguishable
    assert (found.low, found.ratio, found.high) == pytest.approx((0, 0, 0))
    assert not distinguishable(timed("b", 100, tensor__clock_mhz=-1.0), wild._replace(time_ns=9e4))
