"""Accesses that two engines of NeuronCore-v2 may not make at once, in simulated time."""

import pytest

from nkic.artifact.events import Cause, Event
from nkic.artifact.pace import duration
from nkic.artifact.records import Executable
from nkic.base.diagnostics import Reporter
from nkic.compiler.allocate import allocate
from nkic.compiler.depend import depend
from nkic.compiler.emit import emit
from nkic.compiler.schedule import schedule
from nkic.machine.targets import TARGETS, TRN1, TRN2, TRN3, Buffer, Engine
from nkic.machine.timing import semaphore_ps
from nkic.simulate import RunOptions, simulate
from tests.programs import copy, declare, op, program

TILE = "[0+128, 0; 1x64]"
SBUF, PSUM = Buffer.SBUF, Buffer.PSUM


def built(target: str, *copies: tuple[str, Buffer]) -> Executable:
    """Copies of own tiles into own tiles of SBUF, by engine and memory of the source."""
    tensors, body = [], []
    for i, (engine, buffer) in enumerate(copies):
        tensors.append(declare(2 * i, f"s{i}", "128, 64", buffer))
        tensors.append(declare(2 * i + 1, f"d{i}", "128, 64"))
        body.append(copy(i, f"%{2 * i + 1}{TILE}", f"%{2 * i}{TILE}", engine))
    return compiled(target, *tensors, "core", *body)


def compiled(target: str, *lines: str) -> Executable:
    found = program("\n".join(lines), target)
    placed, graphs = allocate(found, depend(found), Reporter())
    return emit(schedule(placed, graphs), {})


def events(executable: Executable) -> list[Event]:
    """The copies in the order in which they ran."""
    found = simulate(executable, {}, RunOptions(check_init=False, trace=100)).recorded
    assert found is not None and found.again() == found.trace.end
    assert found.trace.end == duration(executable, TARGETS[executable.target])
    return [event for event in found.trace.events if event.record.row is not None]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("vector", SBUF), ("gpsimd", SBUF)),
        (("vector", PSUM), ("scalar", PSUM)),
    ],
)
def test_on_trn1_the_second_engine_waits_for_the_end_of_the_first_ones_access(
    first: tuple[str, Buffer], second: tuple[str, Buffer]
) -> None:
    before, after = events(built("trn1", first, second))
    assert after.start == before.done + semaphore_ps(TRN1)
    assert (after.cause, after.before) == (Cause.ACCESS, 0)


@pytest.mark.parametrize(
    ("target", "first", "second"),
    [
        ("trn1", ("vector", SBUF), ("scalar", SBUF)),
        ("trn1", ("scalar", SBUF), ("gpsimd", SBUF)),
        ("trn1", ("vector", PSUM), ("scalar", SBUF)),
        ("trn2", ("vector", SBUF), ("gpsimd", SBUF)),
        ("trn2", ("vector", PSUM), ("scalar", PSUM)),
    ],
)
def test_other_accesses_overlap(
    target: str, first: tuple[str, Buffer], second: tuple[str, Buffer]
) -> None:
    assert [event.start for event in events(built(target, first, second))] == [0, 0]


def test_engines_access_memory_in_the_order_in_which_they_are_ready() -> None:
    """An engine does not wait for its own accesses; who waits comes before later accesses."""
    alone = events(built("trn1", *[("vector", SBUF)] * 3))
    assert [e.start for e in alone] == [0, alone[0].free, alone[1].free]
    beside = events(built("trn1", *[("vector", SBUF)] * 3, ("gpsimd", SBUF)))
    vector, gpsimd = beside[0].stream, beside[1].stream
    assert [e.stream for e in beside] == [vector, gpsimd, vector, vector]
    assert beside[2].start == beside[1].done + semaphore_ps(TRN1)
    assert beside[3].start == beside[2].free


def test_the_loading_of_a_table_is_part_of_the_access() -> None:
    """Scalar loads a table for exp while vector, which had other work first, waits for PSUM."""
    buffers = [PSUM, SBUF, SBUF, SBUF, PSUM, SBUF]
    tensors = [declare(i, f"t{i}", "128, 64", buffer) for i, buffer in enumerate(buffers)]
    exp = op(0, "activation", "scalar", dst=f"%1{TILE}", data=f"%0{TILE}", op="'exp'")
    copies = copy(1, f"%3{TILE}", f"%2{TILE}"), copy(2, f"%5{TILE}", f"%4{TILE}")
    found = events(compiled("trn1", *tensors, "core", exp, *copies))
    (scalar,) = (event for event in found if event.table)
    assert scalar.table == round(1000 * TRN1.figures["scalar.table_ns"])
    assert found[-1].start == scalar.done + semaphore_ps(TRN1)


def test_later_generations_have_no_such_rule() -> None:
    """Trainium2 architecture guide, memory hierarchy: both restrictions are lifted."""
    assert Engine.VECTOR in TRN1.sbuf_exclusive and Engine.VECTOR in TRN1.psum_exclusive
    for target in (TRN2, TRN3):
        assert not target.sbuf_exclusive and not target.psum_exclusive
