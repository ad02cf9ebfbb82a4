"""Python's library in the interpreter: equal to Python's own, and the names that are left out."""

from __future__ import annotations

import importlib
import pickle
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from nkic.base.limits import Limits
from nkic.interpret import library, objects
from nkic.language.hosted import NKIObject
from tests.harness.metalanguage import body, run

DATA = Path(__file__).resolve().parents[2] / "data" / "library_modules.txt"
PROGRAMS = DATA.read_text("utf-8").split("\n---\n")
HEAD = """
import math, operator, itertools, functools, string, textwrap, copy, contextlib
def t(f):
    try:
        print(repr(f()))
    except Exception as error:
        print(type(error).__name__, error)
"""


def by_python(code: str) -> str:
    printed: list[str] = []
    space: dict[str, Any] = {}
    space["print"] = lambda *v: printed.append(" ".join(map(str, v)) + "\n")
    source = "def kernel():\n" + textwrap.indent(code, "    ")
    exec(compile(source, "k.py", "exec", dont_inherit=True), space)
    space["kernel"]()
    return "".join(printed)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_print_what_they_print_under_python(program: str) -> None:
    code = f"{HEAD.strip()}\n{program}"
    done = body(code)
    assert done.slugs == []
    assert done.printed == by_python(code)


# ---- what is there ------------------------------------------------------------------------------

# Public names of Python's modules that kernels do not have, with the reason.
LEFT_OUT = {
    "collections": {
        "nothing that `dict`, `list` and `str` do not give": "UserDict UserList UserString",
    },
    "enum": {
        "checks and texts of a whole module": "global_enum global_enum_repr global_flag_repr "
        "global_str EnumCheck CONTINUOUS NAMED_FLAGS UNIQUE verify show_flag_values EnumDict",
        "nothing is pickled": "pickle_by_enum_name pickle_by_global_name",
    },
    "typing": {
        "no annotation is evaluated": "no_type_check_decorator get_protocol_members is_protocol "
        "evaluate_forward_ref",
    },
    "abc": {
        "abstractmethod does it": "abstractclassmethod abstractproperty abstractstaticmethod",
        "classes do not change": "get_cache_token update_abstractmethods",
    },
    "copy": {"no copy fails": "Error"},
    "contextlib": {
        "nothing is asynchronous": "AbstractAsyncContextManager AsyncExitStack aclosing "
        "asynccontextmanager",
        "contextmanager does it": "ContextDecorator",
    },
    "functools": {"of Python 3.14": "Placeholder"},
}
# Of these modules kernels have only some names; `typing_extensions` is `typing`.
PARTS = ("os", "sys", "logging", "__future__", "typing_extensions")


@pytest.mark.parametrize("name", sorted(set(library.modules()) - set(PARTS)))
def test_every_public_name_is_there_or_left_out_for_a_reason(name: str) -> None:
    module = importlib.import_module(name)
    public = set(getattr(module, "__all__", ())) or {n for n in dir(module) if n[0] != "_"}
    left_out = set(" ".join(LEFT_OUT.get(name, {}).values()).split())
    assert public - left_out == public & set(library.modules()[name])
    assert not left_out & set(library.modules()[name])


# Names that only annotations use, and functions of later Pythons or without a comparable value.
_UNTRIED = """
    AnyStr AsyncGenerator AsyncIterable AsyncIterator AsyncContextManager Awaitable BinaryIO
    Concatenate ContextManager Coroutine ForwardRef IO LiteralString Match Never NoReturn
    NotRequired ParamSpecArgs ParamSpecKwargs Pattern ReadOnly SupportsAbs SupportsBytes
    SupportsComplex SupportsFloat SupportsIndex SupportsRound TextIO TypeAlias TypeGuard TypeIs
    Unpack NoDefault ByteString Buffer AbstractSet TypeAliasType clear_overloads deprecated
    override EnumType WRAPPER_ASSIGNMENTS stderr imatmul is_none is_not_none fma sumprod batched
"""
UNTRIED = frozenset(_UNTRIED.split())
REFUSED = {
    "functools": ("partialmethod", "singledispatchmethod", "get_cache_token"),
    "string": ("Formatter",),
    "textwrap": ("TextWrapper", "fill", "shorten", "wrap"),
    "dataclasses": ("make_dataclass",),
    "typing": ("get_type_hints", "get_overloads", "get_args", "get_origin"),
    "contextlib": ("redirect_stdout", "redirect_stderr", "chdir", "closing"),
}


def test_every_name_is_in_a_program() -> None:
    tried = set(re.findall(r"\w+", DATA.read_text("utf-8")))
    refused = {name for names in REFUSED.values() for name in names}
    names = {name for module in library.modules().values() for name in module}
    assert sorted(names - tried - refused - UNTRIED) == []


@pytest.mark.parametrize("name", [f"{m}.{n}" for m, names in REFUSED.items() for n in names])
def test_what_is_refused_says_what_to_do(name: str) -> None:
    done = body(f"import {name.split('.')[0]}\n{name}(1)")
    assert done.slugs == ["not-in-nki"]
    assert done.said[0].help


# ---- what later Pythons have --------------------------------------------------------------------

LATER = [
    ("list(itertools.batched('abcde', 2))", "[('a', 'b'), ('c', 'd'), ('e',)]"),
    ("math.sumprod([1, 2], [3, 4])", "11"),
    ("math.sumprod([0.1] * 10, [1.0] * 10)", "1.0"),
    ("math.fma(3, 4, 5)", "17.0"),
    ("math.fma(0.1, 10, -1)", "5.551115123125783e-17"),
    ("operator.is_none(None), operator.is_not_none(None)", "True False"),
    ("math.nextafter(1.0, 2.0, steps=2)", "1.0000000000000004"),
]


@pytest.mark.parametrize(("expression", "shown"), LATER)
def test_functions_of_later_pythons(expression: str, shown: str) -> None:
    done = body(f"import itertools, math, operator\nprint({expression})")
    assert (done.printed, done.slugs) == (f"{shown}\n", [])


# ---- modules that are kernel source -------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "slug", "message", "place"),
    [
        ("d = deque()\nd.pop()", "wrong-index", "pop from an empty deque", (9, 5)),
        ("d = deque()\nd.append(1, 2)", "wrong-type", "`append` is called with the wrong", (9, 5)),
        ("functools.reduce(lambda a, b: a / b, [1, 0])", "wrong-value", "division by", (8, 35)),
        ("with suppress(KeyError):\n    [][1]", "wrong-index", "list index out of", (9, 9)),
    ],
)
def test_messages_point_at_the_users_call(
    code: str, slug: str, message: str, place: tuple[int, int]
) -> None:
    head = "import functools\nfrom collections import deque\nfrom contextlib import suppress\n"
    done = body(head + code)
    (said,) = done.said
    assert (said.code.slug, *done.places) == (slug, place)
    assert said.message.startswith(message)
    assert {label.span.path for label in said.labels} <= {"k.py"}


def test_an_instruction_is_recorded_at_the_users_calls() -> None:
    chains: list[list[int]] = []

    def note(value: Any) -> None:
        chains.append([span.line for span in objects.active().here().frames()])

    text = """
        import functools
        import nki
        @nki.jit
        def kernel(note):
            f = lambda a, b: note(a)
            f(1, 2); functools.reduce(f, [1, 2]); functools.partial(f, 1)(2)
    """
    done = run(textwrap.dedent(text), arguments={"note": objects.HostFunction("note", note)})
    assert done.slugs == []
    assert chains == [[6, 7]] * 3


def test_a_container_inside_itself_is_written_shortly() -> None:
    code = """
        from collections import ChainMap, OrderedDict, deque
        d = deque([1])
        d.append(d)
        c = ChainMap({})
        c['c'] = [c]
        print(d, [d], c)
    """
    done = body(textwrap.dedent(code))
    assert done.printed == "deque([1, [...]]) [deque([1, [...]])] ChainMap({'c': [...]})\n"


# ---- NKIObject ----------------------------------------------------------------------------------

RECORDS = [
    ("print(P(1), P(y=2), P())", "P(x=1, y=3, z=5) P(x=None, y=2, z=5) P(x=None, y=3, z=5)\n"),
    (
        "print(P(1) == P(1), P(1) == P(2), P(1) != 1, hash(P(1)) == hash(P(2)))",
        "True False True True\n",
    ),
    ("print(Q(1, 2, 3, 4), Q(w=9).w)", "Q(x=1, y=2, z=3, w=4) 9\n"),
    ("print(D(7), D(7) == D(7), D())", "D(a=7, b=None, c=2) True D(a=None, b=None, c=2)\n"),
    ("print(I(3).n, I(3).m)", "6 made\n"),
    ("print(S(2))", "S(x=2, y=20, z=5)\n"),
]
CLASSES = """
from dataclasses import dataclass
from typing import ClassVar
class P(nl.NKIObject):
    x: int
    y: int = 3
    z = 5
    shared: ClassVar[int] = 1
class Q(P):
    w: int = 8
@dataclass
class D(nl.NKIObject):
    a: int
    b: list
    c = 2
class I(nl.NKIObject):
    n: int
    def __init__(self, n):
        self.n = n * 2
        self.m = 'made'
class S(P):
    def __post_init__(self):
        self.y = self.x * 10
"""


@pytest.mark.parametrize(("code", "printed"), RECORDS)
def test_fields_of_nki_objects(code: str, printed: str) -> None:
    done = body(f"{CLASSES.strip()}\n{code}")
    assert done.slugs == []
    assert done.printed.replace("kernel.<locals>.", "") == printed


WRONG_CALLS = [
    ("P(1, why=2)", "has no field `why`"),
    ("P(1, 2, 3, 4)", "takes 3 values, and 4 were given"),
    ("P(1, x=1)", "two values for its field `x`"),
]


@pytest.mark.parametrize(("call", "text"), WRONG_CALLS)
def test_a_wrong_call_of_an_nki_object_is_explained_and_may_be_caught(call: str, text: str) -> None:
    done = body(f"{CLASSES.strip()}\n{call}")
    assert done.slugs == ["wrong-call"]
    assert text in done.said[0].message
    caught = body(f"{CLASSES.strip()}\ntry:\n    {call}\nexcept TypeError as e:\n    print(e)")
    assert caught.slugs == []
    assert text in caught.printed


@pytest.mark.parametrize(("call", "text"), WRONG_CALLS)
def test_python_raises_the_same_as_a_type_error(call: str, text: str) -> None:
    class P(NKIObject):
        x: int
        y: int = 3
        z = 5

    with pytest.raises(TypeError, match=text) as caught:
        eval(call, {"P": P})
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


# ---- limits and doors ---------------------------------------------------------------------------

BOMBS = [
    "list(itertools.count())",
    "list(itertools.repeat(1))",
    "sum(itertools.cycle([1]))",
    "collections.deque(itertools.count())",
    "collections.Counter(itertools.count())",
    "collections.deque([1] * 1000) * 100000",
    "list(itertools.product(range(1000), repeat=1000))",
    "itertools.product([1], repeat=10 ** 9)",
    "itertools.tee([1], 10 ** 9)",
    "list(itertools.permutations(range(12)))",
    "list(itertools.combinations(range(60), 30))",
    "next(itertools.combinations_with_replacement('ab', 10 ** 9))",
    "next(itertools.islice(itertools.count(), 10 ** 10, None))",
    "list(itertools.zip_longest(itertools.count(), [1]))",
    "next(itertools.batched(itertools.count(), 10 ** 9))",
    "list(itertools.accumulate(itertools.repeat(2), lambda a, b: a * a))",
    "math.factorial(10 ** 6)",
    "math.factorial(10 ** 100)",
    "math.comb(10 ** 6, 5 * 10 ** 5)",
    "math.perm(10 ** 6, 10 ** 5)",
    "math.prod([2 ** 1000] * 100)",
    "math.lcm(*[2 ** 4000 - n for n in range(1, 9, 2)])",
    "math.nextafter(0.0, 1.0, steps=10 ** 12)",
    "functools.reduce(lambda a, b: a + a, range(100), [1])",
    "functools.reduce(lambda f, n: functools.partial(f), range(10 ** 5), print)(1)",
    "functools.partial(max, *range(300))",
    "string.Template('$x' * 1000).substitute(x='y' * 10 ** 5)",
    "textwrap.indent('a\\n' * 1000, 'b' * 10 ** 5)",
    "textwrap.dedent((' ' * 1000 + 'a\\n') * 10 ** 5)",
    "operator.mul([0], 10 ** 9)",
    "operator.pow(10, 10 ** 6)",
    "operator.lshift(1, 10 ** 9)",
    "list(collections.Counter(a=10 ** 12).elements())",
    "copy.deepcopy(functools.reduce(lambda a, b: [a], range(10 ** 5), []))",
    "copy.deepcopy([[0] * 10 ** 5 for _ in range(200)])",
]


@pytest.mark.parametrize("bomb", BOMBS)
def test_what_would_not_end_or_not_fit_ends_at_a_limit(bomb: str) -> None:
    imports = "import collections, copy, functools, itertools, math, operator, string, textwrap"
    done = body(f"{imports}\n{bomb}", limits=Limits(steps=3_000_000))
    assert done.slugs and set(done.slugs) <= {"runaway", "too-large", "too-deep"}


@pytest.mark.parametrize(
    "code",
    [
        "dataclass(frozen=True)(nl.NKIObject)",
        "dataclass(int)",
        "functools.total_ordering(nl.NKIObject)",
        "enum.unique(enum.Enum)",
        "dataclass(collections.deque)",
        "nl.NKIObject.x = 1",
        "enum.Enum.name = 1",
        "collections.deque.append = 1",
    ],
)
def test_nothing_of_ours_can_be_changed(code: str) -> None:
    head = "import collections, enum, functools\nfrom dataclasses import dataclass\n"
    assert body(head + code).slugs == ["hidden-attribute"]


@pytest.mark.parametrize(
    "code",
    [
        "os.environ.x = 1",
        "os.environ['x'] = 1",
        "dataclasses.MISSING.x = 1",
        "functools.lru_cache(print).x = 1",
    ],
)
def test_objects_that_evaluations_share_take_no_attributes(code: str) -> None:
    done = body(f"import dataclasses, functools, os\n{code}")
    assert done.slugs and done.slugs[0] in ("unknown-attribute", "wrong-type", "hidden-attribute")


def test_what_an_object_keeps_for_itself_has_no_name() -> None:
    code = "from functools import cache\nprint(hasattr(cache(print), '_state'))"
    assert body(code).printed == "False\n"
