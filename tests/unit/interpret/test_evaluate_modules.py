"""Test modules: names are evaluated when first used, and unused statements never run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.harness.metalanguage import HEAD, run

KERNEL = "@nki.jit\ndef kernel():\n    "


def value(module: str, expression: str, files: Mapping[str, str] | None = None) -> object:
    """Return the result of a kernel in a file with these lines."""
    done = run(f"{HEAD}{module}\n{KERNEL}return {expression}\n", files=files)
    assert done.slugs == [], done.said
    return done.value


def test_only_what_is_used_runs() -> None:
    module = (
        "print('one')\nX = 1 / 0\nimport torch\ntorch.manual_seed(0)\nY = 2\nopen('pwned', 'w')"
    )
    done = run(f"{HEAD}{module}\n{KERNEL}return Y\n")
    assert (done.value, done.printed, done.slugs) == (2, "", [])


def test_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = f"{HEAD}open('pwned', 'w').write('x')\nY = 2\n{KERNEL}return Y\n"
    assert run(text).value == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("module", "expression", "expected"),
    [
        ("A = 1\nB = A + 1", "B", 2),
        ("T = {}\nT['a'] = 1\nT.update(b=2)", "T", {"a": 1, "b": 2}),
        ("L = []\nfor i in range(3):\n    L.append(i)", "L", [0, 1, 2]),
        ("X = 1\nX += 2\nX = X * 10", "X", 30),
        ("X = 1\nY = X + 1\nX = 5", "(Y, X)", (2, 5)),
        ("X = 1\nY = X + 1\nX = 5", "(X, Y)", (5, 2)),
        ("A, (B, *C) = 1, (2, 3, 4)", "(A, B, C)", (1, 2, [3, 4])),
        ("if 1 > 2:\n    X = 1\nelse:\n    X = 2", "X", 2),
        ("if __name__ == '__main__':\n    X = 1\nelse:\n    X = 2", "X", 2),
        ("def f():\n    return LATER\nLATER = 3", "f()", 3),
        ("import math\nX = [math.floor(y / 2) for y in range(4)]", "X", [0, 0, 1, 1]),
        ("class A(nl.NKIObject):\n    n: int = 3\nA.m = 4", "(A().n, A.m)", (3, 4)),
        ("def f(x, y=len('abc')):\n    return x + y", "f(1)", 4),
        ("X: int = 5\nY: str", "X", 5),
        ("max = min", "max(1, 2)", 1),
        ("def sum(x):\n    return 'own'", "(sum([1]), len([1]))", ("own", 1)),
    ],
)
def test_values(module: str, expression: str, expected: object) -> None:
    assert value(module, expression) == expected


def test_initialisers_may_be_host_code() -> None:
    module = """
import os
def _from_environment():
    global seen
    found = None
    for key, text in os.environ.items():
        try:
            found = int(text)
        except ValueError:
            raise
    with_default = found if found is not None else 7
    return with_default
LEVEL = _from_environment()
"""
    assert value(module, "LEVEL") == 7


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ("try:\n    import torch\n    HAS = True\nexcept ImportError:\n    HAS = False", False),
        (
            (
                "try:\n    import torch.nn as nn\nexcept (ImportError, OSError):\n"
                "    nn = None\nHAS = nn"
            ),
            None,
        ),
        ("try:\n    from nki.language import nope as HAS\nexcept ImportError:\n    HAS = 0", 0),
        ("try:\n    from tools import f as HAS\nexcept ImportError:\n    HAS = 0", "made"),
        ("try:\n    from tools import g as HAS\nexcept ImportError:\n    HAS = 0", 0),
        ("from typing import TYPE_CHECKING\nHAS = TYPE_CHECKING\nif HAS:\n    import torch", False),
    ],
)
def test_conditional_imports(module: str, expected: object) -> None:
    assert value(module, "HAS", {"tools.py": "f = 'made'"}) == expected


def test_packages_stars_and_aliases() -> None:
    files = {
        "pkg/__init__.py": "from .inner import shown as alias\nfrom . import tools\nSIZE = 3\n",
        "pkg/inner.py": "from .tools import *\ndef shown(): return starred()\n",
        "pkg/tools.py": "def starred(): return 's'\ndef _hidden(): return 'h'\n",
    }
    module = (
        "import pkg\nimport pkg.tools as t\nfrom pkg import tools, inner as i\n"
        "from pkg.tools import *"
    )
    expression = (
        "pkg.alias(), t._hidden(), pkg.tools.starred(), pkg.SIZE, starred(), i.shown(), tools is t"
    )
    assert value(module, expression, files) == ("s", "h", "s", 3, "s", "s", True)


def test_imports_may_lead_in_circles() -> None:
    files = {
        "a.py": "from b import g\nX = 1\ndef f(n): return n if n > 3 else g(n + 1)\n",
        "b.py": "import a\nY = a.X + 1\ndef g(n): return a.f(n) + Y\n",
    }
    assert value("from a import f", "f(0)", files) == 12


def test_stars_of_provided_modules() -> None:
    assert value("from math import *\nfrom nki.language import *", "(floor(2.5), float32)") == (
        2,
        "float32",
    )


def test_imports_inside_functions() -> None:
    files = {"tools.py": "def f(): return 5\n"}
    code = (
        "import math, tools as t\n    from tools import f as g\n    return math.floor(t.f() / g())"
    )
    assert run(f"{HEAD}{KERNEL}{code}\n", files=files).value == 1


def test_a_module_that_nothing_uses_is_not_even_read() -> None:
    files = {"broken.py": "this is ( no Python"}
    assert run(f"{HEAD}import broken\n{KERNEL}return 1\n", files=files).value == 1


def test_modules_are_fresh_for_every_evaluation() -> None:
    text = f"{HEAD}SEEN = []\n{KERNEL}SEEN.append(1)\n    return len(SEEN)\n"
    assert [run(text).value, run(text).value] == [1, 1]


def failing(module: str, expression: str, files: Mapping[str, str]) -> tuple[str, str, int]:
    done = run(f"{HEAD}{module}\n{KERNEL}return {expression}\n", files=files)
    one = done.said[0]
    assert one.primary is not None
    return one.code.slug, one.message, one.primary.span.line


@pytest.mark.parametrize(
    ("module", "expression", "slug", "message", "line"),
    [
        (
            "import torch",
            "torch.zeros(3)",
            "host-module",
            "`torch` belongs to the module `torch`",
            6,
        ),
        ("import torch as t", "isinstance(1, t.Tensor)", "host-module", "`torch` belongs", 6),
        ("from torch import nn", "nn(1)", "host-module", "`nn` belongs to the module `torch`", 6),
        ("from torch import nn", "1 + nn", "host-module", "`nn` belongs", 6),
        ("import a.b.c", "a.b.c.f()", "host-module", "there is no source for the module `a`", 6),
        ("def f():\n    return X\nX = f()", "X", "circular-definition", "`X` is used", 4),
        ("X = 1 / 0", "X", "wrong-value", "division by zero", 3),
        ("from tools import g", "g()", "import-failed", "`tools.py` has no `g` to import", 3),
        ("import tools", "tools.ff()", "unknown-attribute", "`tools.py` has no `ff`", 6),
        (
            "from .none import g",
            "g()",
            "import-failed",
            "there is no file for the module `.none`",
            6,
        ),
        (
            "from nki.language import arange",
            "arange(3)",
            "removed-name",
            "NKI has no `nki.language.arange`",
            3,
        ),
    ],
)
def test_errors(module: str, expression: str, slug: str, message: str, line: int) -> None:
    found = failing(module, expression, {"tools.py": "def f(): return 1\n"})
    assert found[0] == slug
    assert found[1].startswith(message)
    assert found[2] == line


def test_an_error_in_an_initialiser_says_who_needed_it() -> None:
    done = run(f"{HEAD}def f(x):\n    return 1 / x\nX = f(0)\n{KERNEL}return X\n")
    one = done.said[0]
    assert one.primary is not None
    assert [one.primary.span.line, *(label.span.line for label in one.labels)] == [4, 5, 8]
