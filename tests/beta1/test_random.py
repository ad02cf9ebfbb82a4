"""Random kernels of Beta 1 give what the model of it gives."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest

from tests.beta1.kernels import inputs, judged, written
from tests.beta1.model import Model, Rejected

SEEDS = range(30)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.filterwarnings("ignore::nkic.NkicWarning")
def test_a_random_kernel_gives_what_the_model_gives(seed: int) -> None:
    assert judged(seed) == "equal", written(seed)[0]


def test_the_model_tells_masks_from_none() -> None:
    """Some of the kernels give something else without their masks: the masks are not idle."""
    changed = 0
    for seed in SEEDS:
        model = written(seed)[1]
        there = Model().run(model, inputs(seed))
        idle = re.sub(r", mask=(?!\(\d+, )", ", mask=True | ", model)
        with suppress(Rejected):
            changed += bool((Model().run(idle, inputs(seed)) != there).any())
    assert changed > 5
