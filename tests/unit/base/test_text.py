"""Test escaped text, widths, numbers, the ASCII fallback, and similar names."""

import io
import pickle
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nkic.base import text
from nkic.base.diagnostics import Guess, did_you_mean, nearest, respelt
from nkic.base.source import SourceFile, Span
from nkic.base.text import whole_number
from tests.test_layers import FILES, ROOT


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("arr[i] [nl.sbuf]", "arr[i] [nl.sbuf]"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("\x9b31m", r"\x9b31m"),
        ("a\tb\nc\r", r"a\tb\nc\r"),
        ("\u202eevil", r"\u202eevil"),
        ("line\u2028end", r"line\u2028end"),
        ("\udcff", r"\udcff"),
        ("é 漢 \U0001f600", "é 漢 \U0001f600"),
    ],
)
def test_clean_escapes_what_a_terminal_would_obey(raw: str, shown: str) -> None:
    assert text.clean(raw) == shown


def test_clean_keeps_what_it_is_told_to() -> None:
    assert text.clean("a\n\x07b", keep="\n") == "a\n\\x07b"


@settings(max_examples=200)
@given(st.text())
def test_cleaned_text_is_one_line_that_utf8_can_hold(raw: str) -> None:
    shown = text.clean(raw)
    assert "\x1b" not in shown
    assert len(shown.splitlines()) <= 1
    assert shown.encode("utf-8").decode("utf-8") == shown
    assert text.clean(shown) == shown


@pytest.mark.parametrize(
    ("raw", "cells"),
    [("abc", 3), ("漢字", 4), ("e\u0301", 1), ("é", 1), ("\U0001f600", 2), ("", 0)],
)
def test_width_counts_terminal_cells(raw: str, cells: int) -> None:
    assert text.width(raw) == cells


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0 B"), (512, "512 B"), (1023, "1,023 B"), (1024, "1.0 KiB"), (25165824, "24.0 MiB")],
)
def test_size(count: int, shown: str) -> None:
    assert text.size(count) == shown


MIB = 1 << 20


@pytest.mark.parametrize(
    ("used", "limit", "shown"),
    [
        (9646899, 24 * MIB, "9.2/24.0 MiB (38%)"),
        (0, 24 * MIB, "0.0/24.0 MiB (0%)"),
        (24 * MIB, 24 * MIB, "24.0/24.0 MiB (100%)"),
        (24 * MIB + 1, 24 * MIB, "25,165,825/25,165,824 B (101%)"),
        (24 * MIB - 1, 24 * MIB, "25,165,823/25,165,824 B (99%)"),
        (48 * MIB, 24 * MIB, "48.0/24.0 MiB (200%)"),
        (300, 256, "300/256 B (117%)"),
        (7, 0, "7/0 B"),
    ],
)
def test_share_never_rounds_a_difference_away(used: int, limit: int, shown: str) -> None:
    assert text.share(used, limit) == shown


def test_plural_and_grouping() -> None:
    assert text.plural(1, "error") == "1 error"
    assert text.plural(0, "error") == "0 errors"
    assert text.plural(1204, "entry", "entries") == "1,204 entries"
    assert text.grouped(41220) == "41,220"


def test_ascii_stream_takes_any_text() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii", errors=text.FALLBACK)
    stream.write("2×3 µs … ✓ é ─█")
    stream.flush()
    assert raw.getvalue() == rb"2x3 us ... + \xe9 -#"


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("expp", "exp"),
        ("EXP", "exp"),
        ("copy_tensor", "tensor_copy"),
        ("tensor_cpoy", "tensor_copy"),
        ("nc_matmull", "nc_matmul"),
        ("softmax", None),
        ("exp", None),
    ],
)
def test_nearest(word: str, meant: str | None) -> None:
    assert nearest(word, ["exp", "log", "tensor_copy", "nc_matmul"]) == meant


def test_equally_near_names_are_chosen_by_the_alphabet() -> None:
    assert nearest("bbt", ["bat", "bit", "abt"]) == "abt"
    assert nearest("bbt", ["bit", "abt", "bat"]) == "abt"


def test_one_letter_is_no_misspelling_of_another() -> None:
    assert nearest("n", ["a", "b"]) is None
    assert nearest("A", ["a", "b"]) == "a"


def test_an_exact_name_is_not_its_own_correction() -> None:
    assert nearest("exp", ["exp"]) is None


def test_did_you_mean_is_empty_when_nothing_is_near() -> None:
    assert did_you_mean("--ouput", ["--output", "--emit"]) == "did you mean `--output`?"
    assert did_you_mean("--frobnicate", ["--output", "--emit"]) == ""


@pytest.mark.parametrize(
    "text", ["", "-1", "+1", "1_0", " 1", "1.0", "\u00b2", "\u0663", "9" * 5000]
)
def test_what_is_no_whole_number(text: str) -> None:
    assert whole_number(text) is None


def test_whole_numbers_have_a_limit() -> None:
    assert whole_number("0" * 5000 + "12", 12) == 12
    assert whole_number("13", 12) is None
    assert whole_number("0") == 0


# Files that ask of what the compiler itself has read or made whether it is a number.
ASK = {
    *("base/text.py", "base/levels.py", "specialise/inline.py", "serve/app.py"),
    *("migrate/edits.py", "migrate/beta1/indices.py", "migrate/beta1/blocks.py"),
    "cli/nkic/prints.py",
}


def test_numbers_are_read_in_one_place() -> None:
    """`isdigit` holds for words that `int` refuses."""
    asking = re.compile(r"\.is(digit|decimal|numeric)\(")
    found = {
        str(path.relative_to(ROOT)) for path in FILES if asking.search(path.read_text("utf-8"))
    }
    assert found == ASK


# Files that ask of paths which are their own whether something is there.
LOOK = {
    *("base/files.py", "base/render/__init__.py", "source/parser.py"),
    "pytest_plugin.py",
}


def test_what_is_there_is_asked_in_one_place() -> None:
    """`Path.is_file` raises for some paths that a user can write."""
    looking = re.compile(r"\.(is_file|is_dir|exists)\(\)")
    found = {path for path in FILES if looking.search(path.read_text("utf-8"))}
    assert {str(path.relative_to(ROOT)) for path in found} == LOOK


# ------------------------------------------------------------------------------------------------
# Test suggestions of similar names, and their fixes.

NAMES = ("tensor_copy", "tensor_tensor", "tile_1", "tile_2", "exp", "abs", "Config")


@pytest.mark.parametrize(
    ("word", "name", "sure"),
    [
        ("tensor_cpoy", "tensor_copy", True),  # one swap
        ("copy_tensor", "tensor_copy", True),  # the same parts
        ("config", "Config", True),  # except for case
        ("tensr_coopy", "tensor_copy", False),  # two letters
        ("tile_3", "tile_1", False),  # another digit is another name
        ("exq", "exp", False),  # too short to be certain
    ],
)
def test_what_is_meant_and_how_sure(word: str, name: str, sure: bool) -> None:
    guess = did_you_mean(word, NAMES)
    assert guess == f"did you mean `{name}`?"
    assert isinstance(guess, Guess) and guess.sure is sure


def test_a_deprecated_name_is_suggested_only_if_no_other_is_as_close() -> None:
    names, deprecated = ("axe", "exp", "tensor_old"), {"axe", "tensor_old"}
    assert did_you_mean("axp", names) == "did you mean `axe`?"
    assert did_you_mean("axp", names, deprecated) == "did you mean `exp`?"
    assert did_you_mean("tensor_odl", names, deprecated) == "did you mean `tensor_old`?"


def test_nothing_near() -> None:
    assert did_you_mean("softmax", NAMES) == ""


def test_a_guess_survives_pickling() -> None:
    guess = pickle.loads(pickle.dumps(did_you_mean("tensor_cpoy", NAMES)))
    assert isinstance(guess, Guess) and (guess.word, guess.name) == ("tensor_cpoy", "tensor_copy")


def _fixed(text: str, span: Span) -> str | None:
    source = SourceFile("k.py", text)
    fixes = respelt(did_you_mean("tensor_cpoy", NAMES), source, span)
    if not fixes:
        return None
    (fix,) = fixes
    line = source.line(fix.span.line)
    assert line[fix.span.column - 1 : fix.span.end_column - 1] == "tensor_cpoy"
    return fix.replacement


def test_the_fix_replaces_the_word_alone() -> None:
    assert _fixed("x = nisa.tensor_cpoy(é)", Span("k.py", 1, 5, 1, 21)) == "tensor_copy"


def test_the_word_may_stand_in_a_later_line() -> None:
    assert _fixed("f(\n  a,\n  tensor_cpoy=1)", Span("k.py", 1, 1, 3, 17)) == "tensor_copy"


@pytest.mark.parametrize("text", ["f(tensor_cpoy, tensor_cpoy)", "f(my_tensor_cpoy)", "getattr"])
def test_no_fix_where_the_word_is_not_there_once(text: str) -> None:
    assert _fixed(text, Span("k.py", 1, 1, 1, len(text) + 1)) is None
