"""Pairs of files: a source, and the output of `nkic --migrate` for it (in `expected/`).

A comment `# left: text` gives the reported reason why its line is unchanged; `# unproven: text`
gives the reason why the old source cannot run. Everything else must compute the same bits.
"""

import re
from functools import lru_cache
from pathlib import Path

import pytest

from nkic.base.profiles import Profile
from nkic.base.source import SourceFile
from nkic.compiler.loader import Loader
from nkic.compiler.request import parse_options, request_for
from nkic.migrate.proof import Proof, Text, prove
from nkic.migrate.stage import FileVersion, Migrated, migrate, version_of
from nkic.specialise.inline import read_block
from tests.harness.bless import blessing

HERE = Path(__file__).parent


def each(folder: str) -> pytest.MarkDecorator:
    """Return the mark of a test of every file of a folder; the tests of a file run together."""
    paths = sorted((HERE / folder).glob("*.py"))
    return pytest.mark.parametrize("path", paths, ids=lambda path: path.stem, scope="module")


GOAL = Profile.NKI_0_7


class Job:
    """A source text and its migration."""

    def __init__(self, text: str) -> None:
        self.loader = Loader.beside("kernel.py")
        self.source: SourceFile = self.loader.main("kernel.py", text.encode())
        self.request = request_for(self.source, parse_options(), {})
        said = read_block(self.source).profile
        self.speech: FileVersion = version_of(self.source, self.request, self.loader, said, GOAL)
        self.made: Migrated = migrate(self.source, self.speech.facts, self.speech.start, GOAL)

    def proof(self) -> Proof:
        loader = Loader.beside("kernel.py")
        new = loader.main("kernel.py", self.made.text.encode())
        old = Text(self.source, self.loader, self.speech.profile)
        return prove(old, Text(new, loader, GOAL), self.request)


@lru_cache(maxsize=2)
def job_of(path: Path) -> Job:
    """Return the migration of a file, which its tests share."""
    return Job(path.read_text("utf-8"))


def expected_left(text: str) -> list[tuple[int, str]]:
    lines = enumerate(text.splitlines(), 1)
    return [(n, found[1]) for n, line in lines if (found := re.search(r"# left: (.*)", line))]


@each("cases")
def test_the_new_source_is_the_expected_one(path: Path) -> None:
    made = job_of(path).made
    expected = HERE / "expected" / path.name
    if blessing():
        expected.write_text(made.text, "utf-8")
    assert made.text == expected.read_text("utf-8")


@each("cases")
def test_what_is_left_is_said_where_it_stands(path: Path) -> None:
    text = path.read_text("utf-8")
    left = [(d.primary.span.line, d.message) for d in job_of(path).made.left if d.primary]
    wanted = expected_left(text)
    assert [line for line, _ in left] == [line for line, _ in wanted], left
    assert all(part in said for (_, said), (_, part) in zip(left, wanted, strict=True)), left


@each("cases")
def test_a_second_time_changes_nothing(path: Path) -> None:
    once = job_of(path).made
    again = Job(once.text).made
    assert again.text == once.text
    assert not again.done


@each("cases")
def test_old_and_new_compute_the_same(path: Path) -> None:
    text = path.read_text("utf-8")
    job = job_of(path)
    if any(expected_left(text)) and "# unproven" not in text:
        return  # the migration's target version rejects it
    proof = job.proof()
    unproven = re.search(r"# unproven: (.*)", text)
    if unproven is not None:
        assert not proof.findings
        assert any(unproven[1] in one.message for one in proof.unproven), proof.unproven
        return
    assert proof.holds, proof
    assert {one.verdict for one in proof.findings} == {"bits"}
