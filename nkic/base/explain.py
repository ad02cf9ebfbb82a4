"""The pages behind `--explain`: one per diagnostic code, in explain/ beside this file.

A page's name is its code's number and slug (`NKI0501-sbuf-overflow.md`), its first line the title.
"""

from __future__ import annotations

from pathlib import Path

from nkic.base import diagnostics
from nkic.base.diagnostics import Code, UsageFailed
from nkic.base.suggest import nearest

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
