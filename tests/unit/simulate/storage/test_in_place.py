"""Test tiles that are slices of HBM tensors.

They give the same bits and cycles as copies, and are used only where no difference is observable.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nkic.artifact.records import Executable
from nkic.base.source import SourceFile
from nkic.compiler.pipeline import compile_source
from nkic.simulate import Result, RunOptions, simulate
from nkic.simulate import memory as storage
from nkic.simulate.memory import Memory
from nkic.specialise.inline import parse_arg
from nkic.specialise.request import Request

HEAD = """
import nki
import nki.isa as nisa
import nki.language as nl

def tile(like, rows=128):
    return nl.ndarray((rows, 64), dtype=like.dtype, buffer=nl.sbuf)

@nki.jit
def kernel(a, b):
    out = nl.ndarray((256, 64), dtype=a.dtype, buffer=nl.shared_hbm)
"""
PLAIN = """
    for m in range(2):
        rows = nl.ds(m * 128, 128)
        x, y, z = tile(a), tile(a), tile(a)
        nisa.dma_copy(dst=x, src=a[rows, :])
        nisa.dma_copy(dst=y, src=b[rows, :])
        nisa.tensor_tensor(dst=z, data1=x, data2=y, op=nl.multiply)
        nisa.dma_copy(dst=out[rows, :], src=z)
    return out
"""
ADD = "nisa.tensor_tensor(dst=z, data1=x, data2=y, op=nl.multiply)"
STORE = "nisa.dma_copy(dst=out[rows, :], src=z)"
# The change, and the number of tiles that are then slices: loaded and stored.
CASES: dict[str, tuple[str, int, int]] = {
    "plain": (PLAIN, 4, 2),
    "a tile is written again": (
        PLAIN.replace(
            ADD, f"{ADD}\n        nisa.tensor_scalar(dst=x, data=x, op0=nl.add, operand0=1.0)"
        ),
        *(2, 2),
    ),
    "a result is computed in two steps": (
        PLAIN.replace(
            ADD, f"{ADD}\n        nisa.tensor_tensor(dst=z, data1=z, data2=x, op=nl.add)"
        ),
        *(4, 0),
    ),
    "a place is stored to twice": (
        PLAIN.replace(
            STORE,
            f"{STORE}\n        w = tile(a)\n        nisa.tensor_scalar(dst=w, data=z, op0=nl.add, "
            "operand0=1.0)\n        nisa.dma_copy(dst=out[rows, :], src=w)",
        ),
        *(4, 0),
    ),
    "a result is stored to two places": (
        PLAIN.replace(
            STORE, f"{STORE}\n        nisa.dma_copy(dst=out[nl.ds(256 + m * 128, 128), :], src=z)"
        ),
        *(4, 0),
    ),
    "a result is read back": (
        PLAIN.replace(
            STORE, f"{STORE}\n        w = tile(a)\n        nisa.dma_copy(dst=w, src=out[rows, :])"
        ),
        *(4, 0),
    ),
    "part of a tile is loaded": (
        PLAIN.replace(
            "nisa.dma_copy(dst=x, src=a[rows, :])",
            "nisa.memset(dst=x, value=1.0)\n        "
            "nisa.dma_copy(dst=x[:, 0:32], src=a[rows, 0:32])",
        ),
        *(2, 2),
    ),
    "rows with gaps": (
        PLAIN.replace(
            "tile(a), tile(a), tile(a)",
            "[nl.ndarray((128, 32), dtype=a.dtype, buffer=nl.sbuf) for _ in range(3)]",
        )
        .replace("[rows, :]", "[rows, 16:48]")
        .replace(
            "    return out",
            "    nisa.dma_copy(dst=out[:, 0:16], src=a[:, 0:16])\n"
            "    nisa.dma_copy(dst=out[:, 48:64], src=b[:, 48:64])\n    return out",
        ),
        *(4, 0),  # other transfers write that result as well
    ),
    "bits of another type": (
        PLAIN.replace(
            STORE,
            f"{STORE}\n        w = nl.ndarray((128, 64), dtype=nl.int32, buffer=nl.sbuf)\n        "
            "nisa.tensor_copy(dst=w, src=x.view(nl.int32))",
        ),
        *(2, 2),
    ),
    "a loop on the device": (
        PLAIN.replace(
            "    return out",
            "    w = tile(a)\n    nisa.dma_copy(dst=w, src=a[0:128, :])\n"
            "    def body(i):\n"
            "        nisa.tensor_scalar(dst=w, data=w, op0=nl.add, operand0=1.0)\n"
            "    nl.fori_loop(0, 3, body)\n    return out",
        ),
        *(0, 0),
    ),
    "an input that is updated": (
        PLAIN.replace(STORE, "nisa.dma_copy(dst=a[rows, :], src=z)").replace(
            "return out", "return a"
        ),
        *(2, 0),
    ),
}


def executable(body: str, dtype: str = "float32") -> Executable:
    types = dict(parse_arg(f"{name}={dtype}[256, 64]") for name in "ab")
    head = HEAD.replace("(256, 64)", "(512, 64)") if "256 + m" in body else HEAD
    source = SourceFile("k.py", head + body)
    return compile_source(source, Request(kernel="kernel", args=types), lambda *_: None).executable


def inputs(dtype: str = "float32") -> dict[str, Any]:
    draw = np.random.default_rng(3)
    values = {name: draw.standard_normal((256, 64)).astype(np.float32) for name in "ab"}
    values["a"][3, 5], values["b"][200, 1] = np.nan, np.inf
    if dtype == "float32":
        return values
    return {name: (v.view(np.uint32) >> 16).astype(np.uint16) for name, v in values.items()}


def both(found: Executable, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Run with slices and with copies, and compare everything.

    The second program is another one: a repetition of the first would be its recorded run.
    """
    again = replace(found)
    with_pieces = simulate(found, {k: v.copy() for k, v in given.items()}, RunOptions(trace=1000))
    monkeypatch.setattr(RunOptions, "copies_less", False)
    with_copies = simulate(again, {k: v.copy() for k, v in given.items()}, RunOptions(trace=1000))
    same(with_pieces, with_copies)


def same(one: Result, other: Result) -> None:
    for name, values in one.outputs.items():
        assert values.tobytes() == other.outputs[name].tobytes(), name
    plain = [replace(result, outputs={}, recorded=None) for result in (one, other)]
    assert plain[0] == plain[1]


@pytest.mark.parametrize("what", CASES)
def test_pieces_are_found_where_nobody_can_tell(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    body, loaded, stored = CASES[what]
    found = executable(body)
    given = inputs()
    memory = Memory(found, {p.tensor: given[p.name] for p in found.inputs}, in_place=True)
    assert (len(memory.in_place.loaded), len(memory.in_place.stored)) == (loaded, stored)
    both(found, given, monkeypatch)


@pytest.mark.parametrize("what", CASES)
def test_pieces_of_bfloat16(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    body, *_ = CASES[what]
    if "int32" not in body:
        both(executable(body, "bfloat16"), inputs("bfloat16"), monkeypatch)


@pytest.mark.parametrize("what", CASES)
def test_large_tensors_of_bfloat16_give_the_same_results(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, *_ = CASES[what]
    if "int32" in body:
        return
    found, given = executable(body, "bfloat16"), inputs("bfloat16")
    decoded = simulate(found, {name: values.copy() for name, values in given.items()})
    monkeypatch.setattr(storage, "LARGE", 1)
    both(found, given, monkeypatch)
    same(decoded, simulate(replace(found), given))


def test_a_tile_of_bfloat16_is_a_piece_only_of_a_decoded_tensor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A tile over raw bytes would be decoded at each read instead of once."""
    found, given = executable(PLAIN, "bfloat16"), inputs("bfloat16")
    contents = {p.tensor: given[p.name] for p in found.inputs}
    decoded = Memory(found, contents, in_place=True).in_place
    assert (len(decoded.loaded), len(decoded.stored)) == (4, 2)
    monkeypatch.setattr(storage, "LARGE", 1)
    raw = Memory(found, contents, in_place=True).in_place
    assert (len(raw.loaded), len(raw.stored)) == (0, 0)


def test_an_input_is_never_written(monkeypatch: pytest.MonkeyPatch) -> None:
    given = inputs()
    before = {name: values.copy() for name, values in given.items()}
    simulate(executable(PLAIN), given)
    assert all(np.array_equal(given[n], before[n], equal_nan=True) for n in given)


PRODUCT = """
    x, y, z = tile(a), tile(a), tile(a, 64)
    nisa.dma_copy(dst=x, src=a[0:128, :])
    nisa.memset(dst=y[0:64, :], value=1.0)
    acc = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=acc, stationary=x, moving=y)
    nisa.tensor_copy(dst=z, src=acc)
    for i in range(4):
        nisa.dma_copy(dst=out[nl.ds(i * 64, 64), :], src=z)
    return out
"""


def test_a_product_with_what_nobody_wrote_leaves_its_input_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Zeros of an input meet uninitialised bytes, which are cleared before the product."""
    given = inputs()
    given["a"] = np.ones_like(given["a"])
    given["a"][64:128] = 0
    given["a"].flags.writeable = False
    found = executable(PRODUCT)
    assert (simulate(found, given).outputs["output_0"] == 64).all()
    both(found, given, monkeypatch)


@pytest.mark.parametrize(
    "options",
    [
        RunOptions(check_init=False),
        RunOptions(precise=False),
        RunOptions(report_bounds=True),
        RunOptions(check_races=True),
    ],
)
def test_who_looks_at_memory_finds_it_as_on_the_device(options: RunOptions) -> None:
    assert RunOptions().copies_less
    assert not options.copies_less
