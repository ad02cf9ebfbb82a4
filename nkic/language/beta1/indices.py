"""Index expressions of Beta 1: the results of `nl.arange` and `nl.mgrid`, and their arithmetic.

An expression is an affine map: a constant, and a step along each dimension of its shape. Sources:
nki.language.arange, nki.language.mgrid, and "Tensor Indexing" of the programming model, SDK 2.20 to
2.26.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import count
from typing import Any, NamedTuple

from nkic.base.device import KernelError
from nkic.language.hosted import brief, plain, surface
from nkic.language.trace import current

_numbers = count()
NO_AXES: frozenset[int] = frozenset()


class Dim(NamedTuple):
    """A dimension of an expression: its number of steps, and their size.

    `axes` are the numbers of the `arange` calls that run along it. They distinguish dimensions of
    two operands at the same position, to which a mask may refer separately.
    """

    size: int
    step: int
    axes: frozenset[int] = NO_AXES


ONE = Dim(1, 0)
Dims = tuple[Dim, ...]


@surface("shape ndim reshape expand_dims __getitem__ __iter__ __index__ __int__")
class Index:
    """An affine expression over the dimensions of its shape."""

    __slots__ = ("dims", "start")
    __hash__ = None  # type: ignore[assignment]  # == makes a mask: nkic.language.beta1.masks

    def __init__(self, start: int, dims: Dims) -> None:
        self.start = start
        self.dims = dims

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(dim.size for dim in self.dims)

    @property
    def ndim(self) -> int:
        return len(self.dims)

    @property
    def bounds(self) -> tuple[int, int]:
        """The lowest and highest value."""
        low = high = self.start
        for size, step, _ in self.dims:
            if step < 0:
                low += step * (size - 1)
            else:
                high += step * (size - 1)
        return low, high

    @property
    def is_fixed(self) -> bool:
        """Whether the expression is a single number."""
        low, high = self.bounds
        return low == high

    def __repr__(self) -> str:
        return f"Index(start={self.start}, shape={self.shape}, steps={[d.step for d in self.dims]})"

    # Shape

    def __getitem__(self, key: Any) -> Index:
        parts = key if isinstance(key, tuple) else (key,)
        left = iter(self.dims)
        start = self.start
        dims: list[Dim] = []
        for part in _without_ellipsis(parts, len(self.dims)):
            if part is None:
                dims.append(ONE)
                continue
            dim = next(left)
            first, remaining = _part(dim, plain(part))
            start += first * dim.step
            dims += [] if remaining is None else [remaining]
        return Index(start, (*dims, *left))

    def reshape(self, *shape: Any) -> Index:
        """Return the same values with dimensions of size 1 added or dropped."""
        wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
        real = iter([dim for dim in self.dims if dim.size != 1])
        dims = tuple(ONE if size == 1 else next(real, ONE) for size in wanted)
        if tuple(dim.size for dim in dims) != tuple(wanted) or next(real, None) is not None:
            text = f"an index of shape {self.shape} cannot be reshaped to {tuple(wanted)}"
            raise KernelError(
                "bad-index", text, help="only dimensions of size 1 can be added or removed"
            )
        return Index(self.start, dims)

    def expand_dims(self, axis: int) -> Index:
        """Insert a dimension of size 1."""
        at = axis if axis >= 0 else axis + len(self.dims) + 1
        return Index(self.start, (*self.dims[:at], ONE, *self.dims[at:]))

    # Arithmetic

    def __add__(self, other: Any) -> Any:
        return _combined(self, other, 1, 1)

    def __radd__(self, other: Any) -> Any:
        return _combined(self, other, 1, 1)

    def __sub__(self, other: Any) -> Any:
        return _combined(self, other, 1, -1)

    def __rsub__(self, other: Any) -> Any:
        return _combined(self, other, -1, 1)

    def __neg__(self) -> Index:
        return self._times(-1)

    def __mul__(self, other: Any) -> Any:
        factor = as_index(other)
        if factor is None:
            return NotImplemented
        if constant(factor) is not None:
            return merged(self, factor)[0]._times(factor.start)
        if constant(self) is not None:
            return merged(self, factor)[1]._times(self.start)
        raise _not_affine(self, "*", factor)

    __rmul__ = __mul__

    def _times(self, factor: int) -> Index:
        dims = [Dim(size, step * factor, axes) for size, step, axes in self.dims]
        return Index(self.start * factor, tuple(dims))

    def __floordiv__(self, other: Any) -> Any:
        divisor = _divisor(other)
        if divisor is None:
            return NotImplemented
        if constant(self) is not None or not any(dim.step % divisor for dim in self.dims):
            dims = tuple(dim._replace(step=dim.step // divisor) for dim in self.dims)
            return Index(self.start // divisor, dims)
        low, high = self.bounds
        if low // divisor == high // divisor:
            return Index(low // divisor, tuple(dim._replace(step=0) for dim in self.dims))
        raise _not_affine(self, "//", divisor)

    def __mod__(self, other: Any) -> Any:
        divisor = _divisor(other)
        if divisor is None:
            return NotImplemented
        if not any(dim.step % divisor for dim in self.dims):
            dims = tuple(dim._replace(step=0) for dim in self.dims)
            return Index(self.start % divisor, dims)
        low, high = self.bounds
        if low // divisor == high // divisor:
            return Index(self.start - low // divisor * divisor, self.dims)
        raise _not_affine(self, "%", divisor)

    def __bool__(self) -> bool:
        number = constant(self)
        if number is not None:
            return number != 0
        raise KernelError(
            "bad-index",
            "an index expression stands for many numbers, so it is neither true nor false",
            help="pass the condition as mask=",
        )

    def __index__(self) -> int:
        number = constant(self)
        if number is not None:
            return number
        raise KernelError("bad-index", f"an index of shape {self.shape} is not a single number")

    __int__ = __index__

    def __iter__(self) -> Iterator[Any]:
        raise KernelError(
            "bad-index",
            "an index expression cannot be looped over",
            help="loop over nl.affine_range, nl.sequential_range or nl.static_range",
        )


def constant(index: Index) -> int | None:
    """Return the value of an expression with only one, or None."""
    return None if any(dim.step and dim.size > 1 for dim in index.dims) else index.start


def as_index(value: Any) -> Index | None:
    """Convert an int to an expression; None for other values."""
    if isinstance(value, Index):
        return value
    value = plain(value)
    if isinstance(value, int):
        return Index(int(value), ())
    return None


def merged(first: Index, second: Index) -> tuple[Index, Index]:
    """Return both expressions in their broadcast shape."""
    left, right = _merged_dims(first.dims, second.dims)
    return Index(first.start, left), Index(second.start, right)


@lru_cache(maxsize=1024)
def _merged_dims(left: Dims, right: Dims) -> tuple[Dims, Dims]:
    rank = max(len(left), len(right))
    pairs = [
        *zip((ONE,) * (rank - len(left)) + left, (ONE,) * (rank - len(right)) + right, strict=True)
    ]
    if any(a.size != b.size and 1 not in (a.size, b.size) for a, b in pairs):
        shapes = [tuple([dim.size for dim in dims]) for dims in (left, right)]
        text = f"indices of shapes {shapes[0]} and {shapes[1]} cannot be broadcast together"
        help = "give each nl.arange a dimension of its own: i[:, None], j[None, :]"
        raise KernelError("bad-index", text, help=help)
    return tuple([_wider(a, b) for a, b in pairs]), tuple([_wider(b, a) for a, b in pairs])


def _wider(dim: Dim, other: Dim) -> Dim:
    if dim.size == 1 and other.size != 1:
        return Dim(other.size, 0, other.axes)
    return dim._replace(axes=dim.axes | other.axes) if other.axes else dim


def _combined(first: Index, value: Any, factor: int, other_factor: int) -> Any:
    trace = current()  # None in a function that makes a kernel
    if trace is not None:
        trace.viewing()
    second = as_index(value)
    if second is None:
        return NotImplemented
    if not second.dims and factor == 1:  # an int
        return Index(first.start + other_factor * second.start, first.dims)
    a, b = merged(first, second)
    dims = [
        Dim(x.size, factor * x.step + other_factor * y.step, x.axes)
        for x, y in zip(a.dims, b.dims, strict=True)
    ]
    return Index(factor * a.start + other_factor * b.start, tuple(dims))


def _divisor(value: Any) -> int | None:
    index = as_index(value)
    divisor = None if index is None else constant(index)
    if divisor is not None and divisor < 1:
        raise KernelError(
            "bad-index", f"an index can be divided by a positive int only, not by {divisor}"
        )
    return divisor


def _not_affine(index: Index, symbol: str, other: Any) -> KernelError:
    return KernelError(
        "bad-index",
        f"{index!r} {symbol} {other!r} is not an affine expression: its steps are not equal",
        help="give the parts before and after the uneven step dimensions of their own",
    )


def _without_ellipsis(parts: tuple[Any, ...], rank: int) -> tuple[Any, ...]:
    if not any(part is Ellipsis for part in parts):
        if sum(part is not None for part in parts) > rank:
            raise KernelError("bad-index", f"too many indices for an index of {rank} dimensions")
        return parts
    at = next(n for n, part in enumerate(parts) if part is Ellipsis)
    missing = rank - sum(part is not None and part is not Ellipsis for part in parts)
    return (*parts[:at], *(slice(None),) * missing, *parts[at + 1 :])


def _part(dim: Dim, part: Any) -> tuple[int, Dim | None]:
    """Return the offset that an index selects in a dimension, and the remaining dimension."""
    if isinstance(part, slice):
        if part.start is part.stop is part.step is None and dim.size > 1:
            return 0, dim  # also of a size that is known by its text alone, in a migration
        start, stop, step = part.indices(dim.size)
        if step < 1 or start >= stop:
            raise KernelError("bad-index", f"{start}:{stop}:{step} of an index has no elements")
        size = (stop - start + step - 1) // step
        return start, Dim(size, dim.step * step, dim.axes if size > 1 else NO_AXES)
    if isinstance(part, int) and -dim.size <= part < dim.size:
        return part % dim.size, None
    text = f"an index of {dim.size} values cannot be indexed with {brief(part)}"
    raise KernelError("bad-index", text)


# ---- creation ------------------------------------------------------------------------------------


def arange(*bounds: Any) -> Index:
    """`nl.arange(stop)`, `nl.arange(start, stop)` or with a step: one dimension of numbers."""
    numbers = [_bound(value) for value in bounds]
    if not 1 <= len(numbers) <= 3:
        raise KernelError("wrong-call", "nl.arange takes 1 to 3 numbers: start, stop, step")
    start, stop, step = ([0, *numbers, 1], [*numbers, 1], numbers)[len(numbers) - 1]
    return _run(start, stop, step)


def _bound(value: Any) -> int:
    index = as_index(value)
    number = None if index is None else constant(index)
    if number is None:
        text = f"the bounds of nl.arange must be ints, not {brief(value)}"
        raise KernelError(
            "bad-index", text, help="add the variable part to the index: nl.arange(n) + k"
        )
    return number


def _run(start: int, stop: int, step: int) -> Index:
    size = (stop - start + step - 1) // step if step > 0 else 0
    if size < 1:
        text = f"an index from {start} to {stop} by {step} has no values"
        raise KernelError("bad-index", text, help="skip the instruction if there are none")
    return Index(start, (Dim(size, step if size > 1 else 0, frozenset([next(_numbers)])),))


@surface("p x y z w __getitem__ __iter__ __len__")
class Grid(tuple[Index, ...]):
    """The result of `nl.mgrid[...]`: an expression per dimension, also named p, x, y, z, w."""

    __slots__ = ()

    def _at(self, name: str) -> Index:
        at = "pxyzw".index(name)
        if at < len(self):
            return self[at]
        raise KernelError("bad-index", f"a grid of {len(self)} dimensions has no `{name}`")

    p = property(lambda self: self._at("p"))
    x = property(lambda self: self._at("x"))
    y = property(lambda self: self._at("y"))
    z = property(lambda self: self._at("z"))
    w = property(lambda self: self._at("w"))


@surface("__getitem__")
class MakesGrids:
    """`nl.mgrid`."""

    __iter__ = None

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        indices = [_of_slice(part) for part in parts]
        constant_dims = tuple(index.dims[0]._replace(step=0) for index in indices)
        expressions = [
            Index(index.start, constant_dims[:n] + index.dims + constant_dims[n + 1 :])
            for n, index in enumerate(indices)
        ]
        return Grid(expressions) if isinstance(key, tuple) else Grid(expressions[:1])


def _of_slice(part: Any) -> Index:
    if not isinstance(part, slice) or part.stop is None:
        text = f"nl.mgrid takes slices with an end, not {brief(part)}"
        raise KernelError("bad-index", text, help="write nl.mgrid[0:128, 0:512]")
    start = 0 if part.start is None else _bound(part.start)
    return _run(start, _bound(part.stop), 1 if part.step is None else _bound(part.step))
