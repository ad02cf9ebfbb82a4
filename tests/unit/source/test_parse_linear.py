"""Parse and resolve take work in proportion to the text, whatever construct grows."""

from __future__ import annotations

import gc
import sys
import unicodedata
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from nkic.base.diagnostics import CompileFailed, Reporter, code
from nkic.base.source import SourceFile
from nkic.compiler.loader import MAX_BYTES
from nkic.source import parser, resolve, subset
from nkic.source.bind import MAX_SHARED
from nkic.source.bindings import Resolved
from nkic.source.parse import parse
from nkic.source.parser import MAX_NAME
from nkic.source.resolve import MAX_GUESSES
from nkic.source.resolve import resolve as resolve_resolve
from nkic.specialise import PROVIDED
from tests.harness.growth import in_kernel, texts, work

TEXTS = texts()
SIZE = 8  # repetitions; each is also tried with twice and four times as many
# A long chain of each of these, at a size for which a quadratic algorithm would take minutes.
LONG = [
    "attributes",
    "alternating operators",
    "elif",
    "elif that bind",
    "functions in a block",
    "imported names",
    "walruses",
    "fields with comments",
    "one f-string, then strings",
    "keywords, then stars",
    "a value made of others",
    "uses of a name bound often",
    "star imports",
]
LENGTH = 2_000


@pytest.fixture(autouse=True)
def forget() -> None:
    """Keep huge trees out of the caches."""
    parse.cache_clear()
    resolve.of_definition.cache_clear()
    resolve.of_values.cache_clear()
    subset.violations.cache_clear()


def resolved(text: str) -> Resolved:
    return resolve_resolve(
        SourceFile("k.py", text),
        "k" if "def k(" in text else "k0",
        load=lambda request, importer: None,
        parse=parse.__wrapped__,
        provided=PROVIDED,
        report=Reporter(10**9),
    )


def taken(name: str, size: int) -> int:
    text = TEXTS[name](size)
    forget.__wrapped__()  # type: ignore[attr-defined]
    return work(lambda: resolved(text))


@pytest.mark.parametrize("name", TEXTS)
def test_twice_the_text_is_twice_the_work(name: str) -> None:
    """The second doubling adds about twice the work of the first; a quadratic one adds four
    times.
    """
    resolved(TEXTS[name](3))  # work that is done once per process
    size = 25 if name == "brackets up to the limit" else SIZE  # a group for every 25
    once, twice, four = (taken(name, size * factor) for factor in (1, 2, 4))
    assert four - twice <= 2.25 * max(twice - once, 0) + 2000


@pytest.mark.parametrize("name", LONG)
def test_long_constructs_are_resolved(name: str) -> None:
    gc.disable()
    try:
        found = resolved(TEXTS[name](LENGTH))
    finally:
        gc.enable()
    assert found.kernel.name == "k"


def test_the_measure_sees_quadratic_work() -> None:
    def pairs(n: int) -> int:
        return sum(a < b for a in range(n) for b in range(n))

    once, twice, four = (work(partial(pairs, n)) for n in (30, 60, 120))
    assert four - twice > 2.25 * (twice - once) + 2000


def test_no_recursion_follows_the_length_of_the_text() -> None:
    limit = sys.getrecursionlimit()
    depth = len(__import__("inspect").stack())
    sys.setrecursionlimit(depth + 150)
    try:
        for name in LONG:
            forget.__wrapped__()  # type: ignore[attr-defined]
            assert resolved(TEXTS[name](200)).kernel.name == "k"
    finally:
        sys.setrecursionlimit(limit)


# ---- limits ----------------------------------------------------------------------------------


def refused(text: str) -> tuple[str, tuple[int, ...], str]:
    with pytest.raises(CompileFailed) as raised:
        resolved(text)
    (found,) = raised.value.diagnostics
    assert found.primary is not None
    return found.code.slug, found.primary.span[1:3], found.message


def test_the_table_in_the_docs_has_the_limits() -> None:
    page = (Path(__file__).parents[3] / "docs" / "language.md").read_text("utf-8")
    rows = [line.split("|")[2:4] for line in page.split("\n") if "| NKI" in line]
    told = {(limit.strip(), code.strip()) for limit, code in rows}
    wanted = {
        (f"{MAX_BYTES >> 20} MiB", "cannot-read"),
        (f"{parser.MAX_BRACKETS:,}", "too-many-levels"),
        (f"{parser.MAX_BLOCKS:,}", "too-many-levels"),
        (f"{parser.MAX_FIELDS:,}", "too-many-levels"),
        (f"{parser.MAX_NESTING:,}", "too-many-levels"),
        (f"{sys.get_int_max_str_digits():,}", "bad-number"),
        (f"{MAX_NAME:,}", "too-large"),
        (f"{MAX_SHARED:,}", "too-large"),
    }
    assert {(limit, code(slug).number) for limit, slug in wanted} <= told


def test_a_long_name_outside_ascii_is_refused_where_it_stands() -> None:
    """Normalising the name takes time quadratic in its length."""
    name = "a" + "\u0301\u0327" * 200_000
    assert refused(f"x = 1 + {name}") == (
        "too-large",
        (1, 9),
        f"this name has 400001 characters; a name that is not ASCII has at most {MAX_NAME}",
    )


def test_a_name_at_the_limit_is_taken() -> None:
    name = "é" * MAX_NAME
    tree = parse.__wrapped__(SourceFile("k.py", unicodedata.normalize("NFD", "é") + f"\n{name}"))
    found: list[Any] = list(tree.body)
    assert [statement.value.id for statement in found] == ["é", name]


def test_values_with_many_names_are_changed_only_so_often() -> None:
    names = MAX_SHARED // 1000
    text = "x0 = []\n" + "".join(f"x{i + 1} = x{i}\n" for i in range(names - 1))
    assert resolved(text + "x0.append(1)\n" * 1000 + in_kernel("b = x0")).kernel.name == "k"
    slug, place, message = refused(text + "x0.append(1)\n" * 1001 + in_kernel("b = x0"))
    assert (slug, place) == ("too-large", (names + 1001, 1))
    assert "more than 1000000 changes" in message


def test_only_the_first_unknown_names_get_a_guess() -> None:
    lines = "\n".join(f"b{i} = known{i}_" for i in range(2 * MAX_GUESSES))
    before = "".join(f"known{i} = {i}\n" for i in range(2 * MAX_GUESSES))
    report = Reporter()
    text = in_kernel(lines, before)
    resolve_resolve(
        SourceFile("k.py", text),
        "k",
        load=lambda request, importer: None,
        parse=parse.__wrapped__,
        provided=PROVIDED,
        report=report,
    )
    report.settle()
    assert [bool(one.help) for one in report.all] == [True] * MAX_GUESSES + [False] * MAX_GUESSES
