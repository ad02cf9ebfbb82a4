"""Tests of the kernels that `tests/timing/ladder.py` takes from a checkout."""

from pathlib import Path

import pytest

from tests.timing import ladder

KERNELS = """import nki

@nki.jit
def kernel_14(lhs_T, rhs):
    return 14

@nki.jit
def kernel_15(lhs_T, rhs):
    # two sums
    psum = nl.ndarray((128, 2, 2048), dtype=nl.float32, buffer=nl.psum)

    return psum[0:128, i_d1_0 % 2, 0:0 + 2048]

def other():
    return 0
"""


@pytest.fixture
def sources(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "kernel_transforms.py").write_text(KERNELS)
    best = tmp_path / "kernel_library" / "matmul" / "lhsT_rhs" / "kernel_hand_90.92mfu.py"
    best.parent.mkdir(parents=True)
    best.write_text("best")
    return {name.split(":")[0]: source for name, _, source in ladder.rungs(tmp_path)}


def test_a_rung_is_one_kernel_of_the_checkout(sources: dict[str, str]) -> None:
    assert sources["kernel_14"] == f"{ladder.HEAD}def kernel(lhs_T, rhs):\n    return 14\n\n"
    assert sources["kernel_hand"] == "best"
    assert "other" not in sources["kernel_15"]


def test_the_second_rung_has_one_sum(sources: dict[str, str]) -> None:
    assert "psum[0:128, i_d1_0 % 2, 0:0 + 2048]" in sources["kernel_15"]
    assert "(128, 1, 2048)" in sources["kernel_15 with one sum"]
    assert "psum[0:128, 0, 0:0 + 2048]" in sources["kernel_15 with one sum"]
