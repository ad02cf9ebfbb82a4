"""`-i NAME=…`: the specification of one input, as the user writes it.

a=@a.npy                 the array of an npy file
a=f32[128,512]=@a.bin    raw elements, little-endian, in C order
a=3.14                   the value of an input with one element
a=zeros                  a generator: see fills.py
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn

from nkic.base.diagnostics import UsageFailed, make
from nkic.base.suggest import did_you_mean
from nkic.base.text import clean
from nkic.machine import dtypes
from nkic.machine.dtypes import DType
from nkic.simulate.io.fills import FORMS, GENERATORS, Generator, parse_generator

_BRACKETS = re.compile(r"(?P<dtype>[\w.]+)\s*\[(?P<sizes>[\d,\s]*)\]")
_CROSSES = re.compile(r"(?P<sizes>\d+(?:x\d+)*)x(?P<dtype>[A-Za-z]\w*)")
_WHOLE = re.compile(r"[+-]?\d{1,19}")
_MAX_SIZE = 2**31 - 1
_FORMS_HELP = f"write -i NAME=@FILE.npy, NAME=f32[128,512]=@FILE.bin, NAME=3.14, or NAME={FORMS}"


@dataclass(frozen=True)
class NpyFile:
    """`@f.npy`"""

    path: str


@dataclass(frozen=True)
class RawFile:
    """`f32[128,512]=@f.bin`"""

    path: str
    dtype: DType
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Value:
    """`3.14`"""

    number: float


Spec = NpyFile | RawFile | Value | Generator


def parse_inputs(texts: Iterable[str]) -> dict[str, Spec]:
    """Return every `-i` by name; raises `UsageFailed`."""
    specs: dict[str, Spec] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name.strip() or not equals or not value.strip():
            _refuse(f"-i {text}: expected NAME=WHAT", _FORMS_HELP)
        if name.strip() in specs:
            _refuse(f"-i {text}: `{name.strip()}` is given twice")
        specs[name.strip()] = _spec(value.strip(), f"-i {text}")
    return specs


def _spec(text: str, where: str) -> Spec:
    if text.startswith("@") and len(text) > 1:
        return NpyFile(text[1:])
    if "=@" in text:
        return _raw(text, where)
    value = _number(text)
    spec = Value(value) if value is not None else parse_generator(text)
    if spec is None:
        near = did_you_mean(text.partition("(")[0], GENERATORS)
        _refuse(f"{where}: cannot make an input of `{text}`", near or _FORMS_HELP)
    return spec


def _number(text: str) -> float | None:
    try:
        whole = int(text) if _WHOLE.fullmatch(text) else None  # with all of its digits
        return whole if whole is not None and abs(whole) < 2**63 else float(text)
    except ValueError:
        return None


def _raw(text: str, where: str) -> RawFile:
    type, _, path = text.partition("=@")
    match = _BRACKETS.fullmatch(type.strip()) or _CROSSES.fullmatch(type.strip())
    if match is None or not path:
        _refuse(f"{where}: a type and a file are expected", "for example -i a=f32[128,512]=@a.bin")
    sizes = [int(word) for word in re.findall(r"\d+", match["sizes"])]
    if not all(0 < size <= _MAX_SIZE for size in sizes):
        _refuse(f"{where}: every size must be from 1 to {_MAX_SIZE}")
    name = match["dtype"].removeprefix("nl.")
    dtype = dtypes.find(name)
    if dtype is None:
        near = "".join(f"did you mean `{suggestion}`?" for suggestion in dtypes.suggest(name))
        choices = f"known are: {', '.join(dtypes.DTYPES)}"
        _refuse(f"{where}: there is no dtype `{name}`", near or choices)
    return RawFile(path, dtype, tuple(sizes))


def parse_fill(text: str | None) -> Generator | None:
    """Return the value of --fill; raises `UsageFailed`."""
    generator = parse_generator(text) if text is not None else None
    if text is not None and generator is None:
        near = did_you_mean(text.partition("(")[0], GENERATORS)
        _refuse(f"--fill {text}: not a generator", near or f"known are: {FORMS}")
    return generator


def _refuse(message: str, help: str = "") -> NoReturn:
    raise UsageFailed([make("bad-value", clean(message), help=help)])
