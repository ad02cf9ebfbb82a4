"""Meanings of the scalar engine's rows.

The 128 reduce registers are indexed by the partition that the data come from. They sum the
results before these are rounded to dst's type (assumed; docs/fidelity.md).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nkic.simulate.decode import Decoded, Step, semantics
from nkic.simulate.memory import PARTITIONS
from nkic.simulate.numerics.activation import FUNCTIONS
from nkic.simulate.numerics.reduction import reduce
from nkic.simulate.semantics.binding import ZERO, Floats, shape_of, vector

Apply = Callable[[], Floats]


@semantics("activation")
def activation(decoded: Decoded) -> Step:
    apply, store = _activating(decoded)
    command = decoded.attributes["reduce_cmd"]
    if command == "idle" and decoded.maybe("reduce_res") is None:
        return lambda: _both(apply, store)
    return _reducing(decoded, apply, store, command)


@semantics("activation_reduce")
def activation_reduce(decoded: Decoded) -> Step:
    apply, store = _activating(decoded)
    return _reducing(decoded, apply, store, "reset_reduce")


def _both(apply: Apply, store: Step) -> None:
    apply()
    store()


def _activating(decoded: Decoded) -> tuple[Apply, Step]:
    """Computes op(data x scale + bias), which it returns in float32; and the store to dst."""
    sizes = shape_of(decoded, "dst", "data")
    data, sink = decoded.tile("data").source(sizes).load, decoded.tile("dst").sink(sizes)
    scale, bias = vector(decoded, "scale", sizes, 1.0), vector(decoded, "bias", sizes)
    scales = decoded.maybe("scale") is not None or decoded.number("scale", 1.0) != 1.0
    adds = decoded.maybe("bias") is not None or decoded.number("bias") != 0.0
    function, out = FUNCTIONS[decoded.attributes["op"]], sink.out
    inner = np.empty(out.shape, np.float32)

    def apply() -> Floats:
        values = data()
        if scales:
            values = np.multiply(values, scale(), out=inner)
        if adds:
            values = np.add(values, bias(), out=inner)
        function(values, out, ZERO)
        return out

    return apply, sink.store


def _reducing(decoded: Decoded, apply: Apply, store: Step, command: str) -> Step:
    data, result = decoded.tile("data"), decoded.maybe("reduce_res")
    registers = decoded.state.array("accumulator", lambda: np.zeros(PARTITIONS, np.float32))
    first = data.first_partition
    lanes = registers[first : first + data.partitions]
    total = np.empty(data.partitions, np.float32)
    read_out = result.sink() if result is not None else None

    def step() -> None:
        values = apply()
        if command.startswith("reset"):
            lanes[...] = 0
        if command.endswith("reduce"):
            reduce("add", values, total)
            np.add(lanes, total, out=lanes)
        store()
        if read_out is not None:
            read_out.out[...] = lanes[:, None]
            read_out.store()

    return step
