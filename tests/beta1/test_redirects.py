"""Results that a kernel uses again after it has assigned them are values of their own.

`x = f(...)` and `t[...] = x` become one instruction if nothing uses `x` later; what is recorded
must not depend on who evaluates the kernel, nor on how long a value lives.
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkic
from nkic.artifact.read import read
from nkic.artifact.records import source_of
from tests.harness import two_ways

HEAD = """import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a):
    out = nl.ndarray({out}, dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.ndarray((128, 8), dtype=nl.float32, buffer=nl.sbuf)
    p = nl.load(a)
"""
# Statements, their instructions without transfers, and what each element of `out` is for a = 2.
CASES: dict[str, tuple[str, int, float]] = {
    "not used": ("x = nl.add(p, 1.0)\nt[...] = x\nnl.store(out, t)", 1, 3),
    "read while unchanged": (
        "x = nl.add(p, 1.0)\nt[...] = x\nt[...] = nl.add(t, x)\nnl.store(out, t)",
        2,
        6,
    ),
    "read after an update": (
        "x = nl.add(p, 1.0)\nt[...] = x\nt[...] = nl.add(p, 5.0)\nnl.store(out, nl.add(x, t))",
        4,
        10,
    ),
    "a view from before": (
        "x = nl.add(p, 1.0)\ny = x[:, 0:8]\nt[...] = x\nt[...] = 9.0\nnl.store(out, y)",
        3,
        3,
    ),
    "a view from after": (
        "x = nl.add(p, 1.0)\nt[...] = x\ny = x[:, 0:8]\nt[...] = 9.0\nnl.store(out, y)",
        3,
        3,
    ),
    "written in place": ("x = nl.add(p, 1.0)\nt[...] = x\nx[...] = 9.0\nnl.store(out, t)", 3, 3),
    "updated in place": ("x = nl.add(p, 1.0)\nt[...] = x\nx += 9.0\nnl.store(out, t)", 3, 3),
    "narrowed": (
        "t = nl.ndarray((128, 8), dtype=nl.bfloat16, buffer=nl.sbuf)\n"
        "x = nl.add(p, 0.00390625)\nt[...] = x\nnl.store(out, x)",
        2,
        2.00390625,
    ),
    "in PSUM": (
        "t = nl.ndarray((128, 8), dtype=nl.float32, buffer=nl.psum)\n"
        "x = nl.matmul(nl.load(a), p, transpose_x=True)\n"
        "t[0:8] = x\nt[0:8] = nl.add(p[0:8], 1.0)\nnl.store(out, nl.copy(x))",
        4,
        512,
    ),
    "added to a sum": (
        "t = nl.zeros((8, 8), dtype=nl.float32, buffer=nl.psum)\n"
        "x = nl.matmul(nl.load(a), p, transpose_x=True)\nt += x\n"
        "nl.store(out, nl.subtract(nl.copy(t), nl.copy(x)))",
        5,
        0,
    ),
    "from another iteration": (
        "last = nl.add(p, 0.0)\nfor i in nl.static_range(3):\n    x = nl.add(last, 1.0)\n"
        "    t[...] = x\n    last = x\nt[...] = 0.0\nnl.store(out, last)",
        6,
        5,
    ),
    "in a loop on the device": (
        "n = nisa.memset((1, 1), 3, nl.int32)\nx = nl.add(p, 1.0)\nt[...] = x\n"
        "for i in range(nki.typing.scalar(n)):\n    t[...] = nl.add(t, x)\nnl.store(out, t)",
        5,
        12,
    ),
}


def live(folder: Path, body: str) -> Any:
    path = folder / "k.py"
    out = (8, 8) if "psum" in body else (128, 8)
    path.write_text(
        HEAD.format(out=out) + textwrap.indent(body, "    ") + "\n    return out\n", "utf-8"
    )
    return two_ways.live_module(path)


def named(artifact: nkic.Artifact) -> list[str]:
    """Return the names of the engines' instructions, those in loops once."""
    items = (item for stream in read(artifact.data).streams for item in stream.items)
    rows = (getattr(item, "row", None) for item in items)
    return [row.name for row in rows if row is not None and "dma" not in row.name]


@pytest.mark.filterwarnings("ignore::nkic.NkicWarning")
@pytest.mark.parametrize("name", CASES)
def test_a_result_keeps_its_value(name: str, tmp_path: Path) -> None:
    body, count, wanted = CASES[name]
    a = np.full((128, 8), 2, np.float32)
    ways = ["closed"] if "typing.scalar" in body else list(two_ways.WAYS)
    with live(tmp_path, body) as module:
        calls = [nkic.call(module.kernel, (a,), evaluate=way, cache_dir=None) for way in ways]
    for call in calls:
        found = call.result.outputs["output_0"]
        np.testing.assert_array_equal(found, np.float32(wanted))
        names = named(call.artifact)
        assert len(names) == count, names
    assert len({call.artifact.data for call in calls}) == 1


def test_what_is_folded_does_not_depend_on_the_life_of_a_value(tmp_path: Path) -> None:
    """A debugger, a traceback or a frame's variables may keep a value alive."""
    body = (
        "kept = []\nfor i in nl.static_range(4):\n    x = nl.add(p, 1.0 + i)\n{keep}"
        "    t[...] = x\n    nl.store(out, t)"
    )
    programs = []
    for keep in ("", "    kept.append(x)\n"):
        with live(tmp_path, body.format(keep=keep)) as module:
            made = nkic.compile(module.kernel, inputs={"a": "f32[128,8]"})
        programs.append(named(made))
    assert programs[0] == programs[1] and len(programs[0]) == 4


@pytest.mark.filterwarnings("ignore::nkic.NkicWarning")
@pytest.mark.parametrize("between", ["", "nl.ndarray((128, 8), dtype=nl.float32, buffer=nl.sbuf)"])
def test_a_result_that_gets_its_own_tensor_is_declared_where_it_is_computed(
    between: str, tmp_path: Path
) -> None:
    body = f"x = nl.add(p, 1.0)\n{between}\nt[...] = x\nt[...] = 9.0\nnl.store(out, nl.add(x, t))"
    with live(tmp_path, body) as module:
        executable = nkic.compile(module.kernel, inputs={"a": "f32[128,8]"}).executable
    (tensor,) = (tensor for tensor in executable.tensors if tensor.name == "x")
    span = source_of(executable, tensor.place)
    assert span is not None and span.line == HEAD.count("\n") + 1
