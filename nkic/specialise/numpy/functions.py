"""The functions and methods of NumPy that kernels may call, each with the size of its result.

What is listed computes a result of a size that is known before; each element is paid for then.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from nkic.base.identity import Identical
from nkic.evaluate.objects import Builtin, Class, Getter
from nkic.evaluate.tables import OBJECT
from nkic.language.sizes import volume
from nkic.specialise.numpy.values import (
    BINARY,
    GENERIC,
    Array,
    computed,
    element_type,
    host,
    pay,
    quietly,
    raw,
    wrapped,
)
from nkic.syntax.names import words

_ELEMENTWISE = """
    negative absolute abs sqrt cbrt square reciprocal exp exp2 expm1 log log2 log10 log1p sin cos
    tan arcsin arccos arctan sinh cosh tanh floor ceil rint trunc round sign isnan isinf isfinite
    add subtract multiply divide true_divide floor_divide mod remainder fmod power float_power
    minimum maximum fmin fmax arctan2 hypot equal not_equal less less_equal greater greater_equal
    logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor bitwise_not
    invert left_shift right_shift where clip isclose deg2rad rad2deg
"""
# Functions whose result and work are not larger than their arguments, up to a factor.
_NO_LARGER = """
    sum prod max min amax amin mean cumsum cumprod argmax argmin any all sort argsort ravel
    transpose swapaxes moveaxis squeeze expand_dims flip fliplr flipud roll concatenate stack vstack
    hstack split array asarray zeros_like ones_like full_like empty_like copy tril triu
    count_nonzero nonzero unique array_equal allclose shape ndim size trace atleast_1d atleast_2d
"""


def _of(*values: Any) -> int:
    """Return the number of elements of all arrays and nested lists."""
    np = host()
    return sum(_of(*v) if isinstance(v, list | tuple) else int(np.size(v)) for v in values)


def _shape(shape: Any, *_: Any) -> int:
    sizes = shape if isinstance(shape, list | tuple) else (shape,)
    if any(size < 0 for size in sizes):
        raise ValueError("negative dimensions are not allowed")
    return volume(map(operator.index, sizes))


def _square(N: Any, M: Any = None, *_: Any, k: Any = 0) -> int:  # noqa: N803  (NumPy's names)
    return _shape((N, N if M is None else M))


def _range(start: Any, stop: Any = None, step: Any = 1, *_: Any) -> int:
    first, last = (0, start) if stop is None else (start, stop)
    return max(int((last - first) / step) + 1, 0) if step else 0


def _spaced(start: Any, stop: Any, num: Any = 50, *_: Any, **__: Any) -> int:
    return _of(start, stop) * operator.index(num)


def _repeated(a: Any, repeats: Any, axis: Any = None) -> int:
    counts = repeats if isinstance(repeats, list | tuple) else [repeats]
    return _of(a) * max(sum(map(operator.index, counts)), 0)


def _diagonal(v: Any, k: Any = 0) -> int:
    np = host()
    return _of(v) if np.ndim(v) > 1 else (_of(v) + abs(operator.index(k))) ** 2


def _all(*values: Any, **named: Any) -> int:
    return _COPIES * _of(*values, *named.values())


_COPIES = 4  # of their arguments that functions make on the way, and comparisons in sorting
_SIZES: dict[str, Callable[..., int]] = {
    **dict.fromkeys(words(_NO_LARGER), _all),
    **dict.fromkeys(("zeros", "ones", "empty"), _shape),
    **dict.fromkeys(("eye", "tri", "identity"), _square),
    "full": lambda shape, fill_value, *_: _shape(shape),
    "arange": _range,
    "linspace": _spaced,
    "tile": lambda A, reps: _of(A) * _shape(reps),  # noqa: N803
    "repeat": _repeated,
    "broadcast_to": lambda array, shape: _shape(shape),
    "reshape": lambda a, *_, **__: _of(a),
    "outer": lambda a, b: _of(a) * _of(b),
    "kron": lambda a, b: _of(a) * _of(b),
    "diag": _diagonal,
    "meshgrid": lambda *v, **__: len(v) * prod(map(_of, v)),
}
# Memory that is not initialised would make results differ from run to run.
_INSTEAD = {"empty": "zeros", "empty_like": "zeros_like"}
_TYPE_AT = {  # the position of `dtype`
    **dict.fromkeys(("array", "asarray", "zeros", "ones", "empty", "identity", "astype"), 1),
    **dict.fromkeys(("zeros_like", "ones_like", "empty_like"), 1),
    **{"full": 2, "full_like": 2, "eye": 3, "tri": 3, "arange": 3},
}
_NOT_SIZED = {"dtype", "order", "indexing", "kind", "mode", "side"}


class Function(Identical):
    """A function of NumPy's, by name, which `op=` of Beta 1's instructions takes, too."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<function {self.name}>"


FUNCTIONS = {name: Function(name) for name in (*words(_ELEMENTWISE), *_SIZES)}


def call(m: Any, function: Function, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """Call a function of NumPy's with a kernel's values."""
    np = host()
    name = function.name
    return _called(name, getattr(np, _INSTEAD.get(name, name)), args, named)


def _called(name: str, function: Any, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
    place = _TYPE_AT.get(name)
    values = [element_type(arg) if i == place else raw(arg) for i, arg in enumerate(args)]
    options = {key: _option(key, value) for key, value in named.items()}
    size = _SIZES.get(name)
    if size is None:
        return computed(function, *values, **options)
    try:
        sized = {key: value for key, value in options.items() if key not in _NOT_SIZED}
        pay(size(*values, **sized))
    except TypeError as error:
        raise TypeError(f"np.{name}: {error}".replace("<lambda>", name)) from None
    return wrapped(quietly(function, *values, **options))


def _option(key: str, value: Any) -> Any:
    if key == "dtype":
        return element_type(value)
    return str(value) if key in _NOT_SIZED and isinstance(value, str) else raw(value)


# ---- arrays -------------------------------------------------------------------------------------

ARRAY = Class("ndarray", (OBJECT,), {}, payload=Array, module="numpy")
_METHODS = """
    reshape astype copy flatten ravel transpose swapaxes squeeze sum prod min max mean any all
    cumsum argmax argmin round clip repeat
"""


def _method(name: str) -> Builtin:
    def method(m: Any, owner: Array, /, *args: Any, **named: Any) -> Any:
        return _called(name, getattr(host().ndarray, name), (owner, *args), named)

    return Builtin(name, method)


def _get(m: Any, owner: Array, key: Any) -> Any:
    index = raw(key)
    pay(_picked(owner._value, index))
    return wrapped(owner._value[index])


def _put(m: Any, owner: Array, key: Any, value: Any) -> None:
    index, new = raw(key), raw(value)
    pay(_picked(owner._value, index) or _of(owner._value[index]))
    quietly(operator.setitem, owner._value, index, new)


def _picked(array: Any, key: Any) -> int:
    """Return a bound of the elements that an index with lists or arrays picks; 0 for a view."""
    np = host()
    lists: list[Any] = []
    rest, axis = array.size, 0
    for part in key if isinstance(key, tuple) else (key,):
        if part is Ellipsis:
            axis = array.ndim  # what the dimensions after it leave is not counted
        elif isinstance(part, list | np.ndarray):
            chosen = np.asarray(part)
            is_mask = chosen.dtype == bool
            lists.append((chosen.size,) if is_mask else chosen.shape)
            width = chosen.ndim if is_mask else 1
            rest //= max(prod(array.shape[axis : axis + width]), 1)
            axis += width
        elif part is not None:
            axis += 1
    return prod(np.broadcast_shapes(*lists)) * rest if lists else 0


def _in_place(name: str) -> Builtin:
    function = getattr(operator, f"__i{name}__")

    def apply(m: Any, owner: Array, other: Any) -> Any:
        value = raw(other)
        pay(_of(owner._value))
        return wrapped(quietly(function, owner._value, value))

    return Builtin(f"__i{name}__", apply)


def _list(m: Any, owner: Array) -> Any:
    pay(_of(owner._value))
    return owner._value.tolist()


def _fill(m: Any, owner: Array, value: Any) -> None:
    _put(m, owner, ..., value)


ARRAY.members |= {
    **{name: GENERIC.members[name] for name in ("dtype", "ndim", "shape", "size", "itemsize")},
    **{name: GENERIC.members[name] for name in ("item", "__int__", "__float__", "__index__")},
    **{name: _method(name) for name in words(_METHODS)},
    **{f"__i{name}__": _in_place(name) for name in (*BINARY, "and", "or", "xor")},
    "T": Getter("T", lambda m, owner: Array(owner._value.T)),
    "nbytes": Getter("nbytes", lambda m, owner: owner._value.nbytes),
    "tolist": Builtin("tolist", _list),
    "fill": Builtin("fill", _fill),
    "__abs__": GENERIC.members["__abs__"],
    "__getitem__": Builtin("__getitem__", _get),
    "__setitem__": Builtin("__setitem__", _put),
    "__iter__": Builtin("__iter__", lambda m, owner: iter(owner)),
    "__len__": Builtin("__len__", lambda m, owner: len(owner)),
    "__contains__": Builtin("__contains__", lambda m, owner, item: item in owner),
}
