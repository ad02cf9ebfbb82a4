"""No attempt to escape from the closed world succeeds, and none affects the next compilation."""

import ast
import builtins
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nkic.base.diagnostics import CompileFailed, NkicError
from nkic.base.profiles import Profile
from nkic.base.source import SourceFile
from nkic.compiler.pipeline import compile_source
from nkic.specialise.inline import parse_arg
from nkic.specialise.request import Request
from tests.harness.commands import ROOT
from tests.security.doors import ATTEMPTS, WHY

HEAD = "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n\n@nki.jit\ndef kernel(a):\n"
TAIL = """\
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=a)
    nisa.dma_copy(dst=out, src=t)
    return out
"""
ALL = [(door, code) for door, codes in ATTEMPTS.items() for code in codes]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[str]]:
    """Record calls of host functions that kernels must not reach."""
    found: list[str] = []

    def record(name: str) -> Any:
        return lambda *args, **named: found.append(f"{name}{args}")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "system", record("os.system"))
    monkeypatch.setattr(subprocess, "run", record("subprocess.run"))
    monkeypatch.setattr(subprocess, "Popen", record("subprocess.Popen"))
    monkeypatch.setattr(builtins, "open", record("open"))
    monkeypatch.setattr(builtins, "eval", record("eval"))
    monkeypatch.setattr(builtins, "exec", record("exec"))
    yield found
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []


def compiled(code: str) -> list[str]:
    """Compile a kernel that begins with these lines; return the slugs of its diagnostics."""
    lines = "".join(f"    {line}\n" for line in code.split("\n"))
    request = Request(
        args=dict([parse_arg("a=float32[128,16]")]), profile=Profile.NKI_0_7, kernel="kernel"
    )
    source = SourceFile("kernel.py", HEAD + lines + TAIL)
    try:
        compile_source(source, request, lambda name, importer: None)
    except NkicError as failed:
        assert isinstance(failed, CompileFailed)
        return [one.code.slug for one in failed.diagnostics]
    return []


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    """Load the files that nkic itself needs before host functions are replaced."""
    assert compiled("t = nl.load(a)\nnl.add(t, t)") == []


@pytest.mark.parametrize(("door", "code"), ALL, ids=[f"{d}: {c[:60]}" for d, c in ALL])
def test_doors_lead_nowhere(door: str, code: str, calls: list[str]) -> None:
    said = compiled(code)
    assert calls == []
    assert said or code in SILENT, f"nothing was said, though {WHY[door]}"


# A class pattern does not match a value of another class.
SILENT = {
    "def f(): pass\nK = type(f)\nclass X:\n    __match_args__ = ('__globals__',)\n"
    "match f:\n    case X(g): return g"
}


@pytest.mark.parametrize("code", ATTEMPTS["shared values"])
def test_the_next_compilation_is_as_before(code: str) -> None:
    compiled(code)
    lines = (
        "class C(nl.NKIObject):\n    n: int = 3\nc = C()\nc.n = 4\nassert c == C(4) and c != C(3)\n"
        "assert [nl.float32.name, nl.tile_size.pmax, 'ab'.join('xy')] == ['float32', 128, 'xaby']"
    )
    assert compiled(lines) == []


def test_every_door_has_a_reason() -> None:
    assert WHY.keys() == ATTEMPTS.keys()


def defined(path: Path) -> Iterator[tuple[str, str]]:
    """Yield what a file defines, each name after the name of the file or class that it is in."""
    tree = ast.parse(path.read_text("utf-8"))
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    for within, body in [(path.stem, tree.body), *((node.name, node.body) for node in classes)]:
        for part in body:
            targets = part.targets if isinstance(part, ast.Assign) else [part]
            for target in targets:
                place = target.target if isinstance(target, ast.AnnAssign) else target
                yield within, str(getattr(place, "name", "") or getattr(place, "id", ""))


def test_the_doors_of_the_page_have_guards_and_tests_that_exist() -> None:
    names = {name for path in (ROOT / "nkic").rglob("*.py") for name in defined(path)}
    names.add(("html", "escape"))
    doors = (ROOT / "docs/security.md").read_text("utf-8").partition("## Doors")[2]
    rows = [row.strip("| ").split(" | ") for row in re.findall(r"(?m)^\| (?!door).*`.*$", doors)]
    assert len(rows) == doors.count("\n| ") - 1
    for door, guards, tests in rows:
        for guard in re.findall(r"`([^`]+)`", guards):
            if re.fullmatch(r"\w+\.(?!py$)\w+", guard):
                assert tuple(guard.split(".")) in names, (door, guard)
            elif "/" in guard:
                assert (ROOT / guard).exists() or (ROOT / "nkic" / guard).exists(), (door, guard)
        paths = re.findall(r"`(tests/[^`]+)`", tests)
        assert paths, door
        assert all((ROOT / path).exists() for path in paths), (door, paths)
