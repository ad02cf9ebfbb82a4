"""Hostile data: files, arguments and variables as an attacker would change them, by seed.

A changed artifact is still in its format, with the right hashes, so that it comes as far as it can.
"""

import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgpack

from tests.harness.tamper import contents, rebuilt

NUMBERS = (
    *(0, 1, -1, 2, 3, 7, 8, 127, 128, 129, 255, 256, 4095, 4096, 65535, 65536, 2**24 + 1),
    *(2**31 - 1, 2**31, -(2**31), 2**32, 2**53 + 1, 2**63 - 1, -(2**63), 2**64 - 1),
)
VALUES: tuple[Any, ...] = (
    *(*NUMBERS, 0.5, -0.0, 1e308, -1e-320, float("inf"), float("-inf"), float("nan")),
    *(None, True, False, "", "x", "add", "\x00", "é\u202e", "%0", "x" * 300, b"", b"\xff" * 9),
    *([], [0], [[]], [1, [2, [3]]], {}, {"a": 1}, {1: {}}, [None] * 40),
)
WORDS = (
    *map(str, NUMBERS),
    *(
        "9" * 400,
        "9" * 5000,
        "1e400",
        "-1e400",
        "nan",
        "inf",
        "-inf",
        "0x7f",
        "1_0",
        "\u00b2",  # a digit to isdigit, and no number to int
        "\u0663",  # 3, in Arabic digits
        "'",
        '"',
        "%0",
    ),
    *("%9", "$0", "$9", "#0", "#99", "(", ")", "[", "]", "{", "}", ",", ";", "=", "@k.py:1:1-1:2"),
    *("[" * 5000, "0x" + "f" * 5000, "{a=" * 2000, "[1,", "1979-01-01"),
    *("", "loop", "end", "core", "tensor", "None", "True", "float32", "bfloat16", "sbuf", "psum"),
    *("\x00", "\u202e", "é", "\ud800", "x" * 5000, "-", "..", "/dev/zero", "~"),
)
_TOKEN = re.compile(r"\w+|[^\w\s]")


def changed_text(text: str, chance: random.Random) -> str:
    """Return a text with a few tokens, or lines, replaced, removed, repeated or moved."""
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        if chance.random() < 0.2:
            lines = text.split("\n")
            place = chance.randrange(len(lines))
            line = lines.pop(place) if chance.random() < 0.5 else lines[place]
            if chance.random() < 0.6:
                lines.insert(chance.randrange(len(lines) + 1), line)
            text = "\n".join(lines)
            continue
        tokens = list(_TOKEN.finditer(text))
        if not tokens:
            return text
        token = chance.choice(tokens)
        word = chance.choice((*WORDS, chance.choice(tokens)[0], chance.choice(tokens)[0]))
        text = text[: token.start()] + word + text[token.end() :]
    return text


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths to everything within nested lists and dicts."""
    yield path
    if isinstance(value, list):
        for number, part in enumerate(value[:400]):
            yield from places(part, (*path, number))
    elif isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*path, key))


def changed_value(value: Any, chance: random.Random) -> Any:
    """Return nested lists and dicts with one part replaced, removed or repeated."""
    path = chance.choice(list(places(value)))
    return _at(value, path, lambda old: _other(old, chance))


def _at(value: Any, path: tuple[Any, ...], change: Callable[[Any], Any]) -> Any:
    if not path:
        return change(value)
    copied = value.copy()
    copied[path[0]] = _at(value[path[0]], path[1:], change)
    return copied


def _other(old: Any, chance: random.Random) -> Any:
    choice = chance.random()
    if isinstance(old, list) and old and choice < 0.5:
        place = chance.randrange(len(old))
        if choice < 0.2:
            return [*old[:place], *old[place + 1 :]]
        return [*old[:place], old[place], *old[place:]]
    if isinstance(old, int) and not isinstance(old, bool) and choice < 0.4:
        return old + chance.choice((-1, 1, 2, -2, 64, 128))
    return chance.choice(VALUES)


def changed_artifact(data: bytes, chance: random.Random) -> bytes:
    """Return an artifact with some records changed, and all hashes corrected."""
    sections = contents(data)
    changed: dict[str, bytes | None] = {}
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        name = chance.choice([*sections])
        content = changed.get(name) or sections[name]
        try:
            records = msgpack.unpackb(content, strict_map_key=False)
            changed[name] = msgpack.packb(changed_value(records, chance))
        except (ValueError, TypeError, OverflowError, UnicodeEncodeError):
            changed[name] = changed_bytes(content, chance)
    return rebuilt(data, changed)


def changed_bytes(data: bytes, chance: random.Random) -> bytes:
    """Return bytes with some of them replaced, removed or inserted."""
    made = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4))):
        place = chance.randrange(len(made) + 1)
        choice = chance.random()
        if choice < 0.5 and place < len(made):
            made[place] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        elif choice < 0.7:
            del made[place : place + chance.choice((1, 2, 8, 100))]
        else:
            made[place:place] = bytes(chance.randrange(256) for _ in range(chance.choice((1, 4))))
    return bytes(made)
