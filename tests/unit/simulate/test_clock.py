"""Test simulated time, which follows from the figures to the picosecond."""

from dataclasses import replace
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest

from nkic.artifact.events import Cause, Event
from nkic.artifact.pace import duration
from nkic.artifact.records import Executable
from nkic.base.diagnostics import Reporter
from nkic.compiler.allocate import allocate
from nkic.compiler.depend import depend
from nkic.compiler.emit import emit
from nkic.compiler.schedule import schedule
from nkic.machine.targets import TARGETS, TRN1, TRN2, TRN3, Buffer, Engine, MachineFile
from nkic.machine.timing import Entry, EventLoop, Line, Timing, Warmth, semaphore_ps
from nkic.simulate import RunOptions, simulate
from nkic.simulate.machine import Machine, Rank
from nkic.simulate.memory import Memory
from nkic.simulate.outcome import Prints
from nkic.simulate.plans import Decoder
from nkic.simulate.streams import Hook, Item, Runner, prepare
from tests.programs import copy, declare, load, op, program
from tests.unit.simulate.test_machine import build

TILE, HBM = "[0+128, 0; 1x64]", "[0; 64x128, 1x64]"
DATA = np.zeros((128, 64), np.float32)
F = TRN2.figures
# Eight rows of 256 bytes on each of the 16 engines: a constant for each row, and the bytes at the
# rate of full descriptors, `dma.engine_rate`.
PEAK = F["dma.descriptor_bytes"] / (
    F["dma.descriptor_bytes"] / F["dma.engine_rate"] - F["dma.descriptor_ns"]
)
MOVING = 8 * (F["dma.descriptor_ns"] + 256 / PEAK)
SIGNAL = F["issue.semaphore_ns"]


def ns(executable: Executable, **options: Any) -> float:
    return simulate(executable, {"x": DATA}, RunOptions(check_init=False, **options)).time_ns


def fetch(number: int, dst: int, mode: str = "none", engine: str = "unknown") -> str:
    """Return a load of x into tile %dst."""
    line = op(number, "dma_copy", "dma", dst=f"%{dst}{TILE}", src=f"%0{HBM}", dge_mode=repr(mode))
    return line.replace("engine='unknown'", f"engine={engine!r}")


def transfer(mode: str = "hwdge") -> float:
    """Return the time from the trigger of a transfer to its semaphore."""
    return F[f"dma.start_{mode}_ns"] + MOVING + F["dma.done_ns"]


def cycles(count: float, engine: Engine) -> float:
    return count * 1000 / TRN2.clock_mhz[engine]


def test_a_round_trip() -> None:
    """Load, multiply (32-bit copies move two elements a cycle), store, and two signals."""
    body = (
        load(0, f"%2{TILE}", f"%0{HBM}"),
        op(1, "tensor_scalar", dst=f"%3{TILE}", data=f"%2{TILE}", op0="'multiply'", operand0="2.0"),
        load(2, f"%1{HBM}", f"%3{TILE}"),
    )
    multiply = cycles(64 / 2 + F["vector.duration_sbuf"], Engine.VECTOR)
    wanted = 2 * transfer() + multiply + 2 * SIGNAL
    assert ns(build(*body)) == pytest.approx(wanted, abs=0.005)


def test_a_dependent_instruction_waits_for_the_duration_others_for_the_interval() -> None:
    """Copies on one engine: of each other's results, and of the same tile."""
    chain = build(*(copy(n, f"%{3 - n % 2}{TILE}", f"%{2 + n % 2}{TILE}") for n in range(4)))
    apart = build(*(copy(n, f"%{3 + n}{TILE}", f"%2{TILE}") for n in range(4)), chip=5)
    interval, duration = (
        cycles(max(64, 32 + F[f"vector.{part}_sbuf"]), Engine.VECTOR)
        for part in ("interval", "duration")
    )
    assert ns(chain) == pytest.approx(4 * duration, abs=0.005)
    assert ns(apart) == pytest.approx(3 * interval + duration, abs=0.005)


def test_transfers_share_the_dma_engines() -> None:
    """Eight prepared loads take eight times the data time, but one start-up time."""
    eight = build(*(fetch(i, 2 + i) for i in range(8)), chip=8)
    assert ns(eight) == pytest.approx(transfer("prepared") + 7 * MOVING, abs=0.01)


def test_an_engine_triggers_one_transfer_after_the_other() -> None:
    """With descriptors made by hardware, on sync: 570 ns each, longer than the data transfer."""
    loads = build(*(fetch(i, 2 + i, "hwdge", "sync") for i in range(6)), chip=6)
    assert F["dma.trigger_hwdge_ns"] > MOVING
    wanted = 5 * F["dma.trigger_hwdge_ns"] + transfer()
    found = simulate(loads, {"x": DATA}, RunOptions(check_init=False))
    assert found.time_ns == pytest.approx(wanted, abs=0.01)
    assert found.engines["core0.sync"].busy_ns == 6 * F["dma.trigger_hwdge_ns"]


def test_a_trigger_takes_time_of_its_engine() -> None:
    """An activation waits for three triggers of scalar, but not for three of sync.

    The first trigger runs beside the activation that waits for nothing.
    """

    def program_of(engine: str) -> Executable:
        loads = [fetch(i, 2 + i, "hwdge", engine) for i in range(3)]
        last = op(3, "activation", "scalar", dst=f"%6{TILE}", data=f"%4{TILE}", op="'copy'")
        other = op(4, "activation", "scalar", dst=f"%7{TILE}", data=f"%5{TILE}", op="'copy'")
        return build(*loads, last, other, chip=6)

    busy = simulate(program_of("scalar"), {"x": DATA}, RunOptions(check_init=False)).engines
    free = simulate(program_of("sync"), {"x": DATA}, RunOptions(check_init=False)).engines
    more = busy["core0.scalar"].busy_ns - free["core0.scalar"].busy_ns
    beside = cycles(round(64 + F["scalar.interval_sbuf"]), Engine.SCALAR)
    assert more == pytest.approx(3 * F["dma.trigger_hwdge_ns"] - beside, abs=0.001)


US = 1_000_000  # picoseconds


def passed(*entries: list[Entry]) -> int:
    """Return the picoseconds of streams: a queue of gpsimd's, the vector engine and gpsimd."""
    engines = (Engine.DMA, Engine.VECTOR, Engine.GPSIMD)
    lines = [
        Line(i, 0, engine, 0, iter(found), TRN2)
        for i, (engine, found) in enumerate(zip(engines, entries, strict=True))
    ]
    end = EventLoop(lines, 1, 1, TRN2).run()
    assert end is not None
    return end


def test_a_queue_takes_a_transfer_while_the_one_before_moves_its_data() -> None:
    """So gpsimd has triggered both long before its own work begins."""
    moving = Timing(10 * US, 0, US, 10 * US, US // 2, Engine.GPSIMD)
    signals = Entry(Timing(10 * US, 0), signals=(0,))
    works = Entry(Timing(30 * US, 0), waits=((0, 1),))
    both = passed([Entry(moving), Entry(moving)], [signals], [works])
    assert both == 40 * US + round(1000 * SIGNAL)


def test_data_of_a_queue_move_in_order() -> None:
    """Although two transfers that use half of the DMA engines each could run side by side."""
    half = Timing(10 * US, 0, US, 5 * US, US // 2, Engine.GPSIMD)
    assert passed([Entry(half), Entry(half)], [], []) == 21 * US


def test_a_transfer_in_a_ring_leaves_the_dma_engines_to_others() -> None:
    """Four transfers of one engine's partitions wait in one ring.

    Meanwhile a transfer of all engines in another ring moves its data.
    """
    few = Entry(Timing(16 * US, 0, US, US, 8000, Engine.SYNC))
    wide = Entry(Timing(2 * US, 0, US, 2 * US, 8000, Engine.SYNC), signals=(0,))
    works = Entry(Timing(60 * US, 0), waits=((0, 1),))
    lines = [
        Line(0, 0, Engine.DMA, 0, iter([few] * 4), TRN2),
        Line(1, 0, Engine.DMA, 1, iter([wide]), TRN2),
        Line(2, 0, Engine.VECTOR, 0, iter([works]), TRN2),
    ]
    end = EventLoop(lines, 1, 1, TRN2).run()
    assert end is not None
    assert end <= (4 + 2 + 1 + 60) * US + 5 * 8000 + round(1000 * SIGNAL)


def test_a_signal_at_the_very_start_arrives_after_the_time_of_a_signal() -> None:
    """As the one that an empty slot before a loop sends for the first iteration."""
    start, works = Entry(Timing(0, 0), signals=(0,)), Entry(Timing(US, 0), waits=((0, 1),))
    assert passed([], [start], [works]) == round(1000 * SIGNAL) + US


def test_a_core_alone_meets_nobody_and_waits_for_no_signal() -> None:
    assert passed([], [Entry(Timing(US, 0), is_rendezvous=True)], []) == US


class Drawn:
    """Streams of two cores with times so short that many are equal, and when their items start.

    Items wait for earlier ones of their core, and some are run by both cores together.
    """

    def __init__(self, rng: Random, together: float) -> None:
        self.signal = rng.randrange(3)
        keys = list(product(range(2), (Engine.VECTOR, Engine.GPSIMD, Engine.DMA)))
        self.items: dict[tuple[int, Engine], list[Entry]] = {key: [] for key in keys}
        self.starts: dict[tuple[int, Engine], list[int]] = {key: [] for key in keys}
        self.free, self.done, self.moved = (dict.fromkeys(keys, 0) for _ in range(3))
        self.semaphores = 0
        for _ in range(rng.randrange(20)):
            unit, engine = rng.choice(keys)
            units = range(2) if rng.random() < together else [unit]
            ready = [self.drawn(rng, (one, engine), len(units) > 1) for one in units]
            start = max(ready) + (self.signal if len(units) > 1 else 0)
            for one in units:
                self.run((one, engine), start)

    def drawn(self, rng: Random, key: tuple[int, Engine], is_rendezvous: bool) -> int:
        """Add an item to a stream, and return when it could start."""
        ready, waits = self.free[key], []
        follows = rng.random() < 0.3
        if follows:
            ready = max(ready, self.done[key])
        for other, items in self.items.items():
            if other[0] != key[0] or other == key or not items or rng.random() < 0.6:
                continue
            count = rng.randint(1, len(items))
            for at in range(len(items) - count, len(items)):
                items[at] = items[at]._replace(signals=(*items[at].signals, self.semaphores))
            waits.append((self.semaphores, count))
            ready = max(ready, self.done[other] + self.signal)
            self.semaphores += 1
        hold, latency, lead = (rng.randrange(4) for _ in range(3))
        timing = Timing(hold, latency, lead if key[1] is Engine.DMA else 0)
        self.items[key].append(Entry(timing, "", follows, is_rendezvous, waits))
        return ready

    def run(self, key: tuple[int, Engine], start: int) -> None:
        hold, latency, lead, *_ = self.items[key][-1].timing
        self.starts[key].append(start)
        if key[1] is Engine.DMA:
            self.free[key] = start
            self.moved[key] = max(start, self.moved[key]) + hold
            done = self.moved[key] + lead + latency
        else:
            self.free[key] = start + hold
            done = self.free[key] + latency
        self.done[key] = max(self.done[key], done)


@pytest.mark.parametrize("together", [0.0, 0.2])
@pytest.mark.parametrize("seed", range(80))
def test_items_start_when_their_stream_is_free_and_their_waits_are_over(
    seed: int, together: float
) -> None:
    drawn = Drawn(Random(seed), together)
    keys = list(drawn.items)
    lines = [
        Line(index, unit, engine, 0, iter(drawn.items[unit, engine]), TRN2)
        for index, (unit, engine) in enumerate(keys)
    ]
    loop = EventLoop(lines, 2, drawn.semaphores, TRN2)
    loop.semaphore_ps = drawn.signal
    found: dict[tuple[int, Engine], list[int]] = {key: [] for key in keys}
    loop.before = lambda line, item, start: found[keys[line.index]].append(start)
    times: list[int] = []
    loop.after = lambda line, item, start: times.append(start)
    assert loop.run() == max(drawn.done.values())
    assert found == drawn.starts
    assert together or times == sorted(times)
    for key, line in zip(keys, lines, strict=True):
        held = sum(item.timing.hold for item in drawn.items[key])
        assert (line.done, line.free, line.busy) == (drawn.done[key], drawn.free[key], held)


def looped(*body: str, iterations: int = 4) -> Executable:
    return build(f"loop 1 $0 = 0 to {iterations} by 1", *(f"  {line}" for line in body), "end")


def test_turns_of_a_loop_overlap_as_far_as_tiles_allow() -> None:
    """Each iteration loads a tile, multiplies it into another tile and stores that.

    The next load waits only for the product, and runs beside the store.
    """
    steps = (
        load(0, f"%2{TILE}", f"%0{HBM}"),
        op(1, "tensor_scalar", dst=f"%3{TILE}", data=f"%2{TILE}", op0="'multiply'", operand0="2.0"),
        op(2, "dma_copy", "dma", dst=f"%1{HBM}", src=f"%3{TILE}", dge_mode="'hwdge'").replace(
            "engine='unknown'", "engine='scalar'"
        ),
    )
    multiply = cycles(64 / 2 + F["vector.duration_sbuf"], Engine.VECTOR)
    iteration = ns(looped(*steps, iterations=9)) - ns(looped(*steps, iterations=8))
    assert iteration == pytest.approx(transfer() + MOVING + multiply + 2 * SIGNAL, abs=0.02)


def test_turns_that_share_nothing_run_as_if_there_were_no_loop() -> None:
    steps = [copy(n, f"%{3 + n}{TILE}", f"%2{TILE}") for n in range(2)]
    interval = cycles(max(64, 32 + F["vector.interval_sbuf"]), Engine.VECTOR)
    duration = cycles(32 + F["vector.duration_sbuf"], Engine.VECTOR)
    assert ns(looped(*steps)) == pytest.approx(2 * SIGNAL + 7 * interval + duration, abs=0.02)


def test_software_descriptors_take_time_of_gpsimd() -> None:
    loads = build(*(fetch(i, 2 + i, "swdge") for i in range(4)), chip=4)
    found = simulate(loads, {"x": DATA}, RunOptions(check_init=False))
    assert found.engines["core0.gpsimd"].busy_ns == 4 * F["dma.trigger_swdge_ns"]
    wanted = 3 * F["dma.trigger_swdge_ns"] + transfer("swdge")
    assert found.time_ns == pytest.approx(wanted, abs=0.01)


def functions(*names: str) -> float:
    """Return the time of activations in place, one after another."""
    body = [
        op(n, "activation", engine="scalar", dst=f"%2{TILE}", data=f"%2{TILE}", op=repr(name))
        for n, name in enumerate(names)
    ]
    return ns(build(*body))


TABLE_NS = F["scalar.table_ns"]
FUNCTION_NS = cycles(F["scalar.function"], Engine.SCALAR)


@pytest.mark.parametrize(
    ("names", "tables"),
    [
        (("exp",), 1),
        (("exp", "exp"), 1),
        (("exp", "tanh", "silu"), 1),  # one family
        (("exp", "copy", "exp"), 1),  # a plain function is in every table
        (("sin", "tanh", "sin"), 3),
        (("exp", "rsqrt"), 2),
    ],
)
def test_a_change_of_table_is_a_load(names: tuple[str, ...], tables: int) -> None:
    plain = functions(*("copy" for _ in names))
    own = sum(name != "copy" for name in names)
    wanted = tables * TABLE_NS + own * FUNCTION_NS
    assert functions(*names) - plain == pytest.approx(wanted, abs=0.01)


def test_the_tensor_engine_warms_up_and_cools_down() -> None:
    """Half rate for 6.6 us, then the full rate, until it is idle for 3 us."""
    warmth = Warmth(TRN2)

    def us(start: float, hold: float, use: float = 1.0) -> float:
        timing = Timing(int(hold * US), 0, cold=int(2 * hold * US), use=use)
        return warmth.duration(int(start * US), timing) / US

    assert us(0, 1) == 2
    assert us(2, 2) == 4
    assert us(6, 1) == 1.3, "warm after 6.6 us"
    assert us(7.3, 1) == 1
    assert us(9, 1) == 1, "0.7 us of rest"
    assert us(13, 1) == 2, "3 us of rest"


@pytest.mark.parametrize(("use", "hold"), [(0.5, 2.0), (1 / 128, 2.0), (0.75, 1.0), (1.0, 1.0)])
def test_products_over_few_rows_leave_the_tensor_engine_cold(use: float, hold: float) -> None:
    warmth, now = Warmth(TRN2), 0
    work = Timing(US, 0, cold=2 * US, use=use)
    for _ in range(20):
        now += warmth.duration(now, work)
    assert warmth.duration(now, work) == hold * US


def test_a_tensor_engine_in_use_for_less_than_half_of_the_time_is_cold() -> None:
    """Even if it never rests for long enough to cool down."""
    warmth, work = Warmth(TRN2), Timing(US // 10, 0, cold=US // 5)
    for start in range(0, 30 * US, US // 2):
        duration = warmth.duration(start, work)
    assert duration == US // 5


def test_a_window_in_which_use_is_counted_ends_after_exactly_its_time() -> None:
    """So what was used in the first 3 us does not count in the following ones."""
    warmth = Warmth(TRN2)
    for start, hold in ((0, 1_450_000), (3 * US, 100_000)):
        warmth.duration(start, Timing(hold, 0, cold=2 * hold))
    assert warmth.duration(6_100_000, Timing(US, 0, cold=2 * US)) == 2 * US


def test_a_machine_file_changes_the_time() -> None:
    machine = MachineFile("m.toml", {"dma.done_ns": 1298.0})
    one = build(fetch(0, 2))
    assert ns(one, machine=machine) - ns(one) == pytest.approx(1000)


def test_who_else_uses_hbm_changes_the_time() -> None:
    one = build(fetch(0, 2))
    crowded = replace(TRN2, contention="all")
    assert crowded.dma_rate == F["dma.engine_rate_shared"]
    peak = F["dma.descriptor_bytes"] / (
        F["dma.descriptor_bytes"] / crowded.dma_rate - F["dma.descriptor_ns"]
    )
    slower = 8 * (F["dma.descriptor_ns"] + 256 / peak) - MOVING
    found = ns(one, machine=MachineFile("m.toml", {}, contention="all")) - ns(one)
    assert found == pytest.approx(slower, abs=0.01)


def test_the_same_run_twice_takes_the_same_time() -> None:
    body = [fetch(i, 2 + i, "unknown") for i in range(6)]
    body += [copy(6 + i, f"%{8 + i}{TILE}", f"%{2 + i}{TILE}") for i in range(6)]
    found = [simulate(build(*body, chip=12), {"x": DATA}) for _ in range(2)]
    assert found[0].time_ns == found[1].time_ns and found[0].engines == found[1].engines


class Told(Hook):
    def __init__(self, name: str, told: list[tuple[str, int]]) -> None:
        self.name, self.told = name, told

    def begin(self, runner: Runner, item: Item, start: int) -> None:
        self.told.append((f"{self.name} begins", start))

    def end(self, runner: Runner, item: Item, start: int) -> None:
        self.told.append((f"{self.name} ends", runner.done))


def test_hooks_are_nested_and_see_the_time_of_an_item() -> None:
    executable, told = build(fetch(0, 2)), list[tuple[str, int]]()
    decoder = Decoder(Memory(executable, {0: DATA}), TRN2, True)
    runners = prepare(decoder, None, Prints())
    rank = Rank(runners, None, [Told("outer", told), Hook(), Told("inner", told)])
    machine = Machine(executable, [rank], RunOptions(check_init=False), TRN2)
    end = machine.run()
    assert end == round(1000 * transfer("prepared"))
    assert told == [
        ("outer begins", 0),
        ("inner begins", 0),
        ("inner ends", end),
        ("outer ends", end),
    ]


def test_a_run_without_hooks_calls_none() -> None:
    """What a run was not asked for costs nothing: there is nothing to call at an item."""
    executable = build(fetch(0, 2))
    decoder = Decoder(Memory(executable, {0: DATA}), TRN2, True)
    rank = Rank(prepare(decoder, None, Prints()), None, [Hook()])
    machine = Machine(executable, [rank], RunOptions(check_init=False), TRN2)
    machine._choose()
    assert (machine.begins, machine.ends, machine.after) == ([()], [()], None)


# ------------------------------------------------------------------------------------------------
# Accesses that two engines of NeuronCore-v2 may not make at once, in simulated time.

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
