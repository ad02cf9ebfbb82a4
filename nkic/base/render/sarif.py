"""Diagnostics as one SARIF 2.1.0 log, for code scanning services.

Sources: OASIS SARIF 2.1.0; GitHub's documentation, SARIF support for code scanning: URIs from
the repository's root, a stable `ruleId`, and `partialFingerprints` that identify old findings. A
fingerprint covers the code, the file and the text of the line, not its number: a moved line is not
a new finding.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import quote

from nkic import __version__
from nkic.base import levels
from nkic.base.diagnostics import Code, Diagnostic, Fix, Label, Level
from nkic.base.render.text import valid
from nkic.base.source import Sources, Span
from nkic.base.text import grouped

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
MAX_RESULTS = 5000  # the maximum that services show of a run
LEVELS = {Level.ERROR: "error", Level.WARNING: "warning", Level.REMARK: "note"}
ROOT = "%SRCROOT%"

Json = dict[str, object]


@dataclass(frozen=True)
class SarifRun:
    """The context of a log: the tool, its sources, and the conversion of paths to the root."""

    sources: Sources
    tool: str = "nkic"
    path_of: Callable[[str], str] = str


class Placed(NamedTuple):
    """A diagnostic that has a place."""

    label: Label
    diagnostic: Diagnostic


def log(diagnostics: Sequence[Diagnostic], run: SarifRun, limit: int = MAX_RESULTS) -> str:
    """Return the document in pure ASCII, with a final line ending.

    Results need a place: services refuse results without one. Diagnostics without a place (a wrong
    command line, outputs that differ) become notifications.
    """
    placed = [Placed(d.primary, d) for d in diagnostics if d.primary is not None]
    unplaced = [d for d in diagnostics if d.primary is None]
    notes = [_notification(d) for d in unplaced] + _left_out(len(placed), limit)
    placed = placed[:limit]
    driver = {
        "name": run.tool,
        "version": __version__,
        "semanticVersion": __version__,
        "rules": [_rule(code) for code in _codes(result.diagnostic for result in placed)],
        "notifications": [_rule(code) for code in _codes(unplaced)],
    }
    invocation = {
        "executionSuccessful": not any(d.level is Level.ERROR for d in unplaced),
        "toolExecutionNotifications": notes,
    }
    record = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {ROOT: {"description": {"text": "The root of the repository."}}},
        "invocations": [invocation],
        "results": _results(placed, run),
    }
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [record]}
    return json.dumps(valid(document), allow_nan=False, indent=2) + "\n"


# ---- rules ---------------------------------------------------------------------------------------


def _codes(diagnostics: Iterable[Diagnostic]) -> list[Code]:
    """Return the codes that occur, by number."""
    return sorted({d.code for d in diagnostics}, key=lambda code: code.number)


def _rule(code: Code) -> Json:
    page = levels.page(code.number)
    return {
        "id": code.number,
        "name": "".join(word.capitalize() for word in code.slug.split("-")),
        "shortDescription": {"text": levels.title(code)},
        "fullDescription": {"text": levels.meaning(code)},
        "help": {"text": page, "markdown": page},
    }


# ---- results -------------------------------------------------------------------------------------


def _results(placed: Sequence[Placed], run: SarifRun) -> list[Json]:
    index = {code: at for at, code in enumerate(_codes(p.diagnostic for p in placed))}
    seen: Counter[str] = Counter()
    results = []
    for placed_result in placed:
        result, identity = _result(placed_result, run), _identity(placed_result, run)
        seen[identity] += 1
        result["ruleIndex"] = index[placed_result.diagnostic.code]
        result["partialFingerprints"] = {"primaryLocationLineHash": f"{identity}:{seen[identity]}"}
        results.append(result)
    return results


def _identity(placed: Placed, run: SarifRun) -> str:
    """Return a hash of the code, the file and the line's text without spacing."""
    span = placed.label.span
    source = run.sources(span.path)
    text = " ".join(source.line(span.line).split()) if source is not None else ""
    parts = (placed.diagnostic.code.number, run.path_of(span.path), text)
    return sha256("\0".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:16]


def _result(placed: Placed, run: SarifRun) -> Json:
    diagnostic = placed.diagnostic
    record: Json = {
        "ruleId": diagnostic.code.number,
        "level": LEVELS[diagnostic.level],
        "message": {"text": _message(diagnostic)},
        "locations": [_location(placed.label, run)],
        "occurrenceCount": diagnostic.count,
    }
    if diagnostic.labels:
        related = [_location(label, run) for label in diagnostic.labels]
        record["relatedLocations"] = [
            {"id": at, **location} for at, location in enumerate(related, 1)
        ]
    if diagnostic.fixes:
        record["fixes"] = [_fix(fix, run) for fix in diagnostic.fixes]
    return record


def _message(diagnostic: Diagnostic) -> str:
    """Return the message with the help: services show only this text beside the line."""
    paragraphs = [diagnostic.message, *(f"note: {note}" for note in diagnostic.notes)]
    text = "\n".join([*paragraphs, *([f"help: {diagnostic.help}"] if diagnostic.help else [])])
    return _unlinked(text)


def _unlinked(text: str) -> str:
    """Return a text without links, which SARIF writes in messages as `[text](address)`."""
    return text.replace("](", "] (")


def _location(label: Label, run: SarifRun) -> Json:
    physical: Json = {"artifactLocation": _artifact(label.span.path, run)}
    if label.span.line >= 1:  # otherwise it concerns the whole file
        physical["region"] = _region(label.span)
    message: Json = {"message": {"text": _unlinked(label.text)}} if label.text else {}
    return {"physicalLocation": physical, **message}


def _artifact(path: str, run: SarifRun) -> Json:
    path = run.path_of(path)
    uri = quote(path.encode("utf-8", "surrogatepass"), safe="/~")
    return {"uri": f"file://{uri}"} if path.startswith("/") else {"uri": uri, "uriBaseId": ROOT}


def _region(span: Span) -> Json:
    """Return the region. SARIF and spans share units: from 1, code points, exclusive end."""
    column, last = max(span.column, 1), max(span.end_line, span.line)
    end = max(span.end_column, column if last == span.line else 1)
    return {"startLine": span.line, "startColumn": column, "endLine": last, "endColumn": end}


def _fix(fix: Fix, run: SarifRun) -> Json:
    replacement = {
        "deletedRegion": _region(fix.span._replace(line=max(fix.span.line, 1))),
        "insertedContent": {"text": fix.replacement},
    }
    change = {"artifactLocation": _artifact(fix.span.path, run), "replacements": [replacement]}
    return {"description": {"text": fix.title}, "artifactChanges": [change]}


# ---- notifications -------------------------------------------------------------------------------


def _notification(diagnostic: Diagnostic) -> Json:
    return {
        "descriptor": {"id": diagnostic.code.number},
        "level": LEVELS[diagnostic.level],
        "message": {"text": _message(diagnostic)},
    }


def _left_out(count: int, limit: int) -> list[Json]:
    if count <= limit:
        return []
    text = f"{grouped(count)} results were found; this log holds the first {grouped(limit)}"
    return [{"level": "warning", "message": {"text": text}}]
