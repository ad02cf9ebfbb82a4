"""Test the warnings of check: each warning where it holds, and not at the limit where it does
not.
"""

import pytest

from nkic.base.levels import OFF_BY_DEFAULT
from tests.harness.kernels import compile_text

# These kernels do not use all that they read and compute: tests/files/silent.
IDLE = ("input-not-read", "input-partly-read", "result-not-read")
HEAD = """\
# /// nkic
# target = "{target}"
# [args]
# a = "{dtype}[256, 512]"
# ///
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def kernel(a):
    x = nl.ndarray((128, 512), dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a[0:128])
    out = nl.ndarray((128, 512), dtype=a.dtype, buffer=nl.shared_hbm)
"""
TAIL = """
    nisa.dma_copy(dst=out, src=x)
    return out
"""


def said(
    body: str, warn: str = "", dtype: str = "float32", tail: str = TAIL, target: str = "trn2"
) -> list[tuple[str, str]]:
    """Return the slug and message of each diagnostic of a kernel with this body."""
    lines = "".join(f"    {line}\n" for line in body.strip().split("\n"))
    text = HEAD.format(dtype=dtype, target=target) + lines + tail
    found = (one for one in compile_text(text, warn) if one.code.slug not in (*IDLE, "deprecated"))
    return [(one.code.slug, one.message) for one in found]


def slugs(body: str, warn: str = "", **more: str) -> list[str]:
    return [slug for slug, _ in said(body, warn, **more)]


def test_a_clean_kernel() -> None:
    assert said("pass") == []
    assert {"float32-matmul", "small-dma-rows"} == OFF_BY_DEFAULT


# ---- memory --------------------------------------------------------------------------------------


def test_unused_tensors() -> None:
    body = "y = nl.ndarray((128, 100), dtype=nl.bfloat16, buffer=nl.sbuf)"
    assert said(body) == [
        (
            "unused-tensor",
            "`y` is declared and never used: bfloat16[128, 100], 200 bytes per partition of sbuf",
        )
    ]


@pytest.mark.parametrize(
    "use",
    [
        "nisa.memset(dst=y, value=0)",
        "nisa.tensor_copy(dst=y[0:1, 0:1], src=x[0:1, 0:1])",
        "def body(i):\n    nisa.memset(dst=y, value=1)\nnl.fori_loop(0, 4, body)",
    ],
)
def test_any_use_counts(use: str) -> None:
    body = f"y = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)\n{use}"
    assert slugs(body) == []


def test_unused_tensors_of_one_line_are_counted() -> None:
    body = "for i in range(3):\n    nl.ndarray((128, 8), dtype=nl.float32, buffer=nl.sbuf)"
    assert len(said(body)) == 1


def test_tensors_left_over_of_a_place_that_makes_several() -> None:
    body = """def tile():
    return nl.ndarray((128, 8), dtype=nl.float32, buffer=nl.sbuf)
pool = [tile() for i in range(3)]
nisa.memset(dst=pool[1], value=0)"""
    assert slugs(body) == []


PARTS = [
    ("out[:, 0:256]", "[0:128, 256:512]"),
    ("out[:, 1:512]", "[0:128, 0:1]"),
    ("out[0:127]", "[127:128, 0:512]"),
    ("out[64:128, 256:512]", "[0:64, 0:256]"),
    ("out[:, 0:512:2]", "[0:128, 511:512]"),  # the first gap is not found: boxes cover more
    ("out", ""),
]


@pytest.mark.parametrize(("part", "hole"), PARTS)
def test_outputs_written_in_part(part: str, hole: str) -> None:
    tail = f"\n    nisa.dma_copy(dst={part}, src=x{part[3:]})\n    return out\n"
    found = [one for one in said("pass", tail=tail) if one[0] != "tiny-dma-rows"]
    text = f"output 0, `out`, is written only in part: nothing writes {hole}"
    assert found == ([("output-partly-written", text)] if hole else [])


@pytest.mark.parametrize(
    ("tiles", "complete"),
    [
        ("for i in range(0, 512, 128): body(i)", True),
        ("for i in range(0, 384, 128): body(i)", False),
        ("for i in (0, 128, 128, 256): body(i)", False),  # as many as it takes, but not all
        ("for i in (0, 256, 128, 384, 128): body(i)", True),
        ("nl.fori_loop(0, 384, body, 128)", True),  # where it writes is known at run time
    ],
)
def test_outputs_written_tile_by_tile(tiles: str, complete: bool) -> None:
    tail = f"""
    def body(i):
        c = nl.ds(i, 128)
        nisa.dma_copy(dst=out[:, c], src=x[:, 0:128])
    {tiles}
    return out
"""
    assert slugs("pass", tail=tail) == ([] if complete else ["output-partly-written"])


@pytest.mark.parametrize("cleared", [0, 1])
def test_accumulation_onto_either_of_two_tiles_that_one_line_clears(cleared: int) -> None:
    body = f"""w = nl.ndarray((128, 128), dtype=nl.bfloat16, buffer=nl.sbuf)
nisa.memset(dst=w, value=1.0)
sums = [nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum) for i in range(2)]
for p in sums:
    nisa.memset(dst=p, value=0.0)
nisa.nc_matmul(dst=sums[{cleared}], stationary=w, moving=w, accumulate=True)"""
    assert slugs(body) == ["accumulates-onto-data"]


# ---- speed ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "dtype", "slug"),
    [
        (128, "float32", ""),  # 512 bytes
        (127, "float32", "small-dma-rows"),
        (16, "float32", "small-dma-rows"),  # 64 bytes
        (15, "float32", "tiny-dma-rows"),
        (9, "float32", "tiny-dma-rows"),
        (8, "float32", ""),  # 4096 bytes in all
        (255, "bfloat16", "small-dma-rows"),
        (256, "bfloat16", ""),
    ],
)
def test_rows_by_their_bytes(columns: int, dtype: str, slug: str) -> None:
    body = f"nisa.dma_copy(dst=x[:, 0:{columns}], src=a[0:128, 0:{columns}])"
    assert slugs(body, "small-dma-rows", dtype=dtype) == [slug] * bool(slug)
    off = slug in OFF_BY_DEFAULT
    assert slugs(body, dtype=dtype) == [slug] * (bool(slug) and not off)


@pytest.mark.parametrize(
    ("dst", "src"),
    [
        ("x[:, 0:64]", "a.reshape((2048, 64))[0:128]"),  # short rows without gaps
        ("x", "a.ap(pattern=[[0, 128], [1, 512]])"),  # one row, repeatedly
        ("x[:, 0:32]", "x[:, 32:64]"),  # not in HBM
    ],
)
def test_rows_that_are_long_enough(dst: str, src: str) -> None:
    assert slugs(f"nisa.dma_copy(dst={dst}, src={src})", "small-dma-rows") == []


def test_rows_of_the_message() -> None:
    ((_, text),) = said("nisa.dma_copy(dst=x, src=a.ap(pattern=[[1, 128], [128, 512]]))")
    assert text.startswith("dma_copy: 65,536 rows of 4 bytes of `a`; rows under 512 bytes ")


MATMUL = """\
s = nl.ndarray((128, 128), dtype=nl.{0}, buffer=nl.sbuf)
nisa.memset(dst=s, value=1.0)
p = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
nisa.nc_matmul(dst=p, stationary=s, moving=s{1})
"""


@pytest.mark.parametrize(
    ("dtype", "more", "warned"),
    [
        ("float32", "", True),
        ("bfloat16", "", False),
        ("float32", ", is_stationary_onezero=True", False),
        ("float32", ", is_transpose=True", False),
    ],
)
def test_matmuls_of_float32(dtype: str, more: str, warned: bool) -> None:
    body = MATMUL.format(dtype, more)
    assert slugs(body, "float32-matmul") == ["float32-matmul"] * warned
    assert slugs(body) == []


# ---- numbers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "warned"),
    [
        ("nisa.tensor_tensor(dst=x, data1=x, data2=x, op=nl.add)", False),  # gpsimd
        ("nisa.tensor_tensor(dst=x, data1=x, data2=x, op=nl.add, engine=nisa.engine.vector)", True),
        (
            "nisa.tensor_tensor(dst=x, data1=x, data2=x, op=nl.bitwise_xor, "
            "engine=nisa.engine.vector)",
            False,
        ),
        (
            "nisa.tensor_tensor(dst=x, data1=x, data2=x, op=nl.logical_and, "
            "engine=nisa.engine.vector)",
            False,
        ),
        ("nisa.tensor_scalar(dst=x, data=x, op0=nl.add, operand0=2**24)", False),
        ("nisa.tensor_scalar(dst=x, data=x, op0=nl.add, operand0=2**24 + 1)", True),
        ("nisa.tensor_scalar(dst=x, data=x, op0=nl.add, operand0=-(2**24) - 1)", True),
        ("nisa.tensor_scalar(dst=x, data=x, op0=nl.multiply, operand0=3 * 2**24)", False),
        ("nisa.tensor_scalar(dst=x, data=x, op0=nl.bitwise_and, operand0=2**24 + 1)", False),
    ],
)
def test_integers_that_float32_rounds(call: str, warned: bool) -> None:
    assert slugs(call, dtype="int32") == ["inexact-int32"] * warned


def test_integers_in_psum_are_computed_on_the_vector_engine() -> None:
    body = """\
p = nl.ndarray((128, 512), dtype=nl.int32, buffer=nl.psum)
nisa.tensor_copy(dst=p, src=x)
nisa.tensor_tensor(dst=x, data1=x, data2=p, op=nl.add)
"""
    ((slug, text),) = said(body, dtype="int32")
    assert slug == "inexact-int32"
    assert text.startswith("tensor_tensor: the vector engine, because of an operand in PSUM, ")
    assert slugs(body) == []  # of float32
