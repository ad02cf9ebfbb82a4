"""An editor for tests: pygls's client of the protocol, behind calls that wait."""

import asyncio
import sys
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Self

from lsprotocol import types
from pygls.lsp.client import LanguageClient

PATIENCE = 60  # seconds for an answer on a busy machine


class Editor:
    """A server, started as editors start it, and the documents that are open in it."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder, self.settings = folder, settings
        self.versions: dict[str, int] = {}
        self.published: list[types.PublishDiagnosticsParams] = []
        self._news = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.client: Any = LanguageClient("editor", "1")
        publish = self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        publish(lambda params: self._publish(params))  # pygls marks the function
        self.said: list[types.ShowMessageParams] = []
        self.applied: list[types.WorkspaceEdit] = []
        self.statuses: list[tuple[str, str, str]] = []  # URI, text and tooltip
        self.shown: list[str] = []  # the URIs of pages
        self.shows = True
        self.refreshed = 0
        self.client.feature(types.WINDOW_SHOW_MESSAGE)(lambda params: self.said.append(params))
        self.client.feature(types.WORKSPACE_APPLY_EDIT)(lambda params: self._apply(params))
        self.client.feature(types.WINDOW_SHOW_DOCUMENT)(lambda params: self._show(params))
        self.client.feature("$/nkic/status")(lambda params: self._status(params))
        self.client.feature(types.WORKSPACE_INLAY_HINT_REFRESH)(lambda params: self._refresh())

    def _publish(self, params: types.PublishDiagnosticsParams) -> None:
        with self._news:
            self.published.append(params)
            self._news.notify_all()

    def _show(self, params: types.ShowDocumentParams) -> types.ShowDocumentResult:
        assert params.external
        self.shown.append(params.uri)
        return types.ShowDocumentResult(self.shows)

    def _status(self, params: Any) -> None:
        with self._news:
            self.statuses.append((params.uri, params.text, params.tooltip))
            self._news.notify_all()

    def status(self, name: str, start: str) -> str:
        """Return the tooltip of the latest status of a document, once its text has this start."""

        def told() -> str | None:
            own = [status for status in self.statuses if status[0] == self.uri(name)]
            return own[-1][2] if own and own[-1][1].startswith(start) else None

        with self._news:
            assert self._news.wait_for(lambda: told() is not None, PATIENCE), self.statuses
            return told() or ""

    def _apply(self, params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        self.applied.append(params.edit)
        return types.ApplyWorkspaceEditResult(True)

    def _refresh(self) -> None:
        with self._news:
            self.refreshed += 1
            self._news.notify_all()

    def await_refresh(self, after: int) -> None:
        """Wait until hints were refreshed once more than `after` times."""
        with self._news:
            assert self._news.wait_for(lambda: self.refreshed > after, PATIENCE), "no new hints"

    def __enter__(self) -> Self:
        self.await_(self.client.start_io(sys.executable, "-m", "nkic.cli.nkic", "lsp", "--stdio"))
        self.server = self.await_(
            self.client.initialize_async(
                types.InitializeParams(
                    types.ClientCapabilities(),
                    root_uri=self.folder.as_uri(),
                    initialization_options=self.settings,
                )
            )
        )
        self.client.initialized(types.InitializedParams())
        return self

    def __exit__(self, *failure: object) -> None:
        self.await_(self.client.shutdown_async(None))
        process = self.client._server
        self.client.exit(None)
        self.code = self.await_(process.wait())
        self.await_(self.client.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)

    def await_(self, made: Coroutine[Any, Any, Any]) -> Any:
        """Return the result of a call of the protocol."""
        return asyncio.run_coroutine_threadsafe(made, self._loop).result(PATIENCE)

    def tell(self, notify: Any, params: Any) -> None:
        self._loop.call_soon_threadsafe(notify, params)

    # ---- documents -----------------------------------------------------------------------------

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def at(self, name: str) -> types.TextDocumentIdentifier:
        return types.TextDocumentIdentifier(self.uri(name))

    def configure(self, **settings: Any) -> None:
        params = types.DidChangeConfigurationParams({"nkic": settings})
        self.tell(self.client.workspace_did_change_configuration, params)

    def open(self, name: str, text: str) -> list[types.Diagnostic]:
        self.show(name, text)
        return self.found(name)

    def show(self, name: str, text: str) -> None:
        """Open a document, and do not wait."""
        self.versions[name] = 1
        item = types.TextDocumentItem(self.uri(name), "python", 1, text)
        self.tell(self.client.text_document_did_open, types.DidOpenTextDocumentParams(item))

    def type(self, name: str, text: str) -> None:
        """Replace the text of a document, and do not wait."""
        self.versions[name] += 1
        identifier = types.VersionedTextDocumentIdentifier(self.versions[name], self.uri(name))
        change = types.TextDocumentContentChangeWholeDocument(text)
        params = types.DidChangeTextDocumentParams(identifier, [change])
        self.tell(self.client.text_document_did_change, params)

    def change(self, name: str, text: str) -> list[types.Diagnostic]:
        """Replace the text of a document, and return what is found in it."""
        self.type(name, text)
        return self.found(name)

    def save(self, name: str, text: str) -> None:
        """Write a document's file, and say so."""
        (self.folder / name).write_text(text, "utf-8")
        params = types.DidSaveTextDocumentParams(self.at(name))
        self.tell(self.client.text_document_did_save, params)

    def command(self, command: str, name: str) -> list[types.ShowMessageParams]:
        """Have a command carried out, and return what the server says."""
        before = len(self.said)
        params = types.ExecuteCommandParams(command, [self.uri(name)])
        self.await_(self.client.workspace_execute_command_async(params))
        return self.said[before:]

    def close(self, name: str) -> None:
        params = types.DidCloseTextDocumentParams(self.at(name))
        self.tell(self.client.text_document_did_close, params)

    def found(self, name: str) -> list[types.Diagnostic]:
        """Return what is found in the present version of a document."""
        version = self.versions[name]
        wanted = self._wait(lambda each: each.version == version, self.uri(name))
        return list(wanted.diagnostics)

    def _wait(self, is_wanted: Any, uri: str) -> types.PublishDiagnosticsParams:
        def wanted() -> types.PublishDiagnosticsParams | None:
            matching = [e for e in self.published if e.uri == uri and is_wanted(e)]
            return matching[-1] if matching else None

        with self._news:
            assert self._news.wait_for(wanted, PATIENCE), f"no diagnostics of {uri}"
            found = wanted()
            assert found is not None
            return found


def position(text: str, words: str, offset: int = 0) -> types.Position:
    """Return the place of the first occurrence of `words`."""
    before = text[: text.index(words) + offset]
    return types.Position(before.count("\n"), len(before) - before.rfind("\n") - 1)


def fixed(text: str, edits: list[types.TextEdit]) -> str:
    """Apply edits to a text of the basic plane."""
    lines = text.splitlines(keepends=True)

    def offset(at: types.Position) -> int:
        return sum(map(len, lines[: at.line])) + at.character

    for edit in sorted(edits, key=lambda e: offset(e.range.start), reverse=True):
        start, end = offset(edit.range.start), offset(edit.range.end)
        text = text[:start] + edit.new_text + text[end:]
    return text
