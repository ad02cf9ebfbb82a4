"""Python's library in the interpreter: the same as Python's own, and what is left out."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.harness.metalanguage import body

DATA = Path(__file__).resolve().parents[1] / "data" / "library_modules.txt"
PROGRAMS = DATA.read_text("utf-8").split("\n---\n")
HEAD = """
import math, operator, itertools, functools, string, textwrap, copy, contextlib
def t(f):
    try:
        print(repr(f()))
    except Exception as error:
        print(type(error).__name__, error)
"""


def by_python(code: str) -> str:
    """What Python prints."""
    printed: list[str] = []
    space: dict[str, Any] = {}
    space["print"] = lambda *v: printed.append(" ".join(map(str, v)) + "\n")
    source = "def kernel():\n" + textwrap.indent(code, "    ")
    exec(compile(source, "k.py", "exec", dont_inherit=True), space)
    space["kernel"]()
    return "".join(printed)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_print_what_they_print_under_python(program: str) -> None:
    code = f"{HEAD.strip()}\n{program}"
    done = body(code)
    assert done.slugs == []
    assert done.printed == by_python(code)
