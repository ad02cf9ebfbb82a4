"""The NKI version of a live kernel: its sources and their precedence."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import nkic
from nkic import api
from nkic.artifact.read import info
from tests.api.test_nki_modules import nkic_runs

HEAD = """\
import nki
import nki.language as nl
import numpy as np


@nki.jit
def double(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    tile = nl.load(a)
    nl.store(out, value=nl.add(tile, tile))
    return out
"""
BLOCK = '# /// nkic\n# nki = "0.5"\n# ///\n'
X = np.ones((4, 8), np.float32)
Make = Callable[[str], ModuleType]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Return a function that writes and imports a module in a separate project."""
    monkeypatch.chdir(tmp_path)
    nkic.install()
    made: list[str] = []

    def make(text: str) -> ModuleType:
        name = f"versioned_{len(made)}"
        path = tmp_path / f"{name}.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        made.append(name)
        return module

    yield make
    for name in made:
        del sys.modules[name]
    nkic.nki.uninstall()


def version(artifact: api.Artifact) -> str:
    return info(artifact.data).flags["nki"]


def used(module: ModuleType) -> str:
    """Return the version that a plain call of the kernel is compiled for, the same in both ways."""
    found = version(module.double.call(X).called.artifact)
    closed = api.prepare(module.double, (X,), evaluate="closed").artifact
    assert version(closed) == found
    return found


def test_nobody_says_it(make: Make) -> None:
    assert used(make(HEAD)) == "0.7"


def test_the_file_says_it(make: Make) -> None:
    assert used(make(BLOCK + HEAD)) == "0.5"


def test_the_environment_says_it(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NKIC_NKI", "0.4")
    assert used(make(HEAD)) == "0.4"
    assert used(make(BLOCK + HEAD)) == "0.5"
    monkeypatch.setenv("NKIC_NKI", "1.0")
    with pytest.raises(api.CompileError, match=r"NKIC_NKI: there is no version `1\.0` of NKI"):
        used(make(HEAD))


def test_the_former_front_end_is_that_of_0_6(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NKI_COMPILER_FRONTEND", "custom")
    assert used(make(HEAD)) == "0.6"
    monkeypatch.setenv("NKIC_NKI", "0.7")
    assert used(make(HEAD)) == "0.7"


def test_the_project_says_it(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.nkic]\nnki = "0.3"\n')
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert used(make(HEAD)) == "0.3"
    assert used(make(BLOCK + HEAD)) == "0.5"
    monkeypatch.setenv("NKIC_NKI", "0.4")
    assert used(make(HEAD)) == "0.4"


def test_a_project_says_nothing_unknown(make: Make, tmp_path: Path) -> None:
    kernel = make(HEAD)
    (tmp_path / "pyproject.toml").write_text('[tool.nkic]\nnki_version = "0.3"\n')
    with pytest.raises(api.CompileError, match=r"\[tool.nkic\] has an unknown key `nki_version`"):
        used(kernel)
    (tmp_path / "pyproject.toml").write_text("[tool.nkic]\nnki = 9.1\n")
    with pytest.raises(api.CompileError, match=r"nki under \[tool.nkic\] cannot be 9.1"):
        used(kernel)


def test_a_call_says_it(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NKIC_NKI", "0.4")
    kernel = make(BLOCK + HEAD).double
    assert version(api.prepare(kernel, (X,), nki="0.6").artifact) == "0.6"
    assert version(api.prepare(kernel, (X,), nki="0.6", evaluate="closed").artifact) == "0.6"


def test_the_start_of_the_program_says_it(make: Make) -> None:
    kernel = make(BLOCK + HEAD)
    nkic.install(nki="0.6")
    assert used(kernel) == "0.6"
    nkic.install()
    assert used(kernel) == "0.6"
    assert version(api.prepare(kernel.double, (X,), nki="0.4").artifact) == "0.4"
    nkic.nki.uninstall()
    assert used(kernel) == "0.5"
    with pytest.raises(api.CompileError, match="nki: there is no version `x` of NKI"):
        nkic.install(nki="x")


def test_a_block_that_cannot_be_used(make: Make) -> None:
    with pytest.raises(api.CompileError, match=r"unknown version `0\.9` of NKI") as caught:
        used(make(BLOCK.replace("0.5", "0.9") + HEAD))
    (found,) = caught.value.diagnostics
    assert found.primary is not None and found.primary.span.line == 2


@pytest.mark.parametrize("words", [["--nki", "0.6"], ["--nki=0.6", "--force"]])
def test_a_script(tmp_path: Path, words: list[str]) -> None:
    script = tmp_path / "script.py"
    call = (
        "\nfrom nkic.artifact.read import info"
        "\nmade = double.call(np.ones((4, 8), np.float32)).called.artifact"
        "\nprint(info(made.data).flags['nki'])"
    )
    script.write_text(HEAD + call)
    found = nkic_runs(*words, str(script))
    assert (found.stdout, found.stderr) == ("0.6\n", "")


# ---- cores (LNC) ---------------------------------------------------------------------------------


def cores(module: ModuleType, axes: int | None = None) -> int:
    kernel = module.double if axes is None else module.double[axes]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", api.NkicWarning)  # both cores write the same output
        return int(kernel.call(X).called.artifact.executable.cores)


def test_the_environment_says_how_many_cores(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = make(HEAD)
    assert (cores(kernel), cores(kernel, 2)) == (1, 2)
    monkeypatch.setenv("NEURON_LOGICAL_NC_CONFIG", "2")
    assert (cores(kernel), cores(kernel, 2)) == (2, 2)
    with pytest.raises(api.CompileError, match=r"for LNC 1 .*, NEURON_LOGICAL_NC_CONFIG says 2"):
        cores(kernel, 1)
    monkeypatch.setenv("NKIC_NKI", "0.6")
    assert cores(kernel, 1) == 1
    monkeypatch.setenv("NEURON_LOGICAL_NC_CONFIG", "3")
    with pytest.raises(api.CompileError, match="a kernel runs on 1 or 2 cores, not on `3`"):
        cores(kernel)


def test_the_kernel_and_the_compiler_have_the_same_cores(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = make(HEAD)
    monkeypatch.setenv("NEURON_CC_FLAGS", "--lnc=2 --target trn2")
    assert cores(kernel, 2) == 2
    with pytest.raises(api.CompileError, match=r"NEURON_CC_FLAGS says 2(.|\n)*kernel\[2\]"):
        cores(kernel)
    monkeypatch.setenv("NEURON_LOGICAL_NC_CONFIG", "2")
    assert cores(kernel) == 2
    monkeypatch.setenv("NEURON_CC_FLAGS", "--lnc 1")
    with pytest.raises(api.CompileError, match="NEURON_CC_FLAGS says 1"):
        cores(kernel)
