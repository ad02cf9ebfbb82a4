"""Masks of Beta 1: conditions on index expressions, and the parts of a tile that they leave.

A mask whose conditions bound single dimensions is a box, and an instruction works on that part
only. Other masks are decomposed into boxes, row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

from nkic.base.device import KernelError
from nkic.base.diagnostics import Level
from nkic.language.beta1.indices import ONE, Dim, Index, as_index, constant
from nkic.language.hosted import brief, surface
from nkic.language.trace import complain
from nkic.language.views import replaced

Axes = Sequence[frozenset[int]]
Shape = tuple[int, ...]


class Mask:
    """A condition on the elements of a tile."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def __and__(self, other: Any) -> Any:
        return _joined(self, other, All)

    __rand__ = __and__

    def __or__(self, other: Any) -> Any:
        return _joined(self, other, Either)

    __ror__ = __or__

    def __invert__(self) -> Mask:
        raise NotImplementedError

    def __bool__(self) -> bool:
        """Return True with a warning: `a and b` is b alone, as in Beta 1."""
        complain(
            "tensor-value",
            "a mask stands for many elements and is always true here, whatever it hides",
            help="join masks with & and |",
            level=Level.WARNING,
        )
        return True

    def placed(self, axes: Axes, shape: Shape, product: bool = False) -> Mask:
        """Return the mask over a tile's dimensions, or a product's: terms, rows, columns."""
        raise NotImplementedError

    def holds(self, box: Box) -> bool | None:
        """Return True if a placed mask leaves all of a box, False if none, None if a part."""
        raise NotImplementedError


class Box(NamedTuple):
    """A part of a tile: first element and number of elements along each dimension."""

    starts: Shape
    sizes: Shape

    def along(self, axis: int, start: int, size: int) -> Box:
        """Return the box with another first element and number of elements along one dimension."""
        return Box(replaced(self.starts, axis, start), replaced(self.sizes, axis, size))


@surface()
class Compared(Mask):
    """`index >= 0`, `== 0` or `!= 0`."""

    __slots__ = ("index", "symbol")

    def __init__(self, index: Index, symbol: str) -> None:
        self.index = index
        self.symbol = symbol

    def __repr__(self) -> str:
        return f"mask({self.index!r} {self.symbol} 0)"

    def __bool__(self) -> bool:
        number = constant(self.index)
        if number is None:
            return Mask.__bool__(self)
        return {">=": number >= 0, "==": number == 0, "!=": number != 0}[self.symbol]

    def __invert__(self) -> Mask:
        if self.symbol == ">=":
            return Compared(-self.index - 1, ">=")
        return Compared(self.index, "!=" if self.symbol == "==" else "==")

    def placed(self, axes: Axes, shape: Shape, product: bool = False) -> Mask:
        return Compared(_aligned(self.index, axes, shape, product), self.symbol)

    def holds(self, box: Box) -> bool | None:
        low, high = range_over(self.index, box)
        if self.symbol == ">=":
            return True if low >= 0 else False if high < 0 else None
        is_never_zero = low > 0 or high < 0
        is_zero = low == high == 0
        if not is_never_zero and not is_zero:
            return None
        return is_zero if self.symbol == "==" else is_never_zero


class Joined(Mask):
    """Several conditions."""

    __slots__ = ("parts",)
    parts: tuple[Mask, ...]

    def placed(self, axes: Axes, shape: Shape, product: bool = False) -> Mask:
        return type(self)(*(part.placed(axes, shape, product) for part in self.parts))


@surface()
class All(Joined):
    """`first & second`."""

    __slots__ = ()

    def __init__(self, *parts: Mask) -> None:
        flat: list[Mask] = []
        for part in parts:
            flat += part.parts if isinstance(part, All) else (part,)
        self.parts = tuple(flat)

    def __repr__(self) -> str:
        return " & ".join(map(repr, self.parts))

    def __bool__(self) -> bool:
        return all(map(bool, self.parts))

    def __invert__(self) -> Mask:
        return Either(*(~part for part in self.parts))

    def holds(self, box: Box) -> bool | None:
        results = {part.holds(box) for part in self.parts}
        return False if False in results else None if None in results else True


@surface()
class Either(Joined):
    """`first | second`."""

    __slots__ = ()

    def __init__(self, *parts: Mask) -> None:
        self.parts = parts

    def __repr__(self) -> str:
        return "(" + " | ".join(map(repr, self.parts)) + ")"

    def __bool__(self) -> bool:
        return any(map(bool, self.parts))

    def __invert__(self) -> Mask:
        return All(*(~part for part in self.parts))

    def holds(self, box: Box) -> bool | None:
        results = {part.holds(box) for part in self.parts}
        return True if True in results else None if None in results else False


def conjuncts(mask: Mask) -> tuple[Mask, ...]:
    """Return the conditions that must all hold."""
    return mask.parts if isinstance(mask, All) else (mask,)


def _joined(first: Mask, value: Any, make: type[All] | type[Either]) -> Any:
    if isinstance(value, bool):
        absorbs = value is (make is Either)
        return value if absorbs else first
    return make(first, value) if isinstance(value, Mask) else NotImplemented


_COMPARISONS: dict[str, Callable[[Index], Mask]] = {  # by Python's operator, for a difference to 0
    "ge": lambda d: Compared(d, ">="),
    "gt": lambda d: Compared(d - 1, ">="),
    "le": lambda d: Compared(-d, ">="),
    "lt": lambda d: Compared(-d - 1, ">="),
    "eq": lambda d: Compared(d, "=="),
    "ne": lambda d: Compared(d, "!="),
}


def _comparison(make: Callable[[Index], Mask]) -> Callable[[Index, Any], Any]:
    def compare(self: Index, other: Any) -> Any:
        index = as_index(other)
        return NotImplemented if index is None else make(self - index)

    return compare


for _name, _make in _COMPARISONS.items():
    setattr(Index, f"__{_name}__", _comparison(_make))


def as_mask(value: Any) -> Mask | bool | None:
    """Convert the value of `mask=`; None if it hides nothing."""
    if value is None or isinstance(value, Mask):
        return value
    if isinstance(value, int) and value in (0, 1):
        return None if value else False
    if type(value).__module__ == "numpy" and getattr(value, "ndim", 1) == 0:
        return as_mask(bool(value))
    text = f"mask is {brief(value)}, but must be a comparison of index expressions"
    raise KernelError(
        "argument-kind", text, help="write mask=(i_p < rows) & (i_f < columns)", argument="mask"
    )


def rearranged(mask: Mask, order: Sequence[int]) -> Mask:
    """Permute a placed mask's dimensions. It must not depend on those that `order` omits."""
    if isinstance(mask, Compared):
        dims = mask.index.dims
        return Compared(Index(mask.index.start, tuple(dims[n] for n in order)), mask.symbol)
    assert isinstance(mask, Joined)
    return type(mask)(*(rearranged(part, order) for part in mask.parts))


def depends_on(mask: Mask, axis: int) -> bool:
    if isinstance(mask, Compared):
        return mask.index.dims[axis].step != 0
    assert isinstance(mask, Joined)
    return any(depends_on(part, axis) for part in mask.parts)


# ---- placement of a mask on a tile ---------------------------------------------------------------


def _aligned(index: Index, axes: Axes, shape: Shape, product: bool) -> Index:
    """Return an expression with one dimension for each of a tile's.

    A dimension is matched to the tile's dimension with the same `arange`, else by its position from
    the last one; the first of several is matched to the partitions if the sizes agree.
    """
    rank = len(shape)
    aligned = [ONE] * rank
    shift = rank - len(index.dims)
    for position, dim in enumerate(index.dims):
        if dim.size == 1 or not dim.step:
            continue
        at = next((n for n in range(rank) if dim.axes & axes[n] and shape[n] > 1), -1)
        if at < 0:  # partitions stay first if the tile has more dimensions
            deeper = not position and shift > 0 and len(index.dims) > 1 and not product
            at = 0 if deeper and shape[0] == dim.size else shift + position
        if not 0 <= at < rank or shape[at] != dim.size:
            text = f"a mask over an index of shape {index.shape} does not fit a tile of {shape}"
            raise KernelError("bad-index", text, help="make the mask from the indices of the tile")
        aligned[at] = dim._replace(step=aligned[at].step + dim.step)
    return Index(index.start, tuple(aligned))


def range_over(index: Index, box: Box) -> tuple[int, int]:
    """Return the lowest and highest value within a box."""
    low = high = index.start
    for dim, start, size in zip(index.dims, box.starts, box.sizes, strict=True):
        if dim.step:
            ends = dim.step * start, dim.step * (start + size - 1)
            low, high = low + min(ends), high + max(ends)
    return low, high


# ---- boxes ---------------------------------------------------------------------------------------


def whole(shape: Shape) -> Box:
    return Box((0,) * len(shape), shape)


def bounding(mask: Mask, shape: Shape) -> tuple[Box | None, Mask | None]:
    """Return the bounding box of a placed mask, and the condition that remains within it.

    The box is None if the mask hides everything; the condition is None if all of the box remains.
    """
    box: Box = whole(shape)
    remaining: list[Mask] = []
    for part in conjuncts(mask):
        cut = _shrunk(part, box)
        if cut is None:
            return None, None
        box = cut
    for part in conjuncts(mask):
        holds = part.holds(box)
        if holds is False:
            return None, None
        remaining += [part] if holds is None else []
    if not remaining:
        return box, None
    return box, remaining[0] if len(remaining) == 1 else All(*remaining)


def _shrunk(mask: Mask, box: Box) -> Box | None:
    """Shrink the box by a bound of a single dimension; None if nothing remains."""
    if not isinstance(mask, Compared) or mask.symbol == "!=":
        return box
    moving = [n for n, dim in enumerate(mask.index.dims) if dim.step]
    if len(moving) != 1:
        return box
    at = moving[0]
    step, start = mask.index.dims[at].step, mask.index.start
    first, end = box.starts[at], box.starts[at] + box.sizes[at]
    if mask.symbol == "==":
        quotient, left = divmod(-start, step)
        first, end = (max(first, quotient), min(end, quotient + 1)) if not left else (0, 0)
    elif step > 0:
        first = max(first, -(start // step))
    else:
        end = min(end, start // -step + 1)
    return box.along(at, first, end - first) if first < end else None


MAX_BOXES = 4096


def boxes(mask: Mask, box: Box) -> list[Box]:
    """Decompose the part that a placed mask leaves into boxes, by repeated halving."""
    result: list[Box] = []
    for lead in _decomposed(mask, box):
        result = _extended(result, lead)
        if len(result) > MAX_BOXES:
            text = f"a mask that divides the tile into more than {MAX_BOXES} parts"
            raise KernelError("too-large", text, help="use masks that bound single dimensions")
    return result


def _decomposed(mask: Mask, box: Box) -> Iterator[Box]:
    """Yield the parts that a mask leaves, split along the first dimensions down to rows."""
    holds = mask.holds(box)
    if holds is False:
        return
    if holds is True:
        yield box
        return
    cut: Box | None = box
    for part in conjuncts(mask):
        cut = _shrunk(_fixed(part, box), cut) if cut is not None else None
    if cut is None:
        return
    if cut != box:
        yield from _decomposed(mask, cut)
        return
    at = next(n for n, size in enumerate(box.sizes) if size > 1)
    first, size = box.starts[at], box.sizes[at]
    half = size // 2
    yield from _decomposed(mask, box.along(at, first, half))
    yield from _decomposed(mask, box.along(at, first + half, size - half))


def _fixed(mask: Mask, box: Box) -> Mask:
    """Substitute the dimensions in which the box has one element."""
    if not isinstance(mask, Compared):
        return mask
    start = mask.index.start
    dims: list[Dim] = []
    for dim, first, size in zip(mask.index.dims, box.starts, box.sizes, strict=True):
        start += dim.step * first if size == 1 else 0
        dims.append(dim._replace(step=0) if size == 1 else dim)
    return Compared(Index(start, tuple(dims)), mask.symbol)


def _extended(merged: list[Box], new: Box) -> list[Box]:
    """Append a box, merged with the previous one if their union is a box."""
    if not merged:
        return [new]
    old = merged[-1]
    differing = [
        n
        for n in range(len(old.starts))
        if (old.starts[n], old.sizes[n]) != (new.starts[n], new.sizes[n])
    ]
    if len(differing) == 1:
        at = differing[0]
        start, size = old.starts[at], old.sizes[at]
        if start + size == new.starts[at]:
            return [*merged[:-1], old.along(at, start, size + new.sizes[at])]
    merged.append(new)
    return merged


def projected(mask: Mask, box: Box, axes: Sequence[int]) -> Mask | None:
    """Project a mask along some axes: a condition on the others for a non-empty remainder.

    Returns None if something of the box remains everywhere.
    """
    rank = len(box.sizes)
    others = [n for n in range(rank) if n not in axes]
    projections = {tuple((b.starts[n], b.sizes[n]) for n in others) for b in boxes(mask, box)}
    if len(others) == 1:
        projections = {
            ((start, end - start),)
            for start, end in _merged_runs(box_part[0] for box_part in projections)
        }
    if projections == {tuple((box.starts[n], box.sizes[n]) for n in others)}:
        return None
    parts = [
        All(*(run for n, at in zip(others, box_part, strict=True) for run in _within(n, *at, rank)))
        for box_part in sorted(projections)
    ]
    return parts[0] if len(parts) == 1 else Either(*parts)


def _merged_runs(runs: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield start and end of the union of runs of (start, size), in order."""
    first, end = -1, -1
    for start, size in sorted(runs):
        if start > end:
            if end > first:
                yield first, end
            first, end = start, start + size
        end = max(end, start + size)
    if end > first:
        yield first, end


def _within(axis: int, start: int, size: int, rank: int) -> tuple[Mask, Mask]:
    """Return conditions for an index within a run."""

    def bound(step: int, offset: int) -> Mask:
        dims = tuple(Dim(1, step if n == axis else 0) for n in range(rank))
        return Compared(Index(offset, dims), ">=")

    return bound(1, -start), bound(-1, start + size - 1)


def elements(mask: Mask, shape: Shape) -> Iterator[bool]:
    """Yield whether each element of a tile is left, in row-major order.

    For predicates, which are constants; the mask must be placed.
    """
    for position in product(*(range(size) for size in shape)):
        yield mask.holds(Box(position, (1,) * len(shape))) is True
