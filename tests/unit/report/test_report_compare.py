"""Test comparisons of runs: reading them back, changes, and limits."""

import copy
import json
from dataclasses import replace
from typing import Any

import pytest

from nkic.base.diagnostics import UsageFailed
from nkic.report.compare import FIGURES, broken, changes, plain, profile_of, read_profile, rules
from nkic.report.profile import as_json, profile
from nkic.report.verdict import insight
from tests.harness.traced import executable, recorded, run
from tests.unit.report.test_insight import NAIVE
from tests.unit.report.test_report_page import record

SHIFTED = NAIVE.replace("    out = nl.", "    # a line more\n    out = nl.", 1)
COPY = "nisa.tensor_copy(dst=c, src=psum)"
ON_SCALAR = "nisa.tensor_copy(dst=c, src=psum, engine=nisa.engine.scalar)"
ONCE = SHIFTED.replace(COPY, ON_SCALAR)


def made(text: str) -> dict[str, Any]:
    program = executable(text, lhsT="bfloat16[512,256]", rhs="bfloat16[512,1024]")
    result = run(program)
    own = {"cycles": result.cycles, "time_ns": result.time_ns, "dma_bytes": result.dma_bytes}
    facts = {**record(), **own, "engines": {}}
    return profile(insight(recorded(result).trace, None), facts, program.sources)


def test_each_character_is_escaped_once() -> None:
    assert plain("`a_b` < #1 & [c]") == "&#96;a\\_b&#96; &#60; \\#1 &#38; \\[c\\]"
    assert "@all" not in plain("@all, or a@all")


def test_a_profile_is_read_back() -> None:
    whole = made(NAIVE)
    found = read_profile(as_json(whole).encode(), "p.json")
    assert found == profile_of(whole)
    assert found.figures.keys() == FIGURES.keys()
    assert found.figures["instructions"] == sum(whole["mix"].values())
    assert found.figures["hbm_read_bytes"] == 16 * 128 * (128 + 512) * 2
    assert sum(cost.critical_ns for cost in found.lines.values()) == pytest.approx(
        found.figures["time_ns"]
    )


def test_a_profile_of_an_earlier_release_is_read() -> None:
    whole = made(NAIVE)
    earlier = {**whole, "profile_schema_version": "1.0.0", "instructions": whole["mix"]}
    del earlier["mix"]
    assert profile_of(earlier) == profile_of(whole)


def test_the_size_of_a_memory_must_be_known() -> None:
    with pytest.raises(UsageFailed, match="the size of the memory is not known"):
        broken(rules("sbuf_peak>90%"), FIG, None, {})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("profile", "another"),
        ("profile_schema_version", "3.0.0"),
        ("cycles", "many"),
        ("cycles", None),
        ("cycles", True),
        ("lines", [{"path": "k.py"}]),
        ("lines", 3),
        ("mix", []),
    ],
)
def test_what_is_no_profile_is_refused(key: str, value: Any) -> None:
    wrong = {**made(NAIVE), key: value}
    with pytest.raises(UsageFailed) as caught:
        read_profile(json.dumps(wrong).encode(), "p.json")
    assert "`p.json` is not a profile of a run" in caught.value.diagnostics[0].message


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"\xff", b"[" * 100_000, b'{"profile": NaN}'])
def test_other_files_are_refused(data: bytes) -> None:
    with pytest.raises(UsageFailed):
        read_profile(data, "p.json")


def test_lines_meet_by_their_text() -> None:
    found = changes(profile_of(made(NAIVE)), profile_of(made(SHIFTED)))
    assert found.lines == found.moved == found.instructions == []
    assert {row.share for row in found.figures if row.change} == set()
    other = changes(profile_of(made(NAIVE)), profile_of(made(ONCE)))
    names = {row.name.partition(" ")[2] for row in other.lines if row.before is None}
    assert names == {ON_SCALAR}
    assert other.moved == []


def test_changes_are_told_in_every_form() -> None:
    before = profile_of(made(NAIVE))
    after = replace(
        before,
        id="other",
        figures={**before.figures, "cycles": 1100.0 + before.figures["cycles"]},
        instructions={**before.instructions, "memset": 3.0},
    )
    found = changes(before, after)
    text = found.text
    row = next(line for line in text.splitlines() if line.startswith("cycles"))
    assert "+1,100 " in row and row.endswith("%")
    assert next(x for x in text.splitlines() if x.startswith("memset")).split() == [
        "memset", "3", "+3", "new"
    ]  # fmt: skip
    assert "| memset |  | 3 | +3 new |" in found.markdown
    record = json.loads(json.dumps(found.as_json()))
    assert record["instructions"] == [{"name": "memset", "before": None, "after": 3.0}]
    assert "another program" in found.headline


def test_markdown_is_inert() -> None:
    before = made(NAIVE)
    evil = copy.deepcopy(before)
    evil["kernel"] = "<img src=x>|[x](y)`*\x1b"
    text = changes(profile_of(before), profile_of(evil)).markdown
    assert "<img" not in text and "[x]" not in text and "\x1b" not in text


FIG = dict.fromkeys(FIGURES, 1000.0)


@pytest.mark.parametrize(
    ("rule", "value", "is_broken"),
    [
        ("cycles>+2%", 1020, False),
        ("cycles>+2%", 1021, True),
        ("cycles>+0", 1000, False),
        ("cycles>+0", 1001, True),
        ("cycles > 1000", 1000, False),
        ("cycles>1000", 1001, True),
        ("sbuf_peak>1KiB", 1024, False),
        ("sbuf_peak>1KiB", 1025, True),
        ("dma_bytes>+1K", 2025, True),
        ("dma_bytes>+1K", 2024, False),
        ("psum_banks>75%", 6, False),
        ("psum_banks>75%", 7, True),
    ],
)
def test_rules(rule: str, value: float, is_broken: bool) -> None:
    figure = rule.replace(" ", "").partition(">")[0]
    found = broken(rules(rule), {**FIG, figure: value}, FIG, {"psum_banks": 8.0})
    assert bool(found) is is_broken
    for one in found:
        assert one.code.slug == "budget-exceeded" and f"{value:,.0f}" in one.message


@pytest.mark.parametrize(
    "text",
    ["", "cycles", "cycles<3", "cyles>3", "cycles>3%", "cycles>-3", "cycles>1e9", "cycles>1,"],
)
def test_rules_that_are_none(text: str) -> None:
    with pytest.raises(UsageFailed):
        rules(text)
