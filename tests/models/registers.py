"""Models of registers: programs that store all registers to memory at the end."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.harness.drawing import Draw
from tests.harness.instruction import Call, call
from tests.harness.model import Given, Results, model
from tests.harness.reference import INTEGER_BITS

NAMES = ("$0", "$1", "$2")
OF_SCALARS = ("scalar_load", "scalar_store", "scalar_compute")
WORDS = {"int32": 32, "int64": 64}
LOADED = (*INTEGER_BITS, "bool")
KINDS = (*LOADED, "float32", "bfloat16", "float8_e4m3")


def _place(draw: Draw, kinds: Sequence[str] = KINDS) -> Any:
    buffer = draw.pick(["sbuf", "hbm"])
    one = draw.tile((1, 1) if buffer == "sbuf" else (1,), draw.pick(kinds), buffer, dims=1)
    draw.contents(one)
    return one


def _number(draw: Draw, bits: int = 32) -> int:
    half = 1 << bits - 1
    return draw.pick([0, 1, -1, half - 1, -half, draw.integer(-half, half - 1)])


def _one(draw: Draw, name: str) -> Call:
    register = draw.pick(NAMES)
    if name == "register_alloc":
        return call(name, "sync", dst=register, x=draw.pick([None, _number(draw)]))
    if name == "register_move":
        return call(name, "sync", dst=register, src=draw.pick([*NAMES, _number(draw)]))
    if name == "scalar_load":
        return call(name, "sync", dst=register, src=_place(draw, [*WORDS]))
    if name == "scalar_compute":
        word = draw.pick([*WORDS])
        a, b = (draw.pick([*NAMES, _number(draw, WORDS[word])]) for _ in "ab")
        op = draw.pick(["add", "subtract", "multiply"])
        return call(name, "sync", dst=register, a=a, b=b, op=op, integer=word)
    return call(name, "sync", dst=register, src=_place(draw, LOADED))


def program_of(name: str) -> Any:
    def program(draw: Draw, target: str) -> list[Call]:
        names = ("register_alloc", "register_move", "register_load")
        first = [call("register_alloc", "sync", dst=n, x=_number(draw)) for n in NAMES]
        steps = [_one(draw, draw.pick(names)) for _ in range(draw.integer(0, 4))]
        last = [] if name.endswith("store") else [_one(draw, name)]
        stores = [call("register_store", "sync", dst=_place(draw), src=n) for n in NAMES]
        if name in OF_SCALARS:
            stores = [_stored_scalar(draw, n) for n in NAMES]
        return [*first, *steps, *last, *stores]

    return program


def _stored_scalar(draw: Draw, name: str) -> Call:
    return call("scalar_store", "sync", dst=_place(draw, [*WORDS]), value=name)


def _value(given: Given, name: str) -> int:
    """Return a number, or the content of a register."""
    value = given[name]
    return int(given.state[value] if isinstance(value, str) else value or 0)


def _held(given: Given, name: str, bits: int = 32) -> int:
    return _value(given, name) & (1 << bits) - 1


@model("register_alloc", program=program_of("register_alloc"))
def register_alloc(given: Given) -> Results:
    given.state[given["dst"]] = _value(given, "x")
    return {}


@model("register_move", program=program_of("register_move"))
def register_move(given: Given) -> Results:
    given.state[given["dst"]] = _value(given, "src")
    return {}


@model("register_load", program=program_of("register_load"))
def register_load(given: Given) -> Results:
    """Load integers with their sign, and the bits of other types."""
    elements = given.elements("src").ravel()
    bits = elements if elements.dtype.kind in "iu" else elements.view(f"u{elements.itemsize}")
    given.state[given["dst"]] = int(bits[0])
    return {}


@model("register_store", program=program_of("register_store"))
def register_store(given: Given) -> Results:
    kind = given["dst"].dtype
    word = np.array([[_held(given, "src")]], np.uint32).astype(f"u{kind.itemsize}")
    return {"dst": word.view(kind)}


@model("scalar_load", program=program_of("scalar_load"))
def scalar_load(given: Given) -> Results:
    given.state[given["dst"]] = int(given.elements("src").ravel()[0])
    return {}


@model("scalar_compute", program=program_of("scalar_compute"))
def scalar_compute(given: Given) -> Results:
    """Compute modulo 2**32 or 2**64, with sign."""
    bits = WORDS[given["integer"]]
    a, b = _held(given, "a", bits), _held(given, "b", bits)
    found = {"add": a + b, "subtract": a - b, "multiply": a * b}[given["op"]]
    given.state[given["dst"]] = _signed(found & (1 << bits) - 1, bits)
    return {}


def _signed(word: int, bits: int) -> int:
    return word - (word >> bits - 1 << bits)


@model("scalar_store", program=program_of("scalar_store"))
def scalar_store(given: Given) -> Results:
    """Store as many bits as dst has."""
    kind = given["dst"].dtype
    word = _signed(_held(given, "value", 8 * kind.itemsize), 8 * kind.itemsize)
    return {"dst": np.array([[word]], kind)}
