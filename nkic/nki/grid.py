"""Launch grids: the contents of the brackets of `kernel[…]`.

NKI 0.6 takes the number of cores that run the kernel together: `kernel[2]`. The betas take a grid
of instances, and `nl.nc(2)` for an axis that is distributed over cores. Source: `nki.jit`; the
guide to SPMD execution and the examples of the betas.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from nkic.api.errors import refuse
from nkic.specialise.request import Spread

MAX_LNC = 2  # cores that can run one kernel, on any target


class NeuronCores:
    """`nl.nc(2)`: a grid axis distributed over cores; `nl.nc(2) * 4` has 8 instances."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __mul__(self, instances: int) -> SpmdDim:
        return SpmdDim(self, instances)

    def __rmul__(self, instances: int) -> SpmdDim:
        return SpmdDim(instances, self)

    def __repr__(self) -> str:
        return f"nl.nc({self.count})"


class SpmdDim:
    """`nl.spmd_dim(nl.nc(2), 4)`: an axis with instances on several cores.

    The first part varies slowest: here the first core has instances 0 to 3; in `spmd_dim(4,
    nl.nc(2))` it has the even ones.
    """

    def __init__(self, *parts: int | NeuronCores) -> None:
        self.parts = parts

    def __repr__(self) -> str:
        return f"nl.spmd_dim({', '.join(map(repr, self.parts))})"


class Launch(NamedTuple):
    """How a kernel is launched: a grid of instances on one core, one instance per core, or a grid
    distributed over cores.
    """

    grid: tuple[int, ...] | None = None
    lnc: int | None = None
    spread: Spread | None = None


def launch(written: Any, spmd: bool) -> Launch:
    """Return the launch that the brackets denote.

    `spmd` makes a single number the count of instances on one core. Raises `UsageFailed`.
    """
    if written is None:
        return Launch()
    axes = tuple(written) if isinstance(written, Sequence) else (written,)
    across = [n for n, axis in enumerate(axes) if isinstance(axis, NeuronCores | SpmdDim)]
    if across:
        return _across(axes, across, written)
    sizes = tuple(_size(axis, written) for axis in axes)
    if len(sizes) == 1 and sizes[0] <= MAX_LNC and not spmd:
        return Launch(lnc=sizes[0])
    return Launch(grid=sizes)


def _across(axes: Sequence[Any], across: Sequence[int], written: Any) -> Launch:
    """Return a launch with one axis distributed over cores, with one or more instances on each."""
    position = across[0]
    parts = (
        axes[position].parts
        if isinstance(axes[position], SpmdDim)
        else axes[position : position + 1]
    )
    cores = [n for n, part in enumerate(parts) if isinstance(part, NeuronCores)]
    if len(across) > 1 or len(cores) != 1:
        refuse(
            f"the launch grid {written!r} must have one axis with one nl.nc(…)",
            "write kernel[nl.nc(2) * 4, 8], for example",
        )
    counts = [_size(part.count if n in cores else part, written) for n, part in enumerate(parts)]
    others = [_size(axis, written) for n, axis in enumerate(axes) if n != position]
    lnc, run = counts[cores[0]], prod(counts[cores[0] + 1 :])
    if prod(counts) * prod(others) == lnc:
        return Launch(lnc=lnc)
    others.insert(position, prod(counts))
    return Launch(tuple(others), lnc, Spread(position, run))


def _size(axis: Any, written: Any) -> int:
    try:
        size = int(axis.__index__())
    except AttributeError:
        size = 0
    if size < 1:
        refuse(f"the launch grid {written!r} must consist of positive integers")
    return size
