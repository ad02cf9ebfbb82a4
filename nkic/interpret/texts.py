"""Values as text: `str`, `repr`, `format`, f-strings, `%` and `str.format`, within limits.

The text is the same as Python's, except that memory addresses are omitted and the length is
limited: Python's own functions would follow shared lists for ever, and pad a number to gigabytes.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from nkic.base.device import KernelError
from nkic.base.text import grouped
from nkic.interpret.compare import plain_scalar
from nkic.interpret.containers import DICT_ITEMS, DICT_KEYS, DICT_VALUES
from nkic.interpret.objects import (
    INSTANCES,
    UNSET,
    Builtin,
    Class,
    ClassMethod,
    ErrorInstance,
    Function,
    Method,
    StaticMethod,
    Super,
    method_name,
)

if TYPE_CHECKING:
    from nkic.interpret.machine import Machine

_PLAIN = frozenset({int, float, bool, type(None), type(...), bytes})
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_MAX_READ = 4000  # the most characters of a value that are generated for a message
_PIECE_STEPS = 10  # steps per piece of text that is written
_SHORT_NUMBER = 128  # bits of a number whose formatting is covered by the step of its call
_FIELD_STEPS = 60  # steps for a field of `str.format`, or a conversion of `%`
_SHORT_SPEC = 64  # characters of a specification that the step of its call covers
_NUMBER = re.compile(r"\d+")
_BRACKETS: dict[type, tuple[str, str]] = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    dict: ("{", "}"),
    set: ("{", "}"),
    frozenset: ("frozenset({", "})"),
    DICT_KEYS: ("dict_keys([", "])"),
    DICT_VALUES: ("dict_values([", "])"),
    DICT_ITEMS: ("dict_items([", "])"),
}


def text(m: Machine, value: Any) -> str:
    kind: Any = value.__class__
    if kind is str:
        return str(value)
    if kind in INSTANCES:
        method = value.cls.find("__str__")
        if method is not UNSET:
            return _returned(m, "__str__", m.call(method, (value,), {}))
        has_repr = value.cls.find("__repr__") is not UNSET
        if isinstance(value, str) and not has_repr:
            return str.__str__(value)
        if isinstance(value, ErrorInstance):
            if not value.args:
                return ""
            if len(value.args) > 1:
                return representation(m, value.args)
            is_key = any(cls.name == "KeyError" for cls in value.cls.mro)
            return representation(m, value.args[0]) if is_key else text(m, value.args[0])
    if kind in m.formatting or isinstance(value, Enum):
        return str(value)
    return representation(m, value)


def _returned(m: Machine, method: str, result: Any) -> str:
    if not isinstance(result, str):
        kind = m.class_of(result).name
        raise TypeError(f"{method} returned non-string (type {kind})")
    return str.__str__(result)


def representation(m: Machine, value: Any) -> str:
    kind = value.__class__
    if kind is str or kind in _PLAIN:
        return _literal(m, value)
    return Writer(m, m.limits.length).write(value)


def _literal(m: Machine, value: Any) -> str:
    """Return `repr(value)` of a number, text or bytes, of which a character may become ten."""
    kind = value.__class__
    if kind is str or kind is bytes:
        m.text(len(value))
        shown = repr(value)
        m.text(len(shown), "the text")
        return shown
    if kind is int and value.bit_length() > _SHORT_NUMBER:
        m.charge(value.bit_length() ** 2 >> 12)
    return repr(value)


class Writer:
    """A writer of one value; a container inside itself is written as `[...]`."""

    def __init__(self, m: Machine, limit: int) -> None:
        self.m = m
        self._limit = limit
        self._parts: list[str] = []
        self._length = 0
        self._open: set[int] = set() if m.writing is None else m.writing

    def write(self, value: Any) -> str:
        self.value(value)
        return "".join(self._parts)

    def add(self, piece: str) -> None:
        """Append a piece of text. Raises if the limit is exceeded."""
        self._length += len(piece)
        self.m.charge(_PIECE_STEPS + (len(piece) >> 2))
        if self._length > self._limit:
            raise KernelError(
                "too-large",
                f"the text would be longer than {grouped(self._limit)} characters",
                help="print only a part of the value",
            )
        self._parts.append(piece)

    def value(self, value: Any) -> None:
        kind = value.__class__
        if kind in _PLAIN or kind is str:
            self.add(_literal(self.m, value))
            return
        brackets = _brackets(value)
        if id(value) in self._open:
            first, last = brackets or ("", "")
            self.add(f"{first}...{last}")
            return
        self._open.add(id(value))
        self.m.deepen()
        try:
            self._opened(value, brackets)
        finally:
            self.m.level -= 1
        self._open.discard(id(value))

    def _opened(self, value: Any, brackets: tuple[str, str] | None) -> None:
        kind = value.__class__
        if kind in INSTANCES:
            method = value.cls.find("__repr__")
            if method.__class__ is Builtin:
                method.call(self.m, value, self)
            elif method is not UNSET:
                self.add(self._returned(value, method))
            elif brackets is not None and isinstance(value, list | tuple | dict):
                self.container(value, *brackets)
            else:
                self._plain_object(value)
        elif isinstance(value, tuple) and hasattr(kind, "_fields"):  # of the language
            name = getattr(kind, "_shown_as", "")  # without the names of fields
            fields = ("",) * len(kind._fields) if name else kind._fields
            self.named(name or kind.__name__, zip(fields, value, strict=True))
        elif brackets is not None:
            self.container(value, *brackets)
        else:
            self._other(value)

    def _returned(self, value: Any, method: Any) -> str:
        """Return what `__repr__` returns. What the library's writes is a part of the same text."""
        m, outer = self.m, self.m.writing
        is_library = method.__class__ is Function and method.runtime.is_library
        m.writing = self._open if is_library else None
        try:
            return _returned(m, "__repr__", m.call(method, (value,), {}))
        finally:
            m.writing = outer

    def _other(self, value: Any) -> None:
        kind = value.__class__
        write = WRITERS.get(kind)
        if write is not None:
            write(self, value)
        elif kind is slice:
            self.named("slice", [("", value.start), ("", value.stop), ("", value.step)])
        else:
            self.add(_ADDRESS.sub("", repr(value)))

    def _class(self, value: Class) -> None:
        hook = value.hook("shown")
        self.add(f"<class '{full_name(value)}'>" if hook is None else str(hook(self.m, value)))

    def _method(self, value: Method) -> None:
        if value.owner.__class__ not in INSTANCES:
            self.add(repr(value))
            return
        self.add(f"<bound method {method_name(value)} of ")
        self.value(value.owner)
        self.add(">")

    def _wrapper(self, value: StaticMethod | ClassMethod) -> None:
        self.add(f"<{type(value).__name__.lower()}(")
        self.value(value.function)
        self.add(")>")

    def _super(self, value: Super) -> None:
        self.add("<super: ")
        self.value(value.after)
        self.add(">")

    def _plain_object(self, value: Any) -> None:
        kind = value.__class__
        if isinstance(value, int | float | str | bytes):
            self.add(repr(plain_scalar(value)))
        elif kind is ErrorInstance:
            self.add(value.cls.name)
            self.container(value.args, "(", ")", comma=False)
        else:
            self.add(f"<{value.cls.name} object>")

    def named(self, name: str, fields: Iterable[tuple[str, Any]]) -> None:
        self.add(f"{name}(")
        for number, (field, part) in enumerate(fields):
            self.add(f"{', ' if number else ''}{field}{'=' if field else ''}")
            self.value(part)
        self.add(")")

    def container(self, value: Any, first: str, last: str, comma: bool = True) -> None:
        """Append a list, tuple, set or dict."""
        if isinstance(value, set | frozenset) and not value:
            self.add("set()" if isinstance(value, set) else "frozenset()")
            return
        self.add(first)
        if isinstance(value, dict):
            self._pairs(value)
        else:
            self._elements(self.m.iterate(value))
        single = comma and isinstance(value, tuple) and len(value) == 1
        self.add(f",{last}" if single else last)

    def _elements(self, values: Iterable[Any]) -> None:
        for number, value in enumerate(values):
            self.add(", " if number else "")
            self.value(value)

    def _pairs(self, values: Mapping[Any, Any]) -> None:
        for number, (key, value) in enumerate(values.items()):
            self.add(", " if number else "")
            self.value(key)
            self.add(": ")
            self.value(value)


# Functions that write the interpreter's own values, by class.
WRITERS: dict[type, Callable[[Writer, Any], None]] = {
    Class: Writer._class,
    Method: Writer._method,
    StaticMethod: Writer._wrapper,
    ClassMethod: Writer._wrapper,
    Super: Writer._super,
}


def full_name(value: Class) -> str:
    """Return the name of a class with that of its module, as its text shows it."""
    if value.module in ("builtins", ""):
        return value.qualname
    return f"{value.module}.{value.qualname}"


def _brackets(value: Any) -> tuple[str, str] | None:
    for kind in value.__class__.__mro__:
        if kind in _BRACKETS:
            return _BRACKETS[kind]
    return None


def brief(m: Machine | None, value: Any, length: int = 60) -> str:
    """Return the text of a value for a message, or its type and size if the text is long."""
    name = m.class_of(value).name if m is not None else type(value).__name__
    if isinstance(value, list | tuple) and len(value) > 8:
        return f"a {name} of {len(value)}"
    try:
        shown = Writer(m, _MAX_READ).write(value) if m is not None else repr(value)
    except Exception:  # too long, no steps left, or the kernel's own __repr__ failed
        return f"a {name}"
    shown = " ".join(shown.split())
    return shown if len(shown) <= length else f"{shown[:length]}…"


# ---- format -------------------------------------------------------------------------------------


def _small_number(digits: str, limit: int) -> int:
    """Return the value of digits, or a smaller one that exceeds the limit."""
    number = 0
    for digit in digits:
        number = 10 * number + int(digit)
        if number > limit:
            break
    return number


def _allow_width(m: Machine, width: int) -> None:
    if width > m.limits.width:
        limit = grouped(m.limits.width)
        text = f"a formatted field has at most {limit} characters, not {grouped(width)}"
        raise KernelError("too-large", text)


def formatted(m: Machine, value: Any, spec: Any = "") -> str:
    if not isinstance(spec, str):
        raise TypeError(f"format() argument 2 must be str, not {m.class_of(spec).name}")
    if len(spec) > _SHORT_SPEC:
        m.charge(10 * len(spec))
    for digits in _NUMBER.findall(spec):  # of any script: Python reads them all
        _allow_width(m, _small_number(digits, m.limits.width))
    kind = value.__class__
    if kind in INSTANCES:
        method = value.cls.find("__format__")
        if method is not UNSET:
            return _returned(m, "__format__", m.call(method, (value, spec), {}))
        if value.cls.payload in m.opaque or isinstance(value, tuple | list | dict):
            return _of_object(m, value, spec)
        plain = not spec or isinstance(value, str)
        return _formatted_base(m, text(m, value) if plain else plain_scalar(value), spec)
    if kind in (int, float, str, bool):
        m.charge(1 + len(value) // 4 if kind is str else 1)
        if kind is int and value.bit_length() > _SHORT_NUMBER:
            m.charge(value.bit_length() ** 2 >> 12)
        return _formatted_base(m, value, spec)
    if kind in m.formatting or isinstance(value, Enum):
        return _formatted_base(m, value, spec)
    return _of_object(m, value, spec)


def _formatted_base(m: Machine, value: Any, spec: str) -> str:
    result = format(value, spec)
    m.text(len(result))
    return result


def _of_object(m: Machine, value: Any, spec: str) -> str:
    if spec:
        _refuse_unknown(m, value)
        kind = m.class_of(value).name
        raise TypeError(f"unsupported format string passed to {kind}.__format__")
    return text(m, value)


def _refuse_unknown(m: Machine, value: Any) -> None:
    """Let a value of the language whose number is not known, such as a tensor, say so itself."""
    special = m.class_of(value).find("__float__")
    if value.__class__ not in INSTANCES and special is not UNSET:
        m.call(special, (value,), None)


def converted(m: Machine, value: Any, conversion: str, spec: str = "") -> str:
    """Return the text of the f-string field `{value!conversion:spec}`."""
    if conversion == "r":
        value = representation(m, value)
    elif conversion == "a":
        value = representation(m, value).encode("ascii", "backslashreplace").decode("ascii")
    elif conversion == "s":
        value = text(m, value)
    return formatted(m, value, spec)


def format_method(m: Machine, template: str) -> Callable[..., str]:
    """Return the function that computes `template.format(*args, **named)`."""

    def fill(args: Sequence[Any], named: Mapping[str, Any]) -> str:
        m.text(len(template))
        result = _Formatter(m).vformat(template, args, named)
        m.text(len(result))
        return result

    return fill


class _Formatter(string.Formatter):
    """A `str.format` whose fields reach only attributes that kernel code can reach."""

    def __init__(self, m: Machine) -> None:
        self._m = m
        self._length = 0

    def get_field(
        self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[Any, str | int]:
        """Return the value of a field such as `0.shape[1]`."""
        first, rest = _split(field_name)
        value = self.get_value(first, args, kwargs)
        for is_attribute, name in rest:
            value = self._m.attribute(value, name) if is_attribute else self._m.item(value, name)
        return value, first

    def get_value(self, key: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return the argument that a field names."""
        if isinstance(key, int):
            if not 0 <= key < len(args):
                text = f"Replacement index {key} out of range for positional args tuple"
                raise IndexError(text)
            return args[key]
        return self._m.item(kwargs, key) if isinstance(kwargs, dict) else kwargs[key]

    def format_field(self, value: Any, format_spec: str) -> str:
        self._m.charge(_FIELD_STEPS)
        result = formatted(self._m, value, format_spec)
        self._length += len(result)
        self._m.allow_length(self._length, "the text")
        return result

    def convert_field(self, value: Any, conversion: Any) -> Any:
        """Return the value after a conversion such as `!r`."""
        return converted(self._m, value, conversion) if conversion else value


def _split(field_name: str) -> tuple[Any, Iterable[tuple[bool, Any]]]:
    # As string.Formatter does it; the module is internal to CPython and has no stubs.
    module: Any = string._string  # type: ignore[attr-defined]
    first, rest = module.formatter_field_name_split(field_name)
    return first, rest


# ---- percent ------------------------------------------------------------------------------------


# A conversion after `%` and the name of its key: flags, width, precision, type.
_CONVERSION = re.compile(r"[#0\- +]*(\*|[0-9]*)(?:\.(\*|[0-9]*))?[hlL]?(.?)", re.DOTALL)
_NUMBER_LENGTH = 330  # characters of any float; of an escaped text that is not an operand
_SHORT_OPERAND = 32  # characters of a text, or half the bits of a number


def percent(m: Machine, template: Any, values: Any) -> Any:
    """Return `template % values`, for text and bytes.

    The length of the result is charged before the conversion that would produce it: that of fields
    and short operands at once, that of others by `_PercentOperand` when it is converted.
    """
    plain = template if isinstance(template, str) else template.decode("latin-1")
    arguments = iter(values if isinstance(values, tuple) else (values,))
    if isinstance(values, tuple):
        m.charge(4 * len(values))
    m.allocate(len(plain) + _fields_length(m, plain, arguments))
    operands = _Operands(m, isinstance(template, bytes))
    try:
        result = template % operands.of(values)
    except TypeError as error:  # some of them name the class of the operand that stands for it
        shown = str(error).replace(_PercentOperand.__name__, operands.refused)
        raise TypeError(_ADDRESS.sub("", shown)) from None
    m.allow_length(len(result), "the text")
    return result


def _fields_length(m: Machine, template: str, arguments: Iterator[Any]) -> int:
    """Return the length of all fields of a template, apart from that of long operands."""
    length, widths, at = 0, 0, template.find("%") + 1
    while at:
        m.charge(_FIELD_STEPS)
        by_name = template.startswith("(", at)
        at = _after_key(m, template, at) if by_name else at
        field = _CONVERSION.match(template, at)
        assert field is not None
        for digits in (field[1], field[2]):
            size = next(arguments, 0) if digits == "*" else _small_number(digits or "", 1 << 30)
            width = abs(size) if isinstance(size, int) else 0
            _allow_width(m, width)
            widths += width
        if field[3] != "%" and not by_name:
            next(arguments, None)
        length += _NUMBER_LENGTH if field[3] in "fFra" else _SHORT_OPERAND
        at = template.find("%", field.end()) + 1
    m.allow_length(widths, "the text")
    return length + widths


def _after_key(m: Machine, template: str, at: int) -> int:
    """Return the index after the key in parentheses, which nest."""
    start, depth = at, 0
    while at < len(template):
        depth += {"(": 1, ")": -1}.get(template[at], 0)
        at += 1
        if not depth:
            break
    m.charge(at - start)
    return at


class _Operands:
    """The operands of one `%`; `length` is that of the texts of all that were converted."""

    def __init__(self, m: Machine, as_bytes: bool) -> None:
        self.m = m
        self._as_bytes = as_bytes
        self._length = 0
        self.refused = ""  # the class of the operand that is no number

    def of(self, values: Any) -> Any:
        """Wrap the value, or every element of a tuple or dict, for the conversions of `%`."""
        if values.__class__ is tuple:
            return tuple([self.wrapped(part) for part in values])
        if values.__class__ is dict:
            self.m.elements(3 * len(values), "the operands")
            return {key: self.wrapped(value) for key, value in values.items()}
        return self.wrapped(values)

    def wrapped(self, value: Any) -> Any:
        """Return a value whose text is short as it is, and another as a `_PercentOperand`."""
        kind = value.__class__
        short = kind is float or kind is bool
        if kind is int:
            short = value.bit_length() <= 2 * _SHORT_OPERAND
        elif kind is bytes if self._as_bytes else kind is str:
            short = len(value) <= _SHORT_OPERAND
        if short or (kind is str and self._as_bytes):
            return value
        return _OPERANDS.get(kind, _PercentOperand)(self, value)

    def pay(self, length: int) -> None:
        """Charge for one more text."""
        self._length += length
        self.m.text(length)
        self.m.allow_length(self._length, "the text")


class _PercentOperand:
    """A value for `%` that converts by the interpreter's rules, and pays for its text."""

    def __init__(self, operands: _Operands, value: Any) -> None:
        self._all = operands
        self._m = operands.m
        self._value = value

    def __str__(self) -> str:
        shown = text(self._m, self._value)
        self._all.pay(len(shown))
        return shown

    def __repr__(self) -> str:
        shown = representation(self._m, self._value)
        self._all.pay(len(shown))
        return shown

    def __bytes__(self) -> bytes:
        if not isinstance(self._value, bytes):
            kind = self._m.class_of(self._value).name
            needed = "%b requires a bytes-like object, or an object that implements __bytes__"
            raise TypeError(f"{needed}, not '{kind}'")
        self._all.pay(len(self._value))
        return self._value

    def __int__(self) -> int:
        if self._value.__class__ is int:
            return self.__index__()
        if self._value.__class__ in INSTANCES:
            return int(self._value)
        _refuse_unknown(self._m, self._value)
        self._all.refused = self._m.class_of(self._value).name
        raise TypeError(
            f"%d format: a real number is required, not {self._m.class_of(self._value).name}"
        )

    def __index__(self) -> int:
        number = self._m.index(self._value)
        self._m.charge(number.bit_length() ** 2 >> 12)
        self._all.pay(number.bit_length())
        return int(number)

    def __float__(self) -> float:
        if self._value.__class__ in INSTANCES or self._value.__class__ is int:
            return float(self._value)
        _refuse_unknown(self._m, self._value)
        raise TypeError(f"must be real number, not {self._m.class_of(self._value).name}")

    def __getitem__(self, key: Any) -> Any:
        return self._all.wrapped(self._m.item(self._value, key))


# Classes whose names are those that Python's messages give.
_OPERANDS: dict[type, type[_PercentOperand]] = {
    kind: type(kind.__name__, (_PercentOperand,), {})
    for kind in (str, int, bytes, list, tuple, dict)
}
