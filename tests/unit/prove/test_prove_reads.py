"""Test the proof of a schedule where a stream reorders the reads of a tensor, or has loops."""

from nkic.program.program import Schedule
from nkic.prove.order import _as_run
from tests.harness.proofs import Items, Made, edited, make, slot, swapped
from tests.programs import copy, declare, program
from tests.unit.prove.test_prove_order import TILE, made, memset, tiles


def turned_round(found: Made, *, early: bool) -> Schedule:
    """Swap the second and third item of vector.

    With `early`, the signal of the first of the two is given by the second item of the program.
    """
    schedule = edited(found.schedule, "vector", swapped(1))

    def signal(items: Items) -> None:
        one, two = slot(items[1]), slot(items[2])
        assert two.signals and not one.signals
        items[1:3] = [one._replace(signals=two.signals), two._replace(signals=())]

    return edited(schedule, "vector", signal) if early else schedule


def test_whoever_writes_waits_for_all_reads_that_a_stream_turned_round() -> None:
    reads = [copy(i, f"%{2 + i}{TILE}", f"%2{TILE}") for i in (1, 2)]
    found = made(tiles(3), memset(0, 2), *reads, memset(3, 2, "gpsimd"))
    assert found.order(turned_round(found, early=False)) == []
    (finding,) = found.order(turned_round(found, early=True))
    assert finding.rule == "memory" and "`t0`" in finding.what


def test_bytes_that_are_taken_over_wait_for_all_reads_that_a_stream_turned_round() -> None:
    text = [
        "%1 a: float32[128, 512] sbuf fixed (0, 0)",
        "%2 b: float32[128, 512] sbuf fixed (0, 0)",
        *(declare(i, f"t{i}", "128, 512") for i in (3, 4)),
        "core",
        "  " + memset(0, 1),
        *("  " + copy(i, f"%{2 + i}{TILE}", f"%1{TILE}") for i in (1, 2)),
        "  " + memset(3, 2, "gpsimd"),
    ]
    found = make(program("\n".join(text)))
    assert found.order() == found.order(turned_round(found, early=False)) == []
    (finding,) = found.order(turned_round(found, early=True))
    assert finding.rule == "bytes" and "takes over bytes of `a`" in finding.what


def test_a_program_is_told_in_the_order_in_which_its_loops_run() -> None:
    text = [
        tiles(1),
        "core",
        "  loop 1 $0 = 0 to 4 by 1",
        "    " + memset(0, 2),
        "    loop 2 $1 = 0 to 4 by 1",
        "      " + memset(1, 2),
        "    end",
        "  end",
        "  " + memset(2, 2),
    ]
    found = program("\n".join(text))
    told = [(one.number, visit) for one, visit in _as_run(found.cores[0])]
    assert told == [(0, 0), (1, 0), (1, 1), (0, 1), (1, 2), (1, 3), (2, 0)]
