"""Every help line is a claim: follow it, compile again, and the error is gone.

The examples are the kernels under tests/files and the wrong examples of the explain pages. What the
rules of tests/advice/follow.py can follow is followed; then the diagnostic must not be there any
more, and the advice on what comes next must not lead back to it. For an explain page, its right
example is what a person made of the advice: it contains the code that the advice shows.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path

import pytest

import nkic
from nkic.base.diagnostics import Diagnostic
from tests.advice.follow import Source, follow
from tests.harness import trees
from tests.harness.directives import Case, read_case
from tests.harness.kernels import compile_text, run_kernel
from tests.test_explain_pages import SHOWN, example, slug_of
from tests.test_files import KERNELS, name

STEPS = 4  # of advice followed one after the other


def of_file(case: Case, source: Source) -> tuple[Diagnostic, ...]:
    """Return what is said about a kernel of tests/files."""
    return run_kernel(Case(case.path, source.text, {**case.words, **source.options}))[1]


def source_of(case: Case) -> Source:
    return Source(case.text, case.words)


@cache
def unchanged(path: Path) -> tuple[Diagnostic, ...]:
    """Return what is said about a kernel as it is in its file."""
    case = read_case(path)
    return of_file(case, source_of(case))


def of_page(warn: str, source: Source) -> tuple[Diagnostic, ...]:
    """Return what is said about the example of a page."""
    text = source.text
    for word, value in source.options.items():
        text = re.sub(rf"(?m)^# {word} = .*\n", "", text)
        text = text.replace("# /// nkic\n", f'# /// nkic\n# {word} = "{value}"\n', 1)
    return compile_text(text, warn=warn)


def key(one: Diagnostic) -> tuple[str, str]:
    return one.code.slug, one.message


def problems(
    source: Source, compiled: Callable[[Source], Said], first: Sequence[Diagnostic]
) -> Iterator[str]:
    """Yield a line for each advice in `first`, which is said about `source`, that does not help."""
    before = Counter(map(key, first))
    for diagnostic in first:
        if (changed := follow(source, diagnostic)) is None:
            continue
        seen = set(before) - {key(diagnostic)}
        for step in range(STEPS):
            after = compiled(changed)
            elsewhere = diagnostic.code.slug == "deprecated"  # reported once, at the first use
            count = Counter(map(key, after))[key(diagnostic)]
            if count >= before[key(diagnostic)] and not elsewhere:
                told = "does not help" if not step else f"leads back after {step} steps"
                yield f"{shown(diagnostic)}: {told}\n{changed.text}"
                break
            if any(one.code.number.startswith("NKI01") for one in after):
                yield f"{shown(diagnostic)}: makes a syntax error\n{changed.text}"
                break
            new = next((one for one in after if key(one) not in seen), None)
            again = follow(changed, new) if new is not None else None
            if again is None:
                break
            changed = again


def shown(one: Diagnostic) -> str:
    at = one.primary.span.line if one.primary else 0
    return f"line {at}: {one.code.slug}: {one.message} => {one.help}"


Said = tuple[Diagnostic, ...]


SPOKEN = [path for path in KERNELS if read_case(path).expected]  # the others get no diagnostics


@pytest.mark.parametrize("path", SPOKEN, ids=name)
def test_the_advice_in_a_file(path: Path) -> None:
    case = read_case(path)
    found = problems(source_of(case), partial(of_file, case), unchanged(path))
    assert list(found) == []


# What advice shows that is not only a word to replace: names of NKI, and named arguments.
SHOWN_CODE = re.compile(r"\b(?:nl|nisa|ncc)\.\w+|\b[a-z_]\w*=(?=\w)")


@pytest.mark.parametrize("page", SHOWN, ids=lambda page: page.stem)
def test_the_right_example_does_what_the_advice_says(page: Path) -> None:
    """All the code of one alternative of the advice is in it; an alternative may have none."""
    text = page.read_text("utf-8")
    right = example(text, "## Right")
    for one in compile_text(example(text, "## Wrong"), warn=slug_of(page)):
        alternatives = re.split(r"[,;]? or |; ", one.help)
        shown_code = [SHOWN_CODE.findall(alternative) for alternative in alternatives]
        assert any(all(code in right for code in codes) for codes in shown_code), one.help


@pytest.mark.parametrize("page", SHOWN, ids=lambda page: page.stem)
def test_the_advice_of_a_page(page: Path) -> None:
    source = Source(example(page.read_text("utf-8"), "## Wrong"))
    said = partial(of_page, slug_of(page))
    assert list(problems(source, said, said(source))) == []


def test_most_advice_that_shows_code_is_followed() -> None:
    """Of the help lines in the examples that can be applied without judgement, most are."""
    found = ((source_of(read_case(path)), unchanged(path)) for path in SPOKEN)
    assert sum(follow(source, one) is not None for source, said in found for one in said) >= 130


def texts() -> Iterator[tuple[str, str]]:
    """Yield the strings of the package that are not docstrings, and the explain pages."""
    package = Path(nkic.__file__).parent
    for path in sorted(package.rglob("*.py")):
        nodes = trees.nodes(path)
        prose = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and id(node) not in prose:
                yield path.name, text
    for path in sorted((package / "base" / "explain").iterdir()):
        yield path.name, path.read_text("utf-8")


def test_messages_name_nothing_that_an_installed_package_lacks() -> None:
    """No page of docs/, which is not in the wheel, and no extra of a package of this name."""
    found = list(texts())
    assert len(found) > 5_000
    assert [row for row in found if re.search(r"docs/|nkic\[[a-z]", row[1])] == []
