"""Test Beta 1's index expressions and masks against NumPy's results for the same expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import nkic
from nkic.base.device import KernelError
from nkic.base.diagnostics import Reporter
from nkic.base.profiles import Profile
from nkic.base.source import SourceFile
from nkic.compiler.compiled import CompileOptions
from nkic.compiler.loader import Loader
from nkic.compiler.pipeline import compile_source
from nkic.compiler.request import parse_options, request_for
from nkic.language.beta1 import indices, masks
from nkic.language.trace import Trace, tracing
from nkic.machine.targets import DEFAULT
from nkic.program.program import Instruction
from tests.programs import code

SHAPE = (6, 8)
NONE: list[frozenset[int]] = [frozenset(), frozenset()]


@pytest.fixture(autouse=True)
def traced() -> Iterator[None]:
    with tracing(Trace(DEFAULT, Profile.BETA1, Reporter(20))):
        yield


def values(index: indices.Index) -> Any:
    """Evaluate an expression to NumPy's array."""
    found = np.full(index.shape, index.start)
    for axis, dim in enumerate(index.dims):
        steps = np.arange(dim.size) * dim.step
        found = found + steps.reshape([-1 if n == axis else 1 for n in range(len(index.dims))])
    return found


def rows_and_columns(arange: Callable[[int], Any]) -> tuple[Any, Any]:
    return arange(SHAPE[0])[:, None], arange(SHAPE[1])[None, :]


EXPRESSIONS: list[Callable[[Any, Any], Any]] = [
    lambda i, j: i + j,
    lambda i, j: 3 * i - 2 * j + 5,
    lambda i, j: (i + 1) * 4 + (j - 7),
    lambda i, j: -i,
    lambda i, j: 8 * (2 * j) // 4,
    lambda i, j: (6 * i + 4) % 3,
    lambda i, j: j[:, 2:6] - 1,
    lambda i, j: i[:, :, None] + j[:, None, :],
]


@pytest.mark.parametrize("make", EXPRESSIONS)
def test_arithmetic_is_that_of_numpy(make: Callable[[Any, Any], Any]) -> None:
    found = values(make(*rows_and_columns(indices.arange)))
    wanted = make(*rows_and_columns(np.arange))
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    "make", [lambda i, j: i * j, lambda i, j: j // 3, lambda i, j: (j + 1) % 5]
)
def test_what_steps_unevenly_is_refused(make: Callable[[Any, Any], Any]) -> None:
    with pytest.raises(KernelError, match="an affine expression"):
        make(*rows_and_columns(indices.arange))


def test_a_grid_has_its_whole_shape_in_every_expression() -> None:
    grid = indices.MakesGrids()[0:4, 2:10]
    wanted = np.mgrid[0:4, 2:10]
    for found, one in zip((grid.p, grid.x), wanted, strict=True):
        np.testing.assert_array_equal(values(found), one)


CONDITIONS: list[Callable[[Any, Any], Any]] = [
    lambda i, j: i < 4,
    lambda i, j: (i >= 2) & (j < 5) & (i <= 4),
    lambda i, j: -1 * j + 3 >= 0,
    lambda i, j: i >= j,
    lambda i, j: (i == j) | (j > 5),
    lambda i, j: i * 8 + j < 29,
    lambda i, j: (i != 3) & (2 * j > 5),
    lambda i, j: ~(i < j),
    lambda i, j: j == 7,
    lambda i, j: i > 100,
]


@pytest.mark.parametrize("make", CONDITIONS)
def test_a_mask_leaves_what_numpy_leaves(make: Callable[[Any, Any], Any]) -> None:
    """Each element is in exactly one box if the condition is true for it, and otherwise in none."""
    wanted = np.broadcast_to(make(*rows_and_columns(np.arange)), SHAPE)
    mask = make(*rows_and_columns(indices.arange)).placed(NONE, SHAPE)
    box, rest = masks.bounding(mask, SHAPE)
    found = np.zeros(SHAPE, int)
    if box is not None:
        for one in [box] if rest is None else masks.boxes(rest, box):
            ends = zip(one.starts, one.sizes, strict=True)
            found[tuple(slice(start, start + size) for start, size in ends)] += 1
    np.testing.assert_array_equal(found, wanted)
    assert list(masks.elements(mask, SHAPE)) == wanted.ravel().tolist()


def test_bounds_are_one_box() -> None:
    i, j = rows_and_columns(indices.arange)
    mask = ((i + 10 < 13) & (j < 100)).placed(NONE, SHAPE)
    assert masks.bounding(mask, SHAPE) == (masks.Box((0, 0), (3, 8)), None)


def test_a_mask_finds_the_dimension_by_its_arange() -> None:
    """Both run along the second dimension of the indexed tensor, and one of them along the first
    dimension of the tile.
    """
    i: Any = indices.arange(6)[None, :]
    j: Any = indices.arange(8)[None, :]
    axes = [i.dims[1].axes, j.dims[1].axes]
    mask = ((i < 2) & (j < 5)).placed(axes, SHAPE)
    assert masks.bounding(mask, SHAPE) == (masks.Box((0, 0), (2, 5)), None)


HEAD = """
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl

@nki.jit
def kernel(a):
    out = nl.ndarray(a.shape, dtype=nl.float32, buffer=nl.shared_hbm)
"""


def made(body: str) -> list[Instruction]:
    """Return the instructions of a kernel."""
    text = HEAD + "".join(f"    {line}\n" for line in body.splitlines()) + "    return out\n"
    loader = Loader.beside("k.py")
    source = loader.main("k.py", text.encode())
    request = request_for(source, parse_options(args=["a=float32[128,512]"]), {})
    compiled = compile_source(source, request, loader, CompileOptions(last="specialise"))
    return list(code(compiled.results["specialise"]))


def instructions(body: str) -> list[str]:
    """Return the names of the instructions of a kernel, as in the table."""
    return [one.row.name for one in made(body)]


def test_instructions_have_the_names_that_the_kernel_gives_them() -> None:
    found = made(
        't = nisa.tensor_copy(nl.load(a), name="copied")\n'
        'nl.store(out, nisa.activation(nl.exp, t, name="powers"))'
    )
    names = [(one.row.name, one.name) for one in found]
    assert names[1:3] == [("tensor_copy", "copied"), ("activation", "powers")]
    assert [name for _, name in (names[0], names[3])] == ["", ""]


def test_an_assignment_makes_no_copy() -> None:
    """The instruction writes the target, as with dst in later versions."""
    found = instructions(
        "t = nl.ndarray((128, 512), dtype=nl.float32)\n"
        "t[...] = nl.load(a)\n"
        "t[...] = nisa.activation(op=nl.exp, data=t)\n"
        "t[:, 0:256] = nl.add(t[:, 0:256], 1.0)\n"
        "nl.store(out, t)"
    )
    assert sorted(found) == ["activation", "dma_copy", "dma_copy", "tensor_scalar"]


def test_zeros_that_matmuls_add_to_are_never_written() -> None:
    found = instructions(
        "t = nl.load(a)\n"
        "p = nl.zeros((128, 512), dtype=nl.float32, buffer=nl.psum)\n"
        "for i in nl.affine_range(4):\n"
        "    p += nisa.nc_matmul(t[:, i * 128 : (i + 1) * 128], t)\n"
        "nl.store(out, nl.copy(p))"
    )
    assert sorted(found) == ["dma_copy", "dma_copy", *["nc_matmul"] * 4, "tensor_copy"]


def test_zeros_that_something_else_reads_are_written() -> None:
    found = instructions(
        "p = nl.zeros((128, 512), dtype=nl.float32, buffer=nl.psum)\n"
        "nl.store(out, nl.add(nl.load(a), p))"
    )
    assert sorted(found) == ["dma_copy", "dma_copy", "memset", "tensor_tensor"]


def test_tiles_without_room_wait_in_hbm() -> None:
    """64 tiles of 4 KiB a partition exceed SBUF; the values are right."""
    text = HEAD.replace("a.shape", "(1, 1024)") + (
        "    tiles = nl.ndarray((64, nl.par_dim(128), 1024), dtype=nl.float32)\n"
        "    for i in nl.affine_range(64):\n"
        "        tiles[i] = nl.load(a[i])\n"
        "    total = nl.zeros((1, 1024), dtype=nl.float32)\n"
        "    for i in nl.affine_range(64):\n"
        "        total += tiles[i, 0:1, :]\n"
        "    nl.store(out, total)\n"
        "    return out\n"
    )
    x = np.arange(64, dtype=np.float32)[:, None, None] * np.ones((64, 128, 1024), np.float32)
    with pytest.warns(nkic.NkicWarning, match="SBUF has no room for all tiles"):
        artifact = nkic.compile(SourceFile("k.py", text), inputs={"a": x})
    result = nkic.run(artifact, {"a": x})
    assert (result.outputs["output_0"] == sum(range(64))).all()


def test_all_places_of_a_small_box_are_tried() -> None:
    """`holds` agrees for a box with the values of its elements."""
    i, j = rows_and_columns(indices.arange)
    mask = ((i >= j) | (i == 2)).placed(NONE, SHAPE)
    for row, column, height, width in product(range(6), range(8), (1, 2), (1, 3)):
        if row + height > 6 or column + width > 8:
            continue
        box = masks.Box((row, column), (height, width))
        inside = {
            r >= c or r == 2
            for r in range(row, row + height)
            for c in range(column, column + width)
        }
        known = mask.holds(box)
        assert known is None or inside == {known}
