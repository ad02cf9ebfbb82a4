"""Run random programs of all rows in five ways, with the same bits every time.

They are scheduled, scheduled in tight memory, scheduled in memory so small that tiles wait in HBM,
serial, and interpreted from the recorded program.
"""

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from numpy.typing import NDArray

from nkic.artifact.encode import write
from nkic.artifact.read import read as decode
from nkic.artifact.verify import verify, verify_ordered
from nkic.base.diagnostics import CompileFailed, ProgramFault, Reporter
from nkic.compiler.allocate import allocate
from nkic.compiler.check import check
from nkic.compiler.depend import depend
from nkic.compiler.emit import emit
from nkic.compiler.lower import lower
from nkic.compiler.pipeline import fit_or_spill
from nkic.compiler.schedule import schedule
from nkic.machine.targets import TRN2, Buffer
from nkic.program.program import Loop, Program, instructions
from nkic.prove import prove_addresses, prove_lowered, prove_order, prove_spilled, read
from nkic.simulate import RunOptions, simulate
from tests.harness.interpret import interpret, random_inputs
from tests.harness.proofs import differences
from tests.harness.whole_programs import random_whole, usable

Arrays = Mapping[str, NDArray[Any]]
UNCHECKED = RunOptions(check_init=False)
ROOMY = TRN2.sbuf_usable


def compiled_and_run(
    found: Program, inputs: Arrays, serial: bool = False, sbuf: int = ROOMY
) -> dict[str, bytes]:
    """Compile and run through every stage and every proof of both tools, bytes included."""
    lowered = lower(found, Reporter())
    assert prove_lowered(found, lowered) == []
    tight = replace(lowered, target=replace(lowered.target, sbuf_usable=sbuf))
    meant, report = tight, Reporter()
    tight, _, placed, graphs, spilled = fit_or_spill(tight, depend(tight), report, may_spill=True)
    assert (spilled is None) == (not report.all)
    assert prove_spilled(meant, tight) == []
    effects = read(tight)
    assert prove_addresses(placed, effects) == []
    done = schedule(placed, graphs, serial)
    assert prove_order(tight, done, effects) == []
    executable = decode(write(emit(done, {})))
    assert differences(done, executable) == []
    verify(executable)
    verify_ordered(executable)
    result = simulate(executable, inputs, UNCHECKED)
    return {name: array.tobytes() for name, array in result.outputs.items()}


def least(found: Program) -> int:
    """Return the least SBUF, to a power of two, that the program fits into."""
    size = ROOMY
    lowered = lower(found, Reporter())
    while size > 1024:
        tight = replace(lowered, target=replace(lowered.target, sbuf_usable=size // 2))
        try:
            allocate(tight, depend(tight), Reporter())
        except CompileFailed:
            return size
        size //= 2
    return size


def spilled(found: Program, inputs: Arrays, size: int) -> dict[str, bytes]:
    """Compile in the smallest memory, by eighths of the memory `size` that it fits into, for which
    spilling succeeds.
    """
    got = None
    for eighths in range(7, 0, -1):
        try:
            got = compiled_and_run(found, inputs, sbuf=size * eighths // 8)
        except CompileFailed:
            break
    return got if got is not None else compiled_and_run(found, inputs)


def five_ways(seed: int, cores: int) -> bool:
    """Return whether the program of that seed runs at all.

    Its indices may be out of range, and a matmul in a device loop may leave open whether to
    accumulate.
    """
    rng = Random(seed)
    found = random_whole(rng, rng.randrange(1, 4), rng.randrange(2, 12), cores)
    check(found, Reporter())
    try:
        lower(found, Reporter())
    except CompileFailed as refused:
        assert all("accumulate=None" in one.message for one in refused.diagnostics)
        return False
    inputs = random_inputs(found, seed)
    try:
        expected = interpret(found, inputs)
    except ProgramFault:
        return False
    assert compiled_and_run(found, inputs) == expected
    assert compiled_and_run(found, inputs, serial=True) == expected
    size = least(found)
    assert compiled_and_run(found, inputs, sbuf=size) == expected
    assert spilled(found, inputs, size) == expected
    return True


@pytest.mark.parametrize("cores", [1, 2])
def test_five_ways_agree(cores: int) -> None:
    assert sum(five_ways(seed, cores) for seed in range(4)) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_ten_thousand_agree(part: int) -> None:
    ran = [five_ways(1000 + 500 * part + n, 1 + n % 2) for n in range(500)]
    assert sum(ran) >= 250


def test_the_programs_have_everything() -> None:
    found = [random_whole(Random(seed), 3, 12, 1) for seed in range(60)]
    rows = {one.row.name for p in found for one in instructions(p.cores[0])}
    assert set(usable()) - rows == set() and len(rows) >= 45
    assert any(isinstance(item, Loop) for p in found for item in p.cores[0])
    assert any(t.buffer is Buffer.PSUM for p in found for t in p.tensors)
    assert any(one.row.effects.__name__ != "no_effects" for p in found
               for one in instructions(p.cores[0]))  # fmt: skip


def test_tight_memory_takes_bytes_over() -> None:
    found = random_whole(Random(5), 3, 6)
    lowered = lower(found, Reporter())
    size = least(found)
    tight = replace(lowered, target=replace(lowered.target, sbuf_usable=size))
    placed, _ = allocate(tight, depend(tight), Reporter())
    own = [t for t in found.tensors if t.buffer is Buffer.SBUF and t.number in placed.addresses]
    assert len({placed.addresses[t.number] for t in own}) < len(own)
