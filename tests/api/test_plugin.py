"""The pytest plugin, in separate runs of pytest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.harness import plugin

PROJECT = Path(__file__).resolve().parents[2]
TESTS = """
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def double(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nl.store(out, value=nl.add(nl.load(a), nl.load(a)))
    return out

@nki.jit
def into(a, c):
    nl.store(c, value=nl.add(nl.load(a), nl.load(a)))

@nki.jit
def unwritten(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.memset(tile[0:1, :], 0)
    nl.store(out, value=tile)
    return out

X = np.ones((4, 8), np.float32)
"""


def pytest_of(
    folder: Path, body: str, *options: str, announced: bool = False, **environ: str
) -> tuple[int, str]:
    """Return the exit code and output of pytest on a file with `body`."""
    (folder / "test_it.py").write_text(TESTS + body)
    path = os.pathsep.join([str(PROJECT), os.environ.get("PYTHONPATH", "")])
    if not announced:
        found = plugin.pytest_with_it(folder, *options, env={"PYTHONPATH": path, **environ})
        return found.returncode, found.stdout + found.stderr
    # All modules of a package that announces a plugin are looked at.
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    environ = {**clean, "PYTHONPATH": path, **environ}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    command += plugin.options()
    found = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environ)
    return found.returncode, found.stdout + found.stderr


def test_a_kernel_is_compiled_run_and_compared(tmp_path: Path) -> None:
    body = """
def test_right(nki_check):
    found = nki_check(double, X, expected=X * 2)
    assert found.cycles > 0 and (found.values == 2).all()
    nki_check(double, X, expected=lambda x: x + x)

def test_written(nki_check):
    c = np.zeros_like(X)
    nki_check(into, X, c, expected={"c": X * 2})
    assert (c == 2).all()

def test_wrong(nki_check):
    nki_check(double, X, expected=X * 3)

def test_shape(nki_check):
    nki_check(double, X, expected=X[:2])
"""
    code, said = pytest_of(tmp_path, body, "--nkic", announced=True)
    assert code == 1 and "2 failed, 2 passed" in said
    assert "32 of 32 elements" in said
    assert "`output_0` has the shape (4, 8), expected is (2, 8)" in said


def test_without_the_option_nothing_is_installed(tmp_path: Path) -> None:
    code, said = pytest_of(tmp_path, "def test_nothing(): pass")
    assert code == 2 and "No module named 'nki'" in said
    assert pytest_of(tmp_path, "def test_nothing(): pass", NKIC_INSTALL="1")[0] == 0


def test_the_version_of_nki_is_an_option(tmp_path: Path) -> None:
    body = """
def test_version(nki_check):
    from nkic.artifact.read import info
    assert info(nki_check(double, X).called.artifact.data).flags["nki"] == "0.4"
    assert info(double.call(X).called.artifact.data).flags["nki"] == "0.4"
"""
    code, said = pytest_of(tmp_path, body, "--nkic", "--nkic-nki=0.4")
    assert code == 0, said
    code, said = pytest_of(tmp_path, body, "--nkic", "--nkic-nki=4")
    assert code == 4 and "there is no version `4` of NKI" in said


def test_cycles_are_accepted_and_then_guarded(tmp_path: Path) -> None:
    body = """
def test_fast(nki_check):
    nki_check(double, X, guard=True)
"""
    code, said = pytest_of(tmp_path, body, "--nkic")
    assert code == 1 and "run pytest --nkic-bless" in said
    assert pytest_of(tmp_path, body, "--nkic", "--nkic-bless")[0] == 0
    assert pytest_of(tmp_path, body, "--nkic")[0] == 0
    path = tmp_path / "nkic_blessed/test_it/test_fast.json"
    (cycles,) = json.loads(path.read_text())["trn2"]
    path.write_text(json.dumps({"trn2": [cycles - 1]}))
    code, said = pytest_of(tmp_path, body, "--nkic")
    assert code == 1 and f"takes {cycles:,} cycles, accepted are {cycles - 1:,}" in said
    assert "1 skipped" in pytest_of(tmp_path, body, "--nkic", "--nkic-target", "trn1", "-rs")[1]
    assert pytest_of(tmp_path, body, "--nkic", "--nkic-target", "trn1", "--nkic-bless")[0] == 0
    assert sorted(json.loads(path.read_text())) == ["trn1", "trn2"]
    assert pytest_of(tmp_path, body, "--nkic", "--nkic-target", "trn1")[0] == 0


def test_every_guarded_call_has_cycles_of_its_own(tmp_path: Path) -> None:
    body = """
WIDE = np.ones((128, 4096), np.float32)

def test_two(nki_check):
    nki_check(double, X, guard=True)
    nki_check(double, WIDE, guard=True)

class TestA:
    def test_two(self, nki_check): nki_check(double, WIDE, guard=True)

@pytest.mark.parametrize("name", ["a/b", "a:b"])
def test_named(nki_check, name): nki_check(double, X if name == "a/b" else WIDE, guard=True)
"""
    body = "import pytest\n" + body
    assert pytest_of(tmp_path, body, "--nkic", "--nkic-bless")[0] == 0
    blessed = {p.name: p for p in (tmp_path / "nkic_blessed/test_it").iterdir()}
    assert len(blessed) == 4 and {"test_two.json", "TestA.test_two.json"} <= blessed.keys()
    small, large = json.loads(blessed["test_two.json"].read_text())["trn2"]
    assert small < large
    assert json.loads(blessed["TestA.test_two.json"].read_text()) == {"trn2": [large]}
    assert pytest_of(tmp_path, body, "--nkic")[0] == 0
    blessed["test_two.json"].write_text(json.dumps({"trn2": [small]}))
    code, said = pytest_of(tmp_path, body, "--nkic")
    assert code == 1 and "1 failed, 3 passed" in said and "no cycles are accepted yet" in said


def test_errors_show_the_test_and_the_kernel_alone(tmp_path: Path) -> None:
    body = """
def test_called(): double(np.ones((256, 4), np.float32))
def test_checked(nki_check): nki_check(double, np.ones((256, 4), np.float32))
def test_unaccepted(nki_check): nki_check(double, X, guard=True)
"""
    code, said = pytest_of(tmp_path, body, "--nkic")
    assert code == 1 and "3 failed" in said and "sbuf has 128 partitions" in said
    assert "nkic/" not in said.replace("no:cacheprovider", "")
    code, said = pytest_of(tmp_path, body, "--nkic-target", "trn9")
    assert code == 4 and "--nkic-target: there is no target `trn9`" in said


def test_sanitizers(tmp_path: Path) -> None:
    body = """
def test_unwritten(nki_check):
    nki_check(unwritten, X)
"""
    assert pytest_of(tmp_path, body, "--nkic")[0] == 1
    assert pytest_of(tmp_path, body, "--nkic", "--nkic-sanitize", "none")[0] == 0
    serial = "def test_same(nki_check): nki_check(double, X, expected=X * 2)"
    assert pytest_of(tmp_path, serial, "--nkic", "--nkic-sanitize=init,serial")[0] == 0
    code, said = pytest_of(tmp_path, body, "--nkic-sanitize", "memory")
    assert code == 4 and "there is no check `memory`" in said


@pytest.mark.parametrize(
    "more",
    [(), pytest.param(("-n", "2"), marks=pytest.mark.slow)],  # two more processes: 15 s
)
def test_properties_in_junit(tmp_path: Path, more: tuple[str, ...]) -> None:
    body = """
def test_one(nki_check): nki_check(double, X)
def test_two(nki_check): nki_check(into, X, X.copy())
"""
    options = ("--nkic", "--nkic-target", "trn3", "--junit-xml", "out.xml", *more)
    code, said = pytest_of(tmp_path, body, *options, announced=bool(more))
    assert code == 0 and "xunit2" not in said, said
    cases = ElementTree.parse(tmp_path / "out.xml").iter("testcase")
    for case in cases:
        found = {p.get("name"): p.get("value") for p in case.iter("property")}
        assert found["nkic_target"] == "trn3"
        assert int(found["nkic_cycles"] or 0) > 0 and int(found["nkic_sbuf_bytes"] or 0) > 0
