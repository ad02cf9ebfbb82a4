"""`math`, with the size of every integer checked before it is computed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nkic.interpret.objects import INSTANCES, UNSET, Builtin
from nkic.interpret.operators import OPERATIONS
from nkic.interpret.tables import builtin, number_of
from nkic.interpret.types.numbers import returned_float

if TYPE_CHECKING:
    from nkic.interpret.machine import Machine

_OF_FLOATS = (
    *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "copysign", "cos"),
    *("cosh", "degrees", "erf", "erfc", "exp", "exp2", "expm1", "fabs", "fmod", "frexp"),
    *("gamma", "isfinite", "isinf", "isnan", "lgamma", "log", "log10", "log1p", "log2", "modf"),
    *("pow", "radians", "remainder", "sin", "sinh", "sqrt", "tan", "tanh", "ulp"),
)
_NUMBERS = frozenset({int, float, bool})
MODULE: dict[str, Any] = {name: getattr(math, name) for name in ("e", "inf", "nan", "pi", "tau")}


def real(m: Machine, value: Any) -> Any:
    """Return a number as Python's functions accept it: a float, or an integer of any size."""
    if value.__class__ in _NUMBERS:
        return value
    if value.__class__ in INSTANCES:
        method = value.cls.find("__float__")
        if method is not UNSET:
            return returned_float(m, m.call(method, (value,), None), value)
        if isinstance(value, int | float):
            return number_of(value)
        if value.cls.find("__index__") is not UNSET:
            return m.index(value)
    return _other(m, value)


def _other(m: Machine, value: Any) -> Any:
    """Convert a number of the language. Raises `TypeError` if the value is not a number."""
    if hasattr(value, "refuse"):
        value.refuse()
    special = m.class_of(value).find("__float__")
    if special is not UNSET:
        return float(m.call(special, (value,), None))
    if isinstance(value, float):  # a number of the language, such as a NumPy scalar
        return float(value)
    raise TypeError(f"must be real number, not {m.class_of(value).name}")


def _of_floats(name: str) -> None:
    math_function: Callable[..., Any] = getattr(math, name)

    def call(m: Machine, /, *numbers: Any) -> Any:
        return math_function(*[real(m, number) for number in numbers])

    MODULE[name] = Builtin(name, call)


for _name in _OF_FLOATS:
    _of_floats(_name)


# ---- integers of any size -----------------------------------------------------------------------


def _rounding(name: str) -> None:
    math_function: Callable[..., Any] = getattr(math, name)

    def call(m: Machine, x: Any, /) -> Any:
        special = x.cls.find(f"__{name}__") if x.__class__ in INSTANCES else UNSET
        if special is not UNSET:
            return m.call(special, (x,), None)
        if name == "trunc" and not isinstance(x, int | float):
            raise TypeError(f"type {m.class_of(x).name} doesn't define __trunc__ method")
        return math_function(real(m, x))

    MODULE[name] = Builtin(name, call)


for _name in ("ceil", "floor", "trunc"):
    _rounding(_name)


def _counting(name: str) -> None:
    """Register a combinatorial function, whose result is checked before it is computed."""
    math_function: Callable[..., int] = getattr(math, name)

    def call(m: Machine, /, *numbers: Any) -> int:
        integers = [number if number is None else _integer(m, number, name) for number in numbers]
        largest = max((number for number in integers if number is not None), default=0)
        smallest = min((number for number in integers if number is not None), default=0)
        if smallest >= 0 and len(integers) <= 2:
            m.allow_bits(_bits(name, integers, largest))
            m.charge(min(largest, m.limits.bits))
        return math_function(*integers)

    MODULE[name] = Builtin(name, call)


def _bits(name: str, integers: list[Any], largest: int) -> int:
    """Return an upper bound of the result's bits."""
    factors = largest
    if len(integers) == 2 and integers[1] is not None:
        factors = integers[1] if integers[1] <= integers[0] else 0
        if name == "comb":
            factors = min(factors, max(integers[0] - factors, 0))
    return factors * max(largest, 1).bit_length()


def _integer(m: Machine, number: Any, name: str) -> int:
    if isinstance(number, float) and name == "factorial":
        raise TypeError("'float' object cannot be interpreted as an integer")
    return m.index(number)


for _name in ("factorial", "comb", "perm"):
    _counting(_name)


@builtin("isqrt", MODULE)
def _isqrt(m: Machine, n: Any, /) -> int:
    number = m.index(n)
    m.charge((number.bit_length() >> 6) ** 2 >> 4)
    return math.isqrt(number)


@builtin("gcd", MODULE)
def _gcd(m: Machine, *integers: Any) -> int:
    numbers = [m.index(number) for number in integers]
    _charge_divisions(m, numbers)
    return math.gcd(*numbers)


@builtin("lcm", MODULE)
def _lcm(m: Machine, *integers: Any) -> int:
    numbers = [m.index(number) for number in integers]
    _charge_divisions(m, numbers)
    result = 1
    for number in numbers:
        step = abs(number) // math.gcd(result, number) if number else 0
        result = OPERATIONS["*"](m, result, step)
    return result


def _charge_divisions(m: Machine, numbers: list[int]) -> None:
    words = sum(number.bit_length() for number in numbers) >> 6
    m.charge(len(numbers) + (words * words >> 3))


@builtin("ldexp", MODULE)
def _ldexp(m: Machine, x: Any, i: Any, /) -> float:
    if not isinstance(i, int) and not (
        i.__class__ in INSTANCES and i.cls.find("__index__") is not UNSET
    ):
        raise TypeError("Expected an int as second argument to ldexp.")
    return math.ldexp(real(m, x), m.index(i))


@builtin("isclose", MODULE)
def _isclose(m: Machine, a: Any, b: Any, *, rel_tol: Any = 1e-09, abs_tol: Any = 0.0) -> bool:
    tolerances = {"rel_tol": real(m, rel_tol), "abs_tol": real(m, abs_tol)}
    return math.isclose(real(m, a), real(m, b), **tolerances)


@builtin("nextafter", MODULE)
def _nextafter(m: Machine, x: Any, y: Any, /, *, steps: Any = None) -> float:
    """Return `math.nextafter`; `steps` exists since Python 3.12."""
    first, last = float(real(m, x)), float(real(m, y))
    if steps is None:
        return math.nextafter(first, last)
    count = m.index(steps)
    if count < 0:
        raise ValueError("steps must be a non-negative integer")
    while count and first != last and first == first and last == last:
        m.charge(8)
        first, count = math.nextafter(first, last), count - 1
    return first if last == last else last


@builtin("fma", MODULE)
def _fma(m: Machine, x: Any, y: Any, z: Any, /) -> float:
    """Return `x * y + z`, rounded once; exists since Python 3.13."""
    numbers = [float(real(m, number)) for number in (x, y, z)]
    x_value, y_value, z_value = numbers
    if not all(map(math.isfinite, numbers)):
        result = x_value * y_value + z_value
        if math.isnan(result) and not any(map(math.isnan, (x_value, y_value, z_value))):
            raise ValueError("invalid operation in fma")
        return result
    from fractions import Fraction  # here: few kernels need it, and it is slow to import

    exact = Fraction(x_value) * Fraction(y_value) + Fraction(z_value)
    if not exact:
        return x_value * y_value + z_value
    try:
        return float(exact)
    except OverflowError:
        raise OverflowError("overflow in fma") from None


# ---- sums and products --------------------------------------------------------------------------


def _reals(m: Machine, values: Any) -> list[Any]:
    return [real(m, value) for value in m.to_list(values)]


@builtin("fsum", MODULE)
def _fsum(m: Machine, seq: Any, /) -> float:
    numbers = _reals(m, seq)
    m.charge(4 * len(numbers))
    return math.fsum(numbers)


@builtin("prod", MODULE)
def _prod(m: Machine, iterable: Any, /, *, start: Any = 1) -> Any:
    result = start
    for value in m.iterate(iterable):
        m.charge(8)
        result = OPERATIONS["*"](m, result, value)
    return result


@builtin("hypot", MODULE)
def _hypot(m: Machine, *coordinates: Any) -> float:
    return math.hypot(*[real(m, number) for number in coordinates])


builtin("dist", MODULE)(lambda m, p, q, /: math.dist(_reals(m, p), _reals(m, q)))


@builtin("sumprod", MODULE)
def _sumprod(m: Machine, p: Any, q: Any, /) -> Any:
    """Return the sum of products; since Python 3.12, where floats are summed exactly."""
    left, right = m.to_list(p), m.to_list(q)
    if len(left) != len(right):
        raise ValueError("Inputs are not the same length")
    pairs = list(zip(left, right, strict=True))
    if any(isinstance(part, float) for pair in pairs for part in pair) and all(
        part.__class__ in _NUMBERS for pair in pairs for part in pair
    ):
        return _exact(m, pairs)
    result: Any = 0
    for first, second in pairs:
        m.charge(2)
        result = OPERATIONS["+"](m, result, OPERATIONS["*"](m, first, second))
    return result


def _exact(m: Machine, pairs: list[tuple[Any, Any]]) -> float:
    m.charge(60 * len(pairs))
    if not all(math.isfinite(part) for pair in pairs for part in pair):
        return math.fsum(float(a) * float(b) for a, b in pairs)
    from fractions import Fraction  # here: see `fma`

    return float(sum(Fraction(a) * Fraction(b) for a, b in pairs))
