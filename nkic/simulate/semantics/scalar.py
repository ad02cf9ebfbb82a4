"""Semantics of the scalar engine's rows.

The 128 reduce registers are indexed by the partition of the data. They sum the results before these
are rounded to dst's type (assumed; docs/fidelity.md).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nkic.simulate.numerics.elementwise import FUNCTIONS
from nkic.simulate.plans import Decoded, Step, semantics
from nkic.simulate.semantics.binding import (
    NO_PARAMETER,
    Floats,
    in_range,
    registers,
    result,
    shape_of,
    vector,
)

Compute = Callable[[], Floats]


@semantics("activation")
def activation(decoded: Decoded) -> Step:
    """`reduce_op` is add wherever it has an effect; the rules reject others."""
    compute, store = _activating(decoded)
    command = decoded.attributes["reduce_cmd"]
    if command != "idle" or decoded.maybe("reduce_res") is not None:
        return _reducing(decoded, compute, store, command)

    def step() -> None:
        compute()
        store()

    return step


@semantics("activation_reduce")
def activation_reduce(decoded: Decoded) -> Step:
    compute, store = _activating(decoded)
    return _reducing(decoded, compute, store, "reset_reduce")


def _activating(decoded: Decoded) -> tuple[Compute, Step]:
    """Return a function that computes op(data x scale + bias) in float32, and the store to dst."""
    sizes = shape_of(decoded, "dst", "data")
    data, (out, store, _) = decoded.tile("data").load(sizes), result(decoded, sizes)
    scale, bias = vector(decoded, "scale", sizes, 1.0), vector(decoded, "bias", sizes)
    scales, adds = decoded.operands["scale"] != 1.0, decoded.operands["bias"] is not None
    function, watch = FUNCTIONS[decoded.attributes["op"]], in_range(decoded)
    inner = decoded.scratch.floats(decoded.tile("dst").shape_in(sizes))

    def compute() -> Floats:
        values = data()
        if scales:
            values = np.multiply(values, scale(), out=inner)
        if adds:
            values = np.add(values, bias(), out=inner)
        if watch is not None:
            watch(values)
        result = out()
        function(values, result, NO_PARAMETER)
        return result

    return compute, store


def _reducing(decoded: Decoded, compute: Compute, store: Step, command: str) -> Step:
    """Store dst first, so that an overlapping `reduce_res` keeps the sum."""
    accumulate = registers(decoded, command, "add")

    def step() -> None:
        read_out = accumulate(compute())
        store()
        read_out()

    return step
