"""Semantics of the vector and scalar engines' rows from NeuronCore-v4 on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nkic.machine.operators import ALU
from nkic.simulate.decode import Decoded, Step, semantics
from nkic.simulate.numerics.activation import FUNCTIONS
from nkic.simulate.numerics.alu import ARITHMETIC
from nkic.simulate.semantics.accumulator import Accumulator
from nkic.simulate.semantics.binding import Floats, binary, result, shape_of, vector
from nkic.simulate.semantics.summing import Reduction
from nkic.simulate.semantics.validity import Fresh, in_range
from nkic.simulate.storage.memory import PARTITIONS
from nkic.simulate.tile import Load, Sizes

NO_PARAMETER = np.zeros((), np.float32)


@semantics("exponential")
def exponential(decoded: Decoded) -> Step:
    """The difference is rounded to float32, as is its exponential."""
    sizes = shape_of(decoded, "dst", "src")
    src, (out, store, _) = decoded.tile("src").load(sizes), result(decoded, sizes)
    greatest, exp = vector(decoded, "max_value", sizes), FUNCTIONS["exp"]
    between = decoded.scratch.floats(decoded.tile("dst").shape_in(sizes))
    total = Accumulator(decoded, decoded.tile("src"), "add", "reduce_init")

    def step() -> None:
        np.subtract(src(), greatest(), out=between)
        result = out()
        exp(between, result, NO_PARAMETER)
        total.add(result)
        store()
        total.read_out()

    return step


@semantics("activate2")
def activate2(decoded: Decoded) -> Step:
    sizes = shape_of(decoded, "dst", "data")
    out, store, _ = result(decoded, sizes)
    inner, parameter = (
        _inner(decoded, sizes, decoded.tile("dst").shape_in(sizes)),
        vector(decoded, "relu_param", sizes),
    )
    function = FUNCTIONS[decoded.attributes["op"]]
    accumulate, watch = _registers(decoded), in_range(decoded)

    def step() -> None:
        result, values = out(), inner()
        if watch is not None:
            watch(values)
        function(values, result, parameter())
        read_out = accumulate(result)
        store()
        read_out()

    return step


def _inner(decoded: Decoded, sizes: Sizes | None, shape: tuple[int, ...]) -> Load:
    """Return a function that loads (data op0 imm0) op1 imm1, without bypassed stages."""
    data, result = decoded.tile("data").load(sizes), decoded.scratch.floats(shape)
    stages = [
        (binary(op, decoded.attributes[f"reverse{i}"]), vector(decoded, f"imm{i}", sizes))
        for i in (0, 1)
        if (op := decoded.attributes[f"op{i}"]) != "bypass"
    ]

    def load() -> Floats:
        values = data()
        for function, operand in stages:
            function(values, operand(), result)
            values = result
        return values

    return load


def _registers(decoded: Decoded) -> Callable[[Floats], Step]:
    """Return a function that applies `reduce_cmd` to the results and returns the read-out step.

    The reduce registers are those of `activation`, with the same behaviour.
    """
    data, taker = decoded.tile("data"), decoded.maybe("reduce_res")
    command, op = decoded.attributes["reduce_cmd"], decoded.attributes["reduce_op"] or "add"
    registers = decoded.state.array("accumulator", lambda: np.zeros(PARTITIONS, np.float32))
    lanes = registers[data.first : data.first + data.partitions]
    total, sink = decoded.scratch.floats(lanes.shape), taker.sink() if taker else None
    reduce = Reduction(decoded, op)
    fresh = Fresh(decoded, data)
    asks = "adds to" if command == "reduce" else "reads" if taker is not None else ""

    def read_out() -> None:
        if sink is not None:
            np.copyto(sink.out(), lanes[:, None])
            sink.store()

    def accumulate(values: Floats) -> Step:
        fresh.note(command)
        if asks:
            fresh.ask(asks)
        if command.startswith("reset"):
            lanes[...] = ALU[op].identity
        if command.endswith("reduce"):
            reduce(values, total)
            ARITHMETIC[op](lanes, total, lanes)
        return read_out

    return accumulate
