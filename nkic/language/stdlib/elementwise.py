"""Element-wise arithmetic on tiles.

Results are new tiles in SBUF. Without `dtype` the result has the dtype of the tile, or for two
tiles one that holds the values of both. Numbers, and free dimensions of size 1, are broadcast.
"""

import nki.isa as nisa
import nki.language as nl
from nkic.stdlib import (
    _broadcast_view,
    _called_by_kernel,
    _converted,
    _in_sbuf,
    _known_issue,
    _promoted,
    _require,
    _version_between,
    full,
)


def _binary(op, x, y, dtype):
    """`x op y`, of which at least one is a tile."""
    if not isinstance(x, nl.NkiTensor):
        return _with_number(op, y, x, dtype, True)
    if not isinstance(y, nl.NkiTensor):
        return _with_number(op, x, y, dtype, False)
    if _common_shape(x, y) != tuple(x.shape) or _common_shape(x, y) != tuple(y.shape):
        advice = "give both the same shape, with nl.broadcast_to or nisa.tensor_scalar"
        text = "{} and {} are not equal; nki.language broadcasts them from NKI 0.5 on"
        is_refused = _version_between("0.3", "0.5") and _called_by_kernel(2)
        _require(not is_refused, text, x.shape, y.shape, help=advice)
        _known_issue("broadcasting in binary functions of nki.language", 2, advice)
    return _of_tiles(op, x, y, dtype)


def _of_tiles(op, x, y, dtype):
    """`x op y` of two tiles, broadcast."""
    shape = _common_shape(x, y)
    result = nl.ndarray(shape, dtype=dtype or _promoted(x.dtype, y.dtype), buffer=nl.sbuf)
    second = _in_sbuf(y) if nl.is_psum(x.buffer) else y  # at most one operand may be in PSUM
    nisa.tensor_tensor(
        dst=result, data1=_broadcast_view(x, shape), data2=_broadcast_view(second, shape), op=op
    )
    return result


def _with_number(op, x, number, dtype, reverse):
    """`x op number`, or `number op x` if `reverse`."""
    _require(isinstance(x, nl.NkiTensor), "{} takes at least one tensor", op)
    result = nl.ndarray(x.shape, dtype=dtype or x.dtype, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=result, data=x, op0=op, operand0=number, reverse0=reverse)
    return result


def _common_shape(x, y):
    """Return the broadcast shape of `x` and `y`."""
    left, right = x.shape, y.shape
    advice = "reshape one of them"
    _require(len(left) == len(right), "{} and {} have different ranks", left, right, help=advice)
    advice = "slice both to the same partitions, or repeat one with nl.broadcast_to"
    _require(left[0] == right[0], "{} and {} differ in partitions", left, right, help=advice)
    advice = "sizes must be equal, or 1"
    shape = []
    for a, b in zip(left, right):
        _require(a == b or a == 1 or b == 1, "{} and {} do not match", left, right, help=advice)
        shape.append(max(a, b))
    return tuple(shape)


def _unary(op, x, dtype):
    """Apply an operator with one input."""
    result = nl.ndarray(x.shape, dtype=dtype or x.dtype, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=result, data=x, op0=op, operand0=None)
    return result


def _activated(op, x, dtype):
    """Apply a function of the scalar engine."""
    result = nl.ndarray(x.shape, dtype=dtype or x.dtype, buffer=nl.sbuf)
    nisa.activation(dst=result, op=op, data=x)
    return result


def add(x, y, dtype=None):
    """x + y."""
    return _binary(nl.add, x, y, dtype)


def subtract(x, y, dtype=None):
    """x - y."""
    return _binary(nl.subtract, x, y, dtype)


def multiply(x, y, dtype=None):
    """x * y."""
    return _binary(nl.multiply, x, y, dtype)


def maximum(x, y, dtype=None):
    """The larger of x and y."""
    return _binary(nl.maximum, x, y, dtype)


def minimum(x, y, dtype=None):
    """The smaller of x and y."""
    return _binary(nl.minimum, x, y, dtype)


def abs_max(x, y, dtype=None):
    """x where |x| > |y|, else y."""
    return _binary(nl.abs_max, x, y, dtype)


def abs_min(x, y, dtype=None):
    """x where |x| < |y|, else y."""
    return _binary(nl.abs_min, x, y, dtype)


def power(x, y, dtype=None):
    """x to the power of y, on gpsimd, which takes two tiles and no numbers."""
    kind = dtype or (x.dtype if isinstance(x, nl.NkiTensor) else y.dtype)
    if isinstance(x, nl.NkiTensor) and isinstance(y, nl.NkiTensor):
        return _binary(nl.power, _in_sbuf(x), _in_sbuf(y), kind)
    _known_issue("nl.power of a tile and a number", 1, "pass two tiles: nl.full makes one")
    return _of_tiles(nl.power, _as_tile(x, y), _as_tile(y, x), kind)


def _as_tile(x, other):
    """Return a tile unchanged, or a number as a column with the partitions of `other`."""
    return _in_sbuf(x) if isinstance(x, nl.NkiTensor) else full((other.shape[0], 1), x, nl.float32)


def equal(x, y, dtype=None):
    """1 where x equals y, else 0."""
    return _binary(nl.equal, x, y, dtype)


def not_equal(x, y, dtype=None):
    """1 where x differs from y, else 0."""
    return _binary(nl.not_equal, x, y, dtype)


def less(x, y, dtype=None):
    """1 where x < y, else 0."""
    return _binary(nl.less, x, y, dtype)


def less_equal(x, y, dtype=None):
    """1 where x <= y, else 0."""
    return _binary(nl.less_equal, x, y, dtype)


def greater(x, y, dtype=None):
    """1 where x > y, else 0."""
    return _binary(nl.greater, x, y, dtype)


def greater_equal(x, y, dtype=None):
    """1 where x >= y, else 0."""
    return _binary(nl.greater_equal, x, y, dtype)


def bitwise_and(x, y, dtype=None):
    """Bits set in both x and y."""
    return _binary(nl.bitwise_and, x, y, dtype)


def bitwise_or(x, y, dtype=None):
    """Bits set in x or y."""
    return _binary(nl.bitwise_or, x, y, dtype)


def bitwise_xor(x, y, dtype=None):
    """Bits set in exactly one of x and y."""
    return _binary(nl.bitwise_xor, x, y, dtype)


def left_shift(x, y, dtype=None):
    """x shifted left by y bits."""
    return _binary(nl.left_shift, x, y, dtype)


def right_shift(x, y, dtype=None):
    """x shifted right by y bits, filled with zeros."""
    return _binary(nl.right_shift, x, y, dtype)


def logical_and(x, y, dtype=None):
    """1 where neither x nor y is 0, else 0."""
    return _binary(nl.logical_and, x, y, dtype)


def logical_or(x, y, dtype=None):
    """1 where x or y is not 0, else 0."""
    return _binary(nl.logical_or, x, y, dtype)


def logical_xor(x, y, dtype=None):
    """1 where exactly one of x and y is 0, else 0."""
    return _binary(nl.logical_xor, x, y, dtype)


def divide(x, y, dtype=None):
    """x / y, as x times the reciprocal of y."""
    _known_issue("nl.divide", 1, "write nl.multiply(x, nl.reciprocal(y))")
    if not isinstance(y, nl.NkiTensor):
        return _with_number(nl.multiply, x, 1.0 / y, dtype, False)
    kind = dtype or (_promoted(x.dtype, y.dtype) if isinstance(x, nl.NkiTensor) else y.dtype)
    return _binary(nl.multiply, x, reciprocal(y, nl.float32), kind)


def exp(x, dtype=None):
    """The scalar engine's exp."""
    return _activated(nl.exp, x, dtype)


def log(x, dtype=None):
    """The scalar engine's log."""
    return _activated(nl.log, x, dtype)


def sqrt(x, dtype=None):
    """The scalar engine's sqrt."""
    return _activated(nl.sqrt, x, dtype)


def tanh(x, dtype=None):
    """The scalar engine's tanh."""
    return _activated(nl.tanh, x, dtype)


def sigmoid(x, dtype=None):
    """The scalar engine's sigmoid."""
    return _activated(nl.sigmoid, x, dtype)


def relu(x, dtype=None):
    """The scalar engine's relu."""
    return _activated(nl.relu, x, dtype)


def gelu(x, dtype=None):
    """The scalar engine's gelu."""
    return _activated(nl.gelu, x, dtype)


def gelu_apprx_sigmoid(x, dtype=None):
    """The scalar engine's gelu_apprx_sigmoid."""
    return _activated(nl.gelu_apprx_sigmoid, x, dtype)


def gelu_apprx_tanh(x, dtype=None):
    """The scalar engine's gelu_apprx_tanh."""
    return _activated(nl.gelu_apprx_tanh, x, dtype)


def gelu_dx(x, dtype=None):
    """The scalar engine's gelu_dx."""
    return _activated(nl.gelu_dx, x, dtype)


def gelu_apprx_sigmoid_dx(x, dtype=None):
    """The scalar engine's gelu_apprx_sigmoid_dx."""
    return _activated(nl.gelu_apprx_sigmoid_dx, x, dtype)


def silu(x, dtype=None):
    """The scalar engine's silu."""
    return _activated(nl.silu, x, dtype)


def silu_dx(x, dtype=None):
    """The scalar engine's silu_dx."""
    return _activated(nl.silu_dx, x, dtype)


def softplus(x, dtype=None):
    """The scalar engine's softplus."""
    return _activated(nl.softplus, x, dtype)


def mish(x, dtype=None):
    """The scalar engine's mish."""
    return _activated(nl.mish, x, dtype)


def erf(x, dtype=None):
    """The scalar engine's erf."""
    return _activated(nl.erf, x, dtype)


def erf_dx(x, dtype=None):
    """The scalar engine's erf_dx."""
    return _activated(nl.erf_dx, x, dtype)


def square(x, dtype=None):
    """The scalar engine's square."""
    return _activated(nl.square, x, dtype)


def arctan(x, dtype=None):
    """The scalar engine's arctan."""
    return _activated(nl.arctan, x, dtype)


def sign(x, dtype=None):
    """The scalar engine's sign."""
    return _activated(nl.sign, x, dtype)


def rsqrt(x, dtype=None):
    """1 / sqrt(x); from NKI 0.5 on gpsimd, which is more accurate but cannot read PSUM."""
    if _version_between("0.3", "0.5"):
        return _activated(nl.rsqrt, x, dtype)
    return _unary(nl.rsqrt, x, dtype)


def reciprocal(x, dtype=None):
    """1 / x."""
    result = nl.ndarray(x.shape, dtype=dtype or x.dtype, buffer=nl.sbuf)
    nisa.reciprocal(dst=result, data=x)
    return result


def abs(x, dtype=None):
    """The absolute value of x."""
    return _unary(nl.abs, x, dtype)


def negative(x, dtype=None):
    """-x."""
    return _with_number(nl.multiply, x, -1, dtype, False)


def logical_not(x, dtype=None):
    """1 where x is 0, else 0."""
    return _unary(nl.logical_not, x, dtype)


def invert(x, dtype=None):
    """x with every bit inverted."""
    return _unary(nl.invert, x, dtype)


def sin(x, dtype=None):
    """The sine of x, with an error below 1e-6 for |x| up to 1e7.

    The scalar engine computes it for x minus full turns, reflected to within a quarter turn.
    """
    return _activated(nl.sin, _mirrored(_within_a_turn(_in_sbuf(x))), dtype or x.dtype)


def cos(x, dtype=None):
    """The cosine of x, with an error below 1e-6 for |x| up to 1e7."""
    return _cosine(_within_a_turn(_in_sbuf(x)), dtype or x.dtype)


def tan(x, dtype=None):
    """The tangent of x, as sine / cosine, each with an error below 1e-6 for |x| up to 1e7."""
    angle = _within_a_turn(_in_sbuf(x))
    sine = _activated(nl.sin, _mirrored(angle), nl.float32)
    return divide(sine, _cosine(angle, nl.float32), dtype or x.dtype)


def _within_a_turn(x):
    """Return x minus full turns in float32: within ±pi, slightly beyond for large x.

    710 is 113 turns plus 6.03e-5. Products by 710 and by the first 18 bits of 2 pi are exact, and
    so are their differences from x; the remaining error terms are subtracted last.
    """
    multiples = _rounded_product(x, 1 / 710)
    angle = _minus_multiple(x, multiples, 710.0)
    turns = _rounded_product(angle, 0.15915494309189535)
    angle = _minus_multiple(angle, turns, 6.283172607421875)
    angle = _minus_multiple(angle, turns, 1.2699747458100319e-05)
    return _minus_multiple(angle, multiples, -6.0288706727e-05)


def _rounded_product(x, factor):
    """Return x times a factor, rounded to an integer."""
    whole = nl.ndarray(x.shape, dtype=nl.int32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=whole, data=x, op0=nl.multiply, operand0=factor)
    return whole


def _minus_multiple(x, multiple, unit):
    """Return x - multiple * unit in float32."""
    result = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.scalar_tensor_tensor(
        dst=result, data=multiple, op0=nl.multiply, operand0=-unit, op1=nl.add, operand1=x
    )
    return result


def _mirrored(angle):
    """Return the angle within a quarter turn that has the same sine.

    It is 2 min(max(a, -pi / 2), pi / 2) - a.
    """
    near = nl.ndarray(angle.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(
        dst=near,
        data=angle,
        op0=nl.minimum,
        operand0=1.5707963267948966,
        op1=nl.maximum,
        operand1=-1.5707963267948966,
    )
    nisa.scalar_tensor_tensor(
        dst=near, data=near, op0=nl.multiply, operand0=2.0, op1=nl.subtract, operand1=angle
    )
    return near


def _cosine(angle, dtype):
    """Return the cosine of an angle within ±pi as the sine of pi / 2 - |angle|, pi / 2 in parts."""
    rest = nl.ndarray(angle.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(
        dst=rest,
        data=angle,
        op0=nl.abs,
        operand0=None,
        op1=nl.subtract,
        operand1=1.5707963705062866,
    )
    nisa.tensor_scalar(
        dst=rest, data=rest, op0=nl.add, operand0=4.371139e-08, op1=nl.multiply, operand1=-1.0
    )
    return _activated(nl.sin, rest, dtype)


def _rounded(x):
    """Return x rounded to integers, to nearest even, in float32.

    Conversion to int32 rounds; from 2**23 on every float32 is an integer already. Those, infinities
    and NaN are not below 2**23, and stay as they are.
    """
    whole = _converted(_converted(x, nl.int32), nl.float32)
    small = nl.ndarray(x.shape, dtype=nl.uint8, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=small, data=abs(x, nl.float32), op0=nl.less, operand0=8388608.0)
    nisa.tensor_copy_predicated(
        dst=whole, src=_converted(x, nl.float32), predicate=small, reverse_pred=True
    )
    return whole


def floor(x, dtype=None):
    """The largest integer not above x."""
    rounded = _rounded(x)
    return subtract(rounded, greater(rounded, x, nl.float32), dtype or x.dtype)


def ceil(x, dtype=None):
    """The smallest integer not below x."""
    rounded = _rounded(x)
    return add(rounded, less(rounded, x, nl.float32), dtype or x.dtype)


def trunc(x, dtype=None):
    """x without its fraction: rounded towards zero."""
    return multiply(floor(abs(x, nl.float32)), sign(x, nl.float32), dtype or x.dtype)


def mod(x, y, dtype=None):
    """x - y floor(x / y), with the sign of y."""
    _known_issue("nl.mod", 1, "compute it from nl.reciprocal, and subtract")
    remainder = _remainder(x, y, floor(divide(x, y, nl.float32)))
    kind = dtype or (x.dtype if isinstance(x, nl.NkiTensor) else y.dtype)
    return _corrected(remainder, y, less(multiply(remainder, y), 0), kind)


def fmod(x, y, dtype=None):
    """x - y trunc(x / y), with the sign of x."""
    _known_issue("nl.fmod", 1, "compute it from nl.reciprocal, and subtract")
    kind = dtype or (x.dtype if isinstance(x, nl.NkiTensor) else y.dtype)
    return multiply(mod(_magnitude_of(x), _magnitude_of(y), nl.float32), _sign_of(x), kind)


def _remainder(x, y, quotient):
    return subtract(x, multiply(quotient, y, nl.float32), nl.float32)


def _corrected(remainder, y, is_below, dtype):
    """Return a remainder corrected for a quotient that was rounded to the next integer.

    `is_below` is 1 where its sign is wrong. A remainder as large as `y` is too large by `y`.
    """
    raised = add(remainder, multiply(is_below, y, nl.float32), nl.float32)
    above = greater_equal(multiply(raised, _sign_of(y)), _magnitude_of(y), nl.float32)
    return subtract(raised, multiply(above, y, nl.float32), dtype)


def _sign_of(y):
    return sign(y, nl.float32) if isinstance(y, nl.NkiTensor) else (-1 if y < 0 else 1)


def _magnitude_of(y):
    return abs(y, nl.float32) if isinstance(y, nl.NkiTensor) else (-y if y < 0 else y)
