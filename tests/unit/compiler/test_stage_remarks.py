"""Test the remarks of stages on a kernel's lines: nkic --report remarks."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from nkic.base.diagnostics import Kind, Remark
from nkic.base.profiles import Profile
from nkic.base.source import SourceFile
from nkic.compiler.compiled import Compiled, CompileOptions
from nkic.compiler.forms import changes
from nkic.compiler.pipeline import compile_source
from nkic.compiler.remarks import remarks
from nkic.report.resources import as_json, text
from nkic.specialise.inline import parse_arg
from nkic.specialise.request import Request

HEAD = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    out = nl.ndarray((128, 4096), dtype=nl.float32, buffer=nl.shared_hbm)
"""
FIRST = 9  # the line of a body's first line
ITERATIONS = """
for i in range(8):
    x = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a[:, i * 512 : (i + 1) * 512])
    nisa.tensor_tensor(dst=x, data1=x, data2=x, op=nl.add{more})
    nisa.dma_copy(dst=out[:, i * 512 : (i + 1) * 512], src=x)
"""
ON_DEVICE = """
x = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
z = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
for i in nl.dynamic_range(8):
    nisa.memset(dst=z, value=0.0)
    nisa.dma_copy(dst=x, src=a[:, 0:512])
    nisa.tensor_tensor(dst=x, data1=x, data2=z, op=nl.add)
    nisa.dma_copy(dst=out[:, 0:512], src=x)
"""
MIXED = """
for i in range(6):
    x = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    y = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a[:, i * 512 : (i + 1) * 512])
    nisa.activation(dst=y, op=nl.exp, data=x)
    nisa.tensor_tensor(dst=x, data1=x, data2=y, op=nl.add)
    nisa.activation(dst=y, op=nl.tanh, data=x)
    nisa.dma_copy(dst=out[:, i * 512 : (i + 1) * 512], src=y)
"""


Built = tuple[Compiled, list[Remark]]


def built(body: str, profile: Profile = Profile.NKI_0_7, **options: Any) -> Built:
    lines = "\n".join(f"    {line}" for line in body.strip("\n").split("\n"))
    source = SourceFile("k.py", f"{HEAD}{lines}\n    return out\n")
    args = dict([parse_arg("a=float32[128,4096]")])
    request = Request(args=args, profile=profile)
    chosen = CompileOptions(**options)
    compiled = compile_source(source, request, lambda *_: None, chosen)
    return compiled, remarks(compiled, chosen.level)


def only(found: Sequence[Remark], name: str, line: int | None = None) -> Remark:
    (one,) = [o for o in found if o.name == name and line in (None, o.span.line)]
    return one


def test_transfers_are_counted_by_descriptor() -> None:
    _, found = built(ITERATIONS.format(more=""))
    load = only(found, "dma-split", FIRST + 2)
    assert load.kind is Kind.PASSED
    assert load.numbers["transfers"] == 8
    assert load.numbers["moved_bytes"] == 8 * 128 * 512 * 4
    assert load.numbers["row_bytes"] == 2048
    assert load.numbers["descriptors"] == 8 * 128


def test_short_rows_are_missed() -> None:
    body = """
x = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
nisa.dma_copy(dst=x, src=a[:, 0:4096:64])
nisa.dma_copy(dst=out[:, 0:64], src=x)
"""
    _, found = built(body)
    load = only(found, "dma-split", FIRST + 1)
    assert (load.kind, load.numbers["row_bytes"]) == (Kind.MISSED, 4)
    assert load.numbers["descriptors"] == 128 * 64
    assert float(load.numbers["dma_ns"]) > 10 * float(load.numbers["full_rate_ns"])


@pytest.mark.parametrize(
    ("more", "engine", "named", "kind"),
    [
        ("", "DVE", 0, Kind.PASSED),
        (", engine=nisa.engine.gpsimd", "POOL", 1, Kind.MISSED),
        (", engine=nisa.engine.vector", "DVE", 1, Kind.PASSED),
    ],
)
def test_engines(more: str, engine: str, named: int, kind: Kind) -> None:
    _, found = built(ITERATIONS.format(more=more))
    one = only(found, "engine")
    assert (one.span.line, one.kind) == (FIRST + 3, kind)
    assert (one.numbers["engine"], one.numbers["named"]) == (engine, named)
    assert float(one.numbers["pool_ns"]) > float(one.numbers["dve_ns"])


def test_what_waits_for_what() -> None:
    _, found = built(ITERATIONS.format(more=""))
    wait = only(found, "wait", FIRST + 3)
    assert (wait.numbers["edge"], wait.numbers["before_line"]) == ("raw", FIRST + 2)
    assert wait.numbers["engine"] == "DVE"
    assert "it reads what dma_copy writes (raw)" in wait.message
    overlap = only(found, "overlap", FIRST + 3)
    assert float(overlap.numbers["overlapped_ns"]) <= float(overlap.numbers["busy_ns"])


def test_one_buffer_serialises_and_several_do_not() -> None:
    body = ITERATIONS.format(more="").replace("(128, 512), dtype=nl.float32, buffer=nl.sbuf)", "X)")
    hoisted = "x = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)\n" + "\n".join(
        line for line in body.strip().split("\n") if "X)" not in line
    )
    _, one = built(hoisted)
    _, several = built(ITERATIONS.format(more=""))
    false = [o for o in one if o.name == "wait" and o.numbers["edge"] in ("war", "waw")]
    assert [(o.span.line, o.kind) for o in false] == [(FIRST + 2, Kind.MISSED)]
    assert not [o for o in several if o.name == "wait" and o.numbers["edge"] in ("war", "waw")]
    numbers = [only(f, "buffers").numbers["buffers"] for f in (one, several)]
    assert numbers == [1, 8]


@pytest.mark.parametrize("times", [1, 3])
def test_what_accumulates_unasked(times: int) -> None:
    """The first matmul overwrites PSUM, and the following ones accumulate onto it."""
    _, found = built(f"""
held = nl.ndarray((128, 128), dtype=nl.bfloat16, buffer=nl.sbuf)
moving = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
sums = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
nisa.memset(dst=held, value=1.0)
nisa.memset(dst=moving, value=1.0)
for i in range({times}):
    nisa.nc_matmul(dst=sums, stationary=held, moving=moving)
x = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
nisa.tensor_copy(dst=x, src=sums)
nisa.dma_copy(dst=out[:, 0:512], src=x)
""")
    one = only(found, "accumulation")
    assert (one.span.line, one.kind) == (FIRST + 6, Kind.PASSED)
    said = [one.numbers[name] for name in ("instructions", "overwriting", "accumulating", "split")]
    assert said == [times, 1, times - 1, 0]
    assert "in part" not in one.message


def test_a_matmul_into_what_is_written_in_part_becomes_several() -> None:
    _, found = built("""
held = nl.ndarray((128, 128), dtype=nl.bfloat16, buffer=nl.sbuf)
moving = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
sums = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
nisa.memset(dst=held, value=1.0)
nisa.memset(dst=moving, value=1.0)
nisa.nc_matmul(dst=sums[:, 128:256], stationary=held, moving=moving[:, 0:128])
nisa.nc_matmul(dst=sums, stationary=held, moving=moving)
x = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
nisa.tensor_copy(dst=x, src=sums)
nisa.dma_copy(dst=out[:, 0:512], src=x)
""")
    whole, divided = (only(found, "accumulation", FIRST + line) for line in (5, 6))
    names = ("instructions", "overwriting", "accumulating", "split")
    assert [whole.numbers[name] for name in names] == [1, 1, 0, 0]
    assert [divided.numbers[name] for name in names] == [3, 2, 1, 2]
    assert "in part" not in whole.message
    assert divided.message.endswith("1 time; dst was partly written, so 1 became 3")


def test_bytes_that_change_hands() -> None:
    body = (
        ITERATIONS.format(more="").replace("(128, 512)", "(128, 40960)").replace("dst=x,", "dst=V,")
    )
    body = (
        body.replace("src=x)", "src=V)")
        .replace("=x, data2=x,", "=V, data2=V,")
        .replace("V", "x[:, :512]")
    )
    _, found = built(body)
    assert only(found, "buffers").numbers["buffers"] == 1
    reuse = only(found, "reuse")
    assert (reuse.span.line, reuse.numbers["edges"]) == (FIRST + 2, 7)
    assert f"dma_copy of line {FIRST + 4} (7)" in reuse.message
    assert [o for o in found if o.name == "wait" and o.numbers["edge"] == "reuse"]


def test_loads_before_they_are_needed() -> None:
    _, found = built(ITERATIONS.format(more=""))
    early = only(found, "early-load")
    assert (early.span.line, early.kind, early.numbers["loads"]) == (FIRST + 2, Kind.PASSED, 8)
    assert int(early.numbers["overtaken"]) > 7
    assert f"on average {early.numbers['ahead_ns']:,.0f} ns" in early.message


def test_loops_on_the_device() -> None:
    _, found = built(ON_DEVICE, Profile.NKI_0_6)
    loop = only(found, "device-loop")
    assert (loop.span.line, loop.numbers["iterations"], loop.numbers["instructions"]) == (
        FIRST + 2,
        8,
        4,
    )
    same = only(found, "hoist")
    assert (same.span.line, same.kind) == (FIRST + 3, Kind.MISSED)
    assert float(same.numbers["turn_ns"]) > 50


def test_serial_and_in_order() -> None:
    _, found = built(ITERATIONS.format(more=""), serial=True)
    assert [o.name for o in found if o.stage == "schedule"] == ["serial"]
    _, found = built(ITERATIONS.format(more=""), level=0)
    assert not [o for o in found if o.stage == "search" and o.name == "search"]


def test_what_a_search_tried() -> None:
    compiled, found = built(MIXED, level=2)
    one = only(found, "search")
    done = compiled.results["search"].searched
    assert one.numbers["tried"] == len(done.tried) > 0
    assert one.numbers["first_ns"] == done.first_ns >= float(one.numbers["kept_ns"])
    assert float(one.numbers["bound_ns"]) <= float(one.numbers["kept_ns"])


def test_the_plan_of_remarks_is_the_schedule() -> None:
    """Remarks order the program again, with the same result as the stage."""
    for level in (0, 1, 2):
        compiled, found = built(ITERATIONS.format(more=""), level=level)
        busy = [o for o in found if o.name == "overlap"]
        assert sum(int(o.numbers["instructions"]) for o in busy) == 24
        assert (
            max(float(o.numbers["busy_ns"]) for o in busy)
            <= compiled.results["schedule"].estimate_ns
        )


def test_forms() -> None:
    _, found = built(ITERATIONS.format(more=""))
    _, again = built(ITERATIONS.format(more=""))
    assert as_json(found, str) == as_json(again, str)
    rows = json.loads(as_json(found, lambda path: f"here/{path}"))["remarks"]
    assert len(rows) == len(found) == len(text(found, str).splitlines())
    assert {row["kind"] for row in rows} == {"passed", "missed", "analysis"}
    placed = [row for row in rows if row["path"]]
    assert {row["path"] for row in placed} == {"here/k.py"}
    assert [row["line"] for row in placed] == sorted(row["line"] for row in placed)
    assert "k.py:11:9: + lower/dma-split: 8 transfers of 2.0 MiB" in text(found, str)


def test_differences_of_stages() -> None:
    compiled, _ = built(ITERATIONS.format(more=""))
    found = list(changes(compiled))
    heads = [part.splitlines()[:2] for part in found]
    assert heads[0] == ["--- after specialise", "+++ after lower"]
    assert [head[1] for head in heads][:3] == [
        f"+++ after {s}" for s in ("lower", "allocate", "schedule")
    ]
    assert "-  #0 any dma_copy" not in found[1]
    moved = [line for line in found[1].splitlines() if line[0] in "+-" and line[1] == "%"]
    assert moved and all(" at (0, " in line for line in moved if line[0] == "+")


def test_a_stage_that_changes_nothing_is_quiet() -> None:
    compiled, _ = built(ITERATIONS.format(more=""), level=0)
    assert "after search" not in "".join(changes(compiled))
