"""Up to which size of inputs kernels are proven to stay finite, and that intervals hold."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkic
from nkic.artifact.records import InstructionRecord, PatternRecord
from nkic.simulate.field.elements import Doubles, Elements
from nkic.simulate.field.intervals import (
    DIFFERENCE,
    ERROR,
    FACTOR,
    FLOOR,
    GREATEST,
    HIGH,
    KIND,
    LOW,
    REST,
    SLACK,
    TOP,
    Excluding,
    Facts,
    Proof,
    _outward,
    _with,
    constant,
    interval,
    proven,
)
from nkic.simulate.inputs import Generator, numbers, to_storage
from nkic.simulate.memory import Memory
from nkic.simulate.outcome import RunOptions
from nkic.simulate.stage import simulate_ranks
from tests.equal.kernels import answer, compiled
from tests.equal.test_limits import GUARDED, ROOTS
from tests.equal.test_pairs import (
    ONLINE,
    PLAIN,
    PRODUCT,
    RMS,
    SOFTMAX,
    STATISTICS,
    TILED,
    VARIANCE,
)

HALF = """
    m = nl.max(x[:, 0:16], axis=1, keepdims=True)
    e = nl.exp(x - m)
    out = e * nl.reciprocal(nl.sum(e, axis=1, keepdims=True))
"""
OTHER_HALF = """
    m = nl.max(x, axis=1, keepdims=True)
    s = nl.sum(nl.exp(x[:, 0:16] - m), axis=1, keepdims=True)
    out = nl.reciprocal(s + nl.sum(nl.exp(x[:, 8:16] - m), axis=1, keepdims=True))
"""
SCALED = """
    e = nl.exp((x - nl.max(x, axis=1, keepdims=True)) * 0.3)
    out = e * nl.reciprocal(nl.sum(e, axis=1, keepdims=True))
"""
ROUNDED = """
    m = nl.max(x, axis=1, keepdims=True) * -0.3
    e = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.activation(dst=e, op=nl.exp, data=x, bias=m, scale=0.3)
    out = e * nl.reciprocal(nl.sum(e, axis=1, keepdims=True))
"""
LEAST = """
    y = x * -1.0
    m = nl.max(y, axis=1, keepdims=True)
    out = nl.reciprocal(nl.sum(nl.exp(y - m), axis=1, keepdims=True))
"""
PARTS = """
    a, b = nl.max(x[:, 0:16], axis=1, keepdims=True), nl.max(x[:, 16:24], axis=1, keepdims=True)
    m = nl.maximum(nl.maximum(a, b), nl.max(x[:, 24:32], axis=1, keepdims=True))
    out = nl.reciprocal(nl.sum(nl.exp(x - m), axis=1, keepdims=True))
"""
SOME = PARTS.replace("nl.sum(nl.exp(x - m)", "nl.sum(nl.exp(x[:, 0:24] - m)")
STARTED = """
    m = nl.ndarray((24, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=m, value={})
    m = nl.maximum(nl.max(x, axis=1, keepdims=True), m)
    out = nl.reciprocal(nl.sum(nl.exp(x - m), axis=1, keepdims=True))
"""
SCALED_APART = """
    m = nl.max(x, axis=1, keepdims=True) * -0.3
    e = nl.ndarray(x.shape, dtype={}, buffer=nl.sbuf)
    nisa.activation(dst=e, op=nl.exp, data=x, bias=m, scale=0.3)
    out = nl.reciprocal(nl.sum(nl.copy(e, dtype=nl.float32), axis=1, keepdims=True))
"""
BEYOND = """
    b = nl.ndarray((24, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=b, value=1e30)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.activation(dst=out, op=nl.exp, data=x, bias=b)
"""
WHOLE = """
    out = nl.ndarray(x.shape, dtype=nl.int32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=out, data=x, op0=nl.multiply, operand0=2.0)
"""
CANCELLED = """
    y = nl.ndarray((24, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=y[:, 0:32], data=x, op0=nl.add, operand0=2e38)
    nisa.tensor_scalar(dst=y[:, 32:64], data=x, op0=nl.add, operand0=-2e38)
    out = nl.sum(y, axis=1, keepdims=True)
"""
WRONG_SIGN = """
    m = nl.min(x, axis=1, keepdims=True)
    out = nl.exp(x - m)
"""
FUNCTIONS = """
    a = nl.tanh(x) + nl.sigmoid(w) * nl.sin(nl.tanh(x)) + nl.silu(x) + nl.gelu(w)
    b = nl.abs(x - w) + nl.relu(w) * nl.where(nl.greater(x, 0.5), x, w) + nl.square(x)
    out = a * nl.rsqrt(b + 0.5) - nl.log(nl.abs(a) + 1.0)
"""
SPLIT = """
    xh, wh = nl.copy(x, dtype=nl.bfloat16), nl.copy(w, dtype=nl.bfloat16)
    xl, wl = nl.copy(x - xh, dtype=nl.bfloat16), nl.copy(w - wh, dtype=nl.bfloat16)
    p = nl.ndarray((32, 32), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=p, stationary=xh, moving=wh, accumulate=False)
    nisa.nc_matmul(dst=p, stationary=xh, moving=wl, accumulate=True)
    nisa.nc_matmul(dst=p, stationary=xl, moving=wh, accumulate=True)
    out = nl.copy(p)
"""
MULTIPLIED = """
    out = nl.ndarray((24, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=out, data=x[:, 0:3] - 3.0, op=nl.multiply, axis=1)
"""
ALL = (
    MULTIPLIED,
    SOFTMAX,
    ONLINE,
    PLAIN,
    RMS,
    STATISTICS,
    VARIANCE,
    TILED,
    HALF,
    OTHER_HALF,
    SCALED,
)


def inputs(kernel: nkic.Artifact, fill: Generator) -> dict[str, Any]:
    return {
        p.name: to_storage(numbers(fill.array(p.name, p.dtype, p.shape), p.dtype), p.dtype)
        for p in kernel.signature.inputs
    }


def proof(body: str) -> Proof:
    kernel = compiled(body)
    return proven(kernel.executable, inputs(kernel, Generator("uniform", (0.0, 1.0, 1.0))))


class Checking(Excluding):
    """Checks that each number which an instruction stores lies within its interval."""

    checked = 0

    def _kept(
        self, record: InstructionRecord, result: Elements, values: Doubles, pattern: PatternRecord
    ) -> Elements:
        kept = super()._kept(record, result, values, pattern)
        low, high = kept.residues[LOW], kept.residues[HIGH]
        assert ((low <= values) & (values <= high))[np.isfinite(values)].all(), record
        assert self.first or np.isfinite(values).all(), record
        self.checked += values.size
        return kept


def check(kernel: nkic.Artifact, size: float, fill: Generator) -> int:
    """Run a kernel beside its intervals; return how many numbers were compared."""
    found: list[Checking] = []

    def follow(memory: Memory) -> Checking:
        target = RunOptions().target_of(kernel.executable)
        found.append(Checking(kernel.executable, memory, target, size, -1.0))
        return found[0]

    simulate_ranks(kernel.executable, [inputs(kernel, fill)], RunOptions(), follow=follow)
    return found[0].checked


def fills(size: float) -> Mapping[str, Generator]:
    return {
        "within": Generator("uniform", (-size, size, 3.0)),
        "near the end": Generator("uniform", (size * 0.999, size, 4.0)),
        "equal": Generator("const", (-size,)),
        "small": Generator("uniform", (-size * 1e-3, size * 1e-3, 5.0)),
    }


@pytest.mark.parametrize("body", (*ALL, PARTS, SOME, ROUNDED, LEAST, FUNCTIONS, SPLIT))
def test_numbers_lie_within_their_intervals(body: str) -> None:
    kernel, found = compiled(body), proof(body)
    for size in (0.5, 1.0, 30.0, min(found.size, 1e37)):
        for name, fill in fills(size).items():
            assert size == 0 or check(kernel, size, fill) > 1000, name


# The larger two take 11 s, and reach no line of nkic/simulate/field that the others do not.
LARGE = [7, *(pytest.param(number, marks=pytest.mark.slow) for number in (8, 9))]


@pytest.mark.parametrize("number", LARGE)
def test_numbers_of_samples_lie_within_their_intervals(number: int) -> None:
    (path,) = Path("samples").glob(f"{number:02}_*/kernel.py")
    kernel = nkic.compile(str(path))
    for fill in fills(2.0).values():
        assert check(kernel, 2.0, fill) > 100_000


@pytest.mark.parametrize("body", (SOFTMAX, ONLINE, PARTS))
def test_a_softmax_with_its_maximum_stays_finite(body: str) -> None:
    found = proof(body)
    assert 1e38 < found.size < 2e38 and found.low == -1.0  # x - max(x) is -2 x at most
    assert found.name == "tensor_tensor (subtract)"


def test_one_without_it_does_not() -> None:
    found = proof(PLAIN)
    assert 40 < found.size < 88.73 and found.place == "k.py:10"


def test_a_scaled_difference_is_one() -> None:
    assert proof(SCALED).size > 1e38


def test_a_maximum_that_began_beyond_all_elements_is_none_of_them() -> None:
    assert 1e38 < proof(STARTED.format(-3.4e38)).size < 2e38
    assert 0.9e30 < proof(STARTED.format(-1e30)).size < 1e30
    body = STARTED.format(0.0)
    assert 40 < proof(body).size < 44  # exp(x - m) is at least exp(-2 x)
    low = Generator("const", (-200.0,))
    assert np.isinf(nkic.run(compiled(body), inputs(compiled(body), low)).outputs["output_0"]).all()


def test_a_floor_that_its_type_may_round_to_0_is_none() -> None:
    assert proof(SCALED_APART.format("nl.float32")).size > 1e9
    assert proof(SCALED_APART.format("nl.float8_e4m3")).size < 6e7
    assert proof(SCALED_APART.format("nl.int32")).size == 0  # 0.9 is 0


def test_what_is_infinite_for_all_inputs_is_not_finite() -> None:
    found = proof("""
    b = nl.ndarray((24, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=b, value=float("-inf"))
    out = nl.exp(x - b)
    """)
    assert (found.size, found.name) == (0.0, "tensor_tensor (subtract)")


def test_an_infinity_by_overflow_is_not_the_program_s() -> None:
    assert proof(BEYOND).size == 0


def test_integers_saturate_and_are_read_as_float32() -> None:
    assert check(compiled(WHOLE), 1e20, Generator("uniform", (0.0, 1e20, 3.0))) > 1000


def test_sums_may_overflow_on_their_way() -> None:
    assert (proof(CANCELLED).size, proof(CANCELLED).name) == (0.0, "tensor_reduce (add)")


def test_products_may_overflow_on_their_way_or_meet_infinities() -> None:
    ones = constant([[1.0], [-1.0]])
    rows = Facts().matmul(constant(np.full((2, 1), 3e38)), ones).residues
    assert np.isneginf(rows[LOW]).all() and np.isposinf(rows[HIGH]).all()
    masked = constant([[-np.inf, 1.0], [0.0, 2.0]])
    rows = Facts().matmul(masked, constant(np.eye(2))).residues
    assert np.isinf(rows[HIGH][0]).all()  # 0 times infinity


def test_a_sum_of_floors_has_the_slack_of_the_least() -> None:
    floors, facts = constant(np.full((1, 2), np.nan)), Facts()
    rows = floors.residues
    rows[LOW] = 0.0
    rows[HIGH], rows[KIND], rows[TOP], rows[REST], rows[SLACK] = 1.0, FLOOR, 1.0, 1.0, [0.0, 0.5]
    facts.fresh((1,))
    assert 0.6 < facts.sum_of(floors).residues[LOW][0] <= np.exp(-0.5)
    one, other = (floors.at(np.s_[:, i]) for i in (0, 1))
    assert facts.add(one, other).residues[SLACK].max() == 0.5


def test_floors_below_both_members_of_a_maximum_are_below_it() -> None:
    def top(one: dict[str, float], other: dict[str, float], members: float = 2) -> float:
        facts, floor = Facts(), {"KIND": FLOOR, "SLACK": 0.0}
        facts.fresh((6,))
        facts.above[[1, 2, 5]], facts.members[[3, 6]] = [3.0, 3.0, 6.0], members
        found = facts.add(box(0, 1, **floor | one), box(0, 1, **floor | other))
        return float(found.residues[TOP].item())

    first, second = {"TOP": 1.0, "REST": 4.0}, {"TOP": 2.0, "REST": 4.0}
    assert top(first, second) == 3
    for changed in ({"REST": 2.0}, {"TOP": 1.0}, {"KIND": 0.0}, {"TOP": 5.0}):
        assert top(first, second | changed) != 3 != top(second | changed, first)
    assert top(first, second, 3) != 3


COLUMNS = """
    a, b = nl.copy(x[:, 0:1]), nl.copy(x[:, 1:2]) * {}
    m = nl.ndarray((24, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=m, data1=a, data2=b, op=nl.maximum)
    out = nl.exp({} - m)
"""


@pytest.mark.parametrize(
    "body", [COLUMNS.format(2.0, "a * 2.0"), COLUMNS.format(-1.0, "x[:, 1:2]")]
)
def test_a_maximum_of_other_multiples_is_above_none(body: str) -> None:
    """2 a may exceed max(a, 2 b), and b exceeds max(a, -b) if it is positive and a is not."""
    kernel, found = compiled(body), proof(body)
    assert 20 < found.size < 89
    row = [-200, 200] if "x[:, 1:2] - m" in body else [200, -200]
    x = np.tile(np.array(row, np.float32), (24, 16))
    assert np.isinf(nkic.run(kernel, {"x_hbm": x, "w_hbm": x}).outputs["output_0"]).all()


def test_bounds_beyond_float32_are_infinite_or_its_greatest() -> None:
    ends = interval(np.array([-1e39, 1e39, -2e39]), np.array([0.0, 2e39, -1e39])).residues
    assert ends[LOW].tolist() == [-np.inf, GREATEST, -np.inf]
    assert ends[HIGH].tolist() == [0, np.inf, -GREATEST]
    unknown = _outward(np.array([np.nan]), np.array([np.nan]))
    assert [end.tolist() for end in unknown] == [[-np.inf], [np.inf]]


def test_overflow_between_the_stages_of_an_instruction_is_one() -> None:
    found = proof("""
    y, out = nl.square(x) * -1.0, nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(
        dst=out, data=y, op0=nl.multiply, operand0=1e30, op1=nl.multiply, operand1=1e-30
    )
    """)
    assert 1e4 < found.size < (GREATEST / 1e30) ** 0.5


def box(low: float, high: float, **levels: float) -> Elements:
    """Return an element between two numbers, with other levels."""
    found = interval(np.array([[low]]), np.array([[high]]))
    return _with(found._replace(value=np.array([[np.nan]])), np.array([[True]]), **levels)


def ends(found: Elements) -> tuple[float, float]:
    low, high = found.residues[[LOW, HIGH]].reshape(2)
    return float(low), float(high)


NOTHING = (-np.inf, np.inf)


def test_powers_that_are_not_defined_everywhere_are_unknown() -> None:
    facts, across = Facts(), box(-2, 3)
    assert ends(facts.power(across, constant([[0.5]]))) == NOTHING
    assert ends(facts.power(across, constant([[-1.0]]))) == NOTHING
    for low, high in ((0.0, 3.0), (-3.0, 0.0), (-2.0, 0.5)):
        assert ends(facts.power(box(low, high), constant([[-2.0]]))) == NOTHING
    for low, high in ((0.5, 2.0), (-2.0, -0.5)):
        assert np.isfinite(ends(facts.power(box(low, high), constant([[-1.0]])))).all()
    assert ends(facts.power(across, box(1, 2))) == NOTHING
    several = facts.power(across, constant([[2.0, 3.0]])).residues
    assert np.isneginf(several[LOW]).all() and np.isposinf(several[HIGH]).all()
    low, high = ends(facts.power(across, constant([[2.0]])))
    assert low == 0 and 9 <= high < 9.001
    low, high = ends(facts.power(across, constant([[3.0]])))
    assert -8.001 < low <= -8 and 27 <= high < 27.001


def test_functions_beyond_where_they_are_defined_are_unknown() -> None:
    functions = Facts().algebra.functions
    wide = {
        "sin": (0, 100),
        "log": (-1, 1),
        "sqrt": (-1, 1),
        "rsqrt": (0, 1),
        "reciprocal": (-1, 1),
    }
    for name, (low, high) in wide.items():
        assert ends(functions[name](box(low, high), 0)) == NOTHING, name
        assert np.isfinite(ends(functions[name](box(0.5, 1), 0))).all(), name


def test_a_choice_by_what_varies_may_be_either() -> None:
    selected = Facts().algebra.selected
    one, other = constant([[2.0]]), constant([[-3.0]])
    assert ends(selected(box(0, 1), one, other, 0)) == (-3, 2)
    assert ends(selected(one, one, other, 0)) == (2, 2)


def test_what_is_known_of_a_multiple_is_scaled() -> None:
    facts = Facts()
    x = box(-1, 0, BASE=1.0, FACTOR=1.0, ERROR=0.5, KIND=DIFFERENCE, TOP=2.0, REST=3.0, SLACK=0.25)
    rows = facts.multiply(x, constant([[8.0]])).residues.reshape(-1)
    assert rows[FACTOR] == 8 and rows[ERROR] >= 4 and rows[SLACK] >= 2
    facts.fresh((1,))
    assert facts.greatest(x, 1).residues[ERROR] == 0.5
    assert (
        ends(facts.multiply(box(-1, 1, BASE=1.0, FACTOR=1.0), box(-2, 2, BASE=1.0, FACTOR=-2.0)))[0]
        <= -2
    )


def test_a_product_of_related_factors() -> None:
    """Floors that follow each other are one; the square of an element is not negative."""
    facts = Facts()
    facts.fresh((3,))
    facts.above[1:3] = 2.0, 3.0
    first = box(0, 1, KIND=FLOOR, TOP=1.0, REST=2.0, SLACK=0.25)
    second = box(0, 1, KIND=FLOOR, TOP=2.0, REST=3.0, SLACK=0.5)
    for factors in ((first, second), (second, first)):
        rows = facts.multiply(*factors).residues.reshape(-1)
        assert rows[[KIND, TOP, REST]].tolist() == [FLOOR, 1.0, 3.0]
        assert 0.75 < rows[SLACK] < 0.750001
    assert facts.multiply(first, first).residues[KIND] != FLOOR
    assert (
        facts.multiply(first, _with(second, np.array([[True]]), LOW=-1.0)).residues[KIND] != FLOOR
    )
    for error, least in ((0.0, 0.0), (0.5, -1.0)):
        one, twice = (box(-1, 1, BASE=1.0, FACTOR=f, ERROR=error) for f in (1.0, 2.0))
        assert abs(ends(facts.multiply(one, twice))[0] - least) < 1e-6
        assert ends(facts.multiply(one, one))[0] == 0.0


def test_a_product_with_an_identity_keeps_what_is_known() -> None:
    facts, wide = Facts(), np.array([[0.0, 1.0], [2.0, 3.0]])
    x = _with(interval(-wide, wide), wide >= 0, BASE=wide + 1, FACTOR=1.0)
    x = x._replace(value=np.full((2, 2), np.nan))
    one = constant(np.eye(2))
    assert np.array_equal(facts.matmul(one, x).residues, x.residues)
    assert np.array_equal(facts.matmul(x, one).residues, x.moved(np.transpose).residues)
    cut = constant(np.eye(2, 1))
    assert facts.matmul(x, cut).residues[HIGH].shape == (2, 1)


def test_a_floor_less_something_is_none() -> None:
    found = proof("""
    m = nl.max(x, axis=1, keepdims=True)
    s = nl.sum(nl.exp(x - m), axis=1, keepdims=True) + w[:, 0:1]
    out = nl.reciprocal(s)
    """)
    assert 1 < found.size < 1.9  # 1 + 31 exp(-2 size) is the least sum


def test_a_0_that_is_added_spreads() -> None:
    zeros, three = constant(np.zeros((2, 2))), constant([[3.0]])
    assert Facts().add(zeros, three).value.shape == (2, 2)


def test_a_scaled_maximum_counts_with_its_rounding() -> None:
    assert 1e6 < proof(ROUNDED).size < 1e10


@pytest.mark.parametrize("body", (HALF, OTHER_HALF, SOME, WRONG_SIGN))
def test_the_maximum_of_others_proves_nothing(body: str) -> None:
    kernel, found = compiled(body), proof(body)
    assert 10 < found.size < 89
    wide = Generator("uniform", (-1e4, 1e4, 3.0))
    assert not np.isfinite(nkic.run(kernel, inputs(kernel, wide)).outputs["output_0"]).all()


REMAINDER = """
    h = nl.ndarray(x.shape, dtype=nl.{}, buffer=nl.sbuf)
    nisa.activation(dst=h, op=nl.copy, data=x, scale={})
    out = nl.exp(x - h)
"""


def test_a_number_less_its_rounding_is_small() -> None:
    whole, split = proof(PRODUCT).size, proof(SPLIT).size
    assert 0.95 * whole < split < whole
    limits = {"bfloat16": 2.0**8, "tfloat32": 2.0**11}
    for name, share in limits.items():
        assert 88 / 2 * share < proof(REMAINDER.format(name, 1.0)).size < 88.73 * share, name
    for name, most in (("float16", 65504), ("float8_e4m3", 240)):
        assert 0.85 * most < proof(REMAINDER.format(name, 1.0)).size <= most
    twice = REMAINDER.replace("x - h", "y - nl.copy(y, dtype=nl.bfloat16)")
    twice = twice.replace("out", "y = x - h\n    out")
    assert proof(twice.format("bfloat16", 1.0)).size > 2.0**16


def test_a_number_less_something_else_is_not() -> None:
    """The rounding of a multiple, of another number, or of what was in a tile before."""
    assert 50 < proof(REMAINDER.format("bfloat16", 0.3)).size < 88.73 / 0.7
    assert 40 < proof(REMAINDER.format("bfloat16", -1.0)).size < 88.73 / 2
    assert 40 < proof(REMAINDER.replace("x - h", "w - h").format("bfloat16", 1.0)).size < 88.73 / 2
    later = REMAINDER.replace("out", "x = x * w * 0.01\n    out").format("bfloat16", 1.0)
    assert proof(later).size < 80
    assert 40 < proof(REMAINDER.format("int32", 1.0)).size < 88.73 / 2
    half = """
        a, b, part = nl.copy(w), nl.full(x.shape, -5.0, dtype=nl.float32), x[:, 0:16]
        nisa.tensor_copy(dst=a[:, 0:16], src=part)
        nisa.tensor_copy(dst=b[:, 0:16], src=nl.copy(part, dtype=nl.bfloat16))
        out = nl.exp(a - b)
    """
    assert 80 < proof(half).size < 88.73 - 5


def test_the_maximum_of_negated_numbers_is_one() -> None:
    assert proof(LEAST).size > 1e38


def test_functions_of_positive_numbers() -> None:
    for body in (ROOTS, GUARDED):
        found = proof(body)
        assert found.low == 0.0 and 7000 < found.size < 88.73**2


def test_what_cannot_be_excluded_is_named() -> None:
    found = proof("out = x * nl.reciprocal(x)")
    assert (found.size, found.name, found.place) == (0.0, "reciprocal", "k.py:9")
    assert found.text("it") == "not proven: reciprocal at k.py:9 of it, for inputs within 2^-20"
    assert proof("out = nl.copy(x)").text("it") == "proven: it stays finite for all finite inputs"


def test_an_answer_has_a_line_for_each_kernel() -> None:
    found = answer(SOFTMAX, PLAIN)
    lines = [line for line in found.text.splitlines() if line.startswith("proven: ")]
    assert lines[0].startswith("proven: the first kernel stays finite for inputs up to 1.6")
    assert lines[1].endswith("beyond, tensor_tensor (multiply) at k.py:10 is not excluded")
    first, second = json.loads(json.dumps(found.as_json()))["proofs"]
    assert first["size"] > 1e38 and second["place"] == "k.py:10"


def test_a_bounded_function_of_nan_is_not_excluded() -> None:
    found = proof("""
    b = nl.ndarray((24, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=b, value=float("-inf"))
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.activation(dst=out, op=nl.tanh, data=x, bias=b, scale=2.0)
    """)
    assert 1.6e38 < found.size < 1.71e38 and found.name == "activation (tanh)"
