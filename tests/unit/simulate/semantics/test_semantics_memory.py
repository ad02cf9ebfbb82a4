"""The representation of memory changes no bit: decoded or as bytes, and with `precise=False`."""

from typing import Any

import numpy as np
import pytest

from tests.harness.instruction import built, call, run, tile
from tests.harness.reference import loaded, numpy_type, same, single, stored

X = np.random.default_rng(17).standard_normal((8, 12)).astype(np.float32)


def test_neighbours_of_another_type_change_no_bit() -> None:
    """A bfloat16 tile is kept decoded, unless an instruction accesses its bytes as another type."""
    x = tile(X * 100, dtype="bfloat16")
    step = call("tensor_scalar", dst=x.like(), data=x, op0="multiply", operand0=0.1)
    look = call(
        "tensor_copy", dst=tile((8, 1), dtype="uint16"), src=x.over(dtype="uint16", dims=((1, 1),))
    )
    alone, beside = run([step]), run([step, look])
    dst = step.values["dst"]
    assert alone[dst].tobytes() == beside[dst].tobytes()


def test_without_precision_numbers_between_instructions_stay_float32() -> None:
    """`RunOptions(precise=False)`: outputs, and memory kept as bytes, are rounded as usual."""
    x, third, back = tile(X), tile((8, 12), dtype="bfloat16"), tile((8, 12))
    given = {"op0": "multiply"}
    steps = [
        call("tensor_scalar", dst=third, data=x, operand0=1 / 3, **given),
        call("tensor_scalar", dst=back, data=third, operand0=3.0, **given),
    ]
    divided = single(X * np.float64(np.float32(1 / 3)))
    rounded = stored(divided, "bfloat16")
    for precise, raw, kept in (
        (True, False, rounded.astype(np.float64)),
        (False, False, divided),
        (False, True, rounded.astype(np.float64)),
    ):
        outcome = run(steps, precise=precise, raw=raw)
        same(outcome[back], stored(single(kept * 3), "float32"))
        same(outcome[third], rounded)


@pytest.mark.parametrize(
    "dtype",
    [
        *("float16", "bfloat16", "float8_e4m3", "float8_e5m2"),
        *("float8_e4m3fn", "float8_e8m0fnu"),
    ],
)
def test_every_bit_pattern_survives_copies(dtype: str) -> None:
    """Including NaN with its sign and payload, in decoded memory and in bytes."""
    kind = numpy_type(dtype)
    codes = np.arange(256**kind.itemsize).astype(f"u{kind.itemsize}").reshape(64, -1)
    x = tile(codes.view(kind), dtype=dtype)
    copied, moved, wide = x.like(), x.like(), x.like(dtype="float32")
    program = built(
        [
            call("tensor_copy", "vector", dst=copied, src=x),
            call("dma_copy", "dma", dst=moved, src=copied),
            call("tensor_copy", "scalar", dst=wide, src=moved),
        ],
        target="trn3",
    )
    for outcome in (program.run(), program.run(raw=True)):
        assert np.array_equal(outcome[moved].view(codes.dtype), codes)
        same(outcome[wide], loaded(codes.view(kind)))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "tfloat32", "int8"])
@pytest.mark.parametrize("row", ["activation", "tensor_copy", "tensor_scalar"])
def test_the_last_one_stays_where_elements_are_written_twice(dtype: str, row: str) -> None:
    """A dst with a step of 0, for results that are not needed."""
    x, dst = tile(X), tile((8, 12), dtype=dtype, steps=(0,))
    rows: dict[str, dict[str, Any]] = {
        "activation": {"data": x, "op": "gelu"},
        "tensor_copy": {"src": x},
        "tensor_scalar": {"data": x, "op0": "maximum", "operand0": 0.1},
    }
    given = rows[row]
    program = built([call(row, dst=dst, **given)])
    alone = built([call(row, dst=(whole := x.like(dtype=dtype)), **given)]).run()[whole]
    for outcome in (program.run(), program.run(raw=True)):
        same(outcome[dst], np.repeat(alone[:, -1:], 12, axis=1))
