"""A NumPy function over the field: its arrays are elements, which NumPy's own dispatch hands here.

NumPy asks an argument of another class to carry out its functions (NEP 13 and 18). So a reference
is run as it is, on elements in place of numbers. What only moves elements NumPy does itself, to
their places; the rest has rows in the tables below.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import log as natural_log
from math import prod
from pathlib import Path
from traceback import extract_tb, format_exception_only
from types import FrameType
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from nkic.base.text import clean
from nkic.simulate.field.elements import (
    Elements,
    constant,
    invert,
    join,
    matmul,
    multiply,
    variables,
)
from nkic.simulate.field.functions import FUNCTIONS, OPERATORS, reduction, selected

Shape = tuple[int, ...]
HERE = tuple(f"{Path(file).parent}{os.sep}" for file in (__file__, np.__file__))


class Untraceable(Exception):
    """The function does something that elements do not have; the text says what, and where."""


class Stored(Untraceable):
    """It stores elements into an array of numbers, or converts them to one; `names` are the names
    of the file that does.
    """

    def __init__(self, text: str, names: dict[str, Any]) -> None:
        super().__init__(text)
        self.names = names


def is_library(file: str) -> bool:
    """Return whether a file is this room's, NumPy's, or torch's."""
    torch = getattr(sys.modules.get("torch"), "__file__", None)
    return file.startswith(HERE if torch is None else (*HERE, torch.removesuffix("__init__.py")))


def outside() -> FrameType:
    frame = sys._getframe(1)
    while frame.f_back is not None and is_library(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


class Places:
    """Lines of the function, numbered as they are met."""

    def __init__(self, library: str = "numpy") -> None:
        self.library = library
        self.known: dict[tuple[str, str, int], int] = {}
        self.casts: set[tuple[str, int]] = set()  # types, and where elements are converted to them

    def of(self, name: str) -> int:
        """Return the number of the line that calls this function of the library."""
        return self.here(f"{self.library}.{name}")

    def cast(self, dtype: str) -> None:
        if dtype not in ("float32", "float64"):
            self.casts.add((dtype, self.here(f"conversion to {dtype}")))

    def here(self, what: str) -> int:
        frame = outside()
        return self.known.setdefault(
            (what, frame.f_code.co_filename, frame.f_lineno), len(self.known)
        )

    def name(self, place: int) -> str:
        return [*self.known][place][0]

    def line(self, place: int) -> str:
        _, file, line = [*self.known][place]
        return f"{Path(file).name}:{line}"


class Traced(NDArrayOperatorsMixin):
    """An array of elements: a view of some of those that it shares with other arrays.

    `at` has the place in `shared` of each element. NumPy moves these places as it would move
    numbers, and so decides what is a view and what a copy.
    """

    __array_priority__ = 1000
    dtype = np.dtype(np.float32)

    def __init__(self, shared: list[Elements], at: NDArray[np.intp], places: Places) -> None:
        self.shared, self.at, self.places = shared, at, places

    @classmethod
    def new(cls, elements: Elements, shape: Shape, places: Places) -> Traced:
        own = elements.moved(lambda x: x.reshape(-1))
        return cls([own], np.arange(prod(shape)).reshape(shape), places)

    @classmethod
    def variable(cls, state: np.random.Generator, shape: Shape, places: Places) -> Traced:
        return cls.new(variables(state, (prod(shape),)), shape, places)

    @property
    def elements(self) -> Elements:
        """The elements, in at least one dimension."""
        return self.shared[0].at(np.atleast_1d(self.at))

    @property
    def shape(self) -> Shape:
        return self.at.shape

    @property
    def ndim(self) -> int:
        return self.at.ndim

    @property
    def size(self) -> int:
        return self.at.size

    @property
    def T(self) -> Traced:  # noqa: N802  (the name is NumPy's)
        return self.transpose()

    def astype(self, dtype: Any, **options: Any) -> Traced:
        if np.dtype(dtype).kind != "f":
            self.refuse(f"conversion to {np.dtype(dtype)}")
        self.places.cast(np.dtype(dtype).name)
        return self if options.get("copy") is False else self._moved(np.copy)

    def transpose(self, *axes: Any) -> Traced:
        listed = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
        return self._moved(lambda x: x.transpose(listed))

    def reshape(self, *shape: Any, **options: Any) -> Traced:
        return self._moved(lambda x: x.reshape(*shape, **options))

    def flatten(self) -> Traced:
        return self._moved(lambda x: x.flatten())

    def __getitem__(self, key: Any) -> Traced:
        return self._moved(lambda x: x[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        at = self.at[key]
        new = _spread(self.of(value), np.shape(at))
        own = self.shared[0]
        source = np.arange(own.value.size)
        source[np.ravel(at)] = own.value.size + np.arange(np.size(at))
        self.shared[0] = join([own, flat(new)], 0).at(source)

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Traced]:
        return (self[index] for index in range(len(self)))

    def __getattr__(self, name: str) -> Any:
        """Return a method that NumPy has a function for: `x.sum(axis=1)`."""
        function = getattr(np, name, None)
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(f"an array of the field has no attribute {name!r}")
        if not callable(function):
            self.refuse(f"numpy.ndarray.{name}")
        return lambda *args, **options: function(self, *args, **options)

    def __array__(self, *args: Any, **options: Any) -> NoReturn:
        what = "conversion to an array of numbers"
        place = self.places.line(self.places.here(what))
        raise Stored(f"{what} at {place}", outside().f_globals)

    def __bool__(self) -> bool:
        self.refuse("a decision by an element")

    def __float__(self) -> float:
        self.refuse("conversion to a number")

    def refuse(self, what: str) -> NoReturn:
        raise Untraceable(f"{what} at {self.places.line(self.places.here(what))}")

    def of(self, value: Any) -> Traced:
        """Return a value as elements; numbers count as the float32 nearest to them."""
        if isinstance(value, Traced):
            return value
        numbers = np.asarray(value)
        if numbers.dtype.kind not in "bifu":
            self.refuse(f"an operand of type {numbers.dtype}")
        rounded = np.atleast_1d(numbers).astype(np.float32).astype(np.float64)
        return Traced.new(constant(rounded), numbers.shape, self.places)

    # ---- what NumPy asks for

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        (into,) = options.pop("out", None) or (None,)
        if into is not None:  # x += y
            found = self.__array_ufunc__(ufunc, method, *inputs, **options)
            into[...] = found
            return into
        name, given = ufunc.__name__, {k: v for k, v in options.items() if v is not None}
        if method == "reduce":
            return self._row(_REDUCED, name, inputs, {"axis": 0, **options})
        if method != "__call__" or given.keys() - {"casting", "dtype"}:
            self.refuse(f"numpy.{name} with these arguments")
        return self._row(UFUNCS, name, [*map(self.of, inputs)], {})

    def __array_function__(
        self, function: Any, types: Any, args: Sequence[Any], options: Mapping[str, Any]
    ) -> Any:
        name = function.__name__
        if name not in MOVES:
            return self._row(CALLS, name, args, options)
        if any(isinstance(value, Traced) for value in options.values()):
            self.refuse("an index that depends on elements")
        return self._carried(lambda *given: function(*given, **options), *args)

    def _row(
        self,
        rows: Mapping[str, Callable[..., Any]],
        name: str,
        args: Sequence[Any],
        options: Mapping[str, Any],
    ) -> Any:
        """Carry out the function of a table, or refuse what it does not take."""
        if name not in rows:
            self.refuse(f"numpy.{name}")
        try:
            inspect.signature(rows[name]).bind(self, *args, **options)
        except TypeError:
            self.refuse(f"numpy.{name} with these arguments")
        return rows[name](self, *args, **options)

    def _moved(self, move: Callable[[Any], Any]) -> Traced:
        moved: Traced = self._carried(move, self)
        return moved

    def _carried(self, move: Callable[..., Any], first: Any, *rest: Any) -> Any:
        """Carry out a function that moves the elements of an array, or joins those of several."""
        if any(isinstance(value, Traced) for value in rest):
            self.refuse("an index that depends on elements")
        if isinstance(first, list | tuple):
            parts = [self.of(x) for x in first]
            starts = np.cumsum([0, *(part.shared[0].value.size for part in parts)])
            shared = [join([part.shared[0] for part in parts], 0)]
            moved = move([p.at + start for p, start in zip(parts, starts, strict=False)], *rest)
            return self._copied(shared, moved)
        array = self.of(first)
        moved = move(array.at, *rest)

        def result(at: Any) -> Traced:
            if np.shares_memory(at, array.at):
                return Traced(array.shared, at, self.places)
            return self._copied(array.shared, np.asarray(at))

        return [*map(result, moved)] if isinstance(moved, list | tuple) else result(moved)

    def _copied(self, shared: list[Elements], at: NDArray[np.intp]) -> Traced:
        return Traced.new(shared[0].at(at.reshape(-1)), at.shape, self.places)

    # ---- arithmetic

    def operate(self, op: str, one: Traced, other: Traced) -> Traced:
        """Apply an operator to elements of shapes that broadcast."""
        place = self.places.of(op)
        shape = np.broadcast_shapes(one.shape, other.shape)
        a, b = (_spread(x, shape).elements for x in (one, other))
        if op == "divide":
            return Traced.new(multiply(a, invert(b, place), place), shape, self.places)
        return Traced.new(OPERATORS[op](a, b, place), shape, self.places)

    def function(self, name: str) -> Traced:
        place = self.places.of(name)
        rows = self.elements.moved(lambda x: x.reshape(1, -1))  # functions have two dimensions
        return Traced.new(FUNCTIONS[name](rows, place), self.shape, self.places)

    def reduced(self, op: str, axis: Any = None, keepdims: bool = False) -> Traced:
        axes = range(self.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        dropped = sorted(a % self.ndim for a in axes)
        kept = [a for a in range(self.ndim) if a not in dropped]
        shape = tuple(self.shape[a] for a in kept)
        rows = self._moved(lambda x: x.transpose(*kept, *dropped).reshape(prod(shape), -1))
        found = reduction(op, rows.elements, self.places.of(op))
        assert found is not None
        if keepdims:
            shape = tuple(1 if a in dropped else n for a, n in enumerate(self.shape))
        return Traced.new(found, shape, self.places)

    def contracted(self, subscripts: str, one: Traced, other: Traced) -> Traced:
        """Return a sum of products in einsum's words, such as "bij,bjk->bik"."""
        given, out = subscripts.replace(" ", "").split("->")
        a, b = given.split(",")
        sizes = dict(zip(a, one.shape, strict=True)) | dict(zip(b, other.shape, strict=True))
        if len({*a}) < len(a) or len({*b}) < len(b) or "." in given:
            self.refuse(f"einsum of {subscripts}")
        for label in [x for x in a if x not in b + out]:
            one, a = one.reduced("add", a.index(label)), a.replace(label, "")
        for label in [x for x in b if x not in a + out]:
            other, b = other.reduced("add", b.index(label)), b.replace(label, "")
        batch = [x for x in a if x in b and x in out]
        inner = [x for x in a if x in b and x not in out]
        rows, columns = ([x for x in side if x not in batch + inner] for side in (a, b))

        def arranged(operand: Traced, labels: str, last: list[str]) -> Traced:
            order = [labels.index(x) for x in (*batch, *inner, *last)]
            shape = [prod(sizes[x] for x in part) for part in (batch, inner, last)]
            return operand._moved(lambda x: x.transpose(order).reshape(shape))

        left, right = arranged(one, a, rows), arranged(other, b, columns)
        place = self.places.of("matmul")
        products = [matmul(x.elements, y.elements, place) for x, y in zip(left, right, strict=True)]
        labels = [*batch, *rows, *columns]
        whole = Traced.new(join(products, 0), tuple(sizes[x] for x in labels), self.places)
        return whole._moved(lambda x: x.transpose([labels.index(x_) for x_ in out]))


class NumPy:
    """NumPy for a function that stores elements into arrays which it makes itself.

    NumPy makes arrays of numbers, and asks nobody. So here the functions that make them, and those
    that only convert, give elements.
    """

    def __init__(self, trace: Traced) -> None:
        self._trace = trace

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        if name in ("array", "asarray", "ascontiguousarray"):
            return lambda x, *args, **options: self._converted(found, x, args, options)
        if name == "ndarray":
            return _Arrays(self)
        if name in ("zeros", "ones", "full", "empty", "eye"):
            function = np.zeros if name == "empty" else found
            return lambda *args, **options: self._made(function(*args, **options))
        return found

    def _made(self, array: NDArray[Any]) -> Any:
        return self._trace.of(array) if array.dtype.kind == "f" else array

    def _converted(
        self, convert: Callable[..., Any], x: Any, args: Sequence[Any], options: Mapping[str, Any]
    ) -> Any:
        if isinstance(x, list | tuple) and any(isinstance(each, Traced) for each in x):
            x = np.stack([self._trace.of(each) for each in x])
        dtype = args[0] if args else options.get("dtype", np.float32)
        return x.astype(dtype) if isinstance(x, Traced) else convert(x, *args, **options)


class _Arrays:
    """`numpy.ndarray` for such a function: it makes arrays, and tells what is one."""

    def __init__(self, own: NumPy) -> None:
        self._own = own

    def __call__(self, shape: Any, dtype: Any = float) -> Any:
        return self._own.zeros(shape, dtype)

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, np.ndarray | Traced)


Found = TypeVar("Found")


def followed(call: Callable[[], Found], trace: Traced) -> Found:
    """Call a function that works on numbers; the files that store elements into arrays of numbers
    get `NumPy` for it. Raises `Untraceable`, whatever the function or a library makes of elements.
    """
    given = list[tuple[dict[str, Any], str]]()
    try:
        while True:
            try:
                return call()
            except Stored as error:
                own = [name for name, value in error.names.items() if value is np]
                if not own:
                    raise
                given += [(error.names, name) for name in own]
                error.names.update(dict.fromkeys(own, NumPy(trace)))
    except (Untraceable, MemoryError):
        raise
    except Exception as error:
        frames = extract_tb(error.__traceback__)
        places = [at for at in frames if not is_library(at.filename)]
        place = f" at {Path(places[-1].filename).name}:{places[-1].lineno}" if places else ""
        said = clean("".join(format_exception_only(error)).strip())
        raise Untraceable(f"a call with elements in place of numbers ({said}){place}") from None
    finally:
        for names, name in given:
            names[name] = np


def flat(array: Traced) -> Elements:
    return array.elements.moved(lambda x: x.reshape(-1))


# ---- NumPy's names ------------------------------------------------------------------------------


def _spread(array: Traced, shape: Shape) -> Traced:
    return array._moved(lambda x: np.broadcast_to(x, shape))


def _matmul(trace: Traced, a: Any, b: Any) -> Traced:
    a, b = trace.of(a), trace.of(b)
    left, right = a.ndim == 1, b.ndim == 1
    a, b = a[None] if left else a, b[..., None] if right else b
    shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a = _spread(a, (*shape, *a.shape[-2:])).reshape(-1, *a.shape[-2:])
    b = _spread(b, (*shape, *b.shape[-2:])).reshape(-1, *b.shape[-2:])
    found: Traced = trace.contracted("bij,bjk->bik", a, b)
    found = found.reshape(*shape, a.shape[-2], b.shape[-1])
    found = found[..., 0, :] if left else found
    return found[..., 0] if right else found


def _dot(trace: Traced, a: Any, b: Any) -> Traced:
    a, b = trace.of(a), trace.of(b)
    if not a.ndim or not b.ndim:
        return trace.operate("multiply", a, b)
    if max(a.ndim, b.ndim) > 2:
        trace.refuse("numpy.dot of more than two dimensions")
    return _matmul(trace, a, b)


def _einsum(trace: Traced, subscripts: str, *operands: Any, **options: Any) -> Traced:
    found, *more = map(trace.of, operands)
    words, _, out = subscripts.replace(" ", "").partition("->")
    given = words.split(",")
    if not out and "->" not in subscripts:
        out = "".join(sorted(x for x in {*words} - {","} if words.count(x) == 1))
    labels = given[0]
    if not more:
        more, given = [trace.of(1.0)], [labels, ""]
    for number, (operand, own) in enumerate(zip(more, given[1:], strict=True), 1):
        later = "".join(given[number + 1 :]) + out
        result = "".join(x for x in dict.fromkeys(labels + own) if x in later)
        result = out if number == len(more) else result
        found = trace.contracted(f"{labels},{own}->{result}", found, operand)
        labels = result
    return found


def _plain(trace: Traced, dtype: Any, out: Any) -> None:
    """Refuse results of another type, or into an array."""
    if out is not None or (dtype is not None and np.dtype(dtype).kind != "f"):
        trace.refuse("a result into an array, or of a type of integers,")


def _var(
    trace: Traced,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: int = 0,
    keepdims: bool = False,
) -> Traced:
    _plain(trace, dtype, out)
    a = trace.of(a)
    off = a - a.reduced("average", axis, True)
    total: Traced = (off * off).reduced("add", axis, keepdims)
    return trace.operate("divide", total, trace.of(a.size // max(total.size, 1) - ddof))


def _where(trace: Traced, condition: Any, a: Any, b: Any) -> Traced:
    place = trace.places.of("where")
    condition, a, b = trace.of(condition), trace.of(a), trace.of(b)
    shape = np.broadcast_shapes(condition.shape, a.shape, b.shape)
    mask, a, b = (_spread(x, shape).elements for x in (condition, a, b))
    return Traced.new(selected(mask, a, b, place), shape, trace.places)


def _norm(
    trace: Traced, x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False
) -> Traced:
    if ord not in (None, 2) or (ord == 2 and axis is None):
        trace.refuse(f"numpy.linalg.norm of order {ord}")
    squares = trace.of(x).function("square").reduced("add", axis, keepdims)
    return squares.function("sqrt")


def _cumsum(trace: Traced, a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Traced:
    _plain(trace, dtype, out)
    a = trace.of(a)
    a = a.reshape(-1) if axis is None else a
    first, *others = a._moved(lambda x: np.moveaxis(x, axis or 0, 0))
    sums = [first]
    for row in others:
        sums.append(trace.operate("add", sums[-1], row))
    stacked: Traced = trace._carried(lambda rows: np.stack(rows, axis or 0), sums)
    return stacked


def _clip(
    trace: Traced, a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, **ends: Any
) -> Traced:
    _plain(trace, None, out)
    low, high, found = ends.get("min", a_min), ends.get("max", a_max), trace.of(a)
    found = trace.operate("maximum", found, trace.of(low)) if low is not None else found
    return trace.operate("minimum", found, trace.of(high)) if high is not None else found


def _like(number: float) -> Callable[..., Traced]:
    def made(trace: Traced, a: Any, dtype: Any = None, *, shape: Any = None) -> Traced:
        _plain(trace, dtype, None)
        return trace.of(np.full(trace.of(a).shape if shape is None else shape, number))

    return made


def _triangle(lower: bool) -> Callable[..., Traced]:
    def masked(trace: Traced, m: Any, k: int = 0) -> Traced:
        m = trace.of(m)
        ones = np.ones(m.shape[-2:], np.bool_)
        return _where(trace, np.tril(ones, k) if lower else np.triu(ones, k), m, 0.0)

    return masked


def _reducing(op: str) -> Callable[..., Traced]:
    def reduced(
        trace: Traced,
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
    ) -> Traced:
        _plain(trace, dtype, out)
        return trace.of(a).reduced(op, axis, keepdims)

    return reduced


_BINARY = (
    *("add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "equal", "not_equal"),
    *("greater", "greater_equal", "less", "less_equal", "logical_and", "logical_or"),
)
_UNARY = {
    **{name: name for name in ("square", "exp", "log", "sqrt", "tanh", "sin", "sign", "arctan")},
    **{name: name for name in ("reciprocal", "erf")},
    **{"absolute": "abs", "expit": "sigmoid", "positive": "copy"},
}


def _binary(op: str) -> Callable[[Traced, Traced, Traced], Traced]:
    return lambda trace, a, b: trace.operate(op, a, b)


def _unary(function: str) -> Callable[[Traced, Traced], Traced]:
    return lambda trace, a: a.function(function)


Row = Callable[..., Any]
_REDUCED: Mapping[str, Row] = {
    op: _reducing(op) for op in ("add", "multiply", "maximum", "minimum")
}
UFUNCS: Mapping[str, Row] = {
    **{op: _binary(op) for op in _BINARY},
    **{name: _unary(own) for name, own in _UNARY.items()},
    "float_power": _binary("power"),
    "fmax": _binary("maximum"),
    "fmin": _binary("minimum"),
    "negative": lambda t, a: t.operate("multiply", a, t.of(-1.0)),
    "logical_not": lambda t, a: t.operate("logical_not", a, a),
    "log1p": lambda t, a: (a + 1.0).function("log"),
    "expm1": lambda t, a: a.function("exp") - 1.0,
    "exp2": lambda t, a: (a * natural_log(2)).function("exp"),
    "matmul": _matmul,
}
CALLS: Mapping[str, Row] = {
    **{"sum": _REDUCED["add"], "prod": _REDUCED["multiply"]},
    **dict.fromkeys(("max", "amax"), _REDUCED["maximum"]),
    **dict.fromkeys(("min", "amin"), _REDUCED["minimum"]),
    **{"mean": _reducing("average"), "var": _var, "where": _where, "einsum": _einsum, "dot": _dot},
    **{"norm": _norm, "cumsum": _cumsum, "clip": _clip},
    **{"tril": _triangle(True), "triu": _triangle(False)},
    **{"zeros_like": _like(0.0), "ones_like": _like(1.0), "empty_like": _like(0.0)},
    "std": lambda t, a, axis=None, ddof=0, keepdims=False: _var(
        t, a, axis, ddof=ddof, keepdims=keepdims
    ).function("sqrt"),
    "full_like": lambda t, a, fill_value: t.of(np.full(a.shape, fill_value)),
    "outer": lambda t, a, b: t.of(a).reshape(-1, 1) * t.of(b).reshape(1, -1),
    "shape": lambda t, a: a.shape,
    "ndim": lambda t, a: a.ndim,
    "size": lambda t, a: a.size,
}
MOVES = frozenset(
    {
        *("transpose", "swapaxes", "moveaxis", "rollaxis", "reshape", "ravel", "squeeze"),
        *("expand_dims", "broadcast_to", "atleast_1d", "atleast_2d", "copy", "flip", "fliplr"),
        *("flipud", "roll", "rot90", "repeat", "tile", "take", "take_along_axis", "diagonal"),
        *("concatenate", "stack", "vstack", "hstack", "column_stack", "split", "array_split"),
        *("hsplit", "vsplit", "dsplit", "sliding_window_view"),
    }
)
