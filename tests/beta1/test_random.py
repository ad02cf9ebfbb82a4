"""Random Beta 1 kernels give the results of the model."""

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
    """Without their masks some of the kernels give other results: the masks have an effect."""
    changed = 0
    for seed in SEEDS:
        model = written(seed)[1]
        there = Model().run(model, inputs(seed))
        idle = re.sub(r", mask=(?!\(\d+, )", ", mask=True | ", model)
        with suppress(Rejected):
            changed += bool((Model().run(idle, inputs(seed)) != there).any())
    assert changed > 5
