"""Inputs: the user's offers, matched to the kernel's parameters before they are read."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from math import ceil, floor, isfinite, prod
from typing import Any, NamedTuple, NoReturn
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from nkic.artifact.archive import Opened, opened
from nkic.artifact.arrays import Offer, natural, offer_npy, offer_raw, read_npz
from nkic.artifact.records import Executable, ParameterRecord
from nkic.base.diagnostics import Diagnostic, InputFailed, Level, UsageFailed, did_you_mean, make
from nkic.base.text import clean, grouped, width
from nkic.machine import codecs
from nkic.machine.codecs import storage
from nkic.machine.dtypes import DType
from nkic.machine.notation import array_type

# ---- Conversion between numbers and a type's bytes, for users' data -----------------------------
# Numbers are float64; those of 64-bit types are of the longest float type. `nkic.machine.codecs`
# works in float32, as the machine does; here an int32 keeps all its digits and a float64 is
# rounded as late as possible.

Numbers = NDArray[np.floating[Any]]
EXACT = np.longdouble  # for nl.int64; no better than float64 on some platforms


def numbers(stored: NDArray[Any], dtype: DType) -> Numbers:
    """Return the values of stored elements. Packed ones spread over the last dimension."""
    if dtype.lanes > 1:
        return codecs.unpack(stored, dtype).astype(np.float64)
    if dtype.is_float:
        with np.errstate(invalid="ignore"):  # signalling NaN
            return codecs.decode(stored, dtype).astype(np.float64)
    return stored.astype(EXACT if dtype.is_wide else np.float64)


def to_storage(values: Numbers, dtype: DType) -> NDArray[Any]:
    """Return values in the storage type of `dtype`, rounded to nearest even.

    Integers saturate, and NaN becomes 0. Floats are first rounded to float32.
    """
    with np.errstate(all="ignore"):
        if dtype.lanes > 1:
            return codecs.pack(values.astype(np.float32), dtype)
        if not dtype.is_integer:
            return codecs.encode(values.astype(np.float32), dtype)
        values = values.astype(EXACT) if dtype.is_wide else values
        whole = np.nan_to_num(np.rint(values), nan=0.0)
        integers: NDArray[Any] = np.clip(whole, dtype.lowest, dtype.highest).astype(storage(dtype))
        if dtype.is_wide:  # as a float, the highest is one more
            integers[whole >= dtype.highest] = dtype.highest
        return integers


def unpacked_shape(shape: tuple[int, ...], dtype: DType) -> tuple[int, ...]:
    if dtype.lanes == 1:
        return shape
    return (*shape[:-1], shape[-1] * dtype.lanes) if shape else (dtype.lanes,)


def rounding_error(values: Numbers, result: Numbers) -> float:
    """Return the largest difference that storing `values` made; infinite if one was lost."""
    with np.errstate(invalid="ignore"):
        same = (values == result) | (np.isnan(values) & np.isnan(result))
        errors = np.where(same, 0.0, np.abs(values - result))
    errors[np.isnan(errors)] = np.inf
    return float(errors.max(initial=0.0))


# ---- A kernel's inputs and outputs, and their presentation in messages --------------------------


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
        return prod(self.shape)

    @property
    def bytes(self) -> int:
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
        names = {p.name for p in self.inputs}
        return tuple(p for p in self.outputs if p.name not in names)


def signature_of(executable: Executable) -> Signature:

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


# ---- Generators: arrays that need no file, and are the same on every machine --------------------

# Parameter names by generator.
GENERATORS = {
    "zeros": (),
    "ones": (),
    "iota": (),
    "poison": (),
    "const": ("value",),
    "randn": ("seed",),
    "uniform": ("lo", "hi", "seed"),
}
MAX_SEED = 2**32 - 1
_CALL = re.compile(r"(\w+)\s*(?:\((.*)\))?")
FORMS = ", ".join(f"{n}({','.join(words)})" if words else n for n, words in GENERATORS.items())


@dataclass(frozen=True)
class Generator:
    """A generator of arrays of any type and shape.

    zeros, ones, const(value); iota: 0, 1, 2 … in C order, restarting at 0 where the type no longer
    represents every integer; poison: NaN, or the lowest value of integers, which makes
    uninitialised reads visible in a result; randn(seed): normal, mean 0, deviation 1;
    uniform(lo,hi,seed): from lo to hi.
    """

    name: str
    numbers: tuple[float, ...] = ()

    def __str__(self) -> str:
        words = ",".join(f"{number:g}" for number in self.numbers)
        return f"{self.name}({words})" if words else self.name

    def array(self, key: str, dtype: DType, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return the array in its storage type.

        Random numbers also depend on `key`, the array's name, so that inputs with the same seed
        differ.
        """
        if self.name == "poison" and dtype.kind != "float":
            return _poisoned_bytes(dtype, shape)
        values = self._values(key, dtype, prod(unpacked_shape(shape, dtype)))
        return to_storage(values.reshape(unpacked_shape(shape, dtype)), dtype)

    def _values(self, key: str, dtype: DType, count: int) -> Numbers:
        if self.name == "iota":
            return np.arange(count, dtype=np.float64) % _first_unrepresentable(dtype)
        if self.name in ("randn", "uniform"):
            return self._random(key, dtype, count)
        constants = {"zeros": 0.0, "ones": 1.0, "poison": np.nan}
        return np.full(count, constants.get(self.name, *self.numbers))

    def _random(self, key: str, dtype: DType, count: int) -> Numbers:
        # RandomState, because its streams are frozen, unlike those of NumPy's newer generators.
        seed = [int(self.numbers[-1]), crc32(key.encode())]
        state = np.random.RandomState(np.array(seed, np.uint32))
        if self.name == "randn":
            return state.standard_normal(count)
        lo, hi, _ = self.numbers
        values = state.uniform(lo, hi, count)
        return values if dtype.is_float else np.floor(values)


def parse_generator(text: str) -> Generator | None:
    match = _CALL.fullmatch(text.strip())
    if match is None or match[1] not in GENERATORS:
        return None
    words = [word for word in (match[2] or "").split(",") if word.strip()]
    try:
        numbers = tuple(float(word) for word in words)
    except ValueError:
        return None
    generator = Generator(match[1], numbers)
    return generator if _is_valid(generator) else None


def _is_valid(generator: Generator) -> bool:
    words, numbers = GENERATORS[generator.name], generator.numbers
    if len(words) != len(numbers):
        return False
    if "seed" in words and not (numbers[-1].is_integer() and 0 <= numbers[-1] <= MAX_SEED):
        return False
    return generator.name != "uniform" or (
        isfinite(numbers[0]) and isfinite(numbers[1]) and numbers[0] <= numbers[1]
    )


def _first_unrepresentable(dtype: DType) -> float:
    """Return the first integer that a type, or its elements, may not represent."""
    element = dtype.element or dtype
    if element.is_float:
        return min(2.0 ** (element.mantissa_bits + 1), element.highest)
    return element.highest + 1


def _poisoned_bytes(dtype: DType, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return the poison of types without NaN.

    All bits are set if that is not a number (packed elements); otherwise it is the lowest value of
    signed integers, and the highest of unsigned ones.
    """
    value = dtype.lowest if dtype.kind == "int" else dtype.highest
    if dtype.lanes > 1:
        value = 2**dtype.bits - 1
    return np.full(shape, int(value), storage(dtype))


# ---- `-i NAME=…`: the specification of one input, as the user writes it -------------------------
# a=@a.npy                 the array of an npy file
# a=f32[128,512]=@a.bin    raw elements, little-endian, in C order
# a=3.14                   the value of an input with one element
# a=zeros                  a generator: see fills.py

_WHOLE = re.compile(r"[+-]?\d{1,19}")
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
    dtype, shape = array_type(type, where) if type.strip() else (None, None)
    if dtype is None or shape is None or not path:
        _refuse(f"{where}: a type and a file are expected", "for example -i a=f32[128,512]=@a.bin")
    return RawFile(path, dtype, shape)


def parse_fill(text: str | None) -> Generator | None:
    """Return the value of --fill; raises `UsageFailed`."""
    generator = parse_generator(text) if text is not None else None
    if text is not None and generator is None:
        _refuse(f"--fill {text}: not a generator", f"known are: {FORMS}")
    return generator


def _refuse(message: str, help: str = "") -> NoReturn:
    raise UsageFailed([make("bad-value", clean(message), help=help)])


# --------------------------------------------------------------------------------------------------

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
    signature: Signature, chosen: Mapping[str, Choice], offers: Mapping[str, Choice], wanted: Wanted
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
    stored = to_storage(values, parameter.dtype)
    error = rounding_error(values, numbers(stored, parameter.dtype))
    remarks.append(_cast(parameter, choice, error))
    return stored


def offered_numbers(offer: Offer) -> Numbers:
    if offer.nki_dtype is not None:
        return numbers(offer.load_as(offer.nki_dtype), offer.nki_dtype)
    values: Numbers = offer.load().astype(np.float64)
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


# ------------------------------------------------------------------------------------------------
# Expected outputs: arrays of any numeric type, matched to the outputs by name and shape.


def load_expected(
    signature: Signature, path: str, skipped: Collection[str] = ()
) -> dict[str, Numbers]:
    """Return the numbers expected of each output that is not `skipped`.

    Packed elements are unpacked. For an output with two names, one is enough. Raises `InputFailed`
    with the whole signature if an array is missing, superfluous, of another shape or not of
    numbers; `UsageFailed` for a file that cannot be read.
    """
    with opened(path, sum(p.elements * p.dtype.lanes * 8 for p in signature.outputs)) as file:
        offers = read_npz(file, path)
        tensors = {p.tensor for p in signature.outputs if p.name in offers and p.tensor >= 0}
        missing = [p for p in signature.outputs if p.name not in offers]
        left_out = {*skipped, *(p.name for p in missing if p.tensor in tensors)}
        _check_expected(signature, offers, left_out)
        wanted = [p for p in signature.outputs if p.name not in left_out]
        return {p.name: numbers_of(offers[p.name], p.dtype) for p in wanted}


def _check_expected(
    signature: Signature, offers: dict[str, Offer], skipped: Collection[str]
) -> None:
    lines = [
        SignatureLine(
            p.name, f"{p}", "" if p.name in skipped else _expected_problem(p, offers.get(p.name))
        )
        for p in signature.outputs
    ]
    names = [p.name for p in signature.outputs]
    lines += superfluous("output", [name for name in offers if name not in names], names)
    if not any(line.problem for line in lines):
        return
    kernel = clean(signature.kernel)
    message = f"the expected outputs do not fit kernel `{kernel}`: {summary(lines)}"
    note = table(f"outputs of {kernel}:", lines)
    help = "`--compare NAME=skip` leaves an output out"
    raise InputFailed([make("expected-does-not-fit", message, notes=[note], help=help)])


def _expected_problem(parameter: ArrayParameter, offer: Offer | None) -> str:
    if offer is None:
        return "missing"
    shape = shape_as(offer, parameter.shape, parameter.dtype)
    return "" if offer.shape == shape else f"is {offer} in {offer.origin}"


def shape_as(offer: Offer, shape: tuple[int, ...], dtype: DType) -> tuple[int, ...] | None:
    """Return the shape that an offer needs for a comparison with an array of `shape` and `dtype`.

    Return None if its elements are not numbers.
    """
    if _type(offer, dtype) is not None:
        return shape
    if offer.element.kind == "V" or not offer.element.readable:
        return None
    return unpacked_shape(shape, dtype)


def _type(offer: Offer, dtype: DType) -> DType | None:
    """Return the NKI type of the offer's elements: its own, or the output's if it matches."""
    return offer.nki_dtype or (dtype if offer.is_of(dtype) else None)


def numbers_of(offer: Offer, dtype: DType) -> Numbers:
    """Return the offer's elements as numbers, for a comparison with an array of `dtype`."""
    stored = _type(offer, dtype)
    return offered_numbers(offer) if stored is None else numbers(offer.load_as(stored), stored)
