"""Scanner of the program text, one line at a time."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

from nkic.base.text import clean
from nkic.neff.failures import refuse
from nkic.neff.limits import INT64

_WORD = re.compile(
    r"""\s*(?: (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<float>-?(?:\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+|inf\b)|nan\b)
      | (?P<int>-?\d+)
      | (?P<name>[A-Za-z_]\w*(?:\.\w+)*)
      | (?P<mark>>=|[%$@\[\](){}:,;=+])
      | $ )""",
    re.VERBOSE | re.ASCII,
)
Token = tuple[str, str]  # kind and text


class Scanner:
    """The tokens of one line. Every method refuses the line if the expected token is not next."""

    def __init__(self, line: str, number: int) -> None:
        self._line = line
        self._number = number
        self._tokens = self._split()
        self._next = 0

    def _split(self) -> list[Token]:
        tokens, position, depth = [], 0, 0
        while position < len(self._line):
            match = _WORD.match(self._line, position)
            if match is None:
                self.fail(f"no word begins like `{clean(self._line[position:].strip()[:10])}`")
            kind = match.lastgroup
            position = match.end()
            if kind is None or (match[kind] == ";" and depth not in _INSIDE):
                break  # a comment
            depth += (match[kind] == "[") - (match[kind] == "]")
            tokens.append((kind, match[kind]))
        return tokens

    def fail(self, problem: str, expectation: str = "") -> NoReturn:
        """Refuse the line."""
        expected = f", {expectation} expected" if expectation else ""
        refuse("assembly-syntax", f"line {self._number}: {problem}{expected}")

    @property
    def done(self) -> bool:
        """Whether no token is left."""
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
        """Consume the next token if it is `written`."""
        if self.done or self._tokens[self._next][0] == "string" or self.peek() != written:
            return False
        self._next += 1
        return True

    def expect(self, written: str) -> None:
        """Consume the next token, which must be `written`."""
        if not self.accept(written):
            self.fail(f"`{clean(self.peek())}`" if not self.done else "the end", f"`{written}`")

    def name(self) -> str:
        """Consume a name."""
        return self.take("name")

    def string(self) -> str:
        """Consume a string and return its contents."""
        written = self.take("string")
        try:
            return str(json.loads(written))
        except ValueError:
            self.fail(f"{clean(written[:20])}", "a string as in JSON")

    def integer(self) -> int:
        """Consume an integer that a file can hold."""
        written = self.take("int")
        if len(written) > 20 or not -INT64 - 1 <= int(written) <= 2 * INT64 + 1:
            self.fail(f"`{written[:30]}`", "an integer of 64 bits")
        return int(written)

    def numbered(self, letter: str) -> int:
        """Consume a name made of `letter` and a number: s12."""
        written = self.name()
        digits = written[1:]
        if written[0] != letter or not digits.isdigit() or len(digits) > 10:
            self.fail(f"`{clean(written[:20])}`", f"{letter} and a number")
        return int(digits)

    def value(self, depth: int = 0) -> Any:
        """Consume a number, string, true, false, none or a bracketed list of them."""
        if self.accept("["):
            return self._list(depth + 1)
        kind, written = self._tokens[self._next] if not self.done else ("", "")
        if kind == "string":
            return self.string()
        if kind == "int":
            return self.integer()
        if kind == "float":
            self._next += 1
            return math.nan if written == "nan" else float(written)
        if written not in _WORDS:
            self.fail(f"`{clean(written[:20])}`", "a value")
        self._next += 1
        return _WORDS[written]

    def _list(self, depth: int) -> tuple[Any, ...]:
        if depth > _NESTING:
            self.fail("`[`", f"at most {_NESTING} brackets in each other")
        values = []
        while not self.accept("]"):
            values.append(self.value(depth))
            if self.peek() != "]":
                self.expect(",")
        return tuple(values)


_NESTING = 4
_INSIDE = range(1, _NESTING + 1)
_KINDS = {"string": "a string", "int": "an integer", "name": "a name"}
_WORDS = {"none": None, "true": True, "false": False}
