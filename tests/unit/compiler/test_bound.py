"""Test the lower bound: it includes the costs of every order, and no order takes less."""

from __future__ import annotations

import itertools
from random import Random

import numpy as np
import pytest

from nkic.artifact.read import read
from nkic.base.source import SourceFile
from nkic.compiler.bound import Part, bound, bound_ns, preemptive_makespan
from nkic.compiler.loader import Loader
from nkic.compiler.pipeline import compile_source
from nkic.compiler.request import parse_options, request_for
from nkic.machine.targets import TRN2
from nkic.machine.timing import semaphore_ps
from nkic.simulate import simulate
from nkic.specialise.inline import parse_arg
from nkic.specialise.request import Request
from tests.timing.schedules import LOOPED, LOOPS, least, microseconds


def in_order(parts: tuple[Part, ...]) -> int:
    """Return the end of the last job if they run in this order."""
    now = over = 0
    for begins, work, after in parts:
        now = max(now, begins) + work
        over = max(over, now + after)
    return over


def test_one_machine_is_never_above_the_best_order() -> None:
    draw, equal = Random(0), 0
    for _ in range(200):
        parts = [
            (draw.randrange(20), draw.randrange(1, 8), draw.randrange(20))
            for _ in range(draw.randrange(1, 6))
        ]
        best = min(in_order(order) for order in itertools.permutations(parts))
        found = preemptive_makespan(parts)
        assert max(sum(part) for part in parts) <= found <= best
        equal += found == best
    assert equal > 150  # the bound is not only below, but close


def test_one_machine_leaves_what_has_time_for_what_has_not() -> None:
    """The long one begins at once, and continues when the short one, which has more work after it,
    is done.
    """
    assert preemptive_makespan([(0, 10, 0), (2, 1, 20)]) == 23
    assert in_order(((0, 10, 0), (2, 1, 20))) == 31


ONES = np.ones((128, 512), np.float32)
BOTH = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    out = nl.ndarray((256, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    core = nl.program_id(0)
    mine = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    other = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=mine, src=a)
    for _ in range(before[core]):
        nisa.tensor_scalar(dst=mine, data=mine, op0=nl.add, operand0=1.0)
    nisa.sendrecv(src=mine, dst=other, send_to_rank=1 - core, recv_from_rank=1 - core, pipe_id=0)
    for _ in range(after[core]):
        nisa.tensor_scalar(dst=other, data=other, op0=nl.add, operand0=1.0)
    nisa.dma_copy(dst=out[128 * core : 128 * core + 128, :], src=other)
    return out
"""


def meeting(before: tuple[int, int], after: tuple[int, int]) -> tuple[float, list[float], float]:
    """Return, in nanoseconds, the bound, that of each core alone, and a run."""
    text = BOTH.replace("before[", f"{before}[").replace("after[", f"{after}[")
    request = Request(lnc=2, grid=(2,), args=dict([parse_arg("a=float32[128,512]")]))
    made = compile_source(SourceFile("k.py", text), request, lambda *_: None)
    lowered, graphs = made.results["lower"], made.results["depend"]
    target = lowered.target.used_by(2)
    alone = [bound(b, g, target) / 1000 for b, g in zip(lowered.cores, graphs, strict=True)]
    time = simulate(read(made.data), {"a": ONES}).time_ns
    return bound_ns(lowered, graphs), alone, time


@pytest.mark.parametrize("slow", [0, 1])
def test_the_bound_has_the_wait_for_the_other_core(slow: int) -> None:
    """One core has much work before the rendezvous, the other after it."""
    early, late = (20, 1) if slow == 0 else (1, 20), (1, 20) if slow == 0 else (20, 1)
    found, alone, time = meeting(early, late)
    assert max(alone) < 0.75 * time
    assert found == pytest.approx(time, rel=0.01) and found <= time


def test_a_core_that_waits_for_nobody_waits_for_the_signal() -> None:
    found, alone, time = meeting((3, 3), (3, 3))

    assert found == pytest.approx(max(alone) + semaphore_ps(TRN2) / 1000, abs=1) and found <= time


@pytest.mark.parametrize("kernel", LOOPED)
def test_turns_of_a_loop_come_near_their_bound(kernel: str) -> None:
    """Between the exponentials of two iterations of `loop_over_columns`, the same DMA engines load
    a tile and store one.
    """
    loader = Loader.beside(LOOPS)
    source = loader.main(LOOPS)
    found = compile_source(source, request_for(source, parse_options(kernel=kernel), {}), loader)
    # Its products keep the tensor engine cold, of which the bound does not know.
    most = 1.31 if kernel == "loop_over_products" else 1.11
    assert least(found) <= microseconds(found) <= most * least(found)
