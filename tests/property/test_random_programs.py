"""Run random programs in three ways: scheduled, serial, and NumPy in program order, bit for bit."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nkic.artifact.encode import write
from nkic.artifact.read import read
from nkic.artifact.verify import verify
from nkic.base.diagnostics import Reporter
from nkic.compiler.allocate import allocate
from nkic.compiler.check import check
from nkic.compiler.depend import depend
from nkic.compiler.emit import emit
from nkic.compiler.lower import lower
from nkic.compiler.schedule import schedule
from nkic.program.program import Program
from nkic.prove import prove_addresses, prove_lowered, prove_order
from nkic.prove import read as read_effects
from nkic.simulate import Result, RunOptions, simulate
from tests.programs import op, program

TILES, WIDTH = 5, 24
Floats = NDArray[np.float32]


class Part(NamedTuple):
    """A rectangle of tile `tile`: partitions from 0, columns from `low` by `step`."""

    tile: int
    rows: int
    low: int
    step: int
    size: int

    def view(self) -> str:
        return f"%{self.tile + 2}{{{self.low}; ({self.rows}, {self.size}); ({WIDTH}, {self.step})}}"

    def of(self, tiles: Floats) -> Floats:
        stop = self.low + self.step * (self.size - 1) + 1
        part: Floats = tiles[self.tile, : self.rows, self.low : stop : self.step]
        return part


Action = Callable[[Floats], None]


@st.composite
def parts(draw: st.DrawFn, rows: int, size: int) -> Part:
    step = draw(st.sampled_from([1, 1, 2])) if size > 1 else 1
    low = draw(st.integers(0, WIDTH - 1 - step * (size - 1)))
    return Part(draw(st.integers(0, TILES - 1)), rows, low, step, size)


@st.composite
def steps(draw: st.DrawFn, number: int) -> tuple[str, Action]:
    """Draw an instruction as text, and its effect on the tiles in NumPy."""
    rows, size = draw(st.sampled_from([128, 128, 32, 1])), draw(st.integers(1, 12))
    dst, a, b = (draw(parts(rows, size)) for _ in range(3))
    kind = draw(st.sampled_from(["copy", "add", "fill", "dma", "max"]))
    engine = draw(st.sampled_from(["vector", "gpsimd"]))
    if kind == "fill":
        value = draw(st.sampled_from([0.5, -2.0]))
        return op(number, "memset", engine, dst=dst.view(), value=repr(value)), _fill(dst, value)
    if kind == "copy":
        return op(number, "tensor_copy", engine, dst=dst.view(), src=a.view()), _copy(dst, a)
    if kind == "dma":
        return op(number, "dma_copy", "dma", dst=dst.view(), src=a.view()), _copy(dst, a)
    name = "add" if kind == "add" else "maximum"
    text = op(
        number,
        "tensor_tensor",
        engine if kind == "add" else "vector",
        dst=dst.view(),
        data1=a.view(),
        data2=b.view(),
        op=repr(name),
    )
    return text, _combine(np.add if kind == "add" else np.maximum, dst, a, b)


def _fill(dst: Part, value: float) -> Action:
    def act(tiles: Floats) -> None:
        dst.of(tiles)[...] = value

    return act


def _copy(dst: Part, src: Part) -> Action:
    def act(tiles: Floats) -> None:
        dst.of(tiles)[...] = src.of(tiles).copy()

    return act


def _combine(ufunc: Any, dst: Part, a: Part, b: Part) -> Action:
    def act(tiles: Floats) -> None:
        dst.of(tiles)[...] = ufunc(a.of(tiles).copy(), b.of(tiles).copy())

    return act


@st.composite
def programs(draw: st.DrawFn) -> tuple[Program, list[Action]]:
    """Draw programs that load all tiles from the input, do some steps, and store all tiles."""
    whole = f"(128, {WIDTH}); ({WIDTH}, 1)"
    lines = [f"%{i} {n}: float32[{TILES * 128}, {WIDTH}] shared_hbm" for i, n in enumerate("xy")]
    lines += [f"%{2 + i} t{i}: float32[128, {WIDTH}] sbuf" for i in range(TILES)]
    lines += ["input x = %0", "output output_0 = %1", "core"]
    number, actions = 0, []
    for i in range(TILES):
        place = f"{i * 128 * WIDTH}; {whole}"
        lines.append(
            op(number, "dma_copy", "dma", dst=f"%{2 + i}{{0; {whole}}}", src=f"%0{{{place}}}")
        )
        number += 1
    for _ in range(draw(st.integers(1, 14))):
        text, action = draw(steps(number))
        lines.append(text)
        actions.append(action)
        number += 1
    for i in range(TILES):
        place = f"{i * 128 * WIDTH}; {whole}"
        lines.append(
            op(number, "dma_copy", "dma", dst=f"%1{{{place}}}", src=f"%{2 + i}{{0; {whole}}}")
        )
        number += 1
    return program("\n".join(lines)), actions


def run(found: Program, data: Floats, serial: bool) -> Result:
    """Run through every stage of both tools, bytes included."""
    report = Reporter()
    check(found, report)
    lowered = lower(found, report)
    assert prove_lowered(found, lowered) == []
    placed, graphs = allocate(lowered, depend(lowered), report)
    effects = read_effects(lowered)
    assert prove_addresses(placed, effects) == []
    done = schedule(placed, graphs, serial)
    assert prove_order(lowered, done, effects) == []
    executable = read(write(emit(done, {})))
    verify(executable)
    result = simulate(executable, {"x": data})
    looped = simulate(executable, {"x": data}, RunOptions(timeout_s=3600.0))  # values in their time
    assert looped.outputs["output_0"].tobytes() == result.outputs["output_0"].tobytes()
    assert replace(looped, outputs={}) == replace(result, outputs={})
    assert done.is_timed is not serial
    if done.is_timed:  # to the picosecond
        assert round(result.time_ns * 1000) == round(done.estimate_ns * 1000)
    assert abs(result.time_ns - done.estimate_ns) < 0.5 * done.estimate_ns
    return result


@given(programs(), st.integers(0, 1000))
@settings(max_examples=40)
def test_three_ways_agree(case: tuple[Program, list[Action]], seed: int) -> None:
    found, actions = case
    data = np.random.default_rng(seed).standard_normal((TILES * 128, WIDTH)).astype(np.float32)
    tiles = data.reshape(TILES, 128, WIDTH).copy()
    for act in actions:
        act(tiles)
    scheduled, serial = run(found, data, False), run(found, data, True)
    expected = tiles.reshape(data.shape)
    assert np.array_equal(scheduled.outputs["output_0"], expected)
    assert np.array_equal(serial.outputs["output_0"], expected)
    assert scheduled.time_ns <= serial.time_ns
