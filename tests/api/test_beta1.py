"""Values of Beta 1 (`neuronxcc.nki`) kernels; both ways to evaluate a kernel give one program."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import nkic.nki
from nkic import api
from nkic.artifact.read import read
from nkic.language.beta1 import MODULES as BETA1
from nkic.language.beta1 import names
from nkic.language.namespace import names_of
from nkic.language.provide import TensorAnnotation
from tests.api.conftest import installed

KERNELS = "tests.api.beta1_kernels"
FILE = Path(__file__).with_name("beta1_kernels.py")
RNG = np.random.default_rng(3)
WAYS = ["native", "closed"]


@pytest.fixture(scope="module")
def k() -> Iterator[ModuleType]:
    with installed(KERNELS) as module:
        yield module


def f32(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def both(kernel: Any, *args: Any, **options: Any) -> Any:
    """Return a kernel's results; both ways must give the same artifact, byte for byte."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [
            api.call(kernel.func, args, {}, nki="beta1", evaluate=way, **options) for way in WAYS
        ]
    first, second = found
    assert first.artifact.data == second.artifact.data
    return first.values


def test_a_grid_of_instances(k: ModuleType) -> None:
    a, b = f32(256, 512), f32(256, 512)
    np.testing.assert_array_equal(both(k.added, a, b, grid=(2, 2)), a + b)
    np.testing.assert_array_equal(k.added[2, 2](a, b), a + b)


@pytest.mark.parametrize("way", WAYS)
def test_the_version_of_a_function_is_that_of_its_file(k: ModuleType, way: str) -> None:
    """Without a version option, a kernel or plain function uses the version of its file."""
    a, b = f32(256, 512), f32(256, 512)
    np.testing.assert_array_equal(api.call(k.added[2, 2], (a, b), evaluate=way).values, a + b)
    found = api.call(k.added.func, (a, b), grid=(2, 2), evaluate=way)
    np.testing.assert_array_equal(found.values, a + b)
    with pytest.raises(api.CompileError, match=r"NKI 0\.6 has no `neuronxcc"):
        api.call(k.added[2, 2], (a, b), evaluate=way, nki="0.6")


@pytest.mark.parametrize("shape", [(128, 512), (200, 512), (1, 3), (129, 511)])
def test_masks_that_are_bounds(k: ModuleType, shape: tuple[int, int]) -> None:
    a = f32(*shape)
    np.testing.assert_array_equal(both(k.doubled_rows, a), a * 2)


def test_masks_that_are_no_box(k: ModuleType) -> None:
    a = f32(64, 64)
    wanted = np.tril(a * np.float32(3))
    np.fill_diagonal(wanted, np.diagonal(a))
    np.testing.assert_array_equal(both(k.lower_part, a), wanted)


def test_blocks_and_accumulation(k: ModuleType) -> None:
    a, b = f32(384, 64), f32(384, 256)
    np.testing.assert_allclose(both(k.product, a, b), a.T @ b, rtol=1e-4, atol=1e-4)


def test_index_expressions_walk_windows(k: ModuleType) -> None:
    a = f32(4, 6, 9)
    wanted = a.reshape(4, 2, 3, 3, 3).max(axis=(2, 4))
    np.testing.assert_array_equal(both(k.pooled, a, 3), wanted)


def test_a_sum_over_a_loop(k: ModuleType) -> None:
    a = f32(4, 2, 128, 32)
    np.testing.assert_allclose(both(k.summed, a), a.sum(axis=0), rtol=1e-5, atol=1e-5)


def test_tiles_that_the_kernel_places(k: ModuleType) -> None:
    a = f32(4, 128, 64)
    np.testing.assert_allclose(both(k.placed, a), a * a, rtol=1e-5)


def test_an_argument_is_the_result(k: ModuleType) -> None:
    a, out = f32(128, 16), np.zeros((128, 16), np.float32)
    k.written(a, out)
    np.testing.assert_allclose(out, (a - 1) * 4, rtol=1e-6)


def test_rows_that_a_tile_names(k: ModuleType) -> None:
    a, rows = f32(100, 32), RNG.permutation(100)[:64].astype(np.int32)
    np.testing.assert_array_equal(both(k.gathered, a, rows[:, None]), a[rows])


def test_what_was_assigned_keeps_its_value(k: ModuleType) -> None:
    a = f32(128, 16)
    first = a + np.float32(1)
    np.testing.assert_array_equal(both(k.aliased, a), [first, first * np.float32(10)])


def test_kernels_that_functions_make(k: ModuleType) -> None:
    a = f32(128, 8)
    np.testing.assert_array_equal(both(k.scaled_by(3), a), a * 3)


def test_a_function_prepares_the_indices_of_its_kernel(k: ModuleType) -> None:
    a = f32(16, 40)
    lower = np.tril(np.ones((16, 16), np.float32))
    lower[0] = np.float32(1 / 16)
    np.testing.assert_array_equal(k.windows(16)(a), a[:, 1:33:2] * lower)
    artifact = nkic.compile(FILE, name="windows(16).kernel", inputs={"a": a})
    result = nkic.run(artifact, {"a": a})
    np.testing.assert_array_equal(result.outputs["output_0"], a[:, 1:33:2] * lower)


@pytest.mark.parametrize(
    "name", ["launching(3)._kernel", "launching(3)", "scaled_by(3)", "Scaling.kernel"]
)
def test_kernels_inside_functions_and_classes(k: ModuleType, name: str) -> None:
    a = f32(16, 40)
    result = nkic.run(nkic.compile(FILE, name=name, inputs={"a": a}), {"a": a})
    np.testing.assert_array_equal(result.outputs["output_0"], 3 * a)
    np.testing.assert_array_equal(k.launching(3)[0](a), 3 * a)
    np.testing.assert_array_equal(k.Scaling.kernel(a), 3 * a)


def test_a_method_that_is_not_there_is_named() -> None:
    with pytest.raises(nkic.CompileError, match="did you mean `kernel`"):
        nkic.compile(FILE, name="Scaling.kernal", inputs={"a": f32(16, 40)})


@pytest.mark.parametrize("name", ["skipping", "stacked", "automatic"])
def test_decorators_of_the_compiler_make_kernels(k: ModuleType, name: str) -> None:
    a = f32(16, 40)
    np.testing.assert_array_equal(vars(k)[name](a), 2 * a)
    result = nkic.run(nkic.compile(FILE, name=name, inputs={"a": a}), {"a": a})
    np.testing.assert_array_equal(result.outputs["output_0"], 2 * a)


@pytest.mark.parametrize("module", BETA1)
def test_every_name_of_a_kernel_is_one_of_host_code(k: ModuleType, module: str) -> None:
    """A name that a kernel has and host code lacks, or has as None, breaks whole files."""
    host = importlib.import_module(module)
    inside = {**names.namespaces(TensorAnnotation())}[module]
    for name in names_of(inside):
        assert (getattr(host, name, None) is None) is (getattr(inside, name) is None), name


def test_numbers_are_stored_to_slices_of_any_rank(k: ModuleType) -> None:
    wanted = np.ones((4, 8), np.float32)
    wanted[1, 2:5] = 2
    wanted[0:3, 7] = 3
    wanted[3, 1] = 4
    wanted[2, :3] = 5
    np.testing.assert_array_equal(both(k.numbers_in_rows, f32(4, 8)), wanted)


def test_values_of_keywords_that_the_kernel_does_not_name(k: ModuleType) -> None:
    a = f32(16, 40)
    wanted = np.pad(2 * a, ((0, 0), (1, 2)))
    given: dict[str, Any] = {"padding": ((0, 0), (1, 2)), "scale": 2.0}
    np.testing.assert_array_equal(k.padded(a, **given), wanted)
    compiled = [nkic.compile(k.padded, inputs={"a": a}, consts=given, evaluate=way) for way in WAYS]
    called = api.call(k.padded.func, (a,), given).artifact
    assert compiled[0].data == compiled[1].data == called.data
    from_file = nkic.compile(FILE, name="padded", inputs={"a": a}, consts=given)
    np.testing.assert_array_equal(nkic.run(from_file, {"a": a}).outputs["output_0"], wanted)
    for kernel in (k.padded, FILE):
        with pytest.raises(nkic.CompileError, match="has no argument `b`"):
            name = "padded" if kernel is FILE else None
            nkic.compile(kernel, name=name, inputs={"a": a, "b": a}, consts=given)


def test_bodies_are_traced_once(k: ModuleType) -> None:
    a = f32(2, 128, 8)
    np.testing.assert_array_equal(both(k.traced_once, a), a * 2)


def test_numbers_that_are_put_back_are_reported(k: ModuleType) -> None:
    with pytest.warns(nkic.NkicWarning, match="NKI0222: `factor` is a number that") as said:
        api.call(k.traced_once.func, [f32(2, 128, 8)], {}, nki="beta1", evaluate="native")
    assert len(said) == 1
    a = f32(128, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = k.counters(a)
    np.testing.assert_allclose(found, [a + 3, a + 6], rtol=1e-5)


def test_tiles_are_returned_from_the_chip(k: ModuleType) -> None:
    found, rest = both(k.from_the_chip, a := f32(5, 4))
    wanted = 10 * np.arange(3.0)[:, None] + np.arange(4)
    np.testing.assert_array_equal(found, wanted)
    a[1] = wanted[2]
    np.testing.assert_array_equal(rest, a)


def test_what_a_mask_hides_of_a_result_is_a_warning(k: ModuleType) -> None:
    with pytest.warns(nkic.NkicWarning, match=r"nothing writes \[100:128, 0:8\]"):
        found = k.in_part(a := f32(128, 8))
    np.testing.assert_array_equal(found[:100], a[:100])
    with pytest.raises(nkic.CompileError, match="NKI0257"):
        nkic.compile(FILE, name="in_part", inputs={"a": a})


def test_products_that_a_mask_hides_as_a_whole(k: ModuleType) -> None:
    a = f32(2, 128, 128)
    products = [one.T @ one for one in a]
    found = both(k.lower_sums, a)
    np.testing.assert_allclose(found, [products[0], sum(products)], rtol=1e-4, atol=1e-3)


def test_masks_that_are_no_bounds_where_engines_turn_and_fold(k: ModuleType) -> None:
    a, b = f32(128, 128), f32(128, 128)
    row, column = np.indices((128, 128))
    inside = row >= column + 3
    out, sums = both(k.triangles, a, b)
    product = np.where(inside & (row < 100), a.astype(float).T @ b, 0)
    np.testing.assert_allclose(out[0], product, rtol=1e-4, atol=1e-4)
    turned = np.where(inside, a, 0).T
    np.testing.assert_array_equal(out[1], turned)
    np.testing.assert_array_equal(out[2], turned)
    total = np.where(inside | (row < 3), a, 0).sum(axis=1)
    np.testing.assert_allclose(sums[0, :, 0], total, rtol=1e-4, atol=1e-4)
    greatest = np.where(inside, a, -3.4e38).max(axis=1)
    np.testing.assert_allclose(sums[1, :, 0], greatest, rtol=1e-6)
    np.testing.assert_allclose(
        sums[2, :, 0], np.where(inside, a, 0).sum(axis=0), rtol=1e-4, atol=1e-4
    )


def test_places_as_predicates_and_values(k: ModuleType) -> None:
    a = f32(64, 64)
    row, column = np.indices((64, 64))
    causal = np.where(row >= column, a, np.float32(-9))
    np.testing.assert_array_equal(both(k.selected, a), [causal, 2 * row - column])


def test_what_masks_hide_of_results_stays_as_it_was(k: ModuleType) -> None:
    a, b = f32(64, 32), f32(64, 32)
    chosen = (RNG.random((64, 32)) < 0.5).astype(np.uint8)
    row, column = np.indices((64, 32))
    some, rows = (row >= column) & (row < 60), (row < 50) & (column < 20)
    inside = (row >= 2 * column) & (row < 40)
    made = np.where(rows, np.exp(a), 0)
    made[60:], made[:, 20:], made[32:60] = 3, 4, 5
    wanted = [
        np.where(rows, np.where(chosen, a, b), 7),
        np.where(some, np.where(chosen, a, 2), 7),
        np.where(some, a, 7),
        np.where(rows, np.where(inside, a, 0), 7),
        np.where(rows, 1, 7),
        made,
    ]
    np.testing.assert_allclose(both(k.kept_elsewhere, a, b, chosen), wanted, rtol=1e-5)


def test_means_under_masks(k: ModuleType) -> None:
    a = f32(64, 32)
    row, column = np.indices((64, 32))
    seen = np.ma.array(a, mask=row < column)
    wanted = [np.full(64, 7), seen.mean(axis=1), seen.var(axis=1)]
    wanted[0][:32] = 0
    found = both(k.means, a)[..., 0]
    np.testing.assert_allclose(found[0, :32], a[:32, :10].mean(axis=1), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(found[0, 32:], 7)
    np.testing.assert_allclose(found[1:], wanted[1:], rtol=1e-4, atol=1e-5)


def test_searches_under_masks_that_are_no_bounds(k: ModuleType) -> None:
    a = f32(64, 64)
    row, column = np.indices((64, 64))
    seen = column + 8 > row
    order = np.argsort(np.where(seen, -a, np.inf), axis=1)[:, :8]
    out, rest = both(k.searches, a)
    np.testing.assert_array_equal(out[0], np.take_along_axis(a, order, axis=1))
    np.testing.assert_array_equal(out[1], order)
    wanted = np.where(seen, a, 0)
    np.put_along_axis(wanted, order, np.float32(-5), axis=1)
    np.testing.assert_array_equal(rest, wanted)


def test_masks_between_brackets_hide_sides_of_products(k: ModuleType) -> None:
    a, b = f32(128, 64), f32(128, 96)
    wanted = np.zeros((64, 96))
    for rows, columns in ((128, 80), (50, 81)):
        wanted[:40, :columns] += a[:rows, :40].astype(float).T @ b[:rows, :columns]
    np.testing.assert_allclose(both(k.hidden_sides, a, b), wanted, rtol=1e-4, atol=1e-4)
    wanted = a[:, :40].astype(float).T @ b[:, :80]
    np.testing.assert_allclose(both(k.hidden_columns, a, b), wanted, rtol=1e-4, atol=1e-4)


def test_zeros_that_products_are_added_to_in_parts(k: ModuleType) -> None:
    a = f32(64, 64)
    wanted = 2 * a.astype(float).T @ a
    wanted[:, 48:] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = k.sums_in_parts(a)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_instances_are_counted(k: ModuleType) -> None:
    found = both(k.counted, np.zeros((1, 8), np.float32), grid=(2, 2))
    np.testing.assert_array_equal(found[:, :, 0, 0], [[4, 2, 4]] * 4)


@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.filterwarnings("ignore::nkic.NkicWarning")  # zeros that products accumulate into
def test_loops_on_the_device(k: ModuleType, count: int) -> None:
    a = f32(3, 128, 64)
    given = (a, np.array([[count]], np.int32))
    called = api.call(k.as_often_as_asked.func, given, {}, nki="beta1", evaluate="closed")
    (total, added), products = called.values
    np.testing.assert_allclose(total, a[:count].sum(axis=0), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(added, np.full((128, 64), count), atol=1e-5)
    wanted = sum((one.astype(float).T @ one for one in a[:count]), np.zeros((64, 64)))
    np.testing.assert_allclose(products, wanted, rtol=1e-4, atol=1e-3)
    with pytest.raises(nkic.CompileError, match="Python's own range cannot use it"):
        k.as_often_as_asked(*given)


def test_a_slice_alone_is_one_index(k: ModuleType) -> None:
    a = f32(100, 8)
    np.testing.assert_array_equal(both(k.a_slice_alone, a), a[34:66])


def test_forms_of_the_guides(k: ModuleType) -> None:
    a, batches = f32(129, 513), f32(4, 128, 256)
    places = np.array([[6]], np.int32)
    found, part, chosen, copied = both(k.forms_of_the_guides, a, batches, places)
    np.testing.assert_allclose(found, 1 / a, rtol=1e-5)
    np.testing.assert_array_equal(part, [batches[1].reshape(128, 16, 16)[:, :8]] * 2)
    np.testing.assert_array_equal(chosen, batches[2])
    np.testing.assert_array_equal(copied, batches)


def test_the_file_chooses_the_version() -> None:
    a, b = f32(128, 256), f32(128, 256)
    artifact = nkic.compile(FILE, name="added", inputs={"a": a, "b": b}, grid=(1, 1))
    result = nkic.run(artifact, {"a": a, "b": b})
    np.testing.assert_array_equal(result.outputs["output_0"], a + b)
    with pytest.raises(nkic.CompileError, match=r"was removed in NKI 0\.4"):
        nkic.compile(FILE, name="added", inputs={"a": a, "b": b}, nki="0.6")


def test_simulate_and_measure(k: ModuleType) -> None:
    nki = importlib.import_module("neuronxcc.nki")
    a, b = f32(128, 256), f32(128, 256)
    np.testing.assert_array_equal(nki.simulate_kernel(k.added[1, 1], a, b), a + b)
    measured = nki.benchmark(warmup=1, iters=1)(k.added)[1, 1]
    np.testing.assert_array_equal(measured(a, b), a + b)
    assert measured.benchmark_result.nc_latency.get_latency_percentile(50) > 0


def test_options_of_the_vendors_tools_are_honoured_or_refused(
    k: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nki = importlib.import_module("neuronxcc.nki")
    monkeypatch.chdir(tmp_path)
    a, b = f32(128, 256), f32(128, 256)
    measured = nki.benchmark(
        save_neff_name="kernel.neff",
        save_trace_name="profile.ntff",
        additional_compile_opt="--disable-dge --logical-nc-config=1 --target trn2",
    )(k.added)
    np.testing.assert_array_equal(measured[1, 1](a, b), a + b)
    assert "<html" in Path("profile.ntff.html").read_text()
    notes = read(Path("kernel.neff").read_bytes()).meta
    assert notes["dge"] == "off"
    assert "dge" not in read(api.call(k.added[1, 1], (a, b)).artifact.data).meta
    monkeypatch.setenv("NEURON_CC_FLAGS", "--disable-dge")
    assert read(api.call(k.added[1, 1], (a, b)).artifact.data).meta["dge"] == "off"
    from_file = nkic.compile(FILE, name="skipping", inputs={"a": a})
    assert read(from_file.data).meta["dge"] == "off"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"itres": 3}, "there is no option `itres=`"),
        ({"additional_compile_opt": "--auto-cast all"}, "`--auto-cast` is an option of the vendor"),
        ({"additional_compile_opt": "--lnc 3"}, "`--lnc` is an option"),
        ({"additional_compile_opt": "--target=trn9"}, "there is no target `trn9`"),
    ],
)
def test_options_that_cannot_be_honoured(
    k: ModuleType, options: dict[str, Any], message: str
) -> None:
    nki = importlib.import_module("neuronxcc.nki")
    with pytest.raises(nkic.CompileError, match=message):
        nki.benchmark(**options)(k.added)


def test_options_of_passes_have_no_effect(k: ModuleType) -> None:
    nki = importlib.import_module("neuronxcc.nki")
    with pytest.warns(nkic.NkicWarning, match="`--internal-skip-x` has no effect: it is about a"):
        nki.baremetal(additional_compile_opt="--internal-skip-x")(k.added)
    with pytest.warns(nkic.NkicWarning, match="`profile_nth=` has no effect: every run"):
        nki.profile(profile_nth=2)(k.added)
