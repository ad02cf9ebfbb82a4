"""The tables of a file: source places and tensors, numbered in order of first use."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

from nkic.base.source import CallChain, SourceFile
from nkic.ir.program import Program
from nkic.ir.tensors import Role, Tensor
from nkic.machine.memory import Address, Buffer
from nkic.neff.records import FileRecord, PlaceRecord, TensorRecord

_NOWHERE = Address(0, 0)
_INTERNAL = Role.INTERNAL.value


class PlaceTable:
    """The rows of call chains; a chain's caller has a row of its own."""

    def __init__(self, sources: Mapping[str, SourceFile]) -> None:
        self.sources = sources
        self.rows: list[PlaceRecord] = []
        self.files: list[FileRecord] = []
        self.row_of: dict[int, int] = {}  # by the chain's identity
        self._chains: list[CallChain] = []  # keeps objects alive whose ids are keys
        self._row_of_place: dict[PlaceRecord, int] = {}
        self._file_of: dict[str, int] = {}

    def index(self, chain: CallChain | None) -> int:
        """Return the row of `chain`; -1 for None."""
        if chain is None:
            return -1
        cached = self.row_of.get(id(chain))
        if cached is not None:
            return cached
        span = chain.span
        caller = self.index(chain.caller)
        place = PlaceRecord(
            self._file(span.path), span.line, span.column, span.end_line, span.end_column, caller
        )
        row = self._row_of_place.setdefault(place, len(self.rows))
        if row == len(self.rows):
            self.rows.append(place)
        self.row_of[id(chain)] = row
        self._chains.append(chain)
        return row

    def _file(self, path: str) -> int:
        if path not in self._file_of:
            source = self.sources.get(path)
            text = source.text if source is not None else ""
            self._file_of[path] = len(self.files)
            self.files.append(FileRecord(path, sha256(text.encode()).hexdigest(), text))
        return self._file_of[path]


class Tensors:
    """The rows of tensors. Their `core` is -1 for shared HBM."""

    def __init__(self, program: Program, places: PlaceTable) -> None:
        self.program = program
        self.places = places
        self.rows: list[TensorRecord] = []
        self.row_of: dict[int, int] = {}  # by the tensor's number
        self._roles = _roles(program)

    def index(self, tensor: Tensor, core: int) -> int:
        """Return the row of `tensor`, which is added at its first use, by `core`."""
        row = self.row_of.get(tensor.number)
        return self.add(tensor, core) if row is None else row

    def add(self, tensor: Tensor, core: int) -> int:
        """Append the row of a new tensor, and return its index."""
        number, buffer = tensor.number, tensor.buffer
        partition, byte = self.program.addresses.get(number, _NOWHERE)
        owner = -1 if buffer is Buffer.SHARED_HBM else core
        role = self._roles.get(number, _INTERNAL)
        fields = (tensor.name, tensor.dtype, tensor.shape, buffer, owner, role)
        place = self.places.index(tensor.at)
        row = self.row_of[number] = len(self.rows)
        self.rows.append(tuple.__new__(TensorRecord, (*fields, partition, byte, place)))
        return row


def _roles(program: Program) -> dict[int, str]:
    roles = dict.fromkeys(program.constants, Role.CONSTANT.value)
    roles |= {p.tensor.number: Role.OUTPUT.value for p in program.outputs}
    return roles | {p.tensor.number: Role.INPUT.value for p in program.inputs}
