"""Selection of the warnings to report, and of those that become errors.

The user chooses by code (`NKI0531`, `small-dma-rows`) or family (`05`); a code overrides its
family, and both override -Werror, so that the order of options does not matter. Errors stay errors.
In source, `# nkic: ignore[NKI0531] reason` suppresses a warning on its line, or on the next line of
code if it is on a line of its own; an unused one is itself a warning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from nkic.base import diagnostics
from nkic.base.diagnostics import (
    Code,
    Diagnostic,
    Level,
    NkicError,
    UsageFailed,
    codes,
    make,
    nearest,
)
from nkic.base.source import SourceFile, Span

# ------------------------------------------------------------------------------------------------
# The pages behind `--explain`: one per diagnostic code, in explain/ beside this file.
# A page's name is its code's number and slug (`NKI0501-sbuf-overflow.md`), its first line the
# title.

FOLDER = Path(__file__).with_name("explain")


def title(code: Code) -> str:
    """Return the meaning of a code, in one line."""
    return _text(code).partition("\n")[0].removeprefix("# ").strip()


def meaning(code: Code) -> str:
    """Return the paragraph below the title: the meaning, without reasons and examples."""
    return _text(code).partition("\n")[2].partition("\n## ")[0].strip()


def page(query: str) -> str:
    """Return the Markdown page of a code, headed by number and slug; `all` gives every page.

    `query` is a number (`NKI0501`, `0501`, `501`), a slug (`sbuf-overflow`) or `all`.
    Raises `UsageFailed`, with the nearest code, if there is no such page.
    """
    if query == "all":
        rows = sorted(diagnostics.codes().values(), key=lambda row: row.number)
        return "\n".join(map(_headed, rows))
    return _headed(find(query))


def find(query: str) -> Code:
    """Return the code with this number or slug. Raises `UsageFailed` if there is none."""
    names = _names()
    row = names.get(_normal(query))
    if row is None:
        normal = _normal(query)
        family = [name for name in names if not normal.startswith("NKI") or name[:5] == normal[:5]]
        raise UsageFailed([_unknown(query, nearest(normal, family), names)])
    return row


def _names() -> dict[str, Code]:
    """Return all codes, by number and by slug."""
    rows = diagnostics.codes().values()
    return {row.number: row for row in rows} | {row.slug: row for row in rows}


def _normal(query: str) -> str:
    """Normalise `0501`, `501` and `nki0501` to `NKI0501`, and slugs to lower case with dashes."""
    digits = query.strip().upper().removeprefix("NKI")
    if digits.isascii() and digits.isdigit():
        return f"NKI{digits:0>4}"
    return query.strip().lower().replace("_", "-")


def _unknown(query: str, near: str | None, names: dict[str, Code]) -> diagnostics.Diagnostic:
    advice = f"did you mean `{near}` ({title(names[near])})? " if near else ""
    return diagnostics.make(
        "unknown-code",
        f"there is no diagnostic code `{query}`",
        help=f"{advice}`--explain all` prints every page",
    )


def _headed(code: Code) -> str:
    body = _text(code).partition("\n")[2]
    return f"# {code.number} {code.slug}: {title(code)}\n{body}"


def _text(code: Code) -> str:
    return (FOLDER / f"{code.number}-{code.slug}.md").read_text(encoding="utf-8")


# --------------------------------------------------------------------------------------------------

# Reported only on request: good kernels have reasons for these.
OFF_BY_DEFAULT = frozenset({"float32-matmul", "small-dma-rows"})
# Errors by default: the caller would take old contents for results, or the run cannot succeed.
ERRORS_BY_DEFAULT = frozenset(
    {"output-not-written", "output-partly-written", "read-never-written", "unset-register"}
)
# Reported once per message, with the other lines in a note.
MERGED = frozenset({"deprecated"})
MAX_OTHER_LINES = 8  # maximum number of other lines
SPEED_FAMILY = "06"  # the family of the codes in OFF_BY_DEFAULT

_FAMILY = re.compile(r"(?:NKI)?(\d\d)", re.IGNORECASE)
_NUMBER = re.compile(r"(?:NKI)?(\d{4})", re.IGNORECASE)
_IGNORE = re.compile(r"#\s*nkic:\s*ignore\b(?:\[(?P<names>[^\]]*)\])?")


class Wish(Enum):
    """The treatment of a warning."""

    ALLOW = "-A"
    WARN = "-W"
    DENY = "-D"


@dataclass(frozen=True)
class Settings:
    """Wishes by number of a code (`NKI0531`) or family (`05`), and whether -Werror is set."""

    wishes: Mapping[str, Wish] = field(default_factory=dict)
    all_errors: bool = False

    def adding(self, wish: Wish, selector: str) -> Settings:
        """Return the settings with one more wish. Raises `UsageFailed` for a conflict."""
        name = selected(selector, f"{wish.value} {selector}")
        before = self.wishes.get(name, wish)
        if before is not wish:
            text = f"`{before.value} {name}` and `{wish.value} {name}` cannot be used together"
            raise UsageFailed([make("conflicting-options", text, help="leave out one of them")])
        return replace(self, wishes={**self.wishes, name: wish})

    def wish(self, code: Code) -> Wish | None:
        """Return the wish for a code; None if there is none."""
        by_default = Wish.ALLOW if code.slug in OFF_BY_DEFAULT else None
        by_default = Wish.DENY if code.slug in ERRORS_BY_DEFAULT else by_default
        by_family = self.wishes.get(code.number[3:5], by_default)
        return self.wishes.get(code.number, by_family)


DEFAULT = Settings()
Lines = Callable[[], Collection[tuple[str, int]]]


def apply(
    diagnostics: Iterable[Diagnostic],
    settings: Settings,
    files: Mapping[str, SourceFile] | None = None,
    compiled: Lines | None = None,
) -> tuple[Diagnostic, ...]:
    """Return the diagnostics to report, at the chosen levels. The function is idempotent.

    `files` maps the paths in spans to sources, whose comments apply. `compiled` returns the lines
    (path, number) that the program was compiled from: unused ignores on them are reported. Without
    it, none are, because the compilation may not have reached them.
    """
    ignores = [ignore for file in (files or {}).values() for ignore in _ignores(file)]
    retained, used = [], set()
    for diagnostic in diagnostics:
        matching = {ignore for ignore in ignores if _covers(ignore, diagnostic)}
        used |= matching
        retained += [] if matching else [diagnostic]
    if ignores and compiled is not None:
        retained += _unused([ignore for ignore in ignores if ignore not in used], compiled())
    return tuple(
        leveled
        for diagnostic in _once(retained)
        if (leveled := _leveled(diagnostic, settings)) is not None
    )


def judged(
    diagnostics: Iterable[Diagnostic],
    settings: Settings,
    files: Mapping[str, SourceFile],
    failure: type[NkicError],
    compiled: Lines | None = None,
) -> tuple[Diagnostic, ...]:
    """Return the result of `apply`; raises `failure` with it if it contains an error."""
    reported = apply(diagnostics, settings, files, compiled)
    if any(diagnostic.level is Level.ERROR for diagnostic in reported):
        raise failure(reported)
    return reported


def hidden(diagnostics: Iterable[Diagnostic], settings: Settings) -> int:
    """Return the number of warnings omitted because they are off by default."""
    explicit = {*settings.wishes}
    return sum(
        diagnostic.code.slug in OFF_BY_DEFAULT
        and explicit.isdisjoint({diagnostic.code.number, diagnostic.code.number[3:5]})
        for diagnostic in diagnostics
    )


def _once(diagnostics: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
    """Merge diagnostics with equal messages of `MERGED` into the first, with the other lines."""
    groups: dict[tuple[Code, str, Level], list[Diagnostic]] = {}
    for diagnostic in diagnostics:
        if diagnostic.code.slug in MERGED:
            groups.setdefault((diagnostic.code, diagnostic.message, diagnostic.level), []).append(
                diagnostic
            )
    for diagnostic in diagnostics:
        group = groups.get((diagnostic.code, diagnostic.message, diagnostic.level), [diagnostic])
        if group[0] is diagnostic:
            yield diagnostic if len(group) == 1 else _joined(group)


def _joined(group: Sequence[Diagnostic]) -> Diagnostic:
    first, *others = group
    locations = dict.fromkeys(
        _location(diagnostic, first) for diagnostic in others if diagnostic.primary is not None
    )
    shown, omitted = list(locations)[:MAX_OTHER_LINES], len(locations) - MAX_OTHER_LINES
    ending = f" and {omitted} more" if omitted > 0 else ""
    fixes = tuple(fix for diagnostic in group for fix in diagnostic.fixes)
    notes = (*first.notes, f"also in {', '.join(shown)}{ending}") if shown else first.notes
    return replace(first, fixes=fixes, notes=notes)


def _location(diagnostic: Diagnostic, first: Diagnostic) -> str:
    """Return `line 12`, with the file if it differs."""
    assert diagnostic.primary is not None
    span = diagnostic.primary.span
    same_file = first.primary is not None and first.primary.span.path == span.path
    return f"line {span.line}" if same_file else f"{span.path}:{span.line}"


def _leveled(diagnostic: Diagnostic, settings: Settings) -> Diagnostic | None:
    if diagnostic.level is Level.ERROR:
        return diagnostic
    wish = settings.wish(diagnostic.code)
    if wish is Wish.ALLOW:
        return None
    if wish is Wish.WARN:
        return replace(diagnostic, level=Level.WARNING)
    if wish is Wish.DENY:
        return _denied(diagnostic, settings)
    is_warning = diagnostic.level is Level.WARNING
    return _denied(diagnostic, settings) if settings.all_errors and is_warning else diagnostic


def _denied(diagnostic: Diagnostic, settings: Settings) -> Diagnostic:
    number = diagnostic.code.number
    explicit = number in settings.wishes or number[3:5] in settings.wishes
    option = f"-D {number}" if explicit else "-Werror"
    note = f"a {diagnostic.level.value}, which `{option}` makes an error"
    if not explicit and diagnostic.code.slug in ERRORS_BY_DEFAULT:
        note = f"if it is intended, `-W {number}` makes it a warning"
    return replace(diagnostic, level=Level.ERROR, notes=(*diagnostic.notes, note))


# ---- words ---------------------------------------------------------------------------------------


def selected(selector: str, origin: str) -> str:
    """Return the code's number or the family's two digits for `selector`.

    Raises `UsageFailed`, with the nearest name, if there is none; `origin` describes the option.
    """
    family = _FAMILY.fullmatch(selector)
    families = {row.number[3:5] for row in codes().values()}
    if family is not None and family[1] in families:
        return family[1]
    code = _code(selector)
    if code is None:
        hint = f"families are {', '.join(sorted(families))}; `--print codes` lists the codes"
        text = f"{origin}: there is no code or family `{selector}`"
        raise UsageFailed([make("unknown-code", text, help=_near(selector) or hint)])
    return code.number


def _code(selector: str) -> Code | None:
    number = _NUMBER.fullmatch(selector)
    if number is not None:
        canonical = f"NKI{number[1]}"
        return next((row for row in codes().values() if row.number == canonical), None)
    return codes().get(selector.lower())


def _near(selector: str) -> str:
    near = nearest(selector.lower(), codes())
    return f"did you mean `{near}`?" if near else ""


# ---- comments ------------------------------------------------------------------------------------


class _Ignore(NamedTuple):
    """One code in a comment; `line` is the line to which the comment applies."""

    span: Span
    name: str
    code: Code | None
    line: int


def _ignores(file: SourceFile) -> Iterator[_Ignore]:
    if "nkic:" not in file.text:
        return
    for number, text in enumerate(file.lines, 1):
        comment = _IGNORE.search(text)
        if comment is None:
            continue
        alone = not text[: comment.start()].strip()
        about = _next_code(file.lines, number) if alone else number
        yield from _ignores_in(file.path, number, about, comment)


def _ignores_in(path: str, number: int, about: int, comment: re.Match[str]) -> Iterator[_Ignore]:
    """Yield the codes of one comment; a comment without any gives one without a name."""
    if not (comment["names"] or "").strip():
        span = Span(path, number, comment.start() + 1, number, comment.end() + 1)
        yield _Ignore(span, "", None, about)
        return
    for name in re.finditer(r"[^,\s]+", comment["names"]):
        start = comment.start("names") + name.start() + 1
        span = Span(path, number, start, number, start + len(name[0]))
        yield _Ignore(span, name[0], _code(name[0]), about)


def _next_code(lines: Sequence[str], number: int) -> int:
    """Return the first line of code below line `number`."""
    below = enumerate(lines[number:], number + 1)
    return next((n for n, text in below if text.strip() and text.lstrip()[0] != "#"), number)


def _covers(ignore: _Ignore, diagnostic: Diagnostic) -> bool:
    if diagnostic.level is Level.ERROR or diagnostic.primary is None:
        return False
    span = diagnostic.primary.span
    inside = span.line <= ignore.line <= max(span.line, span.end_line)
    return ignore.code == diagnostic.code and ignore.span.path == span.path and inside


def _unused(ignores: Iterable[_Ignore], lines: Collection[tuple[str, int]]) -> Iterator[Diagnostic]:
    for ignore in ignores:
        if ignore.code is None:
            yield _unknown_ignore(ignore)
        elif (ignore.span.path, ignore.line) in lines:
            number, slug = ignore.code.number, ignore.code.slug
            text = f"line {ignore.line} gives no warning {number} ({slug}) to ignore"
            yield _report(ignore, text, "remove the comment, or this code from it")


def _unknown_ignore(ignore: _Ignore) -> Diagnostic:
    if not ignore.name:
        return _report(
            ignore, "the comment names no code to ignore", "write # nkic: ignore[CODE] reason"
        )
    help = _near(ignore.name) or "`--print codes` lists them"
    return _report(ignore, f"there is no code `{ignore.name}` to ignore", help)


def _report(ignore: _Ignore, text: str, help: str) -> Diagnostic:
    return make("unused-ignore", text, ignore.span, help=help, level=Level.WARNING)
