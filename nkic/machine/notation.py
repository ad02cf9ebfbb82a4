"""Reading the text of operands, which printed programs and printed records share.

The two differ only in how they write values: programs as Python does, records as JSON does.
"""

from __future__ import annotations

import json
import math
import re
from ast import literal_eval
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from nkic.base.diagnostics import bad_argument
from nkic.base.text import clean, whole_number
from nkic.machine.dtypes import DTYPES, DType, find, suggest
from nkic.machine.operands import Register
from nkic.machine.patterns import DYNAMIC_KINDS, Dims, RunTimeOffset
from nkic.machine.targets import MAX_RANK, MAX_SIZE

SourceT = TypeVar("SourceT")

_WORD = r"""\s*(?: (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<float>-?(?:\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+|inf\b)|nan\b)
      | (?P<int>-?\d+)
      | (?P<name>[A-Za-z_]\w*(?:\.\w+)*)
      | (?P<mark>>=|[%$@\[\](){}:,;=+])
      | $ )"""
_NESTING = 4
_INSIDE = range(1, _NESTING + 1)
_KINDS = {"string": "a string", "int": "an integer", "name": "a name"}
_INT64 = 2**63 - 1


class Misread(ValueError):
    """A text is not what it should be. The message has the number of the line."""


@dataclass(frozen=True)
class Style:
    """How a text writes values."""

    word: re.Pattern[str]
    brackets: tuple[str, str]  # of lists
    constants: Mapping[str, Any]
    content: Callable[[str], Any]  # of a string
    comments: bool  # whether `;` outside of brackets begins one


JSON = Style(
    re.compile(_WORD, re.VERBOSE | re.ASCII),
    ("[", "]"),
    {"none": None, "true": True, "false": False},
    json.loads,
    comments=True,
)
PYTHON = Style(
    re.compile(_WORD.replace('"', "'"), re.VERBOSE | re.ASCII),
    ("(", ")"),
    {"None": None, "True": True, "False": False},
    literal_eval,
    comments=False,
)


class Scanner:
    """The tokens of one line. Every method refuses the line if the expected token is not next."""

    def __init__(self, line: str, number: int, style: Style) -> None:
        self._line = line
        self._number = number
        self._style = style
        self._tokens = self._split()
        self._next = 0

    def _split(self) -> list[tuple[str, str]]:
        """Return the kind and text of each token."""
        tokens, position, depth = [], 0, 0
        match_word, comments = self._style.word.match, self._style.comments
        while position < len(self._line):
            match = match_word(self._line, position)
            if match is None:
                self.fail(f"no word begins like `{clean(self._line[position:].strip()[:10])}`")
            kind = match.lastgroup
            position = match.end()
            if kind is None:
                break
            text = match[kind]
            if kind == "mark":
                if text == ";" and comments and depth not in _INSIDE:
                    break
                depth += (text == "[") - (text == "]")
            tokens.append((kind, text))
        return tokens

    def fail(self, problem: str, expectation: str = "") -> NoReturn:
        expected = f", {expectation} expected" if expectation else ""
        raise Misread(f"line {self._number}: {problem}{expected}")

    @property
    def done(self) -> bool:
        return self._next >= len(self._tokens)

    def peek(self, ahead: int = 0) -> str:
        """Return the text of the next token, or an empty string at the end."""
        index = self._next + ahead
        return self._tokens[index][1] if index < len(self._tokens) else ""

    def take(self, kind: str) -> str:
        """Consume the next token, which must be of `kind`, and return its text."""
        if self.done or self._tokens[self._next][0] != kind:
            self.fail(f"`{clean(self.peek())}`" if not self.done else "the end", _KINDS[kind])
        self._next += 1
        return self._tokens[self._next - 1][1]

    def accept(self, written: str) -> bool:
        if self.peek() != written or self.done or self._tokens[self._next][0] == "string":
            return False
        self._next += 1
        return True

    def expect(self, written: str) -> None:
        """Consume the next token, which must be `written`."""
        if not self.accept(written):
            self.fail(f"`{clean(self.peek())}`" if not self.done else "the end", f"`{written}`")

    def name(self) -> str:
        return self.take("name")

    def string(self) -> str:
        written = self.take("string")
        try:
            return str(self._style.content(written))
        except (ValueError, SyntaxError):
            self.fail(f"{clean(written[:20])}", "a string as in JSON")

    def integer(self) -> int:
        """Consume an integer that a file can hold."""
        written = self.take("int")
        if len(written) > 20 or not -_INT64 - 1 <= int(written) <= 2 * _INT64 + 1:
            self.fail(f"`{written[:30]}`", "an integer of 64 bits")
        return int(written)

    def numbered(self, letter: str) -> int:
        """Consume a name made of `letter` and a number: s12."""
        written = self.name()
        number = whole_number(written[1:], 9_999_999_999)
        if written[0] != letter or number is None:
            self.fail(f"`{clean(written[:20])}`", f"{letter} and a number")
        return number

    def setting(self, name: str, mark: str = "") -> int:
        self.expect(name)
        if mark:
            self.expect(mark)
        return self.integer()

    def choice(self, choices: Mapping[str, Any]) -> Any:
        written = self.name()
        if written not in choices:
            self.fail(f"`{written}`", f"one of {', '.join(choices)}")
        return choices[written]

    def value(self, depth: int = 0) -> Any:
        """Consume a number, string, constant or a bracketed list of values."""
        constants = self._style.constants
        if self.accept(self._style.brackets[0]):
            return self._list(depth + 1)
        kind, written = self._tokens[self._next] if not self.done else ("", "")
        if kind == "string":
            return self.string()
        if kind == "int":
            return self.integer()
        if kind == "float":
            self._next += 1
            return math.nan if written == "nan" else float(written)
        if written not in constants:
            self.fail(f"`{clean(written[:20])}`", "a value")
        self._next += 1
        return constants[written]

    def _list(self, depth: int) -> tuple[Any, ...]:
        start, end = self._style.brackets
        if depth > _NESTING:
            self.fail(f"`{start}`", f"at most {_NESTING} brackets in each other")
        values = []
        while not self.accept(end):
            values.append(self.value(depth))
            if self.peek() != end:
                self.expect(",")
        return tuple(values)

    # ---- Operands: $0 and %3[0+128, 0; 1x512]:bfloat16 by vector +3 stride 1 limit 9 axis 0 ------

    def register(self) -> Register:
        self.expect("$")
        return Register(self.integer())

    def bound(self) -> int | Register:
        return self.register() if self.peek() == "$" else self.integer()

    def reference(self) -> int:
        self.expect("%")
        return self.integer()

    def dtype(self) -> DType:
        chosen: DType = self.choice(DTYPES)
        return chosen

    def window(self) -> tuple[int, int, int, Dims]:
        """Consume the start, partitions, offset and dimensions of a pattern."""
        self.expect("[")
        start = partitions = 0
        offset = self.integer()
        if self.accept("+"):
            start, partitions = offset, self.integer()
            self.expect(",")
            offset = self.integer()
        self.expect(";")
        dims: list[tuple[int, int]] = []
        while not self.accept("]"):
            if dims:
                self.expect(",")
            dims.append((self.integer(), self.numbered("x")))
        return start, partitions, offset, tuple(dims)

    def dynamic(self, source: Callable[[Scanner], SourceT]) -> RunTimeOffset[SourceT] | None:
        """Consume a run-time offset, if one is next, whose source `source` consumes."""
        if not self.accept("by"):
            return None
        kind, holder = (
            self.choice(dict(zip(DYNAMIC_KINDS, DYNAMIC_KINDS, strict=True))),
            source(self),
        )
        stride, limit, axis = [self.setting(name) for name in ("stride", "limit", "axis")]
        return RunTimeOffset(kind, holder, stride, limit, axis)


# ---- The types of arrays as users write them: `--arg a=f32[128,512]`, `-i a=128x512xf32=@a.bin` --
# `float16[128, 512]`, or `128x512xfloat16` in IREE's form, or a dtype alone, whose shape something
# else gives. Errors are `UsageFailed`; `origin` prefixes their messages.

_BRACKETS = re.compile(r"^(?P<dtype>[\w.]+)\s*(?:\[(?P<sizes>[^\]]*)\])?$")
_CROSSES = re.compile(r"^(?P<sizes>\d+(?:x\d+)*)x(?P<dtype>[A-Za-z]\w*)$")


def array_type(text: str, origin: str) -> tuple[DType, tuple[int, ...] | None]:
    """Return the dtype and the shape of a type; the shape is None if the text has none."""
    stripped = text.strip()
    crosses = _CROSSES.match(stripped)
    match = crosses or _BRACKETS.match(stripped)
    if match is None:
        raise bad_argument(
            f"{origin}: `{text}` is not a tensor type",
            "write it as float16[128,512] or 128x512xf16",
        )
    dtype, sizes = find_dtype(match["dtype"], origin), match["sizes"]
    if sizes is None:
        return dtype, None
    return dtype, _shape(re.split("x" if crosses else ",", sizes.strip().rstrip(",")), text, origin)


def find_dtype(name: str, origin: str) -> DType:
    """Return the dtype of an NKI name (with or without `nl.`), or of a short one (`bf16`)."""
    plain = name.removeprefix("nl.").removeprefix("nki.language.")
    dtype = find(plain) or find(plain.lower())
    if dtype is None:
        near = "".join(f"did you mean `{suggestion}`?" for suggestion in suggest(plain))
        listed = f"known are: {', '.join(sorted(DTYPES))}"
        raise bad_argument(f"{origin}: there is no dtype `{name}`", near or listed)
    return dtype


def _shape(fields: list[str], text: str, origin: str) -> tuple[int, ...]:
    numbers = [field.strip() for field in fields]
    if not all(re.fullmatch("[0-9]+", number) for number in numbers):
        none = "a tensor in HBM has at least one dimension; write float16[1] for a single element"
        raise bad_argument(
            f"{origin}: the sizes in `{text}` are not all whole numbers",
            "separate them by commas, as in float16[128,512]" if any(numbers) else none,
        )
    if len(numbers) > MAX_RANK:
        raise bad_argument(f"{origin}: {len(numbers)} dimensions; at most {MAX_RANK}")
    sizes = [whole_number(number, MAX_SIZE) or 0 for number in numbers]
    if 0 in sizes:
        raise bad_argument(f"{origin}: every size in `{text}` must be from 1 to {MAX_SIZE}")
    return tuple(sizes)
