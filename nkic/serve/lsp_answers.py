"""What the editor is told, in the protocol's terms: of names of NKI, and of a document."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from lsprotocol import types
from pygls.workspace import PositionCodec

from nkic.base import profiles
from nkic.base.diagnostics import Diagnostic, Fix, Label, Level, apart, from_json
from nkic.base.profiles import Profile
from nkic.base.source import SHIPPED, SourceFile, Span
from nkic.base.text import plural, size
from nkic.language import versions
from nkic.machine.instructions import ROWS
from nkic.machine.targets import Target
from nkic.machine.tiles import first_target

# ---- The names of NKI: from the stubs, which are written from the instruction table -------------

STUBS = Path(__file__).parents[1] / "stubs" / "nki"
FILES = {
    "nki.isa": STUBS / "isa" / "__init__.pyi",
    "nki.language": STUBS / "language.pyi",
    "nki.collectives": STUBS / "collectives.pyi",
}
_IMPORT = re.compile(
    r"(?m)^[ \t]*(?:import[ \t]+(nki\.\w+)[ \t]+as[ \t]+(\w+)"
    r"|from[ \t]+nki[ \t]+import[ \t]+(\w+)(?:[ \t]+as[ \t]+(\w+))?)"
)
_TOKEN = re.compile(
    r"#[^\n]*|\"\"\"[\s\S]*?\"\"\"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
    r"|(?P<open>[\w.]*[ \t]*[\[({])|(?P<close>[\])}])|(?P<comma>,)|(?P<name>\w+)[ \t]*=(?!=)"
)
NEAR = 8000  # characters before the cursor in which a call may begin


class Name(NamedTuple):
    """A function, class or constant; `name` is dotted for the members of enumerations."""

    module: str
    name: str
    call: str  # `(dst, src)`; empty if it is not called
    parameters: dict[str, str]  # each with its description
    doc: str
    line: int  # from 1, in the module's stub

    def page(self, here: str = "") -> str:
        """Return the page of the instruction or function as Markdown; `here` is what it costs."""
        described = [f"- `{name}`: {text}" for name, text in self.parameters.items() if text]
        first, _, rest = self.doc.partition("\n")
        has_call = first.startswith(f"{self.name}(")
        head = first if has_call else f"{self.name}{self.call}"
        text = (rest if has_call else self.doc).partition("\n:param")[0].strip()
        source = self.doc.rpartition("\n\nSource: ")
        foot = f"\n\n*Source: {source[2]}*" if source[1] and "Source: " not in text else ""
        rows = "\n".join(described)
        cost = f"{here}\n\n" if here else ""
        return f"```python\n{head}\n```\n{cost}{text}\n\n{rows}{foot}".strip()

    def missing(self, profile: Profile, target: Target) -> str:
        """Return why a version or target does not have it; empty if both do."""
        row = ROWS.get(self.name) if self.module != "nki.language" else None
        if row is None:
            added = versions.of(self.module, versions.Added)
            addition = added.get(self.name)
            later = addition is not None and profile < addition.since
            return f"since NKI {addition.since.label}" if addition and later else ""
        if profile < row.since:
            return f"since NKI {row.since.label}"
        if row.until is not None and profile > row.until:
            return f"until NKI {row.until.label}"
        has = row.generation <= target.generation
        return "" if has else f"on {first_target(row.generation)} and newer"


@cache
def tables() -> dict[str, dict[str, Name]]:
    """Return the names of each module."""
    return {
        module: {name.name: name for name in _names(module, path.read_text("utf-8"))}
        for module, path in FILES.items()
    }


def _names(module: str, text: str) -> Iterator[Name]:
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            doc = ast.get_docstring(node) or ""
            arguments = [*node.args.args, *node.args.kwonlyargs]
            told = dict(re.findall(r"(?m)^:param (\w+): (.*)$", doc))
            parameters = {a.arg: told.get(a.arg, "") for a in arguments}
            call = f"({', '.join(parameters)})"
            yield Name(module, node.name, call, parameters, doc, node.lineno)
        elif isinstance(node, ast.ClassDef):
            yield Name(module, node.name, "", {}, ast.get_docstring(node) or "", node.lineno)
            for member in node.body:
                if isinstance(member, ast.Assign):
                    name = f"{node.name}.{ast.unparse(member.targets[0])}"
                    yield Name(module, name, "", {}, "", member.lineno)
        elif isinstance(node, ast.AnnAssign):
            yield Name(module, ast.unparse(node.target), "", {}, "", node.lineno)


def aliases(text: str) -> dict[str, str]:
    """Return the modules that a file's imports bind, by the names that they bind."""
    bound = {}
    for module, alias, part, other in _IMPORT.findall(text):
        name = module or f"nki.{part}"
        if name in FILES:
            bound[alias or other or part] = name
    return bound


def find(text: str, dotted: str) -> Name | None:
    """Return the name that `nisa.activation` is in a file with this text."""
    head, _, rest = dotted.partition(".")
    return tables().get(aliases(text).get(head, ""), {}).get(rest)


def completions(text: str, dotted: str, profile: Profile, target: Target) -> Iterator[Name]:
    """Yield the names that may follow `nisa.` or `nisa.engine.`."""
    head, _, rest = dotted.partition(".")
    inside = rest.rpartition(".")[0]
    for name in tables().get(aliases(text).get(head, ""), {}).values():
        if name.name.rpartition(".")[0] == inside and not name.missing(profile, target):
            yield name


def call_at(before: str) -> tuple[str, int, str] | None:
    """Return the innermost open call before the cursor: what is called, the number of the
    argument, and its keyword, if it has one.
    """
    stack: list[tuple[str, int, str]] = []
    for token in _TOKEN.finditer(before[-NEAR:]):
        if token["open"]:
            stack.append((token["open"].rstrip("([{ \t") * token["open"].endswith("("), 0, ""))
        elif token["close"] and stack:
            stack.pop()
        elif stack and (token["comma"] or token["name"]):
            called, number, _ = stack[-1]
            stack[-1] = (called, number + bool(token["comma"]), token["name"] or "")
    return stack[-1] if stack and stack[-1][0] else None


# ---- Answers of the checking process in the protocol's terms ------------------------------------

Json = Mapping[str, Any]
UriOf = Callable[[str], str]
_LEVELS = {
    Level.ERROR: types.DiagnosticSeverity.Error,
    Level.WARNING: types.DiagnosticSeverity.Warning,
    Level.REMARK: types.DiagnosticSeverity.Information,
}
_KINDS = {
    "kernel": types.SymbolKind.Event,
    "function": types.SymbolKind.Function,
    "class": types.SymbolKind.Class,
}
ASKING = "argument-type-missing"
RUN, REPORT, MIGRATE = "nkic.run", "nkic.report", "nkic.migrate"


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
    fixes: Sequence[tuple[types.Diagnostic, Fix]] = ()
    tensors: Sequence[Json] = ()
    outline: Sequence[Json] | None = ()
    names: Sequence[Json] = ()
    costs: Sequence[Json] = ()
    kernels: Sequence[Json] = ()
    block: Json | None = None  # a types block with the last command's types
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
        diagnostics = from_json(raw["diagnostics"])
        pairs = [(each, _diagnostic(each, answer, text_of)) for each in diagnostics]
        answer.found = [(_home(each, uri_of), shown) for each, shown in pairs]
        answer.fixes = [(shown, fix) for each, shown in pairs for fix in each.fixes]
        answer.tensors, answer.outline = raw["tensors"], raw["outline"]
        answer.names, answer.costs = raw["names"], raw["costs"]
        answer.kernels, answer.block = raw["kernels"], raw["block"]
        answer.files = frozenset(raw["files"])
        answer.target, answer.nki = raw["target"], raw["nki"]
        return answer


def _home(diagnostic: Diagnostic, uri_of: UriOf) -> str:
    return uri_of(diagnostic.primary.span.path if diagnostic.primary else "")


def _diagnostic(
    diagnostic: Diagnostic, answer: Answer, text_of: Callable[[str], Text]
) -> types.Diagnostic:
    def place(span: Span) -> types.Range:
        return text_of(span.path).range(span[1:])

    shown = [label for label in diagnostic.labels if label.text and not _is_shipped(label)]
    primary = diagnostic.primary
    primary = None if primary is None or _is_shipped(primary) else primary
    label = [primary.text] if primary and primary.text else []
    help = [f"help: {diagnostic.help}"] if diagnostic.help else []
    start = types.Position(0, 0)
    return types.Diagnostic(
        range=place(primary.span) if primary else types.Range(start, start),
        message="\n".join([diagnostic.message, *label, *diagnostic.notes, *help]),
        severity=_LEVELS[Level.REMARK if diagnostic.code.slug == ASKING else diagnostic.level],
        code=diagnostic.code.number,
        source="nkic",
        related_information=[
            types.DiagnosticRelatedInformation(
                types.Location(answer.uri_of(label.span.path), place(label.span)), label.text
            )
            for label in shown
        ],
    )


def _is_shipped(label: Label) -> bool:
    return label.span.path.startswith(SHIPPED)


def notice(message: str) -> types.Diagnostic:
    """Return a warning about the file as a whole."""
    start = types.Position(0, 0)
    place, warning = types.Range(start, start), types.DiagnosticSeverity.Warning
    return types.Diagnostic(place, message, severity=warning, source="nkic")


# ---- quick fixes --------------------------------------------------------------------------------


def actions(answer: Answer, uri: str, wanted: types.Range) -> Iterator[types.CodeAction]:
    """Yield the fixes of the diagnostics in a range, then all safe ones of the file together."""
    own = [(d, fix) for d, fix in answer.fixes if answer.uri_of(fix.span.path) == uri]
    edits = {f: types.TextEdit(answer.text.range(f.span[1:]), f.replacement) for _, f in own}
    for diagnostic, fix in own:
        if diagnostic.range.start <= wanted.end and wanted.start <= diagnostic.range.end:
            yield types.CodeAction(
                fix.title,
                kind=types.CodeActionKind.QuickFix,
                diagnostics=[diagnostic],
                is_preferred=fix.sure,
                edit=types.WorkspaceEdit({uri: [edits[fix]]}),
            )
    safe = [edits[fix] for fix in apart(fix for _, fix in own)]
    if safe:
        yield types.CodeAction(
            "apply all safe fixes of nkic",
            kind=types.CodeActionKind.SourceFixAll,
            edit=types.WorkspaceEdit({uri: safe}),
        )
    if answer.block is not None:
        start = types.Position(answer.block["line"] - 1, 0)
        edit = types.TextEdit(types.Range(start, start), answer.block["text"])
        yield types.CodeAction(
            "add a types block with the types of the last command",
            kind=types.CodeActionKind.RefactorRewrite,
            edit=types.WorkspaceEdit({uri: [edit]}),
        )
    written_for = profiles.find(answer.nki)
    if written_for is not None and written_for < profiles.DEFAULT:
        title = f"migrate this kernel to NKI {profiles.DEFAULT.label}"
        yield types.CodeAction(
            title,
            kind=types.CodeActionKind.RefactorRewrite,
            command=types.Command(title, MIGRATE, arguments=[uri]),
        )


# ---- tensors ------------------------------------------------------------------------------------


def hints(
    answer: Answer, wanted: types.Range, with_types: bool, with_bytes: bool
) -> Iterator[types.InlayHint]:
    """Yield a hint behind each declaration of tensors in a range."""
    for tensor in answer.tensors:
        at = answer.text.position(*tensor["span"][2:])
        if not tensor["hint"] or not wanted.start <= at <= wanted.end:
            continue
        parts = [tensor["hint"]] if with_types else []
        if with_bytes and tensor["partitions"]:
            parts.append(f"{size(tensor['bytes'])}/partition")
        if parts:
            kind = types.InlayHintKind.Type
            yield types.InlayHint(at, " · ".join(parts), kind=kind, padding_left=True)


def tensor_page(answer: Answer, name: str, line: int) -> str:
    """Return what is known of the tensor called `name` at a line; empty if nothing is."""
    named = [tensor for tensor in answer.tensors if tensor["name"] == name]
    before = [tensor for tensor in named if tensor["span"][0] <= line]
    tensor = max(before or named, key=lambda t: t["span"][0], default=None)
    if tensor is None:
        return ""
    rows = [f"**{name}**: `{tensor['types']}` in {tensor['memory']}"]
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


# ---- time and memory ----------------------------------------------------------------------------


def cost_of(answer: Answer, line: int, column: int) -> str:
    """Return what the instructions of the call that begins at a place take; empty if none does."""
    told = []
    for call in (each for each in answer.costs if each["at"] == [line, column]):
        for form in call["forms"]:
            tiles = ", ".join(f"`{name}` {kind}" for name, kind in form["tiles"])
            takes = f"`{form['name']}` keeps {form['engine']} busy for {form['ns']:,.0f} ns"
            if form["by"]:
                takes = f"`{form['name']}` moves data for {form['ns']:,.0f} ns, and triggering it "
                takes += f"keeps {form['by']} busy for {form['trigger_ns']:,.0f} ns"
            times = f", {form['number']:,} times" if form["number"] > 1 else ""
            told.append(f"- {takes}{times} ({tiles})")
        told += [f"- and {plural(call['more'], 'other form')}"] * (call["more"] > 0)
    return "\n".join([f"**Here**, on {answer.target}:", "", *told]) if told else ""


def status(answer: Answer, ran: str) -> tuple[str, str]:
    """Return a few words on a document's kernels, and a line for each; `ran` sums up a run."""
    errors = sum(d.severity is types.DiagnosticSeverity.Error for _, d in answer.found)
    if errors:
        return f"nkic: {plural(errors, 'error')}", ""
    lines, words = [], ""
    ran_kernel = ran.partition(":")[0]
    for each in sorted(answer.kernels, key=lambda each: each["kernel"] != ran_kernel):
        sbuf, banks = each["sbuf"], each["psum"]
        time, busiest = each["ns"] / 1000, each["busiest_ns"] / 1000
        used = f"SBUF {sbuf[0] / sbuf[1]:.0%}, PSUM {banks[0]}/{banks[1]}"
        words = words or f"nkic: {ran or f'about {time:,.1f} us'}, {used}"
        alone = f"; its busiest engine needs {busiest:,.1f} us" if busiest else ""
        lines.append(f"{each['kernel']}: estimated at {time:,.1f} us{alone}; {used}")
    return words, "\n".join(lines)


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


def places(answer: Answer, at: types.Position) -> Sequence[types.Range]:
    """Return all places of the name at a position, if it can be renamed; that position's first."""
    for each in answer.names:
        found = [answer.text.range(span) for span in each["at"]]
        here = [place for place in found if place.start <= at <= place.end]
        if here:
            return [*here, *(place for place in found if place not in here)]
    return ()
