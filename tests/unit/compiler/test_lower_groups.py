"""Test groups of like instructions: what check and lower find for the first holds for all."""

from dataclasses import replace

import pytest

from nkic.base.diagnostics import CompileFailed, Reporter
from nkic.compiler.check import _Checker, _whole_call, check, find
from nkic.compiler.lower import lower
from nkic.program.overlap import grouped
from nkic.program.program import Instruction, Loop, Program, cost_key, instructions
from nkic.program.text import program_text, read_program

HEAD = """\
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
COPY = "vector tensor_copy(dst=%s, src=%s; ) @k.py:7:1-7:9"
LOAD = (
    "dma dma_copy(dst=%s, src=%s; priority=None, oob_mode='error', dge_mode='unknown', "
    "engine='unknown') @k.py:7:1-7:9"
)
PRODUCT = (
    "any nc_matmul(dst=%5{0; (64, 64); (64, 1)}, stationary=%4{0; (128, 64); (64, 1)}, "
    "moving=%4{0; (128, 64); (64, 1)}; is_stationary_onezero=False, is_moving_onezero=False, "
    "is_transpose=False, accumulate=None, tile_position=None, tile_size=None, perf_mode='none') "
    "@k.py:7:1-7:9"
)


def program(*lines: str) -> Program:
    """Return a program whose instructions all have one location, as those of a loop do."""
    found = read_program(HEAD + "".join(f"  #{i} {line}\n" for i, line in enumerate(lines)))
    at = next(instructions(found.cores[0])).at
    bodies = [tuple(i._replace(at=at) for i in instructions(body)) for body in found.cores]
    return replace(found, cores=tuple(bodies))


def copy(dst: str, src: str) -> str:
    return COPY % (dst, src)


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
    left, (groups,) = find(read_program(HEAD + "".join(f"{line}\n" for line in lines)), Reporter())
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
    lowered = lower(program(PRODUCT, PRODUCT, PRODUCT), Reporter())
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
