"""A compiled kernel."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from nkic.api.errors import RunError, raising
from nkic.base import files
from nkic.base.diagnostics import Diagnostic
from nkic.ir.program import Returned
from nkic.neff.info import info
from nkic.neff.listing.disassemble import dump
from nkic.neff.load import load
from nkic.neff.read import open_file
from nkic.neff.records import Executable
from nkic.simulate.io.signature import Signature, signature_of


@dataclass(frozen=True)
class Artifact:
    """The bytes of a compiled kernel, with what compiling it said.

    `messages` are what the kernel printed. `returned` is the form of what it returns: the number
    of an output, several in a tuple, or None; a file does not hold it. `reads` are hashes of the
    files of data that became constants, by path.
    """

    data: bytes = field(repr=False)
    warnings: tuple[Diagnostic, ...] = ()
    messages: tuple[str, ...] = ()
    returned: Returned = None
    reads: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Artifact:
        """Reads and verifies a file. Raises `RunError`."""
        with raising(RunError):
            made = cls(open_file(os.fspath(path)))
            found = made.executable
        count = sum(p.name == f"output_{n}" for n, p in enumerate(found.outputs))
        form = tuple(range(count)) if count > 1 else 0
        return cls(made.data, returned=form if count else None)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the file, whole or not at all."""
        with raising(RunError):
            files.write(os.fspath(path), self.data)
        return Path(path)

    @cached_property
    def executable(self) -> Executable:
        """The records of the file, verified."""
        return load(self.data)

    @property
    def id(self) -> str:
        """What identifies the program, whatever folder it was compiled in."""
        return info(self.data).artifact_id

    @cached_property
    def signature(self) -> Signature:
        """The arrays that go in and come out, in order."""
        return signature_of(self.executable)

    @property
    def text(self) -> str:
        """The program as text, as `nki-run --dump` prints it."""
        return dump(self.executable)

    def _repr_html_(self) -> str:
        """For notebooks: the signature."""
        from nkic.api.html import signature

        return signature(self.signature)
