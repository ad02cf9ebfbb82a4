"""docs/neff.md agrees with the code, and files of earlier versions stay readable."""

import re
from dataclasses import asdict
from pathlib import Path

import pytest

from nkic.artifact import container
from nkic.artifact.encode import write
from nkic.artifact.format import LIMITS, ROLES, SECTIONS, CodeRecord, Layout
from nkic.artifact.read import load
from nkic.machine.dtypes import DTYPES
from nkic.machine.targets import BUFFER_CODES, ENGINE_CODES
from tests.harness.executables import ROWS, sample
from tests.harness.tamper import refused

PROJECT = Path(__file__).resolve().parents[3]
TEXT = (PROJECT / "docs" / "neff.md").read_text("utf-8")
ARTIFACTS = PROJECT / "tests" / "artifacts"


def pairs(pattern: str) -> dict[str, str]:
    return dict(re.findall(pattern, TEXT))


def test_limits() -> None:
    published = pairs(r"\| `(\w+)` \| (\d+) \|")
    assert {name: str(value) for name, value in asdict(LIMITS).items()} == published


def test_numbers_of_dtypes_buffers_and_engines() -> None:
    numbers = {dtype.name: str(dtype.code) for dtype in DTYPES.values()}
    numbers |= {buffer.value: str(code) for buffer, code in BUFFER_CODES.items()}
    numbers |= {engine.value: str(code) for engine, code in ENGINE_CODES.items()}
    found = pairs(r"\| (\w+) \| (\d+) (?=\|)")
    assert {name: found.get(name) for name in numbers} == numbers
    sizes = {name: size for name, _, size in re.findall(r"\| (\w+) \| (\d+) \| (\d+) ", TEXT)}
    assert sizes == {dtype.name: str(dtype.size) for dtype in DTYPES.values()}


@pytest.mark.parametrize("kinds", [Layout, CodeRecord])
def test_kinds_of_records(kinds: type[Layout] | type[CodeRecord]) -> None:
    for kind in kinds:
        assert f"| {kind.value} {kind.name.lower()} | " in TEXT


def test_sections_roles_and_header() -> None:
    order = [
        name for name in re.findall(r"^\| `(\w+)` \| ", TEXT, re.MULTILINE) if name in SECTIONS
    ]
    assert tuple(order) == SECTIONS
    assert ", ".join(f"{number} {role}" for number, role in enumerate(ROLES)) in TEXT
    keys = re.findall(r"^\| `(\w+)` \| ", TEXT.partition("## Sections")[0], re.MULTILINE)
    assert keys == [*container.Header._fields, "digest"]
    assert container.PREFIX.hex(" ") in TEXT


FROZEN = sorted(ARTIFACTS.glob("v*/*.neff"))


def test_there_are_frozen_files() -> None:
    assert [path.parent.name for path in FROZEN] == ["v1.0", "v2.0"]


def test_files_of_another_major_version_are_refused_by_name() -> None:
    number, message = refused(lambda: load(FROZEN[0].read_bytes(), rows=ROWS))
    assert number == "NKI0803"
    assert "format version 1.0, made by nkic" in message
    assert "only major version 2 can be read" in message


@pytest.mark.parametrize("path", FROZEN[1:], ids=lambda path: path.parent.name)
def test_frozen_files_of_this_major_version_are_read(path: Path) -> None:
    """Never change these files. A new version of the format adds one."""
    data = path.read_bytes()
    assert load(data, rows=ROWS) == sample()
    assert container.unpack(data).header.id == container.unpack(write(sample())).header.id
