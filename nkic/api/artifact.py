"""A compiled kernel, and HTML for notebooks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Annotated

from nkic.api.errors import RunError, raising
from nkic.api.options import FilePath, Values, public
from nkic.artifact import signature
from nkic.artifact.disassemble import dump
from nkic.artifact.read import info, load, open_file
from nkic.artifact.records import Executable
from nkic.artifact.verify import verify_ordered
from nkic.base import files
from nkic.base.diagnostics import Diagnostic
from nkic.program.program import Returned
from nkic.simulate.inputs import Signature, signature_of


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return an HTML table; text is escaped."""
    return (
        "<table><thead>"
        + _row("th", head)
        + "</thead><tbody>"
        + "".join(_row("td", row) for row in rows)
        + "</tbody></table>"
    )


def _row(cell: str, values: Sequence[object]) -> str:
    return f"<tr>{''.join(f'<{cell}>{escape(str(v))}</{cell}>' for v in values)}</tr>"


@dataclass(frozen=True)
class Artifact:
    """The bytes of a compiled kernel, with the messages of its compilation.

    `messages` is what the kernel printed. `returned` is the form of the kernel's result: the number
    of an output, a tuple of forms, or None; a file does not store it. `reads` maps the paths of
    data files that became constants to their hashes.
    """

    data: bytes = field(repr=False)
    warnings: tuple[Diagnostic, ...] = ()
    messages: tuple[str, ...] = ()
    returned: Returned = None
    reads: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    @public(RunError)
    def load(cls, path: FilePath, *, signed_by: FilePath | None = None) -> Artifact:
        """Read and verify a file, and its signature by the public key in the file `signed_by`.

        Raises `RunError`.
        """
        with raising(RunError):
            key = os.fspath(signed_by) if signed_by is not None else None
            artifact = cls(open_file(os.fspath(path), signed_by=key))
            return artifact.returning()

    def returning(self) -> Artifact:
        """Return the artifact with the form of its result as far as its file tells: its outputs."""
        count = sum(p.name == f"output_{n}" for n, p in enumerate(self.executable.outputs))
        form = tuple(range(count)) if count > 1 else 0
        return replace(self, returned=form if count else None)

    @public(RunError)
    def save(self, path: FilePath) -> Path:
        """Write the file atomically."""
        with raising(RunError):
            files.write(os.fspath(path), self.data)
        return Path(path)

    @public(RunError)
    def sign(self, key: FilePath) -> Artifact:
        """Return the artifact with a signature by the private key in a file. Raises `RunError`."""
        with raising(RunError):
            data = signature.sign(self.data, signature.private_key(os.fspath(key)))
        return replace(self, data=data)

    @cached_property
    def executable(self) -> Executable:
        """The verified records of the file."""
        return load(self.data)

    @cached_property
    def ordered(self) -> Executable:
        """The same, if nothing in it races within a core."""
        verify_ordered(self.executable)
        return self.executable

    @property
    def id(self) -> str:
        """The program's identity, independent of the folder it was compiled in."""
        return info(self.data).artifact_id

    @cached_property
    def signature(self) -> Signature:
        """The input and output arrays, in order."""
        return signature_of(self.executable)

    @property
    def text(self) -> str:
        """The program as text, as `nkic --emit asm` writes it."""
        return dump(self.executable)

    def _repr_html_(self) -> str:
        """The inputs and outputs of the kernel as a table, for notebooks."""
        rows = [("in", p.name, f"{p}") for p in self.signature.inputs]
        rows += [("out", p.name, f"{p}") for p in self.signature.outputs]
        return f"<b>{escape(self.signature.kernel)}</b>{table(('', 'array', 'type'), rows)}"


Compiled = Annotated[
    Artifact,
    Values("an Artifact", help="nkic.compile(...) makes one, nkic.Artifact.load(path) reads one"),
]
