"""Test the proof of lower: each kind of change to its result is found, and only such a change."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from itertools import product
from random import Random
from typing import Any

import pytest

from nkic.base.source import NOWHERE, CallChain, SourceFile
from nkic.compiler import lower
from nkic.compiler.compiled import CompileOptions
from nkic.compiler.pipeline import AuditFailed, compile_source
from nkic.machine.dtypes import DTYPES
from nkic.machine.operands import Register
from nkic.machine.targets import Buffer, Engine
from nkic.program.program import AccessPattern, Body, Dynamic, Program, Tensor, View
from nkic.prove import prove_lowered
from nkic.prove.lowered import Proven, bytes_of
from nkic.specialise.inline import parse_arg
from nkic.specialise.request import Request

KERNEL = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a, b):
    x = nl.ndarray((16, 128), nl.float32, nl.sbuf)
    y = nl.ndarray((16, 4, 16), nl.float32, nl.sbuf)
    n = nl.ndarray((16, 4), nl.int32, nl.sbuf)
    p = nl.ndarray((128, 4, 16), nl.float32, nl.psum)
    q = nl.ndarray((128, 4, 16), nl.float32, nl.psum)
    t = nl.ndarray((128, 4, 16), nl.float32, nl.sbuf)
    out = nl.ndarray((128, 4, 16), nl.float32, nl.shared_hbm)
    twos = nl.ndarray((16, 4), nl.int32, nl.shared_hbm)
    nisa.dma_copy(dst=x, src=a)
    nisa.dma_copy(dst=y, src=b)
    nisa.tensor_scalar(dst=y[:, 0:3, 0:12:2], data=y[:, 1:4, 1:13:2], op0=nl.add, operand0=0.0)
    nisa.memset(n, value=1)
    nisa.tensor_tensor(dst=n, data1=n, data2=n, op=nl.add)
    nisa.nc_matmul(p[:, :, 0:8], x, y[:, :, 0:8])
    nisa.nc_matmul(p, x, y)
    nisa.nc_matmul(p, x, y)
    nisa.nc_matmul(q, x, y, accumulate=False)

    def body(i):
        nisa.nc_matmul(q, x, y)
        nisa.tensor_copy(dst=t[:, :, nl.ds(i, 1)], src=p[:, :, nl.ds(i, 1)])
        nisa.tensor_tensor(dst=t, data1=t, data2=q, op=nl.add)

    nl.fori_loop(0, 16, body)
    nisa.dma_copy(dst=twos, src=n)
    nisa.dma_copy(dst=out, src=t)
    return out, twos
"""
COPY, SCALE, MEMSET, INTS, FIRST, PARTS, WHOLE, GIVEN = 1, 2, 3, 4, 5, 6, 14, 15
LOOP, LAST = 16, 18  # the second matmul became eight, for the halves of four rows


@lru_cache
def made() -> tuple[Program, Program]:
    """Return the program before and after lower."""
    args = dict(parse_arg(word) for word in ("a=float32[16,128]", "b=float32[16,4,16]"))
    source, options = SourceFile("k.py", KERNEL), CompileOptions(last="lower-audit")
    found = compile_source(source, Request(args=args), lambda *_: None, options).results
    return found["specialise"], found["lower"]


PAIRS = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a, b):
    x = nl.ndarray((128, 2, 64), nl.float8_e4m3, nl.sbuf)
    y = nl.ndarray((128, 2, 128), nl.float8_e4m3, nl.sbuf)
    p = nl.ndarray((64, 128), nl.float32, nl.psum)
    t = nl.ndarray((64, 128), nl.float32, nl.sbuf)
    out = nl.ndarray((64, 128), nl.float32, nl.shared_hbm)
    nisa.dma_copy(dst=x, src=a)
    nisa.dma_copy(dst=y, src=b)
    mode = nisa.matmul_perf_mode.double_row
    nisa.nc_matmul(p[:, 0:48], x, y[:, :, 0:48], perf_mode=mode)
    nisa.nc_matmul(p, x, y, perf_mode=mode)
    nisa.tensor_copy(t, p)
    nisa.dma_copy(dst=out, src=t)
    return out
"""


def test_the_parts_of_a_product_of_pairs_have_columns_of_both() -> None:
    args = dict(parse_arg(word) for word in ("a=float8_e4m3[128,2,64]", "b=float8_e4m3[128,2,128]"))
    source, options = SourceFile("k.py", PAIRS), CompileOptions(last="lower-audit")
    found = compile_source(source, Request(args=args), lambda *_: None, options).results
    recorded, lowered = found["specialise"], found["lower"]
    assert prove_lowered(recorded, lowered) == []
    body = list(lowered.cores[0])
    parts = [at for at, one in enumerate(body) if one.row.name == "nc_matmul"][1:]
    assert [body[at].attribute("accumulate") for at in parts] == [True, False]
    for at in parts:
        moving = body[at].operand("moving")
        (pair, two), (one, count) = moving.dims
        for dims, offset in (
            (((pair - 1, two), (one, count)), moving.offset),  # other columns of the second half
            (((one, count), (pair, two)), moving.offset),
            (moving.dims, moving.offset + 1),
            (((pair, two), (one, count - 1)), moving.offset),
            (((one, two * count),), moving.offset),
        ):
            other = moving._replace(dims=dims, offset=offset)
            index = body[at].row.operand_index["moving"]
            operands = (*body[at].operands[:index], other, *body[at].operands[index + 1 :])
            wrong = [*body[:at], body[at]._replace(operands=operands), *body[at + 1 :]]
            (finding,) = prove_lowered(recorded, replace(lowered, cores=(tuple(wrong),)))
            assert "nc_matmul" in finding.what


def edited(edit: Callable[[Any], Body]) -> str:
    """Return what is found in the lowered program with another body."""
    recorded, lowered = made()
    findings = prove_lowered(recorded, replace(lowered, cores=(edit(lowered.cores[0]),)))
    assert all(finding.rule == "lowered" for finding in findings)
    return "; ".join(finding.what for finding in findings)


def with_fields(at: int, **fields: Any) -> str:
    return edited(lambda body: (*body[:at], body[at]._replace(**fields), *body[at + 1 :]))


def with_operand(at: int, name: str, change: Callable[[Any], Any]) -> str:
    """Return what is found with another operand in one instruction, or in the loop's second one."""

    def edit(body: Any) -> Body:
        if at == LOOP:
            inside = body[at].body
            loop = replace(body[at], body=(inside[0], with_new(inside[1]), *inside[2:]))
            return (*body[:at], loop, *body[at + 1 :])
        return (*body[:at], with_new(body[at]), *body[at + 1 :])

    def with_new(one: Any) -> Any:
        index = one.row.operand_index[name]
        operands = one.operands
        new = (*operands[:index], change(operands[index]), *operands[index + 1 :])
        return one._replace(operands=new)

    return edited(edit)


def test_the_result_of_lower_is_proven_and_divides_the_sum_that_is_half_new() -> None:
    recorded, lowered = made()
    assert prove_lowered(recorded, lowered) == []
    products: Any = lowered.cores[0][FIRST : GIVEN + 1]
    assert [one.row.name for one in products] == ["nc_matmul"] * 11
    flags = [one.attribute("accumulate") for one in products]
    assert flags == [False, *[True, False] * 4, True, False]
    assert len(recorded.cores[0]) == len(lowered.cores[0]) - 7


@pytest.mark.parametrize(
    ("edit", "what"),
    [
        (lambda b: (*b[:COPY], *b[COPY + 1 :]), "is not in its place"),
        (lambda b: (*b[: COPY + 1], *b[COPY:]), "is not in its place"),
        (lambda b: (*b[:MEMSET], b[INTS], b[MEMSET], *b[INTS + 1 :]), "is not in its place"),
        (lambda b: b[:-1], "dma_copy #13 is not in the lowered program"),
        (lambda b: (*b, b[-1]), "is not in the recorded program"),
        (lambda b: (*b[:LOOP], *b[LOOP + 1 :]), "a loop is not in the lowered program"),
        (
            lambda b: (*b[:LOOP], replace(b[LOOP], stop=15), *b[LOOP + 1 :]),
            "a loop has other iterations",
        ),
        (lambda b: (*b[:LOOP], replace(b[LOOP], body=()), *b[LOOP + 1 :]), "is not in the lowered"),
        (lambda b: (*b[:PARTS], *b[PARTS + 1 :]), "is not in its place"),
        (
            lambda b: (*b[:PARTS], b[PARTS + 1]._replace(number=6), *b[PARTS + 1 :]),
            "parts that are not its own",
        ),
        (lambda b: (*b[:PARTS], b[PARTS + 1], b[PARTS], *b[PARTS + 2 :]), "does not increase"),
        (lambda b: (*b[: PARTS + 1], *b[PARTS:]), "does not increase"),
        (lambda b: b[: WHOLE - 1], "nc_matmul #6 is not complete in the lowered program"),
    ],
)
def test_every_instruction_is_there_once(edit: Callable[[Any], Body], what: str) -> None:
    assert what in edited(edit)


@pytest.mark.parametrize(
    ("at", "fields", "what"),
    [
        (COPY, {"name": "other"}, "another name, region or iteration"),
        (COPY, {"pinned": 1}, "another name, region or iteration"),
        (COPY, {"after": (0,)}, "comes after other instructions"),
        (COPY, {"number": 0}, "a number that does not increase"),
        (COPY, {"engine": Engine.VECTOR}, "is on another engine"),
        (COPY, {"engine": None}, "engine"),
        (INTS, {"engine": Engine.VECTOR}, "an engine that its row does not choose"),
        (SCALE, {"operands": ()}, "another number of operands"),
        (LAST, {"attributes": ()}, "has other attributes"),
    ],
)
def test_place_order_and_engine_are_the_recorded_ones(
    at: int, fields: dict[str, Any], what: str
) -> None:
    assert what in with_fields(at, **fields)


@pytest.mark.parametrize("at", [SCALE, INTS, FIRST, PARTS, WHOLE, GIVEN])
def test_every_attribute_is_the_recorded_one(at: int) -> None:
    one: Any = made()[1].cores[0][at]
    assert one.attributes
    for index, value in enumerate(one.attributes):
        for other in (0.5, not value, float(value) if isinstance(value, int) else None):
            if repr(other) == repr(value):
                continue
            attributes = (*one.attributes[:index], other, *one.attributes[index + 1 :])
            found = with_fields(at, attributes=attributes)
            assert "has other attributes" in found or "adds where it must overwrite" in found


@pytest.mark.parametrize(
    ("at", "name", "change"),
    [
        (SCALE, "operand0", lambda value: -value),
        (SCALE, "operand0", lambda value: 0),
        (SCALE, "operand0", lambda value: None),
        (SCALE, "operand1", lambda value: Register(0)),
        (SCALE, "data", lambda value: 1.0),
        (SCALE, "data", lambda p: p._replace(offset=p.offset - 1)),
        (SCALE, "data", lambda p: p._replace(start=1)),
        (SCALE, "data", lambda p: p._replace(start=1, offset=p.offset - 64)),
        (SCALE, "data", lambda p: p._replace(partitions=8)),
        (SCALE, "data", lambda p: p._replace(dims=p.dims[::-1])),
        (SCALE, "data", lambda p: p._replace(dims=((16, 3), (2, 5)))),
        (SCALE, "data", lambda p: p._replace(dims=((16, 3), (1, 6)))),
        (SCALE, "data", lambda p: p._replace(dims=((16, 3), (-2, 6)), offset=p.offset + 10)),
        (SCALE, "data", lambda p: p._replace(dtype=DTYPES["int32"])),
        (SCALE, "dst", lambda p: p._replace(tensor=made()[1].tensors[0])),
        (COPY, "src", lambda p: p._replace(start=1)),
        (COPY, "src", lambda p: p._replace(partitions=1)),
        (FIRST, "stationary", lambda p: p._replace(dims=((64, 2), (1, 64)))),
        (PARTS, "dst", lambda p: p._replace(offset=p.offset + 1)),
        (PARTS, "dst", lambda p: p._replace(partitions=64)),
        (PARTS, "moving", lambda p: p._replace(offset=p.offset + 8)),
        (PARTS, "stationary", lambda p: p._replace(offset=p.offset + 1)),
        (PARTS + 1, "moving", lambda p: p._replace(start=1)),
        (LOOP, "src", lambda p: p._replace(dynamic=None)),
        (LOOP, "src", lambda p: p._replace(dynamic=p.dynamic._replace(stride=2))),
        (LOOP, "src", lambda p: p._replace(dynamic=p.dynamic._replace(source=Register(7)))),
        (LOOP, "dst", lambda p: p._replace(dynamic=p.dynamic._replace(limit=1))),
    ],
)
def test_every_operand_is_the_recorded_one(
    at: int, name: str, change: Callable[[Any], Any]
) -> None:
    assert with_operand(at, name, change)


def test_another_form_of_a_pattern_is_proven_if_it_keeps_the_order() -> None:
    same, other = ((16, 3), (4, 3), (2, 2)), ((16, 3), (2, 2), (4, 3))
    assert with_operand(SCALE, "data", lambda p: p._replace(dims=same)) == ""
    assert with_operand(SCALE, "data", lambda p: p._replace(dims=other))


def test_what_was_made_outside_a_loop_is_not_overwritten_in_it() -> None:
    """Lower refuses it. With a flag it would be wrong in all iterations but the first."""
    recorded, lowered = made()
    before = recorded.cores[0]
    matmul: Any = lowered.cores[0][GIVEN]
    loop: Any = lowered.cores[0][LOOP]
    flags = loop.body[0]._replace(attributes=matmul.attributes)
    changed: Any = replace(loop, body=(flags, *loop.body[1:]))
    without = replace(recorded, cores=((*before[:8], *before[9:]),))
    body = lowered.cores[0]
    new = replace(lowered, cores=((*body[:GIVEN], changed, *body[LOOP + 1 :]),))
    (finding,) = prove_lowered(without, new)
    assert "overwrites in every iteration what was made outside its loop" in finding.what


def test_other_results_or_cores_are_found() -> None:
    recorded, lowered = made()
    first, second = lowered.outputs
    outputs = (first._replace(tensor=second.tensor), second._replace(tensor=first.tensor))
    for wrong in (replace(lowered, outputs=outputs), replace(lowered, cores=lowered.cores * 2)):
        (finding,) = prove_lowered(recorded, wrong)
        assert finding.rule == "lowered"


def test_an_error_of_lower_ends_every_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    right = lower._CoreLowerer.core

    def wrong(self: Any, body: Body, groups: Any) -> Body:
        return right(self, body, groups)[:-1]

    monkeypatch.setattr(lower._CoreLowerer, "core", wrong)
    made.cache_clear()
    with pytest.raises(AuditFailed, match="lower produced a wrong program: dma_copy #13 is not in"):
        made()


# The elements of patterns, by listing them


def places(dims: Any) -> list[int]:
    return [sum(at) for at in product(*([step * i for i in range(num)] for step, num in dims))]


@pytest.mark.parametrize("buffer", [Buffer.SBUF, Buffer.HBM])
def test_patterns_are_proven_exactly_if_they_list_the_same_elements(buffer: Buffer) -> None:
    rng = Random(str(buffer))
    tensor = Tensor(0, "t", DTYPES["float32"], (4, 200), buffer, CallChain(NOWHERE))
    steps, nums = (0, 1, 2, 4, 6, -1, -2), (1, 2, 2, 3, 4)
    found = set()
    for _ in range(1_500):
        dims, others = (
            tuple((rng.choice(steps), rng.choice(nums)) for _ in range(rng.randint(1, 3)))
            for _ in range(2)
        )
        own = ((200, 2), *dims) if buffer.on_chip else dims
        shape, strides = tuple(num for _, num in own), tuple(step for step, _ in own)
        offset = 200 + 50 if buffer.on_chip else 50
        view = View(tensor, shape, strides, offset, tensor.dtype)
        rows = (1, 2) if buffer.on_chip else (0, 0)
        made = AccessPattern(tensor, tensor.dtype, *rows, 50, others)
        is_same = places(dims) == places(others)
        assert Proven(exact=False).visits(view, made) == is_same
        assert Proven(exact=True).visits(view, made) == (dims == others)
        found.add((is_same, dims == others))
    assert (True, False) in found


def test_an_indexed_pattern_keeps_its_outermost_dimension() -> None:
    """In HBM it is the one that the offsets are for; on chip, offsets are for single elements."""
    for buffer, is_same in ((Buffer.HBM, False), (Buffer.SBUF, True)):
        tensor = Tensor(0, "t", DTYPES["float32"], (4, 200), buffer, CallChain(NOWHERE))
        moved: Dynamic = Dynamic("scalar", Register(1), 1, 10)
        on_chip = buffer.on_chip
        shape, strides = ((4, 5, 4), (200, 4, 1)) if on_chip else ((5, 4), (4, 1))
        view = View(tensor, shape, strides, 0, tensor.dtype, moved)
        rows = (0, 4) if on_chip else (0, 0)
        for dims in (((4, 5), (1, 4)), ((1, 20),)):
            made = AccessPattern(tensor, tensor.dtype, *rows, 0, dims, moved)
            assert Proven(exact=False).visits(view, made) == (is_same or len(dims) == 2)


@pytest.mark.parametrize("size", ["bfloat16", "float32"])
def test_bytes_are_those_that_a_pattern_covers(size: str) -> None:
    rng, dtype = Random(size), DTYPES[size]
    tensor = Tensor(0, "p", dtype, (8, 64), Buffer.PSUM, CallChain(NOWHERE))
    for _ in range(200):
        dims = tuple((rng.choice((1, -2, 3, 0)), rng.randint(1, 5)) for _ in range(2))
        pattern = AccessPattern(tensor, dtype, 2, rng.randint(1, 6), 30, dims)
        bits = 0
        for row, element in product(range(2, 2 + pattern.partitions), places(dims)):
            bits |= (1 << dtype.size) - 1 << (row * 64 + 30 + element) * dtype.size
        assert bytes_of(pattern) == bits
        view = View(
            *(tensor, (pattern.partitions, *(n for _, n in dims)), (64, *(s for s, _ in dims))),
            *(2 * 64 + 30, dtype),
        )
        assert bytes_of(view) == bits


def test_a_run_time_offset_may_lead_to_any_byte() -> None:
    tensor = Tensor(0, "p", DTYPES["float32"], (8, 64), Buffer.PSUM, CallChain(NOWHERE))
    offset: Dynamic = Dynamic("scalar", Register(0), 1, 16)
    pattern = AccessPattern(tensor, tensor.dtype, 2, 4, 30, ((1, 4),), offset)
    assert bytes_of(pattern) == (1 << 8 * 64 * 4) - 1
