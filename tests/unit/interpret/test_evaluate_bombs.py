"""Test that operations which Python does at once are counted.

These are hashing, comparing, copying, chains that overrun the C stack, and classes that would
bypass the guards when they are called.
"""

from typing import Any

import pytest

from nkic.base.limits import Limits
from nkic.interpret.budget import FREE_ITERATIONS, LATER_ITERATIONS
from tests.harness import warm
from tests.harness.metalanguage import body

DEEP = "t, u = (1,), (1,)\nfor i in range(20000): t, u = (t,), (u,)\n"
HASHED = """
return hash(t)
return {t: 1}
d = {}; d[t] = 1
return {1: 2}[t]
return {1: 2}[t, 1]
d = {1: 2}; del d[t]
d = {1: 2}; d[t] += 1
return {1: 2}.get(t)
return {1: 2}.setdefault(t)
return {1: 2}.pop(t, 0)
return {v: 1 for v in [t]}
return {t}
return {v for v in [t]}
return set([t])
return frozenset([t])
s = set(); s.add(t)
s = {1}; s.discard(t)
s = {1}; s.remove(t)
return {1}.union([t])
return {1}.isdisjoint([t])
return dict([(t, 1)])
return dict.fromkeys([t])
d = {}; d.update([(t, 1)])
d = {}; d.update([[t, 1]])
return t in {1: 2}
return set.add(set(), t)
return t == u
return t < u
return 1 < 2 and (t, 1) != (u, 1)
"""

SHARED = "x, y = (), ()\nfor i in range(60): x, y = (x, x), (y, y)\n"
COMPARED = """
return x == y
return x <= y
return 1 == 1 != x == y
return y in [x]
return [x].index(y)
return [x].count(y)
a = [x]; a.remove(y)
return (x,).index(y)
return sorted([x, y])
a = [x, y]; a.sort()
return max(x, y)
return min([x, y])
return hash(x)
return {x: 1}
return list({x, 'a'})
return list(map(str, [x]))
f = str; return f(x)
return str.format('{}', x)
"""

KINDS_OF_OBJECTS = {
    "dataclass": "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int\n    y: int",
    "ordered": "from dataclasses import dataclass\n@dataclass(order=True)\nclass A:\n    x: int\n"
    "    y: int",
    "frozen": "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass A:\n    x: int\n"
    "    y: int",
    "NKIObject": "class A(nl.NKIObject):\n    x: int\n    y: int",
    "NamedTuple": "from typing import NamedTuple\nclass A(NamedTuple):\n    x: int\n    y: int",
}

BIG = "x, w = [0] * 1000000, 'a ' * 500000\ny, k = [], set(range(100000))\nwhile True: "
ONE_GO = """
y.append(w.split())
y.append(w.upper())
w.find('b')
x.reverse()
x.sort()
x.count(1)
k.union(k)
k | k
k -= k - k
k &= k
(lambda *a: 0)(*x)
a, *b = x
y.append(str(x[:1000]))
y.append(x[:1000])
y.append([0] * 1000)
print(w)
w == w + ''
del x[0]; x.append(1)
x[0:0] = [1]; x.pop()
x.insert(0, 1); x.pop(0)
hash(tuple(x))
hash(frozenset(k))
next(iter(k))
k.pop(); k.add('a')
range(1000000).count(1.5)
dict.fromkeys(k).items() == dict.fromkeys(k).items()
1.5 in dict.fromkeys(k).values()
(lambda **a: 0)(**{str(v): v for v in range(1000)})
"""
# Operations that are short, but for which a step would still be far too cheap.
LONG = """
str(3**5000)
pow(3**5000, 3**5000, 3**5000 - 2)
round(3**5000, -2000)
math.gcd(3**5000, 2**8000)
math.isqrt(3**5000)
math.fsum([0.5] * 1000)
math.dist([0.5] * 1000, [0.5] * 1000)
np.eye(100)
np.zeros((100, 100)).astype('int8')
np.array([0] * 10000)
"""
MADE = """
class A: pass
class A(Enum): X = 1
@dataclass|class A: x: int
class A(NamedTuple): x: int
"""

CLASSES = """
type(int)("X", (list,), {})
(1).__class__.__class__("X", (), {})
type(nl)("x", {})
type(kernel)(print)
type(print)(len, 1)
list[int](range(5000000))
int("f" * 1000000, 16)
int.from_bytes(b"a" * 100000, "big")
slice(slice(1))
super().__repr__()
"""
GROWING = """
x = x + x
x += x
x = x - -x * 3
x = -x - x
x -= -x
x = x << 1 | 1
x = x * 2 ^ 1
"""
EXPLODING = """
isinstance('', x)
issubclass(str, x)
asdict(A(x))
astuple(A([x]))
"""
UNLIMITED = """
[0] * A()
"a" * A()
"a".ljust(A())
"\\t".expandtabs(A())
range(A())
(1).to_bytes(A())
math.factorial(A())
math.comb(A(), 10**8)
"""


# What is done to 100 members or fields, and the least that one of them costs.
MEMBERS = {
    "Enum('E', names)": 100,
    "Flag('F', names)": 100,
    "namedtuple('T', names)": 50,
    "NamedTuple('T', pairs)": 50,
    "T(*names)": 2,
    "T._make(names)": 2,
    "t._replace(M1=2)": 1,
    "t._asdict()": 3,
    "t == t": 3,
    "hash(t)": 2,
    "repr(t)": 10,
    "list(E)": 1,
    "list(reversed(E))": 1,
    "~F.M1": 1,
}
CAUGHT = ("[].foo", "{}['a']", "int('x')", "len()", "raise ValueError", "1 / 0")
WITH_DEFAULT = ("getattr([], 'foo', None)", "hasattr([], 'foo')", "getattr(np, 'foo', None)")
ENDLESS = {"runaway", "too-large"}
REFUSED = {"wrong-type", "too-large", "hidden-attribute", "wrong-value", "not-in-nki", "runaway"}


def lines(text: str) -> list[str]:
    return text.strip().split("\n")


def said(code: str, steps: int = 3_000_000) -> str:
    done = body(code, limits=Limits(steps=steps))
    (one,) = done.said
    assert one.primary is not None
    return one.code.slug


@pytest.mark.parametrize("code", lines(HASHED))
def test_nothing_nested_very_deep_is_hashed(code: str) -> None:
    assert said(DEEP + code) == "too-deep"


def test_deep_values_of_enumerations() -> None:
    head = f"from enum import Enum\n{DEEP}class C(Enum):\n    "
    assert said(f"{head}A = t") == "too-deep"
    assert said(f"{head}A = 1\nreturn C(t)") == "too-deep"


@pytest.mark.parametrize("code", lines(COMPARED))
def test_shared_parts_are_compared_and_hashed_within_limits(code: str) -> None:
    assert said(SHARED + code) in ENDLESS


def test_shared_parts_in_patterns() -> None:
    code = "class A: pass\nA.y = y\nmatch x:\n    case A.y: return 1"
    assert said(SHARED + code) in ENDLESS


@pytest.mark.parametrize("kind", KINDS_OF_OBJECTS)
@pytest.mark.parametrize("use", ["x == y", "hash(x)", "x < y"])
def test_shared_objects(kind: str, use: str) -> None:
    head = f"{KINDS_OF_OBJECTS[kind]}\nx, y = 1, 1\nfor i in range(60): x, y = A(x, x), A(y, y)\n"
    done = body(f"{head}return {use}", limits=Limits(steps=1_000_000))
    if done.slugs == ["wrong-type"] or kind == "NKIObject":  # not ordered, or hashed by its class
        assert use != "x == y" or done.slugs == ["runaway"]
    else:
        assert done.slugs[0] in ENDLESS


@pytest.mark.parametrize("code", lines(ONE_GO))
def test_work_in_one_go_costs_steps(code: str) -> None:
    assert said(BIG + code) == "runaway"


@pytest.mark.parametrize("code", lines(LONG))
def test_long_work_costs_many_steps(code: str) -> None:
    head = "import math\nimport numpy as np\nfor i in range(2000): "
    assert said(head + code, steps=400_000) == "runaway"


@pytest.mark.parametrize("code", lines(MADE))
def test_classes_made_in_a_loop(code: str) -> None:
    head = "from dataclasses import dataclass\nfrom enum import Enum\nfrom typing import NamedTuple"
    made = code.replace("|", "\n    ")
    assert said(f"{head}\nfor i in range(2000):\n    {made}", steps=400_000) == "runaway"


@pytest.mark.parametrize("code", MEMBERS)
def test_members_and_fields_cost_steps(code: str) -> None:
    head = "from enum import Enum, Flag\nfrom collections import namedtuple\n"
    head += "from typing import NamedTuple\nnames = [f'M{i}' for i in range(100)]\n"
    head += "pairs = [(name, int) for name in names]\nE, F = Enum('E', names), Flag('F', names)\n"
    head += "T = namedtuple('T', names)\nt = T(*names)\n"
    turns = 600_000 // (100 * MEMBERS[code])
    assert body(f"{head}for i in range(9): {code}", limits=Limits(600_000)).slugs == []
    assert said(f"{head}for i in range({turns}): {code}", steps=600_000) == "runaway"


@pytest.mark.parametrize("code", [*CAUGHT, *WITH_DEFAULT])
def test_an_exception_costs_as_much_as_many_nodes(code: str) -> None:
    caught = f"    try: {code}\n    except Exception: pass" if code in CAUGHT else f"    {code}"
    head = "import numpy as np\nfor i in range(2000):\n"
    assert said(f"{head}{caught}", steps=150_000) == "runaway"


@pytest.mark.parametrize("code", lines(GROWING))
def test_integers_do_not_grow_bit_by_bit(code: str) -> None:
    assert said(f"x = 1\nfor i in range(20000): {code}") in ENDLESS


@pytest.mark.parametrize("code", lines(EXPLODING))
def test_shared_parts_elsewhere(code: str) -> None:
    head = "from dataclasses import dataclass, asdict, astuple\nimport numpy as np\n@dataclass\n"
    head += "class A:\n    x: list\nx, y = (int,), (int,)\n"
    assert said(f"{head}for i in range(60): x, y = (x, x), (y, y)\nreturn {code}") in ENDLESS


CATCHING = "try: raise KeyError\nexcept {}: return 1"


@pytest.mark.parametrize("kinds", ["x", "(KeyError, (ValueError,))", "(KeyError, 1)", "()"])
def test_a_handler_takes_classes_and_a_tuple_of_them(kinds: str) -> None:
    """Python looks at all of them first, and at no tuple within a tuple."""
    head = "x = ValueError\nfor i in range(60): x = (x, x)\n"
    found = said(head + CATCHING.format(kinds))
    assert found == ("kernel-raised" if kinds == "()" else "wrong-type")
    assert body(CATCHING.format("(ValueError, LookupError)")).value == 1


def test_each_class_of_a_handler_is_paid_for() -> None:
    many = "x = (ValueError,) * 10**5 + (KeyError,)\n"
    catching = "    try: raise KeyError\n    except x: pass\n"
    assert said(f"{many}for i in range(10**4):\n{catching}") in ENDLESS


def test_an_array_of_shared_lists_is_as_large_as_it_looks() -> None:
    head = "import numpy as np\nx = [1]\nfor i in range(60): x = [x, x]\n"
    assert said(f"{head}return np.array(x)") in ENDLESS


def test_a_partial_holds_few_arguments() -> None:
    head = "from functools import partial\nf = lambda *a: len(a)\n"
    assert said(f"{head}for i in range(300): f = partial(f, 1)") == "too-large"
    assert body(f"{head}for i in range(250): f = partial(f, 1)\nreturn f(2)").value == 251


def test_later_turns_of_a_while_loop_cost_more() -> None:
    steps = 30 * FREE_ITERATIONS
    counting = "n = 0\nwhile True:\n    n += 1\n    print(n)"
    done = body(counting.replace("print(n)", f"assert n < {FREE_ITERATIONS}"), limits=Limits(steps))
    assert done.slugs == ["assertion-failed"]
    last = FREE_ITERATIONS + 30 * FREE_ITERATIONS // LATER_ITERATIONS
    done = body(counting.replace("print(n)", f"assert n < {last}"), limits=Limits(steps))
    assert done.slugs == ["runaway"]
    nested = "t = 0\nfor i in range(400):\n    n = 0\n    while n < 45: n += 1\nreturn n"
    assert body(nested, limits=Limits(steps)).value == 45  # each pass begins again


@pytest.mark.parametrize("code", lines(CLASSES))
def test_classes_are_no_way_round(code: str) -> None:
    assert said(f"return {code}") in REFUSED


@pytest.mark.parametrize("code", lines(UNLIMITED))
def test_sizes_may_be_objects(code: str) -> None:
    head = "import math\nclass A:\n    def __index__(self): return 10**9\n"
    assert said(f"{head}return {code}") in {"too-large", "wrong-type"}


@pytest.mark.parametrize("word", ["slice", "property", "staticmethod", "classmethod"])
def test_chains_that_python_cannot_let_go(word: str) -> None:
    """In a separate process: without the guard, Python itself crashes."""
    code = f"s = None\\nfor i in range(300000): s = {word}(s)"
    text = f"from tests.harness.metalanguage import body; print(body('{code}').slugs)"
    done = warm.run_text(text, cwd=warm.ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ("['wrong-type']\n" if word == "slice" else "[]\n")


def test_the_end_of_the_steps_is_not_the_end_of_a_loop() -> None:
    head = "class A:\n    def __iter__(self): return self\n    def __next__(self): return 1\n"
    assert said(f"{head}return list(A())", steps=40_000_000) == "too-large"
    assert said(f"{head}return list(A())", steps=100_000) == "runaway"
    assert said(f"{head}n = 0\nfor i in A(): n += 1\nreturn n") == "runaway"


SAME: dict[str, Any] = {
    "type(5) == int, type(5) is int, type('') in (str, int), type(nl) == type(nl)": (True,) * 4,
    "isinstance(5, type(3)), isinstance([], (tuple, list)), isinstance('', str)": (True,) * 3,
    "issubclass(type(True), int), (5).__class__ == int": (True, True),
    "{int: 1, str: 2}[type('')], {type(1): 'a'}[int]": (2, "a"),
    "type([]).__name__, str.__name__, repr(int)": ("list", "str", "<class 'int'>"),
    "list(map(str, [1])), list(map(int, '12')), sorted([3, 21], key=str)": (["1"], [1, 2], [21, 3]),
    "str.upper('a'), str.join(',', ['a', 'b']), dict.fromkeys([1], 2)": ("A", "a,b", {1: 2}),
    "{1: 2}.get(1), [3, 4].index(4), [1, 1].count(1), {1}.union([2])": (2, 1, 2, {1, 2}),
    "int.from_bytes(b'\\x01\\x00', 'big'), (5).to_bytes(2, 'big')": (256, b"\x00\x05"),
    "slice(1, 2).stop, 'a b'.split(), 'abc'.find('c'), b'ab'.hex()": (2, ["a", "b"], 2, "6162"),
    "(1, [2, {3: (4,)}]) == (1, [2, {3: (4,)}]), [1] < [1, 2] < [2]": (True, True),
    "hash((1, 'a')) == hash((1, 'a')), {(1, (2,)): 3}[1, (2,)]": (True, 3),
    "{1, 2} | {3}, {1, 2} & {2}, {1, 2} - {2}, {1} ^ {2}": ({1, 2, 3}, {2}, {1}, {1, 2}),
    "{1: 2} | {3: 4}, 6 | 1, 6 & 3, 6 ^ 3, {1: 2}.keys() - [1]": ({1: 2, 3: 4}, 7, 2, 5, set()),
}


@pytest.mark.parametrize("code", SAME)
def test_what_is_harmless_is_as_in_python(code: str) -> None:
    done = body(f"return {code}")
    assert done.slugs == []
    assert done.value == SAME[code]


def test_methods_of_a_kernels_own_keep_their_names() -> None:
    code = (
        "class A:\n    def __init__(self): self.count = 1\n"
        "    def get(self, x): return [x]\n    def add(self, *x): return x\n"
        "    @staticmethod\n    def index(x): return x\n    @classmethod\n"
        "    def update(cls, x): return cls.__name__\n"
        "    @property\n    def title(self): return 5\n"
        "a = A()\nreturn a.get(1), a.add(2, 3), A.index(4), a.update(0), a.title, a.count"
    )
    assert body(code).value == ([1], (2, 3), 4, "A", 5, 1)
