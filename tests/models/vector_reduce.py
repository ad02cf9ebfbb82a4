"""Models of instructions that leave results in the vector engine's accumulators."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.machine.instructions import ROWS
from tests.harness.drawing import Draw
from tests.harness.instruction import Call
from tests.harness.model import Given, Results, Settings, instance, model
from tests.harness.operators import IDENTITY, apply, fold
from tests.harness.reference import single

Array = NDArray[Any]
FAMILY = (
    *("tensor_scalar_reduce", "tensor_scalar_cumulative", "select_reduce", "range_select"),
    "exponential",
)


def chained(name: str) -> Any:
    """Draw up to three of the instructions that share the accumulators, `name` the last."""

    def program(draw: Draw, target: str) -> list[Call]:
        generation = {"trn1": 2, "trn2": 3, "trn3": 4}[target]
        known = [other for other in FAMILY if ROWS[other].generation <= generation]
        names = [draw.pick(known) for _ in range(draw.integer(0, 2))]
        return [instance(draw, each, target) for each in (*names, name)]

    return program


def lanes(given: Given) -> tuple[Array, Array]:
    """Return the accumulators, and the error bound of each."""
    start: tuple[Array, Array] = (np.full(128, np.nan), np.zeros(128))
    kept: tuple[Array, Array] = given.state.setdefault(f"{given.engine} accumulators", start)
    return kept


def accumulate(
    given: Given,
    results: Results,
    data: str,
    values: Array,
    op: str,
    initial: str = "",
    slack: float = 0.0,
) -> None:
    """Apply reduce_cmd and reduce_res, lane by lane of the partitions of `data`."""
    command, of, (every, off) = given["reduce_cmd"], given.tile(data), lanes(given)
    part = slice(of.start, of.start + of.partitions)
    if command.startswith("reset"):
        every[part], off[part] = IDENTITY[op], 0
    elif command == "load_reduce":
        every[part] = np.broadcast_to(given.numbers(initial), (of.partitions, 1))[:, 0]
        off[part] = 0
    elif command == "idle" and given.engine == "vector":
        every[part] = np.nan
    if command.endswith("reduce"):
        every[part] = apply(op, every[part], fold(op, values))
        off[part] += 2.0**-20 * off[part]
        if slack:
            off[part] += slack * np.minimum(np.nan_to_num(np.abs(values)), 1e300).sum(1)
    read_out(given, results, part)


def read_out(given: Given, results: Results, part: slice) -> None:
    """Store the accumulators to reduce_res."""
    if given["reduce_res"] is None:
        return
    every, off = lanes(given)
    sign = -1.0 if "reduce_res_negate" in given.values and given["reduce_res_negate"] else 1.0
    # The results of earlier instructions are known within their error bounds.
    results["reduce_res"] = given.near("reduce_res", sign * every[part, None], off[part, None])


@model("tensor_scalar_reduce", silent=("reverse0",), program=chained("tensor_scalar_reduce"))
def tensor_scalar_reduce(given: Given) -> Results:
    operand = None if given["operand0"] is None else given.numbers("operand0")
    found = apply(given["op0"], given.numbers("data"), operand)
    results: Results = {"dst": given.rounded("dst", found)}
    accumulate(given, results, "data", found, given["reduce_op"], "reduce_init")
    return results


@model("tensor_scalar_cumulative", program=chained("tensor_scalar_cumulative"))
def tensor_scalar_cumulative(given: Given) -> Results:
    op, command, of = given["op1"], given["reduce_cmd"], given.tile("src")
    terms = apply(given["op0"], given.numbers("src"), given.numbers("imm0"))
    every, off = lanes(given)
    part = slice(of.start, of.start + of.partitions)
    first = np.full(of.partitions, IDENTITY[op])
    if command == "load_reduce":
        first = np.broadcast_to(given.numbers("imm1"), (of.partitions, 1))[:, 0]
    elif command == "reduce":
        first = every[part]
    carry, columns = first, []
    for i in range(terms.shape[1]):
        carry = apply(op, terms[:, i], carry)
        columns.append(carry)
    if command != "reduce":
        off[part] = 0
    every[part] = carry
    found, slack = np.stack(columns, 1), np.broadcast_to(off[part, None], terms.shape)
    if not off[part].any():
        return {"dst": given.rounded("dst", found)}
    with np.errstate(all="ignore"):
        slack = slack * (1 + np.abs(terms)) * 4 + np.abs(found) * 1e-6
    return {"dst": given.near("dst", found, slack)}


@model("select_reduce", program=chained("select_reduce"))
def select_reduce(given: Given) -> Results:
    mask = (given["predicate"] != 0) != given["reverse_pred"]
    found = np.where(mask, given.numbers("on_true"), given.numbers("on_false"))
    results: Results = {"dst": given.rounded("dst", found)}
    accumulate(given, results, "on_true", found, given["reduce_op"])
    return results


LOWEST = float(np.finfo(np.float32).min)
COMPARISONS = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "less": np.less,
    "less_equal": np.less_equal,
}


def _bounds(draw: Draw, values: Settings) -> None:
    for name in ("bound0", "bound1"):
        of = values[name]
        window = of.window(of.tensor.contents)
        window[...] = values["range_start"] + draw.rng.integers(-3, 40, window.shape)


@model(
    "range_select",
    settings={
        "range_start": lambda draw: draw.pick([0, 5, -20, 2**24 - 512, -(2**24)]),
        "on_false_value": lambda draw: draw.pick([LOWEST, -3.4028235e38]),
        "reduce_op": lambda draw: "maximum",
    },
    fill=_bounds,
    program=chained("range_select"),
)
def range_select(given: Given) -> Results:
    x = given.numbers("on_true_tile")
    index = np.float32(given["range_start"] + np.arange(x.shape[1]))
    mask = COMPARISONS[given["comp_op0"]](index, given.numbers("bound0"))
    mask = mask & COMPARISONS[given["comp_op1"]](index, given.numbers("bound1"))
    found = np.where(mask, x, np.float64(np.float32(given["on_false_value"])))
    results: Results = {"dst": given.rounded("dst", found)}
    accumulate(given, results, "on_true_tile", found, given["reduce_op"])
    return results


@model("exponential", program=chained("exponential"))
def exponential(given: Given) -> Results:
    x = single(given.numbers("src") - given.numbers("max_value"))
    with np.errstate(all="ignore"):
        found = np.exp(x)
    results: Results = {"dst": given.near("dst", found, np.abs(found) * 2.0**-23)}
    accumulate(given, results, "src", single(found), "add", "reduce_init", slack=1e-6)
    return results
