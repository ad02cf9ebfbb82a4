"""The server: documents, when they are checked, and what the editor may ask."""

from __future__ import annotations

import asyncio
import json
import keyword
import os
import re
import sys
import threading
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any, TypeVar
from urllib.parse import unquote

import msgpack
from lsprotocol import types
from pygls import uris
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

from nkic import __version__
from nkic.base import files, profiles
from nkic.base.cache import remembered
from nkic.base.diagnostics import UsageFailed
from nkic.base.profiles import Profile
from nkic.base.worker import FORKED, started
from nkic.machine import targets
from nkic.machine.targets import Target
from nkic.serve import lsp_child
from nkic.serve.lsp_answers import (
    FILES,
    MIGRATE,
    REPORT,
    RUN,
    Answer,
    Text,
    actions,
    call_at,
    completions,
    cost_of,
    find,
    hints,
    notice,
    places,
    status,
    symbols,
    tensor_page,
)

T = TypeVar("T")

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


# ------------------------------------------------------------------------------------------------
# What an editor may have done with a saved kernel: by nkic's commands, so that it shows what a
# terminal would.

# Without -P, a module would be looked for in the file's folder first.
NKIC = (sys.executable, "-P", "-m", "nkic.cli.nkic")
NKI_RUN = (sys.executable, "-P", "-m", "nkic.cli.nki_run")
SECONDS = 120.0  # that a command may take


class Failed(Exception):
    """A command failed: its messages."""


async def ran(path: str, page: str = "") -> tuple[str, Mapping[int, str]]:
    """Run a kernel on random numbers; return a summary, and what each line costs.

    If `page` is a path, a page about the run is written there. Raises `Failed`.
    """
    with TemporaryDirectory() as folder:
        kernel = str(Path(folder, "kernel.neff"))
        await _done(path, *NKIC, path, "-o", kernel)
        words = (kernel, "--fill", "randn(0)", "--json", *["--report", f"html={page}"] * bool(page))
        out, _ = await _done(path, *NKI_RUN, "profile", *words)
    report = json.loads(out)
    cycles, time = report["cycles"], max(report["time_ns"], 1)
    costs = {}
    for each in report["lines"]:
        if Path(each["path"]).name == Path(path).name:
            busy, share = sum(each["busy_ns"].values()), each["critical_ns"] / time
            engines = ", ".join(each["busy_ns"])
            costs[each["line"]] = f"{busy * cycles / time:,.0f} cycles · {share:.0%} · {engines}"
    took = f"{report['kernel']}: {cycles:,} cycles ({report['time_ns'] / 1000:,.2f} us)"
    return f"{took}, bound by {report['verdict']['bound']}", costs


async def migrated(path: str) -> tuple[str, str]:
    """Rewrite a kernel for the latest NKI; return the new text, and how the two compare.

    Raises `Failed` also if a place is left, or if the two differ.
    """
    with TemporaryDirectory() as folder:
        new = Path(folder, "new.py")
        words = ("--migrate", "--verify", "--message-format", "short", "-o", str(new))
        _, told = await _done(path, *NKIC, path, *words)
        return new.read_text("utf-8"), told


async def _done(path: str, *words: str) -> tuple[str, str]:
    """Return what a command prints to both streams, run in the file's folder."""
    process = await asyncio.create_subprocess_exec(
        *words, cwd=Path(path).parent, stdin=DEVNULL, stdout=PIPE, stderr=PIPE
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), SECONDS)
    except (TimeoutError, asyncio.CancelledError) as ended:
        process.kill()
        await process.wait()
        if isinstance(ended, TimeoutError):
            raise Failed(f"it takes more than {SECONDS:g} s") from None
        raise
    told = err.decode("utf-8", "replace")
    if process.returncode:
        raise Failed(told)
    return out.decode("utf-8", "replace"), told


# --------------------------------------------------------------------------------------------------

_KERNELS = re.compile(r"(?m)^[ \t]*(?:from|import)[ \t]+(?:neuronxcc\.)?nki\b|^# /// nkic\b")
_DOTTED = re.compile(r"[\w.]+")
STATUS = "$/nkic/status"  # our own notification, which editors may ignore: uri, text, tooltip
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
    run: bool = False  # on save

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
        self._checking: str | None = None
        self._checks: asyncio.Task[None] | None = None
        # Of documents that were run: the text, a summary, and what each line costs.
        self.runs: dict[str, tuple[str, str, Mapping[int, str]]] = {}
        self.at_work: asyncio.Task[Any] | None = None  # the last one
        self.pages: TemporaryDirectory[str] | None = None  # about runs
        self.on_save: asyncio.Task[None] | None = None  # kept, or it might end early

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
        with suppress(ValueError):  # `file://[`
            path = uris.to_fs_path(uri) if uri.startswith("file:") else None
            if path and Path(path).is_absolute():
                return path
        return str(Path(self.workspace.root_path or Path.cwd(), "untitled.py"))

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
        self.runs.pop(uri, None)
        answer = self.answers.pop(uri, None)
        self._publish({uri, *(home for home, _ in (answer.found if answer else ()))})
        self.tell_status(uri)

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
                self._checking = None
            if self.document(uri) and uri not in self._due:
                before = self.answers.get(uri)
                if before is not None and answer.outline is None:  # an error of syntax
                    answer.outline = before.outline
                self.answers[uri] = answer
                old = before.found if before else ()
                self._publish({uri, *(home for home, _ in (*old, *answer.found))})
                self.tell_status(uri)

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
            "last": remembered(path),
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

    def run_of(self, uri: str) -> tuple[str, Mapping[int, str]]:
        """Return the summary of a run of the document's present text, and its lines' costs."""
        text, summary, costs = self.runs.get(uri, ("", "", {}))
        return (summary, costs) if text == self.text(uri).source.text else ("", {})

    def tell_status(self, uri: str) -> None:
        """Tell editors that show one a document's status: time and memory of its kernels."""
        answer = self.answers.get(uri)
        text, more = status(answer, self.run_of(uri)[0]) if answer else ("", "")
        self.protocol.notify(STATUS, {"uri": uri, "text": text, "tooltip": more})

    # ---- commands ------------------------------------------------------------------------------

    async def carry_out(self, uri: str, command: Callable[[str], Coroutine[Any, Any, T]]) -> T:
        """Return what a command makes of a saved document; it ends one that is under way.

        Raises `Failed`.
        """
        path, text = self.path(uri), _bytes(self.text(uri))
        try:
            # A regular file: /dev/stdin is what the editor says.
            is_saved = files.is_file(path) and files.read_bytes(path, len(text) + 1) == text
        except UsageFailed:
            is_saved = False
        if not is_saved:
            raise Failed("save the file first")
        if self.at_work is not None:
            self.at_work.cancel()
        self.at_work = work = asyncio.create_task(command(path))
        try:
            return await work
        except asyncio.CancelledError:  # by the next command
            raise Failed from None

    def say(self, message: str, kind: types.MessageType = types.MessageType.Info) -> None:
        """Show a message to the user, unless it is empty."""
        if message.strip():
            self.window_show_message(types.ShowMessageParams(kind, message.strip()))


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
    if server.settings.run:
        server.on_save = asyncio.create_task(run(params.text_document.uri))


@server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
def closed(params: types.DidCloseTextDocumentParams) -> None:
    """Forget a document."""
    server.closed(params.text_document.uri)


@server.feature(types.SHUTDOWN)
def shut_down(params: None) -> None:
    """End the checking process, and a command that is under way."""
    server.checker.stop()
    if server.at_work is not None:
        server.at_work.cancel()


# ---- what the editor asks -----------------------------------------------------------------------

_ACTIONS = types.CodeActionOptions(
    [
        types.CodeActionKind.QuickFix,
        types.CodeActionKind.SourceFixAll,
        types.CodeActionKind.RefactorRewrite,
    ]
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
    line, column, dotted = _word(text, params.position)
    name = find(text.source.text, dotted)
    cost = cost_of(answer, line, column) if server.current(uri) and answer else ""
    if name is not None:
        profile, target = _facts(answer)
        missing = name.missing(profile, target)
        here = f"{profile.label} on {target.name}"
        page = f"**Not in NKI {here}: {missing}.**\n\n" * bool(missing) + name.page(cost)
    else:
        tensor = tensor_page(answer, dotted.partition(".")[0], line) if answer else ""
        page = "\n\n".join(filter(None, (tensor, cost)))
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, page)) if page else None


@server.feature(types.TEXT_DOCUMENT_DEFINITION)
def definition(params: types.DefinitionParams) -> types.Location | None:
    """Return the place in the stubs that defines a name of NKI."""
    text = server.text(params.text_document.uri)
    name = find(text.source.text, _word(text, params.position)[2])
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
            documentation=types.MarkupContent(types.MarkupKind.Markdown, name.page()),
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


@server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
async def prepare_rename(params: types.PrepareRenameParams) -> types.Range | None:
    """Return the place of a name that can be renamed."""
    answer = await server.settled(params.text_document.uri)
    return next(iter(places(answer, params.position)), None) if answer else None


@server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
async def rename(params: types.RenameParams) -> types.WorkspaceEdit:
    """Rename a variable, function or class in its file."""
    uri, name = params.text_document.uri, params.new_name
    answer = await server.settled(uri)
    found = places(answer, params.position) if answer else ()
    if not found:
        raise JsonRpcInvalidParams("nkic cannot rename this within the file")
    if not name.isidentifier() or keyword.iskeyword(name):
        raise JsonRpcInvalidParams(f"`{name}` is no name")
    if re.search(rf"\b{re.escape(name)}\b", server.text(uri).source.text):
        raise JsonRpcInvalidParams(f"`{name}` is used in this file already")
    return types.WorkspaceEdit({uri: [types.TextEdit(place, name) for place in found]})


@server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
async def inlay_hint(params: types.InlayHintParams) -> list[types.InlayHint]:
    """Return the types of tensors behind their declarations, and the cycles of the last run."""
    uri, wanted = params.text_document.uri, params.range
    answer, settings, text = await server.settled(uri), server.settings, server.text(uri)
    found = [*hints(answer, wanted, settings.shapes, settings.sizes)] if answer else []
    for line, cost in server.run_of(uri)[1].items():
        at = text.position(line, len(text.source.line(line)) + 1)
        if wanted.start <= at <= wanted.end:
            found.append(types.InlayHint(at, cost, padding_left=True))
    return found


# ---- commands -----------------------------------------------------------------------------------


@server.command(RUN)
async def run(uri: str) -> None:
    """Run the kernel of a document on random numbers, and show each line's cycles."""
    text = server.text(uri).source.text
    try:
        summary, costs = await server.carry_out(uri, ran)
    except Failed as failed:
        server.say(str(failed), types.MessageType.Error)
        return
    server.runs[uri] = (text, summary, costs)
    server.tell_status(uri)
    server.say(summary)
    server.workspace_inlay_hint_refresh(None)


@server.command(REPORT)
async def report(uri: str) -> None:
    """Run the kernel of a document on random numbers, and show the page about the run."""
    server.pages = server.pages or TemporaryDirectory(prefix="nkic-")
    folder = mkdtemp(dir=server.pages.name)
    page = Path(folder, Path(server.path(uri)).name).with_suffix(".html")
    try:
        await server.carry_out(uri, partial(ran, page=str(page)))
    except Failed as failed:
        server.say(str(failed), types.MessageType.Error)
        return
    shown = types.ShowDocumentParams(page.as_uri(), external=True)
    with suppress(JsonRpcException):  # of an editor that shows no pages
        if (await server.window_show_document_async(shown)).success:
            return
    server.say(f"the page about the run is {page}")


@server.command(MIGRATE)
async def migrate(uri: str) -> None:
    """Rewrite the kernel of a document for a later NKI, and say how the two compare."""
    before = server.text(uri)
    try:
        text, verified = await server.carry_out(uri, migrated)
    except Failed as failed:
        server.say(str(failed), types.MessageType.Error)
        return
    whole = types.Range(types.Position(0, 0), types.Position(len(before.source.lines), 0))
    edit = types.WorkspaceEdit({uri: [types.TextEdit(whole, text)]})
    server.workspace_apply_edit(types.ApplyWorkspaceEditParams(edit, "nkic: migrate"))
    server.say(verified)


def _word(text: Text, position: types.Position) -> tuple[int, int, str]:
    """Return line and column, from 1, of the dotted name at a position, up to the end of the word
    there.
    """
    number, column = text.place(position)
    line = text.source.line(number)
    for match in _DOTTED.finditer(line):
        if match.start() <= column <= match.end():
            end = re.compile(r"\w*").match(line, column)
            name = line[match.start() : end.end() if end else column]
            return number, match.start() + 1, name
    return number, column + 1, ""


def serve() -> int:
    """Serve standard input and output until the editor leaves."""
    # Copies, because pygls closes what it was given.
    with os.fdopen(os.dup(0), "rb") as stdin, os.fdopen(os.dup(1), "wb") as stdout:
        server.start_io(stdin, stdout)
    server.checker.stop()
    if server.pages is not None:
        server.pages.cleanup()
    return 0
