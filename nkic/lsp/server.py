"""The server: documents, when they are checked, and what the editor may ask."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from lsprotocol import types
from pygls import uris
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

from nkic import __version__
from nkic.base import profiles
from nkic.base.profiles import Profile
from nkic.lsp import names, shown
from nkic.lsp.checker import Checker, Ended
from nkic.lsp.shown import Answer, Text
from nkic.machine import targets
from nkic.machine.targets import Target

_KERNELS = re.compile(r"(?m)^[ \t]*(?:from|import)[ \t]+(?:neuronxcc\.)?nki\b|^# /// nkic\b")
_DOTTED = re.compile(r"[\w.]+")
_TOLD_LATER = 0.02  # seconds between two looks at whether a check has ended
NEAR = 2000  # characters before the cursor that may belong to its word


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
        for field in fields(self):
            value = given.get(field.name)
            is_bool = field.type == "bool"
            if isinstance(value, bool) if is_bool else type(value) in (int, float) and value > 0:
                setattr(self, field.name, value)


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
        return Answer(version, text, found=[(uri, shown.notice(reason))], outline=None)

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
    found = shown.actions(answer, uri, params.range) if answer else ()
    return [a for a in found if not only or any(str(a.kind).startswith(kind) for kind in only)]


@server.feature(types.TEXT_DOCUMENT_HOVER)
def hover(params: types.HoverParams) -> types.Hover | None:
    """Return the page of a name of NKI, or what is known of a tensor."""
    uri = params.text_document.uri
    text, answer = server.text(uri), server.answers.get(uri)
    line, dotted = _word(text, params.position)
    name = names.find(text.source.text, dotted)
    if name is not None:
        profile, target = _facts(answer)
        missing = name.missing(profile, target)
        here = f"{profile.label} on {target.name}"
        page = f"**Not in NKI {here}: {missing}.**\n\n" * bool(missing) + name.page
    else:
        page = shown.tensor_page(answer, dotted.partition(".")[0], line) if answer else ""
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, page)) if page else None


@server.feature(types.TEXT_DOCUMENT_DEFINITION)
def definition(params: types.DefinitionParams) -> types.Location | None:
    """Return the place in the stubs that defines a name of NKI."""
    text = server.text(params.text_document.uri)
    name = names.find(text.source.text, _word(text, params.position)[1])
    if name is None:
        return None
    place = types.Position(name.line - 1, 0)
    uri = uris.from_fs_path(str(names.FILES[name.module]))
    return types.Location(uri or "", types.Range(place, place))


@server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(["."]))
def completion(params: types.CompletionParams) -> list[types.CompletionItem]:
    """Return the names that the document's version and target have."""
    uri = params.text_document.uri
    text = server.text(uri)
    before = text.before(params.position)[-NEAR:]
    words = re.search(r"[\w.]*$", before)
    found = names.completions(
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
    call = names.call_at(text.before(params.position))
    name = names.find(text.source.text, call[0]) if call else None
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
    return shown.symbols(answer, answer.outline or ()) if answer else []


@server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
async def inlay_hint(params: types.InlayHintParams) -> list[types.InlayHint]:
    """Return the types of tensors behind their declarations."""
    answer, settings = await server.settled(params.text_document.uri), server.settings
    if answer is None:
        return []
    return [*shown.hints(answer, params.range, settings.shapes, settings.sizes)]


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
