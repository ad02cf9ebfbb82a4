"""`nki.jit`, `nki.simulate` and measurements, compared with NumPy."""

from __future__ import annotations

import copy
import functools
import json
import pickle
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import nkic
from nkic import CompileError, RunError

X = np.arange(128 * 8, dtype=np.float32).reshape(128, 8)
Y = X[::-1] * 0.5


def nki() -> Any:
    import nki

    return nki


def test_a_kernel_is_called_with_arrays(drop_in: ModuleType) -> None:
    np.testing.assert_array_equal(drop_in.add(X, Y), X + Y)
    np.testing.assert_array_equal(drop_in.add(b=Y, a=X), X + Y)


def test_decorator_with_arguments_chooses_the_target(drop_in: ModuleType) -> None:
    np.testing.assert_array_equal(drop_in.on_trn1(X), X * 2)  # NeuronCore-v2


def test_the_environment_chooses_the_target(
    drop_in: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn3")
    called = drop_in.add.call(X, Y).called
    assert called.result.run.target == "trn3"
    assert drop_in.nl.tile_size.sbuf_size_bytes == 128 * 256 * 1024
    assert drop_in.nisa.get_nc_version() is drop_in.nisa.nc_version.gen4


def test_names_of_nki_are_values(drop_in: ModuleType) -> None:
    found = drop_in.scaled(X, drop_in.Config(3.0), drop_in.nisa.engine.vector)
    np.testing.assert_array_equal(found, X * 3)
    added = drop_in.scaled(X, drop_in.Config(op=drop_in.nl.add, factor=2.0))
    np.testing.assert_array_equal(added, X + 2)


def test_dtypes_and_buffers_are_values(drop_in: ModuleType) -> None:
    found = drop_in.converted(X, drop_in.nl.bfloat16)
    assert found.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(found, X.astype(ml_dtypes.bfloat16))
    assert drop_in.converted(X, drop_in.nl.float32, drop_in.nl.shared_hbm).dtype == np.float32


def test_several_results_are_a_tuple(drop_in: ModuleType) -> None:
    total, rest = drop_in.sum_and_difference(X, Y)
    np.testing.assert_array_equal(total, X + Y)
    np.testing.assert_array_equal(rest, X - Y)


def test_arguments_that_the_kernel_writes_are_updated_in_place(drop_in: ModuleType) -> None:
    a = np.arange(256 * 1024, dtype=np.float32).reshape(256, 1024)
    c = np.zeros_like(a)
    assert drop_in.into[2, 2](a, a, c) is None
    np.testing.assert_array_equal(c, a * 2)
    c.flags.writeable = False
    with pytest.raises(RunError, match="writes `c`, which is a read-only array"):
        drop_in.into[2, 2](a, a, c)


def test_brackets_hold_the_number_of_cores(drop_in: ModuleType) -> None:
    found = drop_in.per_core[2].call(X)
    np.testing.assert_array_equal(found.values, X * 2)
    assert found.called.artifact.executable.cores == 2
    one = drop_in.per_core[1].call(X)
    assert one.called.artifact.executable.cores == 1
    nc = drop_in.nl.nc
    assert drop_in.per_core[nc(2)].call(X).called.artifact.executable.cores == 2
    many = drop_in.per_core[4].call(X)  # more instances than cores: all run on one core
    np.testing.assert_array_equal(many.values, X * 2)


@pytest.mark.parametrize("way", ["native", "closed"])
def test_a_call_by_name_honours_what_the_kernel_says(drop_in: ModuleType, way: str) -> None:
    """A kernel's grid, target and schedule apply wherever it is passed; the call's target wins."""
    kernel = drop_in.per_core[2]
    assert nkic.call(kernel, (X,), evaluate=way).artifact.executable.cores == 2
    simulated = drop_in.nki.simulate(kernel)
    assert nkic.call(simulated, (X,), evaluate=way).artifact.executable.cores == 2
    compiled = nkic.compile(kernel, inputs={"x": X}, evaluate=way)
    assert compiled.executable.cores == 2
    assert nkic.prepare(kernel, (X,), evaluate=way).artifact.data == compiled.data
    refused: list[dict[str, Any]] = [{"lnc": 1}, {"grid": 4}]
    for named in refused:
        with pytest.raises(CompileError, match="has a grid in brackets, and the call says"):
            nkic.call(kernel, (X,), evaluate=way, **named)
    assert nkic.compile(drop_in.on_trn1, inputs={"a": X}).executable.target == "trn1"
    assert nkic.compile(drop_in.on_trn1, inputs={"a": X}, target="trn3").executable.target == "trn3"
    with pytest.raises(CompileError, match="the schedule of this call names `b`"):
        nkic.call(drop_in.per_core.with_schedule([("b", "a")]), (X,), evaluate=way)


@pytest.mark.parametrize("grid", [0, "2", (2, 0), -1, 1.5])
def test_grids_that_make_no_sense(drop_in: ModuleType, grid: Any) -> None:
    with pytest.raises(CompileError, match="must consist of positive integers"):
        drop_in.add[grid](X, Y)


def test_several_instances_on_each_of_several_cores(drop_in: ModuleType) -> None:
    """Instances are assigned to cores as in the public example of NKI's guide to grids."""
    nl, x = drop_in.nl, np.zeros((8, 4), np.float32)
    ids = np.array([[10 * i + j] * 4 for i in range(4) for j in range(2)], np.float32)
    whole, iterations = [0, 0, 1, 1], [0, 1, 0, 1]
    for axis, cores in (
        (nl.spmd_dim(nl.nc(2), 2), whole),
        (nl.nc(2) * 2, whole),
        (nl.spmd_dim(2, nl.nc(2)), iterations),
        (2 * nl.nc(2), iterations),
    ):
        found = drop_in.where_am_i[axis, 2].call(x)
        np.testing.assert_array_equal(found.values, ids)
        assert found.called.artifact.executable.cores == 2
        printed = found.called.result.run.prints
        assert {int(float(p.text.strip("[] "))): p.core for p in printed} == {
            10 * i + j: cores[i] for i in range(4) for j in range(2)
        }
    found = drop_in.where_am_i[2, nl.nc(2)].call(x[:4])
    np.testing.assert_array_equal(found.values, ids[[0, 1, 2, 3]])


def test_one_axis_of_a_grid_lies_across_cores(drop_in: ModuleType) -> None:
    nl = drop_in.nl
    for grid in ((nl.nc(2), nl.nc(2)), nl.spmd_dim(2, 2), (nl.nc(2) * 2, nl.nc(2))):
        with pytest.raises(CompileError, match=r"must have one axis with one nl\.nc"):
            drop_in.add[grid](X, Y)


def test_several_ranks(drop_in: ModuleType) -> None:
    kernel = drop_in.summed_over_ranks
    for call in (kernel, nki().simulate(kernel)):
        for one in call.ranks([(X,), {"a": Y}]):
            np.testing.assert_array_equal(one, X + Y)
    with pytest.raises(RunError, match=r"for the ranks 0, 1, and 1 are run[^$]*`kernel.ranks"):
        kernel(X)


def test_prints_of_kernels(drop_in: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.array([[1, 2]], np.float32)
    for _ in range(2):  # the second comes from the cache
        drop_in.talking(x)
        said = capsys.readouterr().out
        assert said == "compiled for (1, 2)\na is float32[1, 2]\n[[1. 2.]]\n"


def test_what_is_written_and_returned(drop_in: ModuleType) -> None:
    x = X.copy()
    found = drop_in.accumulated(x, Y)
    np.testing.assert_array_equal(found, X + Y)
    np.testing.assert_array_equal(x, X + Y)


def test_a_schedule_orders_named_instructions(drop_in: ModuleType) -> None:
    x = X / X.max()
    plain = drop_in.named.call(x, x)
    ordered = drop_in.named.with_schedule([("plus1", ["exp"])]).call(x, x)
    np.testing.assert_array_equal(ordered.values, plain.values)
    np.testing.assert_allclose(ordered.values, np.exp(x) + x + 1, rtol=1e-5)
    assert ordered.called.result.cycles > plain.called.result.cycles
    with pytest.raises(CompileError, match="plus2"):
        drop_in.named.with_schedule([("plus2", "exp")])(x, x)


def test_the_target_is_that_of_the_environment(
    drop_in: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEURON_CC_FLAGS", "--model-type=transformer --target trn1 -O1")
    assert drop_in.add.call(X, Y).called.result.run.target == "trn1"
    assert int(drop_in.nisa.get_nc_version()) == 2
    monkeypatch.setenv("NEURON_CC_FLAGS", "--target=trn3")
    assert drop_in.add.call(X, Y).called.result.run.target == "trn3"
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "gen3")
    assert drop_in.add.call(X, Y).called.result.run.target == "trn2"
    assert drop_in.on_trn1.call(X).called.result.run.target == "trn1"


@pytest.mark.parametrize(("grid", "factor"), [(None, 1), (1, 1), (2, 2)])
def test_arguments_are_in_shared_memory_for_several_cores(
    drop_in: ModuleType, grid: int | None, factor: int
) -> None:
    kernel = drop_in.by_buffer if grid is None else drop_in.by_buffer[grid]
    np.testing.assert_array_equal(kernel(X), X * factor)


def test_dtypes_are_known_to_numpy(drop_in: ModuleType) -> None:
    x = np.ones((128, 8), dtype=drop_in.nl.bfloat16)
    assert drop_in.add(x, x).dtype == np.dtype(drop_in.nl.bfloat16)


def test_simulate_is_a_call(drop_in: ModuleType) -> None:
    simulate = nki().simulate
    np.testing.assert_array_equal(simulate(drop_in.add)(X, Y), X + Y)
    np.testing.assert_array_equal(simulate(drop_in.per_core[2])(X), X * 2)
    np.testing.assert_array_equal(simulate(drop_in.plain)(X, Y), np.maximum(X, Y))


def test_precise_fp_of_the_environment(
    drop_in: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.full((128, 4), 1.001, ml_dtypes.bfloat16)
    assert drop_in.add(x, x).dtype == ml_dtypes.bfloat16
    monkeypatch.setenv("NKI_PRECISE_FP", "0")
    np.testing.assert_array_equal(drop_in.add(x, x), x + x)
    monkeypatch.setenv("NKI_PRECISE_FP", "no")
    with pytest.raises(RunError, match="NKI_PRECISE_FP=no in the environment: expected 0 or 1"):
        drop_in.add(x, x)


@pytest.mark.parametrize("value", ["0", "no"])
def test_a_device_is_refused(
    drop_in: ModuleType, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("NKI_SIMULATOR", value)
    with pytest.raises(CompileError, match="selects a device, but nkic has none"):
        drop_in.add(X, Y)


def test_errors_are_those_of_the_command(drop_in: ModuleType) -> None:
    with pytest.raises(CompileError) as caught:
        drop_in.wrong(X)
    (found,) = caught.value.diagnostics
    assert found.code.slug == "unknown-dtype" and "float33" in str(caught.value)
    assert "drop_in.py" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"platform_targett": "trn2"}, "there is no option `platform_targett=`"),
        ({"mode": "fast"}, "there is no mode 'fast'"),
    ],
)
def test_options_of_jit_are_honoured_or_refused(
    drop_in: ModuleType, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(CompileError, match=message):
        nki().jit(drop_in.plain, **options)


def test_modes_and_flags_of_other_compilers_change_nothing(drop_in: ModuleType) -> None:
    made = nki().jit(drop_in.plain, mode="trace", experimental_flags="skip-a-check")
    np.testing.assert_array_equal(made(X, Y), np.maximum(X, Y))


def test_a_kernel_keeps_its_name_and_documentation(drop_in: ModuleType) -> None:
    assert drop_in.add.__name__ == "add" and drop_in.add.__doc__ == "Return a + b."
    assert repr(drop_in.add[2]) == "<nki kernel add[2]>"
    assert "partial(<function" in repr(nki().jit(functools.partial(drop_in.plain, 1)))


def test_benchmark_gives_simulated_time(drop_in: ModuleType, tmp_path: Path) -> None:
    made = nki().benchmark(warmup=2, iters=5, save_neff_name=str(tmp_path / "a.neff"))(drop_in.add)
    np.testing.assert_array_equal(made(X, Y), X + Y)
    latency = made.benchmark_result.nc_latency
    wanted = made.benchmark_result.result.time_ns / 1000
    assert latency.get_latency_percentile(50) == latency.get_latency_percentile(99) == wanted > 0
    assert (tmp_path / "a.neff").stat().st_size > 0
    with pytest.raises(ValueError, match="between 0 and 100"):
        latency.get_latency_percentile(101)


def test_profile_writes_artifact_and_report(drop_in: ModuleType, tmp_path: Path) -> None:
    made = nki().profile(drop_in.add, working_directory=tmp_path / "p", save_neff_name="k.neff")
    made(X, Y)
    report = json.loads((tmp_path / "p/report.json").read_text())
    assert report["cycles"] == made.benchmark_result.result.cycles
    assert (tmp_path / "p/k.neff").exists()


def test_baremetal_is_a_call(drop_in: ModuleType) -> None:
    np.testing.assert_array_equal(nki().baremetal(drop_in.add)(X, Y), X + Y)
    np.testing.assert_array_equal(nki().baremetal()(drop_in.plain)(X, Y), np.maximum(X, Y))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"save_trace_name": "t.ntff"}, "`save_trace_name=` cannot be honoured"),
        ({"additional_compile_opt": "-O1"}, "options of the vendor's compiler"),
        ({"iters": -1}, "`iters=-1` must be a number of runs"),
        ({"iter": 1}, "there is no option `iter=`"),
    ],
)
def test_what_measuring_cannot_honour(
    drop_in: ModuleType, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(CompileError, match=message):
        nki().benchmark(drop_in.add, **options)


def test_arguments_of_many_dimensions_are_rejected(drop_in: ModuleType) -> None:
    with pytest.raises(CompileError, match="has 9 dimensions; a tensor has at most 8"):
        drop_in.on_trn1(X.reshape((1,) * 7 + X.shape))


def test_kernels_pickle_by_name_with_their_options(drop_in: ModuleType) -> None:
    restored = pickle.loads(pickle.dumps(drop_in.add[4]))
    assert (restored.func, restored.grid) == (drop_in.add.func, 4)
    assert pickle.loads(pickle.dumps(drop_in.add)) is drop_in.add
    assert copy.deepcopy(drop_in.add) is drop_in.add


def test_a_kernel_that_no_name_finds_does_not_pickle(drop_in: ModuleType) -> None:
    def add(a: Any) -> Any:
        return a

    local = nki().jit(add)
    with pytest.raises((pickle.PicklingError, AttributeError), match="add"):
        pickle.dumps(local)
    assert copy.copy(local) is local
