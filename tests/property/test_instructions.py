"""Every instruction, on random instances of its row, agrees with its model.

The instances are those of seeds 0, 1 … for each row: `make test` runs a few, `make test-all` many.
A failure is repeated with `check("row", seed)`.
"""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nkic.machine.instructions import ROWS
from nkic.machine.targets import TARGETS
from tests.harness.drawing import Draw
from tests.harness.instruction import Call, Tile, built
from tests.harness.model import Bits, Given, Near, program
from tests.harness.reference import same
from tests.harness.scenes import Run, Scene
from tests.models import EXCHANGES, MODELS

Array = NDArray[Any]
FEW, MANY = 5, 60
BANKS = 8  # of PSUM: each tensor takes one


def targets_of(name: str) -> list[str]:
    return [t.name for t in TARGETS.values() if t.generation >= ROWS[name].generation]


def psum_tensors(calls: list[Call]) -> int:
    tiles = [v for call in calls for v in call.values.values() if isinstance(v, Tile)]
    return len({t.tensor for t in tiles if t.tensor.buffer == "psum"})


def drawn(name: str, seed: int) -> tuple[str, list[Call]]:
    draw = Draw(seed, sum(map(ord, name)))
    target = draw.pick(targets_of(name))
    calls = program(draw, name, target)
    while psum_tensors(calls) > BANKS:
        calls = program(draw, name, target)
    return target, calls


def check(name: str, seed: int) -> None:
    """Check one random program against the models of all of its instructions."""
    target, calls = drawn(name, seed)
    made = built(calls, target)
    # A register that nothing sets holds 0 here, as in the models.
    check_init = not any("register" in call.row or "scalar" in call.row for call in calls)
    outcome = made.run(check_init=check_init)
    if seed % 3 == 0:  # memory kept as bytes
        other = made.run(raw=True, check_init=check_init)
        for tensor, contents in outcome.memory.items():
            np.testing.assert_array_equal(contents, other.memory[tensor])
    state: dict[str, Any] = {}
    for call in calls:
        expected = MODELS[call.row].meaning(Given(call, target, state))
        for operand, wanted in expected.items():
            of = call.values[operand]
            compare(outcome[of].reshape(of.partitions, -1), wanted)
        written = {o.name for o in ROWS[call.row].operands if o.access.writes}
        assert {n for n in written if isinstance(call.values[n], Tile)} == set(expected)


def compare(found: Array, wanted: Array | Near | Bits) -> None:
    if isinstance(wanted, Bits):
        assert found.tobytes() == np.ascontiguousarray(wanted.elements).tobytes()
    elif isinstance(wanted, Near):
        _between(found, wanted)
    else:
        same(found, wanted)


def _between(found: Array, wanted: Near) -> None:
    assert found.dtype == wanted.low.dtype and found.shape == wanted.low.shape
    with np.errstate(invalid="ignore"):
        low, high, value = (x.astype(np.float64) for x in (wanted.low, wanted.high, found))
    nans = np.isnan(low) + 1 * np.isnan(high)
    good = (nans < 2) & ~(low > value) & ~(value > high) & ~np.isnan(value)
    good |= (nans > 0) & np.isnan(value)
    good |= False if wanted.known is None else ~wanted.known
    wrong = np.argwhere(~good)[:3]
    assert good.all(), [(low[tuple(i)], value[tuple(i)], high[tuple(i)]) for i in wrong]


@pytest.mark.parametrize("name", sorted(MODELS))
def test_an_instruction_does_what_its_model_says(name: str) -> None:
    for seed in range(FEW):
        check(name, seed)


def test_the_least_number_of_64_bits_is_read_from_a_printed_program() -> None:
    check("scalar_compute", 8)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(MODELS))
def test_an_instruction_does_what_its_model_says_many_times(name: str) -> None:
    for seed in range(FEW, MANY):
        check(name, seed)


# ------------------------------------------------------------------------------------------------
# Test instructions of several cores and ranks, on random instances, against their models.
#
# A failure is repeated with `check("row", seed)`.

FEW_SCENES, MANY_SCENES = 4, 60
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


def check_scene(name: str, seed: int) -> None:
    run = Run(*scene(name, seed))
    for rank in range(run.scene.ranks):
        for tile, wanted in run.scene.expected(rank, run.before).items():
            compare(run.after(rank, tile), wanted)
    if run.scene.judge:
        run.scene.judge(run.outcomes[0], run.before)


@pytest.mark.parametrize("name", sorted(EXCHANGES))
def test_cores_and_ranks_do_what_the_model_says(name: str) -> None:
    for seed in range(FEW_SCENES):
        check_scene(name, seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(EXCHANGES))
def test_cores_and_ranks_do_what_the_model_says_many_times(name: str) -> None:
    for seed in range(FEW_SCENES, MANY_SCENES):
        check_scene(name, seed)
