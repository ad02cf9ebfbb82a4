"""Test what is said of outputs that are wrong in the ways in which kernels are wrong."""

import numpy as np
import pytest

from nkic.machine.dtypes import FLOAT32
from nkic.simulate.compare import Tolerance, compare, diagnostic, resemblance
from nkic.simulate.inputs import Numbers

RIGHT: Numbers = np.random.default_rng(0).standard_normal((256, 256))


def with_rows(rows: slice, value: Numbers | float) -> Numbers:
    changed = RIGHT.copy()
    changed[rows] = value
    return changed


CASES: dict[str, Numbers] = {
    "every element is 0.5 times the expected one": RIGHT * 0.5,
    "every element is -1 times the expected one": -RIGHT,
    "every element is the expected one +3": RIGHT + 3,
    "the expected elements transposed": RIGHT.T,
    "128 further along axis 0": np.roll(RIGHT, 128, 0),
    "1 earlier along axis 1": np.roll(RIGHT, -1, 1),
    "every element is 0": RIGHT * 0,
    "every element is NaN": RIGHT * np.nan,
    "3 whole rows are NaN": with_rows(slice(5, 8), np.nan),
    "1 whole row is infinite": with_rows(slice(9, 10), np.inf),
    "tile 1 holds what tile 0 should": with_rows(slice(128, 256), RIGHT[:128]),
    "only tile 0 is wrong, of 2 tiles": with_rows(
        slice(0, 128), np.random.default_rng(1).standard_normal((128, 256))
    ),
}


@pytest.mark.parametrize("said", CASES)
def test_a_pattern_is_recognised(said: str) -> None:
    assert said in resemblance(CASES[said], RIGHT)


@pytest.mark.parametrize("noise", [0.0, 1e-6, 1.0])
def test_nothing_is_said_of_the_same_or_of_noise(noise: float) -> None:
    other = np.random.default_rng(2).standard_normal(RIGHT.shape)
    assert resemblance(RIGHT * (1 - noise) + other * noise, RIGHT) == ""


def test_a_pattern_comes_first_and_rounding_is_not_blamed() -> None:
    got = (RIGHT * 2).astype(np.float32)
    error = diagnostic(
        compare("y", got, FLOAT32, RIGHT.astype(np.float32), Tolerance("close", 1e-5, 1e-6))
    )
    assert error.notes[0].startswith("every element is 2 times the expected one")
    assert "it fails everywhere" in error.notes[-1]
    assert error.help == ""
