"""Migrations from Beta 1 by source text alone, without evaluation."""

from __future__ import annotations

import operator
from random import Random

import pytest

from nkic.base.diagnostics import LimitHit
from nkic.base.profiles import Profile
from nkic.base.source import SourceFile
from nkic.migrate.beta1.indices import number
from nkic.migrate.facts import Facts
from nkic.migrate.stage import Migrated, migrate

HEAD = "import neuronxcc.nki.language as nl\n\n\ndef f(t, u, n, k):\n"


def migrated(body: str) -> Migrated:
    text = HEAD + "".join(f"    {line}\n" for line in body.split("; "))
    return migrate(SourceFile("k.py", text), Facts(), Profile.BETA1, Profile.NKI_0_7)


def body_of(text: str) -> str:
    return "; ".join(line.strip() for line in text.splitlines()[4:])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("i = nl.arange(8)[:, None]; j = nl.arange(n)[None, :]; g(t[i, j])", "g(t[0:8, 0:n])"),
        ("i, j = nl.mgrid[0:8, 2:n]; g(t[i, j + k])", "g(t[0:8, nl.ds(k + 2, n - 2)])"),
        ("i = nl.mgrid[0:8, 0:4]; g(t[k * 8 + i.p, i.x])", "g(t[nl.ds(k * 8, 8), 0:4])"),
        ("i = nl.arange(8)[:, None]; g(t[i, 3])", "g(t[0:8, 3:4])"),
        ("i = nl.arange(8)[:, None]; g(t[k, i, 3])", "g(t[k, 0:8, 3:4])"),
        ("i = nl.arange(4)[None, :]; g(t[0, 2 * i + 1])", "g(t[0:1, 1:8:2])"),
        ("i = nl.arange(4)[None, :]; g(t[0, n * i])", "g(t[0:1, 0:n * 3 + 1:n])"),
        ("i = nl.arange(8)[:, None]; j = i + 8; g(t[j, 0])", "g(t[8:16, 0:1])"),
        ("i = nl.arange(8); g(t[i[:, None], 3])", "g(t[0:8, 3:4])"),
        ("i = nl.arange(0, 16, 2)[:, None]; g(t[i, 3])", "g(t[0:15:2, 3:4])"),
        ("i = nl.arange(8)[:, None]; g(t[4 * i // 4, k % 4])", "g(t[0:8, k % 4:k % 4 + 1])"),
        ("i = nl.arange(8)[None, :]; g(t[0, k - n + i + n])", "g(t[0:1, k:k + 8])"),
        ("i = nl.arange(n - k)[:, None]; g(t[k + i, 0])", "g(t[k:n, 0:1])"),
        ("i = nl.arange(8)[:, None]; g(t[k * \\\n        n + i, 0])", "g(t[nl.ds(k * n, 8), 0:1])"),
    ],
)
def test_indices_become_slices(old: str, new: str) -> None:
    made = migrated(old)
    assert body_of(made.text) == new
    assert made.left == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "i = nl.arange(8)[:, None]; nl.store(t[k + i, 0], value=3, mask=k + i < n)",
            "nl.store(t[k:k + min(8, n - k), 0:1], value=3)",
        ),
        (
            "i = nl.arange(8)[:, None]; nl.store(t[i, 0], value=3, mask=(n >= i) & (i < k))",
            "nl.store(t[0:min(min(8, n + 1), min(8, k)), 0:1], value=3)",
        ),
        (
            "i = nl.arange(8)[:, None]; j = nl.arange(4, 12)[:, None]; "
            "nl.store(t[j, 0], 3, mask=i < n)",
            "nl.store(t[4:min(8, n) + 4, 0:1], 3)",
        ),
    ],
)
def test_masks_become_extents(old: str, new: str) -> None:
    assert body_of(migrated(old).text) == new


@pytest.mark.parametrize(
    ("old", "why"),
    [
        ("i = nl.arange(8)[:, None]\n    if n: i = 2 * i\n    g(t[i, 0])", "is not a sum"),
        ("k = k + 1; i = k + nl.arange(8)[:, None]; k = 3; g(t[i, 0])", "is not a sum"),
        ("i = nl.arange(8)[:, None]; g(t[i, :])", "slices and index expressions"),
        ("i = nl.arange(8)[:, None]; g(t[i])", "more dimensions than the index"),
        ("i, j = nl.mgrid[0:8, 0:4]; g(t[i, 5 * i + j])", "two axes are added"),
        ("i = nl.arange(8)[None, :]; g(t[0, 7 - i])", "runs backwards"),
        ("i, j = nl.mgrid[0:8, 0:4]; nl.store(t[i, j], 3, mask=i < j)", "is not a bound"),
        ("i, j = nl.mgrid[0:8, 0:4]; x = nl.load(t[j, i], mask=4 * i + j < n)", "is not a bound"),
        ("i = nl.arange(8)[:, None]; j = nl.arange(n)[:, None]; g(t[i + j, 0])", "is not a sum"),
        (
            "i = nl.arange(8)[:, None]; nl.store(t[i, 0], 3, mask=(i < n) | (i < 2))",
            "is not a bound",
        ),
    ],
)
def test_what_is_not_sure_stays(old: str, why: str) -> None:
    made = migrated(old)
    assert "nl.arange" in made.text or "nl.mgrid" in made.text
    assert any(why in one.message for one in made.left), made.left


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("g(b[k])", "g(b[:, k])"),
        ("g(b[k, ...])", "g(b[:, k, ...])"),
        ("g(b[k, 0:8])", "g(b[0:8, k])"),
        ("g(b[k, 0:8, 3])", "g(b[0:8, k, 3])"),
        ("i = nl.arange(8)[:, None]; g(b[k, i, 3])", "g(b[0:8, k, 3:4])"),
    ],
)
def test_block_dimensions_come_behind(old: str, new: str) -> None:
    made = migrated(f"b = nl.ndarray((n, nl.par_dim(8), 4), dtype=nl.float32); {old}")
    head = "b = nl.ndarray((nl.par_dim(8), n, 4), dtype=nl.float32); "
    assert body_of(made.text) == head + new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("i = nl.arange(8)[:, None]; i = nl.arange(4)[:, None]; g(t[i, 0])", "g(t[0:4, 0:1])"),
        ("i = nl.arange(8)[:, None]; i = k + i; g(t[i, 0])", "g(t[k:k + 8, 0:1])"),
        ("i = nl.mgrid[0:8, 0:4, 0:2]; g(t[i.p, i.x, i.y])", "g(t[0:8, 0:4, 0:2])"),
        (
            "i, j = nl.mgrid[0:8, 0:4]; u = nl.zeros(n); g(u[j, i])",
            "g(u[0:4, 0:8].reshape((4, 8)).permute((1, 0)))",
        ),
        (
            "i = nl.arange(8)[:, None]; nl.store(t[i, 0], 3, mask=i > n)",
            "nl.store(t[max(0, n + 1):8, 0:1], 3)",
        ),
        (
            "i = nl.arange(8)[:, None]; nl.store(t[i, 0], 3, mask=k < n)",
            "if k < n:\n        nl.store(t[0:8, 0:1], 3)",
        ),
    ],
)
def test_what_slices_do_not_say_is_a_pattern(old: str, new: str) -> None:
    assert new in migrated(old).text


@pytest.mark.parametrize("seed", range(10))
def test_the_text_of_a_number_has_its_value(seed: int) -> None:
    random, names = Random(seed), {"a": 7, "b": -3, "n": 512}
    texts = ("a", "b + 1", "n - a", "2 * n", "-a", "-b * a", "3", "0", "1", "-(a - 2)")
    known = [(number(text), eval(text, {}, names)) for text in texts]
    for _ in range(30):
        (x, a), (y, b) = random.choice(known), random.choice(known)
        apply = random.choice((operator.add, operator.sub, operator.mul))
        known.append((apply(x, y), apply(a, b)))
    for value, expected in known:
        assert eval(str(value), {}, names) == expected, value


NESTED = {
    " + ".join(["1"] * 1500): 2,
    f"{'g(' * 190}1{')' * 190}": 2,
    f"{'(-' * 400}1{')' * 400}": 1,
}


@pytest.mark.parametrize(("expression", "line"), NESTED.items(), ids=("sum", "calls", "signs"))
def test_what_is_nested_too_deeply_is_refused_where_it_stands(expression: str, line: int) -> None:
    with pytest.raises(LimitHit) as failed:
        migrate(
            SourceFile("k.py", f"x = 1\ny = {expression}\n"),
            Facts(),
            Profile.BETA1,
            Profile.NKI_0_7,
        )
    (error,) = failed.value.diagnostics
    assert error.code.slug == "nesting-too-deep"
    assert error.primary is not None
    assert error.primary.span.line == line
