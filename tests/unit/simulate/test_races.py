"""Test `nki-run --race-check`: unordered accesses of two cores to shared HBM, found as they
happen.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import nkic
from nkic.artifact.read import read
from nkic.base.diagnostics import ProgramFault
from nkic.base.source import SourceFile
from nkic.compiler.pipeline import compile_source
from nkic.simulate import RunOptions, simulate
from nkic.specialise.inline import parse_arg
from nkic.specialise.request import Request
from tests.cli.nki_run_fixtures import artifact, folder, nki
from tests.harness.commands import Run

__all__ = ["artifact", "folder", "nki"]
Array = NDArray[Any]
DATA = np.arange(256 * 16, dtype=np.float32).reshape(256, 16)
HEAD = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a, at):
    core = nl.program_id(0)
    mine, other = nl.ds(core * 128, 128), nl.ds((1 - core) * 128, 128)
    x = nl.ndarray((128, 16), a.dtype, nl.sbuf)
    y = nl.ndarray((128, 16), a.dtype, nl.sbuf)
    nisa.dma_copy(x, a[mine])
    index = nl.ndarray((128, 1), nl.int32, nl.sbuf)
    nisa.dma_copy(index, at[mine])
    shared = nl.ndarray((256, 16), a.dtype, nl.shared_hbm)
    out = nl.ndarray((256, 16), a.dtype, nl.shared_hbm)
"""
TAIL = """\
    nisa.dma_copy(out[mine], y)
    return out
"""
SAME = np.arange(256, dtype=np.int32)[:, None]
SWAPPED = np.roll(SAME, 128)
BOTH = np.tile(SAME[:128], (2, 1))  # the indices of both cores are the first 128


def compiled(body: str, lnc: int = 2) -> bytes:
    text = HEAD + "".join(f"    {line}\n" for line in body.strip().split("\n")) + TAIL
    args = dict(map(parse_arg, ("a=f32[256,16]", "at=i32[256,1]")))
    request = Request(lnc=lnc, grid=(lnc,), args=args)
    return compile_source(SourceFile("k.py", text), request, lambda *_: None).data


def run(body: str, at: Array, lnc: int = 2, **how: Any) -> Array:
    options = RunOptions(check_races=True, **how)
    inputs = {"a": DATA, "at": at}
    return simulate(read(compiled(body, lnc)), inputs, options).outputs["output_0"]


SCATTER = "nisa.dma_copy(shared.ap([[16, 128], [1, 16]], vector_offset=index), x)"
GATHER = "nisa.dma_copy(y, shared.ap([[16, 128], [1, 16]], vector_offset=index))"
BARRIER = "nisa.core_barrier(shared, (0, 1))"
READ = "nisa.dma_copy(y, shared[other])"


@pytest.mark.parametrize("init", [True, False])
def test_what_a_scatter_wrote_is_read_after_a_barrier(init: bool) -> None:
    found = run(f"{SCATTER}\n{BARRIER}\n{READ}", SWAPPED, check_init=init)
    assert np.array_equal(found, DATA)  # each core has written where it reads


def test_python_asks_for_the_check() -> None:
    """Only the run-time offsets tell that the cores write the same rows."""
    made = nkic.Artifact(compiled(f"{SCATTER}\n{BARRIER}\nnisa.dma_copy(y, shared[0:128])"))
    inputs = {"a": DATA, "at": BOTH}
    nkic.run(made, inputs)
    with pytest.raises(nkic.RunError, match=r"NKI0642.*core 1 writes `shared` while core 0 writes"):
        nkic.run(made, inputs, race_check=True)


def test_without_one_it_is_a_race_at_its_later_place() -> None:
    with pytest.raises(
        ProgramFault, match="core 0 reads `shared` while core 1 writes it"
    ) as caught:
        run(f"{SCATTER}\n{READ}", SAME)
    (found,) = caught.value.diagnostics
    assert found.code.slug == "core-race" and found.labels[0].text == "core 1 writes it here"


def test_only_the_rows_that_are_named_count() -> None:
    assert np.array_equal(run(f"{SCATTER}\n{GATHER}", SWAPPED), DATA)
    with pytest.raises(ProgramFault, match="core 1 writes `shared` while core 0 writes it"):
        run(f"{SCATTER}\n{GATHER}", BOTH)


def test_both_cores_may_write_the_same() -> None:
    """Each may read it, too; writing values other than the present ones is a race."""
    body = "nisa.memset(x, VALUE)\nnisa.dma_copy(shared[0:128], x)\nnisa.dma_copy(y, shared[0:128])"
    assert (run(body.replace("VALUE", "3.0"), SAME) == 3).all()
    with pytest.raises(ProgramFault, match="core 1 writes `shared` while core 0 writes it"):
        run(body.replace("VALUE", "3.0 + core"), SAME)


def test_what_another_core_may_still_read_is_not_overwritten() -> None:
    first = f"nisa.dma_copy(shared[mine], x)\n{BARRIER}\n{READ}\nnisa.memset(x, 7.0)"
    last = "nisa.dma_copy(shared[mine], x)"
    with pytest.raises(ProgramFault, match="core 1 writes `shared` while core 0 reads it"):
        run(f"{first}\n{last}", SAME)
    assert np.array_equal(run(f"{first}\n{BARRIER}\n{last}", SAME), np.roll(DATA, 128, axis=0))


REGISTER = """\
row = nisa.register_alloc(0)
nisa.register_load(row, index[0:1, 0:1])
part = shared.ap([[16, 128], [1, 16]], scalar_offset=row, indirect_dim=0)
nisa.dma_copy(part, x)
nisa.dma_copy(y, part)
"""


def test_places_in_registers() -> None:
    assert np.array_equal(run(REGISTER, SWAPPED), DATA)
    with pytest.raises(ProgramFault, match="core 1 writes `shared` while core 0 writes it"):
        run(REGISTER, BOTH)


LOOP = """\
def body(i):
    nisa.tensor_scalar(x, x, nl.add, 1.0)
    nisa.dma_copy(shared[mine], x)
    nisa.core_barrier(shared, (0, 1))
    nisa.dma_copy(y, shared[other])
"""
LOOPED = "nl.fori_loop(0, 3, body)"


def test_iterations_need_a_barrier_between_them() -> None:
    with pytest.raises(ProgramFault, match="core 0 writes `shared` while core 1 reads it"):
        run(LOOP + LOOPED, SAME)
    assert np.array_equal(run(f"{LOOP}    {BARRIER}\n{LOOPED}", SAME), np.roll(DATA + 3, 128, 0))


def test_one_core_has_no_races() -> None:
    body = f"nisa.dma_copy(shared[mine], x)\n{GATHER}\nnisa.dma_copy(out[other], x)"
    assert np.array_equal(run(body, SAME % 128, lnc=1)[:128], DATA[:128])


def test_the_command_asks_for_it(nki: Run) -> None:
    Path("k.neff").write_bytes(compiled(f"{SCATTER}\n{READ}"))
    np.savez("in.npz", a=DATA, at=SAME)
    assert nki("k.neff", "--inputs", "in.npz").code == 0
    found = nki("k.neff", "--inputs", "in.npz", "--race-check")
    assert found.code != 0 and "error[NKI0642]" in found.err


def test_other_orders_may_be_tried_as_well(nki: Run) -> None:
    """Transfers of other orders start and end apart from each other."""
    Path("k.neff").write_bytes(compiled(f"{SCATTER}\n{BARRIER}\n{READ}"))
    np.savez("in.npz", a=DATA, at=SWAPPED)
    done = nki("debug", "k.neff", "--inputs", "in.npz", "--race-check", "--fuzz-order", "3")
    assert done.code == 0 and "3 other orders of seed 0" in done.err
