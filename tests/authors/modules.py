"""What stands on module level."""

import functools, contextlib, dataclasses, itertools, math, collections, operator, enum, abc, typing, copy
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl


def out_of(t):
    o = nl.ndarray(t.shape, dtype=t.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=o, src=t)
    return o


@functools.lru_cache(maxsize=None)
def plan(n):
    return tuple(range(0, n, 16))


@functools.cache
def plan2(n):
    return n * 2


@functools.singledispatch
def kind(x):
    return "any"


@kind.register(int)
def _(x):
    return "int"


add3 = functools.partial(operator.add, 3)
Size = collections.namedtuple("Size", ["p", "f"])
TABLE = {k: v for v, k in enumerate("abc")}
GETTER = operator.itemgetter(1)
counter = itertools.count(5)
LIST = [1, 2]
LIST.append(3)
for _i in range(3):
    LIST.append(_i * 10)
if len(LIST) > 3:
    MODE = "long"
else:
    MODE = "short"
try:
    import not_there as nt_
except ImportError:
    nt_ = None
with contextlib.suppress(KeyError):
    TABLE["zz"]
assert MODE == "long"
X = Y = 3
(A1, B1), C1 = (1, 2), 3
lam = lambda x, *, k=2: x * k


@contextlib.contextmanager
def region(name):
    print("in", name)
    yield 5
    print("out", name)


class Deco:
    def __init__(self, f):
        functools.update_wrapper(self, f)
        self.f = f

    def __call__(self, *a):
        return self.f(*a) + 1


@Deco
def seven():
    return 7


class Single:
    _inst = None

    def __new__(cls):
        if cls._inst is None:
            cls._inst = super().__new__(cls)
        return cls._inst


INST = Single()


class Desc:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, o, t=None):
        return self if o is None else getattr(o, self.name, 0)

    def __set__(self, o, v):
        if v < 0:
            raise ValueError(f"{self.name} < 0")
        setattr(o, self.name, v)


class Layer:
    n = Desc()

    def __init__(self, n):
        self.n = n

    def __getattr__(self, name):
        if name.startswith("get_"):
            return lambda: (name[4:], self.n)
        raise AttributeError(name)


class Ab(abc.ABC):
    @property
    @abc.abstractmethod
    def v(self): ...


class Ac(Ab):
    @property
    def v(self):
        return 9

    @v.setter
    def v(self, x):
        print("set", x)


@dataclasses.dataclass
class Node:
    val: int
    kids: list["Node"] = dataclasses.field(default_factory=list)

    def __iter__(self):
        yield self.val
        for k in self.kids:
            yield from k

    @classmethod
    def make(cls, depth):
        return cls(depth, [cls.make(depth - 1) for _ in range(2)] if depth else [])


@dataclasses.dataclass(kw_only=True, slots=True)
class Kw:
    a: int = 1
    b: dataclasses.InitVar[int] = 2
    c: int = dataclasses.field(init=False, default=0)

    def __post_init__(self, b):
        self.c = b * 10


class Vec(tuple):
    def __new__(cls, *v):
        return super().__new__(cls, v)

    def __add__(self, o):
        return Vec(*(x + y for x, y in zip(self, o)))


class MyDict(dict):
    def __missing__(self, k):
        return f"<{k}>"


class MyInt(int):
    def __repr__(self):
        return f"MyInt({int(self)})"


class MyList(list):
    def second(self):
        return self[1]


class StrE(str, enum.Enum):
    A = "aa"
    B = "bb"


class AutoE(enum.StrEnum):
    FOO = enum.auto()


@nki.jit
def one_(a):
    print(
        plan(64),
        plan2(3),
        plan.cache_info().misses,
        kind(1),
        kind("s"),
        add3(4),
        Size(1, 2),
        TABLE,
        GETTER([1, 2]),
        next(counter),
        next(counter),
        LIST,
        MODE,
        nt_,
        X,
        Y,
        A1,
        B1,
        C1,
        lam(3),
        lam(3, k=5),
        seven(),
        seven.__name__,
    )
    with region("r") as r:
        print(r)
    print(Single() is INST, Layer(3).n, Layer(4).get_foo(), hasattr(Layer(1), "zip"))
    try:
        Layer(-1)
    except ValueError as e:
        print(e)
    x = Ac()
    x.v = 4
    print(x.v, sum(Node.make(3)), len(list(Node.make(2))))
    print(
        Kw(a=3),
        Kw(b=5).c,
        Vec(1, 2) + Vec(3, 4),
        MyDict(a=1)["q"],
        MyDict(a=1),
        MyInt(3),
        MyInt(3) + 1,
        [MyInt(4)],
        MyList([1, 2]).second(),
        MyList("ab") + ["c"],
        isinstance(MyInt(1), int),
        f"{MyInt(5):03d}",
        StrE.A == "aa",
        StrE.A.upper(),
        f"{StrE.A}",
        AutoE.FOO,
        str(AutoE.FOO),
        StrE("bb"),
    )
    return out_of(nl.load(a))


@nki.jit
def two_(a):
    d = {}
    for k, v in (("x", 1), ("y", 2), ("x", 3)):
        d.setdefault(k, []).append(v)
    print(
        d,
        {**d, "z": 0},
        {k: sum(v) for k, v in d.items() if len(v) > 1},
        dict(sorted(d.items(), reverse=True)),
    )
    s = set()
    s.add(3)
    s |= {1, 2}
    s.discard(9)
    print(sorted(s), s >= {1}, s.isdisjoint({5}), len(s ^ {1}), min(s), frozenset(s) == s)
    m = [[0] * 3 for _ in range(2)]
    m[1][2] = 5
    print(
        m,
        [*zip(*m)],
        [x for r in m for x in r if x],
        sum(map(sum, m)),
        any(5 in r for r in m),
        list(map(list, zip(*m))),
    )
    b = [1, 2, 3, 4, 5]
    b[1:4:2] = [9, 8]
    del b[0]
    b.insert(1, 7)
    b.reverse()
    print(
        b,
        b.index(8),
        b[::-1][:2],
        b * 2,
        b == [5, 8, 3, 7, 9],
        b < [6],
        b.copy() is b,
        sorted(b, key=lambda v: -v),
        [b.pop(0) for _ in range(2)],
    )
    print(
        "%-6s|%+.2e|%03d|%s" % ("ab", 12345.678, 7, [1]),
        "{:>{w}.{p}f}|{!r}|{a[0]}|{b.real}".format(3.14159, "q", w=8, p=2, a=[1], b=2),
        f"{{x}} {3!r:>5} {'ab'} {d['x'][0]:>3}",
    )
    print(
        1 if a.shape[0] > 3 else 2,
        not a.shape,
        1 < 2 < 3 != 4,
        3 in range(0, 10, 3),
        range(3)[1],
        range(10)[2:5],
        len(range(0, 7, 2)),
        list(reversed(range(3))),
        range(3) == range(0, 3),
        5 // 2 * 2,
        -5 % 3,
        2**3**2,
        ~3 & 7,
        7 >> 1 | 8,
        0b11 ^ 1,
        True is True,
        None or 0,
    )
    print(
        int(7.9),
        float("2.5"),
        str(3) + "4",
        bool("0"),
        list("abc"),
        tuple([1]),
        dict([("a", 1)]),
        dict(zip("ab", (1, 2))),
        round(3.14159, 3),
        round(5, -1),
        abs(-2.5),
        divmod(7, 3),
        max("abc"),
        max([3, 1], key=lambda v: -v),
        min((), default=4),
        sum([[1], [2]], []),
        all([]),
        chr(65),
        hex(10),
        isinstance(3, (int, str)),
        callable(print),
        type(3) is int,
        repr("a'b"),
        ascii("é"),
        list(filter(lambda v: v % 2, range(5))),
        sorted(["b", "A"], key=str.lower),
        next((v for v in [1, 2] if v > 1), None),
        list(enumerate("ab", 1)),
        iter([1]).__next__(),
        pow(2, 5, 7),
        "a" * 3,
        "abc"[1:],
        "abc"[-1],
        "a,b".split(","),
        " x ".strip(),
        "x".join(["1", "2"]),
        "aXb".lower(),
        "abc".replace("b", "_"),
        "a1".isalnum(),
        "12".isdigit(),
        "abc".endswith("c"),
        "a{}b".format(1),
        "ab".center(6, "*"),
        "k=v".partition("="),
        "3".zfill(3),
        "a b c".rsplit(None, 1),
        "x".encode().hex(),
        "tab\t|".expandtabs(4),
    )

    def f(a, /, b, *c, d=4, **e):
        return a, b, c, d, e

    print(
        f(1, 2),
        f(1, b=2),
        f(1, 2, 3, d=5, z=6),
        f(*[1, 2], **{"d": 0}),
        (lambda *x, **y: (x, y))(1, k=2),
    )
    i = 0
    for i in range(3):
        if i == 1:
            continue
        for j in range(3):
            if j == 1:
                break
        else:
            print("never")
    else:
        print("else", i, j)
    while i:
        i -= 1
    else:
        print("w", i)
    g = (x * 2 for x in range(3))
    print(next(g), list(g), list(g))
    try:
        next(g)
    except StopIteration:
        print("stop")
    c = copy.deepcopy(m)
    c[0][0] = 1
    e = copy.copy(m)
    e[0][0] = 2
    print(m, c, e[1] is m[1], copy.deepcopy((1, [2])))
    del c
    n = None
    try:
        c
    except (NameError, UnboundLocalError):
        print("gone")
    print(
        math.ceil(-0.5),
        math.log(8, 2),
        math.hypot(3, 4),
        math.e,
        math.isnan(float("nan")),
        math.comb(5, 2),
        math.lcm(4, 6),
        math.trunc(-1.5),
        math.fmod(-7, 3),
        math.pow(2, 3),
        math.exp(0),
        math.modf(1.25),
        math.frexp(8.0),
        math.dist((0, 0), (3, 4)),
    )
    return out_of(nl.load(a))
