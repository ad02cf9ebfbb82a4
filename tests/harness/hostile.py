"""Kernels that try to break out of the compiler, to exhaust it or to crash it, drawn by hypothesis.

A program is a kernel whose body, and the file around it, contains a few attempts. Each family of
attempts tests one possible weakness. No attempt is realistic NKI, but all are legal Python.
"""

from hypothesis import strategies as st

Lines = st.SearchStrategy[list[str]]

HEAD = """\
# /// nkic
# kernel = "k"
# [args]
# a = "float32[128, 16]"
# ///
import collections, dataclasses, enum, functools, itertools, math, operator, string, typing
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl
from collections import namedtuple
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

"""
KERNEL = """\
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=a)
    nisa.dma_copy(dst=out, src=t)
    return out
"""
COMMAND = "touch pwned"
PAYLOAD = f'__import__("os").system("{COMMAND}")'
# A name that is executed if a library inserts names into source text.
FIELD = f"x,)\\n{PAYLOAD}\\ndef g(other,self):\\n if 1:\\n  if 1:\\n   return (self.x"


def words(text: str) -> st.SearchStrategy[str]:
    return st.sampled_from(text.split())


ATTRIBUTES = words("""
    __class__ __bases__ __base__ __mro__ __subclasses__ __dict__ __globals__ __builtins__ __code__
    __closure__ __defaults__ __func__ __self__ __wrapped__ __module__ __init__ __new__ __call__
    __getattribute__ __getattr__ __setattr__ __reduce__ __reduce_ex__ __init_subclass__ __loader__
    __class_getitem__ __annotations__ __match_args__ __mro_entries__ __prepare__ __del__ __spec__
    __traceback__ __context__ __cause__ tb_frame tb_next f_globals f_locals f_builtins f_back
    f_code gi_frame gi_code cr_frame ag_frame co_consts co_code with_traceback mro func args
    cell_contents __get__ __set_name__ __dataclass_fields__ _fields _make __members__ __file__
    sys os builtins modules _module system popen environ path core ctypeslib lib testing
""")
VALUES = words("""
    a nl nki nisa k nl.load nl.NKIObject nl.float32 dataclasses np np.float32 functools itertools
    operator enum typing math collections string print len int type object str dict list getattr
    isinstance super property Exception Exception() C C() B f f() E E.A P P(1) D D(1) g (x:=1) 1
    1.5 '' b'' [] () {} {1} None ... NotImplemented nl.sbuf nisa.dma_copy a.shape a.dtype range(3)
    iter([]) zip() map(f,[]) functools.partial(f) operator.add math.pi string.Formatter() nl.ds
    (lambda:0) (y~for~y~in~[1]) [].append ''.join {}.get type(f) type(C) type(a) type(nl)
    collections.Counter() typing.Any np.zeros(2) dataclass namedtuple Enum NamedTuple field
""").map(lambda text: text.replace("~", " "))
NAMES = words("""
    __class__ __mro_entries__ __annotations__ __match_args__ __slots__ __dict__ __globals__
    __builtins__ __import__ __build_class__ __name__ __init_subclass__ __prepare__ __metaclass__
    __debug__ __getattr__ __set_name__ __post_init__ __instancecheck__ __eq__ __hash__ __bool__
    __len__ __iter__ __str__ __repr__ __format__ __index__ __enter__ __exit__ __getitem__ __add__
    __missing__ _ print len type nl nki a k os sys import_ self cls _member_map_ _value_ _missing_
    _generate_next_value_ __getstate__ __order__ _ignore_
""")
# Objects of a kernel that the attempts refer to.
OWN = """\
    class C(nl.NKIObject):
        x = 1
        def f(self): return self
    class B: pass
    class E(Enum):
        A = 1
    class P(NamedTuple):
        a: int
    @dataclass
    class D:
        a: int
    def f(*args, **more): return args
    g = (x for x in [1])
"""


def forms(*texts: str) -> st.SearchStrategy[list[str]]:
    """Draw one of the forms and fill its blanks.

    <V> is a value, <A> an attribute, <N> and <M> are names, <H> is a huge number, <S> an
    attribute's name in two parts, <P> a payload, <F> a payload as the name of a field.
    """
    return st.builds(_filled, st.sampled_from(texts), VALUES, ATTRIBUTES, NAMES, HUGE, NAMES)


def _filled(form: str, value: str, attribute: str, name: str, huge: str, other: str) -> list[str]:
    blanks = {"<V>": value, "<A>": attribute, "<N>": name, "<H>": huge, "<M>": other}
    blanks |= {"<P>": PAYLOAD, "<F>": FIELD, "<S>": f"{attribute[:3]}' + '{attribute[3:]}"}
    for blank, text in blanks.items():
        form = form.replace(blank, text)
    return form.replace("\t", "    ").split("\n")


HUGE = st.one_of(
    st.integers(3, 40).map(lambda n: f"10**{n}"),
    st.integers(20, 2000).map(lambda n: f"(1 << {n})"),
    st.sampled_from(["-1", "2**63", "2**31 - 1", "2**61 - 1", "-2**63", "10**10**3", "1e308"]),
)

FAMILIES: dict[str, Lines] = {
    "attributes": forms(
        "<V>.<A>",
        "<V>.<A>.<A>",
        "<V>.<A>()",
        "<V>.<A>[0].<A>",
        "x = <V>.<A>\nx.system('touch pwned')",
        "<V>.<A> = <V>",
        "del <V>.<A>",
        "<V>.<A>['__builtins__']['__import__']('os').system('touch pwned')",
        "for <V>.<A> in [1]: pass",
        "with <V> as <V>.<A>: pass",
    ),
    "computed names": forms(
        "getattr(<V>, '<A>')",
        "getattr(<V>, '<S>')",
        "getattr(<V>, '<S>', None)('os')",
        "hasattr(<V>, '<A>')",
        "setattr(<V>, '<A>', <V>)",
        "setattr(<V>, '<S>', <V>)",
        "delattr(<V>, '<S>')",
        "object.__getattribute__(<V>, '<A>')",
        "operator.attrgetter('<A>.<A>')(<V>)",
        "operator.methodcaller('<A>')(<V>)",
        "list(map(getattr, [<V>], ['<A>']))",
        "functools.reduce(getattr, ['<A>', '<A>'], <V>)",
        "functools.partial(getattr, <V>)('<A>')",
        "sorted([<V>], key=operator.attrgetter('<A>'))",
        "replace(<V>, **{'<A>': <V>})",
    ),
    "formats": forms(
        "'{0.<A>}'.format(<V>)",
        "'{0.<A>.<A>}'.format(<V>)",
        "'{0[<A>].<A>}'.format({'<A>': <V>})",
        "'{x.<A>}'.format_map({'x': <V>})",
        "str.format('{0.<A>}', <V>)",
        "f'{<V>.<A>!r:>10}'",
        "string.Formatter().format('{0.<A>}', <V>)",
        "'%(<A>)s' % {'<A>': <V>}",
        "format(<V>, '<A>')",
        "f'{<V>:{<V>}}'",
        "print(<V>, sep=<V>, end=<V>, file=<V>)",
    ),
    "patterns": forms(
        "match <V>:\n\tcase object(<A>=x): x('os')",
        "match <V>:\n\tcase {'<A>': <N>, **<M>}: pass",
        "match <V>:\n\tcase <V>: pass",
        "match <V>:\n\tcase <N>: pass",
        "match <V>:\n\tcase C(x) | B(x): pass",
        "class X(C):\n\t__match_args__ = ('<A>', '<A>')\nmatch <V>:\n\tcase X(x, y): pass",
        "class X(C):\n\tmatch <V>:\n\t\tcase <N>: pass",
        "class X(C):\n\tmatch {'<F>': 1}:\n\t\tcase <N>: pass\ndataclass(init=False)(X)",
        "class X:\n\tmatch (lambda *_: (type(f),)):\n\t\tcase <N>: pass\nclass Y(X()): pass",
        "match <V>:\n\tcase [<N>, *<M>] as x: pass",
    ),
    "generated classes": forms(
        "dataclass(<V>)",
        "dataclass(frozen=True)(<V>)",
        "dataclass(**{'<A>': <V>})(C)",
        "@dataclass\nclass X:\n\t<N>: <V> = <V>",
        "@dataclass\nclass X(C):\n\t__annotations__ = {'<F>': int}",
        "class X(C): pass\nsetattr(X, '<F>', 1)\ndataclass(init=False)(X)",
        "class X(C): pass\nX.__annotations__ = {'<F>': int}\ndataclass(X)",
        "dataclasses.make_dataclass('X', ['<F>'])",
        "dataclasses.make_dataclass('<N>', [('<N>', <V>)])",
        "namedtuple('<F>', 'a')",
        "namedtuple('X', '<N> <A>')",
        "namedtuple('X', ['<F>'], rename=<V>, module=<V>)",
        "NamedTuple('X', [('<F>', int)])",
        "class X(NamedTuple):\n\t<N>: int = <V>",
        "Enum('<N>', {'<F>': 1})",
        "Enum('X', '<N> <A>')",
        "class X(Enum):\n\t<N> = <V>",
        "class X(Enum):\n\tA = <V>\n\tdef <N>(self, *a): return <V>",
        "field(default_factory=<V>)\n@dataclass\nclass X:\n\tx: int = field(default_factory=<V>)",
    ),
    "classes": forms(
        "class X(metaclass=<V>): pass",
        "class X(C, <N>=<V>): pass",
        "class X(<V>): pass",
        "class X(<V>, <V>): pass",
        "class X(C):\n\t<N> = <V>\nX() + X()",
        "class X(C):\n\tdef <N>(self, *args): return <V>\nlen(X()), str(X()), X() == 1, X()[0]",
        "class X(C):\n\tdef <N>(self, *args): return self.<N>()\nstr(X())",
        "class X(C):\n\t__slots__ = ('<A>', '<F>')",
        "class X(C):\n\tfrom os import *",
        "class X(C):\n\tglobal <N>\n\t<N> = <V>",
        "class X(C):\n\timport os as <N>",
        "class X(C):\n\tfor <N> in [<V>]: pass",
        "class X(C):\n\twith <V> as <N>: pass",
        "class X(C):\n\t(<N> := <V>)",
        "class X(C):\n\t[<N> := <V> for _ in [1]]",
        "class X(C):\n\tdef <N>(self): pass\n\t<N> = property(<N>)",
        "type(<V>)('X', (), {})",
        "type('X', (<V>,), {'<A>': <V>})()",
        "type.__call__(type, 'X', (), {})",
        "__build_class__(f, 'X')",
        "super(<V>, <V>).<A>",
        "class X(C):\n\tdef f(self): return __class__.<A>\nX().f()",
        "isinstance(1, <V>), issubclass(int, <V>)",
    ),
    "decorators": forms(
        "@<V>\ndef h(): pass",
        "@<V>\nclass X: pass",
        "@<V>.<A>\ndef h(): pass",
        "@functools.wraps(<V>)\ndef h(): pass\nh.__wrapped__.<A>",
        "@functools.lru_cache(<V>)\ndef h(x): return x\nh(<V>)",
        "@functools.cache\ndef h(): pass\nh.<A>",
        "@property\ndef h(self): pass\nh.fget.<A>",
        "@staticmethod\ndef h(self): pass\nh.__func__.<A>",
        "@functools.singledispatch\ndef h(x): pass\nh.<A>",
        "@functools.total_ordering\nclass X: pass",
        "@enum.unique\nclass X(E): pass",
        "@nki.jit\ndef h(a): return <V>\nh(a).<A>",
    ),
    "frames": forms(
        "(y for y in [1]).<A>",
        "g.gi_frame.f_back.f_globals",
        "[g := (g.gi_frame for _ in [1])]",
        "def h():\n\tyield g.gi_frame\nlist(h())",
        "def h():\n\tx = yield <V>\nh().send(None)",
        "h = (x for x in h)",
        "try: 1 / 0\nexcept Exception as e: e.__traceback__.tb_frame.f_globals",
        "try: <V>.<A>\nexcept BaseException as e: e.<A>.<A>",
        "try: raise <V>\nexcept* Exception as e: e.exceptions",
        "try:\n\ttry: 1/0\n\tfinally: <V>.<A>\nexcept: pass",
        "raise <V>",
        "raise <V> from <V>",
        "raise Exception(<V>, <V>)",
        "raise StopIteration(<V>)",
        "raise SystemExit(0)",
        "raise KeyboardInterrupt",
        "raise MemoryError",
        "assert False, <V>",
        "class X(Exception):\n\tdef __str__(self): return <V>\nraise X()",
        "class X(Exception):\n\tdef __str__(self): raise X()\nraise X()",
        "async def h(): await <V>\nh().cr_frame",
        "with <V>: pass",
    ),
    "names": forms(
        "<N>",
        "<N> = <V>",
        "global <N>\n<N> = <V>",
        "nonlocal a\na = <V>",
        "def h():\n\tnonlocal a\n\ta = <V>\nh()",
        "global nl\nnl = <V>",
        "del <N>",
        "import os as <N>\n<N>.system('touch pwned')",
        "import <N>",
        "from os import system as <N>\n<N>('touch pwned')",
        "from os import *",
        "from nki.language import *\n<N>",
        "from . import <N>",
        "from .. import *",
        "import importlib\nimportlib.import_module('os').system('touch pwned')",
        "import nkic.compiler.pipeline as p\np.<A>",
        "def <N>(): pass",
        "def h(<N>=<V>, *, <M>): pass\nh()",
        "def h(x: <V> = <V>) -> <P>: pass",
        "for <N> in [<V>]: <N>.<A>",
        "[<N> for <N> in [<V>]]",
        "(<N> := <V>)",
        "type <N> = <P>",
        "def h[T: <P>](): pass\nh()",
        "<P>",
        "eval('<P>')",
        "exec('<P>')",
        "open('pwned', 'w')",
        "compile('1', '', 'eval')",
        "breakpoint()",
        "input()",
        "globals()['<A>'], locals(), vars(<V>), dir(<V>)",
        "nl.shared_constant('/etc/passwd')",
        "nl.shared_constant('<F>')",
        "np.load('/etc/passwd'), np.save('pwned', 1), np.fromfile('/dev/zero')",
        "np.lib.format.open_memmap('pwned', 'w+')",
    ),
    "changes of nkic": forms(
        "nl.<A> = <V>",
        "nl.load = <V>",
        "nl.NKIObject.x = <V>",
        "setattr(nl, 'float32', <V>)",
        "a.shape = <V>",
        "nl.float32.name = <V>",
        "nisa.dma_copy.<A> = <V>",
        "dataclasses.dataclass = <V>",
        "dataclass(frozen=True)(nl.NKIObject)",
        "int.x = <V>",
        "type(a).<A> = <V>",
        "functools.partial.<A> = <V>",
        "E.A = <V>",
        "E._member_map_['A'] = <V>",
        "C.__bases__ = (<V>,)",
        "a.__class__ = <V>",
        "f.__code__ = (lambda: 0).__code__",
        "f.__defaults__ = (<V>,)",
        "math.pi = <V>",
    ),
    "sizes": forms(
        "[0] * <H>",
        "'a' * <H>",
        "b'a' * <H>",
        "(1,) * <H>",
        "list(range(<H>))",
        "10 ** <H>",
        "1 << <H>",
        "pow(3, <H>)",
        "pow(3, <H>, <H>)",
        "int('9' * <H>)",
        "str(1 << <H>)",
        "bytes(<H>)",
        "format(5, str(<H>))",
        "'{:{w}}'.format(1, w=<H>)",
        "f'{1:>{<H>}}'",
        "'%*d' % (<H>, 1)",
        "b'%*d' % (<H>, 1)",
        "'x'.ljust(<H>)",
        "'x'.zfill(<H>)",
        "'\\t'.expandtabs(<H>)",
        "'a'.join(['b' * 1000] * 100000)",
        "'a' * 1000000 .__str__()",
        "x = 'a' * 1000\nfor _ in range(60): x += x",
        "x = [1]\nfor _ in range(60): x = [x, x]\nx == [x, x], hash(str(x))",
        "x = [1]\nfor _ in range(60): x = x + x",
        "x = [1]\nx.append(x)\nx == [x], str(x)",
        "x = {}\nx[1] = x\nstr(x), x == dict(x)",
        "x = 'a'\nfor _ in range(40): x = x.replace('a', 'aa')",
        "{i * (2**61 - 1): 1 for i in range(20000)}",
        "set([i * (2**61 - 1) for i in range(20000)])",
        "list(itertools.product(range(100), repeat=10))",
        "list(itertools.repeat(1))",
        "sum(itertools.count())",
        "max(itertools.cycle([1]))",
        "list(zip(itertools.count(), itertools.count()))",
        "math.factorial(<H>), math.comb(<H>, 50000)",
        "np.zeros(<H>)",
        "np.zeros((1 << 20, 1 << 20))",
        "np.ones(10**6).reshape(10**6, 1) + np.ones(10**6)",
        "sorted(range(<H>))",
        "collections.Counter(range(<H>))",
        "collections.deque(range(<H>))",
        "nl.ndarray((<H>, <H>), dtype=nl.float32, buffer=nl.sbuf)",
        "nl.ndarray((128,) * 10000, dtype=nl.float32, buffer=nl.sbuf)",
        "a[<H>:<H>:<H>]",
        "a.reshape((<H>, 1))",
        "slice(<H>).indices(<H>)",
    ),
    "endless": forms(
        "while True: pass",
        "while True: x = [1]",
        "while 1: nisa.dma_copy(dst=a, src=a)",
        "for i in iter(int, 1): pass",
        "for i in itertools.count(): pass",
        "x = [1]\nfor y in x: x.append(y)",
        "def h(): return h()\nh()",
        "def h(): return [h() for _ in range(10)]\nh()",
        "def h(n): return h(n + 1) + h(n + 1)\nh(0)",
        "h = lambda h: h(h)\nh(h)",
        "class X(C):\n\tdef __getattr__(self, n): return getattr(self, n + 'x')\nX().y",
        "class X(C):\n\tdef __eq__(self, o): return self == o\nX() == X()",
        "class X(C):\n\tdef __iter__(self): return self\n\tdef __next__(self): return 1\nlist(X())",
        "class X(C):\n\tdef __len__(self): return <H>\nlen(X()), list(X())",
        "class X(C):\n\tdef __index__(self): return <H>\n[0][X()], range(X())",
        "class X(C):\n\tdef __bool__(self): return <V>\nwhile X(): pass",
        "x = iter([1])\nfor _ in range(20000): x = (y for y in x)\nnext(x)",
        "x = P\nfor _ in range(20000): x = P[x]\n{x: 1}",
        "x = f\nfor _ in range(20000): x = functools.partial(x)\nx()",
        "x = ()\nfor _ in range(20000): x = (x,)\nhash(x), str(x), x == (x,)",
        "x = Exception()\nfor _ in range(20000): x.__cause__ = y = f(x); x = y\nraise x",
        "x = {}\nfor _ in range(20000): x = {1: x}\nstr(x), dataclasses.asdict(D(x))",
        "for i in range(10**6): nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)",
    ),
}


def _nested(depth: int, form: str) -> list[str]:
    start, _, end = form.partition("<>")
    return [f"x = {start * depth}1{end * depth}"]


FAMILIES["nesting"] = st.builds(
    _nested,
    st.integers(1, 3000),
    st.sampled_from(
        ["(<>)", "[<>]", "-<>", "not <>", "f(<>)", "<>.x", "<>()", "<>[0]", "1+<>", "<>+1", "2**<>",
         "lambda: <>", "1 if 1 else <>", "{1: <>}", "[y for y in [<>]]", "(x := <>)", "<> < 1"]
    ),
)  # fmt: skip


def attempts(left_out: frozenset[str] = frozenset()) -> Lines:
    """Draw a few lines of one family."""
    return st.sampled_from(sorted(FAMILIES.keys() - left_out)).flatmap(FAMILIES.__getitem__)


def programs(left_out: frozenset[str] = frozenset()) -> st.SearchStrategy[str]:
    """Draw files with a kernel called `k`, and attempts in it and on module level."""
    some = st.lists(attempts(left_out), max_size=2)
    return st.builds(program, some, st.lists(attempts(left_out), min_size=1, max_size=3))


def program(before: list[list[str]], inside: list[list[str]]) -> str:
    """Return a file with these lines on module level and in its kernel."""
    top = "".join(f"{line}\n" for lines in before for line in lines)
    body = "".join(f"    {line}\n" for lines in inside for line in lines)
    return f"{HEAD}{top}\n\n@nki.jit\ndef k(a):\n{OWN}{body}{KERNEL}"
