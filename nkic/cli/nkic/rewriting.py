"""A kernel's file that the command rewrites: the new source as a diff or a file."""

from __future__ import annotations

from codecs import BOM_UTF8
from difflib import unified_diff

from nkic.base import files
from nkic.base.diagnostics import UsageFailed, bad_value, make
from nkic.base.files import STANDARD
from nkic.base.source import SourceFile
from nkic.cli.common import Session
from nkic.cli.nkic.options import CommandLine
from nkic.driver.loader import MAX_BYTES
from nkic.specialise.request import Request


class Rewriting:
    """A new text for one file."""

    def __init__(
        self, line: CommandLine, session: Session, source: SourceFile, request: Request
    ) -> None:
        self.line = line
        self.session = session
        self.source = source
        self.request = request

    def write(self, text: str) -> None:
        """Write the new source to the requested file, or the diff to standard output."""
        line = self.line
        path = line.source if line.in_place else line.output
        if path is None:
            files.write(STANDARD, self.difference(text))
        elif not line.in_place and self.is_input(path):
            advice = "--in-place replaces the file"
            raise bad_value(f"-o: `{path}` is the input", advice)
        elif not line.in_place or text != self.source.text:
            files.write(path, self.encoded(text))
            self.session.artifact("source", path)

    def is_input(self, path: str) -> bool:
        """Whether the file to write is the one that was read."""
        paths = (path, str(self.line.source))
        return STANDARD not in paths and len({files.real(name) for name in paths}) == 1

    def encoded(self, text: str) -> bytes:
        """Return the text in the file's encoding: UTF-8, with a byte-order mark if it had one."""
        if self.line.source == STANDARD:
            return text.encode()
        data = files.read_bytes(str(self.line.source), MAX_BYTES)
        mark = BOM_UTF8 if data.startswith(BOM_UTF8) else b""
        if data.removeprefix(mark) != self.source.text.encode():
            message = f"`{self.line.source}` is not in UTF-8, or has changed in the meantime"
            raise UsageFailed([make("cannot-write", message, help="save it as UTF-8")])
        return mark + text.encode()

    def difference(self, text: str) -> str:
        """Return a diff that `patch` accepts; empty if nothing changed."""
        name = str(self.line.source)
        pair = (self.source.text.splitlines(keepends=True), text.splitlines(keepends=True))
        return "".join(unified_diff(*pair, name, name))
