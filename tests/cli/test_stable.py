"""docs/stable.md lists what there is."""

import re

import nkic
from nkic.cli.common.tool import EXIT_CODES
from tests.harness.commands import ROOT

PAGE = (ROOT / "docs/stable.md").read_text("utf-8")


def test_the_public_names_are_those_of_the_package() -> None:
    part = PAGE.partition("<!-- names: begin -->")[2].partition("<!-- names: end -->")[0]
    assert re.findall(r"`nkic\.(\w+)`", part) == sorted(nkic.__all__)
    assert all(hasattr(nkic, name) for name in nkic.__all__)


def test_the_exit_codes_are_those_of_help() -> None:
    (row,) = re.findall(r"(?m)^\| \[exit codes\].*", PAGE)
    listed = [int(code) for code in re.findall(r"\b\d+\b", row.partition("|")[2].partition("|")[2])]
    assert listed == [int(code) for codes, _ in EXIT_CODES for code in codes.split(", ")]


def test_the_changelog_keeps_its_form() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"(?m)^### (.*)$", text)) <= kinds
    heads = re.findall(r"(?m)^## (.*)$", text)
    assert heads[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", head) for head in heads[1:])
    assert len(text) < 8000
    for page in re.findall(r"\]\((docs/[\w.-]+)\)", text):
        assert (ROOT / page).is_file()
