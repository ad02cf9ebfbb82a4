"""The server: documents, when they are checked, and what the editor may ask."""

from __future__ import annotations

import ast
import asyncio
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgpack
from lsprotocol import types
from pygls import uris
from pygls.lsp.server import LanguageServer
from pygls.workspace import PositionCodec, TextDocument

from nkic import __version__
from nkic.base import profiles
from nkic.base.diagnostics import Fix, apart
from nkic.base.profiles import Profile
from nkic.base.source import SHIPPED, SourceFile, Span
from nkic.base.text import size
from nkic.base.worker import FORKED, started
from nkic.language import versions
from nkic.machine import targets
from nkic.machine.instructions import ROWS
from nkic.machine.targets import Target
from nkic.machine.tiles import first_target
from nkic.serve import lsp_child

# ------------------------------------------------------------------------------------------------
# The names of NKI for the editor: from the stubs, which are written from the instruction table.

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

    @property
    def page(self) -> str:
        """The page of the instruction or function, as Markdown."""
        described = [f"- `{name}`: {text}" for name, text in self.parameters.items() if text]
        first, _, rest = self.doc.partition("\n")
        has_call = first.startswith(f"{self.name}(")
        head = first if has_call else f"{self.name}{self.call}"
        text = (rest if has_call else self.doc).partition("\n:param")[0].strip()
        source = self.doc.rpartition("\n\nSource: ")
        foot = f"\n\n*Source: {source[2]}*" if source[1] and "Source: " not in text else ""
        rows = "\n".join(described)
        return f"```python\n{head}\n```\n{text}\n\n{rows}{foot}".strip()

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
    fixes: Sequence[tuple[types.Diagnostic, Fix]] = ()
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
        answer.fixes = [(shown, _fix(f)) for each, shown in pairs for f in each["fixes"]]
        answer.tensors, answer.outline = raw["tensors"], raw["outline"]
        answer.files = frozenset(raw["files"])
        answer.target, answer.nki = raw["target"], raw["nki"]
        return answer


def _home(diagnostic: Json, uri_of: UriOf) -> str:
    spans = [s for s in diagnostic["spans"] if s["primary"]]
    return uri_of(spans[0]["file"]) if spans else uri_of("")


def _range(span: Json, text: Text) -> types.Range:
    return text.range(_span(span)[1:])


def _span(span: Json) -> Span:
    return Span(*(span[name] for name in ("file", "line", "column", "end_line", "end_column")))


def _fix(fix: Json) -> Fix:
    sure = fix["applicability"] == SAFE
    return Fix(_span(fix["span"]), fix["replacement"], fix["title"], sure)


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
    own = [(d, fix) for d, fix in answer.fixes if answer.uri_of(fix.span.path) == uri]
    edits = {f: types.TextEdit(answer.text.range(f.span[1:]), f.replacement) for _, f in own}
    for diagnostic, fix in own:
        if _meet(diagnostic.range, wanted):
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


# ------------------------------------------------------------------------------------------------
# The server's side of the process that compiles: one at a time, killed when it is in the way.

FORKED.set_forkserver_preload([lsp_child.__name__])
_LARGEST = 64 << 20  # bytes of an answer
_AGE = 300  # answers after which a process, which keeps trees of many texts, is replaced
_GRACE = 2  # seconds that the process may take beyond its own limit, and to end


class Ended(Exception):
    """The process ended, or was ended, before it answered; the text says why."""


class Checker:
    """A process that checks documents; the next request after its end starts another."""

    def __init__(self) -> None:
        self._worker: tuple[Any, Any] | None = None  # the process, and the connection to it
        self._one = threading.Lock()
        self._answers = 0
        self.stops = 0  # how often `stop` was called

    def ask(self, request: Mapping[str, Any], memory: int, stops: int) -> Mapping[str, Any]:
        """Return the answer to a request, made after `stops` stops. Blocks; raises `Ended`."""
        with self._one:
            process, connection = self._worker = self._worker or started(lsp_child.serve, memory)
            if self.stops != stops:  # while the process was started
                raise Ended("stopped")
            try:
                answer = _asked(connection, request)
            except (EOFError, OSError, ValueError) as error:
                self.stop()
                process.join(_GRACE)
                text = f"the process that checks this file ended with code {process.exitcode}"
                raise Ended(text) from error
            except Ended:
                self.stop()
                raise
            if "failed" in answer:
                self.stop()  # its memory may be full, its tables half made
                raise Ended(str(answer["failed"]))
            self._answers += 1
            if self._answers % _AGE == 0:
                self.stop()
            return answer

    def stop(self) -> None:
        """End the process, whatever it does; a request under way raises `Ended`."""
        self.stops += 1
        worker, self._worker = self._worker, None
        if worker is not None:
            worker[0].kill()


def _asked(connection: Any, request: Mapping[str, Any]) -> Mapping[str, Any]:
    connection.send_bytes(msgpack.packb(request))
    if not connection.poll(request["seconds"] + _GRACE):
        raise Ended(f"checking this file takes more than {request['seconds']:g} s (nkic.seconds)")
    answer: Any = msgpack.unpackb(connection.recv_bytes(_LARGEST))
    if not isinstance(answer, dict):
        raise Ended("the process that checks this file gave an answer that is none")
    return answer


# --------------------------------------------------------------------------------------------------

_KERNELS = re.compile(r"(?m)^[ \t]*(?:from|import)[ \t]+(?:neuronxcc\.)?nki\b|^# /// nkic\b")
_DOTTED = re.compile(r"[\w.]+")
_TOLD_LATER = 0.02  # seconds between two looks at whether a check has ended
NEAR_LINES = 2000  # characters before the cursor that may belong to its word


@dataclass
class Settings:
    """The settings of the editor's section `nkic`."""

    debounce: float = 100  # milliseconds without a change until a document is checked
    seconds: float = 10
    memory: float = 2048  # MiB
    shapes: bool = True
    sizes: bool = True

    def update(self, given: Any) -> None:
        """Take those values that are of the right kind."""
        given = given.get("nkic", given) if isinstance(given, dict) else {}
        for setting in fields(self):
            value = given.get(setting.name)
            is_bool = setting.type == "bool"
            if isinstance(value, bool) if is_bool else type(value) in (int, float) and value > 0:
                setattr(self, setting.name, value)


class Server(LanguageServer):
    """The documents of one editor. At most one of them is compiled at a time."""

    def __init__(self) -> None:
        full = types.TextDocumentSyncKind.Full  # pygls ends lines where Python does not
        super().__init__("nkic", __version__, text_document_sync_kind=full)
        self.settings, self.checker = Settings(), Checker()
        self.answers: dict[str, Answer] = {}
        self._due: dict[str, tuple[float, int]] = {}  # when to check, and how thoroughly
        self._checking = ""
        self._checks: asyncio.Task[None] | None = None

    # ---- documents -----------------------------------------------------------------------------

    def document(self, uri: str) -> TextDocument | None:
        """Return an open document. pygls keeps them by decoded URIs."""
        opened: dict[str, TextDocument] = self.workspace.text_documents
        return opened.get(unquote(uri))

    def text(self, uri: str) -> Text:
        """Return the text of an open document; an empty one of any other."""
        document = self.document(uri)
        return Text(document.source if document else "", self.workspace.position_codec)

    def path(self, uri: str) -> str:
        """Return the path of a document; one that was never saved is in the workspace's folder."""
        path = uris.to_fs_path(uri) if uri.startswith("file:") else None
        return path or str(Path(self.workspace.root_path or Path.cwd(), "untitled.py"))

    def changed(self, uri: str, level: int = 0, delay: float = 0) -> None:
        """Have a document checked, and the open ones that import it; end checks of older texts."""
        path, due = self.path(uri), asyncio.get_running_loop().time() + delay
        using = [other for other, answer in self.answers.items() if path in answer.files]
        for each in {uri, *using}:
            if self.document(each):
                self._due[each] = (due, level)
        if self._checking in self._due:
            self.checker.stop()
        if self._checks is None or self._checks.done():
            self._checks = asyncio.create_task(self._check_all())

    def closed(self, uri: str) -> None:
        """Forget a document."""
        self._due.pop(uri, None)
        answer = self.answers.pop(uri, None)
        self._publish({uri, *(home for home, _ in (answer.found if answer else ()))})

    async def settled(self, uri: str) -> Answer | None:
        """Return the answer about the document's present text, once there is one."""
        while uri in self._due or self._checking == uri:
            await asyncio.sleep(_TOLD_LATER)
        return self.answers.get(uri)

    def current(self, uri: str) -> Answer | None:
        """Return the answer about the document if its text has not changed since."""
        answer, document = self.answers.get(uri), self.document(uri)
        return answer if answer and document and answer.version == document.version else None

    # ---- checking ------------------------------------------------------------------------------

    async def _check_all(self) -> None:
        loop = asyncio.get_running_loop()
        while self._due:
            uri, (due, level) = min(self._due.items(), key=lambda pair: pair[1])
            if due > loop.time():
                await asyncio.sleep(due - loop.time())
                continue
            del self._due[uri]
            self._checking = uri
            try:
                answer = await self._check(uri, level)
            finally:
                self._checking = ""
            if self.document(uri) and uri not in self._due:
                before = self.answers.get(uri)
                if before is not None and answer.outline is None:  # an error of syntax
                    answer.outline = before.outline
                self.answers[uri] = answer
                old = before.found if before else ()
                self._publish({uri, *(home for home, _ in (*old, *answer.found))})

    async def _check(self, uri: str, level: int) -> Answer:
        document, text, path = self.document(uri), self.text(uri), self.path(uri)
        version = document.version if document else None
        if not _KERNELS.search(text.source.text):
            return Answer(version, text)
        opened = {self.path(d.uri): d.uri for d in self.workspace.text_documents.values()}
        opened |= {path: uri, "": uri}
        request = {
            "path": path,
            "text": _bytes(text),
            "unsaved": {p: _bytes(self.text(u)) for p, u in opened.items() if u != uri},
            "seconds": self.settings.seconds,
            "level": level,
        }

        def uri_of(file: str) -> str:
            return opened.get(file) or (uris.from_fs_path(file) or uri if file[0] != "<" else uri)

        def text_of(file: str) -> Text:
            return text if uri_of(file) == uri else self.text(uri_of(file))

        try:
            memory = int(self.settings.memory) << 20
            stops = self.checker.stops
            raw = await asyncio.to_thread(self.checker.ask, request, memory, stops)
            return Answer.read(raw, version, level, text_of, uri_of)
        except Ended as ended:
            reason = str(ended)
        except (LookupError, TypeError, ValueError):
            reason = "the process that checks this file gave an answer that is none"
        return Answer(version, text, found=[(uri, notice(reason))], outline=None)

    def _publish(self, homes: Iterable[str]) -> None:
        """Send the diagnostics of files, which checks of several documents may have found."""
        for home in homes:
            found = [d for a in self.answers.values() for uri, d in a.found if uri == home]
            once = [d for number, d in enumerate(found) if d not in found[:number]]
            document = self.document(home)
            self.text_document_publish_diagnostics(
                types.PublishDiagnosticsParams(home, once, document.version if document else None)
            )


def _bytes(text: Text) -> bytes:
    return text.source.text.encode("utf-8", "replace")


def _facts(answer: Answer | None) -> tuple[Profile, Target]:
    """Return the version and target of a document's kernels, as far as they are known."""
    profile = profiles.find(answer.nki) if answer else None
    target = targets.find(answer.target) if answer else None
    return profile or profiles.DEFAULT, target or targets.DEFAULT


server = Server()


# ---- what the editor tells ----------------------------------------------------------------------


@server.feature(types.INITIALIZE)
def initialize(params: types.InitializeParams) -> None:
    """Take the settings that the editor gives at the start."""
    server.settings.update(params.initialization_options)


@server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
def configure(params: types.DidChangeConfigurationParams) -> None:
    """Take changed settings."""
    server.settings.update(params.settings)


@server.feature(types.TEXT_DOCUMENT_DID_OPEN)
def opened(params: types.DidOpenTextDocumentParams) -> None:
    """Check a document that is opened as the command would."""
    server.changed(params.text_document.uri, level=1)


@server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
def changed(params: types.DidChangeTextDocumentParams) -> None:
    """Check a document once nobody has typed for a moment."""
    server.changed(params.text_document.uri, delay=server.settings.debounce / 1000)


@server.feature(types.TEXT_DOCUMENT_DID_SAVE)
def saved(params: types.DidSaveTextDocumentParams) -> None:
    """Check a document that is saved as the command would: addresses are then those of the file."""
    server.changed(params.text_document.uri, level=1)


@server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
def closed(params: types.DidCloseTextDocumentParams) -> None:
    """Forget a document."""
    server.closed(params.text_document.uri)


@server.feature(types.SHUTDOWN)
def shut_down(params: None) -> None:
    """End the checking process."""
    server.checker.stop()


# ---- what the editor asks -----------------------------------------------------------------------

_ACTIONS = types.CodeActionOptions(
    [types.CodeActionKind.QuickFix, types.CodeActionKind.SourceFixAll]
)


@server.feature(types.TEXT_DOCUMENT_CODE_ACTION, _ACTIONS)
def code_action(params: types.CodeActionParams) -> list[types.CodeAction]:
    """Return the fixes in a range."""
    uri, only = params.text_document.uri, params.context.only or []
    answer = server.current(uri)
    found = actions(answer, uri, params.range) if answer else ()
    return [a for a in found if not only or any(str(a.kind).startswith(kind) for kind in only)]


@server.feature(types.TEXT_DOCUMENT_HOVER)
def hover(params: types.HoverParams) -> types.Hover | None:
    """Return the page of a name of NKI, or what is known of a tensor."""
    uri = params.text_document.uri
    text, answer = server.text(uri), server.answers.get(uri)
    line, dotted = _word(text, params.position)
    name = find(text.source.text, dotted)
    if name is not None:
        profile, target = _facts(answer)
        missing = name.missing(profile, target)
        here = f"{profile.label} on {target.name}"
        page = f"**Not in NKI {here}: {missing}.**\n\n" * bool(missing) + name.page
    else:
        page = tensor_page(answer, dotted.partition(".")[0], line) if answer else ""
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, page)) if page else None


@server.feature(types.TEXT_DOCUMENT_DEFINITION)
def definition(params: types.DefinitionParams) -> types.Location | None:
    """Return the place in the stubs that defines a name of NKI."""
    text = server.text(params.text_document.uri)
    name = find(text.source.text, _word(text, params.position)[1])
    if name is None:
        return None
    place = types.Position(name.line - 1, 0)
    uri = uris.from_fs_path(str(FILES[name.module]))
    return types.Location(uri or "", types.Range(place, place))


@server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(["."]))
def completion(params: types.CompletionParams) -> list[types.CompletionItem]:
    """Return the names that the document's version and target have."""
    uri = params.text_document.uri
    text = server.text(uri)
    before = text.before(params.position)[-NEAR_LINES:]
    words = re.search(r"[\w.]*$", before)
    found = completions(
        text.source.text, words.group() if words else "", *_facts(server.answers.get(uri))
    )
    return [
        types.CompletionItem(
            name.name.rpartition(".")[2],
            kind=types.CompletionItemKind.Function if name.call else types.CompletionItemKind.Value,
            detail=name.call or None,
            documentation=types.MarkupContent(types.MarkupKind.Markdown, name.page),
        )
        for name in found
    ]


@server.feature(types.TEXT_DOCUMENT_SIGNATURE_HELP, types.SignatureHelpOptions(["(", ","]))
def signature(params: types.SignatureHelpParams) -> types.SignatureHelp | None:
    """Return the parameters of the call around the cursor."""
    text = server.text(params.text_document.uri)
    call = call_at(text.before(params.position))
    name = find(text.source.text, call[0]) if call else None
    if name is None or call is None:
        return None
    parameters = [types.ParameterInformation(p, told) for p, told in name.parameters.items()]
    known, number = [*name.parameters], call[1]
    active = known.index(call[2]) if call[2] in known else number
    one = types.SignatureInformation(f"{name.name}{name.call}", parameters=parameters)
    return types.SignatureHelp([one], active_signature=0, active_parameter=active)


@server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
async def document_symbol(params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
    """Return the kernels, functions and classes."""
    answer = await server.settled(params.text_document.uri)
    return symbols(answer, answer.outline or ()) if answer else []


@server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
async def inlay_hint(params: types.InlayHintParams) -> list[types.InlayHint]:
    """Return the types of tensors behind their declarations."""
    answer, settings = await server.settled(params.text_document.uri), server.settings
    if answer is None:
        return []
    return [*hints(answer, params.range, settings.shapes, settings.sizes)]


def _word(text: Text, position: types.Position) -> tuple[int, str]:
    """Return the line of a position from 1, and the dotted name up to the end of the word there."""
    number, column = text.place(position)
    line = text.source.line(number)
    for match in _DOTTED.finditer(line):
        if match.start() <= column <= match.end():
            end = re.compile(r"\w*").match(line, column)
            return number, line[match.start() : end.end() if end else column]
    return number, ""


def serve() -> int:
    """Serve standard input and output until the editor leaves."""
    # Copies, because pygls closes what it was given.
    with os.fdopen(os.dup(0), "rb") as stdin, os.fdopen(os.dup(1), "wb") as stdout:
        server.start_io(stdin, stdout)
    server.checker.stop()
    return 0
