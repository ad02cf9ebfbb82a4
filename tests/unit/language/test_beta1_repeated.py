"""Test repeated operands of Beta 1: rows in all partitions (by which engine, and read where), and
columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import nkic
from nkic.base.diagnostics import Reporter
from nkic.base.profiles import Profile
from nkic.base.source import SourceFile
from nkic.machine.targets import TARGETS
from nkic.program.program import Instruction, View
from nkic.source.parse import parse
from nkic.source.resolve import resolve
from nkic.specialise import PROVIDED, specialise
from nkic.specialise.inline import parse_arg
from nkic.specialise.request import Request

HEAD = """import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a, rows):
    out = nl.ndarray(a.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    x, count = nl.load(a), a.shape[1]
    wide = [nl.load(rows[n : n + 1]).broadcast_to(a.shape) for n in range(rows.shape[0])]
"""
END = "    nl.store(out, x)\n    return out\n"
EACH = "    for row in wide:\n        x = nisa.tensor_tensor(x, row, op=nl.{op})\n"


def recorded(body: str, a: str, rows: str, target: str = "trn1") -> list[Instruction]:
    """Return the program of a kernel."""
    report = Reporter()
    resolved = resolve(
        SourceFile("k.py", HEAD + body + END),
        None,
        load=lambda name, importer: None,
        parse=parse,
        provided=PROVIDED,
        report=report,
        profile=Profile.BETA1,
    )
    args = dict(parse_arg(text) for text in (f"a={a}", f"rows={rows}"))
    request = Request(args=args, target=TARGETS[target], profile=Profile.BETA1)
    made = specialise(resolved, request, report)
    (core,) = made.cores
    assert all(isinstance(item, Instruction) for item in core)
    return [item for item in core if isinstance(item, Instruction)]


def names(items: list[Instruction]) -> list[str]:
    return [item.row.name for item in items]


def read_in_psum(items: list[Instruction]) -> int:
    """Return the operands of tensor_tensor that are in PSUM."""
    sums = [item for item in items if item.row.name == "tensor_tensor"]
    operands = [one for item in sums for one in item.operands if isinstance(one, View)]
    return sum(one.tensor.buffer.value == "psum" for one in operands)


def test_the_only_reader_reads_psum() -> None:
    items = recorded(EACH.format(op="add"), "f32[128,512]", "f32[2,512]")
    loads = ["dma_copy", "dma_copy", "memset", "nc_matmul", "dma_copy", "nc_matmul"]
    assert names(items) == [*loads, "tensor_tensor", "tensor_tensor", "dma_copy"]
    assert read_in_psum(items) == 2
    assert [item.number for item in items] == list(range(len(items)))


def test_products_are_called_as_what_they_stand_for() -> None:
    body = "    x = nisa.tensor_tensor(x, nl.load(rows), op=nl.add, name='sum')\n"
    items = recorded(body, "f32[64,512]", "f32[1,512]")
    named = [item.row.name for item in items if item.name == "sum"]
    assert named == ["nc_matmul", "tensor_tensor"]


def test_several_readers_read_a_copy() -> None:
    items = recorded(EACH.format(op="add") * 2, "f32[128,512]", "f32[1,512]")
    assert names(items).count("nc_matmul") == names(items).count("tensor_copy") == 1
    assert read_in_psum(items) == 0


def test_one_instruction_reads_one_of_two_rows_in_psum() -> None:
    body = "    x = nisa.tensor_tensor(wide[0], wide[1], op=nl.add)\n"
    items = recorded(body, "f32[128,512]", "f32[2,512]")
    assert names(items).count("nc_matmul") == 2
    assert (names(items).count("tensor_copy"), read_in_psum(items)) == (1, 1)


@pytest.mark.parametrize(("columns", "products"), [(512, 1), (513, 2), (1200, 3)])
def test_a_product_fills_a_bank(columns: int, products: int) -> None:
    items = recorded(EACH.format(op="add"), f"f32[64,{columns}]", f"f32[1,{columns}]")
    assert names(items).count("nc_matmul") == products
    assert names(items).count("tensor_copy") == (products if products > 1 else 0)


def test_a_bank_is_left_for_others() -> None:
    """Of nine rows in use at once seven are read in PSUM; the following ones are copied."""
    items = recorded(EACH.format(op="add"), "f32[128,512]", "f32[9,512]")
    assert (names(items).count("nc_matmul"), read_in_psum(items)) == (9, 7)
    assert names(items).count("tensor_copy") == 2


def test_integers_are_repeated_by_the_library() -> None:
    items = recorded(EACH.format(op="bitwise_or"), "i32[128,512]", "i32[1,512]")
    assert "nc_matmul" not in names(items)
    assert names(items).count("nc_stream_shuffle") == 1


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("shape", [(128, 512), (40, 700), (128, 1)])
@pytest.mark.parametrize("target", ["trn1", "trn2"])
def test_values(dtype: str, shape: tuple[int, int], target: str) -> None:
    rng = np.random.default_rng(3)
    given: dict[str, NDArray[Any]] = {
        "a": rng.standard_normal(shape).astype(dtype),
        "rows": rng.standard_normal((3, shape[1])).astype(dtype),
    }
    given["rows"][0, 0] = np.inf
    source = SourceFile("k.py", HEAD + EACH.format(op="multiply") + END)
    found = nkic.run(nkic.compile(source, inputs=given, target=target), given).outputs["output_0"]
    wanted = given["a"]
    for row in given["rows"]:
        wanted = (wanted.astype("f4") * row.astype("f4")).astype(dtype)
    assert np.array_equal(np.asarray(found), wanted.astype("f4"))


COLUMN = "    y = nl.{op}({of})\n    x = nl.copy(y, dtype=nl.float32)\n"


@pytest.mark.parametrize("of", ["x, x[:, 0:1]", "x[:, 0:1], x"])
def test_a_column_is_read_by_tensor_scalar(of: str) -> None:
    items = recorded(COLUMN.format(op="subtract", of=of), "f32[128,512]", "f32[1,512]")
    (made,) = [item for item in items if item.row.name == "tensor_scalar"]
    column = made.operand("operand0")
    assert isinstance(column, View)
    assert column.shape == (128, 1)
    assert made.attribute("reverse0") is of.startswith("x[")
    rng = np.random.default_rng(4)
    a = rng.standard_normal((128, 512)).astype(np.float32)
    given = {"a": a, "rows": a[:1]}
    source = SourceFile("k.py", HEAD + COLUMN.format(op="subtract", of=of) + END)
    found = nkic.run(nkic.compile(source, inputs=given), given).outputs["output_0"]
    wanted = a - a[:, :1] if of.startswith("x,") else a[:, :1] - a
    assert np.array_equal(np.asarray(found), wanted)


def test_a_column_is_read_so_in_place() -> None:
    """`x *= column`, where the column is a part of another tile."""
    body = "    y = nl.copy(x)\n    x *= y[:, 1:2]\n"
    assert names(recorded(body, "f32[128,512]", "f32[1,512]")).count("tensor_scalar") == 1
    a = np.random.default_rng(4).standard_normal((128, 512)).astype(np.float32)
    given = {"a": a, "rows": a[:1]}
    source = SourceFile("k.py", HEAD + body + END)
    found = nkic.run(nkic.compile(source, inputs=given), given).outputs["output_0"]
    assert np.array_equal(np.asarray(found), a * a[:, 1:2])


@pytest.mark.parametrize(
    ("of", "a"),
    [("x, x[:, 0:1]", "i32[128,512]"), ("x, x[:, 0:1]", "bf16[128,512]"), ("x, x", "f32[128,1]")],
)
def test_other_columns_are_read_as_tiles(of: str, a: str) -> None:
    """Integers are exact only on gpsimd, tensor_scalar takes float32, and a column is a tile."""
    items = recorded(COLUMN.format(op="add", of=of), a, a.replace("128", "1"))
    assert names(items).count("tensor_tensor") == 1
    assert "tensor_scalar" not in names(items)
