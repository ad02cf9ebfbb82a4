"""Kernels that a checkout's tests call, with their arguments: further cases of Beta 1.

The tests run unchanged under `nkic.install()`, and each call of a kernel is recorded. The same is
done for NKIBench, whose kernels do not contain their sizes: its own modules create the inputs.
"""

from __future__ import annotations

import importlib.util
import inspect
import io
import json
import sys
import unittest
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any

import numpy as np

import nkic
from nkic.nki.jit import Kernel
from tests.conformance.beta1_cases import Case
from tests.conformance.worst_errors import Draw

TESTS, BENCH = "tests", "bench"


def of_tests(folder: Path, only: str = "test_*.py") -> list[Case]:
    """Return a case for each kernel that the tests in a folder call: the first call of each."""
    nkic.install()
    found: dict[tuple[str, str], Case] = {}
    original = Kernel.run

    def run(self: Kernel, args: Any, kwargs: Mapping[str, Any], **options: Any) -> Any:
        case = _case(TESTS, self, args, kwargs)
        found.setdefault((case.file, case.kernel), case)
        return original(self, args, kwargs, **options)

    Kernel.run = run  # type: ignore[method-assign]
    try:
        for path in sorted(folder.glob(only)):
            _run_tests(path)
    finally:
        Kernel.run = original  # type: ignore[method-assign]
    return list(found.values())


def _run_tests(path: Path) -> None:
    with redirect_stdout(io.StringIO()), suppress(nkic.CompileError, nkic.RunError):
        suite = unittest.defaultTestLoader.loadTestsFromModule(module(path))
        unittest.TextTestRunner(io.StringIO()).run(suite)


def _case(checkout: str, kernel: Kernel, args: Any, kwargs: Mapping[str, Any]) -> Case:
    func = inspect.unwrap(kernel.func)
    bound = inspect.signature(func).bind(*args, **kwargs)
    inputs = dict(bound.arguments)
    how = {} if kernel.grid is None else {"grid": kernel.grid}
    path = Path(func.__code__.co_filename)
    name = f"{path.stem.removeprefix('test_nki_')}: {func.__name__}"
    return Case(name, checkout, path.name, func.__name__, lambda draw: (inputs, None), how=how)


def of_bench(folder: Path) -> Iterator[Case]:
    """Return NKIBench's kernels on the inputs that its own modules make."""
    nkic.install()
    found = json.loads((folder / "summary.json").read_text("utf-8"))
    for name, entry in found.items():
        pairs = [one for case in entry["cases"].values() for one in case["impls"]]
        for pair in pairs:
            yield _of_pair(name, folder / pair["task"], folder / pair["kernel"], pair["kernel"])


def _of_pair(name: str, task_file: Path, kernel_file: Path, file: str) -> Case:
    def build(draw: Draw) -> tuple[dict[str, Any], Any]:
        task, kernel = module(task_file), module(kernel_file).kernel
        np.random.seed(0)
        inputs = task.transform_to_nki_inputs(task.get_inputs())
        func = inspect.unwrap(kernel.func)
        return dict(inspect.signature(func).bind(*inputs).arguments), None

    return Case(name, BENCH, file, "kernel", build)


def module(path: Path) -> Any:
    """Load a Python file as a separate module."""
    spec = importlib.util.spec_from_file_location(f"checkout_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)
    return made
