"""Models of the scalar engine: functions from tables, and its reduce registers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.machine.operands import Row
from tests.harness.drawing import Draw
from tests.harness.instruction import Call, Tile
from tests.harness.model import Given, Near, Results, Settings, Shape, alike, instance, model
from tests.harness.operators import IDENTITY, activated, apply, fold
from tests.harness.reference import single
from tests.models.vector_reduce import lanes, read_out

Array = NDArray[Any]
EXACT = ("copy", "abs", "relu", "sign")
PRECISION = 2.0**-22  # of a function in float32: twice its unit in the last place


def _moderate(draw: Draw, values: Settings) -> None:
    """Draw numbers for which functions are usually neither 0 nor infinite."""
    of = values["data"]
    if not isinstance(of, Tile) or draw.chance(0.2):
        return
    window = of.window(of.tensor.contents)
    window[...] = draw.numbers(window.shape, of.dtype, 3)


def chained(name: str) -> Any:
    """Draw up to three instructions that share the reduce registers, `name` the last."""

    def program(draw: Draw, target: str) -> list[Call]:
        known = ["activation", "activation_reduce", *(["activate2"] if target == "trn3" else [])]
        names = [draw.pick(known) for _ in range(draw.integer(0, 2))]
        return [instance(draw, each, target) for each in (*names, name)]

    return program


def _finish(given: Given, x: Array, parameter: Array, op: str | None, command: str) -> Results:
    """Return dst and the registers: zero at the start, results summed before they are rounded."""
    found, valid = activated(given["op"], x, parameter)
    found = single(found)
    # Close to a zero of a function the error is relative to the cancelling terms.
    close = 1e-8 * np.minimum(np.abs(x), 60) * (np.abs(found) < 0.1 * np.abs(x))
    slack = np.zeros(x.shape) if given["op"] in EXACT else PRECISION * np.abs(found) + close
    near = given.near("dst", found, slack)
    results: Results = {"dst": near._replace(known=valid)}
    _registers(given, results, np.where(valid, found, 0), np.asarray(valid.all(1)), op, command)
    return results


def _registers(
    given: Given, results: Results, values: Array, known: Array, op: str | None, command: str
) -> None:
    of = given.tile("data")
    every, off = lanes(given)
    if np.isnan(every).all():
        every[...] = 0  # at the start
    part = slice(of.start, of.start + of.partitions)
    if command.startswith("reset"):
        every[part], off[part] = IDENTITY[op or "add"], 0
    if command.endswith("reduce"):
        assert op is not None
        every[part] = apply(op, every[part], fold(op, values))
        off[part] += np.where(known, 4 * PRECISION * np.abs(values).sum(1), np.inf)
    if given["reduce_res"] is None:
        return
    read_out(given, results, part)
    near = results["reduce_res"]
    assert isinstance(near, Near)
    results["reduce_res"] = near._replace(known=np.isfinite(off[part])[:, None])


def _scaled(given: Given) -> Array:
    x = apply("multiply", given.numbers("data"), given.numbers("scale"))
    return x if given["bias"] is None else apply("add", x, given.numbers("bias"))


@model("activation", fill=_moderate, program=chained("activation"))
def activation(given: Given) -> Results:
    return _finish(given, _scaled(given), np.zeros(1), given["reduce_op"], given["reduce_cmd"])


@model("activation_reduce", fill=_moderate, program=chained("activation_reduce"))
def activation_reduce(given: Given) -> Results:
    return _finish(given, _scaled(given), np.zeros(1), given["reduce_op"], "reset_reduce")


PAIRS = (
    *(("multiply", "add"), ("multiply", "subtract"), ("multiply", "bypass")),
    *(("add", "bypass"), ("subtract", "bypass"), ("bypass", "bypass")),
)


def paired(draw: Draw, row: Row, settings: Settings) -> dict[str, Shape]:
    """Draw equal shapes, and one of the six pairs of operators."""
    settings["op0"], settings["op1"] = draw.pick(PAIRS)
    return alike(draw, row, settings)


@model("activate2", paired, fill=_moderate, program=chained("activate2"))
def activate2(given: Given) -> Results:
    x = given.numbers("data")
    for op, name, reverse in (("op0", "imm0", "reverse0"), ("op1", "imm1", "reverse1")):
        if given[op] != "bypass":
            x = apply(given[op], x, given.numbers(name), given[reverse])
    parameter = given.numbers("relu_param")
    return _finish(given, x, parameter, given["reduce_op"], given["reduce_cmd"])
