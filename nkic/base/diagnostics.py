"""Diagnostics: messages of both tools about a user's kernel, file or data.

A stage reports through a `Reporter` and continues if that is safe; otherwise `Reporter.fatal`
raises `CompileFailed`. Every code has a page in `explain/`, named `NKI0501-sbuf-overflow.md`: the
number starts with the family and is never reused, the slug is used in the code of this package, and
the first line is the title.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, NoReturn

from nkic.base.source import NOWHERE, SHIPPED, CallChain, SourceFile, Span
from nkic.base.text import clean


class Level(Enum):
    """The severity. An error prevents the artifact; a warning does not, unless requested."""

    ERROR = "error"
    WARNING = "warning"
    REMARK = "remark"


@dataclass(frozen=True, slots=True)
class Code:
    """One row of the code table."""

    number: str  # "NKI0501"
    slug: str  # "sbuf-overflow"


@cache
def codes() -> dict[str, Code]:
    """Return every code by slug, from the names of the pages in explain/."""
    # importlib.resources would cost a tenth of the start-up budget.
    pages = sorted(p.name for p in Path(__file__).with_name("explain").iterdir())
    rows = (name.removesuffix(".md").split("-", 1) for name in pages if name.startswith("NKI"))
    return {slug: Code(number, slug) for number, slug in rows}


def code(slug: str) -> Code:
    """Return the code of a slug. Unknown slugs are our bugs: `tests/unit` searches for them."""
    return codes()[slug]


@dataclass(frozen=True, slots=True)
class Label:
    """A place that a diagnostic points at, with its text."""

    span: Span
    text: str = ""


@dataclass(frozen=True, slots=True)
class Fix:
    """A replacement. `sure` means that applying it cannot break a correct program."""

    span: Span
    replacement: str
    title: str
    sure: bool = False


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One diagnostic.

    `message` describes the problem, with the limit and the actual number; `primary` is its place;
    `labels` are further places (an allocation, the call chain); `notes` explain; `help` is one
    concrete fix. `count` is the number of equal diagnostics at this place.
    """

    code: Code
    level: Level
    message: str
    primary: Label | None = None
    labels: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()
    help: str = ""
    fixes: tuple[Fix, ...] = ()
    count: int = 1

    def relocated(self, path_of: Callable[[str], str]) -> Diagnostic:
        """Return the diagnostic with the path of every place replaced, also in the help."""

        def moved(span: Span) -> Span:
            return span._replace(path=path_of(span.path))

        primary, help = self.primary, self.help
        if primary is not None:
            old = primary.span.path
            help = help.replace(f" {old} ", f" {path_of(old)} ")
        return replace(
            self,
            help=help,
            primary=replace(primary, span=moved(primary.span)) if primary else None,
            labels=tuple(replace(label, span=moved(label.span)) for label in self.labels),
            fixes=tuple(replace(fix, span=moved(fix.span)) for fix in self.fixes),
        )


# ---- Diagnostics as JSON and back: for programs, editors, caches and processes ------------------
# `render/diagnostic.schema.json` describes the objects, in which readers accept unknown fields.

_SURE, _UNSURE = "MachineApplicable", "MaybeIncorrect"
_PLACE = ("line", "column", "end_line", "end_column")


def to_json(diagnostics: Iterable[Diagnostic]) -> list[dict[str, Any]]:
    return [
        {
            "code": d.code.number,
            "slug": d.code.slug,
            "level": d.level.value,
            "message": d.message,
            "spans": [
                *([_label_as_json(d.primary, True)] if d.primary else []),
                *(_label_as_json(label, False) for label in d.labels),
            ],
            "notes": list(d.notes),
            "help": d.help or None,
            "fixes": [
                {
                    "span": _span_as_json(fix.span),
                    "replacement": fix.replacement,
                    "title": fix.title,
                    "applicability": _SURE if fix.sure else _UNSURE,
                }
                for fix in d.fixes
            ],
            "count": d.count,
        }
        for d in diagnostics
    ]


def _span_as_json(span: Span) -> dict[str, Any]:
    return {"file": span.path, **dict(zip(_PLACE, span[1:], strict=True))}


def _label_as_json(label: Label, primary: bool) -> dict[str, Any]:
    return {**_span_as_json(label.span), "label": label.text or None, "primary": primary}


def from_json(records: Iterable[Any]) -> tuple[Diagnostic, ...]:
    """Parse diagnostics. Raises `ValueError`, `LookupError` or `TypeError` for anything else."""
    return tuple(map(_diagnostic, records))


def _diagnostic(record: Any) -> Diagnostic:
    labels = [(Label(_span(s), _text(s["label"] or "")), s["primary"]) for s in record["spans"]]
    return Diagnostic(
        code(_text(record["slug"])),
        Level(record["level"]),
        _text(record["message"]),
        next((label for label, is_primary in labels if is_primary), None),
        tuple(label for label, is_primary in labels if not is_primary),
        tuple(map(_text, record["notes"])),
        _text(record["help"] or ""),
        tuple(
            Fix(
                _span(fix["span"]),
                _text(fix["replacement"]),
                _text(fix["title"]),
                bool(fix["applicability"] == _SURE),
            )
            for fix in record["fixes"]
        ),
        _number(record["count"]),
    )


def _span(record: Any) -> Span:
    return Span(_text(record["file"]), *(_number(record[name]) for name in _PLACE))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("expected a string")
    return value


def _number(value: Any) -> int:
    if type(value) is not int:
        raise TypeError("expected a number")
    return value


class NkicError(Exception):
    """Base class of all errors shown to users. It has diagnostics, never a bare string."""

    exit_code: ClassVar[int] = 1

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__("\n".join(d.message for d in diagnostics))
        self.diagnostics = tuple(diagnostics)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.diagnostics,)  # it may come from another process


class CompileFailed(NkicError):
    """The kernel is rejected. `frames` are its Python frames, if Python evaluated it."""

    frames: TracebackType | None = None


class UsageFailed(NkicError):
    """The command line is wrong."""

    exit_code = 2


class ArtifactFailed(NkicError):
    """The artifact is refused."""

    exit_code = 3


class InputFailed(NkicError):
    """The input data is refused."""

    exit_code = 4


class ProgramFault(NkicError):
    """The simulated program performed an invalid operation."""

    exit_code = 5


class LimitHit(NkicError):
    """A limit of time, cycles or memory was reached."""

    exit_code = 6


Place = Span | CallChain | None


LONGEST_TEXT = 4_000  # of a message, a note, a label or help


def make(
    slug: str,
    message: str,
    at: Place = None,
    *,
    label: str = "",
    labels: Iterable[Label] = (),
    notes: Iterable[str] = (),
    help: str = "",
    level: Level = Level.ERROR,
    fixes: Iterable[Fix] = (),
) -> Diagnostic:
    """Build a diagnostic; `label` is the text under the primary span.

    The callers in a chain are the last labels. Equal labels, as from recursion, are merged.
    """
    if isinstance(at, CallChain):
        labels = [*labels, *call_labels(at)]
        at = at.primary
    primary = Label(at, _short(label)) if at is not None else None
    merged = tuple(
        _counted(Label(one.span, _short(one.text)), count) for one, count in Counter(labels).items()
    )
    told, notes, help = _short(message), tuple(map(_short, notes)), _short(help)
    return Diagnostic(code(slug), level, told, primary, merged, notes, help, tuple(fixes))


def _short(text: str) -> str:
    """Return a text without the end of one that is very long, which only a kernel can make so."""
    more = len(text) - LONGEST_TEXT
    return text if more <= 0 else f"{text[:LONGEST_TEXT]}… ({more:,} more characters)"


def call_labels(at: CallChain) -> list[Label]:
    """Return the calls that led to `at` as secondary labels."""
    return [Label(span, "called from here") for span in at.user_frames()[1:]]


def bad_value(message: str, help: str = "") -> UsageFailed:
    """Return the error for a value of the command line, the environment or a settings file."""
    return UsageFailed([make("bad-value", message, help=help)])


def bad_argument(message: str, help: str = "") -> UsageFailed:
    """Return the error for an argument of the kernel, or another setting of a compilation."""
    return UsageFailed([make("bad-argument", message, help=help)])


def need(what: str, *packages: str, instead: str = "") -> None:
    """Raise `UsageFailed` if a package is missing or broken: `what` says what needs it, `instead`
    another way than to install it.
    """
    for package in packages:
        problem = "is not installed"
        if find_spec(package) is not None:
            try:
                import_module(package)
                continue
            except ImportError as error:
                problem = f"cannot be imported: {clean(str(error))}"
        help = f"python -m pip install {' '.join(packages)}{instead}"
        raise UsageFailed([make("bad-usage", f"{what} {package}, which {problem}", help=help)])


def refusal(
    slug: str,
    message: str,
    span: Span,
    *,
    label: str = "",
    labels: Iterable[Label] = (),
    help: str = "",
    fixes: Iterable[Fix] = (),
) -> CompileFailed:
    """Return the error for source text that cannot be read, or is not in the language."""
    diagnostic = make(slug, message, span, label=label, labels=labels, help=help, fixes=fixes)
    return CompileFailed([diagnostic])


def _counted(label: Label, times: int) -> Label:
    return label if times == 1 else Label(label.span, f"{label.text}, {times} times")


def within(at: CallChain) -> tuple[str, ...]:
    """Return a note for errors inside a function of nkic's own library, called by the user."""
    if not at.span.path.startswith(SHIPPED) or at.primary.path.startswith(SHIPPED):
        return ()
    return ("this call expands to several instructions; the message is about one of them",)


def _again(diagnostic: Diagnostic, times: int) -> Diagnostic:
    """Count a diagnostic so many times more; the iterations that it names were the first."""
    labels = [Label(a.span, re.sub("^here `", "first where `", a.text)) for a in diagnostic.labels]
    return replace(diagnostic, count=diagnostic.count + times, labels=tuple(labels))


_Key = tuple[str, Span | None, str]


@dataclass
class Reporter:
    """Collects diagnostics in order. Equal codes at the same place are merged and counted."""

    max_errors: int = 20
    _diagnostics: dict[_Key, Diagnostic] = field(default_factory=dict)
    _repetitions: Counter[_Key] = field(default_factory=Counter)  # after the first report
    _suspected: list[Diagnostic] = field(default_factory=list)
    _errors: int = 0  # errors in `_diagnostics`

    def add(self, diagnostic: Diagnostic) -> None:
        """Add a diagnostic; raises `CompileFailed` at the `max_errors`-th distinct error."""
        key = _key(diagnostic)
        if key in self._diagnostics:
            self._repetitions[key] += 1
            return
        self._keep(key, diagnostic)
        if self.full:
            raise CompileFailed(self.all)

    def repeat(self, diagnostic: Diagnostic, count: int) -> None:
        """Count `count` repetitions of a diagnostic added before."""
        self._repetitions[_key(diagnostic)] += count

    def suspect(self, diagnostic: Diagnostic) -> None:
        """Add an error that counts only if evaluation reaches it: see `settle`."""
        self._suspected.append(diagnostic)

    def withdraw(self, span: Span) -> None:
        """Remove the errors inside `span`, of which the next one is the cause."""
        for key, diagnostic in [*self._diagnostics.items()]:
            at = diagnostic.primary.span if diagnostic.primary else None
            if diagnostic.level is Level.ERROR and at is not None and span.covers(at):
                del self._diagnostics[key]
                self._errors -= 1

    def settle(self) -> None:
        """Turn suspected errors into errors if there are other errors, otherwise into warnings.

        One that is no edit at its place, such as an import that is missing, is said once.
        """
        level = Level.ERROR if self.errors else Level.WARNING
        suspected, self._suspected = self._suspected, []
        said = {_cause(one): key for key, one in self._diagnostics.items()}
        for diagnostic in suspected:
            key, cause = _key(diagnostic), _cause(diagnostic)
            if key in self._diagnostics:
                continue
            if cause in said and diagnostic.help and not diagnostic.fixes:
                self._repetitions[said[cause]] += 1
                continue
            said[cause] = key
            self._keep(key, replace(diagnostic, level=level))

    def _keep(self, key: _Key, diagnostic: Diagnostic) -> None:
        self._diagnostics[key] = diagnostic
        self._errors += diagnostic.level is Level.ERROR

    def stop_if_errors_in(self, span: Span) -> None:
        """Raise `CompileFailed` if an error inside `span` is the cause of what comes next."""
        if any(d.primary and span.covers(d.primary.span) for d in self.errors):
            self.stop_if_errors()

    def knows(self, slug: str, span: Span) -> bool:
        """Return whether this code was reported at this place."""
        return (code(slug).number, span, "") in self._diagnostics

    def error(self, slug: str, message: str, at: Place = None, **extra: object) -> None:
        """`add(make(…))` at level error."""
        self.add(make(slug, message, at, **extra))  # type: ignore[arg-type]

    def warning(self, slug: str, message: str, at: Place = None, **extra: object) -> None:
        """`add(make(…))` at level warning."""
        self.add(make(slug, message, at, level=Level.WARNING, **extra))  # type: ignore[arg-type]

    def fatal(self, slug: str, message: str, at: Place = None, **extra: object) -> NoReturn:
        """Report an error and raise `CompileFailed`."""
        self.error(slug, message, at, **extra)
        raise CompileFailed(self.all)

    @property
    def all(self) -> tuple[Diagnostic, ...]:
        """All diagnostics, in the order of first report."""
        return tuple(
            _again(diagnostic, times) if (times := self._repetitions[key]) else diagnostic
            for key, diagnostic in self._diagnostics.items()
        )

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(d for d in self.all if d.level is Level.ERROR)

    @property
    def full(self) -> bool:
        """Whether `max_errors` is reached."""
        return self._errors >= self.max_errors

    def stop_if_errors(self) -> None:
        """Raise `CompileFailed` if there is any error: stages end with this."""
        if self.errors:
            raise CompileFailed(self.all)


def _cause(diagnostic: Diagnostic) -> tuple[str, str, str, str]:
    path = diagnostic.primary.span.path if diagnostic.primary else ""
    return diagnostic.code.slug, path, diagnostic.message, diagnostic.help


def _key(diagnostic: Diagnostic) -> _Key:
    """Return the key for merging: different messages at one place (unrolled iterations) merge."""
    span = diagnostic.primary.span if diagnostic.primary else None
    return (diagnostic.code.number, span, "" if span else diagnostic.message)


# ---- Suggestions for unknown names ("did you mean …?") ------------------------------------------

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


def apart(fixes: Iterable[Fix]) -> list[Fix]:
    """Return the safe fixes that can be applied at once: of those that meet, the first."""
    kept: list[Fix] = []
    for fix in dict.fromkeys(fixes):
        if fix.sure and not any(fix.span.meets(other.span) for other in kept):
            kept.append(fix)
    return kept


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


# ------------------------------------------------------------------------------------------------
# Remarks: optimisations that a stage made or missed on a line of the kernel, with figures.
# A stage's `remarks` function derives them from the stage's input and output. Nothing is recorded
# during the stage, so that a compilation without remarks has no overhead.

Number = int | float | str


class Kind(Enum):
    """Whether the stage made an optimisation, missed one, or only reports an analysis."""

    PASSED = "passed"
    MISSED = "missed"
    ANALYSIS = "analysis"

    __hash__ = object.__hash__


@dataclass(frozen=True)
class Remark:
    """One remark.

    `name` is its subject, for programs ("overlap", "engine"). `numbers` are the figures of the
    message: names of times in nanoseconds end in `_ns`, of sizes in bytes in `_bytes`.
    """

    stage: str
    name: str
    kind: Kind
    at: CallChain | None
    message: str
    numbers: Mapping[str, Number] = field(default_factory=dict)

    @property
    def span(self) -> Span:
        """The innermost place in user code."""
        return self.at.primary if self.at is not None else NOWHERE


def line_of(at: CallChain) -> tuple[str, int]:
    """Return the key by which remarks are grouped: path and line."""
    span = at.primary
    return span.path, span.line


def in_order(remarks: Iterable[Remark], stages: Iterable[str]) -> list[Remark]:
    """Return remarks sorted by place, then by stage."""
    rank = {stage: number for number, stage in enumerate(stages)}
    return sorted(
        remarks,
        key=lambda remark: (remark.span[:3], rank[remark.stage], remark.name, remark.message),
    )
