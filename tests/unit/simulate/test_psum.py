"""Test the last writer of a part of PSUM, by rectangles and by an array of flags; and banks in
files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies
from hypothesis import strategies as st
from numpy.typing import NDArray

from nkic.artifact.read import read
from nkic.artifact.records import (
    Executable,
    InstructionRecord,
    LoopRecord,
    PatternRecord,
    StreamRecord,
)
from nkic.artifact.verify import verify
from nkic.base.diagnostics import ArtifactFailed
from nkic.base.source import SourceFile
from nkic.compiler.pipeline import compile_source
from nkic.machine.instructions import ROWS
from nkic.machine.operators import ORDERS, SummationOrder
from nkic.machine.rules import MAX_WRITES, History, Rectangle, Write, bank_problem, banks
from nkic.machine.targets import TRN2, TRN3
from nkic.report.resources import resources
from nkic.simulate import RunOptions, simulate
from nkic.simulate.numerics import matmul as products
from nkic.simulate.numerics import quiet
from nkic.simulate.numerics.matmul import matmul
from nkic.simulate.numerics.reduction import bn_aggr, bn_stats, reduce
from nkic.specialise.request import Request
from tests.harness.language import simulated
from tests.unit.simulate.numerics.test_numerics_matmul import digest_under, operands, rounded

SIDE = 12


@st.composite
def rectangles(draw: st.DrawFn) -> Rectangle:
    (top, bottom), (left, right) = (
        sorted(draw(st.lists(st.integers(0, SIDE), min_size=2, max_size=2, unique=True)))
        for _ in "ab"
    )
    return Rectangle(top, bottom, left, right)


def part(flags: np.ndarray, area: Rectangle) -> np.ndarray:
    return flags[area.top : area.bottom, area.left : area.right]


@given(st.lists(st.tuples(rectangles(), st.booleans()), max_size=12), rectangles())
def test_strangers_are_those_whose_bytes_are_still_there(
    writes: list[tuple[Rectangle, bool]], area: Rectangle
) -> None:
    history: History[int] = History()
    flags = np.full((SIDE, SIDE), -1)
    for number, (where, by_matmul) in enumerate(writes):
        history.note(Write(where, None if by_matmul else number))
        part(flags, where)[...] = -1 if by_matmul else number
    expected = {int(n) for n in part(flags, area).ravel()} - {-1}
    assert list(history.foreign_writers(area)) == sorted(expected, reverse=True)


@given(rectangles(), rectangles())
def test_what_is_left_of_a_rectangle(one: Rectangle, other: Rectangle) -> None:
    flags = np.zeros((SIDE, SIDE), int)
    for rest in one.without(other):
        part(flags, rest)[...] += 1
    expected = np.zeros((SIDE, SIDE), int)
    part(expected, one)[...] = 1
    part(expected, other)[...] = 0
    assert np.array_equal(flags, expected)


def test_a_history_stays_short() -> None:
    history: History[int] = History()
    for number in range(3 * MAX_WRITES):
        history.note(Write(Rectangle(0, 1, number, number + 1), number))
    assert len(history.writes) == MAX_WRITES
    history.note(Write(Rectangle(0, 1, 0, 3 * MAX_WRITES), None))
    assert len(history.writes) == 1


def test_banks() -> None:
    assert [*banks(0, 2048)] == [0]
    assert [*banks(2047, 2049)] == [0, 1]
    assert [*banks(6144, 8192)] == [3]
    matmul = ROWS["nc_matmul"]
    assert bank_problem(matmul, "dst", 2048, 4096, TRN2) == ""
    assert "banks 0 to 1" in bank_problem(matmul, "dst", 1024, 3072, TRN2)
    assert bank_problem(matmul, "dst", 1024, 3072, TRN3) == ""
    assert bank_problem(ROWS["memset"], "dst", 1024, 3072, TRN2) == ""


KERNEL = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel():
    one = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.memset(dst=one, value=1.0)
    wide = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=wide[:, 0:256], stationary=one[:, 0:128], moving=one[:, 0:256])
    nisa.nc_matmul(dst=wide[:, 512:768], stationary=one[:, 0:128], moving=one[:, 0:256])
    out = nl.ndarray((128, 256), dtype=nl.float32, buffer=nl.shared_hbm)
    y = nl.ndarray((128, 256), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=y, data1=wide[:, 0:256], data2=one[:, 0:256], op=nl.add)
    nisa.tensor_tensor(dst=y, data1=wide[:, 512:768], data2=y, op=nl.add)
    nisa.dma_copy(dst=out, src=y)
    return out
"""


def compiled() -> Executable:
    return read(compile_source(SourceFile("k.py", KERNEL), Request(), lambda *_: None).data)


def moved(executable: Executable, offset: int, least: int = 0) -> Executable:
    """Return the program with the results of matmuls that begin at element `least` or later at
    another offset of their tensor.
    """

    def item(one: InstructionRecord | LoopRecord) -> InstructionRecord | LoopRecord:
        if not isinstance(one, InstructionRecord) or one.row is not ROWS["nc_matmul"]:
            return one
        dst = one.operands[0]
        assert isinstance(dst, PatternRecord)
        if dst.offset < least:
            return one
        return one._replace(operands=(dst._replace(offset=offset), *one.operands[1:]))

    def stream(one: StreamRecord) -> StreamRecord:
        return one._replace(items=tuple(map(item, one.items)))

    return replace(executable, streams=tuple(map(stream, executable.streams)))


def test_a_file_whose_matmul_crosses_banks_is_refused() -> None:
    executable = compiled()
    verify(executable)
    verify(moved(executable, 256))
    with pytest.raises(ArtifactFailed, match=r"`dst` covers bytes 1,536 to 2,560 .* banks 0 to 1"):
        verify(moved(executable, 384))
    with pytest.raises(ArtifactFailed, match=r"`dst` covers bytes 1,536 to 2,560 .* banks 0 to 1"):
        verify(moved(executable, 384, least=512))  # after one of its shape within a bank


def test_the_report_counts_the_banks_that_are_touched() -> None:
    assert resources(compiled()).psum_banks == 2


# ------------------------------------------------------------------------------------------------
# Test `accumulate`: the orders of addition against loops that define them, and the rows that have
# an order.

Floats = NDArray[np.float32]
FLOAT32: tuple[SummationOrder, ...] = ("float32", "pairwise")
F = np.float32


def drawn(rows: int, columns: int, seed: int = 0) -> Floats:
    """Draw numbers of very different sizes: every order gives another sum."""
    rng = np.random.default_rng(seed + 1000 * rows + columns)
    exponents = rng.integers(-12, 12, (rows, columns))
    return np.ldexp(rng.standard_normal((rows, columns)), exponents).astype(F)


def summed(numbers: list[np.float32], order: SummationOrder) -> np.float32:
    """Sum by definition, one addition at a time."""
    if order == "float32":
        total = numbers[0]
        for number in numbers[1:]:
            total = F(total + number)
        return total
    if len(numbers) == 1:
        return numbers[0]
    half = 1 << (len(numbers) - 1).bit_length() - 1  # the left subtree is full
    return F(summed(numbers[:half], order) + summed(numbers[half:], order))


@given(
    strategies.sampled_from(FLOAT32),
    strategies.integers(1, 4),
    strategies.integers(1, 70),
    strategies.integers(0, 1000),
)
def test_sums_are_in_the_order_that_was_asked_for(
    order: SummationOrder, rows: int, columns: int, seed: int
) -> None:
    values, out = drawn(rows, columns, seed), np.empty(rows, F)
    reduce("add", values, out, order=order)
    assert list(out) == [summed(list(row), order) for row in values]


@pytest.mark.parametrize("order", FLOAT32)
def test_differences_products_and_means(order: SummationOrder) -> None:
    values, out = drawn(3, 37), np.empty(3, F)
    reduce("subtract", values, out, order=order)
    assert list(out) == [summed([row[0], *-row[1:]], order) for row in values]
    reduce("average", values, out, order=order)
    assert list(out) == [F(summed(list(row), order) / F(37)) for row in values]
    reduce("multiply", values[:, :5], out, order=order)
    a, b, c, d, e = values[:, :5].T
    by_pairs = ((a * b) * (c * d)) * e
    assert list(out) == list((((a * b) * c) * d) * e if order == "float32" else by_pairs)


@pytest.mark.parametrize("order", FLOAT32)
def test_the_layout_in_memory_does_not_matter(order: SummationOrder) -> None:
    values = drawn(130, 517)
    plain, other = np.empty(130, F), np.empty(130, F)
    reduce("add", values, plain, order=order)
    reduce("add", np.asfortranarray(values), other, order=order)
    assert plain.tobytes() == other.tobytes()
    assert plain[0] == summed(list(values[0]), order)


@pytest.mark.parametrize("shape", [(128, 128, 512), (5, 3, 7), (33, 65, 100), (200, 7, 9)], ids=str)
def test_products_of_narrow_types_are_exact_and_added_in_order(shape: tuple[int, int, int]) -> None:
    rows, columns, size = shape
    stationary, moving = map(rounded, operands(rows, columns, size))
    out = np.empty((columns, size), F)
    for order in FLOAT32:
        matmul(stationary, moving, out, order=order)
        for m, n in ((0, 0), (columns - 1, size - 1), (columns // 2, size // 3)):
            terms = list(stationary[:, m] * moving[:, n])
            slabs = [summed(terms[i : i + 128], order) for i in range(0, rows, 128)]
            assert out[m, n] == summed(slabs, "float32"), (order, m, n)


def test_a_fused_product_is_rounded_once() -> None:
    """(1 + 2^-23)^2 = 1 + 2^-22 + 2^-46, less 1 + 2^-22: what a rounded product would lose."""
    near = F(1) + F(2.0**-23)
    stationary = np.array([[1], [near]], F)
    moving = np.array([[-(1 + 2.0**-22)], [near]], F)
    out = np.empty((1, 1), F)
    matmul(stationary, moving, out, order="float32")
    assert out[0, 0] == F(2.0**-46)
    matmul(stationary, moving, out, order="pairwise")
    assert out[0, 0] == 0


def test_without_a_fused_blas_the_loop_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    stationary, moving = operands(128, 64, 48)
    fast, slow = np.empty((64, 48), F), np.empty((64, 48), F)
    matmul(stationary, moving, fast, order="float32")
    monkeypatch.setattr(products, "_way", lambda kind, threads: products._fused_loop)
    matmul(stationary, moving, slow, order="float32")
    assert fast.tobytes() == slow.tobytes()


def test_threads_and_processor_do_not_matter_in_float32() -> None:
    settings = [{}, {"OPENBLAS_CORETYPE": "Nehalem"}, {"OPENBLAS_CORETYPE": "Haswell"}]
    script = """
import hashlib, numpy as np
from tests.unit.simulate.numerics.test_numerics_matmul import operands
from nkic.simulate.numerics.matmul import matmul
digest = hashlib.sha256()
for shape in ((128, 128, 512), (33, 65, 100), (128, 31, 16)):
    out = np.empty(shape[1:], np.float32)
    matmul(*operands(*shape), out, order="float32")
    digest.update(out.tobytes())
print(digest.hexdigest())
"""
    assert len({digest_under(more, script) for more in settings}) == 1


@pytest.mark.parametrize("order", FLOAT32)
def test_statistics(order: SummationOrder) -> None:
    values, out = drawn(2, 11), np.empty((2, 6), F)
    bn_stats(values, out, order)
    even = values[0, ::2]
    mean = F(summed(list(even), order) / F(6))
    assert list(out[0, :3]) == [6, mean, summed([F(F(x - mean) ** 2) for x in even], order)]
    whole = np.empty((2, 2), F)
    bn_aggr(out, whole, order)
    means = [F(F(6) * out[0, 1]), F(F(5) * out[0, 4])]
    assert whole[0, 0] == F(F(means[0] + means[1]) / F(11))


# Instructions

BODIES = {
    "nc_matmul": """
    p = nl.ndarray((48, 48), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=p, stationary=x, moving=x)
    result = nl.copy(p)""",
    "tensor_reduce": """
    result = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=result, op=nl.add, data=x, axis=1)""",
    "tensor_partition_reduce": """
    result = nl.ndarray((1, 48), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_partition_reduce(dst=result, op=nl.add, data=x)""",
    "activation": """
    result = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.activation(dst=y, op=nl.copy, data=x, reduce_op=nl.add, reduce_res=result,
                    reduce_cmd=nisa.reduce_cmd.reset_reduce)""",
    "activation_reduce": """
    result = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.activation_reduce(dst=y, op=nl.copy, data=x, reduce_op=nl.add, reduce_res=result)""",
    "tensor_scalar_reduce": """
    result = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_scalar_reduce(dst=y, data=x, op0=nl.multiply, operand0=1.0, reduce_op=nl.add,
                              reduce_res=result)""",
    "exponential": """
    result = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.exponential(dst=y, src=nl.multiply(x, 1e-3), reduce_res=result,
                     reduce_cmd=nisa.reduce_cmd.reset_reduce)""",
    "activate2": """
    result = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.activate2(dst=y, op=nl.copy, data=x, imm0=1.0, imm1=0.0, op0=nl.multiply,
                   op1=nl.add, reduce_op=nl.add, reduce_res=result,
                   reduce_cmd=nisa.reduce_cmd.reset_reduce)""",
    "bn_stats": """
    result = nl.ndarray((128, 6), dtype=nl.float32, buffer=nl.sbuf)
    nisa.bn_stats(dst=result, data=x)""",
    "bn_aggr": """
    result = nl.ndarray((128, 2), dtype=nl.float32, buffer=nl.sbuf)
    nisa.bn_aggr(dst=result, data=nl.abs(x))""",
}
SEQUENTIAL = {  # in float32, first to last, whatever is requested
    "tensor_tensor_scan": """
    result = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_tensor_scan(dst=result, data0=x, data1=x, initial=0.0, op0=nl.add, op1=nl.add)""",
    "tensor_scalar_cumulative": """
    result = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar_cumulative(dst=result, src=x, op0=nl.multiply, op1=nl.add, imm0=1.0,
                                  reduce_cmd=nisa.reduce_cmd.reset_reduce)""",
    "dma_compute": """
    result = nl.ndarray((128, 24), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_compute(dst=result, srcs=[x[:, 0:24], x[:, 24:48]], reduce_op=nl.add)""",
}
HEAD = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(x):
    x = nl.load(x){body}
    out = nl.ndarray(result.shape, dtype=result.dtype, buffer=nl.shared_hbm)
    nl.store(out, result)
    return out
"""
X = drawn(128, 48)


def results(body: str, target: str, x: Floats = X) -> dict[str, Floats]:
    """Return the results by order; "default" means no requested order."""
    compiled, default = simulated(HEAD.format(body=body), {"x": x}, target)
    found = {"default": default.outputs["output_0"]}
    for order in ORDERS:
        run = simulate(compiled.executable, {"x": x}, RunOptions(accumulate=order))
        found[order] = run.outputs["output_0"]
    return {name: np.asarray(array, np.float32) for name, array in found.items()}


def cases() -> Iterator[tuple[str, str]]:
    for name in BODIES:
        for target in ("trn1", "trn2", "trn3"):
            if target == "trn3" or name not in ("exponential", "activate2"):
                yield name, target


@pytest.mark.parametrize(("name", "target"), list(cases()))
def test_rows_that_add_up_do_it_as_asked(name: str, target: str) -> None:
    found = results(BODIES[name], target)
    assert not np.array_equal(found["exact"], found["float32"])
    assert not np.array_equal(found["exact"], found["pairwise"])
    assert not np.array_equal(found["float32"], found["pairwise"])
    measured = name == "tensor_reduce" and target == "trn1"
    assert found["default"].tobytes() == found["float32" if measured else "exact"].tobytes()


@pytest.mark.parametrize("name", SEQUENTIAL)
def test_rows_whose_order_is_their_formula_s(name: str) -> None:
    found = results(SEQUENTIAL[name], "trn2")
    assert len({array.tobytes() for array in found.values()}) == 1


def test_the_docs_name_every_row_that_has_an_order() -> None:
    text = (Path(__file__).parents[3] / "docs" / "fidelity.md").read_text(encoding="utf-8")
    section = text.partition("### Orders of addition")[2].partition("\n## ")[0]
    assert section
    for name in (*BODIES, *SEQUENTIAL, "nc_matmul_mx"):
        assert name in section, name


# Effects that exact accumulation hides


def test_a_sum_that_cancels_shows_in_float32() -> None:
    """2^30, 126 ones, -2^30: in float32 the ones are lost."""
    x = np.ones((128, 48), F)
    x[0, 0], x[127, 0] = 2.0**30, -(2.0**30)
    body = """
    p = nl.ndarray((1, 1), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=p, stationary=x[:, 0:1], moving=x[:, 1:2])
    result = nl.copy(p)"""
    found = results(body, "trn2", x)
    assert (found["exact"][0, 0], found["default"][0, 0], found["float32"][0, 0]) == (126, 126, 0)


@pytest.mark.parametrize("target", ["trn1", "trn2"])
def test_an_overflow_on_the_way_shows_in_float32(target: str) -> None:
    x = np.zeros((128, 48), F)
    x[0, :4] = (3e38, 3e38, -3e38, -3e38)
    with quiet():
        found = results(BODIES["tensor_reduce"], target, x)
    assert found["exact"][0, 0] == 0
    assert found["float32"][0, 0] == np.inf
    assert np.isnan(found["pairwise"][0, 0])
    assert found["default"][0, 0] == (np.inf if target == "trn1" else 0)
