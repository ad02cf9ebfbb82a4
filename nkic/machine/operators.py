"""The operators that instructions take as `op=`, and the scalar engine's activation functions.

Names are those of `nki.language`. Their arithmetic is in simulate/numerics under the same names; a
test checks that both agree. No NumPy here.

Sources: NKI API common fields, "Supported Math Operators" and "Supported Activation Functions"
(names, groups, reducible, valid input ranges); the same page at v2.26.1, the last one with a column
of engines; `nki.language.abs_max` and release notes 0.4.0 (additions of NeuronCore-v4);
`nki.isa.activate2` (subtract and bypass on the scalar engine); `nki.isa.tensor_tensor` (exact
32-bit integers on GpSimd); `nki.isa.tensor_partition_reduce` (average).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, pi
from types import MappingProxyType
from typing import Literal

from nkic.machine.targets import Engine

Group = Literal["arithmetic", "bitvec"]

# The precision and order in which an instruction sums the values it accumulates.
#
#     exact     in float64, rounded once to float32 at the end
#     float32   in float32, first to last, rounded after every addition
#     pairwise  in float32, adjacent pairs, then pairs of pairs, and so on; an element left over at
#               the end of a row joins the next row
#
# According to the documentation, a device adds in float32; the order is not published for any
# instruction (docs/fidelity.md lists measurements). "float32" and "pairwise" are two plausible
# orders: a kernel whose results differ too much from "exact" under them depends on the order.
SummationOrder = Literal["exact", "float32", "pairwise"]
ORDERS: tuple[SummationOrder, ...] = ("exact", "float32", "pairwise")


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """A row: an operator of the arithmetic units of the vector, scalar and gpsimd engines.

    Arithmetic operators convert their inputs to float32; bitvec operators work on the bits of
    integers. `engines` maps an engine to the first NeuronCore version on which it has the operator.
    `integers`: gpsimd computes it exactly if all tiles are int32 or all are uint32. `reducible`:
    instructions that take any operator may reduce with it. `identity` is the initial value of a
    reduction or accumulator (-1 has all bits set). `shifts`: y is a number of bits; if it is at
    least the width of x, the result is 0.
    """

    name: str
    arity: int
    group: Group
    engines: Mapping[Engine, int]
    doc: str
    reducible: bool = False
    identity: float | None = None
    integers: bool = False
    shifts: bool = False

    def runs_on(self, engine: Engine, generation: int) -> bool:
        return self.engines.get(engine, inf) <= generation

    def engines_of(self, generation: int) -> tuple[Engine, ...]:
        return tuple(engine for engine in self.engines if self.runs_on(engine, generation))


@dataclass(frozen=True, slots=True, eq=False)
class Activation:
    """A row: a function that the scalar engine's tables approximate, on every NeuronCore.

    Outside `low` … `high` (of the magnitude, if `by_magnitude`) the device's result is invalid;
    docs/fidelity.md gives the result of nki-run. `parameter` names an extra argument. `table` is
    the family whose table holds the function; plain functions are in every table. Which functions
    share a table is not published: families are assumed, by the functions they are computed from.
    """

    name: str
    doc: str
    low: float = -inf
    high: float = inf
    by_magnitude: bool = False
    parameter: str = ""
    table: str = ""


def _engines(text: str) -> Mapping[Engine, int]:
    """Parse "vector scalar:3": the vector engine from v2 on, the scalar engine from v3 on."""
    pairs = (word.partition(":") for word in text.split())
    return MappingProxyType({Engine(name): int(first or 2) for name, _, first in pairs})


def _unary(name: str, engines: str, doc: str) -> Operator:
    return Operator(name, 1, "arithmetic", _engines(engines), doc)


def _binary(name: str, engines: str, doc: str) -> Operator:
    return Operator(name, 2, "arithmetic", _engines(engines), doc, integers=True)


def _folding(name: str, engines: str, doc: str, identity: float) -> Operator:
    return Operator(name, 2, "arithmetic", _engines(engines), doc, True, identity, True)


def _accumulating(name: str, engines: str, doc: str, identity: float) -> Operator:
    # Reduces accumulators or partitions, in instructions that name it explicitly.
    return Operator(name, 2, "arithmetic", _engines(engines), doc, False, identity)


def _bitvec(name: str, arity: int, doc: str, identity: float | None = None) -> Operator:
    return Operator(name, arity, "bitvec", _engines("vector"), doc, identity is not None, identity)


def _shift(name: str, doc: str) -> Operator:
    return Operator(name, 2, "bitvec", _engines("vector"), doc, shifts=True)


_ALU = (
    _folding("add", "vector gpsimd scalar:3", "x + y", 0.0),
    _folding("subtract", "vector scalar:4", "x - y; reduced: the first less all others", 0.0),
    _folding("multiply", "vector gpsimd scalar:3", "x y", 1.0),
    _folding("maximum", "vector", "the greater of x and y", -inf),
    _folding("minimum", "vector", "the lesser of x and y", inf),
    _folding("logical_and", "vector", "1 if neither x nor y is 0, else 0", 1.0),
    _folding("logical_or", "vector", "1 if x or y is not 0, else 0", 0.0),
    _folding("logical_xor", "vector", "1 if exactly one of x and y is 0, else 0", 0.0),
    _accumulating("abs_max", "vector:4 scalar:4", "x if |x| > |y|, else y", 0.0),
    _accumulating("abs_min", "vector:4 scalar:4", "x if |x| < |y|, else y", inf),
    # No engine computes it element by element; tensor_partition_reduce takes it by name.
    _accumulating("average", "", "the mean, over partitions", 0.0),
    _binary("equal", "vector", "1 if x = y, else 0"),
    _binary("not_equal", "vector", "1 if x differs from y, else 0"),
    _binary("greater_equal", "vector", "1 if x is at least y, else 0"),
    _binary("greater", "vector", "1 if x is greater than y, else 0"),
    _binary("less_equal", "vector", "1 if x is at most y, else 0"),
    _binary("less", "vector", "1 if x is less than y, else 0"),
    Operator("power", 2, "arithmetic", _engines("gpsimd"), "x to the power of y"),
    _unary("logical_not", "vector", "1 if x = 0, else 0"),
    _unary("abs", "vector scalar", "the magnitude of x"),
    _unary("square", "vector:4 scalar:4", "x x"),
    _unary("relu", "vector:4 scalar:4", "x if positive, else 0"),
    _unary("rsqrt", "gpsimd scalar", "1 / sqrt x"),
    _unary("reciprocal", "vector scalar", "1 / x"),
    _unary("bypass", "vector gpsimd scalar", "x: skips a stage of the instruction"),
    _bitvec("bitwise_and", 2, "bits set in x and y", -1.0),
    _bitvec("bitwise_or", 2, "bits set in x or y", 0.0),
    _bitvec("bitwise_xor", 2, "bits set in exactly one of x and y", 0.0),
    _bitvec("invert", 1, "bits not set in x"),
    _shift("left_shift", "x moved left by y bits, zeros move in"),
    _shift("right_shift", "x moved right by y bits, zeros move in (logical)"),
)
_ACTIVATIONS = (
    Activation("copy", "x"),
    Activation("square", "x x"),
    Activation("abs", "the magnitude of x"),
    Activation("sign", "-1, 0 or 1"),
    Activation("relu", "x if positive, else 0"),
    Activation("prelu", "x if positive, else relu_param x", parameter="relu_param"),
    Activation("exp", "e to the power of x", table="exp"),
    Activation("log", "natural logarithm", 2.0**-64, 2.0**64, table="exp"),
    Activation("sqrt", "square root", 2.0**-116, 2.0**118, table="root"),
    Activation("rsqrt", "1 / sqrt x", 2.0**-87, 2.0**97, table="root"),
    Activation("reciprocal", "1 / x", 2.0**-42, 2.0**42, by_magnitude=True, table="root"),
    Activation("sin", "sine, without reduction of the argument", -pi, pi, table="angle"),
    Activation("arctan", "arc tangent", -pi / 2, pi / 2, table="angle"),
    Activation("tanh", "hyperbolic tangent", table="exp"),
    Activation("sigmoid", "1 / (1 + exp -x)", table="exp"),
    Activation("softplus", "log (1 + exp x)", table="exp"),
    Activation("mish", "x tanh softplus x", table="exp"),
    Activation("silu", "x sigmoid x", table="exp"),
    Activation("silu_dx", "derivative of silu", table="exp"),
    Activation("erf", "error function", table="erf"),
    Activation("erf_dx", "derivative of erf", table="erf"),
    Activation("gelu", "x Phi(x), Phi the normal distribution function", table="erf"),
    Activation("gelu_dx", "derivative of gelu", table="erf"),
    Activation("gelu_apprx_tanh", "x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2", table="erf"),
    Activation("gelu_apprx_sigmoid", "x sigmoid(1.702 x)", table="erf"),
    Activation("gelu_apprx_sigmoid_dx", "derivative of gelu_apprx_sigmoid", table="erf"),
)

# Names of `nki.language` that kernels pass as operators but no engine has, with replacements.
NO_ENGINE = {
    "divide": "no engine can divide: multiply by the result of nisa.reciprocal, or call nl.divide",
    "mod": "no engine can compute a remainder: call nl.mod, which is made of several instructions",
    "fmod": "no engine can compute a remainder: call nl.fmod, which is made of several "
    "instructions",
}
ALU: dict[str, Operator] = {row.name: row for row in _ALU}
ACTIVATIONS: dict[str, Activation] = {row.name: row for row in _ACTIVATIONS}
