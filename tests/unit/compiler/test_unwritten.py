"""Test warnings about reads of uninitialised memory, as far as the program alone shows them."""

import numpy as np
import pytest

from nkic import api
from nkic.base.levels import Settings, Wish
from nkic.base.source import SourceFile
from tests.harness.kernels import compile_text

SLUGS = ("read-unwritten", "read-never-written")
TEXT = """# /// nkic
# [args]
# a = "float32[128, 512]"
# i = "int32[1, 1]"
# ///
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a, i):
    t = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    u = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    p = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=u, src=a)
{body}
    nisa.dma_copy(dst=out, src=u)
    return out
"""


def said(body: str) -> list[str]:
    lines = "\n".join(f"    {line}" for line in body.strip().split("\n"))
    found = compile_text(TEXT.format(body=lines))
    return [one.message for one in found if one.code.slug in SLUGS]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("nisa.tensor_copy(u, t)", "tensor_copy reads `t`, which"),
        ("nisa.memset(t[0:64], 0)\nnisa.tensor_copy(u, t)", "reads [64:128, 0:512] of `t`,"),
        ("nisa.memset(t[64:], 0)\nnisa.tensor_copy(u, t)", "reads [0:64, 0:512] of `t`,"),
        ("nisa.memset(t[:, 1:], 0)\nnisa.tensor_copy(u, t)", "reads [0:128, 0:1] of `t`,"),
        (
            "for c in range(3):\n    nisa.memset(t[:, c * 128 : c * 128 + 128], 0)\n"
            "nisa.tensor_copy(u, t)",
            "reads [0:128, 384:512] of `t`,",
        ),
        ("nisa.tensor_copy(u, t)\nnisa.memset(t, 0)", "tensor_copy reads `t`, which"),
        ("nisa.tensor_copy(u, p)", "tensor_copy reads `p`, which"),
        (
            "def body(k):\n    nisa.tensor_copy(u, t)\n    nisa.memset(t, 0)\n"
            "nl.fori_loop(0, 2, body)",
            "tensor_copy reads `t`, which",
        ),
        ("nisa.tensor_tensor(t, t, u, nl.add)", "tensor_tensor reads `t`, which"),
    ],
)
def test_what_nothing_has_written(body: str, message: str) -> None:
    (found,) = said(body)
    assert message in found


@pytest.mark.parametrize(
    "body",
    [
        "nisa.memset(t, 0)\nnisa.tensor_copy(u, t)",
        "nisa.memset(t[0:64], 0)\nnisa.tensor_copy(u[0:64], t[0:64])",
        "nisa.memset(t[0:64], 0)\nnisa.memset(t[64:], 0)\nnisa.tensor_copy(u, t)",
        "for c in range(4):\n    nisa.memset(t[:, c * 128 : c * 128 + 128], 0)\n"
        "nisa.tensor_copy(u, t)",
        "nisa.memset(t[:, 0:512:2], 0)\nnisa.tensor_copy(u[:, 0:256], t[:, 0:512:2])",
        "nisa.memset(t[0:64], 0)\nnisa.tensor_copy(u[0:64], t[0:64])\nnisa.tensor_copy(t, u)",
        "for _ in range(2):\n    nisa.nc_matmul(p, u[:, 0:128], u)\nnisa.tensor_copy(u, p)",
        "def body(k):\n    nisa.memset(t, 0)\n    nisa.tensor_copy(u, t)\nnl.fori_loop(0, 2, body)",
    ],
)
def test_what_is_written_before(body: str) -> None:
    assert said(body) == []


def test_a_tensor_is_complained_about_once_with_its_declaration() -> None:
    body = "    nisa.tensor_copy(u, t)\n    nisa.tensor_copy(u, t)"
    found = [o for o in compile_text(TEXT.format(body=body)) if o.code.slug in SLUGS]
    assert [label.text for label in found[0].labels] == ["`t` is float32[128, 512] in sbuf"]
    assert len(found) == 1


def test_a_sum_begins_with_a_product_not_with_a_memset() -> None:
    """An accumulation onto what another instruction wrote is undefined."""
    body = "    nisa.nc_matmul(p, u[:, 0:128], u, accumulate={})\n    nisa.tensor_copy(u, p)"
    (found,) = [
        o for o in compile_text(TEXT.format(body=body.format(True))) if o.code.slug in SLUGS
    ]
    assert found.help.startswith("let the first matmul overwrite it: accumulate=False")
    assert said(body.format(False).replace("    ", "")) == []


def test_many_pieces_are_not_looked_at() -> None:
    body = "for c in range(300):\n    nisa.memset(t[:, c : c + 1], 0)\nnisa.tensor_copy(u, t)"
    assert said(body) == []


HALF = "    nisa.tensor_copy(dst=t[:, 0:256], src=u[:, 0:256])\n    nisa.dma_copy(dst={}, src=t)\n"
REST = "    nisa.dma_copy(dst=out[:, 256:512], src=u[:, 256:512])"


ADDED = "dma_compute(dst=r, srcs=[t, u], reduce_op=nl.add)"


@pytest.mark.parametrize(
    ("body", "slugs"),
    [
        (HALF.format("r"), ["read-never-written"]),
        (HALF.format("a"), ["read-never-written"]),  # an input that is written is a result
        (HALF.format("nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.private_hbm)"), []),
        ("    nisa.dma_copy(dst=r, src=u)\n" + HALF.format("r"), ["read-never-written"]),
        (HALF.format("r") + REST.replace("out", "r"), []),
        (HALF.format("out"), []),  # the store after it covers it
        (
            "    nisa.tensor_copy(dst=t[:, 0:256], src=u[:, 0:256])\n"
            "    def body(i):\n"
            "        nisa.dma_copy(dst=r, src=t)\n"
            "        nisa.memset(dst=t, value=0.0)\n"
            "    nl.fori_loop(0, 2, body)",
            [],
        ),
        (HALF.format("r.ap([[512, 128], [1, 512]], scalar_offset=at)"), ["read-never-written"]),
        (HALF.format("r").replace("dma_copy(dst=r, src=t)", ADDED), ["read-never-written"]),
    ],
)
def test_a_hole_that_remains_in_a_result_is_an_error(body: str, slugs: list[str]) -> None:
    declared = "    r = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)\n"
    declared += "    at = nisa.register_alloc(0)\n"
    text = TEXT.format(body=declared + body).replace("return out", "return out, r")
    found = [one for one in compile_text(text) if one.code.slug in SLUGS]
    assert [one.code.slug for one in found] == (slugs or ["read-unwritten"])


MEMSET = "nisa.memset(dst=t[:, 0:256], value=0.0)\n"
ADD = "nisa.tensor_tensor(u, t, u, nl.add)\n"
SUM = "c = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)\n"
SUM += "nisa.tensor_reduce(c, nl.add, u, 1)\n"
LOOP = "def body(k):\n    {}\nnl.fori_loop(0, 2, body)\n"
OFTEN = LOOP.format("o = nl.ndarray((1, 512), dtype=nl.float32, buffer=nl.sbuf)\n"
                    "    nisa.tensor_partition_reduce(o, nl.add, u)")  # fmt: skip
STORE = "nisa.dma_copy(dst=r, src=u)\n"
PREDICATE = "q = nl.ndarray((128, 512), dtype=nl.uint32, buffer=nl.sbuf)\nnisa.memset(q, 0)\n"
ONE = "o = nl.ndarray((1, 512), dtype=nl.float32, buffer=nl.sbuf)\n"
ONE += "nisa.tensor_partition_reduce(o, nl.add, {})\n"


@pytest.mark.parametrize(
    ("body", "is_fault"),
    [
        (ADD + STORE, True),
        (ADD + "nisa.activation(u, nl.exp, u)\n" + STORE, True),
        (ADD + SUM + "nisa.dma_copy(dst=r[:, 0:1], src=c)", True),  # in a column, as in its row
        (ADD + SUM + "nisa.tensor_scalar(u, w, nl.add, c)\n" + STORE, True),
        (ADD + SUM, False),  # nothing uses the sum
        (ADD + "nisa.memset(u, 0)\n" + STORE, False),
        (ADD + "nisa.memset(u[:, 511:], 0)\n" + STORE, False),  # it may be where the hole is
        (ADD + "nisa.dma_copy(dst=r[:, 0:511], src=u[:, 0:511])", False),
        (ADD + "nisa.dma_copy(dst=r[:, 0:256], src=u.ap([[512, 128], [2, 256]]))", False),
        (ADD + "nisa.nc_transpose(p[:, 0:128], u[:, 0:128])\nnisa.dma_copy(dst=r, src=w)", False),
        (ADD + STORE + "nisa.dma_copy(dst=r, src=w)", False),
        (ADD + "nisa.dma_copy(dst=m, src=u)\nnisa.dma_copy(dst=w, src=m)\n"
         "nisa.dma_copy(dst=r, src=w)", True),
        (ADD + ONE.format("u"), True),
        (ADD + ONE.format("u[:, 0:512:2]").replace("1, 512", "1, 256"), False),
        (ADD.replace("u", "u[:, 0:511]").replace("t,", "t[:, 0:511],")
         + ONE.format("u.ap([[512, 128], [2, 256]])").replace("1, 512", "1, 256"), False),
        (ADD + "nisa.dma_copy(dst=m.ap([[512, 128], [1, 512]], scalar_offset=at), src=u)", True),
        (ADD + "nisa.memset(u, 0)\n" + ONE.format("u"), False),
        # The second instruction that reads it is the one that is certain to fail.
        ("nisa.nc_stream_shuffle(w, t, list(range(32)))\n" + ONE.format("t"), True),
        ("nisa.nc_stream_shuffle(w, t, list(range(32)))\nnisa.memset(w, 0)", False),
        ("nisa.nc_stream_shuffle(w, t, list(range(32)))\nnisa.dma_copy(dst=r, src=w)", False),
        (LOOP.format("nisa.tensor_tensor(u, t, u, nl.add)") + STORE, False),  # its own last value
        (LOOP.format("nisa.tensor_copy(u, t)\n    nisa.memset(t, 0)") + STORE, False),
        (ADD + LOOP.format("nisa.dma_copy(dst=r, src=u)"), False),
        (ADD + OFTEN, True),
        (ADD + OFTEN.replace("0, 2,", "0, at,"), False),
        (ADD + LOOP.format("nisa.memset(u, 0)") + STORE, False),
        # What is selected may lie beside the hole.
        ("nisa.affine_select(u, [[1, 512]], 0, t, 0.0, offset=-256)\n" + STORE,
         False),
        (PREDICATE + "nisa.tensor_copy_predicated(u, t, q)\n" + STORE, False),
    ],
)  # fmt: skip
def test_a_hole_is_followed_through_other_instructions(body: str, is_fault: bool) -> None:
    """One that is an error ends the run; one that is not may be without effect."""
    declared = """
r = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
m = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.private_hbm)
w = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
nisa.dma_copy(dst=r, src=a)
nisa.dma_copy(dst=w, src=a)
at = nisa.register_alloc(0)
"""
    lines = (declared + MEMSET + body + "\nnisa.memset(u, 0)").strip().replace("\n", "\n    ")
    text = TEXT.format(body="    " + lines).replace("return out", "return out, r")
    data = {"a": np.ones((128, 512), np.float32), "i": np.zeros((1, 1), np.int32)}
    warn = Settings().adding(Wish.WARN, "NKI0536")
    artifact = api.compile(SourceFile("kernel.py", text), inputs=data, levels=warn)
    (slug,) = [one.code.slug for one in artifact.warnings if one.code.slug in SLUGS]
    assert slug == ("read-never-written" if is_fault else "read-unwritten")
    if is_fault:
        with pytest.raises(api.RunError, match="NKI0901"):
            api.run(artifact, data)


CORES = """# /// nkic
# lnc = 2
# [args]
# a = "float32[128, 512]"
# ///
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    core = nl.program_id(0)
    t = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    r = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.memset(dst=t[:, {part}], value=0.0)
    nisa.dma_copy(dst=r[:, {to}], src=t)
    return r
"""


def test_another_core_may_cover_a_hole() -> None:
    """The other core writes the same elements, before or after; or other ones."""
    shared = CORES.format(part="core * 256 : core * 256 + 256", to="0:512")
    apart = CORES.format(part="0:256", to="core * 512 : core * 512 + 512")
    for text, slug in ((shared, "read-unwritten"), (apart, "read-never-written")):
        found = [one.code.slug for one in compile_text(text) if one.code.slug in SLUGS]
        assert set(found) == {slug}, text


EXCHANGED = """    d = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    if core == 1:
        nisa.memset(dst=t, value=0.0)
    nisa.sendrecv(t, d, 1 - core, 1 - core, 0)
    if core == 1:
        nisa.memset(dst=d, value=0.0)
    nisa.dma_copy(dst=r[:, core * 512 : core * 512 + 512], src=d)
"""


def test_a_hole_goes_to_the_other_core() -> None:
    """What the first core stores is what the second one sent, and that is complete."""
    text = CORES.format(part="0:256", to="0:512")
    text = text.replace("    nisa.dma_copy(dst=r[:, 0:512], src=t)\n", EXCHANGED)
    data = {"a": np.ones((128, 512), np.float32)}
    artifact = api.compile(SourceFile("kernel.py", text), inputs=data)
    assert [one.code.slug for one in artifact.warnings if one.code.slug in SLUGS] == [SLUGS[0]]
    assert not np.any(api.run(artifact, data).outputs["output_0"])


def test_a_tensor_in_many_pieces_is_not_followed_further() -> None:
    """Of 300 tiles with a hole, each stored in a column of the result, 256 are followed."""
    body = """    r = nl.ndarray((64, 600), dtype=nl.float32, buffer=nl.shared_hbm)
    for c in range(300):
        w = nl.ndarray((64, 2), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=w[:, 0:1], value=0.0)
        nisa.dma_copy(dst=r[:, 2 * c : 2 * c + 2], src=w)"""
    text = TEXT.format(body=body).replace("return out", "return out, r")
    data = {"a": np.ones((128, 512), np.float32), "i": np.zeros((1, 1), np.int32)}
    warn = Settings().adding(Wish.WARN, "NKI0536")
    artifact = api.compile(SourceFile("kernel.py", text), inputs=data, levels=warn)
    assert [one.code.slug for one in artifact.warnings if one.code.slug in SLUGS] == [
        "read-never-written",
        "read-unwritten",
    ]


@pytest.mark.parametrize(
    ("step", "slug"),
    [
        ("nisa.tensor_copy_predicated(t, u, q)", "read-unwritten"),  # it may overwrite all
        ("nisa.tensor_copy_predicated(u, t, q)", "read-unwritten"),  # it may copy nothing
        ("nisa.affine_select(u, [[1, 512]], 0, t, 0.0)", "read-unwritten"),
        ("nisa.nc_n_gather(u, u, t.view(nl.uint32))", "read-never-written"),
        ("nisa.tensor_tensor(t, t, u, nl.add)", "read-never-written"),
    ],
)
def test_a_selection_may_leave_out_all_that_is_uninitialised(step: str, slug: str) -> None:
    body = (PREDICATE + step).replace("\n", "\n    ")
    found = compile_text(TEXT.format(body=f"    {body}"))
    assert [one.code.slug for one in found if one.code.slug in SLUGS] == [slug]
