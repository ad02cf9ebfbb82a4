"""When the list scheduler lets an instruction start after what it waits for."""

from __future__ import annotations

from nkic.depend import depend
from nkic.ir.program import Instruction
from nkic.machine.timing import semaphore_ps
from nkic.schedule.order import ListScheduler, Orderer
from tests.programs import code, copy, declare, load, op, program

TILE = "[0+128, 0; 1x512]"
TENSORS = [
    "%0 x: float32[128, 512] shared_hbm",
    *(declare(i, f"t{i}", "128, 512") for i in range(1, 6)),
]


def scheduler(*body: str) -> ListScheduler:
    """Of a program without loops, all of whose instructions wait for the first."""
    found = program("\n".join([*TENSORS, "core", *(f"  {line}" for line in body)]))
    here: dict[int, Instruction] = {one.number: one for one in code(found)}
    waits = {number: [0] if number else [] for number in here}
    (graph,) = depend(found)
    made = ListScheduler(Orderer(graph, found.target), here, waits)
    made.begin()
    made.issue()
    return made


def test_an_engine_knows_of_its_own_results_without_a_signal() -> None:
    made = scheduler(
        op(0, "reciprocal", dst=f"%1{TILE}", data=f"%2{TILE}"),
        op(1, "reciprocal", dst=f"%3{TILE}", data=f"%1{TILE}"),
        copy(2, f"%4{TILE}", f"%1{TILE}", "gpsimd"),
    )
    assert made.ready_at[1] == made.done[0]
    assert made.ready_at[2] == made.done[0] + semaphore_ps(made.orderer.target)


def test_a_queue_does_not() -> None:
    """Transfers of one queue are under way at the same time."""
    made = scheduler(
        load(0, f"%1{TILE}", "%0[0; 512x128, 1x512]"),
        load(1, "%0[0; 512x128, 1x512]", f"%1{TILE}"),
    )
    assert made.ready_at[1] == made.done[0] + semaphore_ps(made.orderer.target)


def test_a_sum_goes_on_before_its_result_is_there() -> None:
    """A matmul that adds to the same place need not wait for the first one's latency."""
    psum, other = "%1[0+128, 0; 1x512]", "%6[0+128, 0; 1x512]"
    held, moving = {"stationary": "%2[0+128, 0; 1x128]"}, {"moving": f"%3{TILE}"}
    first, adds = {"accumulate": "False"}, {"accumulate": "True"}
    sums = ["%1 sums: float32[128, 512] psum", "%6 others: float32[128, 512] psum"]
    text = [TENSORS[0], sums[0], *TENSORS[2:], sums[1], "core"]
    text += [
        op(0, "nc_matmul", "tensor", dst=psum, **held, **moving, **first),
        op(1, "nc_matmul", "tensor", dst=psum, **held, **moving, **adds),
        op(2, "nc_matmul", "tensor", dst=other, **held, **moving, **first),
    ]
    found = program("\n".join(text))
    here = {one.number: one for one in code(found)}
    (graph,) = depend(found)
    made = ListScheduler(Orderer(graph, found.target), here, {0: [], 1: [0], 2: [0]})
    made.begin()
    made.issue()
    assert made.times[0].latency > 0
    assert made.ready_at[1] == made.done[0] - made.times[0].latency
    assert made.ready_at[2] == made.done[0]
