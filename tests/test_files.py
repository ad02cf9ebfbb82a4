"""Run each file under tests/files as a test case.

A case is a kernel with its expected diagnostics, or a printed program with the expected results of
some stages. `make bless` accepts new output.
"""

from pathlib import Path

import pytest

from tests.harness.bless import blessing, compare_file
from tests.harness.directives import BadCase, Expected, expectations, read_case
from tests.harness.kernels import form, run_kernel
from tests.harness.match import differences
from tests.harness.programs import SEPARATOR, run_case

FILES = Path(__file__).with_name("files")
KERNELS = sorted(path for path in FILES.rglob("*.py") if "helpers" not in path.parts)
PROGRAMS = sorted(FILES.rglob("*.ir"))


def name(path: Path) -> str:
    return str(path.relative_to(FILES))


@pytest.mark.parametrize("path", KERNELS, ids=name)
def test_kernel(path: Path) -> None:
    case = read_case(path)
    compiled, said = run_kernel(case)
    assert differences(said, case.expected, path.name) == []
    errors = [one for one in case.expected if one.level == "error"]
    assert (compiled is None) == bool(errors)
    if compiled is not None and "emit" in case.words:
        golden = path.with_name(f"{path.stem}.{case.words['emit']}.expected")
        compare_file(golden, form(case, compiled))


@pytest.mark.parametrize("path", PROGRAMS, ids=name)
def test_program(path: Path) -> None:
    compare_file(path, run_case(path))


def test_there_are_cases() -> None:
    assert len(KERNELS) >= 8
    assert len(PROGRAMS) >= 2
    assert all(SEPARATOR in path.read_text(encoding="utf-8") for path in PROGRAMS) or blessing()


def test_expectations_are_read() -> None:
    text = "a  # error[NKI0312]: 256 partitions\n# warning@+1[slow]: hm  \nb\n# an error: no\n"
    assert list(expectations(text, Path("k.py"))) == [
        Expected(1, "error", "NKI0312", "256 partitions"),
        Expected(3, "warning", "slow", "hm"),
    ]


@pytest.mark.parametrize("line", ["# error[NKI0312] no colon", "# error@1[x]: y", "# error[]: y"])
def test_malformed_expectations_are_errors(line: str) -> None:
    with pytest.raises(BadCase):
        list(expectations(line, Path("k.py")))
