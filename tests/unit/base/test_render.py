"""Test the exact form of diagnostics; no text or span may break a writer."""

import doctest
import json
import re
import unicodedata
from dataclasses import replace
from importlib import resources
from textwrap import dedent

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nkic.base.diagnostics import Code, Diagnostic, Fix, Label, Level, make
from nkic.base.render import FORMATS, PLAIN, Paint, render, summary, text
from nkic.base.source import SourceFile, Span

SLUG = "bad-value"  # any code serves: these tests check the layout
KERNEL = SourceFile(
    "kernel.py",
    "import nki\n"
    "\ta = nl.ndarray((128, 512), nl.float32)\n"
    '    漢字 = f(x, "é"); b = a + 漢字\n'
    "    nisa.nc_matmul(\n"
    "        dst,\n"
    "        a,\n"
    "\n"
    "        c,\n"
    "        d)\n"
    "last",
)
OTHER = SourceFile("other.py", "def f(a, b):\n    return a\n")
SOURCES = {"kernel.py": KERNEL, "other.py": OTHER}.get


def at(line: int, column: int, end: int, path: str = "kernel.py", end_line: int = 0) -> Span:
    return Span(path, line, column, end_line or line, end)


def human(diagnostic: Diagnostic, paint: Paint = PLAIN) -> str:
    return render([diagnostic], "human", SOURCES, paint)


def expect(diagnostic: Diagnostic, text: str) -> None:
    assert human(diagnostic) == dedent(text).removeprefix("\n")


def test_labels_notes_and_help() -> None:
    found = make(
        SLUG,
        "2 is more than 1",
        at(2, 2, 3),
        label="this",
        labels=[Label(at(2, 6, 16), "allocated here"), Label(at(1, 1, 7), "module")],
        notes=["the limit is 1\non trn2"],
        help="use 1",
    )
    expect(
        found,
        """
        kernel.py:2:2: error[NKI0003]: 2 is more than 1
          |
        1 | import nki
          | ------ module
        2 |     a = nl.ndarray((128, 512), nl.float32)
          |     ^   ---------- allocated here
          |     |
          |     this
          |
          = note: the limit is 1
                  on trn2
          = help: use 1
        """,
    )


def test_wide_characters_and_columns_in_code_points() -> None:
    labels = [Label(at(3, 23, 28), "inner"), Label(at(3, 12, 15), "text")]
    expect(
        make(SLUG, "wide", at(3, 5, 7), label="name", labels=labels),
        """
        kernel.py:3:5: error[NKI0003]: wide
          |
        3 |     漢字 = f(x, "é"); b = a + 漢字
          |     ^^^^     ---        ----- inner
          |     |        |
          |     |        text
          |     name
        """,
    )


def test_nested_labels_hang_below() -> None:
    labels = [Label(at(3, 12, 13), "inner")]
    expect(
        make(SLUG, "nested", at(3, 10, 19), label="outer", labels=labels),
        """
        kernel.py:3:10: error[NKI0003]: nested
          |
        3 |     漢字 = f(x, "é"); b = a + 漢字
          |            ^^-^^^^^^
          |            | |
          |            | inner
          |            outer
        """,
    )


def test_many_lines_and_other_files() -> None:
    labels = [
        Label(at(2, 5, 13, "other.py"), "called from"),
        Label(at(7, 3, 9, "gone.py"), "and from here"),
    ]
    expect(
        make(SLUG, "many", at(4, 5, 11, end_line=9), label="this call", labels=labels),
        """
        kernel.py:4:5: error[NKI0003]: many
          |
        4 |     nisa.nc_matmul(
          |     ^^^^^^^^^^^^^^^
        5 |         dst,
          |         ^^^^
        6 |         a,
          |         ^^
        ...
        9 |         d)
          |         ^^ this call
         --> other.py:2:5
          |
        2 |     return a
          |     -------- called from
         --> gone.py:7:3: and from here
        """,
    )


def test_one_line_between_labels_is_shown_instead_of_dots() -> None:
    labels = [Label(at(6, 9, 10), "here")]
    expect(
        make(SLUG, "near", at(4, 5, 9), labels=labels),
        """
        kernel.py:4:5: error[NKI0003]: near
          |
        4 |     nisa.nc_matmul(
          |     ^^^^
        5 |         dst,
        6 |         a,
          |         - here
        """,
    )


def test_fixes_show_the_change() -> None:
    fixes = [
        Fix(at(3, 10, 11), "g", "call `g`", sure=True),
        Fix(at(4, 5, 11, end_line=9), "pass\n    return", "drop it"),
        Fix(at(1, 1, 2, "gone.py"), "x", "rename"),
    ]
    expect(
        make(SLUG, "fix me", at(10, 1, 5), fixes=fixes),
        """
        kernel.py:10:1: error[NKI0003]: fix me
           |
        10 | last
           | ^^^^
           |
           = fix: call `g`
         3 -     漢字 = f(x, "é"); b = a + 漢字
         3 +     漢字 = g(x, "é"); b = a + 漢字
           = possible fix: drop it
         4 -     nisa.nc_matmul(
         5 -         dst,
         6 -         a,
         7 -
         8 -         c,
         9 -         d)
         4 +     pass
         5 +     return
           = possible fix: rename: `x` at gone.py:1:1
        """,
    )


def test_past_the_end_of_a_line_points_just_behind_it() -> None:
    assert human(make(SLUG, "eof", at(10, 90, 95), label="here")).splitlines()[2:] == [
        "10 | last",
        "   |     ^ here",
    ]


def test_without_source_the_header_and_the_words_remain() -> None:
    expect(
        make(SLUG, "hm", at(3, 1, 2, "gone.py"), label="this", notes=["n"], level=Level.WARNING),
        """
        gone.py:3:1: warning[NKI0003]: hm
         --> gone.py:3:1: this
          |
          = note: n
        """,
    )
    assert human(make(SLUG, "past the file", at(100, 1, 2))) == (
        "kernel.py:100:1: error[NKI0003]: past the file\n"
    )


def test_without_a_place_or_about_a_whole_file() -> None:
    assert human(make(SLUG, "no place")) == "error[NKI0003]: no place\n"
    assert human(make(SLUG, "bad magic", at(0, 0, 0, "k.neff"))) == (
        "k.neff: error[NKI0003]: bad magic\n"
    )


def test_repeats_are_counted() -> None:
    once = make(SLUG, "again", at(1, 1, 7))
    assert human(replace(once, count=2)).startswith(
        "kernel.py:1:1: error[NKI0003]: again (and 1 more time)\n"
    )
    assert render([replace(once, count=5)], "short", SOURCES) == (
        "kernel.py:1:1: error[NKI0003]: again (and 4 more times)\n"
    )


def test_a_line_too_long_to_read_is_told_in_words() -> None:
    source = SourceFile("long.py", "x = " + "1 + " * 1000 + "1")
    found = make(SLUG, "long", at(1, 5, 6, "long.py"), label="here")
    text = render([found], "human", lambda path: source)
    assert text == "long.py:1:5: error[NKI0003]: long\n --> long.py:1:5: here\n"


def test_header_is_one_line_however_long() -> None:
    message = "word " * 200
    first = human(make(SLUG, message, at(1, 1, 7))).splitlines()[0]
    assert first == f"kernel.py:1:1: error[NKI0003]: {message}"


def test_control_characters_never_reach_the_terminal() -> None:
    evil = "\x1b[2J\u202e"
    source = SourceFile(evil, f"a = '{evil}'")
    fixes = [Fix(at(1, 1, 2, evil), evil, evil)]
    found = make(SLUG, evil, at(1, 1, 4, evil), label=evil, notes=[evil], help=evil, fixes=fixes)
    for format in FORMATS:
        text = render([found], format, lambda path: source)
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "x1b[2J" in text or "u001b[2J" in text


def test_colour_adds_escapes_and_nothing_else() -> None:
    found = make(SLUG, "m", at(3, 10, 19), label="o", labels=[Label(at(3, 12, 13), "i")], help="h")
    coloured = human(found, Paint(colour=True))
    assert "\x1b[1;31merror[NKI0003]\x1b[0m" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == human(found)


def test_ascii_stream_keeps_the_marks_in_place() -> None:
    assert human(make(SLUG, "m", at(3, 16, 17)), Paint(ascii=True)).splitlines()[2:] == [
        r'3 |     \u6f22\u5b57 = f(x, "\xe9"); b = a + \u6f22\u5b57',
        "  | " + " " * len(r'    \u6f22\u5b57 = f(x, "') + "^^^^",
    ]


def test_summary_counts_complaints() -> None:
    error, warning = make(SLUG, "e"), make(SLUG, "w", level=Level.WARNING)
    assert summary([error, warning, replace(error, count=9)]) == "2 errors, 1 warning"
    stopped = "2 errors, and gave up: --limit errors=N shows more"
    assert summary([error, error], 2) == stopped
    assert summary([error, warning, error], 2) == f"{stopped}; 1 warning"
    assert summary([error, warning], 2) == "1 error, 1 warning"
    assert summary([warning, warning]) == "2 warnings"
    assert summary([]) == ""


def test_the_example_in_the_code_is_true() -> None:
    assert doctest.testmod(text) == (0, 2)


CHARS = st.sampled_from("ab( \t漢é\u0301\x1b\U0001f600")
LINES = st.text(CHARS, max_size=12)
NUMBERS = st.integers(-1, 15)


@settings(max_examples=150)
@given(LINES.filter(bool), st.data())
def test_marks_stand_below_their_text(line: str, data: st.DataObject) -> None:
    column = data.draw(st.integers(1, len(line)))
    end = data.draw(st.integers(column, len(line) + 1))
    text = render([make(SLUG, "m", at(1, column, end))], "human", lambda _: SourceFile("k", line))
    row = text.splitlines()[3].removeprefix("  | ")
    start = cells_of(line[: column - 1])
    assert row == " " * start + "^" * max(cells_of(line[: end - 1]) - start, 1)


def cells_of(text: str) -> int:
    """Count terminal cells by the rules, without the code under test."""
    total = 0
    for char in text:
        if char == "\t":
            total += 4 - total % 4
        elif char == "\x1b":
            total += len(r"\x1b")
        elif not unicodedata.combining(char):
            total += 2 if unicodedata.east_asian_width(char) == "W" else 1
    return total


SPANS = st.builds(Span, st.sampled_from(["k", "gone"]), NUMBERS, NUMBERS, NUMBERS, NUMBERS)
LABELS = st.builds(Label, SPANS, LINES)
DIAGNOSTICS = st.builds(
    Diagnostic,
    st.just(Code("NKI0003", SLUG)),
    st.sampled_from(Level),
    st.text(min_size=1),
    st.none() | LABELS,
    st.lists(LABELS, max_size=4).map(tuple),
    st.lists(st.text(), max_size=2).map(tuple),
    st.text(max_size=5),
    st.lists(st.builds(Fix, SPANS, LINES, LINES), max_size=2).map(tuple),
    st.integers(1, 3),
)


@settings(max_examples=150)
@given(DIAGNOSTICS, st.lists(LINES, max_size=8), st.booleans(), st.booleans())
def test_any_diagnostic_renders(
    found: Diagnostic, lines: list[str], colour: bool, ascii: bool
) -> None:
    source = SourceFile("k", "\n".join(lines))
    text = render([found], "human", {"k": source}.get, Paint(colour, ascii))
    assert found.code.number in text.split("\n")[0]
    places = [found.primary] if found.primary else []
    for label in (*places, *found.labels):
        assert label.text.replace("\x1b", r"\x1b").replace("\t", r"\t").rstrip() in text


def schema() -> dict[str, object]:
    text = resources.files("nkic.base.render").joinpath("diagnostic.schema.json").read_text()
    found: dict[str, object] = json.loads(text)
    return found


VALIDATOR = jsonschema.Draft202012Validator(schema())


def test_schema_is_itself_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())


@settings(max_examples=100)
@given(DIAGNOSTICS.map(lambda d: replace(d, primary=Label(at(1, 1, 2, "\udcff.py"), "\udcff"))))
def test_every_json_line_is_one_valid_object(found: Diagnostic) -> None:
    positive = replace(found, labels=(), fixes=())  # the random spans may be negative
    line = text.json_line(positive, SOURCES)
    assert line.endswith("\n")
    assert line.count("\n") == 1
    record = json.loads(line.encode("utf-8"))
    VALIDATOR.validate(record)
    assert json.dumps(record, ensure_ascii=False).encode("utf-8")


def test_json_line_holds_everything() -> None:
    found = make(
        SLUG,
        "é is wrong",
        at(3, 10, 19),
        label="outer",
        labels=[Label(at(2, 5, 13, "other.py"))],
        notes=["n"],
        help="h",
        fixes=[Fix(at(3, 10, 11), "g", "call `g`", sure=True), Fix(at(1, 1, 2), "", "drop")],
    )
    record = json.loads(text.json_line(found, SOURCES))
    VALIDATOR.validate(record)
    where = {"file": "kernel.py", "line": 3, "column": 10, "end_line": 3, "end_column": 19}
    other = {"file": "other.py", "line": 2, "column": 5, "end_line": 2, "end_column": 13}
    assert record["spans"] == [
        {**where, "label": "outer", "primary": True},
        {**other, "label": None, "primary": False},
    ]
    assert [fix["applicability"] for fix in record["fixes"]] == [
        "MachineApplicable",
        "MaybeIncorrect",
    ]
    assert record["fixes"][0]["span"] == {**where, "end_column": 11}
    assert (record["schema"], record["type"], record["code"]) == (1, "diagnostic", "NKI0003")
    assert (record["message"], record["help"], record["count"]) == ("é is wrong", "h", 1)
    assert record["rendered"] == human(found)


@pytest.mark.parametrize(
    ("field", "value"),
    [("code", "E0312"), ("level", "fatal"), ("count", 0), ("spans", [{}]), ("help", 3)],
)
def test_schema_refuses_what_we_never_write(field: str, value: object) -> None:
    record = json.loads(text.json_line(make(SLUG, "m", at(1, 1, 2)), SOURCES))
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate({**record, field: value})


def test_artifact_event() -> None:
    record = json.loads(text.event("artifact", kind="neff", path="out/k.neff"))
    VALIDATOR.validate(record)
    assert (record["type"], record["kind"], record["path"]) == ("artifact", "neff", "out/k.neff")


def test_not_a_number_is_not_json() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        text.event("artifact", cycles=float("nan"))
