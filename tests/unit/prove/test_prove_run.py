"""Test the abstract run of streams: which items are known to be complete when an item starts."""

from collections.abc import Sequence
from random import Random

import pytest

from nkic.machine.targets import Engine
from nkic.prove.model import READ, WRITE, Item, Line, Round
from nkic.prove.order import Ledger
from nkic.prove.run import AbstractRun, Clock, Start

COMPUTE = Engine.VECTOR, Engine.SCALAR, Engine.GPSIMD, Engine.TENSOR
WAIT = ((0, 1),)


def known(*streams: Sequence[Item | Round]) -> dict[int, list[Clock]]:
    """Return, by item, the items known to be complete each time that it starts."""
    lines = [Line(COMPUTE[index], 0, tuple(items)) for index, items in enumerate(streams)]
    run = AbstractRun([lines])
    assert run.run() == []
    run.cores[0].complete_clocks()
    tables = run.cores[0].starts
    return {key: [table[key][2] for table in tables if key in table] for key in tables[0]}


def loop(number: int, *items: Item) -> Round:
    return Round(number, (), -1, items)


def test_what_a_loop_waits_for_in_each_iteration_is_known_after_it() -> None:
    """If the loop does not run at all, none of its items is waited for."""
    signalling, waiting = Item(0, (), (0,)), Item(1, WAIT, ())
    found = known([loop(7, signalling)], [loop(7, waiting), Item(2, (), ())])
    assert found == {0: [[0, 0], [0, 0]], 1: [[1, 0], [2, 0]], 2: [[2, 0]]}
    other = known([loop(7, signalling)], [loop(8, waiting), Item(2, (), ())])
    assert other == {**found, 2: [[0, 0]]}  # another loop, which may not run when this one does


def test_what_came_before_a_loop_is_known_after_it_as_it_was_before() -> None:
    signalling, waiting = Item(0, (), (0,)), Item(1, WAIT, ())
    before = Item(3, (), ())
    found = known([before, loop(7, signalling)], [loop(7, waiting), Item(2, (), ())])
    assert (found[1], found[2]) == ([[2, 0], [3, 0]], [[0, 0]])
    told = known(
        [before._replace(signals=(1,)), loop(7, signalling)],
        [Item(4, ((1, 1),), ()), loop(7, waiting), Item(2, (), ())],
    )
    assert (told[4], told[1], told[2]) == ([[1, 0]], [[2, 0], [3, 0]], [[3, 0]])


def straight(seed: int) -> list[list[Item]]:
    """Draw items in random streams; each may wait for earlier items of other streams."""
    rng = Random(seed)
    streams: list[list[Item]] = [[] for _ in COMPUTE]
    where: list[tuple[int, int]] = []
    signals = 0
    for key in range(16):
        own = rng.randrange(len(streams))
        waits = []
        for source in rng.sample(where, min(len(where), rng.randrange(3))):
            if source[0] != own:
                line, at = source
                one = streams[line][at]
                streams[line][at] = one._replace(signals=(*one.signals, signals))
                waits.append((signals, 1))
                signals += 1
        where.append((own, len(streams[own])))
        streams[own].append(Item(key, tuple(waits), ()))
    return streams


def reached(streams: list[list[Item]]) -> dict[int, set[int]]:
    """Return, by item, all items that are complete before it starts, by plain search."""
    signalling = {signal: one.key for items in streams for one in items for signal in one.signals}
    found: dict[int, set[int]] = {}
    for one in sorted((one for items in streams for one in items), key=lambda one: one.key):
        (own,) = (items for items in streams if one in items)
        before = {other.key for other in own[: own.index(one)]}
        before |= {signalling[semaphore] for semaphore, _ in one.waits}
        found[one.key] = before.union(*(found[key] for key in before))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_streams_without_loops_know_what_is_before_them(seed: int) -> None:
    streams = straight(seed)
    found, before = known(*streams), reached(streams)
    for own, items in enumerate(streams):
        for one in items:
            (clock,) = found[one.key]
            for line, others in enumerate(streams):
                if line != own:
                    wanted = max(
                        (n + 1 for n, other in enumerate(others) if other.key in before[one.key]),
                        default=0,
                    )
                    assert clock[line] == wanted, (one.key, line)


def chain(*waits: tuple[int, ...]) -> tuple[Ledger, list[Start]]:
    """Return the ledger and the starts of three items, each in a stream of its own.

    Each signals the next one, and waits for the semaphores `waits`.
    """
    items = [Item(key, tuple((s, 1) for s in own), (key,)) for key, own in enumerate(waits)]
    run = AbstractRun([[Line(COMPUTE[key], 0, (item,)) for key, item in enumerate(items)]])
    assert run.run() == []
    (core,) = run.cores
    return Ledger(1, core, in_turn=True), [core.starts[0][key] for key in range(3)]


def test_what_a_signalling_item_knew_is_learned_when_an_access_needs_it() -> None:
    ledger, (first, second, third) = chain((), (0,), (1,))
    assert ledger.note(first, [((0,), WRITE, 0)]) == {}
    assert third[2] == [0, 1, 0]  # what it was told
    assert ledger.follows(third, second) and third[2] == [0, 1, 0]
    assert ledger.note(third, [((0,), WRITE, 0)]) == {}
    assert third[2] == [1, 1, 0]


def test_a_write_follows_the_last_write_through_the_reads_or_a_read_is_found() -> None:
    ledger, starts = chain((), (0,), (1,))
    touches = [((0,), WRITE, 0)], [((0,), READ, 0)], [((0,), WRITE, 0)]
    assert [ledger.note(*one) for one in zip(starts, touches, strict=True)] == [{}, {}, {}]
    assert starts[2][2] == [0, 1, 0]  # the read is enough
    ledger, starts = chain((), (), (1,))
    found = [ledger.note(*one) for one in zip(starts, touches, strict=True)]
    assert found == [{}, {0: starts[0]}, {}]
    ledger, starts = chain((), (), (1,))
    found = [ledger.note(starts[n], touches[n]) for n in (0, 2)]
    assert found == [{}, {0: starts[0]}]
