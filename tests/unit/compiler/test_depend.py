"""Test depend with printed programs."""

from collections import defaultdict
from dataclasses import replace
from itertools import product
from random import Random

import pytest

from nkic.compiler.depend import depend
from nkic.machine.targets import TRN2, TRN3
from nkic.program import effects
from nkic.program.overlap import box
from nkic.program.program import AccessPattern, Instruction, Program, Tensor, instructions
from nkic.program.text import graph_text
from tests.programs import copy, declare, load, op, program

WHOLE = "[0+128, 0; 1x64]"
LEFT = "[0+128, 0; 1x32]"
RIGHT = "[0+128, 32; 1x32]"
TOP = "[0+64, 0; 1x64]"
BOTTOM = "[64+64, 0; 1x64]"


def sbuf(*body: str, names: str = "abc") -> Program:
    """Return a program over tensors %0, %1 … of 128 x 64 float32 in SBUF."""
    tensors = [declare(i, name, "128, 64") for i, name in enumerate(names)]
    return program("\n".join([*tensors, "core", *(f"  {line}" for line in body)]))


def edges(found: Program) -> str:
    """Return the printed edges without first_touches and last_touches."""
    lines = graph_text(depend(found)[0]).splitlines()
    return "\n".join(line for line in lines if line.startswith("#"))


def test_each_hazard() -> None:
    found = sbuf(
        copy(0, f"%1{WHOLE}", f"%0{WHOLE}"),
        copy(1, f"%2{WHOLE}", f"%1{WHOLE}"),
        copy(2, f"%1{WHOLE}", f"%0{WHOLE}"),
        copy(3, f"%2{WHOLE}", f"%0{WHOLE}"),
    )
    assert edges(found) == "#1 < raw #0\n#2 < war #1\n#3 < waw #1"


def test_disjoint_halves_do_not_conflict() -> None:
    found = sbuf(
        copy(0, f"%1{LEFT}", f"%0{LEFT}"),
        copy(1, f"%1{RIGHT}", f"%0{RIGHT}"),
        copy(2, f"%2{TOP}", f"%0{TOP}"),
        copy(3, f"%2{BOTTOM}", f"%0{BOTTOM}"),
    )
    assert edges(found) == ""


def test_a_read_of_the_whole_waits_for_every_part() -> None:
    found = sbuf(
        copy(0, f"%1{LEFT}", f"%0{LEFT}"),
        copy(1, f"%1{RIGHT}", f"%0{RIGHT}"),
        copy(2, f"%2{WHOLE}", f"%1{WHOLE}"),
    )
    assert edges(found) == "#2 < raw #0, raw #1"


def test_in_place_depends_on_others_only() -> None:
    found = sbuf(
        copy(0, f"%1{WHOLE}", f"%0{WHOLE}"),
        op(1, "reciprocal", dst=f"%1{WHOLE}", data=f"%1{WHOLE}"),
        op(2, "reciprocal", dst=f"%1{WHOLE}", data=f"%1{WHOLE}"),
    )
    assert edges(found) == "#1 < raw #0\n#2 < raw #1"


def test_engine_state_orders_instructions_that_share_no_tensor() -> None:
    first = op(
        0,
        "activation",
        "scalar",
        dst=f"%1{WHOLE}",
        data=f"%0{WHOLE}",
        op="'exp'",
        reduce_op="'add'",
        reduce_cmd="'reset_reduce'",
    )
    second = op(
        1,
        "activation",
        "scalar",
        dst=f"%2{WHOLE}",
        data=f"%0{WHOLE}",
        op="'exp'",
        reduce_op="'add'",
        reduce_cmd="'reduce'",
    )
    assert edges(sbuf(first, second)) == "#1 < state #0"


def test_pinned_and_user_order() -> None:
    found = sbuf(
        copy(0, f"%1{LEFT}", f"%0{LEFT}") + " pinned 1",
        copy(1, f"%1{RIGHT}", f"%0{RIGHT}") + " pinned 1",
        copy(2, f"%2{LEFT}", f"%0{LEFT}") + " after (0,)",
    )
    assert edges(found) == "#1 < pin #0\n#2 < user #0"


def test_a_loop_reports_what_the_previous_iteration_did() -> None:
    found = sbuf(
        "loop 1 $0 = 0 to 4 by 1",
        "  " + copy(0, f"%1{WHOLE}", f"%0{WHOLE}"),
        "  " + copy(1, f"%2{WHOLE}", f"%1{WHOLE}"),
        "end",
    )
    assert edges(found) == "#0 < war #1 previous\n#1 < raw #0, waw #1 previous"
    graph = depend(found)[0]
    assert [edge.distance for n in range(2) for edge in graph.sources(n)] == [1, 0, 1]


def test_openers_and_closers() -> None:
    found = sbuf(
        load(0, f"%1{LEFT}", f"%0{LEFT}"),
        load(1, f"%1{RIGHT}", f"%0{RIGHT}"),
        copy(2, f"%2{LEFT}", f"%1{LEFT}"),
    )
    graph = depend(found)[0]
    assert graph.first_touches[1] == (0, 1)
    assert graph.last_touches[1] == (1, 2)  # the right half was never read: its writer is last


def test_corners_that_nothing_accesses_have_no_openers_and_closers() -> None:
    corners = "[0+64, 0; 1x32]", "[64+64, 32; 1x32]"
    found = sbuf(*(copy(i, f"%1{place}", f"%0{place}") for i, place in enumerate(corners)))
    graph = depend(found)[0]
    assert graph.first_touches == graph.last_touches == {0: (0, 1), 1: (0, 1)}


def test_reads_before_the_first_write_do_not_precede_each_other() -> None:
    """So each of them waits for the tensor whose bytes this one takes."""
    found = sbuf(
        copy(0, f"%1{WHOLE}", f"%0{WHOLE}"),
        copy(1, f"%2{RIGHT}", f"%0{WHOLE}"),
        copy(2, f"%0{WHOLE}", f"%1{WHOLE}"),
        copy(3, f"%2{LEFT}", f"%0{WHOLE}"),
    )
    assert depend(found)[0].first_touches[0] == (0, 1)
    in_parts = sbuf(
        copy(0, f"%0{LEFT}", f"%2{LEFT}"),
        copy(1, f"%1{LEFT}", f"%0{RIGHT}"),
        copy(2, f"%1{RIGHT}", f"%0{RIGHT}"),
        copy(3, f"%1{RIGHT}", f"%0{LEFT}"),
    )
    assert depend(in_parts)[0].first_touches[0] == (0, 1, 2)


def test_where_a_run_time_offset_stands_is_read() -> None:
    moved = f"%0{LEFT} by scalar %3[0+1, 0; 1x1] stride 1 limit 32 axis 1"
    found = sbuf(
        copy(0, f"%3{WHOLE}", f"%0{WHOLE}"),
        copy(1, f"%1{LEFT}", moved),
        copy(2, f"%2{LEFT}", moved),
        copy(3, f"%3{WHOLE}", f"%0{WHOLE}"),
        names="abcd",
    )
    assert edges(found) == "#1 < raw #0\n#2 < raw #0\n#3 < war #1, war #2, waw #0"


def test_each_instruction_with_one_pattern_reads_its_run_time_offset() -> None:
    """lower makes equal patterns one object."""
    moved = f"%0{LEFT} by scalar %3[0+1, 0; 1x1] stride 1 limit 32 axis 1"
    found = sbuf(
        copy(0, f"%3{WHOLE}", f"%0{WHOLE}"),
        copy(1, f"%1{LEFT}", moved),
        copy(2, f"%2{LEFT}", moved),
        copy(3, f"%3{WHOLE}", f"%0{WHOLE}"),
        names="abcd",
    )
    first, second, third, last = instructions(found.cores[0])
    third = third._replace(operands=(third.operand("dst"), second.operand("src")))
    shared = replace(found, cores=((first, second, third, last),))
    assert edges(shared) == "#1 < raw #0\n#2 < raw #0\n#3 < war #1, war #2, waw #0"


def test_the_tensors_of_a_body_are_those_of_its_accesses() -> None:
    moved = f"%0{LEFT} by scalar %3[0+1, 0; 1x1] stride 1 limit 32 axis 1"
    found = sbuf(copy(0, f"%1{LEFT}", moved), names="abcd")  # %2 is not accessed
    (body,), target = found.cores, found.target
    effects.forget()
    from_operands = set(effects.tensors_of(body, target))
    accessed = {tensor.number for tensor in effects.accesses_of(body, target).first}
    assert from_operands == {0, 1, 3} == accessed
    assert set(effects.tensors_of(body, target)) == from_operands


def test_each_pattern_of_a_tensor_is_known_once() -> None:
    """Though instructions with a run-time offset share them, as lower does with equal ones."""
    moved = f"%0{LEFT} by scalar %3[0+1, 0; 1x1] stride 1 limit 32 axis 1"
    sides = (LEFT, LEFT, RIGHT, RIGHT)
    found = sbuf(*(copy(i, f"%1{side}", moved) for i, side in enumerate(sides)), names="abcd")
    one, two, three, four = instructions(found.cores[0])
    src = one.operand("src")
    two, three = (
        two._replace(operands=one.operands),
        three._replace(operands=(three.operand("dst"), src)),
    )
    body = (one, two, three, four._replace(operands=three.operands))
    for count, parts in ((2, []), (4, [[one.operand("dst"), three.operand("dst")]])):
        assert [*effects.accesses_of(body[:count], found.target).parts.values()] == parts


def test_accesses_are_read_once_for_a_body_and_a_target() -> None:
    (body,), (other,) = (sbuf(copy(0, f"%1{LEFT}", f"%0{LEFT}")).cores for _ in range(2))
    known = effects.accesses_of(body, TRN2)
    assert effects.accesses_of(body, TRN2) is known
    assert effects.accesses_of(other, TRN2) is not known
    assert effects.accesses_of(body, TRN3) is not known
    effects.forget()
    assert effects.accesses_of(body, TRN2) is not known


OFFSET = " by scalar %3[0+1, 0; 1x1] stride 1 limit 32 axis 1"
PLACES = [f"%{i}{place}" for i in range(3) for place in (LEFT, RIGHT, WHOLE, LEFT + OFFSET)]


def drawn(seed: int) -> Program:
    """Return instructions of one, two or three inputs and outputs, which share a few patterns."""
    rng = Random(seed)
    text = (
        *(copy(i, place, f"%3{LEFT}") for i, place in enumerate(PLACES)),
        op(20, "tensor_copy_predicated", dst=PLACES[0], src=PLACES[4], predicate=PLACES[8]),
        op(21, "tensor_scalar_reduce", dst=PLACES[0], data=PLACES[4], reduce_res=PLACES[8],
           op0="'add'", operand0="1.0", reduce_op="'add'"),
    )  # fmt: skip
    known = sbuf(*text, names="abcd")
    kinds = [*instructions(known.cores[0])][-3:]
    patterns = [one.operands[0] for one in instructions(known.cores[0]) if one.number < 20]
    patterns += [p.dynamic.source for p in patterns if type(p) is AccessPattern and p.dynamic]
    body: list[Instruction] = []
    for number in range(rng.randint(1, 8)):
        kind = rng.choice(kinds)
        operands = [rng.choice(patterns) if type(o) is AccessPattern else o for o in kind.operands]
        body.append(kind._replace(number=number, operands=tuple(operands)))
    return replace(known, cores=(tuple(body),))


def touched(one: Instruction, program: Program) -> list[effects.Touch]:
    """Return what an instruction accesses, each operand's offset after it, and writes last."""
    found: list[effects.Touch] = []
    for rule, operand in zip(one.row.operands, one.operands, strict=True):
        mode = one.row.access_of(rule, one.facts(program.target))
        if not isinstance(operand, AccessPattern):
            continue
        found.append(effects.Touch(operand, mode.reads, mode.writes))
        if operand.dynamic is not None and isinstance(operand.dynamic.source, AccessPattern):
            found.append(effects.Touch(operand.dynamic.source, True, False))
    return [t for t in found if not t.writes] + [t for t in found if t.writes]


@pytest.mark.parametrize("seed", range(60))
def test_accesses_are_those_of_a_plain_walk(seed: int) -> None:
    found = drawn(seed)
    (body,), target = found.cores, found.target
    accesses = effects.accesses_of(body, target)
    begun: dict[Tensor, int] = {}
    patterns: dict[Tensor, dict[int, AccessPattern]] = defaultdict(dict)
    last: dict[int, int] = {}
    read_first = set[Tensor]()
    for one in instructions(body):
        assert accesses.touches(one) == accesses.by_number[one.number] == touched(one, found)
        assert accesses.written_by(one) == [t.pattern for t in touched(one, found) if t.writes]
        for pattern, reads, _ in touched(one, found):
            patterns[pattern.tensor][id(pattern)] = pattern
            last[id(pattern)] = one.number
            if begun.setdefault(pattern.tensor, one.number) == one.number and reads:
                read_first.add(pattern.tensor)
    # In which order one instruction makes its accesses is open.
    assert dict(zip(accesses.first, accesses.begun, strict=True)) == begun
    assert accesses.begun == sorted(accesses.begun)
    assert accesses.last == last
    assert accesses.read_first >= read_first
    assert accesses.parts.keys() == {tensor for tensor, some in patterns.items() if len(some) > 1}
    for tensor, parts in accesses.parts.items():
        assert sorted(map(id, parts)) == sorted(patterns[tensor])
        assert parts[0] is accesses.first[tensor]
    boxes = {id(p): box(p) for some in patterns.values() for p in some.values()}
    for some in patterns.values():
        for left, right in product(some, some):
            pairs = zip(boxes[left], boxes[right], strict=True)
            meets = all(max(a, c) < min(b, d) for (a, b), (c, d) in pairs)
            shared = set(accesses.cells[left]) & set(accesses.cells[right])
            assert bool(shared) == meets


def test_a_result_that_says_where_another_one_goes_is_read_first() -> None:
    text = op(0, "tensor_scalar_reduce", dst="%3[0+1, 0; 1x1]", data=PLACES[0], op0="'add'",
              operand0="1.0", reduce_res=PLACES[7], reduce_op="'add'")  # fmt: skip
    found = sbuf(text, names="abcd")
    (one,) = instructions(found.cores[0])
    moved = one.operand("reduce_res")
    assert isinstance(moved, AccessPattern) and moved.dynamic is not None
    body = (one._replace(operands=(moved.dynamic.source, *one.operands[1:])),)
    read = effects.accesses_of(body, found.target).read_first
    assert {tensor.name for tensor in read} == {"a", "d"}
