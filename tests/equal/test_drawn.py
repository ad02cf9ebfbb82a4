"""Random kernels (`drawn`) and changes to them: none is called equal that ordinary runs tell apart,
and every number lies within its interval.
"""

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest

import nkic
from nkic.artifact.records import InstructionRecord, PatternRecord
from nkic.simulate.field import decide
from nkic.simulate.field.elements import Doubles, Elements
from nkic.simulate.field.intervals import HIGH, LOW, Excluding, proven
from nkic.simulate.memory import Memory
from nkic.simulate.outcome import RunOptions
from nkic.simulate.stage import simulate_ranks
from tests.equal.drawn import KINDS, TYPE, Plan, changed, plan, text, tile
from tests.equal.kernels import compiled

FILLS = ("randn(5)", "uniform(-3,3,6)", "uniform(0.1,2,7)")
Arrays = dict[str, np.ndarray[Any, Any]]


def kernel(steps: Plan) -> nkic.Artifact:
    return compiled(text(steps), TYPE, TYPE)


@pytest.fixture
def without_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that are equal are not run for their limits."""
    monkeypatch.setattr(decide._Comparing, "_limits", lambda self: ())
    monkeypatch.setattr(decide.Kernel, "proof", lambda self, arrays: None)


def differ(one: nkic.Artifact, other: nkic.Artifact) -> bool:
    """Return whether runs that do not round to narrow types differ by more than rounding."""
    for fill in FILLS:
        a, b = (
            nkic.run(k, fill=fill, precise_fp=False).outputs["output_0"].astype(float)
            for k in (one, other)
        )
        both = np.isfinite(a) & np.isfinite(b)
        if not np.allclose(a[both], b[both], rtol=1e-3, atol=1e-4):
            return True
    return False


def compare(seed: int, kind: str = "") -> str:
    """Compare a kernel with a change of it, and return the verdict."""
    random = Random(seed)
    steps = ((kind, seed),) if kind else plan(random)
    one, other = kernel(steps), kernel(changed(steps, random))
    answer = decide.equal(one.executable, other.executable)
    assert not (answer and differ(one, other)), answer.text + text(steps)
    assert decide.equal(one.executable, one.executable).verdict in ("equal", "undecided")
    return answer.verdict


@pytest.mark.usefixtures("without_limits")
@pytest.mark.parametrize("kind", KINDS)
def test_no_change_is_called_equal_that_is_not(kind: str) -> None:
    compare(1, kind)


OUTSIDE = {
    "microscaled": "nc_matmul_mx works on quantised numbers",
    "sent": "sendrecv exchanges data",
    "reduced": "all_reduce exchanges data",
}


@pytest.mark.usefixtures("without_limits")
@pytest.mark.parametrize("kind", OUTSIDE)
def test_what_is_outside_of_the_field_is_undecided_by_its_line(kind: str) -> None:
    """Though the kernels are the same; what comes after it changes nothing."""
    name, _, _ = OUTSIDE[kind].partition(" ")
    steps = ((kind, 1), ("function", 1))
    body = text(steps).splitlines()
    line = next(n for n, line in enumerate(body, 9) if f".{name}(" in line)
    made = kernel(steps).executable
    found = decide.equal(made, made)
    assert (found.verdict, found.counterexample) == ("undecided", None)
    assert found.lines == (f"undecided: {OUTSIDE[kind]} at k.py:{line}",)
    usual = {p.name: np.ones(p.shape, np.float32) for p in kernel(steps).signature.inputs}
    assert (proven(made, usual).size, proven(made, usual).low) == (0.0, -1.0)


@pytest.mark.usefixtures("without_limits")
def test_what_another_core_wrote_is_followed() -> None:
    steps = (("by_core", 3), ("handed_over", 4))
    one, other = kernel(steps), kernel(tuple(reversed(steps)))
    assert decide.equal(one.executable, one.executable)
    assert decide.equal(one.executable, other.executable).verdict == "different"
    usual = {p.name: np.ones(p.shape, np.float32) for p in one.signature.inputs}
    assert proven(one.executable, usual).size > 1e37  # a barrier excludes nothing


@pytest.mark.slow
@pytest.mark.usefixtures("without_limits")
@pytest.mark.parametrize("first", range(0, 320, 20))
def test_none_of_many(first: int) -> None:
    verdicts = Counter(compare(seed) for seed in range(first, first + 20))
    assert verdicts["different"] >= 8, verdicts


# ---- Intervals ----


class Within(Excluding):
    """Checks every number that is stored before something cannot be excluded."""

    def _kept(
        self, record: InstructionRecord, result: Elements, values: Doubles, pattern: PatternRecord
    ) -> Elements:
        kept = super()._kept(record, result, values, pattern)
        low, high = kept.residues[LOW], kept.residues[HIGH]
        assert self.first or ((low <= values) & (values <= high)).all(), record
        return kept


def directed(state: np.random.Generator, size: float, shape: tuple[int, ...]) -> Any:
    """Return inputs within a size: its corners, powers of two, halves, or one number."""
    halves = np.round(state.uniform(-4, 4, shape)) * 0.5
    choices = (
        state.choice([-size, size], shape),
        state.uniform(-size, size, shape),
        state.choice([-1.0, 1.0], shape) * size * 2.0 ** -state.integers(0, 30, shape),
        state.choice([-size, -size / 2, 0.0, size / 2, size], shape),
        np.full(shape, state.choice([-size, size, 0.0, size / 2, 2.0**-126])),
        np.where(np.arange(shape[-1]) % 2, size, -size) * np.ones(shape),
        np.clip(halves, -size, size),
    )
    return choices[state.integers(len(choices))].astype(np.float32)


def arrays(made: nkic.Artifact, state: np.random.Generator, size: float) -> Arrays:
    return {p.name: directed(state, size, p.shape) for p in made.signature.inputs}


def look(seed: int, kind: str = "", sizes: tuple[float, ...] = (1.0, 30.0)) -> float:
    """Run a kernel beside its intervals; return up to which size it is proven."""
    random, state = Random(seed), np.random.default_rng(seed)
    made = kernel(((kind, seed),) if kind else plan(random))
    target = RunOptions().target_of(made.executable)
    for size in sizes:

        def follow(memory: Memory, size: float = size) -> Within:
            return Within(made.executable, memory, target, size, -1.0)

        inputs = arrays(made, state, size)
        simulate_ranks(made.executable, [inputs], RunOptions(), follow=follow)
    usual = {p.name: state.uniform(0, 1, p.shape).astype(np.float32) for p in made.signature.inputs}
    proof = proven(made.executable, usual)
    for _ in range(4 if proof.size else 0):
        inputs = arrays(made, state, proof.size)
        if not proof.low:
            inputs = {name: np.abs(array) for name, array in inputs.items()}
        outputs = nkic.run(made, inputs).outputs["output_0"]
        assert np.isfinite(outputs).all(), (proof, text(((kind, seed),)) if kind else seed)
    return proof.size


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"filled"}))
def test_every_number_lies_within_its_interval(kind: str) -> None:
    look(2, kind)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 320, 20))
def test_those_of_many_do(first: int) -> None:
    for seed in range(first, first + 20):
        if "filled" not in dict(plan(Random(seed))):  # which has infinities of its own
            look(seed, sizes=(2.0**-20, 0.5, 2.0, 1e4))


# ---- The accumulators of the vector engine ----

SELECTED = """
    m = nl.greater(x, 0.0, dtype=nl.uint8)
    nisa.select_reduce(dst=t, predicate=m, on_true=x, on_false=0.5, {})
"""
READ = "reduce_res=r, reduce_cmd=nisa.reduce_cmd.{}".format
SUMMED = f"""
    nisa.tensor_scalar_reduce(
        dst=t, data=x, op0=nl.add, operand0=1.0, reduce_op=nl.maximum, {READ("reset_reduce")}
    )
"""
CUMULATIVE = """
    nisa.tensor_scalar_cumulative(
        dst=t, src=x, op0=nl.multiply, op1=nl.add, imm0=9.0,
        reduce_cmd=nisa.reduce_cmd.reset_reduce,
    )
"""
DYNAMIC = f"""
    nl.fori_loop(0, 32, lambda i: nisa.tensor_scalar_reduce(
        dst=t[:, nl.ds(i, 8)], data=x[:, nl.ds(i, 8)], op0=nl.multiply, operand0=9.0,
        reduce_op=nl.maximum, {READ("reduce")}), step=8)
"""
CARRIED = CUMULATIVE.replace("reset_reduce", "reduce")  # which the field does not follow
IDLE = SELECTED.format("reduce_cmd=nisa.reduce_cmd.idle")
FRESH, GOES_ON = (SELECTED.format(READ(command)) for command in ("reset_reduce", "reduce"))


def accumulating(*lines: str) -> nkic.Artifact:
    head = tile("t") + tile("r", columns=1)
    return compiled(
        "\n".join((head, *lines, "out = nl.copy(r)")).replace("\n    ", "\n"), TYPE, TYPE
    )


@pytest.mark.usefixtures("without_limits")
@pytest.mark.parametrize("between", ["", CUMULATIVE, CARRIED, DYNAMIC, IDLE])
def test_what_sets_accumulators_counts(between: str) -> None:
    """An instruction that goes on with them computes something else than without the one before."""
    first = SUMMED if between else ""
    one = accumulating(first, between, GOES_ON)
    other = accumulating(SUMMED, GOES_ON) if between else accumulating(FRESH)
    found = [nkic.run(k, fill="randn(1)").outputs["output_0"] for k in (one, other)]
    assert not np.allclose(found[0], found[1])
    assert decide.equal(one.executable, other.executable).verdict in ("different", "undecided")
    assert decide.equal(other.executable, other.executable)


@pytest.mark.usefixtures("without_limits")
def test_those_of_the_scalar_engine_begin_at_0() -> None:
    one, other = (
        accumulating(
            f"nisa.activation(dst=t, op=nl.copy, data=x, reduce_op=nl.add, {READ(command)})"
        )
        for command in ("reset_reduce", "reduce")
    )
    assert decide.equal(one.executable, other.executable)
