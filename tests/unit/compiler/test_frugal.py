"""Test the order with the least memory in use: by a plain search, and the order among equals."""

from collections.abc import Iterator
from random import Random

import pytest

from nkic.compiler.depend import depend
from nkic.compiler.tight import frugal
from nkic.program.program import AccessPattern, Instruction, instructions
from tests.programs import copy, declare, op, program

WHOLE = "[0+128, 0; 1x64]"
TILES = [declare(i, f"t{i}", "128, 64") for i in range(4)]


def order(*body: str, backwards: bool = False) -> list[str]:
    """Return the tensors that are written, in the new order."""
    found = program("\n".join([*TILES, "core", *body]))
    (graph,) = depend(found)
    made = frugal(found.cores[0], graph, found.target, backwards)
    assert made is not None
    return [_written(one) for one in instructions(made[0])]


def _written(one: Instruction) -> str:
    dst = one.operands[0]
    assert isinstance(dst, AccessPattern)
    return dst.tensor.name


def fill(number: int, tile: int) -> str:
    return op(number, "memset", dst=f"%{tile}{WHOLE}", value="0.0")


@pytest.mark.parametrize("backwards", [False, True])
def test_equals_stay_in_program_order_or_come_in_the_other(backwards: bool) -> None:
    wanted = ["t3", "t0", "t2", "t1"]
    body = [fill(i, int(name[1])) for i, name in enumerate(wanted)]
    assert order(*body, backwards=backwards) == (wanted[::-1] if backwards else wanted)


@pytest.mark.parametrize("backwards", [False, True])
def test_what_ends_a_tensor_comes_before_what_begins_one(backwards: bool) -> None:
    """t1 takes over from t0, t3 from t2: no two of them need to be live at the same time."""
    body = [fill(0, 0), fill(1, 2), copy(2, f"%1{WHOLE}", f"%0{WHOLE}")]
    body += [copy(3, f"%3{WHOLE}", f"%2{WHOLE}")]
    pairs = [["t0", "t1"], ["t2", "t3"]]
    wanted = pairs[::-1] if backwards else pairs
    assert order(*body, backwards=backwards) == [*wanted[0], *wanted[1]]


Used = tuple[int, ...]  # the tiles of an instruction; it writes the first


def drawn(seed: int) -> tuple[list[int], list[Used]]:
    """Draw the columns of a few tiles, and the users of each tile, some of them repeated."""
    rng = Random(seed)
    columns = [rng.choice([16, 32, 64]) for _ in range(5)]
    code = [tuple(rng.sample(range(5), rng.choice([1, 2, 2, 2]))) for _ in range(9)]
    return columns, code


def least(columns: list[int], code: list[Used], sign: int) -> Iterator[int]:
    """Of the ready instructions, always choose the one after which the fewest columns are in
    use.
    """
    left = set(range(len(code)))
    while left:
        ready = [n for n in left if not any(_meet(code[m], code[n]) for m in left if m < n)]
        number = min(ready, key=lambda n: (_in_use(columns, code, left - {n}), sign * n))
        left.remove(number)
        yield number


def _meet(one: Used, other: Used) -> bool:
    return one[0] in other or other[0] in one


def _in_use(columns: list[int], code: list[Used], left: set[int]) -> int:
    """Return the columns of tiles that have been used and will be used again."""
    before = {tile for n, used in enumerate(code) if n not in left for tile in used}
    return sum(columns[tile] for tile in before & {tile for n in left for tile in code[n]})


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_the_next_is_after_which_least_is_in_use(seed: int, backwards: bool) -> None:
    columns, code = drawn(seed)
    tiles = [declare(i, f"t{i}", f"128, {count}") for i, count in enumerate(columns)]
    parts = [f"%{i}[0+128, 0; 1x{count}]" for i, count in enumerate(columns)]
    body = []
    for n, (first, *rest) in enumerate(code):
        step = copy(n, parts[first], parts[rest[0]]) if rest else ""
        body.append(step or op(n, "memset", dst=parts[first], value="0.0"))
    found = program("\n".join([*tiles, "core", *body]))
    (graph,) = depend(found)
    made = frugal(found.cores[0], graph, found.target, backwards)
    assert made is not None
    wanted = [code[n] for n in least(columns, code, -1 if backwards else 1)]
    assert [_used(one) for one in instructions(made[0])] == wanted


def _used(one: Instruction) -> Used:
    names = [o.tensor.name for o in one.operands if isinstance(o, AccessPattern)]
    return tuple(int(name[1:]) for name in names)
