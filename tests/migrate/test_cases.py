"""Pairs of files: a source, and the output of `nkic --migrate` for it (in `expected/`); those of
Beta 1 are in `beta1/` and `expected_beta1/`.

A comment `# left: text` gives the reported reason why its line is unchanged; `# unproven: text`
gives the reason why the old source cannot run. Everything else must compute the same bits.
"""

import re
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from nkic.base.profiles import Profile
from nkic.base.source import SourceFile
from nkic.compiler.loader import Loader
from nkic.compiler.request import parse_options, request_for
from nkic.language.enums import OPERATORS
from nkic.migrate.proof import Proof, Text, prove
from nkic.migrate.rules import with_operators
from nkic.migrate.stage import FileVersion, Migrated, migrate, version_of
from nkic.specialise.inline import read_block
from tests.harness.bless import blessing

HERE = Path(__file__).parent


EXPECTED = {"cases": HERE / "expected", "beta1": HERE / "expected_beta1"}
PATHS = [path for folder in EXPECTED for path in sorted((HERE / folder).glob("*.py"))]
# The tests of a file run together.
each = pytest.mark.parametrize(
    "path", PATHS, ids=[f"{path.parent.name}-{path.stem}" for path in PATHS], scope="module"
)
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


@each
def test_the_new_source_is_the_expected_one(path: Path) -> None:
    made = job_of(path).made
    expected = EXPECTED[path.parent.name] / path.name
    if blessing():
        expected.write_text(made.text, "utf-8")
    assert made.text == expected.read_text("utf-8")


@each
def test_what_is_left_is_said_where_it_stands(path: Path) -> None:
    text = path.read_text("utf-8")
    left = [(d.primary.span.line, d.message) for d in job_of(path).made.left if d.primary]
    wanted = expected_left(text)
    assert [line for line, _ in left] == [line for line, _ in wanted], left
    assert all(part in said for (_, said), (_, part) in zip(left, wanted, strict=True)), left


@each
def test_a_second_time_changes_nothing(path: Path) -> None:
    once = job_of(path).made
    again = Job(once.text).made
    assert again.text == once.text
    assert not again.done


@each
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


# ------------------------------------------------------------------------------------------------
# Sources of Beta 1 with other arguments.


def test_a_branch_that_was_not_reached_computes_the_same() -> None:
    job = Job((HERE / "beta1" / "declared.py").read_text("utf-8"))
    assert [one.level.name for one in job.made.left] == ["WARNING"]  # nothing calls the function
    job.request = replace(job.request, consts={"causal": True})
    assert {one.verdict for one in job.proof().findings} == {"bits"}


def test_operators_of_numpy_are_passed_as_those_of_nl() -> None:
    job = Job((HERE / "beta1" / "operators.py").read_text("utf-8"))
    assert [one.level.name for one in job.made.left] == ["WARNING"]  # callers outside the file
    job.request = replace(job.request, consts={"fold": np.min})
    assert {one.verdict for one in job.proof().findings} == {"bits"}
    assert with_operators(job.request).consts == {"fold": OPERATORS["minimum"]}
    kept = {"fold": "minimum", "kind": np.float32, "size": np.int32(3)}
    assert with_operators(replace(job.request, consts=kept)).consts == kept


@pytest.mark.parametrize("way", range(1, 4))
def test_results_like_what_was_read_are_right_when_they_are_reached(way: int) -> None:
    job = Job((HERE / "beta1" / "unreached.py").read_text("utf-8"))
    job.request = replace(job.request, consts={"way": way, "window": 5})
    assert {one.verdict for one in job.proof().findings} == {"bits"}


def test_what_spilled_by_itself_is_compared_with_what_may_spill() -> None:
    job = Job((HERE / "beta1" / "spilled.py").read_text("utf-8"))
    assert [one.level.name for one in job.made.left] == ["WARNING"]
    found = job.proof().findings
    assert {one.verdict for one in found} == {"bits"}
    assert [one.spills for one in found][:2] == [True, False]  # half of the columns fit in SBUF


@pytest.mark.parametrize("count", [0, 255, 256, 16384, 16639, 65536, 70000])
def test_rows_and_the_part_of_one_are_right_at_their_edges(count: int) -> None:
    job = Job((HERE / "beta1" / "stairs.py").read_text("utf-8"))
    job.request = replace(job.request, consts={"count": count})
    assert {one.verdict for one in job.proof().findings} == {"bits"}
