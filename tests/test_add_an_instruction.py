"""Test docs/add-an-instruction.md: with its row and semantics in their tables, its kernel runs."""

import re
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkic
from nkic.base.source import SourceFile
from nkic.language import provide
from nkic.machine.instructions import BY_OPCODE, ROWS
from nkic.simulate.plans import SEMANTICS

PROJECT = Path(__file__).resolve().parents[1]
TEXT = (PROJECT / "docs/add-an-instruction.md").read_text("utf-8")
_BLOCK = re.compile(r"(?ms)^( *)```python\n(.*?)^\1```$")
INPUT = np.linspace(-3, 3, 128 * 64, dtype=np.float32).reshape(128, 64)


def blocks() -> tuple[str, str, str]:
    """Return the row, the semantics and the kernel."""
    row, meaning, kernel = (textwrap.dedent(text) for _, text in _BLOCK.findall(TEXT))
    return row, meaning, kernel


def test_the_page_adds_an_instruction(monkeypatch: pytest.MonkeyPatch) -> None:
    row_text, meaning, kernel = blocks()
    names: dict[str, Any] = {}
    exec(row_text, names)
    row = names["ROW"]
    assert row.name not in ROWS and row.opcode not in BY_OPCODE
    provide._shared.cache_clear()  # the modules that were made without it
    monkeypatch.setitem(ROWS, row.name, row)
    monkeypatch.setitem(BY_OPCODE, row.opcode, row)
    with monkeypatch.context() as inside:
        inside.setitem(SEMANTICS, row.name, None)  # so that it is removed again afterwards
        del SEMANTICS[row.name]
        exec(meaning, {})
        artifact = nkic.compile(SourceFile("kernel.py", kernel), inputs={"a": INPUT})
        [found] = nkic.run(artifact, {"a": INPUT}).outputs.values()
        provide._shared.cache_clear()
    assert row.name not in SEMANTICS
    np.testing.assert_array_equal(found, INPUT * INPUT * INPUT)


def test_the_page_names_files_that_exist() -> None:
    paths = re.findall(r"`?((?:nkic|tests|docs)/[\w./*]+\w)", TEXT)
    assert [path for path in paths if not [*PROJECT.glob(path)]] == []
    assert len(re.findall(r"(?m)^\d\. \*\*", TEXT)) == 8
