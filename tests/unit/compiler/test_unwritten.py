"""Test warnings about reads of uninitialised memory, as far as the program alone shows them."""

from __future__ import annotations

import pytest

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
        (HALF.format("r.ap([[512, 128], [1, 512]], scalar_offset=at)"), []),
        (HALF.format("r").replace("dma_copy(dst=r, src=t)", ADDED), ["read-never-written"]),
    ],
)
def test_a_hole_that_remains_in_a_result_is_an_error(body: str, slugs: list[str]) -> None:
    declared = "    r = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)\n"
    declared += "    at = nisa.register_alloc(0)\n"
    text = TEXT.format(body=declared + body).replace("return out", "return out, r")
    found = [one for one in compile_text(text) if one.code.slug in SLUGS]
    assert [one.code.slug for one in found] == (slugs or ["read-unwritten"])


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
