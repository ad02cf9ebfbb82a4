"""Kernels evaluated by Python itself: any Python code, locations in user code, Python warnings."""

from __future__ import annotations

import os
import pickle
import sys
import threading
import traceback
import types
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from nkic import CompileError, NkicWarning, api
from nkic.api import calling
from nkic.base.diagnostics import bad_argument
from nkic.language.trace import current
from tests.api.conftest import installed
from tests.harness import warm
from tests.timing import library, schedules

KERNELS = "tests.api.native_kernels"
X = np.arange(128 * 8, dtype=np.float32).reshape(128, 8)


@pytest.fixture(scope="module")
def k() -> Iterator[ModuleType]:
    """Yield the module of kernels, with nkic in place of nki."""
    with installed(KERNELS) as module:
        yield module


def frames(error: BaseException) -> list[traceback.FrameSummary]:
    return list(traceback.extract_tb(error.__traceback__))


def line_of(error: BaseException) -> str:
    return str(frames(error)[-1].line)


# ---- any Python code ----------------------------------------------------------------------------


def test_all_of_python_and_any_library(k: ModuleType) -> None:
    k.SEEN.clear()
    np.testing.assert_array_equal(k.everything(X), X * 2 * 50)
    assert k.SEEN == ["kernel", "end of kernel"]


def test_variables_around_a_kernel_are_the_programs_own(k: ModuleType) -> None:
    state = {"calls": 0, "factor": 2.0}
    nl = k.nl

    def kernel(x: Any) -> Any:
        state["calls"] += 1
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, value=nl.multiply(nl.load(x), state["factor"]))
        return out

    made = k.nki.jit(kernel)
    np.testing.assert_array_equal(made(X), X * 2)
    state["factor"] = 5.0
    np.testing.assert_array_equal(made(X), X * 5)
    assert state["calls"] == 2


def test_names_of_host_code_mean_the_same_in_kernels(k: ModuleType) -> None:
    np.testing.assert_array_equal(k.with_names_of_the_host(X), X * 4)
    assert k.nl.float32 == "float32" and type(k.nl.float32) is str  # outside kernels, unchanged


def test_an_operator_is_one_object(k: ModuleType) -> None:
    k.SEEN.clear()
    np.testing.assert_array_equal(k.by_operator(X, k.nl.add), X + X)
    assert k.SEEN == [(True, True, True, False, "nl.add")]
    assert repr(k.nl.add) == "nki.language.add"  # outside kernels


def test_arrays_inside_of_objects_are_tensors_in_copies(k: ModuleType) -> None:
    weights = k.Weights(X, [{"bias": X + 2}, {"bias": X + 1}, {"bias": X}], {"untouched": object()})
    k.SEEN.clear()
    called = k.with_weights.call(X, weights)
    np.testing.assert_array_equal(called.values, X * X + 3 * X + 3)
    names = [p.name for p in called.called.artifact.signature.inputs]
    assert names == ["x", "weights.layers.0.bias", "weights.layers.1.bias"]  # gamma is x, too
    (seen,) = k.SEEN
    assert weights.gamma is X and seen is not weights and type(seen) is k.Weights
    assert seen.options is weights.options  # a value without arrays is the caller's own object


def test_constants_that_numpy_computes(k: ModuleType) -> None:
    wanted = X + np.arange(1, 9, dtype=np.float32)
    np.testing.assert_array_equal(k.with_constant(X), wanted)
    np.testing.assert_array_equal(k.with_constant(X, ">"), wanted)
    np.testing.assert_array_equal(k.calls_a_kernel(X), wanted)


def test_objects_of_nki_may_leave_fields_out(k: ModuleType) -> None:
    first, second = k.Settings(4), k.Settings(1, names=["a"], scale=3.0)
    assert (first.rows, first.columns, first.names, first.scale) == (4, None, [], 2.0)
    assert (second.names, second.scale) == (["a"], 3.0) and first.names is not k.Settings(4).names
    with pytest.raises(TypeError, match="no field `row`"):
        k.Settings(row=1)

    class Own(k.nl.NKIObject):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            self.made = True

    class Below(Own):
        rows: int

    assert Below().made


def test_breakpoint(k: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def hook() -> None:
        frame = sys._getframe(1)
        seen.append((frame.f_code.co_name, frame.f_locals["x"].shape))

    monkeypatch.setattr(sys, "breakpointhook", hook)
    k.stops(X)
    assert seen == [("stops", (128, 8))]


def test_a_kernel_without_source(k: ModuleType) -> None:
    space: dict[str, Any] = {"nl": k.nl, "__name__": "nowhere"}
    text = "def kernel(x, by=2.0):\n    out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)\n"
    exec(text + "    nl.store(out, value=nl.multiply(nl.load(x), by))\n    return out\n", space)
    np.testing.assert_array_equal(k.nki.jit(space["kernel"])(X), X * 2)
    np.testing.assert_array_equal(k.nki.jit(space["kernel"])(X, by=3.0), X * 3)
    with pytest.raises(CompileError, match="reshape") as caught:
        exec("def wrong(x):\n    return x.reshape((3, 5))\n", space)
        k.nki.jit(space["wrong"])(X)
    assert frames(caught.value)[-1].lineno == 2


def test_pythons_own_evaluation_has_no_limits(k: ModuleType) -> None:
    for name in ("steps", "memory", "length", "bits", "width", "depth"):
        with pytest.raises(CompileError, match=r"`everything`.* has no `limits`.*\n.*\"closed\""):
            api.call(k.everything, (X,), limits={name: 1})
    with pytest.raises(CompileError, match=r"`everything`.* from anywhere\n.*\"closed\""):
        api.call(k.everything, (X,), include=["."])


def test_loops_on_the_device(k: ModuleType) -> None:
    n = np.full((1, 1), 4, np.int32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NkicWarning)
        found = api.call(k.loops, (X, n), nki="0.6")
    np.testing.assert_array_equal(found.values, X + 3 + 20 + 400)
    closed = api.prepare(k.loops.func, (X, n), nki="0.6", evaluate="closed").artifact
    assert closed.data == found.artifact.data


def test_former_loops_on_the_device_name_both_ways_out(k: ModuleType) -> None:
    n = np.full((1, 1), 4, np.int32)
    with pytest.raises(CompileError, match=r"write nl\.fori_loop\(.*or compile with `--nki 0\.6`"):
        k.loops(X, n)
    assert current() is None


@pytest.mark.parametrize("how", ["break", "return", "while", "exception", "inner"])
def test_a_loop_on_the_device_that_is_left(k: ModuleType, how: str) -> None:
    with warnings.catch_warnings(), pytest.raises(CompileError) as caught:
        warnings.simplefilter("ignore", NkicWarning)
        api.call(k.leaves, (X, how), nki="0.6")
    assert {one.code.slug for one in caught.value.diagnostics if one.level.value == "error"} == {
        "device-loop-misuse"
    }
    assert current() is None


def test_a_register_decides_nothing(k: ModuleType) -> None:
    with pytest.raises(CompileError, match=r"known only on the device") as caught:
        k.decides(X)
    assert line_of(caught.value) == "if nisa.register_alloc(1):"


# ---- errors -------------------------------------------------------------------------------------


def own_frames(error: BaseException) -> list[str]:
    """Return the functions in the traceback, which must not contain frames of nkic."""
    found = frames(error)
    assert not [one for one in found if "/nkic/" in one.filename]
    return [one.name for one in found]


def test_an_error_of_nki_ends_at_the_users_line(k: ModuleType) -> None:
    with pytest.raises(CompileError, match="has no `ndarrray`") as caught:
        k.misspelt(X)
    assert "nl.ndarrray" in line_of(caught.value)
    assert own_frames(caught.value)[1:] == ["misspelt"]
    assert "did you mean `ndarray`" in str(caught.value)
    (found,) = caught.value.diagnostics
    assert found.primary is not None and found.primary.span.path.endswith("native_kernels.py")


def test_wrong_arguments_and_runs_end_at_the_users_line(k: ModuleType) -> None:
    with pytest.raises(
        TypeError, match=r"^everything\(\): missing a required argument: 'x'"
    ) as wrong:
        k.everything()
    artifact = api.call(k.everything, (X,)).artifact
    with pytest.raises(api.RunError, match="the inputs do not fit") as missing:
        api.run(artifact, {})
    for caught in (wrong, missing):
        assert [one.filename for one in frames(caught.value)] == [__file__]


@pytest.mark.parametrize("kind", [api.CompileError, api.RunError])
def test_a_traceback_names_errors_as_users_import_them(kind: type[api.ApiError]) -> None:
    (diagnostic,) = bad_argument("no").diagnostics
    (last, *_) = traceback.format_exception_only(kind([diagnostic]))
    assert last.startswith(f"nkic.{kind.__name__}: error[")
    assert type(pickle.loads(pickle.dumps(kind([diagnostic])))) is kind


def test_errors_that_evaluation_survives_are_all_told(k: ModuleType) -> None:
    with pytest.raises(CompileError) as caught:
        k.refused(X)
    slugs = [one.code.slug for one in caught.value.diagnostics]
    assert slugs == ["index-out-of-bounds", "too-many-partitions"]
    assert "return tile[" in line_of(caught.value)  # the first error
    assert own_frames(caught.value)[1:] == ["refused", "helper"]


def test_only_the_first_cause_is_told(k: ModuleType) -> None:
    """A part of what a refused call returned, a function of it, and what Python says of that."""
    with pytest.raises(CompileError) as caught:
        k.cascading(X)
    assert [one.code.slug for one in caught.value.diagnostics] == ["wrong-call"]
    assert caught.value.__notes__ == ["compiled for x: float32[128,8]"]


def test_a_function_of_pytorch(k: ModuleType) -> None:
    with pytest.raises(
        CompileError, match=r"`torch.relu` does not take .*not known while"
    ) as caught:
        k.of_another_library(X)
    assert caught.value.diagnostics[0].help == "write nl.relu, which is a function"


def test_what_the_kernel_raises_is_itself(k: ModuleType) -> None:
    with pytest.raises(AssertionError, match="7 columns, not 8") as caught:
        k.asserts(X)
    assert line_of(caught.value).startswith("assert x.shape[1] == 7")
    with pytest.raises(k.OwnError, match="inside") as caught:
        k.raises(X)
    assert own_frames(caught.value)[1:] == ["raises", "inner"]
    assert current() is None  # the trace has ended
    with pytest.raises(TypeError, match="argument"):
        k.asserts()


# ---- warnings -----------------------------------------------------------------------------------


def test_warnings_are_pythons(k: ModuleType) -> None:
    with pytest.warns(NkicWarning, match=r"^NKI0254: ") as caught:
        api.prepare(k.forgets.func, (X,))
    (found,) = caught
    assert isinstance(found.message, NkicWarning) and found.message.code == "NKI0254"
    assert found.filename == k.__file__
    line = Path(found.filename).read_text("utf-8").splitlines()[found.lineno - 1]
    assert line.strip().startswith("kept = nl.ndarray")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "NKI0254")
        api.prepare(k.forgets.func, (X,))
    with warnings.catch_warnings(), pytest.raises(NkicWarning):
        warnings.simplefilter("error", NkicWarning)
        api.prepare(k.forgets.func, (X,))


# ---- choice of evaluation -----------------------------------------------------------------------


def test_the_closed_world_is_an_option(k: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    k.SEEN.clear()
    closed = api.prepare(k.doubled, (X,), evaluate="closed").artifact
    native = api.prepare(k.doubled, (X,), evaluate="native").artifact
    assert closed.data == native.data
    monkeypatch.setenv("NKIC_EVALUATE", "closed")
    with pytest.raises(CompileError):  # assert is an error of the kernel, reported by nkic
        k.asserts(X)
    with pytest.raises(AssertionError):
        api.prepare(k.asserts.func, (X,), evaluate="native")
    monkeypatch.setenv("NKIC_EVALUATE", "open")
    with pytest.raises(CompileError, match="NKIC_EVALUATE in the environment is 'open'"):
        k.asserts(X)


def test_a_project_chooses(k: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.nkic]\nevaluate = "closed"\n')
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    with pytest.raises(CompileError):
        k.asserts(X)
    monkeypatch.setenv("NKIC_EVALUATE", "native")
    with pytest.raises(AssertionError):
        k.asserts(X)


def test_kernels_of_another_nki_have_their_source_alone(
    k: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = types.ModuleType("nki.language")
    monkeypatch.setitem(k.doubled.__globals__, "nl", other)
    found = api.call(k.doubled, (X,))
    np.testing.assert_array_equal(found.values, X * 2)
    with pytest.raises(CompileError, match="the `nki` that it uses is not nkic's"):
        api.call(k.doubled, (X,), evaluate="native")


# ---- cache and threads --------------------------------------------------------------------------


def test_a_kernel_is_called_each_time_and_compiled_once(k: ModuleType) -> None:
    calling.clear()
    k.SEEN.clear()
    weights = k.Weights(X)
    first = k.with_weights.call(X, weights).called.artifact
    assert k.with_weights.call(X, weights).called.artifact is first
    assert len(k.SEEN) == 2
    assert k.with_weights.call(X[:64], k.Weights(X[:64])).called.artifact is not first


def test_a_folder_keeps_artifacts_for_other_processes(k: ModuleType, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    code = (
        "import nkic, sys, numpy as np; nkic.install()\n"
        "from tests.api import native_kernels as k\n"
        "x = np.zeros((128, 8), np.float32)\n"
        "print(nkic.call(k.doubled, (x,), cache_dir=sys.argv[1]).artifact.id)"
    )
    anew = {**os.environ, "PYTHONHASHSEED": "1"}  # read when Python starts
    runs = [warm.run_text(code, str(folder), cwd=warm.ROOT, env=env) for env in (None, anew)]
    assert runs[0].returncode == 0, runs[0].stderr
    assert runs[0].stdout == runs[1].stdout
    assert len(list(folder.iterdir())) == 1


def test_threads_trace_at_the_same_time(k: ModuleType) -> None:
    both = threading.Barrier(2, timeout=20)
    nl = k.nl

    def kernel(x: Any, factor: float) -> Any:
        both.wait()  # neither thread can proceed alone
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        both.wait()
        nl.store(out, value=nl.multiply(nl.load(x), factor))
        return out

    made, factors = k.nki.jit(kernel), (2.0, 3.0)
    with ThreadPoolExecutor(2) as pool:
        for factor, found in zip(factors, pool.map(lambda f: made(X, f), factors), strict=True):
            np.testing.assert_array_equal(found, X * factor)


def test_a_kernel_that_runs_a_kernel_of_its_own(k: ModuleType) -> None:
    """A call of nkic inside a kernel is a separate compilation."""
    nl = k.nl

    def kernel(x: Any) -> Any:
        factor = float(api.call(k.doubled, (np.ones((2, 2), np.float32),)).values[0, 0])
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, value=nl.multiply(nl.load(x), factor))
        return out

    np.testing.assert_array_equal(k.nki.jit(kernel)(X), X * 2)


def test_the_table_of_schedules_has_lines_of_live_kernels(k: ModuleType) -> None:
    """The bound of the table is computed from results that a call has freed."""
    found = schedules.line(
        "one",
        lambda n, serial: library.compiled(k.everything, {"x": X}, optimise=n, serial=serial),
    )
    _, name, _, bound, *_, over, _ = found.split("|")
    assert (name.strip(), float(bound) > 2, 1 <= float(over) < 1.5) == ("one", True, True)
