"""Both ways to evaluate a kernel give the same artifact, byte for byte, and the same places."""

import copy
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkic
from nkic.compiler.request import parse_options
from samples import run
from tests.harness import directives, two_ways
from tests.harness.kernels import words_of

pytestmark = pytest.mark.filterwarnings("ignore")
FOLDERS = [folder for folder in run.folders() if folder.name != "host_section"]  # needs PyTorch
CASES = [case for folder in FOLDERS for case in run.cases(folder)]
FILES = Path(__file__).parent / "files"
# Files about a program's instructions and diagnostics. Files about Python's own errors are left
# out, since nkic does not reword them where Python evaluates, and files about modules, since Python
# imports them.
RECORDED = [
    path
    for folder in (
        *("allocate", "check", "device_loops", "grid", "grids", "lower", "scalars", "scheduling"),
        "tensors",
    )
    for path in sorted((FILES / folder).rglob("*.py"))
]
# In native tracing, the error is found when the loop is left, or when the kernel returns.
LATER = {"break_refused", "return_refused"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_samples(case: run.Case) -> None:
    path = case.folder / "kernel.py"
    args = [f"{name}={kind}" for name, kind in case.args.items()]
    request = two_ways.request_in(path, parse_options(kernel=case.kernel, args=args))
    with two_ways.live_module(path, f"sample_{case.folder.name}") as module:
        kernel = getattr(module, case.kernel)
        native, closed = two_ways.both(kernel, two_ways.as_call(request), request.consts)
    assert native.data is not None, native
    assert native.data == closed.data
    assert native.places == closed.places


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: str(path.relative_to(FILES)))
def test_files(path: Path) -> None:
    case = directives.read_case(path)
    request = two_ways.request_in(path, parse_options(**words_of(case)))
    with two_ways.live_module(path) as module:
        kernel = two_ways.only_kernel(module, request.kernel)
        given = two_ways.as_call(request, kernel)
        native, closed = two_ways.both(kernel, given, request.consts)
    assert native.raised is None and closed.raised is None
    assert native.data == closed.data
    if path.stem not in LATER:
        assert native.places == closed.places


def programs(path: Path) -> list[Any]:
    """Return the kernels of a file by name, each with its arguments:

    `# args name: a=…`, or one tensor.
    """
    text = path.read_text("utf-8")
    said = {found[1]: found[2].split() for found in re.finditer(r"# args (\w+): (.*)", text)}
    names = re.findall(r"^@nki\.jit\ndef (\w+)\(", text, re.MULTILINE)
    return [(path, name, said.get(name, ["a=float32[128,64]"])) for name in names]


AUTHORS = sorted((FILES.parent / "authors").glob("*.py"))
PROGRAMS = [one for path in AUTHORS if path.stem != "arguments" for one in programs(path)]


@pytest.mark.parametrize(
    ("path", "name", "args"), PROGRAMS, ids=[f"{path.stem}-{name}" for path, name, _ in PROGRAMS]
)
def test_python_as_authors_write_it(path: Path, name: str, args: list[str]) -> None:
    """The closed world is compared with Python itself: the same output, and the same program."""
    request = two_ways.request_in(path, parse_options(kernel=name, args=args))
    with two_ways.live_module(path) as module:
        native, closed = two_ways.both(getattr(module, name), two_ways.as_call(request))
    assert native.raised is None and native.data is not None, native
    assert closed.printed == native.printed
    assert closed.data == native.data


def test_arguments_of_calls_are_the_same_in_both() -> None:
    outcomes: list[list[Any]] = [[], []]
    path = FILES.parent / "authors" / "arguments.py"
    with two_ways.live_module(path) as module:
        for way, found in zip(two_ways.WAYS, outcomes, strict=True):
            for kernel, args, *named in module.CASES:
                given = copy.deepcopy((args, *named))
                called = nkic.call(kernel, *given, evaluate=way, cache_dir=None)
                found.append((called.result.outputs, called.artifact.data))
    assert len(outcomes[0]) == 13
    for (native, program), (closed, other) in zip(*outcomes, strict=True):
        assert program == other
        np.testing.assert_equal(native, closed)


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
        native, closed = two_ways.both(module.kernel, two_ways.as_call(request))
    assert native.data is not None and native.data != closed.data
