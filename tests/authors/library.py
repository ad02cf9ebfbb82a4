"""What authors use of Python's library."""

import abc
import copy
import functools
import itertools
import math
import operator
import re
import string
import typing
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from typing import Any, Callable, Generic, Optional, Protocol, TypeVar, Union

import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl
from nki.language import NKIObject

COUNT = 0
TABLE = {"gelu": nl.gelu, "exp": nl.exp}
DTYPES = [nl.float32, nl.bfloat16]
T = TypeVar("T")


def finish(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=a)
    return out


def bump():
    global COUNT
    COUNT += 1
    return COUNT


@nki.jit
def globals_(a):
    print(bump() - bump(), sorted(TABLE), len(DTYPES))
    return finish(a)


class Base(abc.ABC):
    registry = []

    def __init_subclass__(cls, **kw):
        super().__init_subclass__()
        cls.registry.append((cls.__name__, kw))

    @abc.abstractmethod
    def run(self): ...

    @property
    def name(self):
        return type(self).__name__

    def __str__(self):
        return f"{self.name}!"


class Left(Base, tag=1):
    def run(self):
        return ["left"]


class Right(Base):
    def run(self):
        return ["right"]


class Both(Left, Right):
    __slots__ = ()

    def run(self):
        return super().run() + Right.run(self) + super(Left, self).run()


@nki.jit
def inheritance_(a):
    b = Both()
    print(
        b.run(),
        [c.__name__ for c in Both.__mro__],
        b,
        isinstance(b, Right),
        issubclass(Both, Base),
        Base.registry,
    )
    try:
        Base()
    except TypeError as e:
        print("abstract", str(e)[:40])
    print(
        type(b) is Both,
        b.__class__.__name__,
        hasattr(b, "nope"),
        getattr(b, "nope", 3),
        callable(b.run),
    )
    return finish(a)


class Stack(Generic[T]):
    limit: int = 3

    def __init__(self) -> None:
        self.items: list[T] = []

    def push(self, item: T) -> "Stack[T]":
        self.items.append(item)
        return self

    def __class_getitem__(cls, item):
        return cls


class HasRun(Protocol):
    def run(self) -> int: ...


@nki.jit
def typing_(a):
    x: Optional[int] = None
    y: "Union[int, str]" = 3
    s = Stack[int]().push(1).push(2)
    z = typing.cast(int, "q")

    def f(v: Callable[..., int] | None = None, *args: Any, **kw: Any) -> list[dict[str, int]]:
        return [{"a": 1}]

    print(x, y, s.items, z, f(), typing.TYPE_CHECKING, Stack.limit)
    return finish(a)


@nki.jit
def generators_(a):
    def chunks(n, size):
        start = 0
        while start < n:
            got = yield start, min(start + size, n)
            if got:
                print("got", got)
            start += size
        return "end"

    def outer():
        r = yield from chunks(5, 2)
        print("r", r)

    print(list(outer()))
    g = chunks(10, 4)
    print(next(g), g.send("x"), next(g, None), next(g, None))
    print(sum(x * x for x in range(5)), list(itertools.islice(itertools.count(3, 2), 3)))

    def closing():
        try:
            yield 1
            yield 2
        finally:
            print("closed")

    g = closing()
    next(g)
    g.close()
    g = closing()
    next(g)
    try:
        g.throw(ValueError("in"))
    except ValueError as e:
        print(repr(e))
    print({k: v for k, v in zip("abc", itertools.count())}, *(i for i in range(3)), sep="-")
    return finish(a)


@nki.jit
def itertools_(a):
    print(list(itertools.product(range(2), "ab")), list(itertools.chain([1], (2,), {3: 4})))
    print(list(itertools.accumulate([1, 2, 3], operator.mul)), list(itertools.pairwise(range(4))))
    print(
        [(k, list(v)) for k, v in itertools.groupby("aab")],
        list(itertools.zip_longest([1, 2], [3], fillvalue=0)),
    )
    print(
        list(itertools.starmap(pow, [(2, 3)])),
        list(itertools.takewhile(lambda v: v < 3, range(9))),
        list(itertools.compress("abc", [1, 0, 1])),
    )
    print(
        list(itertools.combinations(range(3), 2)),
        list(itertools.permutations("ab")),
        [*itertools.repeat(1, 2)],
    )
    return finish(a)


@nki.jit
def functools_(a):
    add = functools.partial(operator.add, 3)
    print(
        add(4),
        functools.reduce(operator.mul, [1, 2, 3], 10),
        functools.partial(sorted, reverse=True)([1, 3, 2]),
    )
    calls = []

    @functools.lru_cache(maxsize=None)
    def fib(n):
        calls.append(n)
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    print(fib(20), len(calls), fib.cache_info())

    @functools.singledispatch
    def show(v):
        return "any"

    @show.register(int)
    def _(v):
        return "int"

    @show.register(str)
    def _(v):
        return "str"

    print(show(1), show("s"), show(2.0))

    @functools.total_ordering
    class V:
        def __init__(self, n):
            self.n = n

        def __eq__(self, o):
            return self.n == o.n

        def __lt__(self, o):
            return self.n < o.n

    print(
        V(1) <= V(2), V(3) >= V(4), sorted([3, 1, 2], key=functools.cmp_to_key(lambda x, y: y - x))
    )

    class M:
        def m(self, k, v):
            return k, v

    return finish(a)


@nki.jit
def collections_(a):
    d = defaultdict(list)
    d["x"].append(1)
    c = Counter("abracadabra")
    q = deque([1, 2, 3], maxlen=3)
    q.append(4)
    q.rotate(1)
    o = OrderedDict(a=1, b=2)
    o.move_to_end("a")
    m = ChainMap({"a": 1}, {"a": 2, "b": 3})
    print(
        d,
        dict(d),
        c.most_common(2),
        c["z"],
        q,
        q[0],
        o,
        list(o),
        m["b"],
        dict(m),
        c + Counter("a"),
        c - Counter("aaab"),
    )
    q.popleft()
    q.extendleft("xy")
    print(
        list(q),
        len(q),
        {1, 2} ^ {2, 3},
        frozenset("ab") == {"a", "b"},
        dict.fromkeys("ab", 0),
        {**o, "z": 1} | {"y": 2},
    )
    e = {"b": 1, "a": 2}
    print(
        sorted(e.items(), key=lambda kv: kv[1]),
        max(e, key=e.get),
        min(e.values()),
        list(reversed(e)),
        e.popitem(),
        e.keys() & {"b"},
    )
    l = [3, 1, 2]
    l.sort(reverse=True)
    l[1:2] = [9, 9]
    del l[::2]
    print(
        l,
        [0] * 3,
        [1, 2] + [3],
        l.index(9),
        (1, 2) * 2,
        sorted("bca"),
        slice(1, 5, 2).indices(4),
        [1, 2, 3][slice(None, None, -1)],
    )
    return finish(a)


@nki.jit
def contexts_(a):
    @contextmanager
    def scope(name):
        print("in", name)
        try:
            yield name.upper()
        except KeyError as e:
            print("key", e)
        finally:
            print("out", name)

    with scope("a") as x, scope("b") as y:
        print(x, y)
    with scope("k"):
        raise KeyError("q")
    with ExitStack() as st:
        st.enter_context(scope("s"))
        st.callback(print, "cb")
    with suppress(ZeroDivisionError):
        1 / 0
    with nullcontext(5) as n:
        print(n)

    def early():
        with scope("e"):
            return 1

    print(early())
    for i in range(2):
        with scope(str(i)):
            if i == 0:
                continue
            break
    return finish(a)


@nki.jit
def errors_(a):
    class TileError(ValueError):
        def __init__(self, n, **kw):
            super().__init__(f"bad {n}")
            self.n = n

    def f(n):
        try:
            if n == 0:
                raise TileError(n)
            if n == 1:
                return [][1]
            if n == 2:
                return {}["k"]
            if n == 3:
                return 1 // 0
            if n == 5:
                return int("q")
            if n == 6:
                return "a" + 1
            if n == 7:
                return 1
            if n == 8:
                return (1, 2, 3)[5]
            if n == 9:
                a, b = 1, 2, 3
            if n == 10:
                assert n == 11, f"n is {n}"
            if n == 11:
                return len(3)
            if n == 14:
                return [1][1.0]
            if n == 15:
                return 3()
            if n == 16:
                return {[]: 1}
            if n == 17:
                return 3 < "a"
            if n == 18:
                return next(iter([]))
            if n == 19:
                raise NotImplementedError
            if n == 20:
                return int("1") + float("x")
            if n == 21:
                return "{}".format()
            if n == 22:
                return [].pop()
            if n == 24:
                return math.sqrt(-1)
            if n == 25:
                return sum("ab")
            if n == 26:
                return list(zip([1], [], strict=True))
            if n == 27:
                (a,) = []
            if n == 28:
                return -"a"
            if n == 29:
                return range(0, 1, 0)
            if n == 30:
                return chr(-1)
        except TileError as e:
            return "T", e.n, str(e), e.args
        except (LookupError, ArithmeticError) as e:
            return type(e).__name__, str(e)
        except Exception as e:
            return type(e).__name__, str(e)
        else:
            return "else"
        finally:
            if n == 3:
                print("finally")

    for n in range(32):
        print(n, f(n))
    try:
        try:
            1 / 0
        except ZeroDivisionError as e:
            raise ValueError("outer") from e
    except ValueError as e:
        print(repr(e.__cause__), e.__context__ is e.__cause__)
    return finish(a)


@nki.jit
def strings_(a):
    print(
        string.ascii_lowercase[:3],
        string.Template("$x y").substitute(x=1),
        "a b".title(),
        "AbC".swapcase(),
        "x=1;y=2".split(";"),
        "  q ".strip(),
        "abc".find("c"),
        "abcabc".rindex("b"),
        "a\nb".splitlines(),
        "é".encode(),
        b"ab"[0],
        "abc" > "abd",
        "%s" % (1,),
        "ab".startswith(("a", "x")),
        "1,2".replace(",", ";"),
        "q".isalpha(),
        ord("a"),
        chr(98),
        "abc".removeprefix("a"),
    )
    return finish(a)


@nki.jit
def mathy_(a):
    print(
        math.ceil(7 / 2),
        math.log2(8),
        math.sqrt(2),
        math.gcd(12, 18),
        math.inf,
        math.isclose(0.1 + 0.2, 0.3),
        math.prod([2, 3]),
        -(-7 // 2),
        7 % -3,
        divmod(-7, 2),
        round(2.5),
        round(-1.55, 1),
        2**-1,
        pow(3, -1, 7),
        int(3.9),
        int("ff", 16),
        bin(5),
        hex(255),
        0x10,
        1_000,
        (5).bit_length(),
        abs(-3),
        5 // 2.0,
        float("1e3"),
        (0.5).as_integer_ratio(),
        (3.0).is_integer(),
        math.floor(-0.5),
        math.copysign(1, -0.0),
        math.fsum([0.1] * 10),
        sum([0.1] * 10),
        min(3, 1, 2),
        max([1, 5], default=0),
        bool([]),
        not 3,
        3 and 4,
        0 or "x",
        True + True,
        ~5,
        6 ^ 3,
        1 << 40,
    )
    print(np.prod([2, 3]), np.ceil(2.5), np.pi, np.sqrt(2.0), np.iinfo(np.int32).max, np.log2(8))
    return finish(a)
