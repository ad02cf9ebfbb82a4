"""Test the output for services: one SARIF log, and GitHub's workflow commands."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nkic import __version__
from nkic.base import levels
from nkic.base.diagnostics import Diagnostic, Fix, Label, Level, code, make
from nkic.base.render import from_root, sarif
from nkic.base.render import text as github
from nkic.base.source import SourceFile, Span

TEXT = """import nki
def kernel(a):
    漢字 = nl.load(a)
    b = nl.load(a)
    b = nl.load(a)
    return  b
"""


def at(line: int, column: int, end: int, path: str = "k.py", end_line: int = 0) -> Span:
    return Span(path, line, column, end_line or line, end)


def sources(text: str = TEXT) -> Callable[[str], SourceFile | None]:
    return {"k.py": SourceFile("k.py", text)}.get


def log(*found: Diagnostic, text: str = TEXT, limit: int = sarif.MAX_RESULTS) -> dict[str, Any]:
    document = json.loads(sarif.log(found, sarif.SarifRun(sources(text), "nki-run"), limit))
    VALIDATOR.validate(document)
    run: dict[str, Any] = document["runs"][0]
    return run


# ---- SARIF ---------------------------------------------------------------------------------------

# The part of the SARIF 2.1.0 schema for nkic's output, written by hand: required properties, types
# and values as in OASIS SARIF 2.1.0, and no property that its objects do not have.


def closed(required: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": required.split(),
        "properties": properties,
        "additionalProperties": False,
    }


def many(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


STRING = {"type": "string"}
COUNT = {"type": "integer", "minimum": 1}
INDEX = {"type": "integer", "minimum": 0}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
MESSAGE = closed("text", text={"type": "string", "minLength": 1}, markdown=STRING)
URI = {"type": "string", "pattern": r"^(?:[A-Za-z0-9._~!$&'()*+,;=@/:-]|%[0-9A-F]{2})+$"}
ARTIFACT = closed("uri", uri=URI, uriBaseId=STRING)
REGION = closed("startLine", startLine=COUNT, startColumn=COUNT, endLine=COUNT, endColumn=COUNT)
PHYSICAL = closed("artifactLocation", artifactLocation=ARTIFACT, region=REGION)
LOCATION = closed("physicalLocation", id=INDEX, physicalLocation=PHYSICAL, message=MESSAGE)
REPLACEMENT = closed("deletedRegion", deletedRegion=REGION, insertedContent=closed("text", text={}))
CHANGE = closed(
    "artifactLocation replacements", artifactLocation=ARTIFACT, replacements=many(REPLACEMENT)
)
RULE = closed(
    "id help",
    id={"type": "string", "pattern": r"^NKI\d{4}$"},
    name=STRING,
    shortDescription=MESSAGE,
    fullDescription=MESSAGE,
    help=MESSAGE,
)
RESULT = closed(
    "ruleId message locations partialFingerprints",
    ruleId=STRING,
    ruleIndex=INDEX,
    level=LEVEL,
    message=MESSAGE,
    locations={**many(LOCATION), "minItems": 1},
    relatedLocations=many(LOCATION),
    partialFingerprints={
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {"type": "string"},
    },
    occurrenceCount=COUNT,
    fixes=many(
        closed("artifactChanges", description=closed("text", text={}), artifactChanges=many(CHANGE))
    ),
)
NOTIFICATION = closed("message", descriptor=closed("id", id=STRING), level=LEVEL, message=MESSAGE)
DRIVER = closed(
    "name",
    name=STRING,
    version=STRING,
    semanticVersion=STRING,
    rules=many(RULE),
    notifications=many(RULE),
)
RUN = closed(
    "tool results",
    tool=closed("driver", driver=DRIVER),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    originalUriBaseIds={"type": "object"},
    invocations=many(
        closed(
            "executionSuccessful",
            executionSuccessful={"type": "boolean"},
            toolExecutionNotifications=many(NOTIFICATION),
        )
    ),
    results=many(RESULT),
)
SCHEMA = closed(
    "version runs",
    **{"$schema": {"type": "string", "pattern": r"sarif-2\.1\.0\.json$"}},
    version={"const": "2.1.0"},
    runs=many(RUN),
)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def fingerprints(run: dict[str, Any]) -> list[str]:
    return [one["partialFingerprints"]["primaryLocationLineHash"] for one in run["results"]]


def test_a_result_says_what_and_where() -> None:
    labels = [Label(at(2, 12, 13), "declared here")]
    fixes = [Fix(at(3, 10, 17), "nisa.dma_copy", "load by DMA")]
    run = log(
        make(
            "not-in-nki",
            "no such thing",
            at(3, 5, 7),
            label="this",
            labels=labels,
            notes=["since 0.3"],
            help="use dma_copy",
            fixes=fixes,
            level=Level.WARNING,
        )
    )
    (result,) = run["results"]
    assert (result["ruleId"], result["ruleIndex"], result["level"]) == ("NKI0202", 0, "warning")
    assert result["message"] == {"text": "no such thing\nnote: since 0.3\nhelp: use dma_copy"}
    (place,) = result["locations"]
    assert place["physicalLocation"]["artifactLocation"] == {
        "uri": "k.py",
        "uriBaseId": "%SRCROOT%",
    }
    assert [*place["physicalLocation"]["region"].values()] == [3, 5, 3, 7]  # 漢字 is two columns
    assert run["columnKind"] == "unicodeCodePoints"
    (related,) = result["relatedLocations"]
    assert (related["id"], related["message"]["text"]) == (1, "declared here")
    (change,) = result["fixes"][0]["artifactChanges"]
    assert change["replacements"][0]["insertedContent"]["text"] == "nisa.dma_copy"
    assert [*change["replacements"][0]["deletedRegion"].values()] == [3, 10, 3, 17]


def test_rules_are_those_that_fired_with_their_whole_page() -> None:
    run = log(
        make("unknown-name", "b", at(4, 5, 6)),
        make("sbuf-overflow", "a", at(3, 5, 7)),
        make("unknown-name", "c", at(5, 5, 6)),
    )
    driver = run["tool"]["driver"]
    assert (driver["name"], driver["version"]) == ("nki-run", __version__)
    assert [rule["id"] for rule in driver["rules"]] == ["NKI0201", "NKI0501"]
    assert [result["ruleIndex"] for result in run["results"]] == [0, 1, 0]
    rule = driver["rules"][1]
    assert rule["name"] == "SbufOverflow"
    assert rule["help"]["markdown"] == levels.page("NKI0501")
    assert rule["shortDescription"]["text"] == levels.title(code("sbuf-overflow"))
    assert "##" not in rule["fullDescription"]["text"]


def test_fingerprints_do_not_depend_on_line_numbers() -> None:
    def found(below: int) -> list[Diagnostic]:
        return [make("unknown-name", "m", at(line + below, 9, 16)) for line in (3, 4, 5)]

    before = fingerprints(log(*found(0)))
    moved = TEXT.replace("def", "\n\ndef").replace("    b = ", "      b =  ")
    assert fingerprints(log(*found(2), text=moved)) == before
    assert len(set(before)) == 3
    first, again = before[1:]  # two lines with the same text
    assert (first[:-2], first[-2:], again[-2:]) == (again[:-2], ":1", ":2")


@pytest.mark.parametrize(
    "other",
    [
        make("sbuf-overflow", "m", at(4, 9, 16)),
        make("unknown-name", "m", at(4, 9, 16, "other.py")),
        make("unknown-name", "m", at(2, 9, 16)),
    ],
    ids=["code", "file", "line"],
)
def test_fingerprints_tell_apart(other: Diagnostic) -> None:
    first, second = fingerprints(log(make("unknown-name", "m", at(4, 9, 16)), other))
    assert first[:-2] != second[:-2]


def test_a_kernels_own_words_are_no_link() -> None:
    link = "[open](javascript:alert(1))"
    other = Label(at(3, 5, 9), link)
    found = make("kernel-raised", link, at(2, 5, 9), labels=[other], notes=[link], help=link)
    text = json.dumps(log(found)["results"])
    assert text.count("[open] (javascript") == 4 and "](" not in text


def test_what_has_no_place_is_a_notification() -> None:
    run = log(make("outputs-differ", "3 elements differ"))
    assert run["results"] == []
    assert run["tool"]["driver"]["rules"] == []
    (known,) = run["tool"]["driver"]["notifications"]
    (invocation,) = run["invocations"]
    (said,) = invocation["toolExecutionNotifications"]
    assert said["descriptor"]["id"] == known["id"] == code("outputs-differ").number
    assert (said["level"], said["message"]["text"]) == ("error", "3 elements differ")
    assert invocation["executionSuccessful"] is False
    assert log()["invocations"][0]["executionSuccessful"] is True


@pytest.mark.parametrize("found", [3, 4])
def test_more_results_than_services_take_are_left_out_and_told(found: int) -> None:
    run = log(*[make("unknown-name", str(n), at(n + 1, 1, 2)) for n in range(found)], limit=3)
    assert len(run["results"]) == 3
    told = [n["message"]["text"] for n in run["invocations"][0]["toolExecutionNotifications"]]
    assert told == ([] if found == 3 else ["4 results were found; this log holds the first 3"])
    assert sarif.MAX_RESULTS == 5000


def test_about_a_whole_file_there_is_no_region() -> None:
    (result,) = log(make("not-utf8", "m", Span("k.py", 0, 0, 0, 0)))["results"]
    assert "region" not in result["locations"][0]["physicalLocation"]


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("a b/ü%.py", "a%20b/%C3%BC%25.py"),
        ("/else/k.py", "file:///else/k.py"),
        ("<stdin>", "%3Cstdin%3E"),
        ("x:y.py", "x%3Ay.py"),
    ],
)
def test_paths_are_escaped(path: str, uri: str) -> None:
    (result,) = log(make("unknown-name", "m", at(1, 1, 2, path)))["results"]
    artifact = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifact["uri"] == uri
    assert ("uriBaseId" in artifact) == (not path.startswith("/"))


PATHS = st.text(min_size=1, max_size=8).map(lambda text: text.lstrip("/") or "k")
SPANS = st.builds(Span, PATHS, *[st.integers(-1, 9)] * 4)


@settings(max_examples=100)
@given(st.text(min_size=1), SPANS, st.text(max_size=5), st.sampled_from(Level))
def test_any_diagnostic_makes_a_valid_log(
    message: str, span: Span, label: str, level: Level
) -> None:
    fixes = [Fix(span, label, message)]
    found = make("bad-value", message, span, labels=[Label(span, label)], level=level, fixes=fixes)
    run = log(found)
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert unquote(place["artifactLocation"]["uri"], errors="surrogatepass") == span.path
    region = place.get("region", {"startLine": 1, "startColumn": 1, "endLine": 1, "endColumn": 1})
    assert region["startLine"] <= region["endLine"]


# ---- GitHub --------------------------------------------------------------------------------------


def test_a_command_with_its_place() -> None:
    found = make("sbuf-overflow", "too much", at(3, 5, 7), notes=["trn2"], help="use less")
    assert github.github_line(found) == (
        "::error file=k.py,line=3,endLine=3,col=5,endColumn=7,title=NKI0501 sbuf-overflow"
        "::too much%0Anote: trn2%0Ahelp: use less\n"
    )


def test_everything_that_would_end_a_value_is_escaped() -> None:
    found = make("bad-value", "50% of 1,2: a\r\nb::c", at(1, 1, 2, "a,b:c%d\r\n.py"))
    line = github.github_line(found, lambda path: f"sub/{path}")
    assert line.startswith("::error file=sub/a%2Cb%3Ac%25d%0D%0A.py,line=1,")
    assert line.endswith("::50%25 of 1,2: a\\r%0Ab::c\n")  # a carriage return is escaped
    assert line.count("\n") == 1


@pytest.mark.parametrize(
    ("level", "command"),
    [(Level.ERROR, "error"), (Level.WARNING, "warning"), (Level.REMARK, "notice")],
)
def test_levels_and_no_place(level: Level, command: str) -> None:
    found = make("bad-value", "m", level=level)
    assert github.github_line(found) == f"::{command} title=NKI0003 bad-value::m\n"


def test_columns_only_within_a_line() -> None:
    several = github.github_line(make("bad-value", "m", at(1, 5, 2, end_line=3)))
    assert several.startswith("::error file=k.py,line=1,endLine=3,title=")
    whole = github.github_line(make("bad-value", "m", Span("k.py", 0, 0, 0, 0)))
    assert whole.startswith("::error file=k.py,title=")


@settings(max_examples=100)
@given(st.text(min_size=1), st.text(min_size=1))
def test_any_command_is_one_line_with_three_parts(message: str, path: str) -> None:
    line = github.github_line(make("bad-value", message, at(1, 1, 2, path)))
    found = re.fullmatch(r"::error ((?:\w+=[^,:\r\n]*,?)+)::([^\r\n]*)\n", line)
    assert found is not None
    assert len(found[1].split(",")) == 6


def test_a_kernels_own_words_give_no_orders() -> None:
    text = "a::b\n::stop-commands::x\n  ::error::y\nz ##[add-path]p"
    assert github.harmless(text) == ("a::b\n| ::stop-commands::x\n|   ::error::y\nz ## [add-path]p")


# ---- paths ---------------------------------------------------------------------------------------


def test_paths_from_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "repository" / "kernels"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert from_root("k.py") == "k.py"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / ".git").write_text("gitdir: elsewhere")
    (tmp_path / "other" / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "other" / "deep")
    assert from_root("k.py") == "deep/k.py"
    assert from_root("../lib/./k.py") == "lib/k.py"
    assert from_root(str(tmp_path / "other" / "k.py")) == "k.py"
    assert from_root("../../k.py") == f"{tmp_path}/k.py"
    assert from_root("<stdin>") == "<stdin>"
