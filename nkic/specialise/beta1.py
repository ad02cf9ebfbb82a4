"""Attributes that kernels of Beta 1 may access on its values, by class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from nkic.evaluate.objects import Class, Getter, HostFunction, seal
from nkic.language.beta1 import (
    creation,
    indices,
    loops,
    masks,
    more,
    names,
    operators,
    recorded,
    tiles,
)
from nkic.language.beta1.access import AtRunTime
from nkic.language.names import TileSize
from nkic.machine.dtypes import DType
from nkic.specialise import closed

_IN_PLACE = " ".join(
    f"__i{name}__"
    for name in "add sub mul truediv mod pow and or xor lshift rshift".split()  # noqa: SIM905
)
SURFACE: dict[type, str] = {
    tiles.Tile: f"""
        shape dtype buffer name ndim size itemsize assert_shape reshape expand_dims broadcast_to
        shape_2d as_tile
        view astype __getitem__ __setitem__ __iter__ __abs__ __int__ __float__ __index__
        {_IN_PLACE}
    """,
    tiles.Blocks: "shape dtype buffer name ndim size itemsize reshape view __getitem__ __setitem__",
    indices.Index: "shape ndim reshape expand_dims __getitem__ __iter__ __index__ __int__",
    indices.Grid: "p x y z w __getitem__ __iter__ __len__",
    indices.MakesGrids: "__getitem__",
    AtRunTime: "",
    recorded.Scalar: "",
    masks.Compared: "",
    masks.All: "",
    masks.Either: "",
    loops.Range: "__iter__ __len__",
    loops.TracedRange: "__iter__ __len__",
    operators.Function: "name",
    names.TileSizes: closed.SURFACE[TileSize],
    names.Limits: "min",
    more.FloatLimits: "min max eps dtype",
    creation.Allocator: "",
    creation.Sbuf: "alloc mod_alloc auto_alloc",
    creation.Psum: "alloc mod_alloc auto_alloc",
    creation.Nothing: "__enter__ __exit__",
}


@cache
def _classes() -> dict[type, Class]:
    return {kind: seal(closed.class_of(kind, text)) for kind, text in SURFACE.items()}


def classes(python_classes: Mapping[type, Class]) -> dict[type, Class]:
    """Return the class of every Beta 1 value; `python_classes` are Python's classes."""
    return {
        **_classes(),
        loops.LoopIndex: python_classes[int],
        DType: _dtype(python_classes[DType]),
    }


def _dtype(dtype_class: Class) -> Class:
    """Return the class of dtypes, extended by attributes of NumPy's that Beta 1 kernels use."""
    getters = {
        "type": Getter("type", lambda m, dtype: HostFunction("type", _number(dtype))),
    }
    members = {**dtype_class.members, **getters}
    return seal(Class(dtype_class.name, dtype_class.bases, members, payload=DType))


def _number(dtype: DType) -> Callable[[Any], Any]:
    return float if dtype.is_float else int


def callers() -> dict[type, Callable[..., Any]]:
    """Return the functions by which the machine calls such values."""
    return {operators.Function: lambda m, function, args, named: function(*args, **named)}
