"""Did you mean …? The nearest name to one that does not exist, the same way everywhere."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """``did you mean `exp`?``, or nothing when no name is near."""
    name = nearest(word, names)
    return f"did you mean `{name}`?" if name else ""


def nearest(word: str, names: Iterable[str]) -> str | None:
    """The name that was probably meant by `word`, or None.

    Near is: equal but for case, or made of the same parts in another order
    (`copy_tensor`, `tensor_copy`), or at most one edit for every three characters away (one
    in two characters; one letter is never near another). Of equally near names the one that
    sorts first, so that messages do not change between runs.
    """
    limit = max(len(word) > 1, len(word) // 3)
    scored = ((_distance(word, name, limit), name) for name in set(names) if name != word)
    best, name = min(scored, default=(limit + 1, ""))
    return name if best <= limit else None


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
