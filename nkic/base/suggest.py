"""Suggestions for unknown names ("did you mean …?")."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable

from nkic.base.diagnostics import Fix
from nkic.base.source import SourceFile, Span

_MAX_WORD_CHARACTERS = 100  # characters; the edit distance takes quadratic time


class Guess(str):
    """The text ``did you mean `exp`?``, with the word and the suggested name.

    `sure`: no other name is as close, and they differ in one letter, in case, or in the order of
    their parts. A different digit is never a typing error.
    """

    word: str
    name: str
    sure: bool
    __slots__ = ("name", "sure", "word")

    def __new__(cls, word: str, name: str, sure: bool) -> Guess:
        guess = super().__new__(cls, f"did you mean `{name}`?")
        guess.word, guess.name, guess.sure = word, name, sure
        return guess

    def __reduce__(self) -> tuple[type[Guess], tuple[str, str, bool]]:
        return Guess, (self.word, self.name, self.sure)


def did_you_mean(word: str, names: Iterable[str], deprecated: Container[str] = ()) -> str:
    """Return a `Guess` for `word`, or an empty string if no name is close.

    A deprecated name is suggested only if no other name is as close.
    """
    near = _nearest(word, names, deprecated)
    return Guess(word, near[0], _is_sure(word, *near)) if near else ""


def suggestion(word: str, names: Iterable[str], otherwise: str = "known are") -> str:
    """Return a `Guess` for `word`, or a list of all names if none is close."""
    names = list(names)
    return did_you_mean(word, names) or f"{otherwise}: {', '.join(names)}"


def respelt(help: str, source: SourceFile | None, span: Span) -> tuple[Fix, ...]:
    """Return the fix that inserts the suggested name, if `help` is a `Guess`.

    Empty unless the word occurs exactly once in `span`: it may come from elsewhere.
    """
    if not isinstance(help, Guess) or source is None:
        return ()
    text = source.text_of(span)
    matches = list(re.finditer(rf"(?<!\w){re.escape(help.word)}(?!\w)", text))
    if len(matches) != 1:
        return ()
    before = text[: matches[0].start()].split("\n")
    line = span.line + len(before) - 1
    column = len(before[-1]) + (span.column if line == span.line else 1)
    replaced = Span(span.path, line, column, line, column + len(help.word))
    return (Fix(replaced, help.name, f"write `{help.name}`", help.sure),)


def nearest(word: str, names: Iterable[str]) -> str | None:
    """Return the name that `word` probably means, or None: see `_nearest`."""
    near = _nearest(word, names)
    return near[0] if near else None


def _is_sure(word: str, name: str, distance: int, rivals: int) -> bool:
    digits = re.sub(r"\D", "", word) == re.sub(r"\D", "", name)
    return not rivals and digits and (distance == 0 or (distance == 1 and len(word) > 3))


def _nearest(
    word: str, names: Iterable[str], deprecated: Container[str] = ()
) -> tuple[str, int, int] | None:
    """Return the name that `word` probably means, its distance, and the number of ties.

    A name is close if it is equal except for case, has the same parts in another order
    (`copy_tensor`, `tensor_copy`), or is at most one edit per three characters away (one in two
    characters; single letters are never close), or if it alone begins with the word. Of equally
    close names, the first in sorted order that is not deprecated is returned, so that messages are
    deterministic. Very long words are close to nothing.
    """
    if len(word) > _MAX_WORD_CHARACTERS:
        return None
    limit = max(len(word) > 1, len(word) // 3)
    scored = [
        (_distance(word, name, limit), name in deprecated, name)
        for name in set(names)
        if name != word
    ]
    best, _, name = min(scored, default=(limit + 1, False, ""))
    if best > limit:
        longer = [n for _, _, n in scored if len(word) > 2 and n.lower().startswith(word.lower())]
        return (longer[0], len(longer[0]) - len(word), 0) if len(longer) == 1 else None
    return name, best, sum(distance == best for distance, _, _ in scored) - 1


def _distance(word: str, name: str, limit: int) -> int:
    """Return the number of edits from `word` to `name`; beyond `limit`, any greater number."""
    left, right = word.lower(), name.lower()
    if left == right or _parts(left) == _parts(right):
        return 0
    if abs(len(left) - len(right)) > limit:
        return limit + 1
    return _edits(left, right)


def _parts(name: str) -> list[str]:
    return sorted(name.replace("-", "_").replace(".", "_").split("_"))


def _edits(source: str, target: str) -> int:
    """Return the restricted Damerau-Levenshtein distance, computed row by row."""
    before: list[int] = []
    above = list(range(len(target) + 1))
    for i, a in enumerate(source):
        row = [i + 1]
        for j, b in enumerate(target):
            row.append(min(above[j] + (a != b), above[j + 1] + 1, row[j] + 1))
            if i and j and a == target[j - 1] and b == source[i - 1]:
                row[-1] = min(row[-1], before[j - 1] + 1)
        before, above = above, row
    return above[-1]
