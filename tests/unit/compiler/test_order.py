"""Test when the list scheduler lets an instruction start, and which queue a transfer takes."""

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from nkic.base.diagnostics import Reporter
from nkic.compiler.depend import depend
from nkic.compiler.lower import lower
from nkic.compiler.schedule import ListScheduler, Orderer, _Lane, _Queues
from nkic.compiler.semaphores import engine_of, first_users, grouped, queues_of
from nkic.machine.targets import TRN2, Engine
from nkic.machine.timing import Timing, overlaps_commands, semaphore_ps
from nkic.program.program import Instruction, Program, instructions
from nkic.program.text import read_program
from tests.programs import code, copy, declare, load, op, program

STAGES = Path(__file__).parents[2] / "data/stages"
TILE = "[0+128, 0; 1x512]"
TENSORS = [
    "%0 x: float32[128, 512] shared_hbm",
    *(declare(i, f"t{i}", "128, 512") for i in range(1, 6)),
]


def scheduler(*body: str) -> ListScheduler:
    """Return the scheduler of a program without loops, in which all instructions wait for the
    first.
    """
    found = program("\n".join([*TENSORS, "core", *(f"  {line}" for line in body)]))
    here = code(found)
    return begun(found, here, [[0] if index else [] for index in range(len(here))])


def begun(found: Program, here: Sequence[Instruction], waits: list[Sequence[int]]) -> ListScheduler:
    """Return a scheduler that has issued the first instruction of `here`."""
    (graph, *_) = depend(found)
    orderer = Orderer(graph, found.target)
    made = ListScheduler(orderer, orderer.known(here)._replace(waits=waits))
    made.begin()
    next(made.issues())
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
    """Transfers of one queue are in progress at the same time."""
    made = scheduler(
        load(0, f"%1{TILE}", "%0[0; 512x128, 1x512]"),
        load(1, "%0[0; 512x128, 1x512]", f"%1{TILE}"),
    )
    assert made.ready_at[1] == made.done[0] + semaphore_ps(made.orderer.target)


def test_a_sum_goes_on_before_its_result_is_there() -> None:
    """A matmul that accumulates onto the same address need not wait for the first one's latency."""
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
    made = begun(found, code(found), [[], [0], [0]])
    assert made.classes[0].first.latency > 0
    assert made.ready_at[1] == made.done[0] - made.classes[0].first.latency
    assert made.ready_at[2] == made.done[0]


class Drawn:
    """Engines and queues at some time, with times so short that many are equal."""

    def __init__(self, rng: Random, fresh: bool) -> None:
        self.start = rng.randrange(4)
        self.free = {engine: rng.randrange(5) for engine in Engine}
        self.shared = {engine for engine in Engine if rng.random() < 0.5}
        self.commands = dict.fromkeys(Engine, 0)
        self.busy = [0] * TRN2.dma_queues
        if not fresh:
            self.commands = {engine: rng.randrange(5) for engine in Engine}
            self.busy = [rng.randrange(5) for _ in self.busy]
        self.timings = {
            engine: Timing(1, 0, rng.randrange(3), 1, rng.randrange(4), engine) for engine in Engine
        }
        half = TRN2.dma_queues // 2
        self.queues = rng.choice([range(half), range(half, 2 * half), range(2 * half)])

    def chosen(self) -> int:
        lanes = {engine: _Lane(engine, free) for engine, free in self.free.items()}
        for engine, lane in lanes.items():
            lane.commanded = self.commands[engine]
        made = _Queues(TRN2, lanes, self.shared)
        made.busy = self.busy
        times = [self.timing(queue) for queue in range(TRN2.dma_queues)]
        return made.choose(self.start, grouped(self.queues, TRN2), times)

    def timing(self, queue: int) -> Timing:
        return self.timings[TRN2.queue_engines[queue]]

    def waited(self, queue: int) -> int:
        """Return the delay until the data can move, and how long other work of the engine is
        delayed.
        """
        engine, times = TRN2.queue_engines[queue], self.timing(queue)
        ready = self.commands[engine] if engine is Engine.SCALAR else self.free[engine]
        begins = max(self.start, ready)
        held = max(self.free[engine], begins + times.trigger) - self.free[engine]
        moves = max(begins, self.busy[queue]) + times.start
        return moves + (min(held, times.trigger) if engine in self.shared else 0)


@pytest.mark.parametrize("fresh", [True, False])
def test_a_transfer_takes_the_queue_that_costs_least(fresh: bool) -> None:
    """Compare all queues; then prefer the queue that is free first, then the first one."""
    for seed in range(400):
        drawn = Drawn(Random(seed), fresh)
        wanted = min(drawn.queues, key=lambda q: (drawn.waited(q), drawn.busy[q], q))
        assert drawn.chosen() == wanted, f"seed {seed}"


@pytest.mark.parametrize("seed", range(20))
def test_a_table_is_first_used_where_no_way_leads_from_another_user(seed: int) -> None:
    rng = Random(seed)
    tables = {n: rng.choice(["", "exp", "gelu"]) for n in range(8)}
    waits = {n: [m for m in range(n) if rng.random() < 0.25] for n in tables}

    def before(number: int) -> set[int]:
        return {m for source in waits[number] for m in (source, *before(source))}

    users = [n for n, table in tables.items() if table]
    wanted = {n for n in users if all(tables[m] != tables[n] for m in before(n))}
    assert first_users(tables, waits) == wanted


def plainly_busiest(made: ListScheduler) -> int:
    """Find the busiest engine by a sum for each engine.

    Triggers count if no other engine can take them.
    """
    target, busy = made.orderer.target, dict.fromkeys(Engine, 0)
    for one in made.code:
        times, engine = made.orderer.timings.of(one), engine_of(one)
        if engine is not Engine.DMA:
            busy[engine] += times.hold
            continue
        busy[engine] += times.pool
        engines = {target.queue_engines[queue] for queue in queues_of(one, target)}
        if times.by is not target.queue_engines[0] or len(engines) == 1:
            busy[times.by] += 0 if overlaps_commands(times.by) else times.trigger
    return max(busy.values())


@pytest.mark.parametrize(
    "body",
    [
        [op(0, "reciprocal", dst=f"%1{TILE}", data=f"%2{TILE}")],
        [load(i, f"%1{TILE}", "%0[0; 512x128, 1x512]") for i in range(3)],
        [
            op(0, "reciprocal", dst=f"%1{TILE}", data=f"%2{TILE}"),
            *(load(i, f"%1{TILE}", "%0[0; 512x128, 1x512]") for i in range(1, 4)),
            *(copy(i, f"%4{TILE}", f"%1{TILE}", "gpsimd") for i in range(4, 6)),
        ],
        [*(copy(i, f"%4{TILE}", f"%1{TILE}", e) for i, e in enumerate(["vector", "gpsimd"] * 2))],
    ],
)
def test_the_busiest_engine_has_the_most_to_do(body: list[str]) -> None:
    made = scheduler(*body)
    assert made.busiest() == plainly_busiest(made) > 0


@pytest.mark.parametrize("seed", [0, 1, 2, 5])
def test_the_busiest_engine_of_a_random_program_has_the_most_to_do(seed: int) -> None:
    found = lower(read_program((STAGES / f"{seed}.ir").read_text("utf-8")), Reporter())
    for body in found.cores:
        here = [*instructions(body)]
        made = begun(found, here, [[] for _ in here])
        assert made.busiest() == plainly_busiest(made) > 0
