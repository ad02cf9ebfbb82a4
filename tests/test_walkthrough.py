"""Test docs/walkthrough.md: its code runs, and prints the text that follows it, figures included.

NKIC_BLESS=1 writes the output into the page.
"""

import contextlib
import io
import linecache
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import nkic.nki
from tests.harness import plugin

PROJECT = Path(__file__).resolve().parents[1]
PAGE = PROJECT / "docs/walkthrough.md"
_BLOCK = re.compile(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```\n", re.M | re.S)


class Block(NamedTuple):
    """A block of the page: its language, its file name, and its text."""

    language: str
    file: str
    text: str


def blocks(page: str) -> list[Block]:
    return [Block(match[1], match[2] or "", match[3]) for match in _BLOCK.finditer(page)]


@pytest.fixture
def clean() -> Iterator[None]:
    """Restore the state before the test: nothing stays installed."""
    before = nkic.nki.installed()
    yield
    if not before:
        nkic.nki.uninstall()


def printed(code: str, name: str, names: dict[str, object]) -> str:
    """Run a cell as a notebook does: its source can be read by its name."""
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, name, "exec"), names)
    return out.getvalue()


def test_the_page_prints_what_it_says(clean: None) -> None:
    page = PAGE.read_text(encoding="utf-8")
    names: dict[str, object] = {"__name__": "walkthrough"}
    found = blocks(page)
    for number, (block, following) in enumerate(zip(found, [*found[1:], None], strict=True)):
        if block.language != "python" or block.file:
            continue
        said = printed(block.text, f"<walkthrough-{number}>", names)
        if following is None or following.language != "text":
            assert said == ""
        elif os.environ.get("NKIC_BLESS"):
            old = f"```python\n{block.text}```\n\n```text\n{following.text}```"
            assert page.count(old) == 1
            page = page.replace(old, f"```python\n{block.text}```\n\n```text\n{said}```")
            PAGE.write_text(page, encoding="utf-8")
        else:
            assert said == following.text


def test_the_tests_of_the_page_pass(tmp_path: Path) -> None:
    found = blocks(PAGE.read_text(encoding="utf-8"))
    (file,) = [block for block in found if block.file]
    (commands,) = [block.text for block in found if block.language == "console"]
    (tmp_path / file.file).write_text(file.text)
    for line in commands.splitlines():
        words = line.removeprefix("$ pytest ").split()
        said = plugin.pytest_with_it(tmp_path, *words)
        assert said.returncode == 0, said.stdout + said.stderr
    assert "nkic_cycles" in (tmp_path / "report.xml").read_text()
