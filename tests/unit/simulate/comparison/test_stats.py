"""Test the figures of an array against NumPy's own, block by block."""

import numpy as np
import pytest

from nkic.machine.dtypes import FLOAT8_E4M3, FLOAT32, INT32, UINT8, DType
from nkic.simulate import compare
from nkic.simulate.compare import stats_of


def test_figures_of_several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "_BLOCK", 7)
    values = np.random.default_rng(1).standard_normal((5, 9)).astype(np.float32)
    values[0, :7] = np.inf  # a whole block without a finite element
    values[2, 3] = np.nan
    found = stats_of(values, FLOAT32)
    finite = values[np.isfinite(values)].astype(np.float64)
    assert (found.nan, found.inf) == (1, 7)
    assert (found.minimum, found.maximum) == (finite.min(), finite.max())
    assert found.mean == pytest.approx(finite.mean(), rel=1e-14)


@pytest.mark.parametrize(
    ("stored", "dtype", "expected"),
    [
        (np.array([0, 255, 3], np.uint8), UINT8, (0.0, 86.0, 255.0, 0)),
        (np.array([[-5], [2**31 - 1]], np.int32), INT32, (-5.0, 1073741821.0, 2147483647.0, 0)),
        (np.array([0x38, 0xB8, 0x78], np.uint8), FLOAT8_E4M3, (-1.0, 0.0, 1.0, 1)),
        (np.array([], np.float32), FLOAT32, (None, None, None, 0)),
    ],
)
def test_figures(
    stored: np.ndarray, dtype: DType, expected: tuple[float | None, float | None, float | None, int]
) -> None:
    found = stats_of(stored, dtype)
    assert (found.minimum, found.mean, found.maximum, found.inf) == expected
