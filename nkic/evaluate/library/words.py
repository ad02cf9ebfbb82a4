"""`string`, and the line-based functions of `textwrap`."""

from __future__ import annotations

import re
import string
from typing import TYPE_CHECKING, Any

from nkic.evaluate import attributes, containers
from nkic.evaluate.library.support import library_class, methods, unsupported
from nkic.evaluate.tables import builtin

if TYPE_CHECKING:
    from nkic.evaluate.machine import Machine

_CONSTANTS = (
    *("ascii_letters", "ascii_lowercase", "ascii_uppercase", "digits", "hexdigits", "octdigits"),
    *("printable", "punctuation", "whitespace"),
)
MODULE: dict[str, Any] = {name: getattr(string, name) for name in _CONSTANTS}
MODULE["Formatter"] = unsupported("string.Formatter", "use an f-string, or `str.format`")
TEXTWRAP: dict[str, Any] = {
    name: unsupported(f"textwrap.{name}", "write the lines as they should appear")
    for name in ("TextWrapper", "fill", "shorten", "wrap")
}


def _text(m: Machine, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, not '{m.class_of(value).name}'")
    m.charge(len(value))
    return str.__str__(value)


@builtin("capwords", MODULE)
def _capwords(m: Machine, s: Any, sep: Any = None) -> str:
    separator = None if sep is None else _text(m, sep)
    capitalised = string.capwords(_text(m, s), separator)
    m.text(len(capitalised))
    return capitalised


# ---- Template -----------------------------------------------------------------------------------

TEMPLATE = library_class("Template", "string")
MODULE["Template"] = TEMPLATE
_FIELD = re.compile(
    r"\$(?:(?P<escaped>\$)|(?P<named>[_a-zA-Z][_a-zA-Z0-9]*)"
    r"|\{(?P<braced>[_a-zA-Z][_a-zA-Z0-9]*)\}|(?P<invalid>))"
)


@methods(TEMPLATE, "__init__")
def _init(m: Machine, owner: Any, template: Any) -> None:
    attributes.write_field(m, owner, "template", template)


def _filled(m: Machine, owner: Any, args: Any, named: dict[str, Any], safe: bool) -> str:
    template = _text(m, owner.fields.get("template"))
    argument = args[0] if args else {}
    mapping = containers.mapping(m, argument)
    if len(args) > 1 or mapping is None:
        raise TypeError("a template takes one mapping and keyword arguments")
    if named:
        mapping = containers.copy_dict(m, mapping)
        containers.merge(m, mapping, named)
    pieces: list[str] = []
    size = at = 0
    for match in _FIELD.finditer(template):
        part = _replaced(m, match, template, mapping, safe)
        size += match.start() - at + len(part)
        m.text(match.start() - at + len(part))
        m.allow_length(size, "the text")
        pieces += [template[at : match.start()], part]
        at = match.end()
    return "".join([*pieces, template[at:]])


def _replaced(m: Machine, match: Any, template: str, values: Any, safe: bool) -> str:
    name = match["named"] or match["braced"]
    m.charge(10)
    if name is not None:
        m.check_key(name, len(values))
        if name in values:
            return m.str(values[name])
        if safe:
            return str(match[0])
        raise KeyError(name)
    if match["escaped"]:
        return "$"
    if safe:
        return str(match[0])
    lines = template[: match.start()].splitlines(keepends=True) or [""]
    if lines[-1].endswith("\n"):
        lines.append("")
    column = 1 + len(lines[-1])
    raise ValueError(f"Invalid placeholder in string: line {len(lines)}, col {column}")


@methods(TEMPLATE, "substitute")
def _substitute(m: Machine, owner: Any, /, *args: Any, **named: Any) -> str:
    return _filled(m, owner, args, named, False)


@methods(TEMPLATE, "safe_substitute")
def _safe_substitute(m: Machine, owner: Any, /, *args: Any, **named: Any) -> str:
    return _filled(m, owner, args, named, True)


@methods(TEMPLATE, "get_identifiers")
def _identifiers(m: Machine, owner: Any) -> list[str]:
    matches = _FIELD.finditer(_text(m, owner.fields.get("template")))
    return list(dict.fromkeys(n for match in matches if (n := match["named"] or match["braced"])))


@methods(TEMPLATE, "is_valid")
def _is_valid(m: Machine, owner: Any) -> bool:
    matches = _FIELD.finditer(_text(m, owner.fields.get("template")))
    return all(match["escaped"] or match["named"] or match["braced"] for match in matches)


# ---- textwrap -----------------------------------------------------------------------------------


@builtin("dedent", TEXTWRAP)
def _dedent(m: Machine, text: Any) -> str:
    """Remove the blanks that all lines start with."""
    lines = _lines(m, text)
    lines = [
        text_line if text_line.strip(" \t\n") else text_line[len(text_line.rstrip("\n")) :]
        for text_line in lines
    ]
    heads = [line[: len(line) - len(line.lstrip(" \t"))] for line in lines if line.strip("\n")]
    common = min(heads, default="")
    for head in heads:
        while not head.startswith(common):
            common = common[:-1]
            m.charge(len(common) >> 4)
    cut = len(common)
    return "".join(line[cut:] if line.strip("\n") else line for line in lines)


def _lines(m: Machine, text: Any) -> list[str]:
    content = _text(m, text)
    count = content.count("\n") + 1
    m.elements(count, "the list")
    m.charge(15 * count)
    m.text(len(content))
    parts = content.split("\n")
    return [f"{part}\n" for part in parts[:-1]] + [parts[-1]]


@builtin("indent", TEXTWRAP)
def _indent(m: Machine, text: Any, prefix: Any, predicate: Any = None) -> str:
    start, value = _text(m, prefix), _text(m, text)
    lines = value.splitlines(keepends=True)
    m.elements(len(lines), "the list")
    m.text(len(value) + len(start) * len(lines))
    chosen = []
    for line in lines:
        m.charge(15)
        chosen_line = line.strip() if predicate is None else m.call(predicate, (line,), None)
        chosen.append(start + line if m.truth(chosen_line) else line)
    return "".join(chosen)
