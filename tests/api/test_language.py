"""Constants, prints and schedules of kernels called from Python."""

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nkic import api
from nkic.base import files
from nkic.base.diagnostics import UsageFailed
from nkic.base.source import SourceFile

SOURCE = """\
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

TABLE = np.arange(8, dtype=np.float32).reshape(1, 8)


def from_file(path):
    table = nl.shared_constant(path)
    out = nl.ndarray(table.shape, dtype=table.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=table)
    return out


def from_global():
    out = nl.ndarray((1, 8), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=nl.shared_constant(TABLE))
    return out


def two(a):
    x = nl.load(a)
    y = nl.ndarray(a.shape, a.dtype, buffer=nl.sbuf)
    nisa.reciprocal(dst=y, data=x, name="recip")
    z = nl.ndarray(a.shape, a.dtype, buffer=nl.sbuf)
    nisa.activation(dst=z, data=x, op=nl.exp, name="exp")
    nl.device_print("z =", z[0:1, 0:2])
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.add(z, y))
    return out
"""


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "lang_kernels.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    stubs = tmp_path / "nki"
    stubs.mkdir()
    for name in ("__init__", "isa", "language"):
        (stubs / f"{name}.py").write_text("")
    yield importlib.import_module("lang_kernels")
    for name in [n for n in sys.modules if n.partition(".")[0] in ("nki", "lang_kernels")]:
        del sys.modules[name]


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_changed_file_of_data_makes_another_artifact(
    kernels: Any, tmp_path: Path, on_disk: bool
) -> None:
    path, folder = tmp_path / "table.npy", str(tmp_path / "cache") if on_disk else None
    for number in (1, 1, 2):
        wanted = np.full((2, 3), number, np.float32)
        np.save(path, wanted)
        if on_disk:
            api.calling.clear()
        called = api.call(kernels.from_file, (str(path),), cache_dir=folder)
        assert np.array_equal(called.values, wanted)


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_changed_module_that_the_kernel_imports_makes_another_artifact(
    kernels: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_disk: bool
) -> None:
    folder = str(tmp_path / "cache") if on_disk else None
    helper = tmp_path / "lang_helper.py"
    helper.write_text("def factor():\n    return 2.0\n")
    (tmp_path / "lang_scaled.py").write_text(
        "import lang_helper\nimport nki.language as nl\n\n\ndef kernel(x):\n"
        "    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)\n"
        "    nl.store(out, nl.load(x) * lang_helper.factor())\n    return out\n"
    )
    for name in ("lang_helper", "lang_scaled"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    kernel = importlib.import_module("lang_scaled").kernel
    x = np.ones((2, 3), np.float32)
    for factor in (2.0, 2.0, 3.0):
        helper.write_text(f"def factor():\n    return {factor}\n")
        if on_disk:
            api.calling.clear()
        assert np.array_equal(api.call(kernel, (x,), cache_dir=folder).values, x * factor)


def test_an_array_of_the_module_is_a_constant(kernels: Any) -> None:
    assert np.array_equal(api.call(kernels.from_global).values, kernels.TABLE)


def test_prints_are_in_the_report(kernels: Any) -> None:
    called = api.call(kernels.two, (np.zeros((4, 8), np.float32) + np.float32(1),))
    assert called.result.prints == ("z = float32[1, 2]\n[[2.718282 2.718282]]",)
    assert called.result.report.startswith("z = float32[1, 2]\n")


def test_schedules(kernels: Any) -> None:
    a = np.ones((4, 8), np.float32)
    plain = api.call(kernels.two, (a,))
    ordered = api.call(kernels.two, (a,), schedule=[("exp", ["recip"])])
    assert np.array_equal(plain.values, ordered.values)
    assert plain.artifact.id != ordered.artifact.id
    wrongs: tuple[Any, ...] = ([("exp", "other")], [5])
    for wrong in wrongs:  # the kernel's text has no schedule to point at
        with pytest.raises(api.CompileError, match=r"^error\[NKI0282\]") as caught:
            api.call(kernels.two, (a,), schedule=wrong)
        assert caught.value.diagnostics[0].primary is None


def test_a_file_names_data_only_beside_itself(tmp_path: Path) -> None:
    """What a stranger's kernel could read and return; an included folder is the caller's choice."""
    for folder in ("theirs", "ours"):
        (tmp_path / folder).mkdir()
        np.save(tmp_path / folder / "table.npy", np.ones((1, 8), np.float32))
    kernel, ours = tmp_path / "theirs" / "k.py", str(tmp_path / "ours" / "table.npy")
    kernel.write_text(SOURCE)
    for source in (kernel, SourceFile(str(kernel), SOURCE)):
        with pytest.raises(api.CompileError, match=r"NKI0281.*neither in the kernel's folder"):
            api.compile(source, name="from_file", consts={"path": ours})
    theirs = str(tmp_path / "theirs" / "table.npy")
    api.compile(kernel, name="from_file", consts={"path": theirs})
    api.compile(kernel, name="from_file", consts={"path": ours}, include=[str(tmp_path / "ours")])


def test_a_function_names_data_only_beside_its_file_even_if_an_artifact_is_cached(
    kernels: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a service that calls it with a stranger's text could give away."""
    for home in ("one", "two"):
        (tmp_path / home).mkdir()
        (tmp_path / home / "lang_kernels.py").write_text(SOURCE)
    table, cache = str(tmp_path / "one" / "table.npy"), str(tmp_path / "cache")
    np.save(table, np.ones((1, 8), np.float32))
    monkeypatch.syspath_prepend(str(tmp_path / "one"))
    for kept in (True, False):  # in this process; on disk alone
        kernel = _loaded(tmp_path / "one").from_file
        api.call(kernel, (table,), evaluate="closed", cache_dir=cache)
        if not kept:
            api.calling.clear()
        for path in (table, str(tmp_path / "one" / ".." / "one" / "table.npy")):
            with pytest.raises(api.CompileError, match=r"NKI0281(.|\n)*the array instead"):
                kernel = _loaded(tmp_path / "two").from_file
                api.call(kernel, (path,), evaluate="closed", cache_dir=cache)
    folders = [tmp_path / "one"]
    called = api.call(kernel, (table,), evaluate="closed", include=folders, cache_dir=cache)
    np.testing.assert_array_equal(called.values, np.ones((1, 8)))
    api.compile(kernel, consts={"path": table}, evaluate="closed", include=folders)
    for none in (str(tmp_path / "none"), table, ""):
        with pytest.raises(api.CompileError, match=f"include: there is no folder `{none}`"):
            api.call(kernel, (table,), evaluate="closed", include=[none])


def _loaded(folder: Path) -> Any:
    """Import the kernels from another folder, under the same name."""
    sys.modules.pop("lang_kernels", None)
    sys.path[0] = str(folder)
    importlib.invalidate_caches()
    return importlib.import_module("lang_kernels")


def test_a_fence_within_a_fence_opens_nothing(tmp_path: Path) -> None:
    inner, outer = tmp_path / "inner", tmp_path / "outer"
    for folder in (inner, outer):
        folder.mkdir()
        (folder / "data").write_bytes(b"1")
    with files.confined([inner]), files.confined([inner, outer]):
        assert files.read(str(inner / "data"), 1) == b"1"
        with pytest.raises(UsageFailed):
            files.read(str(outer / "data"), 1)
