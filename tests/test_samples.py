"""Run the samples through the two commands: right against NumPy, and the same in any order."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from samples import run
from samples.common import BF16, from_bf16, to_bf16
from tests.harness import warm

FOLDERS = run.folders()
CASES = [case for folder in FOLDERS for case in run.cases(folder)]
every_folder = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.name))
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))


@pytest.fixture(scope="module", autouse=True)
def warm_commands() -> Iterator[None]:
    """Fork the samples' commands instead of starting Python for each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("samples.run.subprocess", SimpleNamespace(run=forked))
        yield


def forked(command: Sequence[str], *, cwd: Path, **_: object) -> subprocess.CompletedProcess[str]:
    python, flag, module, *words = command
    assert (python, flag) == (sys.executable, "-m")
    tools = {"nkic.cli.nkic": warm.NKIC, "nkic.cli.nki_run": warm.NKI_RUN}
    return warm.run_text(tools[module], *words, cwd=cwd)


class Builds(NamedTuple):
    """One case in the order of the scheduler, and in program order."""

    case: run.Case
    scheduled: run.Result
    serial: run.Result


@pytest.fixture(scope="module", params=CASES, ids=lambda case: str(case.name))
def builds(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Builds:
    case: run.Case = request.param
    workdir = tmp_path_factory.mktemp("sample")
    return Builds(case, run.run_sample(case, workdir), run.run_sample(case, workdir, "--serial"))


def test_results_are_right(builds: Builds) -> None:
    assert max(share for _, share in run.errors(builds.case, builds.scheduled.outputs)) <= 1


def test_results_do_not_depend_on_the_order(builds: Builds) -> None:
    scheduled, serial = builds.scheduled.outputs, builds.serial.outputs
    assert list(scheduled) == list(serial)
    for name, array in scheduled.items():
        assert array.dtype == serial[name].dtype
        assert array.tobytes() == serial[name].tobytes(), name


def test_overlap_does_not_cost_time(builds: Builds) -> None:
    assert 0 < builds.scheduled.report["cycles"] <= builds.serial.report["cycles"]


def test_a_sample_with_a_warning_does_not_pass(tmp_path: Path) -> None:
    (case,) = [one for one in CASES if one.name == "01_tensor_add"]
    text = (case.folder / "kernel.py").read_text(encoding="utf-8")
    head, _, rest = text.partition("    assert ")
    unused = "    idle = nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.sbuf)\n"
    assert rest
    (tmp_path / "kernel.py").write_text(f"{head}{unused}    assert {rest}", encoding="utf-8")
    with pytest.raises(run.ToolError, match="NKI0530"):
        run.call(run.compile_command(replace(case, folder=tmp_path), tmp_path / "kernel.neff"))


@every_folder
def test_reference_shares_nothing_with_the_kernel(folder: Path) -> None:
    tree = ast.parse((folder / "reference.py").read_text(encoding="utf-8"))
    imported = {
        name
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [str(node.module)]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported <= {"numpy", "samples.common"}
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert functions == ["inputs", "reference"]


@every_folder
def test_inputs_are_the_blocks_arguments_and_never_change(folder: Path) -> None:
    first, again = (run.load_reference(folder).inputs() for _ in range(2))
    assert {name: _signature(array) for name, array in first.items()} == {
        name: arg.replace(" ", "") for name, arg in run.read_block(folder)["args"].items()
    }
    assert all(array.tobytes() == again[name].tobytes() for name, array in first.items())


def _signature(array: NDArray[np.generic]) -> str:
    dtype = "bfloat16" if array.dtype == BF16 else array.dtype.name
    return f"{dtype}[{','.join(map(str, array.shape))}]"


@every_case
def test_references_compute_in_float64_and_tolerances_hide_no_tile(case: run.Case) -> None:
    tolerance = run.load_reference(case.folder).TOLERANCE
    assert tolerance["rtol"] <= 2**-7
    for array in run.expected(case):
        assert array.dtype == np.float64
        assert np.isfinite(array).all()
        assert tolerance["atol"] <= 0.01 * np.sqrt(np.mean(np.square(array)))


@every_case
def test_a_wrong_element_is_noticed(case: run.Case) -> None:
    outputs = {str(i): array.copy() for i, array in enumerate(run.expected(case))}
    assert all(share <= 1 for _, share in run.errors(case, outputs))
    last = outputs[str(len(outputs) - 1)]
    last.flat[-1] += 0.1 * np.abs(last).max()
    assert run.errors(case, outputs)[-1][1] > 1
    last.flat[-1] = np.nan
    assert run.errors(case, outputs)[-1][1] > 1


@every_folder
def test_kernel_files_are_python_and_hold_their_kernels(folder: Path) -> None:
    tree = ast.parse((folder / "kernel.py").read_text(encoding="utf-8"))
    marked = {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and any(ast.unparse(decorator) == "nki.jit" for decorator in node.decorator_list)
    }
    assert marked == {case.kernel for case in CASES if case.folder == folder}


def test_host_section_compiles_where_importing_torch_fails(tmp_path: Path) -> None:
    """Nothing of the user's file is executed: a torch that explodes does no harm."""
    (tmp_path / "torch.py").write_text("raise SystemExit('torch was imported')\n")
    [case] = run.cases(run.SAMPLES / "host_section")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    neff = tmp_path / "kernel.neff"
    done = subprocess.run(
        run.compile_command(case, neff),
        cwd=run.SAMPLES.parent,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert neff.stat().st_size > 0


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=64))
@settings(max_examples=200)
def test_to_bf16_rounds_as_ml_dtypes_does(bits: list[int]) -> None:
    values = np.array(bits, dtype=np.uint32).view(np.float32)
    raw = to_bf16(values)
    with np.errstate(invalid="ignore", over="ignore"):
        wanted = values.astype(ml_dtypes.bfloat16)
    assert raw.dtype == BF16
    numbers = ~np.isnan(values)
    assert (raw.view(np.uint16) == wanted.view(np.uint16))[numbers].all()
    assert np.isnan(from_bf16(raw)[~numbers]).all()


def test_every_bf16_survives_the_way_through_float32() -> None:
    raw = np.arange(2**16, dtype=np.uint16).view(BF16)
    values = from_bf16(raw)
    numbers = ~np.isnan(values)
    assert (to_bf16(values).view(np.uint16) == raw.view(np.uint16))[numbers].all()
    assert np.isnan(from_bf16(to_bf16(values))[~numbers]).all()
