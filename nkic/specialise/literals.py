"""Values as text: after `--const n=`, in the inline block, in the headers of npy files.

Python literals and JSON: None, booleans, numbers, strings, tuples, lists, dictionaries, dotted
names such as `nl.float32`, and objects such as `Config(rows=2)`. Names are resolved later, in the
kernel's namespace. Nothing is evaluated.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

MAX_DEPTH = 50


@dataclass(frozen=True)
class DottedName:
    """A dotted name for a value: `nl.add`, `float32`, `Mode.FAST`."""

    text: str

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True)
class MadeObject:
    """An object of a class in the kernel's file: `Config(2, mode=Mode.FAST)`."""

    kind: DottedName
    values: tuple[Any, ...]
    named: dict[str, Any]

    def __repr__(self) -> str:
        arguments = [*map(repr, self.values), *(f"{k}={v!r}" for k, v in self.named.items())]
        return f"{self.kind}({', '.join(arguments)})"


class LiteralError(ValueError):
    """The text is not a literal; the message describes the offending part."""


_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>[+-]?(?:0[xX][0-9a-fA-F]+|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))
    | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)
    | (?P<mark>[()\[\]{},:=])
    | (?P<end>$)
    )""",
    re.VERBOSE | re.DOTALL,
)
_WORDS = {
    "None": None,
    "null": None,
    "True": True,
    "true": True,
    "False": False,
    "false": False,
    "inf": float("inf"),
    "nan": float("nan"),
}
_CLOSING = {"(": ")", "[": "]", "{": "}"}


def parse(text: str) -> Any:
    """Parse a literal. Raises `LiteralError`."""
    reader = _Reader(text)
    value = reader.value(0)
    reader.expect_end()
    return value


class _Reader:
    """A recursive-descent parser of one literal."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.kind = self.token = ""
        self.advance()

    def advance(self) -> None:
        match = _TOKEN.match(self.text, self.position)
        if match is None:
            raise LiteralError(f"`{self.text[self.position :].strip()}` is not a literal")
        self.kind = match.lastgroup or ""
        self.token = match[self.kind]
        self.position = match.end()

    def value(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise LiteralError(f"nested more than {MAX_DEPTH} levels deep")
        kind, token = self.kind, self.token
        self.advance()
        if kind == "number":
            return _number(token)
        if kind == "string":
            return _string(token)
        if kind == "name":
            return _WORDS[token] if token in _WORDS else self.named(token, depth)
        if kind == "mark" and token == "{":
            return self.dictionary(depth)
        if kind == "mark" and token in _CLOSING:
            return self.sequence(token, depth)
        raise LiteralError(
            f"`{token}` where a value is expected" if token else "a value is missing"
        )

    def named(self, name: str, depth: int) -> DottedName | MadeObject:
        """Parse the rest of a name, or of an object of the class with that name."""
        if not self.take("("):
            return DottedName(name)
        values: list[Any] = []
        named: dict[str, Any] = {}
        while not self.take(")"):
            value = self.value(depth + 1)
            if self.take("="):
                if not isinstance(value, DottedName) or value.text in named:
                    raise LiteralError(f"`{value}=` in `{name}(…)` is not a new field")
                named[value.text] = self.value(depth + 1)
            elif named:
                raise LiteralError(f"`{value}` in `{name}(…)` follows a field given by name")
            else:
                values.append(value)
            self.expect(self.take(","), ")")
        return MadeObject(DottedName(name), tuple(values), named)

    def sequence(self, opening: str, depth: int) -> Any:
        values: list[Any] = []
        comma = False
        while not self.take(_CLOSING[opening]):
            values.append(self.value(depth + 1))
            comma = self.take(",")
            self.expect(comma, _CLOSING[opening])
        if opening == "[":
            return values
        return tuple(values) if comma or len(values) != 1 else values[0]

    def dictionary(self, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        while not self.take("}"):
            key = self.value(depth + 1)
            if not isinstance(key, str):
                raise LiteralError(f"the key {key!r} is not a string")
            if not self.take(":"):
                raise LiteralError(f"`:` is missing after {key!r}")
            values[key] = self.value(depth + 1)
            self.expect(self.take(","), "}")
        return values

    def take(self, mark: str) -> bool:
        if self.kind != "mark" or self.token != mark:
            return False
        self.advance()
        return True

    def expect(self, comma: bool, closing: str) -> None:
        if not comma and self.token != closing:
            raise LiteralError(f"`,` or `{closing}` is missing before `{self.token or 'the end'}`")

    def expect_end(self) -> None:
        if self.kind != "end":
            raise LiteralError(f"`{self.token}` follows a complete value")


def _number(token: str) -> int | float:
    plain = token.lstrip("+-")
    if plain[:2] in ("0x", "0X"):
        return int(token, 16)
    if not plain.isdigit():
        return float(token)
    if len(plain) > 100:
        raise LiteralError(f"a number of {len(plain)} digits; at most 100")
    return int(token)


def _string(token: str) -> str:
    body = token[1:-1]
    if token[0] == "'":
        body = body.replace("\\'", "'").replace('"', '\\"')
    try:
        text = json.loads(f'"{body}"', strict=False)
    except json.JSONDecodeError as error:
        raise LiteralError(f"a string with an unknown escape: {token}") from error
    return str(text)
