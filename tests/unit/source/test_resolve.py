"""Test resolve: the chosen kernel, its files, and the code that it reaches."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from nkic.base.profiles import Profile
from nkic.base.source import SourceFile
from nkic.source.parse import parse
from nkic.source.resolve import list_kernels
from tests.harness.metalanguage import HEAD, resolved


def kernels(text: str) -> list[tuple[str, str]]:
    found = list_kernels(SourceFile("k.py", text), parse)
    return [(kernel.name, kernel.wrapper) for kernel in found]


@pytest.mark.parametrize(
    ("text", "wrapper"),
    [
        ("import nki\n@nki.jit\ndef f(a): pass", "nki.jit"),
        ("import nki\n@nki.jit()\ndef f(a): pass", "nki.jit"),
        ("import nki\n@nki.jit(mode='trace')\ndef f(a): pass", "nki.jit"),
        ("from nki import jit\n@jit\ndef f(a): pass", "nki.jit"),
        ("from nki import jit as j\n@j\ndef f(a): pass", "nki.jit"),
        ("import neuronxcc.nki as nki\n@nki.jit\ndef f(a): pass", "nki.jit"),
        ("from neuronxcc import nki\n@nki.jit\ndef f(a): pass", "nki.jit"),
        ("import neuronxcc\n@neuronxcc.nki.jit\ndef f(a): pass", "nki.jit"),
        ("import nki as n\n@n.benchmark(warmup=1)\ndef f(a): pass", "nki.benchmark"),
        (
            "try:\n    import nki\nexcept ImportError:\n    nki = None\n@nki.jit\ndef f(): 1",
            "nki.jit",
        ),
        ("import nki\nif True:\n    @nki.jit\n    def f(): pass", "nki.jit"),
    ],
)
def test_ways_to_mark_a_kernel(text: str, wrapper: str) -> None:
    assert kernels(text) == [("f", wrapper)]


def test_a_call_of_jit_makes_a_kernel() -> None:
    text = (
        "import nki\ndef g(a): pass\nfast = nki.jit(g)\nother = print(g)\n"
        "sim = nki.simulate(fast)\n"
    )
    assert kernels(text) == [("fast", "nki.jit")]


@pytest.mark.parametrize(
    "decorator", ["jit", "other.jit", "nki.language.jit", "nki.jot", "f().jit"]
)
def test_other_decorators_make_none(decorator: str) -> None:
    assert kernels(f"import nki, other\n@{decorator}\ndef f(a): pass") == []


def test_kernels_are_listed_in_source_order_with_their_signatures() -> None:
    text = (
        f"{HEAD}@nki.jit\ndef b(x: nl.t[1, 2] = 3, *, k=2) -> int: pass\n@nki.jit\ndef a(): pass\n"
    )
    found = list_kernels(SourceFile("k.py", text), parse)
    assert [kernel.signature for kernel in found] == ["b(x: nl.t[1, 2] = 3, *, k=2) -> int", "a()"]


def test_the_only_kernel_is_meant() -> None:
    found, said = resolved(f"{HEAD}def g(): pass\n@nki.jit\ndef f(): pass\n")
    assert not said
    assert found is not None
    assert found.kernel.name == "f"


def test_a_plain_function_is_a_kernel_when_named() -> None:
    found, _ = resolved(f"{HEAD}def g(): pass\n@nki.jit\ndef f(): pass\n", "g")
    assert found is not None
    assert (found.kernel.name, found.kernel.wrapper) == ("g", "")


def test_several_kernels_are_listed() -> None:
    found, said = resolved(f"{HEAD}@nki.jit\ndef f(a): pass\n@nki.jit\ndef g(b, c): pass\n")
    assert found is None
    assert [one.code.slug for one in said] == ["which-kernel"]
    assert [(label.span.line, label.text) for label in said[0].labels] == [
        (4, "f(a)"),
        (6, "g(b, c)"),
    ]
    assert said[0].notes == ("-k f", "-k g")


def test_a_wrong_name_gets_the_nearest() -> None:
    _, said = resolved(f"{HEAD}@nki.jit\ndef softmax(a): pass\n", "sofmax")
    assert said[0].code.slug == "no-kernel"
    assert said[0].help == "did you mean `softmax`?"


def test_no_kernel_names_the_functions() -> None:
    _, said = resolved("def f(a): pass\ndef g(a): pass\n")
    assert "functions in the file: `f`, `g`" in said[0].message


@pytest.mark.parametrize("line", ["import nki", "from neuronxcc import nki"])
def test_a_kernel_inside_of_a_function_names_the_function(line: str) -> None:
    _, said = resolved(f"{line}\ndef make():\n    @nki.jit\n    def f(a): pass\n    return f\n")
    assert said[0].message.startswith("the kernel `f` is inside the function `make`")


def test_a_kernel_that_is_a_method_names_the_class() -> None:
    _, said = resolved("import nki\nclass M:\n    @nki.jit\n    def forward(self, a): pass\n")
    assert said[0].message == "the kernel `forward` is a method of the class `M`"
    assert said[0].help.startswith("move it out of the class")


# ---- what is reached ----------------------------------------------------------------------------


def reached(text: str, files: Mapping[str, str] | None = None) -> list[str]:
    found, said = resolved(text, files=files)
    assert not said, said
    assert found is not None
    return [node.name for node in found.reached]


def test_functions_and_classes_by_name() -> None:
    text = f"""{HEAD}
def unused(): pass
def helper(): return later()
def later(): return Box(3)
class Box(nl.NKIObject):
    n: int
@nki.jit
def kernel():
    return helper()
"""
    assert reached(text) == ["kernel", "helper", "later", "Box"]


def test_methods_are_reached_by_name() -> None:
    text = f"""{HEAD}
class Box(nl.NKIObject):
    def used(self): return deep()
    def unused(self): yield 1
    def __init__(self): pass
def deep(): pass
@nki.jit
def kernel():
    return Box().used()
"""
    assert reached(text) == ["kernel", "Box", "used", "__init__", "deep"]


def test_values_lead_to_functions_that_they_hold_and_not_to_those_they_call() -> None:
    text = f"""{HEAD}
import torch
def made():
    global counter
    return torch.cuda.is_available()
def fast(): pass
TABLE = {{"a": fast, "b": made()}}
@nki.jit
def kernel():
    return TABLE["a"]()
"""
    assert reached(text) == ["kernel", "fast"]


def test_local_names_hide_global_ones() -> None:
    text = f"""{HEAD}
def helper(): yield 1
def other(): yield 1
@nki.jit
def kernel(helper):
    other = [helper for helper in range(3)]
    return other, helper
"""
    assert reached(text) == ["kernel"]


def test_imports_are_followed_by_name_only() -> None:
    files = {
        "tools.py": (
            "import torch\nfrom deep import f\ndef used(): return f()\ndef unused(): yield 1\n"
        ),
        "deep.py": "def f(): return 1\n",
        "never.py": "this is not Python",
    }
    text = (
        f"{HEAD}import never\nfrom tools import used, unused\n@nki.jit\n"
        "def kernel(): return used()\n"
    )
    assert reached(text, files) == ["kernel", "used", "f"]


def test_modules_packages_and_stars() -> None:
    files = {
        "pkg/__init__.py": "from .inner import shown\nfrom . import tools\n",
        "pkg/inner.py": (
            "from .tools import *\ndef shown(): return starred() + _hidden()\ndef _hidden(): 1\n"
        ),
        "pkg/tools.py": "def starred(): return 1\ndef direct(): return 2\n",
    }
    text = (
        f"{HEAD}import pkg\nimport pkg.tools as t\n@nki.jit\ndef kernel():\n"
        "    return pkg.shown(), t.direct(), pkg.tools.starred()\n"
    )
    assert reached(text, files) == ["kernel", "shown", "direct", "starred", "_hidden"]


def test_both_ways_of_a_conditional_import_are_followed() -> None:
    files = {"fast.py": "def f(): return 1\n", "slow.py": "def f(): return 2\n"}
    text = f"""{HEAD}
try:
    from fast import f
except ImportError:
    from slow import f
@nki.jit
def kernel(): return f()
"""
    found, said = resolved(text, files=files)
    assert not said
    assert found is not None
    assert [node.span.path for node in found.reached] == ["k.py", "fast.py", "slow.py"]


def test_annotations_are_not_followed() -> None:
    assert reached(
        f"{HEAD}@nki.jit\ndef kernel(a: undefined) -> also[1]:\n    x: no = 1\n    return x\n"
    ) == ["kernel"]


# ---- unknown names ------------------------------------------------------------------------------


def unknown(code: str) -> list[tuple[str, str]]:
    _, said = resolved(f"{HEAD}SIZE = 3\n@nki.jit\ndef kernel(size):\n    {code}\n")
    return [(one.message, one.help) for one in said]


@pytest.mark.parametrize(
    ("code", "message", "help"),
    [
        ("return SIZES", "`SIZES` is not defined", "did you mean `SIZE`?"),
        ("return lem(size)", "`lem` is not defined", "did you mean `len`?"),
        ("return open(size)", "`open` is not available", "a kernel is compiled from"),
        ("return id(size)", "`id` is not available", "compare values with `==`"),
    ],
)
def test_unknown_names(code: str, message: str, help: str) -> None:
    found = unknown(code)
    assert [one[0] for one in found] == [message]
    assert found[0][1].startswith(help)


@pytest.mark.parametrize(
    "code",
    [
        "return [x for x in size if x], {k: v for k, v in size}",
        "f = lambda y, *z, k=1, **w: (y, z, k, w); return f",
        "return (n := 3) + n",
        "if size: return 1\n    else: return 2\n    print(never_defined)",
        "class A:\n        x = 1\n        y = x + SIZE\n    return A",
        "for i, (j, *k) in size: print(i, j, k)",
        "def f(): return g()\n    def g(): return f()\n    return f",
        (
            "match size:\n        case {'a': x, **rest}: return x, rest\n"
            "        case [a, *b]: return a, b"
        ),
    ],
)
def test_names_that_are_known(code: str) -> None:
    assert unknown(code) == []


def test_everything_wrong_is_said_at_once() -> None:
    text = f"""{HEAD}
@nki.jit
def kernel(a):
    x = lenn(a)
    try:
        y = a.__dict__
    except ValueError:
        pass
    return helper(x, y)
def helper(x, y):
    global z
    yield x
"""
    _, said = resolved(text, profile=Profile.NKI_0_6)
    assert sorted((one.primary.span.line, one.code.slug) for one in said if one.primary) == [
        (6, "unknown-name"),
        (7, "not-in-nki"),
        (8, "hidden-attribute"),
        (13, "not-in-nki"),
        (14, "not-in-nki"),
    ]


def test_host_code_is_never_complained_of() -> None:
    text = f"""{HEAD}
import torch, sys, asyncio
async def main(): await asyncio.sleep(1)
def train():
    global model
    try:
        yield open("x")
    except Exception:
        raise
    finally:
        print(model.__dict__, undefined)
@nki.jit
def kernel(): return 1
if __name__ == "__main__":
    asyncio.run(main())
    sys.exit(kernel.__dict__)
"""
    found, said = resolved(text)
    assert said == ()
    assert found is not None
