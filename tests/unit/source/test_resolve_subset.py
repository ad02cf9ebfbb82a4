"""Test the kernel subset: every rule rejects its construct in the versions it names, and in no
other.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from nkic.base.profiles import Profile
from nkic.source import subset
from tests.harness.bless import blessing
from tests.harness.metalanguage import HEAD, head, resolved

# One kernel body per rule, with line and column of the error in it.
CASES: dict[str, tuple[str, int, int]] = {
    "async": ("async def f(): pass", 1, 11),
    "await": ("async def f(): await y", 1, 16),
    "yield": ("x = yield 1", 1, 5),
    "global": ("global y", 1, 1),
    "try": ("try:\n    x = 1\nfinally:\n    x = 2", 1, 1),
    "metaclass": ("class A(nl.NKIObject, metaclass=type): pass", 1, 7),
    "type-alias": ("type T = int", 1, 1),
    "raise": ("raise ValueError(y)", 1, 1),
    "nested-def": ("def f(): pass", 1, 5),
    "nested-class": ("class A(nl.NKIObject): pass", 1, 7),
    "lambda": ("f = lambda: 1", 1, 5),
    "comprehension": ("x = [i for i in y]", 1, 5),
    "walrus": ("print(x := 1)", 1, 7),
    "set": ("x = {1, 2}", 1, 5),
    "match": ("match y:\n    case 1: pass", 1, 1),
    "del": ("del y[0]", 1, 1),
    "nonlocal": ("def f():\n    nonlocal y\n    y = 1", 2, 5),
    "loop-else": ("for i in y: pass\nelse: x = 1", 1, 1),
    "import": ("import math", 1, 1),
    "star-argument": ("print(*y)", 1, 1),
    "star-parameter": ("def f(*a): pass", 1, 7),
    "star-value": ("x = [*y]", 1, 5),
    "format-spec": ("x = f'{y:>3}'", 1, 7),
    "dict-key": ("x = {1: 2}", 1, 5),
    "matmul": ("x = y @ y", 1, 5),
    "property": ("class A(nl.NKIObject):\n    @property\n    def p(self): pass", 3, 9),
    "plain-class": ("class A: pass", 1, 7),
    "is": ("x = y is None", 1, 5),
    "is-not": ("x = y is not None", 1, 5),
}
# Other rules that the same example breaks, at another place.
BESIDES = {
    "await": {"async"},
    "nonlocal": {"nested-def"},
    "star-parameter": {"nested-def"},
    "property": {"nested-class"},
}


def test_every_rule_has_a_case() -> None:
    assert CASES.keys() == subset.RULES.keys()


@pytest.mark.parametrize("profile", list(Profile), ids=lambda profile: str(profile.label))
@pytest.mark.parametrize("key", CASES)
def test_rule(key: str, profile: Profile) -> None:
    code, line, column = CASES[key]
    indented = "".join(f"    {part}\n" for part in code.split("\n"))
    _, said = resolved(f"{head(profile)}def kernel(y):\n{indented}", "kernel", profile=profile)
    expected = {k for k in (key, *BESIDES.get(key, ())) if profile in subset.RULES[k].refused}
    found = {one.message.split(" cannot be used")[0]: one for one in said}
    assert found.keys() == {subset.RULES[k].words for k in expected}
    if profile in subset.RULES[key].refused:
        one = found[subset.RULES[key].words]
        assert one.code.slug == "not-in-nki"
        assert one.help == subset.RULES[key].advice
        assert one.primary is not None
        assert one.primary.span[1:3] == (line + 3, column + 4)


def test_what_no_version_has_is_said_of_kernel_code() -> None:
    _, said = resolved(f"{HEAD}def kernel():\n    async def f(): pass\n    f()\n", "kernel")
    assert said[0].message == "`async` cannot be used in kernel code"


def test_what_a_later_version_has_names_the_one_without() -> None:
    text = f"{HEAD}def kernel():\n    global x\n"
    _, said = resolved(text, "kernel", profile=Profile.NKI_0_6)
    assert said[0].message == "`global` cannot be used in NKI 0.6"
    assert resolved(text, "kernel", profile=Profile.NKI_0_7)[1] == ()


def test_what_one_version_lacks_names_it() -> None:
    _, said = resolved(
        f"{HEAD}def kernel(x):\n    return x is None\n", "kernel", profile=Profile.NKI_0_3
    )
    assert said[0].message == "`is` cannot be used in NKI 0.3"


@pytest.mark.parametrize(("profile", "count"), [(Profile.NKI_0_3, 1), (Profile.NKI_0_6, 0)])
def test_keyword_only_parameters_of_kernels(profile: Profile, count: int) -> None:
    text = (
        f"{HEAD}@nki.jit\ndef kernel(a, *, b=1): return helper(k=1)\ndef helper(*, k): return k\n"
    )
    _, said = resolved(text, profile=profile)
    assert len(said) == count


@pytest.mark.parametrize(("profile", "count"), [(Profile.BETA2, 1), (Profile.NKI_0_3, 0)])
def test_decorated_kernels_inside_kernels(profile: Profile, count: int) -> None:
    text = f"{HEAD}@nki.jit\ndef inner(): pass\n@nki.jit\ndef kernel(): return inner()\n"
    _, said = resolved(text, "kernel", profile=profile)
    assert [one.primary.span.line for one in said if one.primary] == [6] * count


def table() -> str:
    """Return the rules as docs/language.md shows them."""
    last = [subset.SUB_KERNEL, subset.KEYWORD_ONLY, subset.LIST_DEFAULT]
    rules = [*subset.RULES.values(), *last]
    labels = [profile.label for profile in Profile]
    rows = [f"| construct | {' | '.join(labels)} | instead |", "|---" * (len(labels) + 2) + "|"]
    for rule in rules:
        marks = " | ".join("x" if profile in rule.refused else " " for profile in Profile)
        rows.append(f"| {rule.words} | {marks} | {rule.advice} |")
    return "\n".join(rows)


def test_the_documented_table_is_this_one() -> None:
    page = Path(__file__).resolve().parents[3] / "docs" / "language.md"
    before, begin, rest = page.read_text("utf-8").partition("<!-- subset: begin -->\n")
    shown, end, after = rest.partition("\n<!-- subset: end -->")
    assert begin and end
    if blessing():
        page.write_text(before + begin + table() + end + after, "utf-8")
    else:
        assert shown == table(), "run this test with NKIC_BLESS=1"


@pytest.mark.parametrize(
    "code",
    [
        "x = y.__dict__",
        "x = y.__class__.__globals__",
        "x = y.gi_frame",
        "x = y.f_globals",
        "x = y.co_code",
        "class A(nl.NKIObject):\n        def __del__(self): pass",
        "class A(nl.NKIObject):\n        def __getattribute__(self, name): pass",
    ],
)
def test_hidden_attributes(code: str) -> None:
    _, said = resolved(f"{HEAD}def kernel(y):\n    {code}\n", "kernel")
    assert [one.code.slug for one in said] == ["hidden-attribute"]


@pytest.mark.parametrize(
    "code",
    [
        "x = y.__class__.__name__",
        "super().__init__()",
        "object.__setattr__(y, 'a', 1)",
        "x = y._private + y.__mangled",
        (
            "class A(nl.NKIObject):\n        def __call__(self): pass\n"
            "        def __iadd__(self, o): pass"
        ),
    ],
)
def test_attributes_that_are_open(code: str) -> None:
    _, said = resolved(f"{HEAD}def kernel(y):\n    {code}\n", "kernel")
    assert said == ()
