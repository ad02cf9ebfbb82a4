"""The meta-language: kernels compute the same values as Python."""

import contextlib
import io
import textwrap
from typing import Any

import pytest

from nkic.base.profiles import Profile
from tests.harness.metalanguage import HEAD, body, run

# Each program is run twice: as a kernel by nkic, as a function by Python. The output must be equal.
PROGRAMS = {
    "arithmetic": """
        print(7 // -2, -7 // 2, 7 % -3, -7 % 3, 7 / 2, 2 ** 10, 2 ** -1, 1 << 5, -9 >> 1)
        print(5 & 3, 5 | 3, 5 ^ 3, ~5, not 5, -(-3), +True, divmod(-7, 2), pow(3, 4, 5))
        print(0.1 + 0.2, 1e300 * 1e10, round(2.5), round(-3.14159, 2), abs(-3), 7.0 // 2)
    """,
    "comparison": """
        print(1 < 2 < 3, 1 < 3 > 2 != 4, 1 == 1.0, "a" < "b", [1, 2] < [1, 3], (1,) != (1, 2))
        print(1 in [1, 2], 3 not in (1, 2), "b" in "abc", 2 in {1: 2}, None is None, [] is not [])
        print(0 < 1 in [1], 1 or 1 / 0, 0 and 1 / 0, [] or 0 or "x", 1 if [] else 2)
    """,
    "text": """
        n, pi, name = 7, 3.14159, "tile"
        print(f"{n:>4}|{pi:.2f}|{name!r:<8}|{n + 1=}|{n:#x}|{{}}|{name:{'^'}{n + 2}}|")
        print("%d %s %5.1f %%" % (n, name, pi), "{} {0!r} {n}".replace("{} ", "").format(name, n=1))
        print("a,b,,c".split(","), "-".join(["x", "y"]), name.upper(), name[::-1], name * 2)
        print(name.center(10, "*"), name.zfill(6), "a\\tb".expandtabs(4), "é")
        print(str([1, "a", (2,), {"k": None}]), repr("it's"), str(1.0), str(None), [1, [2, ()]])
    """,
    "containers": """
        a = [3, 1, 2]
        a.append(5); a.extend((7, 8)); a += [9]; a[1:3] = [0, 0, 0]; a.insert(0, -1); a.remove(5)
        print(a, len(a), sorted(a, reverse=True), a[-2:], a[::2], a.index(7), a.count(0), a.pop())
        d = {"b": 1, **{"a": 2}}
        d["c"] = d.get("x", 3); d.setdefault("a", 9); d.update(z=1)
        print(d, list(d), list(d.items()), d.pop("b"), "a" in d, {v: k for k, v in d.items()})
        first, *rest, last = range(5)
        (x, y), [z] = (1, 2), "q"
        print(first, rest, last, x, y, z, [*rest, *"ab"], (*rest,), {**d, "n": 1}, max(a))
        s = {3, 1, 2} | {5}
        print(sorted(s), len(s), 3 in s, s & {1, 9}, s - {1}, frozenset([2, 2]))
        print(list(zip("ab", [1, 2])), list(enumerate("ab", 1)), list(map(str, [1, 2])))
        print(list(filter(None, [0, 1])), list(reversed([1, 2])), sum([1, 2], 10), all([]), any([]))
    """,
    "loops": """
        for i in range(10):
            if i == 2: continue
            if i == 5: break
            print(i, end=" ")
        else:
            print("never")
        for i, (a, b) in enumerate([(1, 2), (3, 4)]): print(i, a, b, end=";")
        n = 3
        while n:
            n -= 1
            if n == 1: continue
            print(n)
        else:
            print("done", n, i)
        while True:
            n += 1
            if n > 3: break
        print([x * y for x in range(4) if x % 2 for y in range(x)], [i for i in range(3)], i)
        print({x: [y for y in range(x)] for x in range(3)}, sum(x for x in range(5)), n)
    """,
    "functions": """
        def f(a, b=2, /, c=3, *rest, d, e=5, **more): return (a, b, c, rest, d, e, more)
        print(f(1, d=4), f(1, 2, 3, 4, 5, d=6, z=7), f(*[1, 2], **{"d": 3, "c": 4}))
        def counter():
            count = 0
            def step(by=1):
                nonlocal count
                count += by
                return count
            return step
        one, two = counter(), counter()
        print(one(), one(5), two(), (lambda x, y=2: x * y)(4))
        def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
        print(fib(15), [f(1) for f in [lambda x, i=i: x + i for i in range(3)]])
        print([g() for g in [lambda: i for i in range(3)]])
        table = {"add": lambda a, b: a + b, "max": max}
        print(table["add"](1, 2), table["max"](1, 2), sorted("bca", key=lambda c: -ord(c)))
    """,
    "match": """
        def kind(value):
            match value:
                case 0 | 1: return "small"
                case [x, *rest] if rest: return f"list {x} {rest}"
                case {"k": v, **others}: return f"dict {v} {others}"
                case str() as text: return "text " + text
                case None: return "none"
                case _: return "other"
        print([kind(v) for v in (1, [1, 2, 3], {"k": 1, "j": 2}, "q", None, 2.5, [1])])
    """,
    "deletion and targets": """
        a, d = [1, 2, 3, 4], {"x": 1, "y": 2}
        del a[0], d["x"], (a[0])
        x = y = [0] * 3
        x[0], y[1] = 1, 2
        x[2] += 5
        i = 0
        i, x[i] = 1, 9
        print(a, d, x, y is x)
        b = 5; b -= 2; b *= 3; b //= 2; b **= 2; b %= 7; b <<= 2; b |= 1; b ^= 3; b >>= 1; b &= 6
        print(b)
        t = "a"; t += "b"; t *= 2; t %= ()
        print(t)
    """,
    "docstrings of properties": """
        class A:
            def size(self): "The size."; return 1
            def put(self, value): pass
            size = property(size, doc="Its size.").setter(put).deleter(put)
        print(A.size.__doc__, property(A.put, None).__doc__, property(fget=None, doc="d").__doc__)
        for arguments in ({"x": 1}, {"fget": None, "get": 1}):
            try: property(**arguments)
            except TypeError as error: print(error)
    """,
    "iterators that end within a function": """
        import itertools
        from collections.abc import Callable
        end = iter([1, 2])
        print(list(itertools.takewhile(lambda n: next(end), [5, 6, 7])))
        print(list(itertools.accumulate([1, 2, 3], initial=4)), list(itertools.accumulate([])))
        print(list(itertools.zip_longest([1, 2], "a", fillvalue=0)), list(itertools.zip_longest()))
        print(list(itertools.starmap(max, [(1, 2), [3, 4]])))
        print(isinstance(staticmethod(len), Callable))
    """,
}


def by_python(code: str) -> str:
    space: dict[str, Any] = {}
    exec(compile(f"def kernel():\n{textwrap.indent(code, '    ')}", "k.py", "exec"), space)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        space["kernel"]()
    return out.getvalue()


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_output_as_python(name: str) -> None:
    code = textwrap.dedent(PROGRAMS[name])
    done = body(code)
    assert done.slugs == []
    assert done.printed == by_python(code)


# ---- classes ------------------------------------------------------------------------------------

CLASSES = f"""{HEAD}
from dataclasses import dataclass, field, replace, asdict, fields
from enum import Enum, IntEnum, auto
from typing import NamedTuple, Optional, ClassVar

class Mode(Enum):
    FAST = "f"
    SLOW = "s"
    def __init__(self, value): self.short = str(value)[:1]
    @staticmethod
    def parse(text): return Mode[text]

class Level(IntEnum):
    LOW = 1
    HIGH = 2

class Pair(NamedTuple):
    left: int
    right: str = "r"
    def both(self): return f"{{self.left}}{{self.right}}"

@dataclass
class Config(nl.NKIObject):
    size: int
    mode: Mode = Mode.FAST
    tags: list = field(default_factory=list)
    LIMIT: ClassVar[int] = 128
    def __post_init__(self):
        assert self.size <= self.LIMIT, f"size {{self.size}} > {{self.LIMIT}}"
        self.tiles = self.size // 2
    @property
    def area(self): return self.size * self.size
    @area.setter
    def area(self, value): self.size = value
    @classmethod
    def small(cls): return cls(2)
    def __add__(self, other): return Config(self.size + other.size)
    def __getitem__(self, i): return self.tags[i]
    def __call__(self, x): return x + self.size
    def __len__(self): return len(self.tags)
    def _private(self): return self.__mangled()
    def __mangled(self): return "mangled"

@dataclass(frozen=True)
class Frozen(nl.NKIObject):
    a: int
    b: Optional[int] = None
    def __post_init__(self): object.__setattr__(self, "b", self.a + 1)

class Plain(nl.NKIObject):
    x: int
    y: bool = False
    def toggle(self): self.y = not self.y

class Derived(Plain):
    z: int = 3
    def toggle(self):
        super().toggle()
        self.z += 1

class Own:
    def __init__(self, n): self.n = n
    def __eq__(self, other): return isinstance(other, Own) and self.n == other.n
    def __hash__(self): return hash(self.n)
    def __str__(self): return f"own {{self.n}}"
    def __iter__(self): return iter([self.n, self.n])
    def __bool__(self): return self.n > 0
    def __contains__(self, item): return item == self.n
"""


def classes(code: str) -> list[str]:
    lines = "".join(f"    {line}\n" for line in textwrap.dedent(code).strip().split("\n"))
    done = run(f"{CLASSES}\n@nki.jit\ndef kernel():\n{lines}")
    assert done.slugs == [], done.said
    return done.printed.splitlines()


def test_dataclasses() -> None:
    assert classes("""
        c = Config(4)
        c.tags.append(1); c.tags += [2]; c.size += 1
        print(c, c.tiles, c.area, c[1], c(10), len(c), (c + Config.small()).size, c._private())
        c.area = 9
        print(c.size, Config(9, Mode.FAST, [1, 2]) == c, replace(c, size=3), asdict(c))
        print([f.name for f in fields(c)], Config.LIMIT, isinstance(c, Config), hasattr(c, "nope"))
        print(Frozen(3), Frozen(3) == Frozen(3), {Frozen(3): 1}[Frozen(3)])
    """) == [
        "Config(size=5, mode=<Mode.FAST: 'f'>, tags=[1, 2]) 2 25 2 15 2 7 mangled",
        "9 True Config(size=3, mode=<Mode.FAST: 'f'>, tags=[1, 2]) "
        "{'size': 9, 'mode': <Mode.FAST: 'f'>, 'tags': [1, 2]}",
        "['size', 'mode', 'tags'] 128 True False",
        "Frozen(a=3, b=4) True 1",
    ]


def test_classes_get_their_init_from_their_fields() -> None:
    assert classes("""
        p, q, r = Plain(1), Plain(y=True), Derived(5, z=1)
        p.toggle(); r.toggle()
        print(p, q.x, q.y, r, p == Plain(1, True), p == q)
    """) == ["Plain(x=1, y=True) None True Derived(x=5, y=True, z=2) True False"]


def test_enums_and_tuples() -> None:
    assert classes("""
        print(Mode.FAST, Mode.FAST.value, Mode["FAST"].name, Mode.FAST.short, Mode.parse("FAST"))
        print([m.name for m in Mode], Mode.FAST == Mode.FAST, Mode.FAST != Mode.SLOW, Mode("f"))
        print(Level.HIGH + 1, Level.LOW < Level.HIGH, {Mode.FAST: 1}[Mode.FAST])
        print(Pair(1), Pair(2, "x").both(), Pair(3)[0], Pair(4)._replace(left=5), *Pair(6))
    """) == [
        "Mode.FAST f FAST f Mode.FAST",
        "['FAST', 'SLOW'] True True Mode.FAST",
        "3 True 1",
        "Pair(left=1, right='r') 2x 3 Pair(left=5, right='r') 6 r",
    ]


def test_own_protocols() -> None:
    assert classes("""
        o = Own(3)
        a, b = o
        print(o == Own(3), {o: 1}[Own(3)], str(o), f"{o}", a, list(o), bool(Own(0)), 3 in o, [o][0])
        print("yes" if o else "no", not Own(0), o and 1, o != Own(4))
    """) == ["True 1 own 3 own 3 3 [3, 3] False True own 3", "yes True 1 True"]


def test_objects_show_no_addresses() -> None:
    done = run(
        f"{HEAD}class A:\n    pass\n@nki.jit\ndef kernel():\n"
        "    print(A(), [A()], len, lambda: 1, A().__init__)\n"
    )
    assert done.slugs == []
    assert "0x" not in done.printed


# ---- libraries ----------------------------------------------------------------------------------


def test_libraries() -> None:
    done = body("""
import math
import numpy as np
from functools import partial, reduce
from typing import Optional, cast
print(math.ceil(2.1), math.floor(-2.1), math.sqrt(16), math.gcd(12, 18), math.log2(8), math.inf)
print(math.prod([2, 3, 4]), math.lcm(4, 6), math.factorial(5), math.comb(5, 2), math.pi)
print(np.prod((2, 3)), np.finfo(np.float32).min.item(), np.iinfo(np.int32).max, np.pi, np.float32)
print(np.finfo(np.float16).eps, np.finfo(np.float32).tiny, np.iinfo(np.uint8).min, np.ceil(1.5))
print(partial(pow, 2)(5), reduce(lambda a, b: a * b, [1, 2, 3]), cast(int, 5), Optional[int])
""")
    assert done.slugs == []
    assert done.printed.splitlines() == [
        "3 -3 4.0 6 3.0 inf",
        "24 12 120 10 3.141592653589793",
        "6 -3.4028234663852886e+38 2147483647 3.141592653589793 float32",
        "0.000977 1.1754944e-38 0 2.0",
        "32 6 5 int | None",
    ]


def test_codes_of_numpys_types_are_numpys() -> None:
    done = body("""
import numpy as np
print(np.dtype("f4"), np.dtype("<f2"), np.dtype("i8"), np.dtype("u1"), np.dtype("bfloat16"))
print(np.dtype("double"), np.dtype("?"), np.dtype("u8"))
print(np.dtype(np.float32), np.dtype("float32").itemsize)
print(np.single, np.half, np.intc, np.bool, np.double)
""")
    assert done.slugs == []
    assert done.printed.splitlines() == [
        "float32 float16 int64 uint8 bfloat16",
        "float64 bool uint64",
        "float32 4",
        "float32 float16 int32 bool float64",
    ]


def test_the_environment_is_empty() -> None:
    done = body(
        "import os, sys\nprint(len(os.environ), os.environ.get('PATH'))\n"
        "print('x', file=sys.stderr)"
    )
    assert done.printed == "0 None\nx\n"


def test_print_takes_what_python_takes() -> None:
    done = body("print(1, 'a', sep='-', end='!')\nprint()\nprint(*[1, 2], sep='', flush=True)")
    assert done.printed == "1-a!\n12\n"


# ---- sets and hashes do not depend on the process -----------------------------------------------


def test_sets_of_text_have_an_order_of_their_own() -> None:
    done = body(
        "s = {'pear', 'fig', 'apple'}\nprint(s, list(s), [x for x in s])\nprint(s.pop(), len(s))"
    )
    shown = "['apple', 'fig', 'pear']"
    assert done.printed == f"{{'apple', 'fig', 'pear'}} {shown} {shown}\napple 2\n"


def test_hashes_are_stable() -> None:
    assert body("return hash('a'), hash(('a', 1)) == hash(('a', 1)), hash(5)").value == (
        3904355907,
        True,
        5,
    )


# ---- calling kernels ----------------------------------------------------------------------------


def test_arguments_by_every_kind_of_parameter() -> None:
    text = (
        f"{HEAD}@nki.jit\ndef kernel(a, /, b, *rest, c, d=4, **more):\n"
        "    return a, b, rest, c, d, more\n"
    )
    given = {"a": 1, "b": 2, "rest": (8, 9), "c": 3, "more": {"z": 0}}
    assert run(text, arguments=given).value == (1, 2, (8, 9), 3, 4, {"z": 0})
    assert run(text, arguments={"a": 1, "b": 2, "c": 3}).value == (1, 2, (), 3, 4, {})


def test_kernels_call_kernels() -> None:
    text = (
        f"{HEAD}@nki.jit\ndef inner(x): return x + 1\n@nki.jit\n"
        "def kernel(): return inner(1), inner[2](5)\n"
    )
    assert run(text, "kernel").value == (2, 6)


def test_jit_on_a_rebound_name() -> None:
    text = f"{HEAD}def kernel(x=3): return x * 2\nkernel = nki.jit(kernel)\n"
    assert run(text).value == 6


def test_annotations_are_never_evaluated() -> None:
    text = (
        f"{HEAD}@nki.jit\ndef kernel(a: boom() = 1) -> boom():\n"
        "    x: boom() = a\n    y: boom()\n    return x\n"
    )
    assert run(text).value == 1


def test_a_bare_annotation_makes_a_local() -> None:
    text = f"{HEAD}x = 1\n@nki.jit\ndef kernel():\n    x: int\n    return x\n"
    assert run(text).slugs == ["unset-variable"]


@pytest.mark.parametrize("profile", list(Profile), ids=lambda profile: str(profile.label))
def test_plain_code_runs_in_every_version(profile: Profile) -> None:
    code = (
        "t = 0\nfor i in range(4):\n    if i % 2 == 0 and i != 2:\n"
        "        t += i\n    else:\n        t -= 1\nreturn t"
    )
    assert body(code, profile=profile).value == -3


def test_long_chains_and_deep_nesting() -> None:
    chain = " + ".join(["x"] * 800)
    elifs = "".join(f"elif x == {n}: y = {n}\n" for n in range(300))
    deep = "(" * 60 + "x" + ")" * 60
    done = body(f"x = 1\nif x == -1: y = 0\n{elifs}return {chain}, y, {deep}")
    assert done.value == (800, 1, 1)


def test_what_is_too_deep_for_python_is_an_error() -> None:
    done = body(f"x = 1\nreturn {' + '.join(['x'] * 6000)}")
    assert done.slugs == ["nesting-too-deep"]
    assert done.places == [(3, 1)] or done.places[0][0] in (4, 6)


def test_columns_count_characters() -> None:
    done = body('é = "üü"; x = é + 1')
    assert done.slugs == ["wrong-type"]
    assert done.places == [(5, 19)]


# ------------------------------------------------------------------------------------------------
# Test loops on the device: the body is evaluated once, between opening and closing the loop.


def test_a_device_range_runs_its_body_once() -> None:
    done = body(
        "for i in nl.dynamic_range(3):\n    nl.log(f'body {i}')\nelse:\n"
        "    nl.log('else')\nnl.log('after')"
    )
    assert done.slugs == []
    assert done.log == ["open", "body counter", "close", "else", "after"]


def test_nested_loops() -> None:
    code = (
        "for i in nl.dynamic_range(3):\n    for j in range(2):\n"
        "        for k in nl.dynamic_range(j):\n            nl.log(str(j))"
    )
    assert body(code).log == ["open", "open", "0", "close", "open", "1", "close", "close"]


def test_continue_and_inner_breaks_are_fine() -> None:
    code = (
        "for i in nl.dynamic_range(3):\n    for j in range(9):\n"
        "        if j: break\n    if j: continue\n    nl.log('end')"
    )
    assert body(code).log == ["open", "close"]


def test_a_register_condition_runs_its_body_once() -> None:
    done = body(
        "r = nl.register()\nwhile r:\n    nl.log('body')\nelse:\n"
        "    nl.log('else')\nnl.log('after')"
    )
    assert done.slugs == []
    assert done.log == ["while", "body", "end", "else", "after"]


@pytest.mark.parametrize("test", ["x", "x and True", "f()", "t[0]", "(y := x)", "x if 1 else 2"])
def test_plain_conditions_of_every_form(test: str) -> None:
    code = (
        f"x = [1, 2, 3]\ndef f(): return x\nt = [x]\nn = 0\nwhile {test}:\n"
        "    x.pop()\n    n += 1\nreturn n"
    )
    assert body(code).value == 3


@pytest.mark.parametrize(
    ("code", "word", "line"),
    [
        ("for i in nl.dynamic_range(3):\n    break", "`break`", 6),
        ("for i in nl.dynamic_range(3):\n    return 1", "`return`", 6),
        ("for i in nl.dynamic_range(3):\n    for j in range(3):\n        return 1", "`return`", 7),
        (
            ("for i in range(3):\n    for j in nl.dynamic_range(3):\n        if True: break"),
            "`break`",
            7,
        ),
        (
            (
                "for i in nl.dynamic_range(3):\n    if 1:\n        for j in [1]: pass\n"
                "        else: break"
            ),
            "`break`",
            8,
        ),
        ("r = nl.register()\nwhile r:\n    break", "`break`", 7),
        ("r = nl.register()\nwhile r:\n    for i in [1]: return i", "`return`", 7),
    ],
)
def test_leaving_a_device_loop(code: str, word: str, line: int) -> None:
    done = body(code)
    assert done.slugs == ["device-loop-misuse"]
    assert done.said[0].message.startswith(word)
    assert done.places[0][0] == line


@pytest.mark.parametrize(
    "code",
    [
        "return [i for i in nl.dynamic_range(3)]",
        "return sum(i for i in nl.dynamic_range(3))",
        "return {i: 1 for i in nl.dynamic_range(3)}",
        "r = nl.register()\nwhile r:\n    r = 5",
    ],
)
def test_other_misuse(code: str) -> None:
    assert body(code).slugs == ["device-loop-misuse"]


def test_leaving_plain_loops_works_inside_functions() -> None:
    code = (
        "def f(xs):\n    for x in xs:\n        while x:\n"
        "            if x > 1: return x\n            break\nreturn f([1, 5, 2])"
    )
    assert body(code).value == 5


@pytest.mark.parametrize("code", ["for x in nl: pass", "for x in nl.register(): pass"])
def test_what_cannot_be_gone_through(code: str) -> None:
    assert body(code).slugs == ["wrong-type"]
