"""The inline block: compilation options in a kernel file.

    # /// nkic
    # kernel = "tensor_add"
    # target = "trn2"
    # [args]
    # a = "float16[128, 512]"
    # ///

The form is that of Python's inline script metadata; the content is TOML.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nkic.base import profiles
from nkic.base.diagnostics import NkicError, UsageFailed, bad_argument, did_you_mean, refusal
from nkic.base.files import toml
from nkic.base.profiles import Profile
from nkic.base.source import SourceFile, Span
from nkic.machine import targets
from nkic.machine.notation import array_type, find_dtype
from nkic.machine.targets import Target
from nkic.specialise.request import RequestOptions, TensorType

# ------------------------------------------------------------------------------------------------
# Values as text: after `--const n=`, in the inline block, in the headers of npy files.
# Python literals and JSON: None, booleans, numbers, strings, tuples, lists, dictionaries, dotted
# names such as `nl.float32`, and objects such as `Config(rows=2)`. Names are resolved later, in
# the kernel's namespace. Nothing is evaluated.

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
    reader = _Reader(text)
    value = reader.value(0)
    reader.expect_end()
    return value


class _Reader:
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


# ---- Types and values of kernel arguments as text: `--arg`, `--const` ---------------------------
# A type is `float16[128, 512]`, or `128x512xfloat16` in IREE's form, or only a dtype if the
# kernel's annotation gives the shape. Errors are `UsageFailed`.

MAX_GRID = 3  # dimensions of a launch grid


def parse_arg(text: str, option: str = "--arg") -> tuple[str, TensorType]:
    """Parse `a=float16[128,512]` into a name and a type."""
    name, value = _split(text, option, "float16[128,512]")
    return name, parse_type(value, f"{option} {name}")


def parse_const(text: str, option: str = "--const") -> tuple[str, Any]:
    """Parse `n=3` into a name and a value: a Python literal, JSON, or a name such as nl.float32."""
    name, value = _split(text, option, "3")
    try:
        return name, parse(value)
    except LiteralError as error:
        raise bad_argument(
            f"{option} {name}={value}: {error}",
            f"values are Python literals, JSON, or names such as nl.float32; strings are quoted: "
            f"{option} {name}='\"{value}\"'",
        ) from error


def parse_type(text: str, origin: str) -> TensorType:
    """Parse `float16[128, 512]`, `128x512xf16` or `float16`; `origin` prefixes messages."""
    return TensorType(*array_type(text, origin), origin)


def parse_grid(text: str, origin: str) -> tuple[int, ...]:
    """Parse `4`, `4x2` or `4,2` as the launch grid; `origin` prefixes messages."""
    numbers = [number.strip() for number in re.split("[x,]", text.strip())]
    if not all(number.isascii() and number.isdigit() for number in numbers):
        raise bad_argument(
            f"{origin}: `{text}` is not a grid", "write the instances per dimension, as 4x2"
        )
    sizes = tuple(int(number) for number in numbers if len(number) < 10)
    if len(sizes) < len(numbers) or min(sizes) < 1 or len(sizes) > MAX_GRID:
        raise bad_argument(
            f"{origin}: a grid has 1 to {MAX_GRID} dimensions of at least 1 instance, each a number"
            " of at most 9 digits"
        )
    return sizes


def _split(text: str, option: str, example: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip().isidentifier() or not value.strip():
        raise bad_argument(
            f"{option} {text}: expected NAME=VALUE", f"for example {option} a={example}"
        )
    return name.strip(), value.strip()


_BLOCK = re.compile(r"(?m)^# /// nkic[ \t]*\n(?P<content>(?:^#(?: .*)?\n)*?)^# ///[ \t]*$")
_START = re.compile(r"(?m)^# /// nkic\b.*$")
_AT = re.compile(r"\(at line (\d+), column (\d+)\)")
_VERSION = re.compile(r"(?m)^(# nki[ \t]*=[ \t]*)(?:\"[^\"\n]*\"|'[^'\n]*')")
_NAME = re.compile(r"(?:nl|nisa|nki)(?:\.\w+)+$")


def read_block(source: SourceFile) -> RequestOptions:
    """Return the options of the block in `source`, or empty ones if there is no block.

    Raises `CompileFailed`, with the line, for an invalid block.
    """
    text = "\n".join(source.lines)
    blocks = list(_BLOCK.finditer(text))
    starts = list(_START.finditer(text))
    if not starts:
        return RequestOptions()
    first = text.count("\n", 0, starts[0].start()) + 1
    reader = _Block(source, first)
    if len(starts) > 1:
        raise reader.error(text.count("\n", 0, starts[1].start()) + 1, "a second nkic block")
    if not blocks:
        raise reader.error(
            first,
            "the nkic block is not closed",
            "every line must start with `#`, and the last must be `# ///`",
        )
    return reader.read(blocks[0]["content"])


def with_version(text: str, profile: Profile) -> str:
    """Return the file's text with the block's version of NKI, if any, replaced."""
    block = _BLOCK.search(text.replace("\r\n", " \n"))
    if block is None:
        return text
    start, end = block.span()
    return text[:start] + _VERSION.sub(rf'\g<1>"{profile.label}"', text[start:end]) + text[end:]


def read_settings(table: Mapping[str, Any], where: str) -> RequestOptions:
    """Return the options of a table with a block's keys. Raises `UsageFailed`."""
    return _Settings(where).options(table)


class _Block:
    """A reader of one block, which starts at line `first` of the file."""

    where = "the block"

    def __init__(self, source: SourceFile, first: int) -> None:
        self.source = source
        self.first = first
        self.lines: list[str] = []

    def error(self, line: int, message: str, help: str = "") -> NkicError:
        span = Span(self.source.path, line, 1, line, len(self.source.line(line)) + 1)
        return refusal("bad-inline-block", message, span, help=help)

    def read(self, content: str) -> RequestOptions:
        self.lines = [line[2:] for line in content.splitlines()]
        try:
            table = toml("\n".join(self.lines))
        except ValueError as error:
            at = _AT.search(str(error))
            line = int(at[1]) if at else len(self.lines)
            text = _AT.sub("", str(error)).strip()
            advice = 'strings are quoted: `a = "float32[128, 512]"`, `target = "trn2"`'
            text = f"the block is not valid TOML: {text}"
            raise self.error(self.first + line, text, advice) from error
        return self.options(table)

    def options(self, table: Mapping[str, Any]) -> RequestOptions:
        self.check_keys(table)
        return RequestOptions(
            kernel=self.value(table, "kernel", _text),
            target=self.value(table, "target", _target),
            profile=self.value(table, "nki", _profile),
            grid=self.value(table, "grid", _grid),
            lnc=self.value(table, "lnc", _lnc),
            args=self.entries(table, "args", _type),
            consts=self.entries(table, "consts", _const),
        )

    def check_keys(self, table: Mapping[str, Any]) -> None:
        keys = ("kernel", "target", "nki", "grid", "lnc", "args", "consts")
        for key in table:
            if key not in keys:
                near = did_you_mean(key, keys) or f"known are: {', '.join(keys)}"
                raise self.error(self.line_of(key), f"unknown key `{key}` in {self.where}", near)

    def line_of(self, key: str) -> int:
        """Return the line of the file that sets `key`, or the block's first line."""
        heads = re.compile(rf"\s*(?:\[\s*)?[\"']?{re.escape(key)}[\"']?\s*(?:=|\])")
        lines = (n for n, line in enumerate(self.lines, self.first + 1) if heads.match(line))
        return next(lines, self.first)

    def value(self, table: Mapping[str, Any], key: str, read: Callable[[Any, str], Any]) -> Any:
        if key not in table:
            return None
        try:
            return read(table[key], f"`{key}` of {self.where}")
        except ValueError as error:
            raise self.error(self.line_of(key), str(error)) from error
        except UsageFailed as failed:
            reason = failed.diagnostics[0]
            raise self.error(self.line_of(key), reason.message, reason.help) from failed

    def entries(
        self, table: Mapping[str, Any], key: str, read: Callable[[Any, str], Any]
    ) -> dict[str, Any]:
        values = table.get(key, {})
        if not isinstance(values, dict):
            text = f"`{key}` of {self.where} must be a table: [{key}]"
            raise self.error(self.line_of(key), text)
        return {name: self.value(values, name, read) for name in values}


class _Settings(_Block):
    """A reader of a project's settings of a kernel."""

    def __init__(self, where: str) -> None:
        self.where, self.first, self.lines = where, 0, []

    def error(self, line: int, message: str, help: str = "") -> NkicError:
        return bad_argument(message, help)


def _text(value: Any, origin: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{origin} must be a string, not {value!r}")
    return value


def _target(value: Any, origin: str) -> Target:
    target = targets.find(_text(value, origin))
    if target is None:
        raise ValueError(f"{origin}: unknown target `{value}`; known: {', '.join(targets.TARGETS)}")
    return target


def _profile(value: Any, origin: str) -> Profile:
    profile = profiles.find(str(value))
    if profile is None:
        labels = ", ".join(profiles.LABELS.values())
        raise ValueError(f"{origin}: unknown version `{value}` of NKI; known: {labels}")
    return profile


def _grid(value: Any, origin: str) -> tuple[int, ...]:
    text = value if isinstance(value, str) else "x".join(map(str, _sizes(value, origin)))
    return parse_grid(text, origin)


def _sizes(value: Any, origin: str) -> tuple[int, ...]:
    sizes = value if isinstance(value, list) else [value]
    if not sizes or any(type(n) is not int or n < 1 for n in sizes):
        raise ValueError(f"{origin} must be an int or a list of ints of at least 1, not {value!r}")
    return tuple(sizes)


def _lnc(value: Any, origin: str) -> int:
    if value not in (1, 2) or type(value) is not int:
        raise ValueError(f"{origin} must be 1 or 2, not {value!r}")
    return value


def _type(value: Any, origin: str) -> TensorType:
    if isinstance(value, dict) and set(value) <= {"dtype", "shape"}:
        dtype = find_dtype(_text(value["dtype"], origin), origin) if "dtype" in value else None
        shape = _sizes(value["shape"], origin) if "shape" in value else None
        return TensorType(dtype, shape, origin)
    return parse_type(_text(value, origin), origin)


def _const(value: Any, origin: str) -> Any:
    """Convert a TOML value: arrays to tuples, strings such as `nl.float32` to names."""
    if isinstance(value, str) and _NAME.match(value):
        return DottedName(value)
    if isinstance(value, list):
        return tuple(_const(item, origin) for item in value)
    if isinstance(value, dict):
        return {name: _const(item, origin) for name, item in value.items()}
    if not isinstance(value, str | bool | int | float):
        raise ValueError(f"{origin}: a kernel cannot use {value!r}")
    return value
