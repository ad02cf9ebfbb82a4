"""Kernels that the vendor's guides call faster are faster in simulated time."""

import pytest

from tests.timing.sweeps import SWEEPS, Sweep


@pytest.mark.parametrize("sweep", SWEEPS, ids=lambda sweep: sweep.name)
def test_the_order_of_a_sweep_is_that_of_its_source(sweep: Sweep) -> None:
    times = [way.us() for way in sweep.ways]
    shown = {way.name: time for way, time in zip(sweep.ways, times, strict=True)}
    assert sweep.holds(times), shown


def test_a_sweep_in_the_wrong_order_is_noticed() -> None:
    sweep = SWEEPS[0]._replace(same=1, level=1.05)
    assert sweep.holds([4, 3, 2, 2.1])
    assert not sweep.holds([4, 3, 2, 2.2])
    assert not sweep.holds([4, 4, 2, 2])
