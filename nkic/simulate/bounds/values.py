"""Operators and functions on values with bounds.

An operator is evaluated at the corners of the box of its operands. That bounds any function that is
monotone in each operand, and is of first order for others. The operator's own rounding is added,
half a unit in the last place of float32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nkic.artifact.records import Executable, InstructionRecord, PatternRecord
from nkic.machine.dtypes import FLOAT32, DType
from nkic.machine.operators import ALU
from nkic.simulate.beside import Operands, RecordStore, values_of
from nkic.simulate.memory import Memory
from nkic.simulate.numerics.elementwise import ARITHMETIC, FUNCTIONS
from nkic.simulate.plans import registering
from nkic.simulate.semantics.tensor import mx_numbers
from nkic.simulate.tile import Tile

Doubles = NDArray[np.float64]
UNIT = 2.0**-24  # half a unit in the last place of float32, relative
TINY = 2.0**-150  # half the least subnormal of float32
GREATEST = (2 - 2.0**-23) * 2.0**127

# Other operators do not round: they select, or return 0 or 1.
_ROUNDS = frozenset({"add", "subtract", "multiply", "power", "square", "rsqrt", "reciprocal"})
_SINGULAR_AT_ZERO = frozenset({"power", "rsqrt", "reciprocal", "log"})  # pole or domain end
_EQUALITY = frozenset({"equal", "not_equal"})
_TRUTH = frozenset({"logical_and", "logical_or", "logical_xor", "logical_not"})
_UNCOVERED = frozenset({"abs_max", "abs_min", "prelu"})  # work on float32 alone


class Bounded(NamedTuple):
    """Values, and a bound on the error of each. Any shapes that broadcast."""

    value: Doubles
    error: Doubles

    @property
    def exact(self) -> bool:
        return not self.error.any()


def exact(value: Doubles) -> Bounded:
    return Bounded(value, np.zeros(value.shape))


def rounded(result: Bounded) -> Bounded:
    size = np.abs(result.value)
    step = np.where(np.isinf(size), 0.0, UNIT * size + TINY)  # an infinity comes from an operand
    return Bounded(result.value, fitting(size, result.error + step))


def fitting(size: Doubles, error: Doubles) -> Doubles:
    """Return the bounds, infinite for numbers that overflow float32."""
    over: Doubles = np.where(np.isfinite(size) & (size > GREATEST), np.inf, error)
    return over


def operator(op: str, a: Bounded, b: Bounded) -> Bounded | None:
    """Return `a op b`, or None if the operator is not covered."""
    if op in _UNCOVERED or ALU[op].group == "bitvec":
        return None
    function = ARITHMETIC[op]
    unary = ALU[op].arity == 1
    shape = np.broadcast_shapes(a.value.shape, b.value.shape)

    def evaluate(x: Doubles, y: Doubles) -> Doubles:
        out = np.empty(shape)
        function(np.broadcast_to(x, shape), y, out)
        return out

    value = evaluate(a.value, b.value)
    error = _at_corners(evaluate, a, exact(b.value) if unary else b, value)
    if op in _SINGULAR_AT_ZERO:
        error = np.where(np.abs(a.value) <= a.error, np.inf, error)
    if op in _EQUALITY:
        error = np.maximum(error, _undecided(a.value - b.value, a.error + b.error))
    if op in _TRUTH:
        error = np.maximum(error, _undecided(a.value, a.error))
        error = np.maximum(error, 0.0 if unary else _undecided(b.value, b.error))
    result = Bounded(value, error)
    return rounded(result) if op in _ROUNDS else result


def function(name: str, x: Bounded) -> Bounded | None:
    """Return the activation function of `x`, or None if it is not covered."""
    if name in _UNCOVERED:
        return None

    def evaluate(values: Doubles, _: Doubles) -> Doubles:
        out = np.empty(values.shape)
        FUNCTIONS[name](values, out, np.zeros(()))  # type: ignore[arg-type]
        return out

    unused = exact(np.zeros(()))
    value = evaluate(x.value, unused.value)
    error = _at_corners(evaluate, x, unused, value)
    if name in _SINGULAR_AT_ZERO:
        error = np.where(np.abs(x.value) <= x.error, np.inf, error)
    result = Bounded(value, error)
    return result if name in ("copy", "abs", "relu", "sign") else rounded(result)


def _at_corners(
    evaluate: Callable[[Doubles, Doubles], Doubles], a: Bounded, b: Bounded, value: Doubles
) -> Doubles:
    """Return the greatest distance from `value` over the corners."""
    error = np.zeros(value.shape)
    for x, y in product(_corners(a), _corners(b)):
        distance = np.abs(evaluate(x, y) - value)
        error = np.maximum(error, np.where(_same_infinity(x, y, value, distance), 0.0, distance))
    return np.where(np.isnan(error), np.inf, error)


def _same_infinity(x: Any, y: Any, value: Doubles, distance: Doubles) -> NDArray[np.bool_]:
    """Return where inf - inf occurs at finite operands, which is no error."""
    same: NDArray[np.bool_] = np.isinf(value) & np.isnan(distance) & np.isfinite(x) & np.isfinite(y)
    return same


def _corners(x: Bounded) -> tuple[Doubles, ...]:
    return (x.value,) if x.exact else (x.value - x.error, x.value + x.error)


def _undecided(distance: Doubles, error: Doubles) -> Doubles:
    """Return 1 where the errors may turn zero into nonzero or the reverse."""
    return np.asarray((np.abs(distance) <= error) & (error > 0), np.float64)


def total(terms: Bounded) -> Bounded:
    """Return the sums of the rows, in float32 and any order: n - 1 additions that each round.

    They are unbounded if some order overflows.
    """
    count, size = terms.value.shape[-1], np.abs(terms.value).sum(axis=-1)
    error = terms.error.sum(axis=-1) + max(count - 1, 0) * UNIT * size
    return Bounded(terms.value.sum(axis=-1), fitting(size, error))


def stored(values: Doubles, error: Doubles, dtype: DType) -> Doubles:
    """Return the bounds after storing as `dtype`, which adds half a unit in the last place.

    Conversion to integers is part of the program rather than rounding, and may reach the next
    integer.
    """
    if dtype.is_integer:
        whole: Doubles = error + (error > 0)
        return whole
    if dtype.name not in _UNITS:
        return error if dtype.name == "float32" else np.full(error.shape, np.inf)
    unit, tiny = _UNITS[dtype.name]
    finite = np.where(np.isfinite(values), np.abs(values), 0.0)
    bound: Doubles = error + np.maximum(unit * finite, tiny)
    return bound


# Half a unit in the last place, relative, and half the least subnormal.
_UNITS = {
    "bfloat16": (2.0**-8, 2.0**-134),
    "float16": (2.0**-11, 2.0**-25),
    "tfloat32": (2.0**-11, 2.0**-137),
    "float8_e4m3": (2.0**-4, 2.0**-10),
    "float8_e4m3fn": (2.0**-4, 2.0**-10),
    "float8_e5m2": (2.0**-3, 2.0**-17),
}


# ---- The bounds of all tensors of a program, element by element ---------------------------------


class Store(RecordStore):
    def __init__(self, executable: Executable) -> None:
        super().__init__(executable, np.float64)

    def read(self, pattern: PatternRecord) -> Doubles:
        """Return the bounds of an access, (partitions, elements)."""
        window = self.window(pattern)
        if window is None:
            is_exact = not self.whole(pattern.tensor).any()
            return np.full(self.shape(pattern), 0.0 if is_exact else np.inf)
        return window.reshape(self.shape(pattern))

    def write(self, pattern: PatternRecord, errors: Doubles) -> None:
        """Set the bounds; an access in another element size spoils the whole tensor."""
        window = self.window(pattern)
        if window is not None:
            np.copyto(window, errors.reshape(window.shape))
        elif errors.any():
            self.whole(pattern.tensor)[...] = np.inf


# ---- An instruction as a rule of `bounds` sees it: its operands as values with bounds -----------

Lanes = dict[str, Bounded]  # accumulators of an engine: 128 magnitudes and bounds


class Operation(Operands):
    """An instruction before it runs."""

    def __init__(
        self, record: InstructionRecord, memory: Memory, store: Store, lanes: Lanes
    ) -> None:
        super().__init__(record, memory)
        self._store, self.lanes = store, lanes

    def dtype(self, name: str) -> DType:
        operand = self.pattern(name)
        return operand.dtype if operand is not None else FLOAT32

    def get_error(self, name: str) -> Doubles:
        operand = self.pattern(name)
        return self._store.read(operand) if operand is not None else np.zeros((1, 1))

    def scaled(self, name: str) -> Doubles:
        """Return the numbers of a packed tile and its scales, as the tensor engine uses them."""
        operands = (self.pattern(name), self.pattern(f"{name}_scale"))
        data, scale = (Tile(self._memory, tile).bound() for tile in operands if tile is not None)
        return mx_numbers(data, scale)()

    def get(self, name: str, default: float = 0.0) -> Bounded:
        """Return a tile as (partitions, elements), or a number as a 0-dimensional array."""
        operand = self.operands.get(name)
        if type(operand) is PatternRecord:
            return Bounded(values_of(self._memory, operand), self._store.read(operand).copy())
        number = float(operand) if isinstance(operand, int | float) else default
        return exact(np.array(float(np.float32(number))))


Errors = Mapping[str, Doubles]
BoundRule = Callable[[Operation], Errors | None]
RULES: dict[str, BoundRule] = {}


# A rule for the bounds of rows' results returns None if it cannot bound them.
bounded = partial(registering, RULES)
