"""Test that nothing escapes from the closed world, runs for ever or fills the memory.

Each attempt ends quickly in one located error. The attempts are the known ways out of a restricted
Python, and the known ways to make one line of it exhaust the machine.
"""

import pytest

from nkic.base.limits import Limits
from tests.harness.metalanguage import body

WAYS_OUT = """
().__class__.__bases__[0].__subclasses__()
getattr(nl, "__di" + "ct__")
"{0.__globals__}".format(kernel)
"{a.__init__.__globals__}".format_map({"a": nl})
str.format("{0.__globals__}", kernel)
str.format_map("{a.__globals__}", {"a": kernel})
"{0[a].__globals__}".format({"a": kernel})
f"{kernel.__globals__}"
(x for x in [1]).gi_frame
getattr((x for x in [1]), "gi_frame")
(x for x in [1]).gi_code
kernel.__code__.co_consts
kernel.__closure__
kernel.__defaults__
(lambda: 0).__globals__["__builtins__"]
[].__class__.__base__
__builtins__
__import__("os").system("true")
open("/etc/passwd").read()
eval("1 + 1")
exec("x = 1")
compile("1", "", "eval")
globals()
vars(nl)
breakpoint()
print.__self__
[].append.__self__
"".join.__self__
Exception().__traceback__
super().__init__
object.__subclasses__()
object.__reduce_ex__(1, 2)
type.mro(int)
int.__dict__
nl._x
nl.__getattr__
[0].__mul__(10**9)
"".__mod__(1)
(5).__format__("999999999")
type("X", (object,), {})
setattr(nl, "float32", 1)
setattr(nl.NKIObject, "x", 1)
setattr(kernel, "__code__", 1)
delattr(nl, "float32")
object.__setattr__(nl, "float32", 1)
object.__setattr__(kernel, "__code__", 1)
id(nl)
memoryview(b"x")
"""

TOO_MUCH = """
9**9**9
2**(2**40)
1 << (1 << 60)
pow(7, 10**9)
"a" * 10**12
10**12 * "a"
[0] * 10**12
(0,) * 10**12
[0] * 10**6 + [0] * 10**6
range(10**12)
range(0, 10**30, 7)
list(range(10**12))
sum(range(10**12))
"%999999999d" % 5
"%*d" % (10**9, 5)
f"{5:999999999}"
f"{5:{10**9}}"
f"{5:>0999999999}"
f"{1.5:.999999999f}"
format(5, "999999999")
"{:>999999999}".format(1)
"{:>{}}".format(1, 10**9)
"a".ljust(10**12)
str.ljust("a", 10**12)
"a".center(10**12)
b"a".rjust(10**12)
"1".zfill(10**12)
"\\t".expandtabs(10**12)
("a" * 1000).replace("a", "a" * 100000)
"".join(["a" * 1000000] * 1000000)
("a" * 1000).translate({97: "a" * 100000})
(1).to_bytes(10**12)
int("9" * 100000)
math.factorial(10**7)
math.comb(10**6, 5 * 10**5)
math.perm(10**6)
math.prod(range(1, 10**5))
"""

WITHOUT_END = {
    "loop": "while True: pass",
    "loop of names": "x = 1\nwhile x: pass",
    "sum in a loop": "while True: sum(range(1000000))",
    "list in a loop": "while True: list(range(1000000))",
    "copies": "x, y = [0] * 1000000, []\nwhile True: y.append(x[:])",
    "copies by method": "x, y = [0] * 1000000, []\nwhile True: y.append(x.copy())",
    "recursion": "def f(): return f()\nreturn f()",
    "recursion of lambdas": "f = lambda: f()\nreturn f()",
    "recursion of methods": "class A:\n    def f(self): return self.f()\nreturn A().f()",
    "two calls": "def f(n):\n    return n and f(n - 1) + f(n - 1)\nreturn f(500)",
    "two lambdas": "f = lambda n: f(n - 1) + f(n - 1) if n else 0\nreturn f(500)",
    "comprehension": "return [1 for a in range(1000000) for b in range(1000000)]",
    "generator": "return any(False for a in range(1000000) for b in range(1000000))",
    "iterator": "class A(nl.NKIObject):\n    def __iter__(self): return self\n"
    "    def __next__(self): return 1\nreturn list(A())",
    "sorting": "return sorted(range(1000), key=lambda x: [y for y in range(1000000)])",
    "squares": "x = 2\nwhile True: x = x * x",
    "powers": "x = 2\nwhile True: x **= 2",
    "shifts": "x = 2\nwhile True: x <<= 1000",
    "doubling": "x = [1]\nwhile True: x = x + x",
    "doubling in place": "x = [1]\nwhile True: x += x",
    "doubling by extend": "x = [1]\nwhile True: x.extend(x)",
    "doubling by slice": "x = [1]\nwhile True: x[0:0] = x",
    "doubling by star": "x = [1]\nwhile True: x = [*x, *x]",
    "doubling tuples": "x = (1,)\nwhile True: x = (*x, *x)",
    "doubling times": "x = [1]\nwhile True: x *= 2",
    "doubling attributes": "class A: x = [1]\na = A()\nwhile True: a.x += a.x",
    "doubling items": "a = [[1]]\nwhile True: a[0] += a[0]",
    "doubling text": "x = 'a'\nwhile True: x = f'{x}{x}'",
    "doubling percent": "x = 'a'\nwhile True: x = '%s%s' % (x, x)",
    "doubling format": "x = 'a'\nwhile True: x = '{0}{0}'.format(x)",
    "doubling join": "x = 'a'\nwhile True: x = ','.join([x, x])",
    "doubling replace": "x = 'a'\nwhile True: x = x.replace('a', 'aa')",
    "maps of maps": "m = iter([1])\nfor i in range(50000): m = map(abs, m)\nreturn next(m)",
    "zips of zips": "m = [1]\nfor i in range(50000): m = zip(m)\nreturn list(m)",
    "shared lists": "x = []\nfor i in range(60): x = [x, x]\nreturn str(x)",
    "shared lists printed": "x = []\nfor i in range(60): x = [x, x]\nprint(x)",
    "shared lists in text": "x = []\nfor i in range(60): x = [x, x]\nreturn f'{x}'",
    "shared lists in percent": "x = []\nfor i in range(60): x = [x, x]\nreturn '%s' % [x]",
    "shared fields": "class A(nl.NKIObject):\n    x: list\nx = []\n"
    "for i in range(60): x = A([x, x])\nprint(x)",
    "shared fields of dataclasses": "from dataclasses import dataclass\n@dataclass\n"
    "class A:\n    x: int\n    y: int\nx = 1\nfor i in range(60): x = A(x, x)\nreturn f'{x}'",
    "shared tuples": "from typing import NamedTuple\nclass A(NamedTuple):\n    x: int\n    y: int\n"
    "x = 1\nfor i in range(60): x = A(x, x)\nreturn str([x])",
    "deep lists": "x = []\nfor i in range(50000): x = [x]\nreturn repr(x)",
}

FORBIDDEN = r"""
import os; return os.system("true")
import subprocess; return subprocess.run(["true"])
import ctypes; return ctypes.CDLL(None)
import builtins; return builtins.open("x")
from os import system; return system("true")
import importlib; return importlib.import_module("os")
nl.foo = 1
nl.NKIObject.x = 1
kernel.__code__ = 1
del nl.float32
import math; math.pi = 3
@open\ndef f(): pass
@kernel\ndef f(): pass
class A(type): pass
class A(nl.NKIObject):\n    def __del__(self): pass
class A(nl.NKIObject):\n    def __getattribute__(self, n): pass
match (x for x in []):\n    case object(gi_frame=f): return f
raise SystemExit(3)
raise KeyboardInterrupt
with open("x") as f: pass
"""


def attempts(text: str) -> list[str]:
    return [line.replace("\\n", "\n") for line in text.strip().split("\n")]


def must_fail(code: str, slugs: frozenset[str]) -> None:
    done = body(code, limits=Limits(steps=1_000_000))
    assert done.said, f"no error, but {done.value!r}"
    assert all(one.primary is not None for one in done.said)
    assert set(done.slugs) <= slugs
    assert done.printed == ""


OUT = frozenset({"hidden-attribute", "unknown-name", "wrong-type", "wrong-value"}) | {
    *("unknown-attribute", "too-large", "not-in-nki"),
}
LARGE = frozenset({"too-large", "wrong-value", "runaway"})
ENDLESS = frozenset({"runaway", "too-large", "too-deep"})
REFUSED = OUT | {
    *("not-in-nki", "host-module", "unknown-attribute", "wrong-base"),
    *("bad-syntax", "import-failed"),
}


@pytest.mark.parametrize("code", attempts(WAYS_OUT))
def test_ways_out(code: str) -> None:
    must_fail(f"return {code}", OUT)


@pytest.mark.parametrize("code", attempts(TOO_MUCH))
def test_too_much(code: str) -> None:
    must_fail(f"import math\nreturn {code}", LARGE)


@pytest.mark.parametrize("name", WITHOUT_END)
def test_without_end(name: str) -> None:
    must_fail(WITHOUT_END[name], ENDLESS)


@pytest.mark.parametrize("code", attempts(FORBIDDEN))
def test_forbidden(code: str) -> None:
    must_fail(code, REFUSED)


def test_the_usual_limit_is_soon_reached() -> None:
    assert body("while True: pass").slugs == ["runaway"]


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("x = []\nx.append(x)\nreturn str(x)", "[[...]]"),
        ("d = {}\nd['d'] = d\nreturn f'{d}'", "{'d': {...}}"),
        ("return sum(1 for _ in range(100000))", 100000),
        ("return len([0] * 1000000)", 1000000),
        ("return 2**4096 % 10", 6),
        ("return '{0[1]} {1.real} {2!r:>4}'.format([1, 2], 5, 'a')", "2 5  'a'"),
        ("return getattr(5, 'real'), hasattr(5, 'nope'), getattr(5, 'nope', 1)", (5, False, 1)),
        (
            "return type(5) == int, isinstance(range(3), (range, list)), type([]).__name__",
            (True, True, "list"),
        ),
        ("class A(nl.NKIObject):\n    _x: int = 4\nreturn A()._x, getattr(A(), '_x')", (4, 4)),
        ("return [c.__name__ for c in getattr((), '__class__').__mro__]", ["tuple", "object"]),
        ("return '{0.__class__.__name__}'.format(1)", "int"),
        ("return Exception().__context__, Exception().__cause__", (None, None)),
        ("return (5).__mul__(3), hasattr(nl, '__dict__')", (15, False)),
        ("match 1:\n    case int(__class__=c): return c.__name__", "int"),
        ("class A(list): pass\nreturn len(A([1, 2]))", 2),
    ],
)
def test_what_is_harmless_works(code: str, value: object) -> None:
    done = body(code)
    assert done.slugs == [], done.said
    assert done.value == value
