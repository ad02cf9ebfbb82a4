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

import re
from collections.abc import Callable, Mapping
from typing import Any

from nkic.base import profiles
from nkic.base.diagnostics import CompileFailed, UsageFailed, refusal
from nkic.base.files import toml
from nkic.base.profiles import Profile
from nkic.base.source import SourceFile, Span
from nkic.base.suggest import did_you_mean
from nkic.machine import targets
from nkic.machine.targets import Target
from nkic.specialise import literals
from nkic.specialise.arguments import find_dtype, parse_grid, parse_type
from nkic.specialise.request import RequestOptions, TensorType

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


class _Block:
    """A reader of one block, which starts at line `first` of the file."""

    def __init__(self, source: SourceFile, first: int) -> None:
        self.source = source
        self.first = first
        self.lines: list[str] = []

    def error(self, line: int, message: str, help: str = "") -> CompileFailed:
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
                raise self.error(self.line_of(key), f"unknown key `{key}` in the block", near)

    def line_of(self, key: str) -> int:
        """Return the line of the file that sets `key`, or the block's first line."""
        heads = re.compile(rf"\s*(?:\[\s*)?[\"']?{re.escape(key)}[\"']?\s*(?:=|\])")
        lines = (n for n, line in enumerate(self.lines, self.first + 1) if heads.match(line))
        return next(lines, self.first)

    def value(self, table: Mapping[str, Any], key: str, read: Callable[[Any, str], Any]) -> Any:
        if key not in table:
            return None
        try:
            return read(table[key], f"`{key}` of the block")
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
            raise self.error(self.line_of(key), f"`{key}` of the block must be a table: [{key}]")
        return {name: self.value(values, name, read) for name in values}


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
        return literals.DottedName(value)
    if isinstance(value, list):
        return tuple(_const(item, origin) for item in value)
    if isinstance(value, dict):
        return {name: _const(item, origin) for name, item in value.items()}
    if not isinstance(value, str | bool | int | float):
        raise ValueError(f"{origin}: a kernel cannot use {value!r}")
    return value
