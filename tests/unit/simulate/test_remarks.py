"""Remarks of a run, once for each line, and outputs that are not written."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nkic.artifact.read import read
from nkic.artifact.records import Executable, InstructionRecord, LoopRecord
from nkic.base.diagnostics import Diagnostic, Level, LimitHit
from nkic.base.levels import DEFAULT, apply
from nkic.base.source import SourceFile
from nkic.compiler.pipeline import compile_source
from nkic.machine.targets import TARGETS
from nkic.simulate import Result, RunOptions, simulate
from nkic.specialise.inline import parse_arg
from nkic.specialise.request import Request

HEAD = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel({names}):
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    x = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    y = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    r = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
{body}
    nisa.dma_copy(dst=out, src=y)
    return out
"""
FIRST = 13  # the line of a body's first line

A = {"a": "float32[128,64]"}
ONES = np.ones((128, 64), np.float32)


def built(body: str, args: dict[str, str] | None = None, target: str = "trn2") -> Executable:
    args = A | (args or {})
    lines = "\n".join(f"    {line}" for line in body.strip("\n").split("\n"))
    text = HEAD.format(names=", ".join(args), body=lines)
    types = dict(parse_arg(f"{name}={kind}") for name, kind in args.items())
    request = Request(args=types, target=TARGETS[target])
    return read(compile_source(SourceFile("k.py", text), request, lambda *_: None).data)


def ran(body: str, a: np.ndarray = ONES, target: str = "trn2", **more: np.ndarray) -> Result:
    kinds = {n: f"{v.dtype}[{','.join(map(str, v.shape))}]" for n, v in more.items()}
    return simulate(built(body, kinds, target), {"a": a, **more})


def said(result: Result) -> list[tuple[str, int, str]]:
    return [(one.code.slug, line_of(one), one.message) for one in result.remarks]


def line_of(one: Diagnostic) -> int:
    return one.primary.span.line if one.primary is not None else 0


# ---- functions outside their range -----------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "good", "bad", "text"),
    [
        ("log", (2.0**-64, 2.0**64), (0.0, 2.0**65), "from 2**-64 to 2**64"),
        ("sin", (np.pi, -np.pi), (3.2, -9.0), "from -3.14159 to 3.14159"),
        ("arctan", (1.5, -1.5), (1.6, -1.6), "from -1.5708 to 1.5708"),
        ("sqrt", (1.0, 2.0**118), (0.0, -1.0), "from 2**-116 to 2**118"),
        ("rsqrt", (2.0**-87, 1.0), (2.0**-88, 2.0**98), "from 2**-87 to 2**97"),
        ("reciprocal", (-(2.0**42), 2.0**-42), (0.0, -(2.0**43)), "from 2**-42 to 2**42"),
        ("exp", (-1e30, 80.0), (), ""),
    ],
)
def test_functions_outside_of_their_range(
    op: str, good: tuple[float, ...], bad: tuple[float, ...], text: str
) -> None:
    body = f"nisa.activation(dst=y, op=nl.{op}, data=x)"
    inside = ONES.copy()
    inside[0, : len(good)] = good
    inside[5, 5] = np.nan
    assert said(ran(body, inside)) == []
    inside[127, 64 - len(bad) :] = bad
    found = said(ran(body, inside))
    assert [(slug, line) for slug, line, _ in found] == [("outside-valid-range", FIRST)] * bool(bad)
    for _, _, message in found:
        assert message.startswith(f"activation: {len(bad)} elements are outside the range")
        assert text in message
        assert message.endswith(f"the first is {bad[0]:.8g}")


def test_what_the_function_gets_counts_not_the_data() -> None:
    assert said(ran("nisa.activation(dst=y, op=nl.log, data=x, scale=-1.0)"))[0][2].startswith(
        "activation: 8,192 elements"
    )
    shifted = "nisa.activation(dst=y, op=nl.sin, data=x, scale=100.0, bias=-99.0)"
    assert said(ran(shifted)) == []


def test_a_line_is_remarked_on_once_with_a_count() -> None:
    body = "for i in range(3):\n    nisa.activation(dst=y, op=nl.log, data=x)"
    (found,) = ran(body, -ONES).remarks
    assert found.level is Level.REMARK
    assert found.notes == ("3 executions of this line, 24,576 in all",)
    two = "nisa.activation(dst=y, op=nl.log, data=x)\n" * 2
    assert [line for _, line, _ in said(ran(two, -ONES))] == [FIRST, FIRST + 1]


def test_the_line_is_the_kernels_and_the_librarys_is_a_note() -> None:
    (found,) = ran("nisa.tensor_copy(dst=y, src=nl.log(x))", -ONES).remarks
    assert line_of(found) == FIRST
    (inside,) = found.labels
    assert inside.span.path.startswith("<nkic.stdlib>/")
    assert inside.text == "this is the instruction"


# ---- indices ---------------------------------------------------------------------------------


def test_indices_that_are_clamped() -> None:
    places = np.tile(np.arange(64, dtype=np.uint32), (128, 1))
    body = """
i = nl.ndarray((128, 64), dtype=nl.uint32, buffer=nl.sbuf)
nisa.dma_copy(dst=i, src=places)
nisa.nc_n_gather(dst=y, data=x, indices=i)"""
    assert said(ran(body, places=places)) == []
    places[7, 3:5] = (64, 1000)
    text = "nc_n_gather: 2 indices are beyond 63, the last element; the first is 64"
    assert said(ran(body, places=places)) == [("index-clamped", FIRST + 2, text)]


def test_local_indices_that_are_clamped() -> None:
    places = np.zeros((128, 4), np.uint16)
    body = """
i = nl.ndarray((128, 4), dtype=nl.uint16, buffer=nl.sbuf)
nisa.dma_copy(dst=i, src=places)
nisa.local_gather(dst=y, src_buffer=x, index=i)"""
    assert said(ran(body, places=places)) == []
    places[20, 2] = 64
    assert said(ran(body, places=places))[0][2].startswith("local_gather: 1 index is beyond 63")


# ---- reduce registers ------------------------------------------------------------------------

SUM = "nisa.activation(dst=y, op=nl.copy, data=x, reduce_op=nl.add{more})"
RESET = SUM.format(more=", reduce_cmd=nisa.reduce_cmd.reset_reduce")
HALF = RESET.replace("dst=y, ", "dst=y[0:64], ").replace("data=x", "data=x[0:64]")
ADD = SUM.format(more=", reduce_cmd=nisa.reduce_cmd.reduce, reduce_res=r")
IDLE = SUM.format(more=", reduce_res=r")
FOLD = (
    "nisa.tensor_scalar_reduce(dst=y, data=x, op0=nl.add, operand0=0.0, reduce_op=nl.add, "
    "reduce_res=r, reduce_cmd=nisa.reduce_cmd.{command})"
)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (ADD, "activation adds to reduce registers"),
        (IDLE, "activation reads reduce registers"),
        (f"{RESET}\n{ADD}", ""),
        (f"{RESET}\n{IDLE}", ""),
        (
            f"{RESET.replace('data=x', 'data=x[0:64]').replace('dst=y', 'dst=y[0:64]')}\n{ADD}",
            "adds",
        ),
        (FOLD.format(command="reduce"), "tensor_scalar_reduce adds to reduce registers"),
        (f"{FOLD.format(command='reset_reduce')}\n{FOLD.format(command='reduce')}", ""),
        (
            f"{RESET}\n{FOLD.format(command='reduce')}",
            "tensor_scalar_reduce adds",
        ),  # on another engine
    ],
)
def test_reduce_registers_that_nothing_has_set(body: str, text: str) -> None:
    fill = "nisa.memset(dst=y, value=0.0)\n"
    found = said(ran(fill + body))
    assert [slug for slug, _, _ in found] == ["stale-accumulator"] * bool(text)
    assert all(text in message for _, _, message in found)


# ---- accumulation ----------------------------------------------------------------------------

BEGIN = """
w = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)
nisa.memset(dst=w, value=1.0)
p = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.psum)
nisa.{first}
def turn(i):
    nisa.nc_matmul(dst=p, stationary=w, moving=x, accumulate=True)
    nisa.{then}
nl.fori_loop(0, 3, turn)
nisa.tensor_copy(dst=y, src=p)"""
MATMUL = "nc_matmul(dst=p, stationary=w, moving=x, accumulate=False)"


@pytest.mark.parametrize(
    ("first", "then", "target", "times"),
    [
        ("memset(dst=p, value=0.0)", "tensor_copy(dst=y, src=p)", "trn2", 1),
        (MATMUL, "tensor_copy(dst=y, src=p)", "trn2", 0),
        # Only the second iteration accumulates onto it, which the compiler does not detect.
        (MATMUL, "memset(dst=p, value=0.0)", "trn2", 2),
        (MATMUL, "memset(dst=p[:, 60:64], value=0.0)", "trn1", 2),
        ("memset(dst=p, value=0.0)", "memset(dst=p, value=0.0)", "trn3", 0),
    ],
)
def test_matmuls_that_add_to_what_others_wrote(
    first: str, then: str, target: str, times: int
) -> None:
    found = ran(BEGIN.format(first=first, then=then), target=target).remarks
    assert [one.code.slug for one in found] == ["accumulates-onto-data"] * bool(times)
    for one in found:
        assert one.level is Level.WARNING
        assert line_of(one) == FIRST + 5
        assert one.labels[0].text == "memset writes it here"
        assert one.notes == ((f"{times} executions of this line",) if times > 1 else ())


AT_RUN_TIME = """
w = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)
nisa.memset(dst=w, value=1.0)
p = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
{before}
def turn(i):
    {first}
    nisa.nc_matmul(dst=p[:, nl.ds(i, 64)], stationary=w, moving=x, accumulate=True)
nl.fori_loop(0, 128, turn, 64)
nisa.tensor_copy(dst=y, src=p[:, 64:128])"""
OWN = "nisa.nc_matmul(dst=p[:, nl.ds(i, 64)], stationary=w, moving=x, accumulate=False)"
CLEARED = "nisa.memset(dst=p, value=0.0)"


@pytest.mark.parametrize(
    ("before", "first", "times"),
    [
        (CLEARED, "", 2),
        (CLEARED, "nisa.memset(dst=p[:, nl.ds(i, 64)], value=0.0)", 2),
        (CLEARED, OWN, 0),
        # A matmul at a fixed address starts the accumulation group of one iteration only.
        (f"{CLEARED}\nnisa.{MATMUL.replace('dst=p', 'dst=p[:, 0:64]')}", "", 1),
        (f"{CLEARED}\nnisa.{MATMUL.replace('dst=p', 'dst=p[:, 64:128]')}", "", 1),
    ],
)
def test_matmuls_that_add_at_run_time_places(before: str, first: str, times: int) -> None:
    found = ran(AT_RUN_TIME.format(before=before, first=first or "pass")).remarks
    assert [one.code.slug for one in found] == ["accumulates-onto-data"] * bool(times)
    for one in found:
        assert one.labels[0].text == "memset writes it here"
        assert one.notes == ((f"{times} executions of this line",) if times > 1 else ())


def test_a_matmul_that_reads_at_a_run_time_place_adds_at_a_fixed_one() -> None:
    body = AT_RUN_TIME.replace("dst=p[:, nl.ds(i, 64)]", "dst=p[:, 0:64]")
    body = body.replace("moving=x", "moving=w[:, nl.ds(i, 64)]")
    (found,) = ran(body.format(before=CLEARED, first=CLEARED)).remarks
    assert found.notes == ("2 executions of this line",)


# ---- outputs ---------------------------------------------------------------------------------


def without_stores(executable: Executable, kept: int) -> Executable:
    """Remove all transfers into the output after the first `kept`."""
    (output,) = executable.outputs
    seen = 0

    def damaged(item: InstructionRecord | LoopRecord) -> InstructionRecord | LoopRecord:
        nonlocal seen
        if not isinstance(item, InstructionRecord) or item.row is None:
            return item
        seen += getattr(item.operands[0], "tensor", -1) == output.tensor
        lost = getattr(item.operands[0], "tensor", -1) == output.tensor and seen > kept
        return item._replace(row=None, operands=(), attributes=()) if lost else item

    streams = tuple(s._replace(items=tuple(map(damaged, s.items))) for s in executable.streams)
    return replace(executable, streams=streams)


def test_a_store_that_is_lost_is_noticed() -> None:
    body = "nisa.tensor_copy(dst=y, src=x)\nnisa.dma_copy(dst=out[0:64], src=y[0:64])"
    whole = built(body)
    assert simulate(whole, {"a": ONES}).remarks == ()
    (found,) = simulate(without_stores(whole, 1), {"a": ONES}).remarks
    assert found.code.slug == "output-partly-written"
    assert found.message.endswith("not 4,096 of its 8,192 elements, the first at [64, 0]")
    assert line_of(found) == 8
    (found,) = simulate(without_stores(whole, 0), {"a": ONES}).remarks
    assert found.code.slug == "output-not-written"
    (denied,) = apply([found], DEFAULT)
    assert denied.level is Level.ERROR
    assert denied.notes == ("if it is intended, `-W NKI0253` makes it a warning",)


def test_nothing_is_asked_of_results_where_nothing_is_checked() -> None:
    damaged = without_stores(built("nisa.tensor_copy(dst=y, src=x)"), 0)
    assert simulate(damaged, {"a": ONES}, RunOptions(check_init=False)).remarks == ()


def test_rows_that_run_time_decides_are_counted() -> None:
    body = """
nisa.tensor_copy(dst=y, src=x)
i = nl.ndarray((128, 1), dtype=nl.int32, buffer=nl.sbuf)
nisa.dma_copy(dst=i, src=places)
there = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
nisa.dma_copy(dst=there.ap([[64, 128], [1, 64]], vector_offset=i, indirect_dim=0), src=y)"""
    places = np.arange(128, dtype=np.int32)[::-1].reshape(128, 1).copy()
    text = HEAD.replace("return out", "return out, there")
    args = A | {"places": "int32[128,1]"}
    lines = "\n".join(f"    {line}" for line in body.strip().split("\n"))
    source = SourceFile("k.py", text.format(names="a, places", body=lines))
    request = Request(args=dict(parse_arg(f"{n}={k}") for n, k in args.items()))
    executable = read(compile_source(source, request, lambda *_: None).data)
    assert simulate(executable, {"a": ONES, "places": places}).remarks == ()
    places[9] = 3
    (found,) = simulate(executable, {"a": ONES, "places": places}).remarks
    assert "not 64 of its 8,192 elements, the first at [118, 0]" in found.message


# ---- endless loops ---------------------------------------------------------------------------

ENDLESS = """
nisa.tensor_copy(dst=y, src=x)
go = nisa.register_alloc(1)
def body(reg):
    nisa.tensor_copy(dst=y, src=x)
    nisa.register_move(reg, 1)
    return reg
nl.while_loop(go, body)"""


def test_a_loop_without_end_is_ended_where_it_is() -> None:
    with pytest.raises(LimitHit) as caught:
        simulate(built(ENDLESS), {"a": ONES}, RunOptions(max_iterations=20))
    (found,) = caught.value.diagnostics
    assert found.code.slug == "loop-limit"
    assert "has run 20 times and its register is not 0 yet" in found.message
    assert line_of(found) == FIRST + 6


def test_loops_that_the_compiler_counts_are_not_limited() -> None:
    body = "def turn(i):\n    nisa.tensor_copy(dst=y, src=x)\nnl.fori_loop(0, 30, turn)"
    simulate(built(body), {"a": ONES}, RunOptions(max_iterations=20))
