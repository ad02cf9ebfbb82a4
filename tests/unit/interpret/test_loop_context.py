"""Errors in unrolled loops name the iteration."""

from __future__ import annotations

import pytest

from nkic.base.diagnostics import Diagnostic, Level
from tests.harness.kernels import compile_text

TEXT = """# /// nkic
# [args]
# a = "float32[128, 512]"
# ///
import nki
import nki.isa as nisa
import nki.language as nl


def at(values, place):
    return values[place]


@nki.jit
def kernel(a):
    t = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=t, value=0.0)
{body}
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=t)
    return out
"""


def one(body: str) -> Diagnostic:
    lines = "\n".join(f"    {line}" for line in body.strip().split("\n"))
    said = compile_text(TEXT.format(body=lines))
    (found,) = [one for one in said if one.level is Level.ERROR or len(said) == 1]
    return found


@pytest.mark.parametrize(
    ("body", "labels"),
    [
        ("for i in range(4):\n    nisa.memset(t[:, i * 256 : i * 256 + 256], 0.0)", ["`i` is 2"]),
        (
            "for i in range(2):\n    for j, w in enumerate((256, 512)):\n"
            "        nisa.memset(t[:, i * 256 : i * 256 + w], 0.0)",
            ["`i` is 1", "`j` is 1, `w` is 512"],
        ),
        ("for i in range(4):\n    at([1, 2], i)", ["`i` is 2"]),
        ("for i in range(4):\n    pass\nnisa.memset(t[:, 0:600], 0.0)", []),
        ("for tile in [t]:\n    nisa.memset(tile[:, 0:600], 0.0)", []),
    ],
)
def test_loop_variables_around_the_place(body: str, labels: list[str]) -> None:
    error = one(body)
    words = "first where" if error.count > 1 else "here"
    found = [label.text for label in error.labels if label.text.startswith(words)]
    assert found == [f"{words} {text}" for text in labels]


def test_the_turn_of_an_instruction_that_check_refuses() -> None:
    found = one("for i in range(4):\n    nisa.memset(t, None if i == 2 else 0)")
    assert found.notes == ("this is instruction 3 of the 4 that unrolled loops make of this line",)


def test_a_line_that_makes_one_instruction_has_no_turn() -> None:
    assert one("nisa.memset(t, None)").notes == ()
