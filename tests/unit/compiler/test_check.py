"""Test the bounds of views, and operands that share elements, by naming every element; and the
advice on operands that do not fit, as a page.
"""

from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random

import pytest

from nkic.base.diagnostics import Diagnostic, Level, Reporter
from nkic.base.source import NOWHERE, CallChain
from nkic.compiler.check import find_shared_elements, out_of_bounds
from nkic.machine.dtypes import DTYPES
from nkic.machine.patterns import Dims
from nkic.machine.targets import Buffer
from nkic.program.program import AccessPattern, Instruction, Program, Tensor, View
from tests.harness.bless import compare_file
from tests.harness.kernels import compile_text
from tests.programs import copy, declare, load, program

AT = CallChain(NOWHERE)


def numbers(offset: int, dims: Dims) -> list[int]:
    """Return the elements of a pattern in order."""
    walks = [[step * i for i in range(num)] for step, num in dims]
    return [offset + sum(at) for at in product(*walks)]


# ---- Bounds ----


def wrong_of(view: View) -> str:
    """Return what is wrong with the elements of a view, by naming them all."""
    tensor, pitch = view.tensor, view.pitch
    if not tensor.on_chip:
        elements = numbers(view.offset, tuple(zip(view.strides, view.shape, strict=True)))
        if min(elements) < 0:
            return f"begins at element {min(elements)}, before the first"
        if max(elements) >= pitch:
            return f"reaches element {max(elements)}; there are {pitch}, up to {pitch - 1},"
        return ""
    if view.shape[0] > 1 and view.strides[0] != pitch:
        step = view.strides[0]
        return f"walks partitions with step {step}; the step must be the {pitch} elements per"
    if view.offset < 0:
        return f"begins at element {view.offset}, before the first"
    last = view.offset // pitch + view.shape[0] - 1
    if last >= tensor.shape[0]:
        return f"reaches partition {last}; there are {tensor.shape[0]}, from 0,"
    free = numbers(view.offset % pitch, tuple(zip(view.strides, view.shape, strict=True))[1:])
    if min(free) < 0:
        return f"begins at element {min(free)} of a partition, before the first"
    if max(free) >= pitch:
        end = f"there are {pitch}, up to {pitch - 1},"
        return f"reaches element {max(free)} of a partition; {end}"
    return ""


@pytest.mark.parametrize("buffer", [Buffer.HBM, Buffer.SBUF])
def test_a_view_is_inside_if_all_its_elements_are(buffer: Buffer) -> None:
    draw, found = Random(7), Counter[str]()
    for _ in range(3000):
        tensor = Tensor(0, "t", DTYPES["float32"], (4, draw.choice([6, 8])), buffer, AT)
        dtype = DTYPES[draw.choice(["float32", "float32", "float16"])]
        pitch = tensor.bytes // dtype.size
        rank = draw.randrange(1, 4) + buffer.on_chip
        shape = tuple(draw.randrange(1, 5) for _ in range(rank))
        strides = [draw.randrange(-2, 6) for _ in range(rank)]
        if buffer.on_chip and draw.random() < 0.9:
            strides[0] = pitch
        offset = draw.randrange(-2, 4 * pitch)
        view = View(tensor, shape, tuple(strides), offset, dtype)
        expected, violation = wrong_of(view), out_of_bounds(view, "dma_copy", "src")
        found[" ".join(expected.split()[:2])] += 1
        assert (violation is None) == (expected == ""), view
        if violation is not None:
            assert f"`src` {expected}" in violation.message, view
    assert min(found.values()) >= 75 and len(found) == (5 if buffer.on_chip else 3), found


# ---- Operands that share elements ----

SBUF = [declare(0, "a", "8, 32"), declare(1, "b", "8, 32")]
TEXT = "\n".join([*SBUF, "core", "  " + copy(0, "%0[0+8, 0; 1x32]", "%1[0+8, 0; 1x32]")])
IN_HBM = "\n".join(
    [
        *(declare(number, name, "8, 32", Buffer.HBM) for number, name in enumerate("ab")),
        "core",
        "  " + load(0, "%0[0; 1x256]", "%1[0; 1x256]"),
    ]
)


def with_operands(found: Program, *operands: AccessPattern) -> Program:
    (instruction,) = found.cores[0]
    assert isinstance(instruction, Instruction)
    return replace(found, cores=((instruction._replace(operands=operands),),))


def said(found: Program) -> list[tuple[str, str]]:
    report = Reporter()
    find_shared_elements(found, report)
    return [(one.code.slug, one.message) for one in report.all]


def bytes_of(pattern: AccessPattern) -> set[tuple[int, int]]:
    size = pattern.dtype.size
    rows = range(pattern.start, pattern.start + max(1, pattern.partitions))
    first = [number * size for number in numbers(pattern.offset, pattern.dims)]
    return {(row, byte + i) for row in rows for byte in first for i in range(size)}


def expected_of(dst: AccessPattern, src: AccessPattern) -> str | None:
    """Return the code of the warning, "" if there is none, or None where either is right."""
    to, by = numbers(dst.offset, dst.dims), numbers(src.offset, src.dims)
    places: dict[int, set[int]] = {}
    for place, element in zip(to, by, strict=True):
        places.setdefault(place, set()).add(element)
    if any(len(elements) > 1 for elements in places.values()):
        return "element-written-twice"
    if len(places) < len(to):
        return None  # equal values are written twice: no harm, but it may not be known
    on_chip = dst.tensor.on_chip
    if dst.tensor is not src.tensor or (on_chip and len(set(to)) > len(by) == 1):
        return ""
    is_same = (dst.start, dst.dtype, to) == (src.start, src.dtype, by)
    return "overlapping-operands" if not is_same and bytes_of(dst) & bytes_of(src) else ""


def drawn(draw: Random, tensor: Tensor, nums: list[int], count: int) -> AccessPattern:
    """Return a pattern of these numbers of elements inside a tensor."""
    dtype = DTYPES[draw.choice(["float32", "float32", "float16"])]
    room = tensor.bytes // dtype.size
    while True:
        steps = [draw.choice([0, 1, 1, 2, 3, 4, -1, 6]) for _ in nums]
        dims = tuple(zip(steps, nums, strict=True))
        elements = numbers(0, dims)
        low, high = min(elements), max(elements)
        if high - low < room:
            start = draw.randrange(9 - count) if tensor.on_chip else 0
            offset = draw.randrange(-low, min(room - high, 12 - low))
            return AccessPattern(tensor, dtype, start, count, offset, dims)


@pytest.mark.parametrize("text", [TEXT, IN_HBM], ids=["sbuf", "hbm"])
def test_shared_elements_are_found_by_naming_them(text: str) -> None:
    plain, draw, found = program(text), Random(3), Counter[str | None]()
    for _ in range(1500):
        nums = [draw.randrange(1, 5) for _ in range(draw.randrange(1, 4))]
        count = draw.randrange(1, 5) if plain.tensors[0].on_chip else 0
        dst = drawn(draw, plain.tensors[0], nums, count)
        src = drawn(draw, plain.tensors[draw.random() < 0.2], nums, count)
        expected, given = expected_of(dst, src), said(with_operands(plain, dst, src))
        found[expected] += 1
        if expected is not None:
            assert [slug for slug, _ in given] == ([expected] if expected else []), (dst, src)
        if expected == "element-written-twice":
            to = numbers(dst.offset, dst.dims)
            places = "1 place" if len(set(to)) == 1 else f"{len(set(to))} places"
            each = " of each partition" if dst.tensor.on_chip else ""
            assert f"writes {len(to)} elements to {places}{each} of `a`" in given[0][1]
    assert min(found.values()) >= 50 and len(found) == 4, found


# ---- Advice on operands that do not fit ----

PAGE = Path(__file__).parents[2] / "data" / "advice.txt"
KERNEL = """# /// nkic
# nki = "{nki}"
# [args]
# x = "float32[128, 512]"
# w = "float32[512]"
# w1 = "float32[1, 512]"
# w2 = "float32[2, 512]"
# tall = "float32[200, 4]"
# h = "float32[2, 256]"
# h3 = "float32[1, 2, 256]"
# ///
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(x, w, w1, w2, tall, h, h3):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    s = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    p = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    row = nl.ndarray((1, 512), dtype=nl.float32, buffer=nl.sbuf)
    two = nl.ndarray((2, 512), dtype=nl.float32, buffer=nl.sbuf)
    one = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    cube = nl.ndarray((128, 1, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    {body}
    return out
"""
ADD_ROW = "nisa.tensor_tensor(dst=t, data1=t, data2=row, op=nl.add)"
# Calls of nisa: a row among tiles, and where it comes from.
ROWS = [
    *(f"dma_copy(dst=row, src={src}); {ADD_ROW}" for src in ("w", "w1", "w2[1:2]", "w2[1]")),
    f"dma_copy(dst=row, src=w.reshape((1, 512))); {ADD_ROW}",
    f"memset(dst=row, value=1.0); {ADD_ROW}",
    f"dma_copy(dst=row, src=w); nisa.dma_copy(dst=row, src=w1); {ADD_ROW}",
    f"tensor_copy(dst=row, src=t[0:1]); {ADD_ROW}",
    f"dma_copy(dst=row, src=t[0:1]); {ADD_ROW}",
    f"dma_copy(dst=s[0:1], src=w); nisa.memset(dst=row, value=1.0); {ADD_ROW}",
    "nc_matmul(dst=p, stationary=row[:, 0:128], moving=t)",
    "tensor_scalar(dst=t, data=t, op0=nl.add, operand0=row[:, 0:1])",
    # Not the first column of a row: which number for all is meant must not be lost.
    *(
        f"tensor_scalar(dst=t, data=t, op0=nl.add, operand0={number})"
        for number in ("row[:, 5:6]", "s[0:1, 0:1]", "two[0:1, 0:1]")
    ),
    "tensor_scalar(dst=t, data=t, op0=nl.add, operand0=row.view(nl.bfloat16)[:, 0:1])",
    f"dma_copy(dst=two, src=w2); {ADD_ROW.replace('row', 'two[0:1]')}",
    f"dma_copy(dst=row[:, 0:256], src=h[0:1]); {ADD_ROW}",
    "tensor_copy(dst=row, src=t)",
    "tensor_copy(dst=two, src=t)",
    "tensor_tensor(dst=t, data1=t, data2=two, op=nl.add)",
    "activation(dst=t, data=t, op=nl.exp, bias=two[:, 0:1])",
]
ELEMENTS = [
    *(f"dma_copy(dst=t, src={src})" for src in ("w", "w1", "w2", "w2[0:1]", "h", "h3")),
    *(f"dma_copy(dst=t, src={src})" for src in ("one", "one[0:64]")),
    *(f"dma_copy(dst=out, src={src})" for src in ("w", "t[0:1]", "one")),
    "tensor_copy(dst=t, src=one)",
    "tensor_copy(dst=t, src=cube)",
    "tensor_tensor(dst=t, data1=t, data2=one, op=nl.add)",
    "tensor_tensor(dst=t, data1=one, data2=t, op=nl.subtract)",
    "tensor_tensor(dst=t, data1=t, data2=one.view(nl.int32), op=nl.add)",
    *(
        f"tensor_tensor(dst=t.view(nl.int32), data1=t.view(nl.int32), data2={column}, op=nl.{op})"
        for column, op in (
            ("one.view(nl.int32)", "bitwise_and"),
            ("one.view(nl.int32)", "add"),
        )
    ),
    "tensor_tensor(dst=t, data1=t, data2=t[:, 0:2], op=nl.add)",
    "tensor_copy(dst=one, src=t)",
    "nc_matmul(dst=p[:, 0:64], stationary=t[:, 0:128], moving=t)",
    "nc_matmul(dst=p[0:64], stationary=t[:, 0:128], moving=t)",
    "tensor_reduce(dst=t[:, 0:2], op=nl.add, data=t, axis=1)",
]
COLUMNS = [
    "activation(dst=t, data=s, op=nl.exp, bias=t)",
    "activation(dst=t, data=s, op=nl.exp, bias=t, scale=2.0)",
    "activation(dst=t, data=s, op=nl.exp, bias=one, scale=t)",
    "activation(dst=t, data=s, op=nl.exp, bias=t[:, 0:2])",
    "dma_copy(dst=row, src=w); nisa.activation(dst=t, data=s, op=nl.exp, bias=row)",
    "dma_copy(dst=row, src=w); nisa.tensor_scalar(dst=t, data=s, op0=nl.add, operand0=row)",
    "tensor_scalar(dst=p, data=s, op0=nl.add, operand0=t)",
    "tensor_scalar(dst=p, data=s, op0=nl.subtract, operand0=t, reverse0=True)",
    "tensor_scalar(dst=p, data=s, op0=nl.rsqrt, operand0=t)",
    "tensor_scalar(dst=p, data=s, op0=nl.add, operand0=t, op1=nl.multiply, operand1=2.0)",
    "tensor_scalar(dst=p, data=s, op0=nl.add, operand0=2.0, op1=nl.multiply, operand1=t)",
    "tensor_tensor_scan(dst=t, data0=t, data1=t, initial=t, op0=nl.add, op1=nl.add)",
]
MEMORIES = [
    *(f"tensor_copy(dst=t, src={src})" for src in ("x", "tall", "w", "w1")),
    "tensor_copy(dst=t[:, 0:4], src=tall[0:128])",
    "tensor_copy(dst=t[:, 0:4], src=tall[0:129])",
    "tensor_copy(dst=out, src=t)",
    "nc_matmul(dst=s, stationary=t[:, 0:128], moving=t); nisa.tensor_copy(dst=t, src=s)",
    "nc_matmul(dst=s, stationary=t[:, 0:128], moving=t); nisa.dma_copy(dst=out, src=s)",
    "nc_matmul(dst=p, stationary=p[:, 0:128], moving=t)",
    "nc_transpose(dst=t[:, 0:128], data=t[:, 0:128], engine=nisa.tensor_engine)",
    "nc_transpose(dst=t[0:32, 0:32], data=t[0:32, 0:32], engine=nisa.tensor_engine)",
    "nc_transpose(dst=s[:, 0:33], data=t[0:33, :], engine=nisa.tensor_engine)",
    "iota(dst=p, pattern=[[1, 512]], offset=0, channel_multiplier=0)",
]
OLD = [
    (nki, text)
    for nki in ("0.4", "0.5")
    for text in (
        ROWS[0],
        "dma_copy(dst=t, src=w1)",
        "tensor_copy(dst=t, src=one)",
        "tensor_copy(dst=t, src=w)",
    )
]


def errors(body: str, nki: str = "0.7") -> list[Diagnostic]:
    found = compile_text(KERNEL.format(nki=nki, body=body))
    return [one for one in found if one.level is Level.ERROR]


def test_the_advice_on_operands_that_do_not_fit() -> None:
    lines = []
    for nki, text in [("0.7", text) for text in (*ROWS, *ELEMENTS, *COLUMNS, *MEMORIES)] + OLD:
        lines.append(f"{nki}: nisa.{text}")
        for one in errors(f"nisa.{text}", nki):
            lines += [f"  {one.code.slug}: {one.message}", f"    {one.help}"]
    compare_file(PAGE, "\n".join([*lines, ""]))


def test_a_number_at_a_run_time_place_is_not_told_to_be_a_row() -> None:
    call = "nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=row[:, nl.ds(i, 1)])"
    loop = f"nl.fori_loop(0, 4, lambda i: {call})"
    (found,) = errors(f"nisa.memset(dst=row, value=1.0); {loop}")
    assert found.help == "repeat it in all 128 partitions: `nl.broadcast_to(row[…], (128, 1))`"


# ---- What is said beside it ----


def test_an_instruction_of_unrolled_loops_is_numbered() -> None:
    copied = "nisa.tensor_copy(dst=s[:, 0:4], src=t.ap([[512, 128], [1, 4]], offset={}))"
    body = "for i in range(4):\n        " + copied.format("508 + max(0, i - 1)")
    (found,) = errors(body)
    note = "this is instruction 3 of the 4 that unrolled loops make of this line"
    assert note in found.notes and found.count == 2
    (found,) = errors(body.replace("508", "509"))
    assert found.notes == () and found.count == 4


@pytest.mark.parametrize(
    ("body", "label"),
    [
        (
            "dma_copy(dst=t, src=x.ap([[512, 128], [1, 512]], vector_offset=one, indirect_dim=0))",
            "`one` is float32[128, 1] in sbuf",
        ),
        ("tensor_copy(dst=t, src=tall)", "`tall` is float32[200, 4] in shared_hbm"),
    ],
)
def test_the_declaration_is_that_of_what_is_wrong(body: str, label: str) -> None:
    assert [one.labels[0].text for one in errors(f"nisa.{body}")] == [label]


def test_what_an_offset_is_read_from_is_no_operand_that_overlaps() -> None:
    body = """i = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.memset(dst=i, value=0)
    moved = t.ap([[512, 128], [1, 8]], scalar_offset=i, indirect_dim=1)
    nisa.tensor_copy(dst=t[:, 0:8], src=moved)
    nisa.dma_copy(dst=out, src=t)"""
    assert not [
        one.code.slug
        for one in compile_text(KERNEL.format(nki="0.7", body=body))
        if "overlap" in one.code.slug
    ]


@pytest.mark.parametrize(("num", "slugs"), [(256, ["element-written-twice"]), (257, [])])
def test_long_patterns_are_not_looked_at(num: int, slugs: list[str]) -> None:
    plain = program(TEXT)
    dims = (((0, 256), (0, num)), ((0, 256 * num), (1, 1)))
    dst, src = (
        AccessPattern(t, t.dtype, 0, 8, 0, d) for t, d in zip(plain.tensors, dims, strict=True)
    )
    assert [slug for slug, _ in said(with_operands(plain, dst, src))] == slugs


@pytest.mark.parametrize(("num", "slugs"), [(65536, ["overlapping-operands"]), (65537, [])])
def test_many_pieces_are_not_looked_at(num: int, slugs: list[str]) -> None:
    plain = program(IN_HBM.replace("8, 32", "8, 20000"))
    (tensor, _) = plain.tensors
    dst, src = (AccessPattern(tensor, tensor.dtype, 0, 0, at, ((2, num),)) for at in (0, 2))
    assert [slug for slug, _ in said(with_operands(plain, dst, src))] == slugs
