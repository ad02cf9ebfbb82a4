"""Text for terminals: sanitised, measured in cells, with readable numbers."""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from typing import Any

# Control characters, marks that reorder text on screen (a spoofing attack), characters that some
# terminals treat as line ends or that have no width, and lone surrogates, which no encoding
# accepts.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff"
    "\ud800-\udfff]"
)
LONGEST = 4096  # bytes of a string in an artifact
_SHORT_ESCAPES = {"\t": r"\t", "\n": r"\n", "\r": r"\r"}


def clean(text: str, keep: str = "") -> str:
    """Return `text` from a file or command line with control characters escaped.

    The characters in `keep` are not escaped.
    """
    return _UNSAFE.sub(lambda match: match[0] if match[0] in keep else _escape(match[0]), text)


def printable(text: str) -> str:
    """Return `text` as artifacts hold it: no control characters, cut to the limit for strings."""
    cleaned = clean(text)
    if len(cleaned) * 4 <= LONGEST:
        return cleaned
    return cleaned.encode()[:LONGEST].decode(errors="ignore")


def _escape(char: str) -> str:
    number = ord(char)
    return _SHORT_ESCAPES.get(char) or (f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}")


def width(text: str) -> int:
    """Return the width of `text` in terminal cells: wide characters 2, combining marks 0."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def _cells(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def grouped(number: int) -> str:
    """Format `41220` as `41,220`, and a number of more than 4,000 digits by its size."""
    if number.bit_length() > _MOST_BITS:
        return f"2^{number.bit_length() - 1:,}"
    return f"{number:,}"


_MOST_BITS = 13_000  # Python formats at most 4,300 digits


def whole_number(text: str, most: int = 999_999_999) -> int | None:
    """Return the number from 0 to `most` that ASCII digits write, or None.

    `int` itself takes digits of other scripts, and raises for some that `isdigit` counts as digits
    and for numbers of thousands of digits.
    """
    digits = text.lstrip("0") or "0"
    if not (text.isascii() and text.isdigit()) or len(digits) > len(str(most)):
        return None
    number = int(digits)
    return number if number <= most else None


def plural(number: int, noun: str, nouns: str = "") -> str:
    """Format `1 error`, `2 errors`; `nouns` is an irregular plural."""
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


_NOUNS = "partition|element|dimension|column|row|rank|number|free dimension"
_ONE = re.compile(rf"(?<![\w.,:-])(?<!, )(?<!to )1 ({_NOUNS})s\b")


def singular(text: str) -> str:
    """Write `1 partition` for `1 partitions` in a message made from counts."""
    return _ONE.sub(r"1 \1", text)


_UNITS = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1))


def kind_of(value: Any) -> str:
    """Return what a value is, with an article: `a list`, `an object of Conf`.

    Classes whose name a kernel's author does not know say it: `_kind_`.
    """
    cls = type(value)
    name = str(value._kind_) if hasattr(cls, "_kind_") else cls.__name__
    return f"{article(name)} {name}"


def article(name: str) -> str:
    return "an" if name[:1].lower() in "aeio" or name.startswith("Nki") else "a"


def listed(names: Iterable[str]) -> str:
    """Join names: `a`; `a and b`; `a, b and c`."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def aligned(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> str:
    """Return lines with aligned columns; those whose number is in `right` are right-aligned."""
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = []
        for number, (cell, column_width) in enumerate(zip(row, widths, strict=True)):
            blank = " " * (column_width - width(cell))
            cells.append(blank + cell if number in right else cell + blank)
        lines.append("  ".join(cells).rstrip() + "\n")
    return "".join(lines)


def size(count: int) -> str:
    """Format a number of bytes in the largest unit that it fills: `9.2 MiB`, `512 B`."""
    unit, scale = _unit(count)
    return f"{_scaled(count, scale)} {unit}"


_SIZE = re.compile(r"(\d{1,15})\s*(?:([KMGT])i?)?B?", re.IGNORECASE)
_SHIFTS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


def size_of(text: str) -> int:
    """Parse `4GiB`, `500M` or `1000000` as bytes; units are powers of 1024. Raises `ValueError`."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    return int(match[1]) << _SHIFTS[(match[2] or "").upper()]


def decimal(count: int) -> str:
    """Format bytes in decimal units, as for memory rates: `33.5 MB`."""
    for unit, scale in (("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1000)):
        if count >= scale:
            return f"{count / scale:,.1f} {unit}"
    return f"{count} B"


def share(used: int, limit: int) -> str:
    """Format bytes used of a limit, in the limit's unit: `9.2/24.0 MiB (38%)`.

    If rounding would hide a difference, exact bytes are shown instead; only an exact fit is 100%.
    """
    unit, scale = _unit(limit)
    first, last = _scaled(used, scale), _scaled(limit, scale)
    if first == last and used != limit:
        unit, first, last = "B", grouped(used), grouped(limit)
    return f"{first}/{last} {unit}{_percent(used, limit)}"


def _unit(count: int) -> tuple[str, int]:
    return next((row for row in _UNITS if count >= row[1]), _UNITS[-1])


def _scaled(count: int, scale: int) -> str:
    return grouped(count) if scale == 1 else f"{count / scale:,.1f}"


def _percent(used: int, limit: int) -> str:
    if limit <= 0:
        return ""
    percent = 100 * used // limit
    return f" ({max(percent, 101) if used > limit else percent}%)"


# Replacements of characters that the terminal's encoding lacks.
_ASCII = str.maketrans(
    {
        **dict.fromkeys("×✗✘", "x"),
        **dict.fromkeys("µμ", "u"),
        **dict.fromkeys("–—─━", "-"),
        **dict.fromkeys("│┃", "|"),
        **dict.fromkeys("┌┐└┘├┤┬┴┼", "+"),
        **dict.fromkeys("█▓", "#"),
        **dict.fromkeys("▒░", ":"),
        **dict.fromkeys("‘’", "'"),
        **dict.fromkeys("“”", '"'),
        "·": ".",
        "…": "...",
        "≤": "<=",
        "≥": ">=",
        "≠": "!=",
        "±": "+-",
        "→": "->",
        "✓": "+",
        "\xa0": " ",
    }
)
FALLBACK = "nkic-ascii"


def ascii_only(text: str) -> str:
    """Return `text` in ASCII: signs and lines as look-alikes, the rest as escapes."""
    return text.translate(_ASCII).encode("ascii", "backslashreplace").decode("ascii")


def _encode_fallback(error: UnicodeError) -> tuple[str, int]:
    """Error handler of streams opened with `errors=FALLBACK`: output never fails."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return ascii_only(error.object[error.start : error.end]), error.end


codecs.register_error(FALLBACK, _encode_fallback)
