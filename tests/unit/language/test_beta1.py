"""Test Beta 1's index expressions and masks against NumPy's results for the same expressions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import nkic
from nkic.base.device import KernelError
from nkic.base.diagnostics import Reporter
from nkic.base.profiles import Profile
from nkic.base.source import CallChain, SourceFile, Span
from nkic.compiler.compiled import CompileOptions
from nkic.compiler.loader import Loader
from nkic.compiler.pipeline import compile_source
from nkic.compiler.request import parse_options, request_for
from nkic.language import views
from nkic.language.beta1 import access, creation, extents, indices, masks, passes, recorded
from nkic.language.trace import Trace, active, tracing
from nkic.machine.dtypes import DTYPES
from nkic.machine.targets import DEFAULT, Buffer
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
    lambda i, j: (6 * i + 4) // 3,
    lambda i, j: (4 * j - 5) // 2,
    lambda i, j: j[:, 2:6] - 1,
    lambda i, j: i[:, :, None] + j[:, None, :],
]


@pytest.mark.parametrize("make", EXPRESSIONS)
def test_arithmetic_is_that_of_numpy(make: Callable[[Any, Any], Any]) -> None:
    found = values(make(*rows_and_columns(indices.arange)))
    wanted = make(*rows_and_columns(np.arange))
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("make", EXPRESSIONS)
def test_the_lowest_and_highest_value_are_those_of_numpy(make: Callable[[Any, Any], Any]) -> None:
    found, wanted = make(*rows_and_columns(indices.arange)), make(*rows_and_columns(np.arange))
    assert found.bounds == (wanted.min(), wanted.max())
    for axis in range(-1 - wanted.ndim, 1 + wanted.ndim):
        one = np.expand_dims(wanted, axis)
        np.testing.assert_array_equal(values(found.expand_dims(axis)), one)


@pytest.mark.parametrize("size", [1, 5, 6])
def test_a_part_of_an_index_is_that_of_numpy(size: int) -> None:
    plain, index = 3 * np.arange(size) - 4, 3 * indices.arange(size) - 4
    ends = (None, *range(-size, size + 1))
    for start, stop, step in product(ends, ends, (None, 1, 2, 3)):
        part = slice(start, stop, step)
        if len(plain[part]):
            np.testing.assert_array_equal(values(index[part]), plain[part])
        else:
            with pytest.raises(KernelError, match="has no elements"):
                index[part]
    for at in range(-size, size):
        assert values(index[at]) == plain[at]
    for at in (-size - 1, size):
        with pytest.raises(KernelError, match="cannot be indexed"):
            index[at]


@pytest.mark.parametrize("counts", [(1,), (4,), (2, 3), (3, 1, 2)])
def test_a_block_is_numbered_in_rows_and_begins_anew_after_the_last(
    counts: tuple[int, ...],
) -> None:
    for block in product(*(range(2 * count + 1) for count in counts)):
        wanted = np.ravel_multi_index(block, counts, mode="wrap")
        assert creation._number(block, counts) == wanted


def elements(box: masks.Box) -> set[tuple[int, ...]]:
    ranges = (range(n, n + size) for n, size in zip(box.starts, box.sizes, strict=True))
    return set(product(*ranges))


def test_boxes_side_by_side_become_one() -> None:
    every = [
        masks.Box(starts, sizes)
        for starts in product(range(3), repeat=2)
        for sizes in product(range(1, 3), repeat=2)
    ]
    merged = 0
    for old, new in product(every, repeat=2):
        found = masks._extended([old], new)
        assert set().union(*map(elements, found)) == elements(old) | elements(new)
        apart = elements(old).isdisjoint(elements(new))
        box = masks.Box(
            *zip(
                *(
                    (min(a), max(a) + 1 - min(a))
                    for a in zip(*(elements(old) | elements(new)), strict=True)
                ),
                strict=True,
            )
        )
        follows = new.starts > old.starts and apart
        together = follows and elements(box) == elements(old) | elements(new)
        assert len(found) == (1 if together else 2), (old, new)
        merged += together
    assert merged > 20


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


@pytest.mark.parametrize("full", [5, 4])
def test_no_tile_is_stored_while_there_is_exactly_room(
    full: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of six tiles in use at once, those beyond the `full` that fit are stored, and no others."""
    usable = DEFAULT.sbuf_usable
    width = usable // full // 4
    text = HEAD.replace("a.shape", f"(6, 128, {width})") + (
        "    tiles = [nl.load(a[i]) for i in range(6)]\n"
        "    for i in range(6):\n"
        "        nl.store(out[i], tiles[5 - i])\n"
        "    return out\n"
    )
    monkeypatch.setattr(passes, "FILL_FRACTION", full * width * 4 / usable)
    monkeypatch.setattr(passes, "FREE_TILES", 0)
    x = np.arange(6, dtype=np.float32)[:, None, None] * np.ones((6, 128, width), np.float32)
    stored = f"stored to HBM {6 - full} times and loaded again {6 - full} times"
    with pytest.warns(nkic.NkicWarning, match=stored):
        artifact = nkic.compile(SourceFile("k.py", text), inputs={"a": x})
    found = nkic.run(artifact, {"a": x}).outputs["output_0"]
    np.testing.assert_array_equal(found, x[::-1])


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


def test_a_mask_has_as_many_boxes_as_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    i, j = rows_and_columns(indices.arange)
    mask, box = ((i >= j) | (i == 2)).placed(NONE, SHAPE), masks.Box((0, 0), SHAPE)
    monkeypatch.setattr(masks, "MAX_BOXES", count := len(masks.boxes(mask, box)))
    assert len(masks.boxes(mask, box)) == count > 1
    monkeypatch.setattr(masks, "MAX_BOXES", count - 1)
    with pytest.raises(KernelError, match=f"more than {count - 1} parts"):
        masks.boxes(mask, box)


# ---- What mutants found untested: results against NumPy, and small functions ---------------------

NUMBERS = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)


def result(body: str, a: Any = NUMBERS) -> Any:
    """Return what a kernel of `a` returns, which the lines assign to `out`."""
    lines = "".join(f"    {line}\n" for line in body.strip().splitlines())
    source = SourceFile(
        "k.py", "\n".join(HEAD.splitlines()[:-1]) + "\n" + lines + "    return out\n"
    )
    artifact = nkic.compile(source, inputs={"a": a})
    return nkic.run(artifact, {"a": a}).outputs["output_0"]


OUT = "out = nl.ndarray({}, dtype=nl.{}, buffer=nl.shared_hbm)\n"
STORE = OUT.format("a.shape", "float32")


def test_a_row_counts_for_all_partitions_on_either_side() -> None:
    for expression in ("nl.add(t, row)", "nl.add(row, t)", "nl.subtract(row, t)"):
        body = f"t, row = nl.load(a), nl.load(a[1:2, :])\n{STORE}nl.store(out, {expression})"
        row = NUMBERS[1:2]
        wanted = row - NUMBERS if "subtract" in expression else NUMBERS + row
        np.testing.assert_array_equal(result(body), wanted)


def test_tensors_of_hbm_are_filled() -> None:
    found = result("out = nl.full(a.shape, 3.0, dtype=nl.float32, buffer=nl.shared_hbm)")
    np.testing.assert_array_equal(found, np.full((4, 6), 3.0))


def test_blocks_of_blocks() -> None:
    body = f"""
t = nl.ndarray((2, 3, nl.par_dim(4), 6), dtype=nl.float32)
for i in range(2):
    for j in range(3):
        t[i][j] = nl.add(nl.load(a), 10.0 * i + j)
{OUT.format("(2, 3, 4, 6)", "float32").strip()}
for i in range(2):
    for j in range(3):
        nl.store(out[i, j], t[i][j])
"""
    shift = 10.0 * np.arange(2)[:, None] + np.arange(3)
    wanted = NUMBERS + shift[:, :, None, None].astype(np.float32)
    np.testing.assert_allclose(result(body), wanted, rtol=1e-6)


def test_dropout_of_nothing_keeps_all_in_the_type_that_is_asked_for() -> None:
    for dtype, name in (("None", "float32"), ("nl.bfloat16", "bfloat16")):
        body = f"t = nl.dropout(nl.load(a), 0.0, dtype={dtype})\n"
        found = result(
            body + OUT.format("a.shape", name).replace(f"nl.{name}", "t.dtype") + "nl.store(out, t)"
        )
        assert str(found.dtype) == name
        np.testing.assert_allclose(found.astype(np.float32), NUMBERS, rtol=2.0**-8)


def test_a_seed_is_set() -> None:
    seed = "nl.random_seed(nisa.memset((128, 1), 1, dtype=nl.int32))\n"
    body = "nl.store(out, nl.rand(a.shape))"
    names = [instructions(text) for text in (seed + body, body)]
    assert "set_rng_seed" in names[0] and "set_rng_seed" not in names[1]


def test_a_run_is_between_two_bounds() -> None:
    for axis, shape in ((0, (7, 2)), (1, (2, 7))):
        both = masks._within(axis, 2, 3, 2)
        for position in product(*map(range, shape)):
            inside = all(one.holds(masks.Box(position, (1, 1))) for one in both)
            assert inside == (2 <= position[axis] < 5)


def test_an_access_that_reads_and_writes_has_one_label() -> None:
    one, other = Span("k.py", 1, 1, 1, 2), Span("k.py", 1, 5, 1, 6)
    assert [label.text for label in recorded._labels(one, one)] == ["read and written here"]
    texts = [label.text for label in recorded._labels(one, other)]
    assert texts == ["written here", "read here"]


def test_only_dimensions_of_size_1_are_dropped() -> None:
    def squeezed(shape: tuple[int, ...], buffer: Buffer, rank: int) -> Any:
        tensor = active().declare(
            shape, DTYPES["float32"], buffer, "t", CallChain(Span("k.py", 1, 1, 1, 2))
        )
        found = access.squeezed(views.whole(tensor), rank)
        return found and found.shape

    assert squeezed((2, 1, 3, 1), Buffer.HBM, 2) == (2, 3)
    assert squeezed((2, 1, 3, 1), Buffer.HBM, 3) == (2, 1, 3)
    assert squeezed((2, 3, 4), Buffer.HBM, 2) is None
    assert squeezed((1, 3), Buffer.HBM, 1) == (3,)
    assert squeezed((1, 3), Buffer.SBUF, 1) is None


def test_arange_calls_are_those_of_dimensions_that_are_not_repeated() -> None:
    class Part:
        def __init__(self, shape: tuple[int, ...], *names: str) -> None:
            self.shape, self._axes = shape, [frozenset([name]) for name in names]

    tiles: Any = Part((4, 6), "i", "j"), Part((1, 6), "k", "l"), Part((2, 4, 6), "b", "m", "n")
    found: Any = extents.axes_of((4, 6), *tiles)
    assert [sorted(one) for one in found] == [["i", "m"], ["j", "l", "n"]]


@pytest.mark.parametrize(
    ("call", "function", "targets"),
    [
        ("nl.copy(x, dtype=nl.bfloat16)", np.positive, ("float32", "float16")),
        ("nl.load(a, dtype=nl.bfloat16)", np.positive, ("float32", "float16")),
        ("nisa.memset((4, 6), 0.3, dtype=nl.bfloat16)", lambda x: 0 * x + 0.3, ("float32",)),
        ("nl.negative(x, dtype=nl.bfloat16)", np.negative, ("float32", "bfloat16")),
        (
            "nl.multiply(x, x, dtype=nl.bfloat16)",
            np.square,
            ("float32", "float16", "float8_e4m3"),
        ),
        (
            "nisa.activation(nl.square, nl.copy(x, dtype=nl.bfloat16))",
            lambda x: np.square(x.astype(ml_dtypes.bfloat16).astype(np.float32)),
            ("float16", "float8_e4m3"),
        ),
    ],
)
def test_an_assignment_drops_no_rounding(call: str, function: Any, targets: Any) -> None:
    """A result of bfloat16, stated or by default, is rounded to it before it is assigned."""
    for target in targets:
        body = f"x = nl.load(a)\nt = nl.ndarray((4, 6), dtype=nl.{target})\nt[...] = {call}\n"
        wanted = function(NUMBERS).astype(ml_dtypes.bfloat16).astype(np.float32)
        dtype = np.dtype(getattr(ml_dtypes, target, target))
        found = result(f"{body}{STORE}nl.store(out, t)")
        np.testing.assert_array_equal(found, wanted.astype(dtype).astype(np.float32))


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("int32 + float16", "float16"),
        ("float8_e4m3 * float8_e5m2", "bfloat16"),
        ("int8 + 2", "int32"),
        ("float16 + 1.2", "float32"),
        ("1.2 * bfloat16", "float32"),
        ("bfloat16 + 2", "bfloat16"),
        ("float16 + np.float16(2)", "float16"),
        ("np.float16(2) - float16", "float16"),
        ("float16 * np.float64(0.5)", "float32"),
        ("int32 / 3", "float32"),
        ("3 / int32", "float32"),
        ("int32 / int8", "int32"),
        ("bfloat16 / 2", "bfloat16"),
        ("2 / bfloat16", "bfloat16"),
        ("float16 / np.int16(3)", "float16"),
        ("int8 + True", "int16"),
        ("int8 + np.int64(3)", "int32"),
        ("int8 * k", "int32"),
        ("k / bfloat16", "bfloat16"),
        ("float16 / np.float16(3)", "float16"),
        ("uint32 & 3", "uint32"),
        ("nl.power(float16, 0.5)", "float32"),
        ("-int8", "int8"),
        ("float16 > 0.5", "uint8"),
        ("nl.where(int8, float16, 0.0)", "float16"),
    ],
)
def test_a_result_has_the_type_of_the_table_of_promotion(expression: str, wanted: str) -> None:
    names = [name for name in DTYPES if re.search(rf"(?<!\.)\b{name}\b", expression)]
    tiles = "".join(f"{n} = nl.ndarray((4, 6), dtype=nl.{n})\n{n}[...] = 1\n" for n in names)
    loop = "for k in nl.affine_range(1, 2):\n    "
    body = f"import numpy as np\n{tiles}{loop}assert ({expression}).dtype == nl.{wanted}\n"
    result(f"x = nl.load(a)\n{body}{STORE}nl.store(out, x)")


@pytest.mark.parametrize(
    ("expression", "advice"),
    [
        ("(u + 1) & 7", "nl.add of uint32 and the number 1, is float32: write nl.add(u, 1, {})"),
        ("(7 - u) ^ 3", "the number 7, is float32: write nl.subtract(7, u, {})"),
        ("(u + i) ^ 3", "nl.add of uint32 and int32, is float32: write nl.add(u, i, {})"),
        ("nl.matmul(h, h * 0.3, transpose_x=True)", "is float32: write nl.multiply(h, 0.3, {})"),
    ],
)
def test_the_type_of_a_promoted_result_is_advised_not_a_view(expression: str, advice: str) -> None:
    tiles = "".join(
        f"{name} = nl.ndarray((4, 6), dtype=nl.{dtype})\n{name}[...] = 1\n"
        for name, dtype in (("u", "uint32"), ("i", "int32"), ("h", "bfloat16"))
    )
    dtype = "bfloat16" if "(h" in advice else "uint32"
    with pytest.raises(nkic.CompileError) as caught:
        result(f"{tiles}t = {expression}\n{STORE}nl.store(out, nl.load(a))")
    said = str(caught.value)
    assert advice.format(f"dtype=nl.{dtype}") in said and "view" not in said


def test_what_rounds_nothing_is_written_at_once() -> None:
    """As a load of the type that is stored, or float32 before it is rounded."""
    for call, count in (
        ("nl.load(a)", 2),
        ("nl.exp(nl.load(a))", 3),
        ("nl.zeros((4, 6), nl.int8)", 3),
    ):
        kind = "float32" if "exp" not in call else "bfloat16"
        body = f"t = nl.ndarray((128, 512), dtype=nl.{kind})\nt[...] = {call}\nnl.store(out, t)"
        assert len(instructions(body.replace("(4, 6)", "(128, 512)"))) == count


def test_a_tile_and_an_index_expression_are_an_index_at_run_time() -> None:
    rows = np.array([[1.0], [0.0], [2.0]], np.float32)
    taken = (
        "n = nl.load(a[0:1, 0:1], dtype=nl.int32)\nt = nl.load(a)\n"
        + OUT.format("(3, 2)", "float32")
        + "i_p, i_f = nl.mgrid[0:3, 0:2]\n"
    )
    wide = np.concatenate([rows, np.arange(18, dtype=np.float32).reshape(3, 6)], axis=1)
    for at in ("t[i_p, n + i_f]", "t[:, nl.ds(n, 2)]"):
        found = result(f"{taken}nl.store(out, nl.copy({at}))", wide)
        np.testing.assert_array_equal(found, wide[:, 1:3], at)
    for name in ("n - i_f", "n * i_f"):
        with pytest.raises(nkic.CompileError, match="a run-time index is a tile plus an expr"):
            result(f"{taken}nl.store(out, nl.copy(t[i_p, {name}]))", wide)


@pytest.mark.parametrize(
    ("joined", "hidden"),
    [("below and right", "j < 3"), ("below or right", "i < j"), ("not below", None)],
)
def test_a_mask_is_true_where_python_asks(joined: str, hidden: str | None) -> None:
    """`a and b` is b alone, and `a or b` is a alone."""
    body = (
        f"t = nl.zeros(a.shape, dtype=nl.float32)\n{STORE}"
        "i, j = nl.mgrid[0:4, 0:6]\nbelow, right = i >= j, j >= 3\n"
    )
    if hidden is None:
        body += f"if {joined}:\n    t = nl.add(t, 5.0)\nnl.store(out, t)"
        wanted = np.zeros_like(NUMBERS)
    else:
        body += f"t[i, j] = nl.add(nl.load(a), 0.0, mask={joined})\nnl.store(out, t)"
        i, j = np.mgrid[0:4, 0:6]
        wanted = np.where(i < j if hidden == "i < j" else j < 3, 0, NUMBERS)
    with pytest.warns(nkic.NkicWarning, match="is always true here"):
        found = result(body)
    np.testing.assert_array_equal(found, wanted)


ROWS_OR_COLUMNS = ("2 * i == 3", "3 * j == 9", "i == 2", "-2 * i == -4", "2 * j == 1", "i == 4")


@pytest.mark.parametrize("text", ROWS_OR_COLUMNS)
def test_a_row_or_column_that_equals_a_number(text: str) -> None:
    body = (
        f"t = nl.zeros(a.shape, dtype=nl.float32)\n{STORE}i, j = nl.mgrid[0:4, 0:6]\n"
        f"t[i, j] = nl.add(nl.load(a), 0.0, mask={text})\nnl.store(out, t)"
    )
    seen = eval(text, dict(zip("ij", np.mgrid[0:4, 0:6], strict=True)))
    np.testing.assert_array_equal(result(body), np.where(seen, NUMBERS, 0))


@pytest.mark.parametrize("rows", [1, 2, 4])
@pytest.mark.parametrize("columns", [1, 2, 6])
def test_a_row_is_repeated_over_all_partitions(rows: int, columns: int) -> None:
    x = NUMBERS[:rows, :columns]
    body = f"t, row = nl.load(a), nl.load(a[0:1, :])\n{STORE}nl.store(out, nl.{{}}(t, row))"
    for name, function in (("add", np.add), ("subtract", np.subtract), ("maximum", np.maximum)):
        np.testing.assert_array_equal(result(body.format(name), x), function(x, x[:1]))


def test_a_mask_of_a_constant_is_as_true_as_python_says() -> None:
    for number in (-1, 0, 1, 2):
        index = indices.Index(number, ())
        for symbol, wanted in ((">=", number >= 0), ("==", number == 0), ("!=", number != 0)):
            assert bool(masks.Compared(index, symbol)) is wanted, (number, symbol)


def test_the_bounds_of_a_range_are_whole_numbers() -> None:
    assert recorded._bound(3) == 3
    for wrong in (1.5, True, np.float32(2), "3"):
        with pytest.raises(KernelError, match="the bounds of a range must be ints or scalars"):
            recorded._bound(wrong)


@pytest.mark.parametrize(
    "key", ["...", "..., 1:3", "1, ...", "1, ..., 2:4", "..., 0:2, 1:3", "0:2"]
)
def test_an_ellipsis_in_the_index_of_blocks(key: str) -> None:
    """Of three blocks, each of which has the number of its place in every element."""
    body = (
        "t = nl.zeros((3, nl.par_dim(4), 5, 6), dtype=nl.float32)\n"
        "for i in range(3):\n    t[i] = nl.full((4, 5, 6), i + 1, dtype=nl.float32)\n"
        f"{OUT.format('(3, 4, 5, 6)', 'float32')}"
    )
    lines = [f"t[{n}, {key}] = 9.0" for n in range(3)] if key[0] in ".0" else [f"t[{key}] = 9.0"]
    stores = "for i in range(3):\n    nl.store(out[i], t[i])\n"
    wanted = np.ones((3, 4, 5, 6), np.float32) * np.arange(1, 4)[:, None, None, None]
    for line in lines:
        exec(line, {"t": wanted})
    found = result("\n".join([body + "\n".join(lines), stores]))
    np.testing.assert_array_equal(found, wanted)


def test_numbers_of_numpy_are_masks_and_arrays_are_none() -> None:
    assert masks.as_mask(np.bool_(True)) is None and masks.as_mask(np.array(1)) is None
    assert masks.as_mask(np.bool_(False)) is False and masks.as_mask(np.int64(0)) is False
    for wrong in (np.ones(2), np.ones(1), 2, 1.0, "yes"):
        with pytest.raises(KernelError, match="must be a comparison of index expressions"):
            masks.as_mask(wrong)


def test_a_mask_of_other_indices_is_placed_by_its_shape() -> None:
    """Its first dimension is that of the partitions if the sizes agree, else it counts from the
    last one; of a tile with more dimensions.
    """
    x = np.arange(4 * 3 * 4, dtype=np.float32).reshape(4, 3, 4)
    head = "p, q, r = nl.mgrid[0:4, 0:3, 0:4]\nt = nl.zeros(a.shape, dtype=nl.float32)\n" + STORE
    i, j = np.arange(4)[:, None], np.arange(4)[None, :]
    for mask, seen in (
        ("nl.arange(4)[:, None] > nl.arange(4)[None, :]", (i > j)[:, None, :]),
        ("nl.arange(4) > 1", (np.arange(4) > 1)[None, None, :]),
        ("nl.arange(3)[:, None] + nl.arange(4)[None, :] < 3", np.add.outer(range(3), range(4)) < 3),
    ):
        body = f"{head}t[p, q, r] = nl.add(nl.load(a), 0.0, mask={mask})\nnl.store(out, t)"
        np.testing.assert_array_equal(result(body, x), np.where(seen, x, 0), mask)


def test_what_a_tensor_lacks_may_be_a_function() -> None:
    for name, meant in (("T", "transpose"), ("pow", "power"), ("exp", "exp")):
        with pytest.raises(nkic.CompileError, match=rf"write nl\.{meant}\(t, …\), which is"):
            result(f"t = nl.load(a)\n{STORE}nl.store(out, t.{name})")
    with pytest.raises(nkic.CompileError) as caught:
        result(f"t = nl.load(a)\n{STORE}nl.store(out, t.shap)")
    assert "nl.shap" not in str(caught.value) and "shape" in str(caught.value)
