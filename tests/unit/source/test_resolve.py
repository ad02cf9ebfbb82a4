"""Test resolve: the chosen kernel, its files, and the code that it reaches."""

import symtable
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from nkic.base.profiles import Profile
from nkic.base.source import SourceFile
from nkic.source import nodes, scopes, subset
from nkic.source.nodes import walk
from nkic.source.parse import parse
from nkic.source.resolve import list_kernels
from tests.harness.bless import blessing
from tests.harness.metalanguage import HEAD, head, resolved


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


# ------------------------------------------------------------------------------------------------
# Test scopes: the same locals and globals as in Python's own symbol table (only an oracle).

ROOT = Path(__file__).resolve().parents[3]
FILES = [
    *sorted((ROOT / "nkic" / "resolve").glob("*.py")),
    *sorted((ROOT / "nkic" / "language" / "stdlib").glob("*.py")),
    *(Path(symtable.__file__).with_name(f"{n}.py") for n in ("dataclasses", "enum", "functools")),
]
COMPREHENSIONS = {"listcomp", "setcomp", "dictcomp", "genexpr"}
TRICKY = """
import a.b, c as d
from e import f as g
x = y = 1
def outer(p, *q, r=x, **s):
    global x
    x = 2
    n = 3
    def inner(t=n):
        nonlocal n
        n = t
        return [u := v for v in q if (w := v)], {k: z for k, z in s}
    class Local(p):
        m = n
        def method(self): return m, n, Local
    for i, (j, *k) in r: del i
    with q as h, r as (l, o): pass
    try: pass
    except x as error: print(error)
    import a.b as later
    match p:
        case {"k": first, **rest}: pass
        case [second, *_] | p.q(third=second): pass
    return lambda aa, bb=n: aa + bb + cc
"""


def python_locals(table: symtable.SymbolTable) -> Iterator[tuple[str, int, frozenset[str]]]:
    for inner in table.get_children():
        if inner.get_type() in ("function", "class") and inner.get_name() not in COMPREHENSIONS:
            own = (s for s in inner.get_symbols() if s.is_local() and s.get_name()[0] != ".")
            yield inner.get_name(), inner.get_lineno(), frozenset(s.get_name() for s in own)
        yield from python_locals(inner)


def our_locals(tree: nodes.Module) -> Iterator[tuple[str, int, frozenset[str]]]:
    for node in walk(tree):
        if isinstance(node, nodes.FunctionDef | nodes.ClassDef):
            yield node.name, node.span.line, scopes.bound(node)
        elif isinstance(node, nodes.Lambda):
            yield "lambda", node.span.line, scopes.bound(node)


def plain(found: Iterator[tuple[str, int, frozenset[str]]]) -> list[tuple[str, int, list[str]]]:
    # Python adds names (`__class__`) and mangles private ones (`_A__x`).
    return sorted((n, line, sorted(k for k in names if "__" not in k)) for n, line, names in found)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_locals_of_files(path: Path) -> None:
    text = path.read_text("utf-8")
    ours = plain(our_locals(parse(SourceFile(path.name, text))))
    theirs = plain(python_locals(symtable.symtable(text, path.name, "exec")))
    assert ours == theirs


def test_locals_of_tricky_cases() -> None:
    ours = plain(our_locals(parse(SourceFile("t.py", TRICKY))))
    assert ours == plain(python_locals(symtable.symtable(TRICKY, "t.py", "exec")))


def test_names_taken_from_outside() -> None:
    tree = parse(SourceFile("t.py", TRICKY))
    function = next(node for node in tree.body if isinstance(node, nodes.FunctionDef))
    used = {name.id for name in scopes.free_names([function])}
    # The method does not see `m` of the class body; `x` is declared global.
    assert used == {"x", "m", "cc", "print"}


def test_unreachable_statements() -> None:
    text = (
        "def f():\n    if a: return 1\n    else: raise b\n    c\n    while d:\n"
        "        break\n        e\n    g\n"
    )
    function = parse(SourceFile("t.py", text)).body[0]
    assert {name.id for name in scopes.free_names([function])} == {"a", "b"}
    first = text.replace("else: raise b", "else: b")
    function = parse(SourceFile("t.py", first)).body[0]
    assert {name.id for name in scopes.free_names([function])} == {"a", "b", "c", "d", "g"}


# ------------------------------------------------------------------------------------------------
# Test the kernel subset: every rule rejects its construct in the versions it names, and in no
# other.

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
