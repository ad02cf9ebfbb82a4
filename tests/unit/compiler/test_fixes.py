"""Applying certain fixes gives a kernel that compiles."""

import pytest

from nkic.base.diagnostics import Fix
from tests.harness.kernels import compile_text

KERNEL = """# /// nkic
# [args]
# a = "float32[128, 512]"
# ///
import nki
import nki.isa as nisa
import nki.language as nl
from dataclasses import dataclass

WIDTHS = {"tile": 512}


@dataclass
class Config:
    width: int = 512


def scaled(t, factor=1.0):
    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=factor)


@nki.jit
def kernel(a):
    config = Config(width=512)
    tile = nl.ndarray((128, config.width), dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=a)
    scaled(tile, factor=2.0)
    result = nl.ndarray((128, WIDTHS["tile"]), dtype="float32", buffer=nl.shared_hbm)
    nisa.dma_copy(dst=result, src=tile)
    return result
"""


def applied(text: str, fixes: list[Fix]) -> str:
    lines = text.split("\n")
    for fix in sorted(fixes, key=lambda fix: fix.span, reverse=True):
        line = lines[fix.span.line - 1]
        before, after = line[: fix.span.column - 1], line[fix.span.end_column - 1 :]
        lines[fix.span.line - 1] = before + fix.replacement + after
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("nl.ndarray((128, config", "nl.ndaray((128, config"),
        ("nisa.dma_copy(dst=tile", "nisa.dma_cpoy(dst=tile"),
        ("import nki.isa as", "import nki.isaa as"),
        ("import nki.language as", "import nki.langage as"),
        ("src=tile)", "src=tiel)"),
        ("return result", "return resutl"),
        ("config.width", "config.widht"),
        ("Config(width=", "Config(widht="),
        ("scaled(tile, factor", "scaled(tile, facotr"),
        ("dst=tile, src=a", "dts=tile, src=a"),
        ("dtype=a.dtype", "dtpye=a.dtype"),
        ("dtype=a.dtype", "dtype=a.dtpye"),
        ('WIDTHS["tile"]', 'WIDTHS["tlie"]'),
        ('"float32"', '"flaot32"'),
        ("nl.multiply", "nl.multipy"),
        ("nl.shared_hbm", "nl.hbm_shared"),
    ],
)
def test_a_misspelling_is_put_right(right: str, wrong: str) -> None:
    assert not compile_text(KERNEL)
    text, rounds = KERNEL.replace(right, wrong, 1), 0
    while (found := compile_text(text)) and rounds < 2:
        assert all(one.fixes for one in found), [one.message for one in found]
        text, rounds = applied(text, [fix for one in found for fix in one.fixes]), rounds + 1
    assert text == KERNEL


MISSPELT = {
    "nl.ndarray": "nl.ndaray",
    "nisa.dma": "nisaa.dma",
    "return result": "return resultt",
}


def test_one_run_puts_several_right() -> None:
    text = KERNEL
    for right, wrong in MISSPELT.items():
        text = text.replace(right, wrong)
    fixes = {fix for one in compile_text(text) for fix in one.fixes if fix.sure}
    assert applied(text, list(fixes)) == KERNEL


def test_names_of_star_imports_count() -> None:
    text = KERNEL.replace("import nki.language as nl", "from nki.language import *")
    text = text.replace("nl.", "").replace("multiply", "multipyl")
    (found,) = compile_text(text)
    assert [fix.replacement for fix in found.fixes] == ["multiply"]
