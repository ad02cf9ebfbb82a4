"""A kernel's inputs and outputs, and their presentation in messages."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import prod
from typing import NamedTuple

from nkic.base.suggest import did_you_mean
from nkic.base.text import clean, width
from nkic.machine.dtypes import DType
from nkic.neff.records import Executable, ParameterRecord


class ArrayParameter(NamedTuple):
    """An input or output array. `tensor` is its index in the file.

    An input that is updated in place and returned is an output under two names.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    tensor: int = -1

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"

    @property
    def elements(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """The size in bytes."""
        return self.elements * self.dtype.size


class Signature(NamedTuple):
    """A kernel's arrays, in order."""

    kernel: str
    inputs: tuple[ArrayParameter, ...]
    outputs: tuple[ArrayParameter, ...]

    @property
    def updates(self) -> dict[str, bool]:
        """The inputs that the kernel writes, and whether it also returns them."""
        names = {p.name for p in self.inputs}
        returned = {p.tensor for p in self.outputs if p.name not in names}
        return {p.name: p.tensor in returned for p in self.outputs if p.name in names}

    @property
    def returned(self) -> tuple[ArrayParameter, ...]:
        """The arrays that the kernel returns."""
        names = {p.name for p in self.inputs}
        return tuple(p for p in self.outputs if p.name not in names)


def signature_of(executable: Executable) -> Signature:
    """Return the signature of the kernel in a file."""

    def parameters(records: Sequence[ParameterRecord]) -> tuple[ArrayParameter, ...]:
        tensors = ((record, executable.tensors[record.tensor]) for record in records)
        return tuple(ArrayParameter(r.name, t.dtype, t.shape, r.tensor) for r, t in tensors)

    return Signature(executable.name, parameters(executable.inputs), parameters(executable.outputs))


class SignatureLine(NamedTuple):
    """An array of the signature, or a superfluous one, and its problem."""

    name: str
    type: str
    problem: str


def superfluous(kind: str, names: Iterable[str], choices: Collection[str]) -> list[SignatureLine]:
    """Return the lines of arrays that the kernel does not have; `kind` is input or output."""
    guesses = {name: did_you_mean(name, choices) for name in names}
    return [
        SignatureLine(name, "", f"no such {kind}{'; ' if guess else ''}{guess}")
        for name, guess in guesses.items()
    ]


def table(title: str, lines: Sequence[SignatureLine]) -> str:
    """Return the signature with a mark on every line: ✓, or ✗ and the problem."""
    names = max((width(clean(line.name)) for line in lines), default=0)
    types = max((width(line.type) for line in lines), default=0)
    rows = (_row(line, names, types) for line in lines)
    return "\n".join([title, *rows])


def _row(line: SignatureLine, names: int, types: int) -> str:
    name = clean(line.name)
    padded = name + " " * (names - width(name))
    mark = "✗" if line.problem else "✓"
    return f"{mark} {padded}  {line.type:<{types}}  {line.problem}".rstrip()


_MAX_NAMED = 3  # problems in one sentence


def summary(lines: Sequence[SignatureLine]) -> str:
    """Return the problems in one sentence, `` `b`: missing; `c`: … ``, and how many more."""
    wrong = [f"`{clean(line.name)}`: {line.problem}" for line in lines if line.problem]
    more = f"; and {len(wrong) - _MAX_NAMED} more" if len(wrong) > _MAX_NAMED else ""
    return "; ".join(wrong[:_MAX_NAMED]) + more
