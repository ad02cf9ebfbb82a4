"""Writing outputs to files and to standard output."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from nkic import __version__
from nkic.arrays.npz import write_npz
from nkic.arrays.offers import natural
from nkic.base import files
from nkic.base.diagnostics import bad_value
from nkic.base.files import STANDARD
from nkic.base.suggest import suggestion
from nkic.cli.common import Session
from nkic.cli.common.table import is_named
from nkic.cli.nki_run.options import CommandLine
from nkic.machine import codecs
from nkic.machine.dtypes import DType
from nkic.simulate.comparison.tolerance import ToleranceSettings
from nkic.simulate.io.signature import ArrayParameter, Signature

Arrays = Mapping[str, NDArray[Any]]
SIDECAR = ".json"  # appended to the whole name of a blessed file


def parse_outputs(values: Sequence[str], signature: Signature) -> dict[str, list[str]]:
    """Return the paths of every `NAME=PATH` by output name. Raises `UsageFailed`."""
    names = [p.name for p in signature.outputs]
    paths: dict[str, list[str]] = {}
    for request in filter(is_named, values):
        name, equals, destination = request.partition("=")
        if not equals or not (
            destination == STANDARD or (destination.startswith("@") and len(destination) > 1)
        ):
            raise bad_value(f"--outputs {request}: expected NAME=@FILE.npy or NAME=-")
        if name not in names:
            text = f"--outputs {request}: there is no output `{name}`"
            raise bad_value(text, suggestion(name, names, "there are"))
        paths.setdefault(name, []).append(destination.removeprefix("@"))
    return paths


class Writer:
    """Writes the outputs of one run, in storage type, where the command line requests them."""

    def __init__(self, line: CommandLine, session: Session, signature: Signature) -> None:
        self.line = line
        self.session = session
        self.signature = signature
        self.single = parse_outputs(line.outputs, signature)
        self.whole = [path for path in line.outputs if not is_named(path)]
        self.readable = line.outputs_as == "f32"

    def write(
        self, outputs: Arrays, program: Callable[[], str], settings: ToleranceSettings
    ) -> None:
        """Write all requested files. `program` returns the id of the program that made the
        outputs.
        """
        for path in self.whole:
            self._npz(path, outputs, self.readable)
        for parameter in self.signature.outputs:
            for path in self.single.get(parameter.name, ()):
                self._single(path, outputs[parameter.name], parameter)
        if self.line.bless is not None:
            self._npz(self.line.bless, outputs, readable=False)
            text = json.dumps(self._origin(program(), settings), indent=2) + "\n"
            files.write(self.line.bless + SIDECAR, text)
            self.session.artifact("json", self.line.bless + SIDECAR)

    def _npz(self, path: str, outputs: Arrays, readable: bool) -> None:
        arrays, types = {}, {}
        for p in self.signature.outputs:
            arrays[p.name] = presented(outputs[p.name], p.dtype, readable)
            types[p.name] = "float32" if readable and _changes(p.dtype) else p.dtype.name
        self._file(path, "npz", lambda stream: write_npz(stream, arrays, types))

    def _single(self, path: str, output: NDArray[Any], parameter: ArrayParameter) -> None:
        if path == STANDARD:
            numbers = np.array2string(presented(output, parameter.dtype, True), threshold=1000)
            files.write(STANDARD, f"{parameter.name} {parameter}\n{numbers}\n")
            return
        array = presented(output, parameter.dtype, self.readable)
        self._file(path, "npy", lambda stream: np.save(stream, array, allow_pickle=False))

    def _file(self, path: str, kind: str, fill: Callable[[BinaryIO], None]) -> None:
        if path == STANDARD:
            memory = io.BytesIO()
            fill(memory)
            files.write(STANDARD, memory.getvalue(), force=self.line.force)
            return
        with files.replacing(path) as stream:
            fill(stream)
        self.session.wrote(kind, path)

    def _origin(self, program: str, settings: ToleranceSettings) -> dict[str, Any]:
        """Return the record of what made blessed outputs, independent of place and time."""
        rules = {p.name: vars(settings.rule(p.name, p.dtype)) for p in self.signature.outputs}
        return {
            "schema": 1,
            "kernel": self.signature.kernel,
            "id": program,
            "producer": f"nki-run {__version__}",
            "tolerances": rules,
        }


def presented(output: NDArray[Any], dtype: DType, readable: bool) -> NDArray[Any]:
    """Return an output as a NumPy array: with its bytes, or as numbers that NumPy can show."""
    if readable and dtype.lanes > 1:
        return codecs.unpack(output, dtype)
    if readable and _changes(dtype):
        return codecs.decode(output, dtype)
    element = natural(dtype)
    return np.ascontiguousarray(output).view(f"{element.kind}{element.size}")


def _changes(dtype: DType) -> bool:
    """Whether --outputs-as f32 converts the dtype: a float, or packed floats, that NumPy lacks."""
    return natural(dtype).kind == "V" or dtype.lanes > 1
