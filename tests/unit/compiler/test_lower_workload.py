"""Test engines by workload: copies move away from an engine with the most work, and only then."""

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from nkic.base.diagnostics import Reporter
from nkic.compiler.lower import BUSY_FRACTION, _Sharer, lower
from nkic.machine.targets import Engine, Target
from nkic.machine.timing import timing
from nkic.program.program import Instruction, Program, instructions
from nkic.program.text import read_program

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
