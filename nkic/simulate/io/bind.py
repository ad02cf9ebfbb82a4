"""Inputs: the user's offers, matched to the kernel's parameters before they are read."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from math import ceil, floor, isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.arrays.npz import read_npz
from nkic.arrays.offers import Offer, natural, offer_npy, offer_raw
from nkic.arrays.streams import Opened, opened
from nkic.base.diagnostics import Diagnostic, InputFailed, Level, make
from nkic.base.text import clean, grouped
from nkic.machine.dtypes import DType
from nkic.simulate.io import numbers
from nkic.simulate.io.fills import Generator
from nkic.simulate.io.signature import (
    ArrayParameter,
    Signature,
    SignatureLine,
    summary,
    superfluous,
    table,
)
from nkic.simulate.io.specs import NpyFile, RawFile, Spec, Value

Arrays = dict[str, NDArray[Any]]
Choice = Offer | Generator | Value | None


@dataclass(frozen=True)
class Wanted:
    """The user's requests for inputs. `specs` override the file; `fill` makes missing inputs.

    `in_python`: they are the arguments of a call, not options of the command.
    """

    file: str | None = None
    specs: Mapping[str, Spec | Offer] = field(default_factory=dict)
    fill: Generator | None = None
    cast: bool = False
    in_python: bool = False


@dataclass(frozen=True)
class BoundInputs:
    """Every input in its storage type, with a word on its source, and remarks on casts."""

    arrays: Arrays
    sources: dict[str, str]
    remarks: tuple[Diagnostic, ...]


def bind(signature: Signature, wanted: Wanted) -> BoundInputs:
    """Return the inputs.

    Raises `InputFailed`, with the whole signature, if something does not fit, before any data is
    read; raises `UsageFailed` for a file that cannot be read.
    """
    with ExitStack() as files:
        offers = _offers(signature, wanted, files)
        chosen = {p.name: offers.get(p.name, wanted.fill) for p in signature.inputs}
        _check(signature, chosen, offers, wanted)
        remarks: list[Diagnostic] = []
        arrays = {p.name: _array(p, chosen[p.name], remarks) for p in signature.inputs}
    sources = {name: _source(choice) for name, choice in chosen.items()}
    return BoundInputs(arrays, sources, tuple(remarks))


def _offers(signature: Signature, wanted: Wanted, files: ExitStack) -> dict[str, Choice]:
    """Return the offers by name; of files, only the headers are read."""
    offers: dict[str, Choice] = {}
    # Elements of another type have at most 8 bytes: the limit lets them be read and reported.
    sizes = {p.name: p.elements * 8 for p in signature.inputs}
    if wanted.file is not None:
        file = files.enter_context(opened(wanted.file, sum(sizes.values())))
        offers.update(read_npz(file, wanted.file))
    for name, spec in wanted.specs.items():
        offers[name] = _choice(spec, files, sizes.get(name, 0))
    return offers


def _choice(spec: Spec | Offer, files: ExitStack, limit: int) -> Choice:
    if not isinstance(spec, NpyFile | RawFile):
        return spec
    file: Opened = files.enter_context(opened(spec.path, limit))
    if isinstance(spec, NpyFile):
        return offer_npy(file, spec.path)
    return offer_raw(file, spec.path, spec.dtype, spec.shape)


def _check(
    signature: Signature,
    chosen: Mapping[str, Choice],
    offers: Mapping[str, Choice],
    wanted: Wanted,
) -> None:
    lines = [
        SignatureLine(p.name, f"{p}", _problem(p, chosen[p.name], wanted.cast))
        for p in signature.inputs
    ]
    names = [p.name for p in signature.inputs]
    missing = [name for name in names if name not in offers]
    lines += superfluous("input", [name for name in offers if name not in names], missing or names)
    if not any(line.problem for line in lines):
        return
    kernel = clean(signature.kernel)
    message = f"the inputs do not fit kernel `{kernel}`: {summary(lines)}"
    note = table(f"inputs of {kernel}:", lines)
    help = _advice(signature, chosen, wanted.in_python)
    raise InputFailed([make("inputs-do-not-fit", message, notes=[note], help=help)])


def _problem(parameter: ArrayParameter, choice: Choice, cast: bool) -> str:
    """Return why this cannot be the input, or an empty string."""
    if choice is None:
        return "missing"
    if isinstance(choice, Offer):
        fits = choice.is_of(parameter.dtype) or (cast and _castable(choice, parameter.dtype))
        if choice.shape == parameter.shape and fits:
            return ""
        return f"is {choice} in {choice.origin}"
    if isinstance(choice, Value) and parameter.elements != 1:
        number, count = f"{choice.number:g}", grouped(parameter.elements)
        return f"one number for {count} elements; const({number}) fills them all"
    return next(filter(None, (_unrepresentable(parameter.dtype, n) for n in _limits(choice))), "")


def _limits(choice: Generator | Value) -> tuple[float, ...]:
    """Return numbers that the input's type must be able to represent."""
    if isinstance(choice, Value):
        return (choice.number,)
    if choice.name == "uniform":
        return floor(choice.numbers[0]), ceil(choice.numbers[1]) - 1.0
    return choice.numbers if choice.name == "const" else ()


def _unrepresentable(dtype: DType, number: float) -> str:
    """Return why a type cannot represent a number, or an empty string.

    Rounding a float is not an error: nobody writes 0.1 and means its nearest bfloat16.
    """
    element = dtype.element or dtype
    if element.is_float:
        beyond = isfinite(number) and abs(number) > element.highest
        return (
            f"{number:g} is beyond {dtype}, whose maximum is {element.highest:g}" if beyond else ""
        )
    if element.lowest <= number <= element.highest and float(number).is_integer():
        return ""
    return (
        f"{number:g} is not a value of {dtype}: integers from {dtype.lowest:g} to {dtype.highest:g}"
    )


def _castable(offer: Offer, dtype: DType) -> bool:
    if dtype.lanes > 1:
        return False
    if offer.nki_dtype is not None:
        return offer.nki_dtype.lanes == 1
    return offer.element.kind != "V" and offer.element.readable


def _advice(signature: Signature, chosen: Mapping[str, Choice], in_python: bool) -> str:
    """Return one fix for the first problem."""
    for parameter in signature.inputs:
        choice = chosen[parameter.name]
        if choice is None:
            name = parameter.name
            if in_python:
                return f"pass an array as `{name}`, or fill missing inputs with fill='zeros'"
            return f"give it with -i {name}=@{name}.npy, or fill missing inputs with --fill zeros"
        if isinstance(choice, Offer) and choice.shape != parameter.shape:
            how = "" if in_python else ": `nkic --like FILE.npz` takes them from it"
            return f"compile for the shapes of the data{how}"
        if isinstance(choice, Offer) and not choice.is_of(parameter.dtype):
            return _type_advice(choice, parameter.dtype, in_python)
    return "remove inputs that the kernel does not have, or rename them"


def _type_advice(offer: Offer, dtype: DType, in_python: bool) -> str:
    wanted = natural(dtype)
    if wanted.kind == "V" and offer.element.kind in "ui" and offer.element.size == wanted.size:
        bits = f"if its elements are the bits of {dtype}"
        verb = "pass" if in_python else "save"
        return f"{bits}, {verb} it as raw bytes: array.view('V{dtype.size}')"
    if _castable(offer, dtype):
        option = "cast=True" if in_python else "--cast"
        return f"{option} converts it to {dtype} and reports the rounding error"
    return f"{'convert' if in_python else 'save'} the array {'to' if in_python else 'as'} {dtype}"


def _array(parameter: ArrayParameter, choice: Choice, remarks: list[Diagnostic]) -> NDArray[Any]:
    if isinstance(choice, Value):
        choice = Generator("const", (choice.number,))
    if isinstance(choice, Generator):
        return choice.array(parameter.name, parameter.dtype, parameter.shape)
    assert choice is not None, "checked before"
    if choice.is_of(parameter.dtype):
        return choice.load_as(parameter.dtype)
    values = offered_numbers(choice)
    stored = numbers.stored(values, parameter.dtype)
    error = numbers.rounding_error(values, numbers.numbers(stored, parameter.dtype))
    remarks.append(_cast(parameter, choice, error))
    return stored


def offered_numbers(offer: Offer) -> numbers.Numbers:
    """Return the data as numbers, by its own type."""
    if offer.nki_dtype is not None:
        return numbers.numbers(offer.load_as(offer.nki_dtype), offer.nki_dtype)
    values: numbers.Numbers = offer.load().astype(np.float64)
    return values


def _cast(parameter: ArrayParameter, offer: Offer, error: float) -> Diagnostic:
    loss = "a value beyond its range was lost" if error == float("inf") else ""
    cost = loss or f"the largest rounding error is {error:.3g}"
    text = f"input `{parameter.name}` of {offer.origin}, {offer}, was cast to {parameter.dtype}"
    level = Level.WARNING if loss else Level.REMARK
    return make("input-cast", f"{text}: {cost}", level=level)


def _source(choice: Choice) -> str:
    """Return the source of an input without paths, since results must not depend on folders."""
    if isinstance(choice, Offer):
        return "npz" if choice.member else "file"
    return f"{choice.number:g}" if isinstance(choice, Value) else f"{choice}"
