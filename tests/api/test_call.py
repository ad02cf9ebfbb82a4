"""Calls of kernels with live values, compared with NumPy."""

from __future__ import annotations

import enum
import functools
import linecache
import os
import re
import sys
import types
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import nkic.nki
from nkic import api
from nkic.api import calling, functions, options
from nkic.base.levels import DEFAULT, Wish
from nkic.nki import modules
from nkic.nki.jit import Call
from tests.api import kernels as k
from tests.harness import warm

X = np.arange(128 * 4, dtype=np.float32).reshape(128, 4)
Y = X + 1


@pytest.fixture(params=["closed", "native"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Parametrise over both ways to evaluate a kernel; in native mode nkic is installed as nki."""
    found: str = request.param
    monkeypatch.setenv("NKIC_EVALUATE", found)
    calling.clear()
    if found == "closed":
        yield found
        return
    was = nkic.nki.installed()
    nkic.nki.install()
    for name, module in {"nl": "language", "nisa": "isa", "ncc": "collectives"}.items():
        monkeypatch.setattr(k, name, modules.built(f"nki.{module}"), raising=False)
    yield found
    if not was:
        nkic.nki.uninstall()


# Python itself supports every builtin, accepts any value, and needs no source.
in_the_closed_world = pytest.mark.parametrize("way", ["closed"], indirect=True)


def values(kernel: Any, *args: Any, **kwargs: Any) -> Any:
    return api.call(kernel, args, kwargs).values


def test_numbers_and_defaults() -> None:
    np.testing.assert_array_equal(values(k.scaled, X, 3.0), X * 3)
    np.testing.assert_array_equal(values(k.scaled, X), X)
    np.testing.assert_array_equal(values(k.scaled, factor=np.float32(0.5), x=X), X / 2)


@pytest.mark.parametrize(
    "dtype", [np.float16, ml_dtypes.bfloat16, np.float32, ml_dtypes.float8_e5m2]
)
def test_outputs_have_their_own_element_type(dtype: Any) -> None:
    x = X[:, :2].astype(dtype)
    found = values(k.scaled, x, 2.0)
    assert found.dtype == np.dtype(dtype)
    doubled = (x.astype(np.float32) * 2).astype(dtype)
    np.testing.assert_array_equal(found.view(np.uint8), doubled.view(np.uint8))


@pytest.mark.parametrize("tensors", [[X, Y], (X, Y), k.Pair(X, Y)])
def test_arrays_in_containers(tensors: Any) -> None:
    np.testing.assert_array_equal(values(k.sum_of, tensors), X + Y)


@pytest.mark.parametrize("folder", ["", "file/below"])
def test_a_cache_that_cannot_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    monkeypatch.setenv("NKIC_CACHE_DIR", folder)
    calling.clear()
    np.testing.assert_array_equal(values(k.scaled, X, 5.5), X * 5.5)
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


def test_a_result_is_shown_with_a_timeline() -> None:
    result = api.call(k.scaled, (X, 3.0)).result
    for name, use in result.engines.items():
        own = [one for one in result.timeline if one.lane.rstrip("01234567") == name]
        assert len(own) == use.instructions
        if own and name != "core0.dma":  # a transfer's event lasts until the transfer is complete
            assert sum(one.end_ns - one.start_ns for one in own) == pytest.approx(use.busy_ns)
    assert max(one.end_ns for one in result.timeline) <= result.time_ns
    assert all("kernels.py:" in one.place for one in result.timeline)
    assert result._repr_svg_() == result.svg and result.svg in result._repr_html_()
    assert result.report.splitlines()[-2] in result.svg


def test_a_result_says_what_bounds_it() -> None:
    result = api.call(k.scaled, (X, 3.0)).result
    assert result.verdict.startswith("bound by ") and "kernels.py:" in result.verdict
    assert all(line.split(";")[0] in result._repr_html_() for line in result.verdict.splitlines())
    assert result.page.startswith("<!DOCTYPE html>")
    assert result.insight is not None
    assert sum(part.time for part in result.insight.path) == result.time_ns * 1000


@in_the_closed_world
@pytest.mark.parametrize("value", [input, bytearray, memoryview, breakpoint])
def test_builtins_that_kernels_do_not_have(value: Any) -> None:
    with pytest.raises(api.CompileError, match=f"argument `factor` is .*{value.__name__}"):
        api.call(k.scaled, (X, value))


def test_options_that_there_are_not() -> None:
    with pytest.raises(TypeError, match=r"nkic.call\(\) has no option 'targt'; .*`target`"):
        api.call(k.scaled, (X,), targt="trn1")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"nkic.run\(\) has no option 'lnc'; options are init"):
        api.run(api.prepare(k.scaled, (X,)).artifact, {"x": X}, lnc=2)  # type: ignore[call-arg]


def test_an_array_that_occurs_twice_is_one_input() -> None:
    called = api.call(k.sum_of, ([X, X],))
    assert [p.name for p in called.artifact.signature.inputs] == ["tensors.0"]
    np.testing.assert_array_equal(called.values, X + X)


def test_arrays_in_objects_have_dotted_names() -> None:
    called = api.call(k.with_params, (X, k.Params(Y)))
    assert [p.name for p in called.artifact.signature.inputs] == ["x", "params.gamma"]
    np.testing.assert_array_equal(called.values, X + Y)
    scale = k.Params(None, 4.0, k.Mode.SCALE)
    np.testing.assert_array_equal(values(k.with_params, X, scale), X * 8)


def test_functions_of_all_kinds() -> None:
    offset = 7

    def nested(number: float) -> float:
        return number + offset

    def again(number: float) -> float:
        return number if number > 20 else again(number * 2)

    for function, wanted in (
        (k.double, 6.0),
        (k.HALF, 1.5),
        (functools.partial(k.times, by=4.0), 12.0),
        (lambda number: number + 1, 4.0),
        (nested, 10.0),
        (again, 24.0),
        (k.Params(None, 5.0).scaled, 15.0),
    ):
        np.testing.assert_array_equal(values(k.with_function, X, function), X * wanted)


def test_a_kernel_in_a_function_sees_the_variables_around_it() -> None:
    np.testing.assert_array_equal(values(k.maker(3.0), X), X * 9)
    np.testing.assert_array_equal(values(k.maker(1.0), X), X * 3)
    np.testing.assert_array_equal(values(k.maker(1.0), X, plus=2.0), X * 4)


def test_globals_come_from_the_running_program(monkeypatch: pytest.MonkeyPatch) -> None:
    np.testing.assert_array_equal(values(k.by_global, X), X * 2)
    monkeypatch.setattr(k, "SCALE", 5.0)
    np.testing.assert_array_equal(values(k.by_global, X), X * 5)


def test_objects_are_made_without_their_init() -> None:
    first, second = values(k.two, X, k.Plain())
    np.testing.assert_array_equal(first, X * 3)
    np.testing.assert_array_equal(second, X * 10)


def test_inputs_updated_in_place() -> None:
    x = X.copy()
    called = api.call(k.in_place, (x,), {"n": 2.0})
    assert called.values is None
    assert list(called.updated) == ["x"]
    np.testing.assert_array_equal(called.updated["x"], X + 2)
    np.testing.assert_array_equal(x, X)


@pytest.mark.parametrize("dtype", [">f4", ">f2", ">i4", ">u2"])
def test_arrays_of_another_order_of_bytes(dtype: str) -> None:
    x = X.astype(dtype)
    np.testing.assert_array_equal(values(k.scaled, x, 3.0).astype(np.float32), X * 3)
    artifact = api.compile(k.scaled, inputs={"x": x}, consts={"factor": 3.0})
    np.testing.assert_array_equal(api.run(artifact, {"x": x}).outputs["output_0"], X * 3)


def test_a_mask_is_not_dropped() -> None:
    masked = np.ma.masked_array(X, X > 3)
    with pytest.raises(api.CompileError, match=r"masked arrays .*\n.*array\.filled"):
        values(k.scaled, masked, 3.0)
    artifact = api.compile(k.scaled, inputs={"x": X}, consts={"factor": 3.0})
    with pytest.raises(api.RunError, match="masked arrays"):
        api.run(artifact, {"x": masked})


def test_a_wrapped_kernel() -> None:
    class Wrapper:
        def __init__(self, function: Any) -> None:
            functools.update_wrapper(self, function)

        def __call__(self) -> None:
            raise AssertionError("user code was run")

    np.testing.assert_array_equal(values(Wrapper(k.scaled), X, 2.0), X * 2)


# ---- source without a file ----------------------------------------------------------------------


def cell(name: str, text: str, space: dict[str, Any]) -> None:
    """Execute a notebook's cell."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec"), space)


def test_cells_of_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("__notebook__")
    monkeypatch.setitem(sys.modules, "__notebook__", module)
    space = module.__dict__
    text = (Path(k.__file__).read_text("utf-8").split("def by_global")[0]).replace("SCALE", "S")
    space["__name__"] = "__notebook__"
    cell("<cell 1>", text, space)
    cell("<cell 2>", "RATE = 3.0\ndef grown(n):\n    return n * RATE\n", space)
    cell("<cell 3>", "def kernel(x):\n    return scaled(x, grown(S))\n", space)
    np.testing.assert_array_equal(values(space["kernel"], X), X * 6)
    cell("<cell 4>", "S = 1.0\n", space)
    np.testing.assert_array_equal(values(space["kernel"], X), X * 3)


def test_a_notebook_names_its_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verdicts, timelines, errors and cards use the notebook's own names, whatever IPython calls
    the file of a cell, and show a run, not a dump of its arrays.
    """
    text = Path(k.__file__).read_text("utf-8").split("def by_global")[0]
    shown = {"/tmp/ipykernel_7/123.py": "In[2]", "<ipython-input-3-abc>": "In[3]"}
    compiler = SimpleNamespace(
        format_code_name=lambda n: ("Cell", shown[n]) if n in shown else None
    )
    ipython = types.ModuleType("IPython")
    monkeypatch.setattr(ipython, "get_ipython", lambda: SimpleNamespace(compile=compiler), False)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "__notebook__", types.ModuleType("__notebook__"))
    for file, name in shown.items():
        space = sys.modules["__notebook__"].__dict__
        space["__name__"] = "__notebook__"
        cell(file, text + f"# {name}\n", space)
        called = api.call(space["scaled"], (X,))
        assert f"{name}:" in called.result.verdict and "cell-" not in called.result.verdict
        assert all(one.place.startswith(f"{name}:") for one in called.result.timeline)
        card = called._repr_html_()
        assert card == Call(called.values, called)._repr_html_()
        assert "likely within" in card and f"{name}:" in card and "array(" not in card
        with pytest.raises(api.CompileError, match=rf"^{re.escape(name)}:\d+:") as caught:
            api.call(space["scaled"], (np.zeros((256, 4), np.float32),))
        assert "buffer=nl.sbuf" in str(caught.value)
        with pytest.raises(api.RunError, match=rf"^{re.escape(name)}:58:") as failed:
            api.run(called.artifact, {"x": X}, expect_at={58: {"tile": Y}})
        assert "cell-" not in str(failed.value)
        assert any(f.path.startswith("cell-") for f in called.artifact.executable.files)


@in_the_closed_world
@pytest.mark.parametrize("kept", [None, "import nki\nimport nkic\n"])
def test_no_source(kept: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept as `<string>` is another string, such as that of -c since Python 3.13."""
    if kept:
        entry = (len(kept), None, kept.splitlines(keepends=True), "<string>")
        monkeypatch.setitem(linecache.cache, "<string>", entry)
    space: dict[str, Any] = {"__name__": "nowhere"}
    exec("def kernel(x):\n    return x\n", space)
    with pytest.raises(api.CompileError, match=r"nkic cannot find the source of `kernel`"):
        values(space["kernel"], X)


# ---- errors --------------------------------------------------------------------------------------


@in_the_closed_world
def test_what_cannot_be_described_names_the_argument() -> None:
    with pytest.raises(api.CompileError, match=r"argument `factor` is object\(…\)"):
        values(k.scaled, X, object())
    with pytest.raises(api.CompileError, match=r"`params.factor` is .*: kernels cannot use `"):
        values(k.with_params, X, k.Params(None, sys.stdout, k.Mode.SCALE))  # type: ignore[arg-type]
    with pytest.raises(api.CompileError, match=r"array of float64.*\n.*astype\(np.float32\)"):
        values(k.scaled, X.astype(np.float64))
    with pytest.raises(api.CompileError, match=r"array without dimensions"):
        values(k.scaled, np.array(3.0, np.float32))
    with pytest.raises(TypeError, match="unexpected keyword argument 'wrong'"):
        values(k.scaled, X, wrong=1)


def test_errors_show_the_line_in_the_file_of_the_user() -> None:
    with pytest.raises(api.CompileError) as caught:
        values(k.scaled, np.zeros((256, 4), np.float32))
    place = caught.value.diagnostics[0].primary
    assert place is not None
    line = Path(k.__file__).read_text("utf-8").splitlines()[place.span.line - 1]
    assert "buffer=nl.sbuf" in line
    assert line in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert str(caught.value).startswith("tests/api/kernels.py") or "kernels.py:" in str(
        caught.value
    )


def test_faults_of_the_run() -> None:
    artifact = api.call(k.scaled, (X,)).artifact
    with pytest.raises(api.RunError, match=r"x .*missing"):
        api.run(artifact, {})
    with pytest.raises(api.RunError, match=r"float32\[128, 5\]"):
        api.run(artifact, {"x": np.zeros((128, 5), np.float32)})
    with pytest.raises(api.RunError, match="NKI0903"):
        api.run(artifact, {"x": X}, max_cycles=10)


# ---- the cache -----------------------------------------------------------------------------------


def test_a_second_call_takes_the_artifact_of_the_first() -> None:
    first = api.call(k.scaled, (X, 4.5)).artifact
    assert api.call(k.scaled, (Y, 4.5)).artifact is first
    assert api.call(k.scaled, (X, 4.25)).artifact is not first
    assert api.call(k.scaled, (X[:64], 4.5)).artifact is not first
    assert api.call(k.scaled, (X, 4.5), serial=True).artifact is not first
    assert api.call(k.scaled, (X, 4.5), optimise=2).artifact is not first
    assert api.call(k.scaled, (X, 4.5), machine={"dma.done_ns": 300}).artifact is not first


def test_the_folder_is_shared_and_a_torn_file_is_not_used(tmp_path: Path) -> None:
    first = api.call(k.scaled, (X, 4.5), cache_dir=tmp_path).artifact
    (file,) = tmp_path.iterdir()
    calling.clear()
    second = api.call(k.scaled, (X, 4.5), cache_dir=tmp_path).artifact
    assert second is not first
    assert second == first
    calling.clear()
    file.write_bytes(file.read_bytes()[:-7])
    third = api.call(k.scaled, (X, 4.5), cache_dir=tmp_path)
    assert third.artifact == first
    np.testing.assert_array_equal(third.values, X * 4.5)


def test_processes_agree_on_the_artifact(tmp_path: Path, way: str) -> None:
    code = (
        f"import nkic; {'nkic.install()' if way == 'native' else ''}\n"
        "import numpy as np, sys\nfrom nkic import api\nfrom tests.api import kernels as k\n"
        "x = np.zeros((128, 4), np.float32)\n"
        "print(api.call(k.with_params, (x, k.Params(x + 1)), cache_dir=sys.argv[1]).artifact.id)"
    )
    anew = {**os.environ, "PYTHONHASHSEED": "1"}  # read when Python starts
    runs = [warm.run_text(code, str(tmp_path), cwd=warm.ROOT, env=env) for env in (None, anew)]
    assert runs[0].returncode == 0, runs[0].stderr
    assert runs[0].stdout == runs[1].stdout
    assert len(list(tmp_path.iterdir())) == 1


def test_threads() -> None:
    def call(number: int) -> bool:
        factor = float(number % 5) + 0.5
        found = api.call(k.maker(factor), (X,), cache_dir=None).values
        return bool(np.array_equal(found, X * (3 * factor)))

    calling.clear()
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(call, range(20)))


@in_the_closed_world
def test_user_code_is_never_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = dict(sys.modules)
    values(k.with_params, X, k.Params(Y))
    assert not [name for name in sys.modules.keys() - before.keys() if name.startswith("tests")]


# ---- names from NKI ------------------------------------------------------------------------------


def test_names_of_a_package_that_poses_as_nki(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operators, buffers and enumerations of a foreign `nki` package have NKI's meaning; a package
    with `nki` in the middle of its name is user code.
    """
    for name in ("vendor.nki", "vendor.nki.language"):
        module = types.ModuleType(name)
        monkeypatch.setitem(sys.modules, name.removeprefix("vendor."), module)
    language = sys.modules["nki.language"]

    def maximum() -> None:
        raise AssertionError("user code was run")

    maximum.__module__, maximum.__qualname__ = "vendor.nki.language", "maximum"
    buffers = enum.Enum(  # type: ignore[misc]  # its name is not the variable's
        "MemoryRegion", "sbuf psum", module=language.__name__
    )
    found = values(k.combined, X, -X, maximum, buffers["sbuf"], np.dtype("float16"))
    np.testing.assert_array_equal(found, np.abs(X).astype(np.float16))
    assert functions.module_of_nki("mine.nki.kernels") == ""


def test_the_name_of_a_dtype_equals_it() -> None:
    for dtype in ("float16", np.float16, np.dtype("float16")):
        np.testing.assert_array_equal(values(k.by_dtype, X, dtype), X * 2)


def test_every_core_returns_a_reshape_of_the_whole() -> None:
    places: list[dict[str, Any]] = [{"lnc": 2}, {"grid": 2}]
    for place in places:
        found = api.call(k.reshaped, (X,), **place).values
        np.testing.assert_array_equal(found, X.reshape(-1))


EDITED = """
def double(a):
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=a)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=???)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out
"""
IMPORTS = """try:
    import nki.isa as nisa
    import nki.language as nl
except ImportError:
    pass
"""


class Editing(SourceFileLoader):
    """A loader that executes a text different from the file's."""

    def source_to_code(  # type: ignore[override]
        self, data: Any, path: Any, *, _optimize: int = -1
    ) -> Any:
        """Return the code of the edited text."""
        return super().source_to_code(data.replace(b"???", b"2.0"), path, _optimize=_optimize)


def test_text_that_a_loader_edits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "edited.py"
    file.write_text(IMPORTS + EDITED)
    spec = spec_from_file_location("edited", file, loader=Editing("edited", str(file)))
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "edited", module)
    spec.loader.exec_module(module)
    assert np.array_equal(values(module.double, X), 2 * X)


def test_a_part_of_the_result_that_nothing_writes_is_an_error() -> None:
    with pytest.raises(api.CompileError, match="NKI0257"):
        values(k.unwritten_output, X)
    allowed = DEFAULT.adding(Wish.ALLOW, "NKI0257")
    found = api.call(k.unwritten_output, [X], levels=allowed).values
    np.testing.assert_array_equal(found[:64], X[:64])


def test_what_the_run_noticed_is_a_remark_or_what_the_levels_make_of_it() -> None:
    big = np.full_like(X, 2.0**65)
    (remark,) = api.call(k.logarithm, [big]).result.remarks
    assert remark.code.number == "NKI0703" and "outside the range of nl.log" in remark.message
    with pytest.warns(api.NkicWarning, match="NKI0703: .*outside the range"):
        api.call(k.logarithm, [big], levels=DEFAULT.adding(Wish.WARN, "NKI0703"))
    with pytest.raises(api.RunError, match="NKI0703"):
        api.call(k.logarithm, [big], levels=DEFAULT.adding(Wish.DENY, "NKI0703"))


def test_a_machine_gives_figures_of_time(tmp_path: Path) -> None:
    usual = api.call(k.scaled, (X, 4.5))
    slow = api.call(k.scaled, (X, 4.5), machine={"dma": {"done_ns": 10_298}})
    assert slow.result.time_ns == pytest.approx(usual.result.time_ns + 20_000)
    assert np.array_equal(slow.values, usual.values)
    file = tmp_path / "slow.toml"
    file.write_text("[dma]\ndone_ns = 10298\n", "utf-8")
    assert api.run(usual.artifact, {"x": X}, machine=file).time_ns == slow.result.time_ns
    assert slow.result.run.machine == api.run(usual.artifact, {"x": X}, machine=file).run.machine
    assert slow.artifact.executable.meta["machine"] == slow.result.run.machine != "default"


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        ({"dma.done": 3}, "there is no parameter `dma.done`"),
        ({"dma.done_ns": "3"}, "dma.done_ns is '3', but must be a number"),
        (7, "machine is 7, but must be the path of a machine file or a mapping"),
        ({"target": "trn1"}, "its figures are for trn1, but the kernel is for trn2"),
    ],
)
def test_a_machine_that_says_nothing_of_use_is_refused(machine: Any, said: str) -> None:
    with pytest.raises(api.CompileError, match=said):
        api.call(k.scaled, (X, 4.5), machine=machine)


@pytest.mark.parametrize("function", [api.call, api.call_ranks])
def test_help_names_every_option(function: Any) -> None:
    names = options.Calling.__annotations__
    assert len(names) > 20
    assert [name for name in names if f"`{name}`" not in function.__doc__] == []
