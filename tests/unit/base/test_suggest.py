"""Test suggestions of similar names, and their fixes."""

import pickle

import pytest

from nkic.base.diagnostics import Guess, did_you_mean, respelt
from nkic.base.source import SourceFile, Span

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
