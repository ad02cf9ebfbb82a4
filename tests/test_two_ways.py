"""Both ways to evaluate a kernel give the same artifact, byte for byte, and the same places."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from nkic.driver.request import parse_options
from samples import run
from tests.harness import directives, two_ways
from tests.harness.kernels import words_of

FOLDERS = [folder for folder in run.folders() if folder.name != "host_section"]  # needs PyTorch
CASES = [case for folder in FOLDERS for case in run.cases(folder)]
FILES = Path(__file__).parent / "files"
# What a program records, and what is said of it. Left out are files about Python's own errors,
# which nobody rewords where Python evaluates, and about modules, which Python imports.
RECORDED = [
    path
    for folder in (
        *("allocate", "check", "device_loops", "grid", "grids", "lower", "scalars", "scheduling"),
        "tensors",
    )
    for path in sorted((FILES / folder).rglob("*.py"))
]
# Of native tracing: the error is found when the loop is left, or when the kernel returns.
LATER = {"break_refused", "return_refused"}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_samples(case: run.Case) -> None:
    path = case.folder / "kernel.py"
    args = [f"{name}={kind}" for name, kind in case.args.items()]
    request = two_ways.request_in(path, parse_options(kernel=case.kernel, args=args))
    with two_ways.live_module(path, f"sample_{case.folder.name}") as module:
        kernel = getattr(module, case.kernel)
        native, closed = two_ways.both(kernel, two_ways.given_of(request), request.consts)
    assert native.data is not None, native
    assert native.data == closed.data
    assert native.places == closed.places


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: str(path.relative_to(FILES)))
def test_files(path: Path) -> None:
    case = directives.read_case(path)
    request = two_ways.request_in(path, parse_options(**words_of(case)))
    with two_ways.live_module(path) as module:
        kernel = two_ways.only_kernel(module, request.kernel)
        given = two_ways.given_of(request, kernel)
        native, closed = two_ways.both(kernel, given, request.consts)
    assert native.raised is None and closed.raised is None
    assert native.data == closed.data
    if path.stem not in LATER:
        assert native.places == closed.places


def test_the_harness_sees_a_difference(tmp_path: Path) -> None:
    path = tmp_path / "differs.py"
    path.write_text(
        "import sys\nimport nki\nimport nki.isa as nisa\nimport nki.language as nl\n\n\n"
        "@nki.jit\ndef kernel(a):\n"
        "    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)\n"
        "    native = type(a).__module__.startswith('nkic.')\n"
        "    nisa.dma_copy(dst=out, src=a)\n"
        "    if native:\n        nisa.dma_copy(dst=out, src=a)\n"
        "    return out\n"
    )
    request = two_ways.request_in(path, parse_options(args=["a=float32[2,2]"]))
    with two_ways.live_module(path) as module:
        native, closed = two_ways.both(module.kernel, two_ways.given_of(request))
    assert native.data is not None and native.data != closed.data
