"""Values made to crash Python, or to make it work for hours, get a verdict at their place.

Each kernel runs in a process of its own with little memory. It ends with the expected error in the
expected line, or compiles for few steps.
"""

import re

import pytest

from tests.harness.isolated import verdict

DEEP, MUCH, LARGE = "too-deep", "runaway", "too-large"
CHEAP = ""  # compiles, within STEPS
STEPS = 20_000_000  # a fifth of the default: whether work is paid for shows sooner

# Nests of 3,000 values, of which 900 are allowed: what makes one more level, and what looks at
# the whole. What follows `~` need not look deep: any verdict will do.
NESTS = {
    "lists": ("v = [v]", "v == w|print(v)|copy.deepcopy(v)|{1: v}.items() == {1: w}.items()"),
    "tuples": (
        "v = (v,)",
        "v == w|v < w|hash(v)|v in {w}|{1: 2}.keys() & [v]|{1: v}.items() ^ set()"
        "|len(collections.ChainMap([v]))|set(itertools.chain([v]))",
    ),
    "dicts": ("v = {0: v}", "v == w|print(v)|v.items() == w.items()"),
    "frozen sets": ("v = frozenset([v])", "~v == w"),
    "records": ("v = Record(v)", "v == w|hash(v)|print(v)|copy.deepcopy(v)|v < w|{v: 1}"),
    "named tuples": ("v = Pair(v, 1)", "v == w|hash(v)|print(v)|{v: 1}"),
    "objects of NKI": ("v = Plain(v)", "v == w|print(v)"),
    "exceptions": ("v = ValueError(v)", "print(repr(v))"),
    "slices": ("v = slice((v,))", "v == w|print(v)|~[1, 2][(v,)]"),
    "wrapped": ("v = staticmethod(v)", "print(v)|v()|~isinstance(1, (v.__name__,))"),
    "methods of classes": ("v = classmethod(v)", "print(v)"),
    "partials": ("v = functools.partial(print, v)", "print(v)"),
    "caches": ("v = functools.cache(v)", "v()"),
    "chains of maps": (
        "v = collections.ChainMap({} if isinstance(v, int) else v)",
        "1 in v|v.get(1)|len(v)|list(v)|bool(v)|v == w|print(v)|~v.pop(1)|~copy.copy(v)",
    ),
    "queues": ("v = collections.deque([v])", "v == w|print(v)"),
    "fields": ("v = dataclasses.field(default=v)", "print(v)"),
    "iterators": ("v = itertools.chain(v if v else [])", "list(v)|next(v)"),
    "dtypes": ("v = [v]", "np.zeros((1,), dtype=v)|nl.zeros((128, 4), dtype=v)|~np.dtype(v)"),
    "arguments": (
        "v = (v,)",
        "np.array(v)|nl.shared_constant(v)|ncc.ReplicaGroup(v)|nl.ds(v, 1)|nisa.engine(v)"
        "|a.reshape(v)|nisa.memset(a, v)|nl.add(v, v)",
    ),
}
CLASSES = """@dataclasses.dataclass(frozen=True, order=True)
class Record:
    field: int
class Pair(typing.NamedTuple):
    first: int
    second: int
class Plain(nl.NKIObject):
    field: int
"""


@pytest.mark.parametrize("name", NESTS)
def test_deep_nests_are_refused(name: str) -> None:
    deepen, uses = NESTS[name]
    again = re.sub(r"\bv\b", "w", deepen)
    for use in uses.split("|"):
        body = f"{CLASSES}v = w = 0\nfor _ in range(3000): {deepen}; {again}\n"
        done = verdict(body + use.lstrip("~"))
        assert use[0] == "~" or (done.slug, done.line) == (DEEP, body.count("\n") + 1), use
        assert done.steps < STEPS


@pytest.mark.parametrize("kind", ["ReplicaGroup([v])", "ReplicaGroup(v)"])
def test_objects_of_the_language_hold_no_others(kind: str) -> None:
    assert verdict(f"v = [0]\nfor _ in range(40000): v = ncc.{kind}\nprint(v)").line == 2


LONG = "s = 'x' * 1000000\nt = 'x' * 999999 + 'x'\nu = 'x' * 999999 + 'y'\n"
SAME_HASH = "keys = [n * ((1 << 61) - 1) for n in range(1, 6000)]\n"
MINUSES = "keys = list(itertools.product((-1, -2), repeat=13))\n"
WORK = {
    # texts of a million characters, compared again and again
    "lists of texts": (LONG + "v = [t] * 1000000\ns in v", MUCH),
    "index": (LONG + "v = [u] * 1000000\nv.index(s)", MUCH),
    "count": (LONG + "v = (t,) * 1000000\nv.count(s)", MUCH),
    "sorted texts": (LONG + "v = [s, t, u] * 100000\nsorted(v)", MUCH),
    "keys": (LONG + "v = {t: 1}\nfor _ in range(1000000): v[s]", MUCH),
    "attributes": (
        LONG + "class C: pass\nc = C()\nsetattr(c, s, 1)\nfor _ in range(1000000): hasattr(c, t)",
        MUCH,
    ),
    # keys of one hash
    "numbers": (SAME_HASH + "v = set(keys)\nfor _ in range(40): v.copy()", MUCH),
    "numbers in dicts": (SAME_HASH + "v = dict.fromkeys(keys)\nfor _ in range(40): {**v}", MUCH),
    "signs": (MINUSES + "set(keys)\nset(keys[::-1])", MUCH),
    "zeros": ("dict.fromkeys(itertools.product((0, ''), repeat=14))", MUCH),
    "methods": ("class C:\n    def f(self): pass\nv = {C().f for _ in range(20000)}", CHEAP),
    "objects": (
        "class C(int):\n    def __hash__(self): return 1\nv = {C(i) for i in range(9000)}",
        MUCH,
    ),
    # parts shared by their wholes
    "frozen sets": (
        "v = frozenset(['a'])\nfor _ in range(30):\n    v = frozenset([v, (v,)])\nfor x in v: pass",
        MUCH,
    ),
    "pairs": ("v = ()\nfor _ in range(60): v = (v, v)\nprint(v)", LARGE),
    "pairs as arguments": ("v = ()\nfor _ in range(60): v = (v, v)\nnl.shared_constant(v)", MUCH),
    "order of a set": ("v = ('x' * 1000000,) * 100000\nfor x in {v, (*v, 1)}: pass", MUCH),
    "unions": ("v = int | str\nfor _ in range(60): v = v | v", CHEAP),
    # texts that a conversion would make
    "named operands": ("v = 'x' * 1000000\n('%(a)s' * 100000) % {'a': v}", LARGE),
    "operands": ("v = 'x' * 100000\n('%s' * 1000) % ((v,) * 1000)", LARGE),
    "fields": ("('%(a)4000d' * 100000) % {'a': 1}", LARGE),
    "stars": ("('%*d' * 100000) % ((4000, 1) * 100000)", LARGE),
    "digits": ("format(1, '\\u0660' * 12 + '999999999')", LARGE),
    "templates": (
        "d = {str(i): 1 for i in range(100000)}\nstring.Template('$a' * 5000).substitute(d, a=1)",
        CHEAP,
    ),
    "names of flags": (
        "F = enum.Flag('F', [(f'M{i}', 1 << i) for i in range(2000)]"
        " + [(f'A{i}', 1 << i | 1 << 2500) for i in range(2000)])\n"
        "for j in range(5): F((1 << 2500) | ((1 << 2000) - 1) ^ (1 << j))",
        CHEAP,
    ),
    # numbers
    "shapes": ("np.zeros([1 << 8000] * 20000)", LARGE),
    "long shapes": ("np.zeros([1 << 60] * 1000000)", LARGE),
    "views": ("a.reshape((1 << 60,) * 1000000)", "bad-dimension"),
}


@pytest.mark.parametrize("name", WORK)
def test_work_is_paid_for(name: str) -> None:
    body, slug = WORK[name]
    done = verdict(body, steps=STEPS)
    assert done.slug == slug
    assert slug == CHEAP or done.line > 0


def test_the_identity_matrix_of_beta_1_has_a_limit() -> None:
    assert verdict("nl.shared_identity_matrix(30000)", beta1=True)[:2] == ("bad-shape", 1)


ORDER = """
class E: pass
def named(n):
    def f(): return n
    return f
fs = [named(i) for i in range(50)]
print([f() for f in {*fs[::-1]}] == list(range(50)))
ms = {nl.float32, nl.int32, 'b', 'a', (2, 'x'), (1, 'x'), None, 1.5, float('nan'), frozenset('ab')}
print(ms)
"""


def test_sets_have_one_order(capfd: pytest.CaptureFixture[str]) -> None:
    """Equal texts are told apart by the order of creation, not by addresses."""
    from tests.harness.metalanguage import body

    done = body(ORDER.replace("nl.float32, nl.int32, ", ""))
    assert done.printed.split("\n")[0] == "True"
    assert "None, 1.5, nan" in done.printed or done.printed.count("nan") == 1
