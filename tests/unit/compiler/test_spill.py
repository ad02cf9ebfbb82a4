"""Test tiles that wait in HBM: which tiles are spilled, the added transfers, and unchanged
values.
"""

from collections.abc import Callable
from dataclasses import replace
from heapq import heappush
from random import Random
from typing import Any

import numpy as np
import pytest

from nkic import api
from nkic.api import CompileError
from nkic.base.source import SourceFile
from nkic.compiler.allocate import Space
from nkic.compiler.spill import Spilled, Walk, _Tile, constant_tensors, repeatable, spill
from nkic.machine.targets import Address, Buffer, Engine
from nkic.program.effects import touches_of
from nkic.program.program import (
    AccessPattern,
    Body,
    Instruction,
    Loop,
    Program,
    Tensor,
    instructions,
)
from nkic.prove import prove_spilled
from nkic.report.profile import summary
from tests.programs import code, copy, declare, load, op, program

N = 20_000  # float32: 80,000 bytes of each partition, of which two have room in 212,728
WHOLE = f"[0+128, 0; 1x{N}]"
HBM = f"[0; {N}x128, 1x{N}]"
TILES, X, OUT = 4, 4, 5  # the first tensors are tiles


def text(*lines: str, more: str = "") -> Program:
    tensors = [declare(i, f"t{i}", f"128, {N}") for i in range(TILES)]
    outside = [declare(i, n, f"128, {N}", Buffer.SHARED_HBM) for i, n in ((X, "x"), (OUT, "out"))]
    ends = [f"input x = %{X}", f"output output_0 = %{OUT}"]
    return program("\n".join([*tensors, *outside, *more.splitlines(), *ends, "core", *lines]))


def fill(number: int, tile: int, value: float = 1.0, **more: str) -> str:
    return op(number, "memset", dst=f"%{tile}{WHOLE}", value=repr(value), **more)


def double(number: int, dst: int, src: int) -> str:
    """dst = src + src: a tile computed from a tile on chip cannot be computed again."""
    source = f"%{src}{WHOLE}"
    return op(number, "tensor_tensor", dst=f"%{dst}{WHOLE}", data1=source, data2=source, op="'add'")


def loaded(number: int, tile: int) -> str:
    return load(number, f"%{tile}{WHOLE}", f"%{X}{HBM}")


def stored(number: int, tile: int) -> str:
    return load(number, f"%{OUT}{HBM}", f"%{tile}{WHOLE}")


def names(found: Program) -> list[str]:
    """Return the instructions with the tensors that they write and read, by name."""
    return [_name(one) for one in code(found)]


def _name(one: Instruction) -> str:
    numbers = [o.tensor.number for o in one.operands if isinstance(o, AccessPattern)]
    return " ".join([one.row.name, *(f"%{number}" for number in numbers)])


def spilled(found: Program, share: float = 1.0) -> Spilled:
    """Return the result of the stage, proven."""
    made = spill(found, share)
    assert prove_spilled(found, made.program) == []
    return made


def test_what_has_room_stays_as_it_is() -> None:
    found = text(fill(0, 0), double(1, 1, 0), stored(2, 1))
    made = spilled(found)
    assert made.program.cores[0] is found.cores[0]
    assert (made.traffic.stored, made.traffic.loaded, made.away) == (0, 0, ((),))


def test_a_tile_goes_to_hbm_after_its_last_write_and_comes_back_before_its_use() -> None:
    lines = [fill(0, 0), double(1, 1, 0), fill(2, 2), double(3, 3, 2), stored(4, 3), stored(5, 1)]
    made = spilled(text(*lines))
    assert names(made.program) == [
        *("memset %0", "tensor_tensor %1 %0 %0", "dma_copy %6 %1"),
        *("memset %2", "tensor_tensor %3 %2 %2", "dma_copy %5 %3"),
        *("dma_copy %7 %6", "dma_copy %5 %7"),
    ]
    assert [one.number for one in code(made.program)] == list(range(8))
    kept, back = made.program.tensors[6:]
    assert (kept.name, kept.buffer, kept.shape) == ("t1.spilled", Buffer.HBM, (128, N))
    assert (back.name, back.buffer, back.shape) == ("t1", Buffer.SBUF, (128, N))
    (away,) = made.away[0]
    assert (away.tensor.number, away.stored, away.loaded, away.remade) == (1, 1, 1, 0)
    assert made.traffic.stored == made.traffic.loaded == 128 * N * 4
    assert away.moved == 2 * 128 * N * 4
    assert made.program.notes["spill_stored"] == str(128 * N * 4)


def test_the_one_whose_next_use_is_furthest_leaves() -> None:
    lines = [fill(0, 0), double(1, 1, 0), double(2, 2, 0), fill(3, 3)]
    uses = [double(4, 3, 2), double(5, 3, 1), stored(6, 3)]
    made = spilled(text(*lines, *uses))
    assert {one.tensor.name for one in made.away[0]} == {"t1"}


def test_what_was_loaded_and_has_not_changed_is_loaded_again_and_not_stored() -> None:
    lines = [loaded(0, 0), double(1, 1, 0), fill(2, 2), double(3, 2, 1), stored(4, 2)]
    made = spilled(text(*lines, double(5, 3, 0), stored(6, 3)))
    (away,) = made.away[0]
    assert (away.tensor.name, away.stored, away.loaded, away.remade) == ("t0", 0, 1, 0)
    assert names(made.program).count(f"dma_copy %6 %{X}") == 1


def test_a_constant_is_made_again() -> None:
    lines = [fill(0, 0, 3.0), loaded(1, 1), double(2, 2, 1), stored(3, 2), double(4, 3, 0)]
    made = spilled(text(*lines, stored(5, 3)), share=0.8)
    (away,) = made.away[0]
    assert (away.stored, away.loaded, away.remade) == made.traffic == (0, 0, 1)
    assert [one.attribute("value") for one in code(made.program) if one.row.name == "memset"] == [
        3.0,
        3.0,
    ]


@pytest.mark.parametrize(
    ("line", "again"),
    [
        (fill(1, 0), True),
        (f"{fill(1, 0)} pinned 1", False),
        (f"{fill(1, 0)} after (0,)", False),
        (loaded(1, 0), True),
        (double(1, 0, 1), False),
        (
            op(1, "rand_get_state", dst="%0[0+128, 0; 1x24]"),
            False,
        ),  # it reads the state of an engine
        (op(1, "memset", dst=f"%1{WHOLE}", value="1.0"), False),  # another tile
    ],
)
def test_what_may_be_made_again(line: str, again: bool) -> None:
    found = text(fill(0, 3), line)
    (_, item), (tile, *_) = code(found), found.tensors
    touched = touches_of(found.cores[0], found.target)
    assert repeatable(item, tile, touched, found.target, constant_tensors(found)) == again


def test_what_is_written_into_after_all_is_stored() -> None:
    lines = [fill(0, 0), copy(1, "%0[0+128, 0; 1x1]", "%0[0+128, 1; 1x1]"), fill(2, 1)]
    made = spilled(text(*lines, double(3, 2, 1), stored(4, 2), stored(5, 0)))
    assert [(one.tensor.name, one.stored, one.loaded) for one in made.away[0]] == [("t0", 1, 1)]


def test_only_what_made_a_tile_first_makes_it_again() -> None:
    """The second one fills a part; the rest still holds the first one's elements."""
    part = op(1, "memset", dst="%0[0+128, 0; 1x1]", value="5.0")
    found = text(fill(0, 0), part, fill(2, 1), double(3, 2, 1), stored(4, 2), stored(5, 0))
    made = spilled(found)
    assert [(one.tensor.name, one.stored, one.loaded) for one in made.away[0]] == [("t0", 1, 1)]
    body = list(code(made.program))
    at = next(i for i, one in enumerate(body) if _name(one) == "dma_copy %7 %6")
    dst = body[at].operands[0]
    body[at] = body[0]._replace(number=body[at].number, operands=(dst, *body[0].operands[1:]))
    (finding,) = prove_spilled(found, replace(made.program, cores=(tuple(body),)))
    assert "reads `t0`, which does not hold the program's value" in finding.what


def test_an_input_that_is_overwritten_is_not_loaded_again() -> None:
    lines = [loaded(0, 0), load(1, f"%{X}{HBM}", f"%0{WHOLE}"), fill(2, 1), double(3, 2, 1)]
    made = spilled(text(*lines, stored(4, 2), stored(5, 0)))
    assert [(one.tensor.name, one.stored, one.loaded) for one in made.away[0]] == [("t0", 1, 1)]


def test_a_transfer_in_a_no_reorder_region_belongs_to_it() -> None:
    lines = [fill(0, 0), double(1, 1, 0), fill(2, 2), double(3, 3, 2), stored(4, 3), stored(5, 1)]
    made = spilled(text(*(f"{line} pinned 1" for line in lines)))
    assert {one.pinned for one in code(made.program)} == {1}


@pytest.mark.parametrize(
    ("regions", "made_regions"),
    [
        ((1, 1, 2, 2, 3, 3), (1, 1, 0, 2, 2, 3, 3, 3)),  # the store lies between, the load within 3
        ((1, 1, 1, 2, 2, 2), (1, 1, 1, 1, 2, 2, 2, 2)),
        ((1, 1, 2, 2, 2, 3), (1, 1, 0, 2, 2, 2, 0, 3)),
    ],
)
def test_a_transfer_between_regions_belongs_to_that_of_both_neighbours(
    regions: tuple[int, ...], made_regions: tuple[int, ...]
) -> None:
    lines = [fill(0, 0), double(1, 1, 0), fill(2, 2), double(3, 3, 2), stored(4, 3), stored(5, 1)]
    made = spilled(text(*(f"{line} pinned {n}" for line, n in zip(lines, regions, strict=True))))
    assert tuple(one.pinned for one in code(made.program)) == made_regions


def test_what_the_kernel_ordered_stays_ordered() -> None:
    lines = [fill(0, 0), double(1, 1, 0), fill(2, 2), double(3, 3, 2), stored(4, 3), stored(5, 1)]
    made = spilled(text(*lines[:5], f"{lines[5]} after (4,)"))
    one = code(made.program)[-1]
    assert (one.number, one.after) == (7, (5,))


def test_what_comes_after_an_instruction_does_not_come_after_its_copy() -> None:
    lines = [fill(0, 0, 3.0), loaded(1, 1), double(2, 2, 1), stored(3, 2), double(4, 3, 0)]
    made = spilled(text(*lines, f"{stored(5, 3)} after (0,)"), share=0.8)
    numbers = [one.number for one in code(made.program) if one.row.name == "memset"]
    assert len(numbers) == 2 and code(made.program)[-1].after == (numbers[0],)


def test_a_loop_is_one_item() -> None:
    inside = [double(2, 3, 2), stored(3, 3)]
    loop = ["loop 1 $0 = 0 to 4 by 1", *inside, "end"]
    made = spilled(text(fill(0, 0), double(1, 1, 0), fill(9, 2), *loop, stored(10, 1)))
    kinds = ["loop" if isinstance(one, Loop) else one.row.name for one in made.program.cores[0]]
    assert kinds == [
        *("memset", "tensor_tensor", "dma_copy", "memset", "loop", "dma_copy", "dma_copy")
    ]


def test_what_a_loop_uses_comes_back_before_it() -> None:
    lines = [fill(0, 0), double(1, 1, 0), fill(2, 2), double(3, 3, 2), stored(4, 3)]
    loop = ["loop 1 $0 = 0 to 4 by 1", double(5, 0, 1), stored(6, 0), "end"]
    made = spilled(text(*lines, *loop))
    (inside,) = (item for item in made.program.cores[0] if isinstance(item, Loop))
    assert [_name(one) for one in inside.body if isinstance(one, Instruction)] == [
        "tensor_tensor %8 %7 %7",
        f"dma_copy %{OUT} %8",
    ]
    before = ["dma_copy %7 %6", "memset %8"]  # what the loop writes may hold something, too
    assert sorted(names(made.program)[6:8]) == before
    first, *_ = instructions(inside.body)
    assert [one.at for one in code(made.program) if _name(one) == before[0]] == [first.at]


def test_tiles_of_a_loop_need_room_and_stay() -> None:
    own = "\n".join(declare(i, f"u{i}", f"128, {N}", more=" scope (1,)") for i in (6, 7))
    loop = ["loop 1 $0 = 0 to 4 by 1", fill(2, 6), double(3, 7, 6), stored(4, 7), "end"]
    lines = [fill(0, 0), double(1, 1, 0), *loop, stored(5, 1)]
    made = spilled(text(*lines, more=own))
    assert [(one.tensor.name, one.stored, one.loaded) for one in made.away[0]] == [("t1", 1, 1)]


def test_what_moves_less_leaves_first() -> None:
    """A tile that has not changed since it was loaded is moved once, the other tile twice."""
    lines = [loaded(0, 0), fill(1, 2), double(2, 1, 2), double(3, 3, 2), stored(4, 3)]
    made = spilled(text(*lines, stored(5, 0), stored(6, 1)), share=3.01 * 80_000 / 212_728)
    assert {one.tensor.name for one in made.away[0]} == {"t0"}


def test_the_victim_frees_most_for_longest_and_moves_least() -> None:
    """By plain search: bytes of those lacking, times the items until its use, halved if stored."""
    random, space = Random(0), Space(Buffer.SBUF, 0, 1)
    tensors = text().tensors
    for _ in range(400):
        index, lacking = random.randrange(12), random.randrange(1, 9)
        walk = Walk((), space, 0, frozenset(), lambda tensor, buffer: tensor, lambda *_: False)
        worths = {}
        for tensor in tensors[:TILES]:
            tile = _Tile(tensor, random.randrange(1, 9), [random.randrange(24)], in_sbuf=tensor)
            tile.changed = random.random() < 0.5
            walk.tiles[tensor.number] = tile
            heappush(walk.heaps[tile.size, tile.changed], (-tile.next_use, tensor.number))
            if tile.next_use > index:
                share = min(1.0, lacking / tile.size) / (1 + tile.changed)
                worths[tensor] = (tile.next_use - index) * share
        found = walk._victim(index, lacking)
        if found is None:
            assert not worths
        else:
            assert worths[found.tensor] == max(worths.values())


def test_no_more_leaves_than_is_lacking() -> None:
    """Of two tiles that are needed equally late, the smaller one that is large enough is
    spilled.
    """
    few = 4000
    small, part = (f"%{tile}[0+128, 0; 1x{few}]" for tile in (6, 1))
    more = declare(6, "small", f"128, {few}")
    lines = [fill(0, 0), double(1, 1, 0), copy(2, small, part)]
    lines += [fill(3, 2), double(4, 3, 2), stored(5, 3)]
    out = op(6, "tensor_tensor", dst=small, data1=small, data2=part, op="'add'")
    made = spilled(text(*lines, out, more=more), share=256_000 / 212_728)
    assert {one.tensor.name for one in made.away[0]} == {"small"}


def test_one_instruction_that_needs_too_much_cannot_be_helped() -> None:
    whole = [f"%{i}{WHOLE}" for i in range(3)]
    add = op(3, "tensor_tensor", dst=whole[0], data1=whole[1], data2=whole[2], op="'add'")
    assert not spill(text(fill(0, 0), fill(1, 1), fill(2, 2), add, stored(4, 0))).enough


# ---- the proof -----------------------------------------------------------------------------------

LINES = [fill(0, 0), double(1, 1, 0), fill(2, 2), double(3, 3, 2), stored(4, 3), stored(5, 1)]
Change = Callable[[list[Instruction]], None]


def _swap_kept(body: list[Instruction]) -> None:
    """Reload from the output instead of the copy in HBM."""
    back, out = body[6], body[5]
    body[6] = back._replace(operands=(back.operands[0], out.operands[0]))


def _store_before_write(body: list[Instruction]) -> None:
    body[1], body[2] = body[2]._replace(number=1), body[1]._replace(number=2)


def _part(body: list[Instruction]) -> None:
    pattern = body[6].operands[0]
    assert isinstance(pattern, AccessPattern)
    part = pattern._replace(dims=((1, N - 1),))
    body[6] = body[6]._replace(operands=(part, body[6].operands[1]))


def _own_tensor(body: list[Instruction]) -> None:
    """Reload into a tile of the program, which may hold other data."""
    mine, back = body[1].operands[0], body[6]
    body[6] = back._replace(operands=(mine, back.operands[1]))


def _former(body: list[Instruction]) -> None:
    """Let the use refer to the spilled tile, after its bytes were overwritten."""
    body[7] = body[7]._replace(operands=(body[7].operands[0], body[4].operands[0]))


def _in_order(body: list[Instruction]) -> None:
    body[3] = body[3]._replace(number=9)


CHANGES: dict[str, Change] = {
    "no load": lambda body: body.__delitem__(6),
    "no store": lambda body: body.__delitem__(2),
    "an instruction less": lambda body: body.__delitem__(3),
    "an instruction twice": lambda body: body.insert(8, body[7]._replace(number=8)),
    "from elsewhere": _swap_kept,
    "stored too early": _store_before_write,
    "a part": _part,
    "into a tile of the program": _own_tensor,
    "the wrong tile": _former,
    "numbers": _in_order,
    "the last instruction is missing": lambda body: body.__delitem__(7),
    "a load that waits": lambda body: body.__setitem__(6, body[6]._replace(after=(0,))),
    "a store that waits": lambda body: body.__setitem__(2, body[2]._replace(after=(0,))),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_wrong_program_is_found(change: Change) -> None:
    found = text(*LINES)
    made = spilled(found).program
    body = list(code(made))
    change(body)
    broken = replace(made, cores=(tuple(body),))
    assert {one.rule for one in prove_spilled(found, broken)} == {"spilled"}


@pytest.mark.parametrize(
    "other", [{"buffer": Buffer.PSUM}, {"fixed": Address(0, 0)}, {"scope": (1,)}]
)
def test_a_tile_that_stands_for_another_is_declared_like_it(other: dict[str, Any]) -> None:
    """Not in another memory, at an address of its own, or in the body of a loop."""
    found = text(*LINES)
    made = spilled(found).program
    back = made.tensors[7]
    declared = {"buffer": back.buffer, "fixed": None, "scope": ()} | other
    new = Tensor(back.number, back.name, back.dtype, back.shape, at=back.at, **declared)
    body = [
        one._replace(
            operands=tuple(
                o._replace(tensor=new) if isinstance(o, AccessPattern) and o.tensor is back else o
                for o in one.operands
            )
        )
        for one in code(made)
    ]
    broken = replace(made, tensors=(*made.tensors[:7], new), cores=(tuple(body),))
    (finding,) = prove_spilled(found, broken)
    assert "reads `t1`, which does not hold the program's value" in finding.what


def again(body: Body) -> list[Instruction]:
    return [one for one in instructions(body) if one.row.name == "memset"]


def test_what_is_made_again_must_be_the_same() -> None:
    lines = [fill(0, 0, 3.0), loaded(1, 1), double(2, 2, 1), stored(3, 2), double(4, 3, 0)]
    found = text(*lines, stored(5, 3))
    made = spilled(found, share=0.8).program
    body = [
        one._replace(attributes=(4.0,)) if one.number == again(made.cores[0])[1].number else one
        for one in code(made)
    ]
    (finding,) = prove_spilled(found, replace(made, cores=(tuple(body),)))
    assert "reads `t0`, which does not hold the program's value" in finding.what


def test_what_a_loop_made_is_not_made_again() -> None:
    lines = ["loop 6 $0 = 0 to 2 by 1", f"  {fill(0, 0)}", "end", stored(1, 0)]
    found = text(*lines)
    tile = found.tensors[0]
    new = Tensor(len(found.tensors), "t0", tile.dtype, tile.shape, tile.buffer, tile.at)
    loop, store = found.cores[0]
    assert isinstance(loop, Loop) and isinstance(store, Instruction)
    (made,) = instructions(loop.body)

    def on_new(one: Instruction, number: int) -> Instruction:
        operands = tuple(
            o._replace(tensor=new) if isinstance(o, AccessPattern) and o.tensor is tile else o
            for o in one.operands
        )
        return one._replace(number=number, operands=operands)

    body = (loop, on_new(made, 1), on_new(store, 2))
    broken = replace(found, tensors=(*found.tensors, new), cores=(body,))
    (finding,) = prove_spilled(found, broken)
    assert "reads `t0`, which does not hold the program's value" in finding.what


def test_what_changes_since_cannot_be_made_again() -> None:
    """The tile would be loaded again from an input that was overwritten in between."""
    lines = [loaded(0, 0), load(1, f"%{X}{HBM}", f"%0{WHOLE}"), fill(2, 1), double(3, 2, 1)]
    found = text(*lines, stored(4, 2), stored(5, 0))
    made = spilled(found).program
    body, first = list(code(made)), code(made)[0]
    at = next(i for i, one in enumerate(body) if i > 2 and _name(one).startswith("dma_copy %7"))
    number, operands = body[at].number, (body[at].operands[0], first.operands[1])
    for item in (body[at], first):  # the copy of the stage, and the load that made the tile
        body[at] = item._replace(number=number, operands=operands)
        (finding,) = prove_spilled(found, replace(made, cores=(tuple(body),)))
        assert "reads `t0`, which does not hold the program's value" in finding.what


def test_another_output_is_another_program() -> None:
    found = text(*LINES)
    made = spilled(found).program
    assert prove_spilled(found, replace(made, outputs=made.inputs))


# ---- whole compilations --------------------------------------------------------------------------

KERNEL = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(x, count=4):
    columns = x.shape[1]
    sums = []
    for i in range(count):
        one = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=one, src=x)
        nisa.tensor_scalar(dst=one, data=one, op0=nl.add, operand0=float(i))
        sums.append(one)
    total = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=total, value=0.0)
    for one in sums:
        nisa.tensor_tensor(dst=total, data1=total, data2=one, op=nl.add)
    for one in sums:
        nisa.tensor_tensor(dst=total, data1=total, data2=one, op=nl.multiply)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=total)
    return out
"""
SOURCE = SourceFile("k.py", KERNEL)


def data(columns: int = 16_000) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((128, columns)).astype(np.float32)


def test_an_error_names_spill_and_what_it_moves() -> None:
    with pytest.raises(CompileError, match="no room for") as failed:
        api.compile(SOURCE, inputs={"x": data()})
    moved = 128 * 16_000 * 4 * 7 / 1e6  # three are stored, one of them loaded twice
    help = failed.value.diagnostics[0].help
    assert help.endswith(f"; or spill tiles to HBM with --spill, which moves {moved:.1f} MB "
                         "to and from HBM")  # fmt: skip


@pytest.mark.parametrize("serial", [False, True])
def test_values_are_the_same(serial: bool) -> None:
    x = data()
    with pytest.warns(api.NkicWarning, match=r"3 tensors are spilled to HBM, .* stored, .* loaded"):
        artifact = api.compile(SOURCE, inputs={"x": x}, spill=True, serial=serial)
    tiles = [x + np.float32(i) for i in range(4)]
    total = np.zeros_like(x)
    for tile in tiles:
        total = total + tile
    for tile in tiles:
        total = total * tile
    result = api.run(artifact, {"x": x})
    assert np.array_equal(np.asarray(result.outputs["output_0"]), total)
    assert result.insight is not None
    metrics, size = summary(result.insight), 128 * 16_000 * 4
    assert metrics["spill_save_bytes"] == 3 * size and metrics["spill_reload_bytes"] == 4 * size


def test_spill_changes_nothing_where_there_is_room() -> None:
    x = data(1000)
    plain = api.compile(SOURCE, inputs={"x": x})
    assert api.compile(SOURCE, inputs={"x": x}, spill=True).data == plain.data


def test_what_cannot_be_spilled_is_said() -> None:
    with pytest.raises(CompileError, match="no room") as failed:
        api.compile(SOURCE, inputs={"x": data(28_000)}, spill=True)
    assert "a single instruction needs more memory" in failed.value.diagnostics[0].help


def test_transfers_are_those_of_the_dma_engines() -> None:
    made = spilled(text(*LINES)).program
    assert {one.engine for one in code(made) if one.row.copies} == {Engine.DMA}
