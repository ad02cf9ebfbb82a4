"""The outputs of a run: where they are written, and how they are compared (--compare, --rtol,
--atol).
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from nkic import __version__
from nkic.artifact.arrays import natural, write_npz
from nkic.base import files
from nkic.base.diagnostics import UsageFailed, bad_value, make, suggestion
from nkic.base.files import STANDARD
from nkic.cli.common import Session
from nkic.cli.common.options import is_named
from nkic.cli.nki_run.options import CommandLine
from nkic.machine import codecs
from nkic.machine.dtypes import DType
from nkic.simulate.compare import EVERY, MODES, ToleranceSettings, out_of_range
from nkic.simulate.inputs import ArrayParameter, Signature

Arrays = Mapping[str, NDArray[Any]]
SIDECAR = ".json"  # appended to the whole name of a blessed file


def parse_outputs(values: Sequence[str], signature: Signature) -> dict[str, list[str]]:
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
        """Write all requested files; `program` returns the id of what made the outputs."""
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
            types[p.name] = "float32" if readable and _is_converted(p.dtype) else p.dtype.name
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
    if readable and _is_converted(dtype):
        return codecs.decode(output, dtype)
    element = natural(dtype)
    return np.ascontiguousarray(output).view(f"{element.kind}{element.size}")


def _is_converted(dtype: DType) -> bool:
    """Whether --outputs-as f32 converts the dtype: a float, or packed floats, that NumPy lacks."""
    return natural(dtype).kind == "V" or dtype.lanes > 1


_NUMBERS = {key for keys in MODES.values() for key in keys}
_RULES = {
    "max-ulp": "max_ulp",
    "min-cosine": "min_cosine",
    "max-l2": "max_l2",
    "pass-rate": "min_pass_rate",
}
_EQUAL_NAN = "equal-nan"


def tolerances_of(line: CommandLine) -> ToleranceSettings:
    by_key: dict[str, dict[str, Any]] = {}
    equal_nan = False
    for name, rule in _rules(line):
        key, value = _parsed(rule)
        if key == _EQUAL_NAN:
            if name != EVERY:
                raise bad_value(
                    f"--compare {name}={rule}: it is for all outputs", "leave out the name"
                )
            equal_nan = True
            continue
        if name in by_key.setdefault(key, {}):
            about = f" for `{name}`" if name else ""
            raise bad_value(f"{_option(key)} is given twice{about}")
        by_key[key][name] = value
    return ToleranceSettings(by_key, equal_nan)


def _rules(line: CommandLine) -> Iterator[tuple[str, str]]:
    """Yield each rule with the name of its output: `ulp`, `max-ulp:4`, `rtol:1e-3`."""
    for option, values, prefix in (
        *(("--compare", line.compare, ""), ("--rtol", line.rtol, "rtol:")),
        ("--atol", line.atol, "atol:"),
    ):
        for text in values:
            name, equals, rules = text.rpartition("=")
            if equals and not name:
                raise bad_value(f"{option} {text}: an output's name is missing before `=`")
            yield from ((name or EVERY, f"{prefix}{rule}") for rule in rules.split(","))


def _parsed(rule: str) -> tuple[str, Any]:
    word, colon, number = rule.partition(":")
    key = _RULES.get(word, word)
    if colon and key in _NUMBERS:
        return key, _number(key, number)
    if word in MODES and not colon:
        return "mode", word
    if word != _EQUAL_NAN:
        names = (*MODES, *(f"{name}:" for name in _RULES), _EQUAL_NAN)
        raise bad_value(f"--compare: there is no rule `{rule}`", suggestion(rule, names))
    return _EQUAL_NAN, True


def _option(key: str) -> str:
    rule = next((name for name, field in _RULES.items() if field == key), None)
    return f"--compare {rule}" if rule else "--compare" if key == "mode" else f"--{key}"


def _number(key: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if wanted := out_of_range(key, value):
        raise bad_value(f"{_option(key)}: `{text}` is not {wanted}")
    return value


def refuse_ignored(settings: ToleranceSettings, signature: Signature) -> None:
    modes = {p.name: settings.mode(p.name) for p in signature.outputs}
    for key, name in settings.ignored(modes):
        if name != EVERY and name not in modes:
            text = f"{_option(key)}: there is no output `{name}`"
            raise bad_value(text, suggestion(name, modes, "there are"))
        mode = modes.get(name, next(iter(modes.values()), "close"))
        text = f"`{_option(key)}` does not apply to `--compare {mode}`"
        used = ", ".join(_option(key) for key in MODES[mode])
        help = f"{mode} uses only {used}" if used else f"{mode} uses no other option"
        raise UsageFailed([make("conflicting-options", text, help=help)])
