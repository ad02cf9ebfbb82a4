"""The proofs take linear time, device loops included: work is counted, not timed."""

import pytest

from nkic.program.program import Program
from nkic.prove import prove_order, read
from tests.harness.proofs import Made, make
from tests.programs import copy, declare, op, program
from tests.unit.prove.test_prove_addresses import WHOLE, loops, work


def order(done: Made) -> int:
    readings = read(done.lowered)
    return work(lambda: prove_order(done.lowered, done.schedule, readings))


def straight(count: int) -> Program:
    """Return a program with eight tiles in rotation on two engines: reads, writes, waits, and
    reused bytes.
    """
    tensors = [declare(i, f"t{i}", "128, 256") for i in range(count)]
    body = [op(0, "memset", dst=f"%0{WHOLE}", value="0.0")]
    engines = ("vector", "gpsimd")
    body += [copy(i, f"%{i}{WHOLE}", f"%{i - 1}{WHOLE}", engines[i % 2]) for i in range(1, count)]
    return program("\n".join([*tensors, "core", *(f"  {line}" for line in body)]))


def test_ten_times_the_instructions_are_ten_times_the_work() -> None:
    few, many = make(straight(500)), make(straight(5_000))
    assert few.order() == [] == many.order()
    assert order(many) <= 10.2 * order(few)


def test_ten_times_the_loops_are_ten_times_the_work() -> None:
    few, many = make(loops(8)), make(loops(80))
    assert few.order() == [] == many.order()
    assert order(many) <= 10.2 * order(few)


@pytest.mark.slow
def test_so_they_are_for_thousands_of_loops() -> None:
    few, many = make(loops(1_600)), make(loops(16_000))
    assert order(many) <= 10.2 * order(few)
