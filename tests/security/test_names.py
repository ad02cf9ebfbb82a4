"""No construct of the grammar binds a name that belongs to Python itself."""

import pytest

from tests.harness.metalanguage import body

LINES = """
    NAME = 1
    NAME: int = 1
    NAME, x = 1, 2
    [*NAME] = [1]
    (NAME := 1)
    NAME += 1
    del NAME
    for NAME in [1]: pass
    [1 for NAME in [1]]
    {1: 2 for x, NAME in [(1, 2)]}
    with C() as NAME: pass
    import math as NAME
    from math import pi as NAME
    lambda NAME: 1
    lambda *NAME: 1
    lambda **NAME: 1
    lambda *, NAME: 1
    def NAME(): pass
    class NAME: pass
    def f(NAME): pass
    def f(NAME, /): pass
    def f(*NAME): pass
    def f(**NAME): pass
"""
BLOCKS = [
    "try:\n    1 / 0\nexcept Exception as NAME: pass",
    "match 1:\n    case NAME: pass",
    "match [1]:\n    case [*NAME]: pass",
    "match {}:\n    case {**NAME}: pass",
    "match 1:\n    case int() as NAME: pass",
    "class A:\n    NAME = 1",
    "class A:\n    def NAME(self): pass",
    "def f():\n    global NAME\n    NAME = 1",
    "x = 1\ndef f():\n    nonlocal x\n    [NAME := 1]",
]
HEAD = """
class C:
    def __enter__(self): return 1
    def __exit__(self, *failure): pass
"""
BINDING = [*(line.strip() for line in LINES.strip().splitlines()), *BLOCKS]


@pytest.mark.parametrize("name", ["__builtins__", "__class__", "__import__", "__dict__"])
@pytest.mark.parametrize("code", BINDING)
def test_special_names_are_never_bound(code: str, name: str) -> None:
    assert body(HEAD + code.replace("NAME", name)).slugs == ["hidden-attribute"]


@pytest.mark.parametrize("code", [one for one in BINDING if "del" not in one and "+=" not in one])
def test_the_same_constructs_bind_other_names(code: str) -> None:
    assert "hidden-attribute" not in body(HEAD + code.replace("NAME", "plain")).slugs
