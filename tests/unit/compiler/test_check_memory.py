"""Test the checks of memory where they begin and end: banks of PSUM, accumulation, reads of
uninitialised bytes, and where cores meet.
"""

from itertools import product
from random import Random

import pytest

from nkic.base.diagnostics import Diagnostic, Reporter
from nkic.compiler.check_memory import check_rendezvous, find_banks, first_hole
from nkic.machine.targets import Buffer
from nkic.program.overlap import Box
from tests.harness.kernels import compile_text
from tests.programs import declare, op, program

TEXT = """# /// nkic
# [args]
# a = "float32[128, 512]"
# n = "int32[1, 1]"
# ///
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a, n):
    t = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    u = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    p = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    c = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=c, src=n)
    some = nisa.register_alloc(4)
    nisa.register_load(some, c)
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=u, src=a)
    w = u[:, 0:128]
    {body}
    nisa.dma_copy(dst=out, src=u)
    return out
"""


def said(body: str, *slugs: str) -> list[Diagnostic]:
    found = compile_text(TEXT.format(body="\n    ".join(body.split("; "))))
    return [one for one in found if one.code.slug in slugs]


# ---- Banks of PSUM ----


@pytest.mark.parametrize(("byte", "wrong"), [(0, False), (1024, True), (2048, False), (2052, True)])
def test_a_result_crosses_banks_at_its_address(byte: int, wrong: bool) -> None:
    lines = [
        declare(0, "w", "128, 128", more=" at (0, 0)"),
        declare(1, "x", "128, 512", more=" at (0, 512)"),
        declare(2, "p", "128, 512", Buffer.PSUM, more=f" at (0, {byte})"),
        "core",
    ]
    for number in range(2):
        values = {"dst": "%2[0+128, 0; 1x512]", "stationary": "%0[0+128, 0; 1x128]"}
        values |= {"moving": "%1[0+128, 0; 1x512]"}
        lines.append(op(number, "nc_matmul", "tensor", **values))
    lines.append(op(2, "tensor_copy", dst="%1[0+128, 0; 1x512]", src="%2[0+128, 0; 1x512]"))
    report = Reporter()
    find_banks(program("\n".join(lines)), report)
    assert [one.code.slug for one in report.all] == ["psum-bank"] * 2 * wrong
    for one in report.all:
        assert f"`dst` covers bytes {byte:,} to {byte + 2048:,} of each partition" in one.message
        assert one.labels[0].text == f"`p` is float32[128, 512], from byte {byte:,} on"
        assert one.help.endswith("`p` has the columns of a bank at multiples of 512")


# ---- Accumulation onto what another instruction wrote ----

ADD = "nisa.nc_matmul(dst=p, stationary=w, moving=u, accumulate=True)"
MOVED = "nisa.nc_matmul(dst=p[:, nl.ds(some, 64)], stationary=w, moving=u[:, 0:64], accumulate={})"


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (f"nisa.memset(p, 0); {ADD}", 1),
        (f"nisa.memset(p[:, 511:512], 0); {ADD}", 1),
        (f"nisa.memset(p[64:128], 0); {ADD}", 1),
        (f"nisa.memset(p, 0); {ADD}; {ADD}", 1),
        (f"nisa.memset(p[:, 0:512:2], 0); {ADD}", 0),  # it may have written none of the bytes
        # It reads what another instruction writes in part.
        (f"nisa.memset(p[:, 0:4], 0); {ADD}; nisa.tensor_copy(dst=t, src=p); {ADD}", 1),
        (f"nisa.memset(p, 0); {MOVED.format(True)}", 1),
        (f"nisa.memset(p, 0); {MOVED.format(False)}; {ADD}", 0),
        (f"nisa.memset(p[:, 0:511], 0); {MOVED.format(True)}", 0),  # the rest may be meant
        (f"nisa.tensor_copy(dst=p[:, nl.ds(some, 64)], src=u[:, 0:64]); {ADD}", 0),
    ],
)
def test_what_a_matmul_adds_to(body: str, count: int) -> None:
    body += "; nisa.tensor_copy(dst=u, src=p)"
    lines = [label for one in said(body, "accumulates-onto-data") for label in one.labels]
    assert len(lines) == count


# ---- Reads of registers and of bytes that nothing has set ----


def test_a_loop_reads_its_registers() -> None:
    body = "n = nisa.register_alloc(); nl.fori_loop(0, n, lambda i: nisa.memset(t, 0))"
    (found,) = said(body, "unset-register")
    assert found.message == "the loop reads a register that nothing has set"
    assert said(body.replace("alloc()", "alloc(3)"), "unset-register") == []


def cells(area: Box) -> set[tuple[int, ...]]:
    return set(product(*(range(low, high) for low, high in area)))


def test_the_first_hole_is_the_first_uncovered_element() -> None:
    draw, holes = Random(5), 0
    for _ in range(400):
        size, sizes = (
            draw.choice([1, 2, 4]),
            [draw.randrange(1, 5) for _ in range(draw.randrange(1, 4))],
        )

        def box(sizes: list[int] = sizes, size: int = size) -> Box:
            found = []
            for axis, length in enumerate(sizes):
                low = draw.randrange(length)
                unit = size if axis == len(sizes) - 1 else 1
                found.append((low * unit, draw.randrange(low + 1, length + 1) * unit))
            return tuple(found)

        area, boxes = box(), [box() for _ in range(draw.randrange(5))]
        left = cells(area) - set().union(*map(cells, boxes))
        hole = first_hole(area, boxes, size)
        assert (hole is None) == (not left)
        if hole is not None:
            ranges = [[int(n) for n in part.split(":")] for part in hole[1:-1].split(", ")]
            ranges[-1] = [end * size for end in ranges[-1]]
            found = cells(tuple((low, high) for low, high in ranges))
            assert found <= left and min(left) in found
            holes += 1
    assert 100 < holes < 350


PART, WHOLE = "read-unwritten", "read-never-written"


@pytest.mark.parametrize(
    ("body", "slug"),
    [
        ("nisa.memset(t[0:64], 0); nisa.tensor_copy(u[0:64], t[64:128])", WHOLE),
        ("nisa.memset(t[64:128], 0); nisa.tensor_copy(u[0:64], t[0:64])", WHOLE),
        ("nisa.memset(t[:, 0:256], 0); nisa.tensor_copy(u[:, 0:256], t[:, 256:512])", WHOLE),
        ("nisa.memset(t[:, 256:512], 0); nisa.tensor_copy(u[:, 0:256], t[:, 0:256])", WHOLE),
        ("nisa.memset(t[0:32, 0:1], 0); nisa.tensor_copy(u[0:32, 0:2], t[32:64, 0:2])", WHOLE),
        ("nisa.memset(t[0:64], 0); nisa.tensor_copy(u, t)", PART),
        ("nisa.memset(t[32:64], 0); nisa.tensor_copy(u, t)", PART),
        ("nisa.memset(t[:, 1:512], 0); nisa.tensor_copy(u, t)", PART),
        ("nisa.memset(t[:, 0:129], 0); nisa.tensor_copy(u, t)", PART),
        ("nisa.memset(t[:, 0:256], 0); nisa.tensor_copy(u[:, 0:256], t[:, 0:512:2])", ""),
        ("nisa.memset(t[:, 0:256], 0); nisa.tensor_copy(u[:, 0:64], t[:, nl.ds(some, 64)])", ""),
        (
            "for c in range(256):\n        nisa.memset(t[:, c : c + 1], 0); nisa.tensor_copy(u, t)",
            PART,
        ),
        (
            "for c in range(257):\n        nisa.memset(t[:, c : c + 1], 0); nisa.tensor_copy(u, t)",
            "",
        ),
    ],
)
def test_what_is_read_before_it_is_written(body: str, slug: str) -> None:
    found = said(f"{body}; nisa.memset(u, 0)", PART, WHOLE)  # what is copied has no effect
    assert [one.code.slug for one in found] == ([slug] if slug else [])


@pytest.mark.parametrize(
    ("body", "end"),
    [
        ("nisa.tensor_copy(t, u)", "which nothing reads"),
        (
            "nisa.tensor_copy(t, u); nisa.tensor_scalar(t, u, nl.add, 1.0); nisa.tensor_copy(u, t)",
            "which tensor_scalar overwrites before anything has read it",
        ),
    ],
)
def test_what_nothing_reads(body: str, end: str) -> None:
    (found,) = said(body, "result-not-read")
    assert found.message == f"tensor_copy writes `t`, {end}"


# ---- Where cores meet ----


def barrier(number: int, tensor: int = 0) -> str:
    return op(
        number, "core_barrier", "gpsimd", data=f"%{tensor}{{0; (8, 32); (32, 1)}}", cores="(0, 1)"
    )


@pytest.mark.parametrize(
    ("first", "second", "label", "help"),
    [
        (barrier(0), "", [], "let both cores reach the same rendezvous in the same order"),
        (
            barrier(0),
            barrier(0, 1),
            ["core 1 is at core_barrier"],
            "pass the same tensor on both cores",
        ),
        (
            f"{barrier(0)}\n  {barrier(1)}",
            barrier(0),
            ["core 1 was last at core_barrier"],
            "let both cores reach the same rendezvous in the same order",
        ),
    ],
)
def test_cores_that_do_not_meet(first: str, second: str, label: list[str], help: str) -> None:
    tensors = "%0 a: float32[8, 32] hbm\n%1 b: float32[8, 32] hbm"
    report = Reporter()
    check_rendezvous(program(f"{tensors}\ncore\n  {first}\ncore\n  {second}"), report)
    (found,) = report.all
    assert [one.text for one in found.labels] == label
    assert found.help == help
