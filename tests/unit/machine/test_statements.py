"""Test statements of the vendor's pages about two instructions.

A statement says that one instruction is a number of times as fast as the other, or takes as long.
Only streaming is compared, in cycles; the statements do not include the fixed cost of every
instruction.
"""

from typing import Any, NamedTuple

import pytest

from nkic.machine.operands import Facts
from nkic.machine.targets import TRN1, TRN2, TRN3, Engine, Target
from tests.unit.instances import COLUMN, beside, facts_of, tile

V, S, G, T = Engine.VECTOR, Engine.SCALAR, Engine.GPSIMD, Engine.TENSOR
LONG, HALF = tile("float32[128, 512]"), tile("bfloat16[128, 512]")
LONG_P, HALF_P = tile("float32[128, 512] psum"), tile("bfloat16[128, 512] psum")
SQUARE, SQUARE_HALF = tile("float32[128, 128]"), tile("bfloat16[128, 128]")
FAR = tile("float32[128, 512]", dims=((5, 512),))
SPREAD = tile("bfloat16[128, 512]", dims=((2, 512),))


class Way(NamedTuple):
    """An instruction on an engine, with its own settings."""

    name: str
    engine: Engine
    changes: dict[str, Any]
    target: Target = TRN2

    def cycles(self) -> float:
        row, facts = facts_of(self.name, self.target, **self.changes)
        facts = Facts(self.target, facts.operands, facts.attributes, self.engine)
        return row.cost(facts).interval - beside(self.target, self.engine, self.changes)

    def ns(self) -> float:
        return self.cycles() * 1000 / self.target.clock_mhz[self.engine]


def copied(dst: Any, src: Any, engine: Engine = V, target: Target = TRN2) -> Way:
    return Way("tensor_copy", engine, {"dst": dst, "src": src}, target)


def summed(kind: Any, target: Target = TRN2, engine: Engine = V) -> Way:
    operands = dict.fromkeys(("dst", "data1", "data2"), kind)
    return Way("tensor_tensor", engine, operands, target)


def scaled(kind: Any, engine: Engine, target: Target, **more: Any) -> Way:
    given = {"dst": kind, "data": kind, "op0": "multiply", "operand0": 2.0, **more}
    return Way("tensor_scalar", engine, given, target)


def multiplied(dtype: str, shape: str = "128", **more: Any) -> Way:
    held, streamed = tile(f"{dtype}[128, {shape}]"), tile(f"{dtype}[128, {shape[:-3]}512]")
    result = tile("float32[128, 512] psum")
    given = {"dst": result, "stationary": held, "moving": streamed, **more}
    return Way("nc_matmul", T, given)


GUIDE, GUIDE_2 = "Trainium/Inferentia2 guide", "Trainium2 guide"
SAID: list[tuple[str, Way, Way, float]] = [
    (f"{GUIDE}: steps above 16 bytes, half the rate", copied(LONG, FAR), copied(LONG, SPREAD), 2),
    (
        "nki.isa: tensor_scalar is faster than tensor_tensor",
        summed(LONG, TRN1),
        scaled(LONG, V, TRN1),
        2,
    ),
    (
        "nki.isa: two operators cost what one does",
        scaled(LONG, V, TRN2, op1="add", operand1=1.0),
        scaled(LONG, V, TRN2),
        1,
    ),
    (
        f"{GUIDE}: activations cost the same with scale and bias",
        Way("activation", S, {"data": LONG, "dst": LONG, "scale": COLUMN, "bias": COLUMN}, TRN1),
        Way("activation", S, {"data": LONG, "dst": LONG}, TRN1),
        1,
    ),
    (
        "nki.isa: casts cost nothing more",
        Way("activation", S, {"data": LONG, "dst": HALF}),
        Way("activation", S, {"data": LONG, "dst": LONG}),
        1,
    ),
    (
        f"{GUIDE_2}: copies in bfloat16, 4 times",
        copied(HALF, HALF, target=TRN1),
        copied(HALF, HALF),
        4,
    ),
    (
        f"{GUIDE_2}: … not contiguous, twice",
        copied(HALF, SPREAD, target=TRN1),
        copied(HALF, SPREAD),
        2,
    ),
    (
        f"{GUIDE_2}: … out of PSUM, twice",
        copied(HALF, HALF_P, target=TRN1),
        copied(HALF, HALF_P),
        2,
    ),
    (f"{GUIDE_2}: sums in bfloat16, twice those in float32", summed(LONG), summed(HALF), 2),
    (
        f"{GUIDE_2}: transposes into bfloat16 leave PSUM faster",
        copied(HALF, LONG_P),
        copied(HALF, HALF_P),
        2,
    ),
    (
        f"{GUIDE_2}: transposes of float32 in their own mode, twice",
        Way("nc_transpose", T, {"data": SQUARE, "dst": tile("float32[128, 128] psum")}, TRN1),
        Way("nc_transpose", T, {"data": SQUARE, "dst": tile("float32[128, 128] psum")}),
        2,
    ),
    (
        "nki.isa: float32 products take 4 times as long",
        multiplied("float32"),
        multiplied("bfloat16"),
        4,
    ),
    (
        "nki.isa: twice as fast where one operand is 0 and 1",
        multiplied("float32"),
        multiplied("float32", is_stationary_onezero=True),
        2,
    ),
    (
        f"{GUIDE_2}: a product of two FP8 rows takes what one of bfloat16 does",
        multiplied("float8_e4m3", "2, 128", perf_mode="double_row"),
        multiplied("bfloat16"),
        1,
    ),
    (
        "Trainium3 guide: scalar's copies in bfloat16, twice",
        copied(HALF, HALF, S),
        copied(HALF, HALF, S, TRN3),
        2,
    ),
    (
        "Trainium3 guide: tensor_scalar on scalar in bfloat16, twice",
        scaled(LONG, S, TRN3),
        scaled(HALF, S, TRN3),
        2,
    ),
    (
        "common: reciprocal on vector, 8 times as long as one element a cycle",
        Way("reciprocal", V, {"data": LONG, "dst": LONG}),
        Way("activation", S, {"data": LONG, "dst": LONG, "op": "copy"}),
        8,
    ),
    (
        "common: rsqrt on gpsimd, 4 times as long as on scalar",
        scaled(LONG, G, TRN1, op0="rsqrt", operand0=0.0),
        Way("activation", S, {"data": LONG, "dst": LONG, "op": "rsqrt"}, TRN1),
        4,
    ),
    (
        "Mamba tutorial: a sum of PSUM and SBUF, half as long as of SBUF alone (trn1)",
        summed(LONG, TRN1),
        Way("tensor_tensor", V, {"data1": LONG_P}, TRN1),
        2,
    ),
]


@pytest.mark.parametrize(
    ("slow", "fast", "times"),
    [pytest.param(*rest, id=said) for said, *rest in SAID],
)
def test_what_the_vendor_says_of_two_instructions(slow: Way, fast: Way, times: float) -> None:
    assert slow.cycles() / fast.cycles() == pytest.approx(times, rel=0.02)


def test_v4_raises_four_times_as_fast_on_vector_as_on_scalar() -> None:
    """Trainium3 guide, fast exponential: "4x the throughput" of the activation."""
    fast = Way("exponential", V, {"src": LONG, "dst": LONG}, TRN3)
    plain = Way("activation", S, {"data": LONG, "dst": LONG, "op": "copy"}, TRN3)
    assert plain.ns() / fast.ns() == pytest.approx(4, rel=0.02)


@pytest.mark.parametrize(
    ("name", "changes", "elements"),
    [
        ("rand2", {"dst": LONG}, 512),
        (
            "quantize_mx",
            {
                "src": tile("bfloat16[128, 1024]"),
                "dst": tile("float8_e4m3fn_x4[128, 256]"),
                "dst_scale": tile("uint8[128, 256]"),
            },
            1024,
        ),
    ],
)
def test_v4_takes_four_elements_a_cycle(name: str, changes: dict[str, Any], elements: int) -> None:
    """Trainium3 guide: quantisation, and random numbers."""
    assert elements / Way(name, V, changes, TRN3).cycles() == pytest.approx(4, rel=0.02)
