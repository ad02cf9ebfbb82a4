"""Test programs whose order is known before their values.

They give the same results as the event loop with values, in the first run and in later ones, and
keep none of the caller's data in between. Programs whose values decide what is run are run by the
event loop.
"""

from __future__ import annotations

import gc
import itertools
import weakref
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nkic.artifact.records import Executable
from nkic.base.collector import without_collector
from nkic.base.source import SourceFile
from nkic.compiler.pipeline import compile_source
from nkic.simulate import Result, RunOptions, memory, simulate, stage
from nkic.specialise.inline import parse_arg
from nkic.specialise.request import Request
from tests.unit.simulate import test_cores
from tests.unit.simulate.test_remarks import built, said

SHAPE = (128, 64)
ADD = "nisa.tensor_scalar(dst=y, data=x, op0=nl.add, operand0=1.0)"
LARGE = """
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def kernel(a):
    out = nl.ndarray((128, {size}), dtype=nl.float32, buffer=nl.shared_hbm)
    x = nl.ndarray((128, {size}), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    nisa.tensor_scalar(dst=x, data=x, op0=nl.add, operand0=1.0)
    nisa.dma_copy(dst=out, src=x)
    return out
"""
# Programs that keep state on an engine, or in memory, between instructions.
STEADY = {
    "elementwise": ADD,
    "a product": """
p = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.psum)
nisa.nc_matmul(dst=p, stationary=x, moving=x)
nisa.nc_matmul(dst=p, stationary=x, moving=x, accumulate=True)
nisa.memset(dst=y, value=0.0)
nisa.tensor_copy(dst=y[0:64, :], src=p)
""",
    "registers of sums that nobody resets": """
nisa.activation(dst=y, op=nl.square, data=x, reduce_op=nl.add, reduce_res=r,
                reduce_cmd=nisa.reduce_cmd.reduce)
nisa.tensor_scalar(dst=y, data=y, op0=nl.add, operand0=r)
""",
    "random numbers": """
z = nl.ndarray((128, 64), dtype=nl.uint32, buffer=nl.sbuf)
nisa.rng(dst=z)
nisa.tensor_copy(dst=y, src=z)
nisa.tensor_tensor(dst=y, data1=y, data2=x, op=nl.multiply)
""",
    "a result in bfloat16, written in part": """
out = nl.ndarray((128, 64), dtype=nl.bfloat16, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out[:, 0:32], src=x[:, 0:32])
return out
""",
    "prints": f"nl.device_print('before', x)\n{ADD}\nnl.device_print('y', y)",
    "a product onto data": """
p = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.psum)
nisa.tensor_copy(dst=p, src=x[0:64, :])
nisa.nc_matmul(dst=p, stationary=x, moving=x, accumulate=True)
nisa.memset(dst=y, value=0.0)
nisa.activation(dst=y, op=nl.log, data=y)
nisa.tensor_copy(dst=y[0:64, :], src=p)
""",
}
# Programs whose values decide what is run, or what is written.
OTHERS = {
    "a tile that is written in part": """
z = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
nisa.tensor_copy(dst=z[:, 0:32], src=x[:, 0:32])
nisa.tensor_copy(dst=y, src=z)
nisa.tensor_copy(dst=y[:, 32:64], src=x[:, 32:64])
""",
    "a loop on the device": f"def turn(i):\n    {ADD}\nnl.fori_loop(0, 2, turn)",
}


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    stage._cache.clear()
    yield
    stage._cache.clear()


def drawn(seed: int) -> dict[str, np.ndarray[Any, Any]]:
    return {"a": np.random.default_rng(seed).standard_normal(SHAPE).astype(np.float32)}


def alone(executable: Executable, inputs: dict[str, Any], options: RunOptions) -> Result:
    """Return the results of the event loop, which runs every program with a limit of time."""
    return simulate(executable, inputs, replace(options, timeout_s=3600.0))


def is_kept() -> bool:
    return any(known.rerun is not None for known in stage._cache)


def same(one: Result, other: Result) -> bool:
    bits = [{n: v.tobytes() for n, v in result.outputs.items()} for result in (one, other)]
    told = [
        (r.time_ns, r.cycles, r.engines, r.dma_bytes, r.instructions, r.remarks, r.timeline)
        for r in (one, other)
    ]
    printed = [[(p[:3], p.values.tobytes()) for p in r.printed] for r in (one, other)]
    if printed[0] != printed[1] or one.prints_left_out != other.prints_left_out:
        return False
    return bits[0] == bits[1] and told[0] == told[1]


@pytest.mark.parametrize("name", STEADY)
@pytest.mark.parametrize("precise", [True, False])
def test_all_runs_are_those_of_the_event_loop(name: str, precise: bool) -> None:
    executable = built(STEADY[name])
    options = RunOptions(precise=precise, timeline=100, trace=100)
    for seed in range(4):
        inputs = drawn(seed)
        found = simulate(executable, inputs, options)
        assert is_kept()
        assert same(found, alone(executable, inputs, options))


@pytest.mark.parametrize("body", [test_cores.SWAP, test_cores.HANDOVER, test_cores.TWO_PIPES])
def test_cores_meet_again(body: str) -> None:
    executable, options = test_cores.compiled(body), RunOptions()
    shape = test_cores.DATA.shape
    for seed in range(4):
        inputs = {"a": np.random.default_rng(seed).standard_normal(shape).astype(np.float32)}
        assert same(simulate(executable, inputs), alone(executable, inputs, options))
    assert is_kept()


@pytest.mark.parametrize("name", OTHERS)
def test_where_values_or_order_have_a_say_the_event_loop_runs(name: str) -> None:
    executable, options = built(OTHERS[name]), RunOptions()
    for seed in range(4):
        inputs = drawn(seed)
        assert same(simulate(executable, inputs), alone(executable, inputs, options))
        assert not is_kept()


def test_remarks_are_those_of_the_values_of_each_run() -> None:
    executable = built("nisa.activation(dst=y, op=nl.log, data=x)")
    fine, bad = {"a": np.ones(SHAPE, np.float32)}, {"a": np.full(SHAPE, 3e38, np.float32)}
    counts = [len(said(simulate(executable, given))) for given in (fine, bad, bad, fine, bad)]
    assert counts == [0, 1, 1, 0, 1] and is_kept()


def test_results_and_inputs_are_the_callers_alone() -> None:
    executable = built(ADD)
    results = [simulate(executable, drawn(seed)).outputs["output_0"] for seed in range(4)]
    for seed, result in enumerate(results):
        assert np.array_equal(result, drawn(seed)["a"] + np.float32(1))
    given = drawn(9)["a"]
    held = weakref.ref(given)
    output = weakref.ref(simulate(executable, {"a": given}).outputs["output_0"])
    del given
    gc.collect()
    assert is_kept() and held() is None and output() is None


@pytest.mark.parametrize("options", [RunOptions(), RunOptions(timeout_s=60.0)])
def test_a_run_is_freed_without_a_collection(options: RunOptions) -> None:
    executable = built(ADD)
    simulate(executable, drawn(0), options)
    stage._cache.clear()
    gc.collect()
    gc.freeze()  # what is older is not looked through again
    try:
        with without_collector():
            simulate(executable, drawn(0), options)
            stage._cache.clear()
            assert gc.collect() == 0
    finally:
        gc.unfreeze()


def test_pages_of_results_are_taken_again_when_nobody_holds_them() -> None:
    text = LARGE.format(size=memory.SMALL // 512)
    types = dict([parse_arg(f"a=float32[128,{memory.SMALL // 512}]")])
    source = SourceFile("k.py", text)
    executable = compile_source(source, Request(args=types), lambda *_: None).executable
    draw = np.random.default_rng(0)
    held: list[tuple[Any, bytes]] = []
    for iteration in range(8):
        given = draw.standard_normal((128, memory.SMALL // 512)).astype(np.float32)
        found = simulate(executable, {"a": given}).outputs["output_0"]
        assert found.tobytes() == (given + np.float32(1)).tobytes()
        part = (found, found[3:5], found.data[7:9], found.view(np.uint8)[0])[iteration % 4]
        held.append((part, bytes(np.asarray(part).tobytes())))
        del found, part
        assert all(np.asarray(one).tobytes() == before for one, before in held)
    held.clear()
    places = set()
    for _ in range(4):
        found = simulate(executable, {"a": given}).outputs["output_0"]
        places.add(found.ctypes.data)
        del found
    assert len(places) == 1


PARTIAL = """
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def kernel(a):
    out = nl.ndarray((128, {size}), dtype=nl.float32, buffer=nl.shared_hbm)
    x = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a[:, 0:64])
    nisa.dma_copy(dst=out[:, 0:64], src=x)
    return out
"""


def test_programs_share_the_pages_of_results_that_they_write_in_full() -> None:
    width = memory.SMALL // 512
    types = dict([parse_arg(f"a=float32[128,{width}]")])
    given = np.ones((128, width), np.float32)
    places = set()
    for text in (LARGE, LARGE, PARTIAL, LARGE):
        source = SourceFile("k.py", text.format(size=width))
        executable = compile_source(source, Request(args=types), lambda *_: None).executable
        found = simulate(executable, {"a": given}).outputs["output_0"]
        if text is PARTIAL:  # never on pages that still have values of another program
            assert (found[:, :64] == 1).all() and not found[:, 64:].any()
        else:
            assert (found == 2).all()
            places.add(found.ctypes.data)
        del found
    assert len(places) == 1


def test_programs_are_told_apart_by_their_options() -> None:
    executable, inputs = built(STEADY["a product"]), drawn(0)
    for _ in range(3):
        for options in (RunOptions(), RunOptions(accumulate="float32"), RunOptions(timeline=3)):
            found = simulate(executable, inputs, options)
            assert same(found, alone(executable, inputs, options))


@pytest.mark.parametrize(
    "options",
    [
        RunOptions(check_init=False),
        RunOptions(values=False),
        RunOptions(report_bounds=True),
        RunOptions(timeout_s=100.0),
    ],
)
def test_runs_that_somebody_looks_into_are_not_kept(options: RunOptions) -> None:
    executable = built(ADD)
    for _ in range(3):
        simulate(executable, drawn(0), options)
    assert stage._cache == []


def test_who_watches_is_told_how_far_the_steps_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "WATCH_INTERVAL", 2)
    executable = built("\n".join([STEADY["a product"]] * 2))
    told: list[int] = []
    for _ in range(2):
        result = simulate(executable, drawn(0), RunOptions(watch=told.append))
        assert len(told) == 5 and len(set(told)) == 5 and told == sorted(told)
        assert told[-1] == result.instructions == 10 and len(stage._cache) == 1
        told.clear()


def test_memories_are_kept_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    programs = [built(STEADY["a product"]) for _ in range(3)]
    simulate(programs[0], drawn(0))
    (first,) = stage._cache
    assert first.rerun is not None
    monkeypatch.setattr(stage, "MAX_BYTES", 2 * first.rerun.bytes)
    for program in programs:
        for _ in range(3):
            simulate(program, drawn(0))
    assert [known.program() for known in stage._cache] == programs[1:]
    monkeypatch.setattr(stage, "MAX_BYTES", first.rerun.bytes - 1)
    stage._cache.clear()
    for _ in range(4):
        simulate(programs[0], drawn(0))
    assert not is_kept()


def test_tiles_take_the_memory_of_those_that_are_done_with() -> None:
    chain = [f"t{n} = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)" for n in range(6)]
    names = ["x", *(f"t{n}" for n in range(6)), "y"]
    for src, dst in itertools.pairwise(names):
        chain.append(f"nisa.tensor_scalar(dst={dst}, data={src}, op0=nl.add, operand0=1.0)")
    executable = built("\n".join(chain))
    for seed in range(3):
        found = simulate(executable, drawn(seed)).outputs["output_0"]
    wanted = drawn(2)["a"]
    for _ in range(7):
        wanted = wanted + np.float32(1)
    assert found.tobytes() == wanted.tobytes()
    (known,) = stage._cache
    assert known.rerun is not None and known.rerun.bytes == 2 * 128 * 64 * 4


def test_a_run_that_fails_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    executable, inputs = built(ADD), drawn(0)
    for _ in range(3):
        simulate(executable, inputs)

    def fails(*_: object) -> Result:
        raise MemoryError

    monkeypatch.setattr(stage.Rerun, "run", fails)
    with pytest.raises(MemoryError):
        simulate(executable, inputs)
    assert stage._cache == []
