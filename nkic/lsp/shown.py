"""Answers of the checking process in the protocol's terms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lsprotocol import types
from pygls.workspace import PositionCodec

from nkic.base.source import SHIPPED, SourceFile
from nkic.base.text import size

Json = Mapping[str, Any]
UriOf = Callable[[str], str]
_LEVELS = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "remark": types.DiagnosticSeverity.Information,
}
_KINDS = {
    "kernel": types.SymbolKind.Event,
    "function": types.SymbolKind.Function,
    "class": types.SymbolKind.Class,
}
ASKING = "argument-type-missing"
SAFE = "MachineApplicable"


class Text:
    """A document's text with conversions between nkic's positions and the editor's."""

    def __init__(self, text: str, codec: PositionCodec) -> None:
        self.source, self.codec = SourceFile("", text), codec

    def position(self, line: int, column: int) -> types.Position:
        """Return the editor's form of a position that counts from 1, in code points."""
        known, characters = self.source.line(line), max(column - 1, 0)
        # In a file that is not open, a character counts once.
        units = self.codec.client_num_units(known[:characters]) if known else characters
        return types.Position(max(line - 1, 0), units)

    def range(self, span: Sequence[int]) -> types.Range:
        """Return the editor's form of (line, column, end line, end column)."""
        return types.Range(self.position(*span[:2]), self.position(*span[2:]))

    def place(self, position: types.Position) -> tuple[int, int]:
        """Return the line from 1, and the number of code points before the position."""
        found = self.codec.position_from_client_units(
            self.source.lines, types.Position(position.line, position.character)
        )
        return found.line + 1, found.character

    def before(self, position: types.Position) -> str:
        """Return the text before a position."""
        line, column = self.place(position)
        lines = self.source.lines[: line - 1]
        return "\n".join([*lines, self.source.line(line)[:column]])


@dataclass
class Answer:
    """What is known of one version of a document."""

    version: int | None
    text: Text
    level: int = 0
    found: Sequence[tuple[str, types.Diagnostic]] = ()  # each with the URI of its file
    fixes: Sequence[tuple[types.Diagnostic, Json]] = ()
    tensors: Sequence[Json] = ()
    outline: Sequence[Json] | None = ()
    files: frozenset[str] = frozenset()
    target: str = ""
    nki: str = ""
    uri_of: UriOf = field(default=str)

    @classmethod
    def read(
        cls,
        raw: Json,
        version: int | None,
        level: int,
        text_of: Callable[[str], Text],
        uri_of: UriOf,
    ) -> Answer:
        """Return an answer from plain data. Raises `LookupError`, `TypeError` or `ValueError`."""
        answer = cls(version, text_of(""), level, uri_of=uri_of)
        pairs = [(each, _diagnostic(each, answer, text_of)) for each in raw["diagnostics"]]
        answer.found = [(_home(each, uri_of), shown) for each, shown in pairs]
        answer.fixes = [(shown, fix) for each, shown in pairs for fix in each["fixes"]]
        answer.tensors, answer.outline = raw["tensors"], raw["outline"]
        answer.files = frozenset(raw["files"])
        answer.target, answer.nki = raw["target"], raw["nki"]
        return answer


def _home(diagnostic: Json, uri_of: UriOf) -> str:
    spans = [s for s in diagnostic["spans"] if s["primary"]]
    return uri_of(spans[0]["file"]) if spans else uri_of("")


def _range(span: Json, text: Text) -> types.Range:
    return text.range([span[name] for name in ("line", "column", "end_line", "end_column")])


def _diagnostic(
    diagnostic: Json, answer: Answer, text_of: Callable[[str], Text]
) -> types.Diagnostic:
    spans = [span for span in diagnostic["spans"] if not span["file"].startswith(SHIPPED)]
    primary = next((span for span in spans if span["primary"]), None)
    others = [span for span in spans if not span["primary"] and span["label"]]
    label = [primary["label"]] if primary and primary["label"] else []
    help = [f"help: {diagnostic['help']}"] if diagnostic["help"] else []
    level = "remark" if diagnostic["slug"] == ASKING else diagnostic["level"]
    start = types.Position(0, 0)
    return types.Diagnostic(
        range=_range(primary, text_of(primary["file"])) if primary else types.Range(start, start),
        message="\n".join([diagnostic["message"], *label, *diagnostic["notes"], *help]),
        severity=_LEVELS[level],
        code=diagnostic["code"],
        source="nkic",
        related_information=[
            types.DiagnosticRelatedInformation(
                types.Location(answer.uri_of(span["file"]), _range(span, text_of(span["file"]))),
                span["label"],
            )
            for span in others
        ],
    )


def notice(message: str) -> types.Diagnostic:
    """Return a warning about the file as a whole."""
    start = types.Position(0, 0)
    place, warning = types.Range(start, start), types.DiagnosticSeverity.Warning
    return types.Diagnostic(place, message, severity=warning, source="nkic")


# ---- quick fixes --------------------------------------------------------------------------------


def actions(answer: Answer, uri: str, wanted: types.Range) -> Iterator[types.CodeAction]:
    """Yield the fixes of the diagnostics in a range, then all safe ones of the file together."""
    safe: list[types.TextEdit] = []
    for diagnostic, fix in answer.fixes:
        span = fix["span"]
        edit = types.TextEdit(_range(span, answer.text), fix["replacement"])
        if answer.uri_of(span["file"]) != uri:
            continue
        if fix["applicability"] == SAFE and not any(_meet(edit.range, e.range) for e in safe):
            safe.append(edit)
        if _meet(diagnostic.range, wanted):
            yield types.CodeAction(
                fix["title"],
                kind=types.CodeActionKind.QuickFix,
                diagnostics=[diagnostic],
                is_preferred=fix["applicability"] == SAFE,
                edit=types.WorkspaceEdit({uri: [edit]}),
            )
    if safe:
        yield types.CodeAction(
            "apply all safe fixes of nkic",
            kind=types.CodeActionKind.SourceFixAll,
            edit=types.WorkspaceEdit({uri: safe}),
        )


def _meet(one: types.Range, other: types.Range) -> bool:
    return one.start <= other.end and other.start <= one.end


# ---- tensors ------------------------------------------------------------------------------------


def hints(
    answer: Answer, wanted: types.Range, with_types: bool, with_bytes: bool
) -> Iterator[types.InlayHint]:
    """Yield a hint behind each declaration of tensors in a range."""
    for tensor in answer.tensors:
        at = answer.text.position(*tensor["span"][2:])
        if tensor["argument"] or not wanted.start <= at <= wanted.end:
            continue
        parts = [_types(tensor)] if with_types else []
        if with_bytes and tensor["partitions"]:
            parts.append(f"{size(tensor['bytes'])}/partition")
        if parts:
            kind = types.InlayHintKind.Type
            yield types.InlayHint(at, " · ".join(parts), kind=kind, padding_left=True)


def _types(tensor: Json) -> str:
    more = f" and {tensor['more']} more" if tensor["more"] > 0 else ""
    return " or ".join(tensor["kinds"]) + more


def tensor_page(answer: Answer, name: str, line: int) -> str:
    """Return what is known of the tensor called `name` at a line; empty if nothing is."""
    named = [tensor for tensor in answer.tensors if tensor["name"] == name]
    before = [tensor for tensor in named if tensor["span"][0] <= line]
    tensor = max(before or named, key=lambda t: t["span"][0], default=None)
    if tensor is None:
        return ""
    rows = [f"**{name}**: `{_types(tensor)}` in {tensor['memory']}"]
    if tensor["partitions"]:
        per = size(tensor["bytes"])
        rows.append(f"{tensor['partitions']} partitions of {per}")
    else:
        rows.append(size(tensor["bytes"]))
    if tensor["number"] > 1:
        rows.append(f"{tensor['number']} tensors are made here; the first of them:")
    if tensor["address"] and answer.level:
        partition, byte = tensor["address"]
        rows.append(f"address {byte} in partitions from {partition}")
    if tensor["uses"]:
        first, last = tensor["uses"]
        rows.append(f"live from its first use in line {first} to its last in line {last}")
    return "\n\n".join(rows)


def symbols(answer: Answer, outline: Sequence[Json]) -> list[types.DocumentSymbol]:
    """Return the functions and classes; kernels have a kind of their own."""
    return [
        types.DocumentSymbol(
            each["name"],
            _KINDS[each["kind"]],
            answer.text.range(each["span"]),
            answer.text.range(each["at"]),
            detail="kernel" if each["kind"] == "kernel" else None,
            children=symbols(answer, each["inner"]),
        )
        for each in outline
    ]
