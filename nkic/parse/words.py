"""The lexer's view of the grammar: the numbers of terminals and their patterns."""

from __future__ import annotations

import re
from functools import cache

from nkic.parse.tables import END, ERROR, Tables, load


class Words:
    """Terminals by role, and `pattern`, which matches any token with preceding blanks."""

    def __init__(self, tables: Tables) -> None:
        number = tables.index
        self.fixed = tables.texts
        self.keywords = {text: kind for text, kind in tables.texts.items() if text.isalpha()}
        self.name, self.number, self.string = number("NAME"), number("NUMBER"), number("STRING")
        self.fstring_start, self.fstring_end = number("FSTRING_START"), number("_FSTRING_END")
        self.field_open = number("_FIELD_OPEN")
        self.middle, self.raw_middle = number("FSTRING_MIDDLE"), number("RAW_FSTRING_MIDDLE")
        self.newline, self.indent, self.dedent = map(number, ("_NEWLINE", "_INDENT", "_DEDENT"))
        self.with_open, self.with_, self.match = map(number, ("_WITH_OPEN", "WITH", "MATCH"))
        self.case, self.type = number("CASE"), number("TYPE")
        self.end, self.error = number(END), number(ERROR)
        self.first_lookahead = min(self.with_, self.match, self.case, self.type)
        self.pattern = _master_pattern(tables)


def _master_pattern(tables: Tables) -> re.Pattern[str]:
    special = {*"()[]{}!:", ":="}
    operators = [text for text in tables.texts if not text.isalpha() and text not in special]
    operators.sort(key=len, reverse=True)  # the longest first
    name = tables.patterns["NAME"]
    groups = {
        # A whole word: no further word character follows, and no quote, since it may be a prefix.
        "word": rf"{name}(?![^\x00-!#-&(-/:-@\[-^`{{-\x7f])",
        "newline": r"(?:\#[^\n]*)?\n",
        "number": tables.patterns["NUMBER"],
        "operator": "|".join(map(re.escape, operators)),
        "opening": r"[(\[{]",
        "closing": r"[)\]}]",
        "string": tables.patterns["STRING"],
        "fstring": tables.patterns["FSTRING_START"],
        "colon": r":=?|!",
        "other_word": name,
        "continuation": r"\\\n",
        "bad": r"[\s\S]",
    }
    choices = "|".join(f"(?P<{group}>{pattern})" for group, pattern in groups.items())
    return re.compile(rf"[ \t\f]*(?:{choices})")


@cache
def words() -> Words:
    """Return the words of the package's grammar."""
    return Words(load())


@cache
def literal_pattern(quote: str, raw: bool) -> re.Pattern[str]:
    """Return a pattern for f-string text up to a brace, the string's end or a line's end."""
    first = re.escape(quote[0])
    plain = rf"[^\\{{}}\n{first}]" if len(quote) == 1 else rf"[^\\{{}}{first}]"
    inner_quote = "" if len(quote) == 1 else rf"|{first}(?!{first}{first})"
    named = "" if raw else r"|\\N\{[^{}\"'\n]*\}"
    return re.compile(rf"(?:{plain}+{inner_quote}{named}|\\(?=[{{}}])|\\[\s\S])*")
