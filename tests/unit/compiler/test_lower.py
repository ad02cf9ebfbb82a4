"""Test engines by workload: copies move away from an engine with the most work, and only then."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise, product
from math import prod
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nkic.base.diagnostics import CompileFailed, Reporter
from nkic.base.source import NOWHERE, CallChain, SourceFile
from nkic.compiler.check import _Checker, _whole_call, check, find
from nkic.compiler.compiled import CompileOptions
from nkic.compiler.lower import BUSY_FRACTION, Written, _bits, _common, _cut, _Sharer, lower
from nkic.compiler.pipeline import compile_source
from nkic.machine.dtypes import DTYPES
from nkic.machine.patterns import Dims
from nkic.machine.targets import Buffer, Engine, Target
from nkic.machine.timing import timing
from nkic.program.overlap import grouped
from nkic.program.program import (
    AccessPattern,
    Instruction,
    Loop,
    Program,
    Tensor,
    cost_key,
    instructions,
)
from nkic.program.text import program_text, read_program
from nkic.simulate import simulate
from nkic.specialise.inline import parse_arg
from nkic.specialise.request import Request

STAGES = Path(__file__).parents[2] / "data/stages"
HEAD = """\
program t on {target}
%0 a: {dtype}[128, 512] psum @k.py:1:1-1:9
%1 b: {dtype}[128, 512] sbuf @k.py:2:1-2:9
%2 c: float32[128, 1] sbuf @k.py:3:1-3:9
%3 w: bfloat16[128, 128] sbuf @k.py:4:1-4:9
%4 m: bfloat16[128, 512] sbuf @k.py:5:1-5:9
%5 p: float32[128, 512] psum @k.py:6:1-6:9
core
"""
AT = "@k.py:7:1-7:9"
COPY = "any tensor_copy(dst=%1{0; (128, 512); (512, 1)}, src=%0{0; (128, 512); (512, 1)}; ) " + AT
EXPLICIT = COPY.replace("any", "vector")
PRODUCT = (
    "any nc_matmul(dst=%5{0; (128, 512); (512, 1)}, stationary=%3{0; (128, 128); (128, 1)}, "
    "moving=%4{0; (128, 512); (512, 1)}; is_stationary_onezero=False, is_moving_onezero=False, "
    "is_transpose=False, accumulate=False, tile_position=None, tile_size=None, perf_mode='none') "
    + AT
)


def lowered(*lines: str, target: str = "trn2", dtype: str = "float32") -> Program:
    body = "".join(f"  #{number} {line}\n" for number, line in enumerate(lines))
    report = Reporter()
    program = read_program(HEAD.format(target=target, dtype=dtype) + body)
    return lower(program, report)


def copies(program: Program) -> list[Engine | None]:
    found = instructions(program.cores[0])
    return [one.engine for one in found if one.row.name == "tensor_copy"]


def held(program: Program) -> Counter[Engine]:
    found: Counter[Engine] = Counter()
    for one in instructions(program.cores[0]):
        assert one.engine is not None
        found[one.engine] += hold(one, program)
    return found


def hold(one: Instruction, program: Program) -> int:
    assert one.engine is not None
    return timing(one.row, one.facts(program.target), one.engine).hold


def test_copies_alone_are_shared_so_that_both_engines_end_together() -> None:
    program = lowered(*[COPY] * 60)
    work = held(program)
    assert set(work) == {Engine.VECTOR, Engine.SCALAR}
    longest = max(hold(one, program) for one in instructions(program.cores[0]))
    assert abs(work[Engine.VECTOR] - work[Engine.SCALAR]) <= longest


def test_vector_keeps_them_where_another_engine_has_more_to_do() -> None:
    assert set(copies(lowered(*[COPY, *[PRODUCT] * 8] * 30))) == {Engine.VECTOR}


def test_vector_keeps_them_where_there_is_little_to_do() -> None:
    assert set(copies(lowered(*[COPY] * 12))) == {Engine.VECTOR}


def test_they_leave_the_busier_engine() -> None:
    program = lowered(*[COPY, EXPLICIT, EXPLICIT] * 20)
    assert copies(program)[::3] == [Engine.SCALAR] * 20


@pytest.mark.parametrize(("target", "dtype"), [("trn1", "float32"), ("trn2", "int32")])
def test_they_stay_where_scalar_has_no_copy_of_the_same_bits(target: str, dtype: str) -> None:
    assert set(copies(lowered(*[COPY] * 60, target=target, dtype=dtype))) == {Engine.VECTOR}


def test_what_happened_long_ago_counts_no_more() -> None:
    """60 copies by vector take 36 µs; scalar then does not get all copies for the same time."""
    found = copies(lowered(*[EXPLICIT] * 60, *[COPY] * 40))[60:]
    assert Engine.VECTOR in found


def plain_work(code: list[Instruction], target: Target) -> dict[Engine, int]:
    """Return picoseconds of work for each engine.

    A transfer occupies all DMA engines for its share of them, and the triggering engine for a
    while.
    """
    work = dict.fromkeys(Engine, 0)
    for one in code:
        assert one.engine is not None
        times = timing(one.row, one.facts(target), one.engine)
        work[one.engine] += times.pool if one.engine is Engine.DMA else times.hold
        if one.engine is Engine.DMA:
            work[times.by] += times.trigger
    return work


@pytest.mark.parametrize("seed", [0, 1, 2, 5])
def test_engines_with_a_choice_are_busy_as_by_a_plain_sum(seed: int) -> None:
    found = lower(read_program((STAGES / f"{seed}.ir").read_text("utf-8")), Reporter())
    rng = Random(seed)
    for body in found.cores:
        everything = [*instructions(body)]
        for _ in range(60):
            code = rng.sample(everything, rng.randrange(1, 12))
            engines = rng.sample([e for e in Engine if e is not Engine.DMA], 2)
            work = plain_work(code, found.target)
            ours = max(work[engine] for engine in engines)
            others = max(work[engine] for engine in Engine if engine not in engines)
            sharer = _Sharer({code[0].number: engines}, found.target)
            for least in (0, ours, ours + 1):
                wanted = ours >= least and ours >= BUSY_FRACTION * others
                assert sharer.is_busy(code, least) == wanted
            assert not sharer.is_busy([one for one in code if one is not code[0]], 0)


# ------------------------------------------------------------------------------------------------
# Test the pieces of a stream of elements by brute force, on all ranges of small patterns.

STREAMS: list[Dims] = [
    ((1, 6),),
    ((4, 3), (1, 4)),
    ((1, 2), (-3, 5)),
    ((20, 2), (7, 3), (2, 3)),
    ((0, 2), (6, 2), (1, 1), (2, 3)),
    ((30, 1), (5, 3), (1, 4)),
]


def places(dims: Dims) -> list[int]:
    """Return the positions of the elements of a stream, in order."""
    found = [0]
    for step, num in dims:
        found = [place + step * index for place in found for index in range(num)]
    return found


def is_one(dims: Dims, low: int, high: int) -> bool:
    """Return whether elements are some indices of one dimension, and all indices of the inner
    dimensions.
    """
    sizes = [prod(num for _, num in dims[at:]) for at in range(len(dims) + 1)]
    return any(
        low % inner == 0 and high % inner == 0 and low // outer == (high - 1) // outer
        for outer, inner in pairwise(sizes)
    )


def fewest(dims: Dims, low: int, high: int) -> int:
    """Return the least number of pieces of a range, by trying all cuts."""
    least = {low: 0}
    for end in range(low + 1, high + 1):
        least[end] = 1 + min(least[at] for at in range(low, end) if is_one(dims, at, end))
    return least[high]


def ranges(dims: Dims) -> list[tuple[int, int]]:
    count = prod(num for _, num in dims)
    return [(low, high) for low in range(count) for high in range(low + 1, count + 1)]


@pytest.mark.parametrize("dims", STREAMS)
def test_a_range_is_cut_into_the_fewest_patterns(dims: Dims) -> None:
    for low, high in ranges(dims):
        found = list(_common([dims], (low, high)))
        ends = [low, *(end for _, end in found)]
        assert found == [*pairwise(ends)] and ends[-1] == high
        assert all(is_one(dims, *piece) for piece in found)
        assert len(found) == fewest(dims, low, high), (low, high)


@pytest.mark.parametrize("dims", STREAMS)
def test_a_piece_has_the_elements_of_its_range(dims: Dims) -> None:
    everything = places(dims)
    for low, high in ranges(dims):
        if is_one(dims, low, high):
            offset, rest = _cut(dims, low, high)
            assert [offset + place for place in places(rest)] == everything[low:high]
    assert _cut((), 0, 1) == (0, ())  # a single element, which has no dimensions


@pytest.mark.parametrize("other", STREAMS)
def test_what_is_cut_for_several_streams_is_a_pattern_of_each(other: Dims) -> None:
    dims = STREAMS[3]
    count = min(len(places(dims)), len(places(other)))
    for low, high in ((0, count), (1, count), (2, count - 1), (1, 5)):
        found = list(_common([dims, (), other], (low, high)))
        ends = [low, *(end for _, end in found)]
        assert found == [*pairwise(ends)] and ends[-1] == high
        assert all(is_one(one, *piece) for piece in found for one in (dims, other))


# ------------------------------------------------------------------------------------------------
# With accumulate=None, the first matmul overwrites every byte of PSUM, for all windows.

Array = NDArray[Any]
KERNEL = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a, b):
    x = nl.ndarray((16, 128), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    y = nl.ndarray((16, 48), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=y, src=b)
    p = nl.ndarray((128, 6, 8), dtype=nl.float32, buffer=nl.psum)
    out = nl.ndarray((128, 6, 8), dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.ndarray((128, 6, 8), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=t, value=0.0)
{body}
    nisa.dma_copy(dst=out, src=t)
    return out
"""


def numbers(*shape: int, seed: int) -> Array:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)


def window(rng: np.random.Generator) -> tuple[str, tuple[slice, ...]]:
    """Return a part of PSUM, as kernels and as NumPy write it; one in three skips columns."""
    first = int(rng.choice([0, 32, 64, 96]))
    rows = {0: int(rng.choice([32, 64, 128])), 64: int(rng.choice([32, 64]))}.get(first, 32)
    i, j = int(rng.integers(0, 4)), int(rng.integers(0, 5))
    bottom, right = int(rng.integers(i + 1, 7)), int(rng.integers(j + 1, 9))
    step = int(rng.choice([1, 1, 2]))
    where = (slice(first, first + rows), slice(i, bottom), slice(j, right, step))
    return f"{first}:{first + rows}, {i}:{bottom}, {j}:{right}:{step}", where


@pytest.mark.parametrize("seed", range(12))
def test_windows_that_overlap_in_any_way(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = numbers(16, 128, seed=seed), numbers(16, 48, seed=seed + 100)
    found, written = np.zeros((128, 6, 8), np.float32), np.zeros((128, 6, 8), bool)
    matmuls, copies = [], []
    for _ in range(6):
        text, where = window(rng)
        rows, *inner = found[where].shape
        size = int(np.prod(inner))
        matmuls.append(f"nisa.nc_matmul(p[{text}], x[:, 0:{rows}], y[:, 0:{size}])")
        copies.append(f"nisa.tensor_copy(dst=t[{text}], src=p[{text}])")
        product = (a[:, :rows].T @ b[:, :size]).reshape(rows, *inner)
        found[where] = np.where(written[where], found[where] + product, product)
        written[where] = True
    np.testing.assert_array_equal(run([*matmuls, *copies], a, b), found)


def run(lines: list[str], a: Array, b: Array) -> Array:
    done = compiled(lines)
    return np.asarray(simulate(done.executable, {"a": a, "b": b}).outputs["output_0"])


def compiled(lines: list[str]) -> Any:
    text = KERNEL.format(body="\n".join(f"    {line}" for line in lines))
    args = dict(parse_arg(word) for word in ("a=float32[16,128]", "b=float32[16,48]"))
    return compile_source(
        SourceFile("k.py", text), Request(args=args), lambda *_: None, CompileOptions()
    )


def test_as_many_matmuls_as_it_takes() -> None:
    """One matmul if all bytes are new or none is; otherwise one for each part."""
    whole = "nisa.nc_matmul(p, x, y)"
    left, right = (f"nisa.nc_matmul(p[:, :, {at}], x, y[:, 0:24])" for at in ("0:4", "4:8"))
    copy = "nisa.tensor_copy(dst=t, src=p)"
    counts = [
        sum(i.row.name == "nc_matmul" for i in instructions(accumulated(lines).cores[0]))
        for lines in ([whole, whole, copy], [left, right, whole, copy], [left, whole, copy])
    ]
    assert counts == [2, 3, 13]  # the last: six rows of two halves


def accumulated(lines: list[str]) -> Program:
    found = compiled(lines).results["lower"]
    assert isinstance(found, Program)
    return found


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize(
    "dims",
    [
        *(((1, 4),), ((-1, 4),), ((8, 2), (1, 3)), ((-8, 2), (2, 3))),
        *(((3, 2), (-1, 3)), ((0, 3), (1, 2)), ((4, 2), (1, 4))),
    ],
)
def test_bits_are_the_bytes_that_are_covered(dims: tuple[tuple[int, int], ...], size: int) -> None:
    offset = 12
    steps = [[step * i for i in range(num)] for step, num in dims]
    first = [(offset + sum(at)) * size for at in product(*steps)]
    assert _bits(offset, dims, size) == sum({1 << (n + i) for n in first for i in range(size)})


@pytest.mark.parametrize("seed", range(8))
def test_what_is_written_is_known_exactly(seed: int) -> None:
    """By partition and byte, with a set of bytes."""
    rng, known, written = Random(seed), Written(), set[tuple[int, int]]()
    owner = Tensor(0, "p", DTYPES["float32"], (128, 6), Buffer.PSUM, CallChain(NOWHERE))
    for _ in range(12):
        first, at = rng.choice([0, 32, 64, 96]), rng.choice([0, 0, 3])
        rows = rng.choice([n for n in (32, 32, 64) if first + n <= 128])
        dims = ((1, rng.choice([3, 6 - at])),)
        cells = set(product(range(first, first + rows), range(at, at + dims[0][1])))
        found = len(cells & written)
        wanted = {0: False, len(cells): True}.get(found)
        pattern = AccessPattern(owner, owner.dtype, first, rows, at, dims)
        assert known.decide(pattern) is wanted
        written |= cells


# ------------------------------------------------------------------------------------------------
# Test groups of like instructions: what check and lower find for the first holds for all.

GROUP_HEAD = """\
program t on trn2
%0 a: float32[128, 512] shared_hbm @k.py:1:1-1:9
%1 x: float32[128, 64] sbuf @k.py:2:1-2:9
%2 y: float32[128, 64] sbuf @k.py:2:1-2:9
%3 z: float32[128, 128] sbuf @k.py:3:1-3:9
%4 w: bfloat16[128, 64] sbuf @k.py:4:1-4:9
%5 p: float32[64, 64] psum @k.py:5:1-5:9
%6 q: float32[128, 64] psum @k.py:6:1-6:9
%7 r: float32[64, 64] sbuf fixed (0, 0) @k.py:7:1-7:9
%8 s: float32[64, 64] sbuf fixed (64, 0) @k.py:8:1-8:9
core
"""
WHOLE = "{0; (128, 64); (64, 1)}"
HALF = "{0; (64, 64); (64, 1)}"
PART = "{%d; (64, 32); (64, 1)}"
GROUP_COPY = "vector tensor_copy(dst=%s, src=%s; ) @k.py:7:1-7:9"
LOAD = (
    "dma dma_copy(dst=%s, src=%s; priority=None, oob_mode='error', dge_mode='unknown', "
    "engine='unknown') @k.py:7:1-7:9"
)
GROUP_PRODUCT = (
    "any nc_matmul(dst=%5{0; (64, 64); (64, 1)}, stationary=%4{0; (128, 64); (64, 1)}, "
    "moving=%4{0; (128, 64); (64, 1)}; is_stationary_onezero=False, is_moving_onezero=False, "
    "is_transpose=False, accumulate=None, tile_position=None, tile_size=None, perf_mode='none') "
    "@k.py:7:1-7:9"
)


def program(*lines: str) -> Program:
    """Return a program whose instructions all have one location, as those of a loop do."""
    found = read_program(GROUP_HEAD + "".join(f"  #{i} {line}\n" for i, line in enumerate(lines)))
    at = next(instructions(found.cores[0])).at
    bodies = [tuple(i._replace(at=at) for i in instructions(body)) for body in found.cores]
    return replace(found, cores=tuple(bodies))


def copy(dst: str, src: str) -> str:
    return GROUP_COPY % (dst, src)


FIRST = copy(f"%1{WHOLE}", f"%2{WHOLE}")
LIKE = [
    ([FIRST, copy(f"%2{WHOLE}", f"%1{WHOLE}")], 1),  # other tensors of the same declaration
    ([FIRST, copy(f"%3{WHOLE}", f"%2{WHOLE}")], 2),  # of another shape
    ([FIRST, copy(f"%4{WHOLE}", f"%2{WHOLE}")], 2),  # of another type
    ([FIRST, copy(f"%1{WHOLE}:int32", f"%2{WHOLE}")], 2),  # seen as another type
    ([FIRST, copy(f"%1{WHOLE}", f"%6{WHOLE}")], 2),  # in another memory
    ([copy(f"%7{HALF}", f"%7{HALF}"), copy(f"%8{HALF}", f"%7{HALF}")], 2),  # other partitions
    ([copy(f"%1{PART % 0}", f"%2{PART % 0}"), copy(f"%1{PART % 32}", f"%2{PART % 7}")], 1),
    ([copy(f"%1{PART % 0}", f"%2{PART % 0}"), copy(f"%1{PART % 33}", f"%2{PART % 0}")], 2),
    ([copy(f"%1{PART % 0}", f"%2{PART % 0}"), copy(f"%1{PART % 64}", f"%2{PART % 0}")], 2),
    ([copy(f"%1{PART % 64}", f"%2{PART % 0}"), copy(f"%1{PART % 63}", f"%2{PART % 0}")], 2),
    ([LOAD % (f"%1{WHOLE}", "%0{0; (128, 64); (512, 1)}")] * 2, 1),
    (
        [LOAD % (f"%1{WHOLE}", f"%0{{{at}; (128, 64); (512, 1)}}") for at in (0, 448, 449)],
        2,  # the last is outside
    ),
]


@pytest.mark.parametrize(("lines", "count"), LIKE)
def test_groups(lines: list[str], count: int) -> None:
    (groups,) = grouped(program(*lines))
    assert len(groups) == len(lines)
    assert len(set(groups)) == count
    assert sum(1 + group.repeats for group in set(groups)) == len(lines)


@pytest.mark.parametrize(("lines", "count"), LIKE)
def test_all_of_a_group_are_as_legal_as_its_first(lines: list[str], count: int) -> None:
    found = program(*lines)
    checker = _Checker(found, Reporter(), _whole_call)
    (groups,) = grouped(found)
    for instruction, group in zip(instructions(found.cores[0]), groups, strict=True):
        if not checker.problems(group.first):
            assert not checker.problems(instruction)


SET = "vector memset(dst=%s; value=%s) @k.py:7:1-7:9"
DIFFERENT = [
    copy(f"%1{PART % 0}", f"%2{PART % 0}"),
    copy(f"%1{PART % 1}", f"%2{PART % 0}"),
    copy(f"%1{PART % (32 * 64)}", f"%2{PART % 0}"),
    copy(f"%1{PART % (16 * 64)}", f"%2{PART % 0}"),  # begins at partition 16
    copy(f"%1{PART % (16 * 64)}:int32", f"%2{PART % 0}"),
    copy(f"%8{PART % 0}", f"%2{PART % 0}"),
    copy(f"%8{PART % (16 * 64)}", f"%2{PART % 0}"),  # begins at partition 80
    copy("%1{0; (64, 32); (64, 0)}", f"%2{PART % 0}"),
    copy("%1{0; (64, 16); (64, 1)}", f"%2{PART % 0}"),  # fewer elements
    copy("%1{0; (64, 2, 16); (64, 0, 40000)}", f"%2{PART % 0}"),  # a step that is too long
    copy("%6{0; (64, 32); (64, 1)}", f"%2{PART % 0}"),
    copy("%0{0; (64, 32); (512, 1)}", f"%2{PART % 0}"),  # not in that memory
    SET % (f"%1{WHOLE}", "1"),
    SET % (f"%1{WHOLE}", "1.5"),
    SET % (f"%1{WHOLE}:int32", "1"),
    SET % (f"%1{WHOLE}:int32", "1.0"),
    SET % (f"%1{WHOLE}:int32", "1.5"),
]


def test_what_is_known_of_one_is_not_taken_for_another() -> None:
    found = program(*DIFFERENT)
    known = _Checker(found, Reporter(), _whole_call)
    for instruction in instructions(found.cores[0]):
        fresh = _Checker(found, Reporter(), _whole_call)
        assert known.problems(instruction) == fresh.problems(instruction), instruction
        assert known.problems(instruction) == fresh.problems(instruction), "a second time"
    assert 6 <= sum(map(bool, map(known.problems, instructions(found.cores[0])))) <= 12


def test_check_reports_and_stops() -> None:
    check(program(FIRST), Reporter())
    with pytest.raises(CompileFailed) as failure:
        check(program(FIRST, copy(f"%1{PART % 33}", f"%2{PART % 0}")), Reporter())
    assert [one.code.slug for one in failure.value.diagnostics] == ["pattern-out-of-bounds"]


def test_the_legal_part_of_loops_is_kept() -> None:
    outside, legal = copy(f"%1{PART % 33}", f"%2{PART % 0}"), copy(f"%1{WHOLE}", f"%2{WHOLE}")
    lines = ["loop 1 $1 = 0 to 2 by 1 @k.py:1:1-1:9", f"#0 {outside}", f"#1 {legal}", "end"]
    lines += ["loop 2 $2 = 0 to 2 by 1 @k.py:1:1-1:9", f"#2 {outside}", "end", f"#3 {legal}"]
    left, (groups,) = find(
        read_program(GROUP_HEAD + "".join(f"{line}\n" for line in lines)), Reporter()
    )
    loop, last = left.cores[0]
    assert isinstance(loop, Loop) and isinstance(last, Instruction)
    assert [one.number for one in instructions(loop.body)] == [1]
    assert [group.first.number for group in groups] == [1, last.number]


def test_an_illegal_instruction_leaves_the_others() -> None:
    outside = copy(f"%1{PART % 33}", f"%2{PART % 0}")
    legal = copy(f"%1{PART % 1}", f"%2{PART % 0}")
    found = program(outside, legal, outside, legal)
    report = Reporter()
    left, (groups,) = find(found, report)
    assert [one.number for one in instructions(left.cores[0])] == [1, 3]
    assert len(groups) == 2
    assert len(report.errors) == 1  # one location


def content(instruction: Instruction) -> tuple[object, ...]:
    row, operands, attributes, engine = instruction[:4]
    return (row, attributes, engine, *map(cost_key, operands))


@pytest.mark.parametrize(("lines", "count"), LIKE[:-1])
def test_equal_work_costs_the_same(lines: list[str], count: int) -> None:
    found = program(*lines)
    lowered = lower(found, Reporter())
    contents: dict[object, set[object]] = {}
    for instruction in instructions(lowered.cores[0]):
        assert instruction.work is not None
        contents.setdefault(instruction.work, set()).add(content(instruction))
    assert len(contents) == count
    assert all(len(equal) == 1 for equal in contents.values())


def test_products_that_add_are_other_work() -> None:
    lowered = lower(program(GROUP_PRODUCT, GROUP_PRODUCT, GROUP_PRODUCT), Reporter())
    first, second, third = instructions(lowered.cores[0])
    assert [one.attribute("accumulate") for one in (first, second, third)] == [False, True, True]
    assert first.work is not second.work
    assert second.work is third.work


@pytest.mark.parametrize(("lines", "count"), LIKE[:-1])
def test_groups_do_not_change_what_lower_makes(lines: list[str], count: int) -> None:
    """Alone at its location, each instruction is a group of its own."""
    found = program(*lines)
    apart = read_program(program_text(found))
    assert len(set(grouped(apart)[0])) == len(lines)
    assert program_text(lower(found, Reporter())) == program_text(lower(apart, Reporter()))


# ------------------------------------------------------------------------------------------------
# Errors of lower end the compilation.

PROGRAM = """\
program t on trn2
%0 w: bfloat16[128, 128] sbuf @k.py:1:1-1:9
%1 m: bfloat16[128, 512] sbuf @k.py:2:1-2:9
%2 p: float32[128, 512] psum @k.py:3:1-3:9
core
  loop 1 $0 = 0 to 4 by 1 @k.py:4:1-4:9
    #2 any nc_matmul(dst=%2{0; (128, 512); (512, 1)}, stationary=%0{0; (128, 128); (128, 1)}, \
moving=%1{0; (128, 512); (512, 1)}; is_stationary_onezero=False, is_moving_onezero=False, \
is_transpose=False, accumulate=None, tile_position=None, tile_size=None, perf_mode='none') \
@k.py:5:1-5:9
  end
"""


def test_an_error_stops_the_stage() -> None:
    """The sum in PSUM begins outside the loop, and nothing decides whether to accumulate onto
    it.
    """
    report = Reporter()
    with pytest.raises(CompileFailed):
        lower(read_program(PROGRAM), report)
    assert [one.code.slug for one in report.all] == ["accumulate-in-loop"]


BEFORE = """\
  #1 any nc_matmul(dst=%2{0; (128, 256); (512, 1)}, stationary=%0{0; (128, 128); (128, 1)}, \
moving=%1{0; (128, 256); (512, 1)}; is_stationary_onezero=False, is_moving_onezero=False, \
is_transpose=False, accumulate=None, tile_position=None, tile_size=None, perf_mode='none') \
@k.py:3:1-3:9
  loop"""


def test_a_sum_that_only_half_began_before_its_loop_is_an_error() -> None:
    """The other half would be overwritten in every iteration."""
    report = Reporter()
    with pytest.raises(CompileFailed):
        lower(read_program(PROGRAM.replace("  loop", BEFORE)), report)
    (error,) = report.all
    assert error.code.slug == "accumulate-in-loop" and "wrote all of it;" in error.message
