"""A model of Beta 1 in NumPy: index expressions are arrays, masks are arrays of bool, and loops run
iteration by iteration. Uninitialised elements, and elements computed from them, are NaN.

`Model().run(text, arrays)` evaluates a kernel's source with the model in place of the modules.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
F32 = "float32"


class Rejected(Exception):
    """Raised if the program accesses elements outside a tensor or returns uninitialised ones."""


class Tile:
    """Elements of a buffer, by their flat indices (`places`). `outside` marks unavailable elements;
    `written` marks the elements written by the instruction that created the tile.
    """

    def __init__(
        self, buffer: Array, places: Array, outside: Array | None = None, written: Any = None
    ) -> None:
        self.buffer = buffer
        self.places = places
        self.outside = np.zeros(places.shape, bool) if outside is None else outside
        self.written = written
        self.shape = places.shape
        self.dtype = F32

    @classmethod
    def of(cls, values: Array, written: Array | None = None) -> Tile:
        """Return a new tile; elements that are not `written` become NaN."""
        values = np.array(values, float)
        if written is not None:
            values[~written] = np.nan
        return cls(values.reshape(-1), np.arange(values.size).reshape(values.shape), None, written)

    def __getitem__(self, key: Any) -> Tile:
        if key is Ellipsis:
            return self
        parts, outside = [], np.zeros((), bool)
        for size, part in zip(self.shape, key if isinstance(key, tuple) else (key,), strict=False):
            if isinstance(part, np.ndarray):
                outside = outside | (part < 0) | (part >= size)
                part = part.clip(0, size - 1)
            parts.append(part)
        places = self.places[tuple(parts)]
        inherited = self.outside[tuple(parts)]
        return Tile(self.buffer, places, inherited | outside)

    def read(self, mask: Any = None) -> Array:
        """Return the values. Raises `Rejected` if an unmasked element is out of bounds."""
        if np.any(self.outside & seen(mask, self.shape)):
            raise Rejected
        return self.buffer[self.places]

    def write(self, values: Any, where: Any = None) -> None:
        """Store values of the same shape, or broadcast to it."""
        where = seen(where, self.shape)
        if np.any(self.outside & where):
            raise Rejected
        values = np.broadcast_to(values, self.shape)
        self.buffer[self.places[where]] = values[where]

    def __setitem__(self, key: Any, value: Any) -> None:
        target = self[key]
        if not isinstance(value, Tile):
            target.write(value)
        elif value.buffer is not target.buffer or not np.array_equal(value.places, target.places):
            target.write(value.read(), value.written)

    def __iadd__(self, other: Any) -> Tile:
        self.write(self.read() + values_of(other), getattr(other, "written", None))
        return self

    def __add__(self, other: Any) -> Tile:
        return made(self.read() + values_of(other))

    def __sub__(self, other: Any) -> Tile:
        return made(self.read() - values_of(other))

    def __mul__(self, other: Any) -> Tile:
        return made(self.read() * values_of(other))

    def reshape(self, shape: Any) -> Tile:
        return Tile(self.buffer, self.places.reshape(shape), self.outside.reshape(shape))


def seen(mask: Any, shape: tuple[int, ...]) -> Array:
    return np.broadcast_to(True if mask is None else mask, shape)


def values_of(value: Any, mask: Any = None) -> Any:
    return value.read(mask) if isinstance(value, Tile) else value


def made(values: Any, mask: Any = None) -> Tile:
    """Return the result of an instruction under a mask."""
    return Tile.of(values, None if mask is None else np.array(seen(mask, np.shape(values))))


def _elementwise(function: Any) -> Any:
    def call(x: Any, y: Any, *, mask: Any = None, dtype: Any = None) -> Tile:
        return made(function(values_of(x, mask), values_of(y, mask)), mask)

    return call


def _where(condition: Tile, x: Any, y: Any, *, mask: Any = None) -> Tile:
    chosen = values_of(condition, mask)
    found = np.where(chosen != 0, values_of(x, mask), values_of(y, mask))
    return made(np.where(np.isnan(chosen), np.nan, found), mask)


_FOLDS = {"add": np.add, "max": np.maximum, "min": np.minimum}
_NEUTRAL = {"add": 0.0, "max": -np.inf, "min": np.inf}


def _reduced(op: str, x: Tile, axis: Any, mask: Any = None, keepdims: bool = False) -> Tile:
    there = seen(mask, x.shape)
    values = np.where(there, x.read(mask), _NEUTRAL[op])
    found = _FOLDS[op].reduce(values, axis=axis, keepdims=True)
    some = there.any(axis=axis, keepdims=True)
    result = made(np.where(some, found, np.nan), None if mask is None else some)
    return result if keepdims or len(x.shape) == 2 else result.reshape(found.shape[:-1])


def _product(x: Tile, y: Tile, mask: Any = None) -> Tile:
    """Matrix product; `mask` gives the numbers of terms, rows and columns."""
    left, right = x.read(), y.read()
    terms, rows, columns = mask or (left.shape[0], left.shape[1], right.shape[1])
    there = np.zeros((left.shape[1], right.shape[1]), bool)
    there[:rows, :columns] = True
    return made(left[:terms].T @ right[:terms], None if mask is None else there)


def _transposed(x: Tile, mask: Any = None) -> Tile:
    values = values_of(x, mask)
    return made(values.T, None if mask is None else seen(mask, x.shape).T)


def _activated(
    op: Any, data: Tile, *, bias: Any = None, scale: Any = 1.0, mask: Any = None
) -> Tile:
    values = values_of(data, mask) * values_of(scale)
    values = values if bias is None else values + values_of(bias)
    return made(op(values), mask)


def _scaled(data: Tile, op0: Any, operand0: Any, **more: Any) -> Tile:
    mask = more.get("mask")
    values = op0(values_of(data, mask), operand0)
    return made(more["op1"](values, more["operand1"]), mask)


def _selected(pred: Any, on_true_tile: Tile, on_false_value: float, mask: Any = None) -> Tile:
    return made(np.where(pred, on_true_tile.read(mask), on_false_value), mask)


def _copy_predicated(*, dst: Tile, src: Tile, predicate: Tile, mask: Any = None) -> None:
    asked = predicate.read(mask)
    dst.write(
        np.where(np.isnan(asked), np.nan, src.read(mask)), seen(mask, dst.shape) & (asked != 0)
    )


class Grids:
    def __getitem__(self, key: Any) -> Any:
        return list(np.mgrid[key])


class Model:
    """The modules of Beta 1, and the sums of `loop_reduce` in one run."""

    def __init__(self) -> None:
        self.sums: dict[Any, Tile] = {}

    def run(self, text: str, arrays: dict[str, Array]) -> Array:
        """Return the result of the source's kernel. Raises `Rejected`."""
        spaces: dict[str, Any] = {"nl": self.language(), "nisa": self.isa(), "np": np}
        exec(compile(text, "model", "exec"), spaces)
        given = {n: Tile.of(np.array(v, float)) for n, v in arrays.items()}
        with np.errstate(all="ignore"):
            found: Array = spaces["kernel"](**given).read()
        if np.isnan(found).any() or np.abs(found).max() > 2**20:
            raise Rejected
        return found

    def _full(self, shape: Any, value: float, dtype: Any, buffer: Any = None) -> Tile:
        return Tile.of(np.full(shape, value))

    def _loaded(self, src: Tile, *, mask: Any = None) -> Tile:
        return made(src.read(mask), mask)

    def _stored(self, dst: Tile, value: Any, *, mask: Any = None) -> None:
        if isinstance(value, Tile) and value.shape != dst.shape:
            raise Rejected
        dst.write(values_of(value), mask)

    def _loop_reduce(
        self, x: Tile, op: Any, loop_indices: Any, *, key: Any, mask: Any = None
    ) -> Tile:
        known = self.sums.get(key)
        values = np.where(seen(mask, x.shape), x.read(mask), 0)
        if known is None:
            known = self.sums[key] = Tile.of(np.zeros(x.shape))
        known.buffer += values.reshape(-1)
        return known

    def language(self) -> SimpleNamespace:
        """Return the model of `nl`."""
        return SimpleNamespace(
            arange=np.arange,
            mgrid=Grids(),
            par_dim=int,
            affine_range=range,
            sequential_range=range,
            static_range=range,
            float32=F32,
            psum="psum",
            sbuf="sbuf",
            shared_hbm="hbm",
            ndarray=lambda shape, dtype, buffer=None: self._full(shape, np.nan, dtype),
            zeros=lambda shape, dtype, buffer=None: self._full(shape, 0.0, dtype),
            full=self._full,
            load=self._loaded,
            store=self._stored,
            load_transpose2d=_transposed,
            copy=lambda x, *, mask=None: made(values_of(x, mask), mask),
            add=_elementwise(np.add),
            subtract=_elementwise(np.subtract),
            multiply=_elementwise(np.multiply),
            maximum=_elementwise(np.maximum),
            minimum=_elementwise(np.minimum),
            greater=_elementwise(np.greater),
            where=_where,
            broadcast_to=lambda x, shape: made(np.broadcast_to(values_of(x), shape)),
            sum=lambda x, axis, *, mask=None, keepdims=False: _reduced(
                "add", x, axis, mask, keepdims
            ),
            max=lambda x, axis, *, mask=None, keepdims=False: _reduced(
                "max", x, axis, mask, keepdims
            ),
            min=lambda x, axis, *, mask=None, keepdims=False: _reduced(
                "min", x, axis, mask, keepdims
            ),
            loop_reduce=self._loop_reduce,
        )

    def isa(self) -> SimpleNamespace:
        """Return the model of `nisa`."""
        return SimpleNamespace(
            nc_matmul=_product,
            nc_transpose=_transposed,
            activation=_activated,
            tensor_scalar=_scaled,
            affine_select=_selected,
            tensor_copy_predicated=_copy_predicated,
            tensor_tensor=lambda x, y, op, *, mask=None: _elementwise(op)(x, y, mask=mask),
            tensor_copy=lambda x, *, mask=None: made(values_of(x, mask), mask),
            memset=lambda shape, value, dtype, *, mask=None: made(np.full(shape, value), mask),
            iota=lambda expr, dtype, *, mask=None: made(np.array(expr, float), mask),
        )
