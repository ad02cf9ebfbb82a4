"""Did you mean …? The nearest name to one that does not exist, the same way everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterable

from nkic.base.diagnostics import Fix
from nkic.base.source import SourceFile, Span

_LONGEST = 100  # characters; edits are counted in time that is the square of this


class Guess(str):
    """``did you mean `exp`?``, as a text that remembers which word stands for which name.

    `sure`: no other name is as near, and they differ in one letter, in case, or in the order of
    their parts. Another digit is another name.
    """

    word: str
    name: str
    sure: bool
    __slots__ = ("name", "sure", "word")

    def __new__(cls, word: str, name: str, sure: bool) -> Guess:
        made = super().__new__(cls, f"did you mean `{name}`?")
        made.word, made.name, made.sure = word, name, sure
        return made

    def __reduce__(self) -> tuple[type[Guess], tuple[str, str, bool]]:
        return Guess, (self.word, self.name, self.sure)


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """A `Guess` at what was meant by `word`, or nothing when no name is near."""
    near = _nearest(word, names)
    return Guess(word, near[0], _is_sure(word, *near)) if near else ""


def respelt(help: str, source: SourceFile | None, span: Span) -> tuple[Fix, ...]:
    """The fix that writes the name that is meant, where `help` is a `Guess`.

    None where the word does not stand in `span` exactly once: it came from elsewhere.
    """
    if not isinstance(help, Guess) or source is None:
        return ()
    text = source.text_of(span)
    found = list(re.finditer(rf"(?<!\w){re.escape(help.word)}(?!\w)", text))
    if len(found) != 1:
        return ()
    before = text[: found[0].start()].split("\n")
    line = span.line + len(before) - 1
    column = len(before[-1]) + (span.column if line == span.line else 1)
    place = Span(span.path, line, column, line, column + len(help.word))
    return (Fix(place, help.name, f"write `{help.name}`", help.sure),)


def nearest(word: str, names: Iterable[str]) -> str | None:
    """The name that was probably meant by `word`, or None: see `_nearest`."""
    near = _nearest(word, names)
    return near[0] if near else None


def _is_sure(word: str, name: str, distance: int, rivals: int) -> bool:
    digits = re.sub(r"\D", "", word) == re.sub(r"\D", "", name)
    return not rivals and digits and (distance == 0 or (distance == 1 and len(word) > 3))


def _nearest(word: str, names: Iterable[str]) -> tuple[str, int, int] | None:
    """The name that was probably meant by `word`, how far it is, and how many are as near.

    Near is: equal but for case, or made of the same parts in another order
    (`copy_tensor`, `tensor_copy`), or at most one edit for every three characters away (one
    in two characters; one letter is never near another). Of equally near names the one that
    sorts first, so that messages do not change between runs. A word too long to have been typed
    is near to nothing.
    """
    if len(word) > _LONGEST:
        return None
    limit = max(len(word) > 1, len(word) // 3)
    scored = [(_distance(word, name, limit), name) for name in set(names) if name != word]
    best, name = min(scored, default=(limit + 1, ""))
    rivals = sum(distance == best for distance, _ in scored) - 1
    return (name, best, rivals) if best <= limit else None


def _distance(word: str, name: str, limit: int) -> int:
    """Edits from `word` to `name`; anything above `limit` is only known to be above it."""
    left, right = word.lower(), name.lower()
    if left == right or _parts(left) == _parts(right):
        return 0
    if abs(len(left) - len(right)) > limit:
        return limit + 1
    return _edits(left, right)


def _parts(name: str) -> list[str]:
    return sorted(name.replace("-", "_").replace(".", "_").split("_"))


def _edits(left: str, right: str) -> int:
    """Insertions, deletions, replacements and swaps of neighbours that turn one into the other.

    This is the restricted Damerau-Levenshtein distance, row by row.
    """
    before: list[int] = []
    above = list(range(len(right) + 1))
    for i, a in enumerate(left):
        row = [i + 1]
        for j, b in enumerate(right):
            row.append(min(above[j] + (a != b), above[j + 1] + 1, row[j] + 1))
            if i and j and a == right[j - 1] and b == left[i - 1]:
                row[-1] = min(row[-1], before[j - 1] + 1)
        before, above = above, row
    return above[-1]
