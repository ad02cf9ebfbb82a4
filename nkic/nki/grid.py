"""Launch grids: what may stand in the brackets of `kernel[…]`.

NKI 0.6 takes the number of cores that run the kernel together: `kernel[2]`. The betas take a
grid of instances, and `nl.nc(2)` for an axis that lies across cores. Source: `nki.jit`; the
guide to SPMD execution and the examples of the betas.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from nkic.api.errors import refuse

MAX_LNC = 2  # cores that can run one kernel, on any target


class NeuronCores:
    """`nl.nc(2)`: an axis of the grid that lies across cores; `nl.nc(2) * 4` has 8 instances."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __mul__(self, instances: int) -> SpmdDim:
        return SpmdDim(self, instances)

    def __rmul__(self, instances: int) -> SpmdDim:
        return SpmdDim(instances, self)

    def __repr__(self) -> str:
        return f"nl.nc({self.count})"


class SpmdDim:
    """`nl.spmd_dim(nl.nc(2), 4)`: an axis with instances on several cores."""

    def __init__(self, *parts: int | NeuronCores) -> None:
        self.parts = parts

    def __repr__(self) -> str:
        return f"nl.spmd_dim({', '.join(map(repr, self.parts))})"


class Launch(NamedTuple):
    """How a kernel is started: a grid of instances on one core, or one instance per core."""

    grid: tuple[int, ...] | None = None
    lnc: int | None = None


def launch(written: Any, spmd: bool) -> Launch:
    """What the brackets mean; `spmd` where a number is that of instances on one core.

    Raises `UsageFailed`.
    """
    if written is None:
        return Launch()
    axes = tuple(written) if isinstance(written, Sequence) else (written,)
    if len(axes) == 1:
        return _single(axes[0], spmd)
    if any(isinstance(axis, NeuronCores | SpmdDim) for axis in axes):
        _refuse_mixed(written)
    return Launch(grid=tuple(_size(axis, written) for axis in axes))


def _single(axis: Any, spmd: bool) -> Launch:
    if isinstance(axis, NeuronCores):
        return Launch(lnc=_size(axis.count, axis))
    if isinstance(axis, SpmdDim):
        _refuse_mixed(axis)
    size = _size(axis, axis)
    if not spmd and size <= MAX_LNC:
        return Launch(lnc=size)
    return Launch(grid=(size,))


def _size(axis: Any, written: Any) -> int:
    try:
        size = int(axis.__index__())
    except AttributeError:
        size = 0
    if size < 1:
        refuse(f"the launch grid {written!r} must consist of positive integers")
    return size


def _refuse_mixed(written: Any) -> None:
    refuse(
        f"the launch grid {written!r} puts several instances on each of several cores",
        "start one instance per core, kernel[2], or a grid on one core, kernel[4, 2]",
    )
