"""Values as text: `str`, `repr`, `print`, f-strings, `%` and `str.format`, within limits.

The same text as Python's, except that no memory addresses show and that text has a greatest
length: Python's own functions would follow shared lists for ever and pad a number to
gigabytes. Attributes in format fields (`"{0.shape}"`) go through the same guard as in code.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from nkic.base.text import grouped
from nkic.specialise.budget import Budget
from nkic.specialise.errors import KernelError
from nkic.specialise.objects import shown_fields

_PLAIN = frozenset({int, float, bool, type(None)})
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_READ = 4000  # characters of a value that a message shows the first of
_SHORT = 64  # digits of a number that is written in the step of its call
_NUMBER = re.compile(r"\d+")
# How Python's own containers and plain objects answer `format(value, "")`: as `str` does.
_PLAIN_FORMATS = (object.__format__, tuple.__format__)
# Opening and closing text of the containers that are written element by element.
_BRACKETS: dict[type, tuple[str, str]] = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    dict: ("{", "}"),
}


class Texts:
    """The functions that make text, under one budget."""

    def __init__(self, budget: Budget, attribute: Callable[[Any, str], Any]) -> None:
        self._budget = budget
        self._limits = budget.limits
        self._formatter = _Formatter(self, attribute)

    def text(self, value: Any) -> Any:
        """`str(value)`."""
        kind = value.__class__
        if kind is str:
            return value
        if kind in _PLAIN:
            return self._number(value)
        if kind in _BRACKETS or (kind.__str__ is object.__str__ and shown_fields(value)):
            return self._written(value)
        return self._short(_ADDRESS.sub("", str(value)))

    def field(self, value: Any) -> Any:
        """What stands in a f-string for `{value}`, if Python's own text will not do."""
        kind = value.__class__
        return value if kind is str or kind in _PLAIN else self.formatted(value, "")

    def representation(self, value: Any) -> str:
        """`repr(value)`."""
        if value.__class__ in _PLAIN:
            return self._number(value)
        if value.__class__ in _BRACKETS or shown_fields(value):
            return self._written(value)
        return self._short(_ADDRESS.sub("", repr(value)))

    def _number(self, value: Any) -> str:
        """The digits, for which integers take the square of their length."""
        text = repr(value)
        if len(text) > _SHORT:
            self._budget.copied(len(text))
        return text

    def _written(self, value: Any) -> str:
        text = _Writer(self._limits.length, self.representation).write(value)
        self._budget.charge(len(text))
        return text

    def _short(self, text: str) -> str:
        self._budget.allow_length(len(text), "the text")
        self._budget.copied(len(text))
        return text

    def formatted(self, value: Any, spec: str = "") -> str:
        """`format(value, spec)`."""
        self._check_width(spec)
        if spec == "" and value.__class__.__format__ in _PLAIN_FORMATS:
            return str(self.text(value))
        return self._short(_ADDRESS.sub("", format(value, spec)))

    def converted(self, value: Any, conversion: str, spec: str = "") -> str:
        """`{value!conversion:spec}`."""
        if conversion == "r":
            value = self.representation(value)
        elif conversion == "a":
            value = self.representation(value).encode("ascii", "backslashreplace").decode("ascii")
        elif conversion == "s":
            value = self.text(value)
        return self.formatted(value, spec)

    def joined(self, text: str) -> str:
        """A f-string: every part is within limits, the whole may not be."""
        return self._short(text)

    def percent(self, template: Any, values: Any) -> Any:
        """`template % values` where the template is text."""
        self._check_width(template)
        arguments = values if isinstance(values, tuple) else (values,)
        for number in arguments if "*" in template else ():
            self._check_width(str(number) if isinstance(number, int) else "")
        shown = _each(values, self._shown)
        parts = shown if isinstance(shown, tuple) else (shown,)
        longest = max((len(str(part)) for part in parts), default=0)
        self._short_enough(len(template) + template.count("%") * longest)
        return self._short(template % shown)

    def _short_enough(self, length: int) -> None:
        self._budget.allow_length(length // 8, "the text")

    def _shown(self, value: Any) -> Any:
        return _Shown(self._written(value)) if value.__class__ in _BRACKETS else value

    def format_method(self, template: str) -> Callable[..., str]:
        """The method `template.format`."""

        def fill(*args: Any, **kwargs: Any) -> str:
            return self._short(self._formatter.vformat(template, args, kwargs))

        return fill

    def format_map_method(self, template: str) -> Callable[..., str]:
        """The method `template.format_map`."""

        def fill(mapping: Mapping[str, Any]) -> str:
            return self._short(self._formatter.vformat(template, (), mapping))

        return fill

    def _check_width(self, spec: str) -> None:
        width = max((int(found[:12]) for found in _NUMBER.findall(spec)), default=0)
        if width > self._limits.width:
            limit = grouped(self._limits.width)
            text = f"a formatted field has at most {limit} characters, not {grouped(width)}"
            raise KernelError("too-large", text)


def brief(value: Any, length: int = 60) -> str:
    """A kernel's value as a message shows it: lists may share their parts and never end."""
    if isinstance(value, list | tuple) and len(value) > 8:
        return f"a {type(value).__name__} of {len(value)}"
    try:
        text = " ".join(_Writer(_READ, repr).write(value).split())
    except Exception:  # too long; and a kernel's own __repr__ may fail as well
        return f"a {type(value).__name__}"
    return text if len(text) <= length else f"{text[:length]}…"


class _Shown:
    """Text that stands for a container in `%`."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _each(values: Any, change: Callable[[Any], Any]) -> Any:
    """`change` on the value, or on every element of the tuple or dict that `%` takes apart."""
    if isinstance(values, tuple):
        return tuple(map(change, values))
    if isinstance(values, dict):
        return {key: change(value) for key, value in values.items()}
    return change(values)


class _Writer:
    """Writes one container, with `[...]` for what is inside itself."""

    def __init__(self, limit: int, leaf: Callable[[Any], str]) -> None:
        self._limit = limit
        self._leaf = leaf
        self._parts: list[str] = []
        self._length = 0
        self._open: set[int] = set()

    def write(self, value: Any) -> str:
        """The text of `value`."""
        self._value(value)
        return "".join(self._parts)

    def _add(self, text: str) -> None:
        self._length += len(text)
        if self._length > self._limit:
            raise KernelError(
                "too-large",
                f"the text would be longer than {grouped(self._limit)} characters",
                help="print a part of the value",
            )
        self._parts.append(text)

    def _value(self, value: Any) -> None:
        brackets = _BRACKETS.get(value.__class__)
        if id(value) in self._open:
            first, last = brackets or ("", "")
            self._add(f"{first}...{last}")
            return
        self._open.add(id(value))
        if brackets is not None:
            self._container(value, *brackets)
        else:
            self._object(value)
        self._open.discard(id(value))

    def _object(self, value: Any) -> None:
        shown = None if value.__class__ in _PLAIN else shown_fields(value)
        if shown is None:
            self._add(self._leaf(value))
            return
        name, fields = shown
        self._add(f"{name}(")
        for number, (field, part) in enumerate(fields):
            self._add(f"{', ' if number else ''}{field}=")
            self._value(part)
        self._add(")")

    def _container(self, value: Any, first: str, last: str) -> None:
        self._add(first)
        if isinstance(value, dict):
            self._pairs(value)
        else:
            self._elements(value)
        self._add(f",{last}" if isinstance(value, tuple) and len(value) == 1 else last)

    def _elements(self, values: Sequence[Any]) -> None:
        for number, value in enumerate(values):
            self._add(", " if number else "")
            self._value(value)

    def _pairs(self, values: Mapping[Any, Any]) -> None:
        for number, (key, value) in enumerate(values.items()):
            self._add(", " if number else "")
            self._value(key)
            self._add(": ")
            self._value(value)


class _Formatter(string.Formatter):
    """`str.format` whose fields reach only what kernel code reaches."""

    def __init__(self, texts: Texts, attribute: Callable[[Any, str], Any]) -> None:
        self._texts = texts
        self._attribute = attribute

    def get_field(
        self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[Any, str | int]:
        """The value of `0.shape[1]`."""
        first, rest = _split(field_name)
        value = self.get_value(first, args, kwargs)
        for is_attribute, name in rest:
            value = self._attribute(value, name) if is_attribute else value[name]
        return value, first

    def format_field(self, value: Any, format_spec: str) -> str:
        """The value under its specification."""
        return self._texts.formatted(value, format_spec)

    def convert_field(self, value: Any, conversion: Any) -> Any:
        """The value after `!r` and the like."""
        return self._texts.converted(value, conversion) if conversion else value


def _split(field_name: str) -> tuple[Any, Iterable[tuple[bool, Any]]]:
    # As string.Formatter does it; the module is CPython's own and has no stubs.
    module: Any = string._string  # type: ignore[attr-defined]
    first, rest = module.formatter_field_name_split(field_name)
    return first, rest
