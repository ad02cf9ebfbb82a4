"""Test instructions of several cores and ranks, on random instances, against their models.

A failure is repeated with `check("row", seed)`.
"""

import pytest

from nkic.machine.instructions import ROWS
from nkic.machine.targets import TARGETS
from tests.harness.drawing import Draw
from tests.harness.scenes import Run, Scene
from tests.models import EXCHANGES
from tests.property.test_instructions import compare

FEW, MANY = 4, 60
NEEDS_CORES = {
    "all_gather_v": 3,
    "all_gather_v_trigger": 3,
}  # ranks of two cores, which trn1 does not have


def scene(name: str, seed: int) -> tuple[Draw, Scene, str]:
    """Return the scene of a seed, its further choices, and the target."""
    draw = Draw(seed, sum(map(ord, name)))
    first = max(ROWS[name].generation, NEEDS_CORES.get(name, 0))
    target = draw.pick([t.name for t in TARGETS.values() if t.generation >= first])
    return draw, EXCHANGES[name](draw, target), target


def check(name: str, seed: int) -> None:
    run = Run(*scene(name, seed))
    for rank in range(run.scene.ranks):
        for tile, wanted in run.scene.expected(rank, run.before).items():
            compare(run.after(rank, tile), wanted)
    if run.scene.judge:
        run.scene.judge(run.outcomes[0], run.before)


@pytest.mark.parametrize("name", sorted(EXCHANGES))
def test_cores_and_ranks_do_what_the_model_says(name: str) -> None:
    for seed in range(FEW):
        check(name, seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(EXCHANGES))
def test_cores_and_ranks_do_what_the_model_says_many_times(name: str) -> None:
    for seed in range(FEW, MANY):
        check(name, seed)
