"""Builtin types and functions have the values, exceptions and names of CPython's."""

import builtins as python
import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nkic.base.limits import Limits
from nkic.interpret import builtins, types
from nkic.interpret.objects import UNSET, Builtin, Class, ClassMethod, Getter
from nkic.source import bindings
from tests.harness.metalanguage import body

DATA = Path(__file__).resolve().parents[2] / "data"


def under_python(code: str) -> str:
    lines = "".join(f"    {line}\n" for line in code.strip("\n").split("\n"))
    space: dict[str, Any] = {}
    exec(f"def kernel():\n{lines}", space)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        space["kernel"]()
    return printed.getvalue()


# ---- every method -------------------------------------------------------------------------------


def sections() -> dict[str, list[str]]:
    """Return the expressions of the data file by the type that they test."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in (DATA / "builtin_types.txt").read_text(encoding="utf-8").splitlines():
        if re.fullmatch(r"\[[a-z]+\]", line):
            name = line[1:-1]
            found[name] = []
        elif line and not line.startswith("#"):
            found[name].append(line)
    return found


SECTIONS = sections()


def attempt(line: str) -> str:
    """Return a program that prints an expression's value, or the exception that it raises."""
    loose, expression = line.startswith("! "), line.removeprefix("! ")
    said = "type(e).__name__" if loose else "type(e).__name__, '|', e"
    return f"try:\n    print({expression})\nexcept Exception as e:\n    print({said})\n"


@pytest.mark.parametrize("name", SECTIONS)
def test_expressions_give_what_python_gives(name: str) -> None:
    for line in SECTIONS[name]:
        code = attempt(line)
        done = body(code)
        assert not done.said, (line, done.said)
        assert done.printed == under_python(code), line


# Public names of Python's types that kernels do not have, with the reason.
LEFT_OUT = {
    "mapping": "a view's dict as a proxy: the kernel has the dict",
    "gi_frame": "leads to the interpreter's frames",
    "gi_code": "leads to code",
    "gi_yieldfrom": "leads to what a generator waits for",
    "gi_suspended": "tells of the interpreter's own state",
}
OWNERS: list[Any] = [
    *(5, True, 2.5, "a", b"a", [], (), {}, set(), frozenset(), range(3), slice(1)),
    *({}.keys(), {}.values(), {}.items(), (n for n in [0])),
]


@pytest.mark.parametrize("owner", OWNERS, ids=lambda owner: type(owner).__name__)
def test_every_public_name_of_a_type_is_in_its_table(owner: Any) -> None:
    kinds = {cls.name: cls for cls in types.table().values()}
    cls = kinds[type(owner).__name__]
    wanted = {name for name in dir(owner) if not name.startswith("_")}
    missing = {name for name in wanted if cls.find(name) is UNSET}
    assert missing <= LEFT_OUT.keys()
    assert cls.find("nope") is UNSET


@pytest.mark.parametrize("name", ["str", "bytes", "list", "tuple", "dict", "set", "int", "float"])
def test_every_method_is_tried(name: str) -> None:
    tried = "\n".join(SECTIONS[name])
    cls = types.by_name()[name]
    public = [method for method in cls.members if not method.startswith("_")]
    assert [method for method in public if not re.search(rf"\.{method}\b", tried)] in (
        [],
        ["is_integer"],  # of integers: added in Python 3.12
    )


def test_every_function_is_tried() -> None:
    tried = "\n".join(line for lines in SECTIONS.values() for line in lines)
    own = {"setattr", "delattr"}  # statements: in the programs below
    found = [n for n in builtins.functions() if not re.search(rf"\b{n}\(", tried)]
    assert set(found) <= own


# ---- the tables ---------------------------------------------------------------------------------

# Python's names that kernels do not have, except those with advice.
NOT_THERE = {
    *("copyright", "credits", "license", "EncodingWarning", "BytesWarning"),
    *("BlockingIOError", "BrokenPipeError", "ChildProcessError", "ConnectionAbortedError"),
    *("ConnectionError", "ConnectionRefusedError", "ConnectionResetError", "FileExistsError"),
    *("InterruptedError", "IsADirectoryError", "NotADirectoryError", "PermissionError"),
    *("ProcessLookupError", "EnvironmentError", "IOError", "ImportWarning", "IndentationError"),
    *("PendingDeprecationWarning", "PythonFinalizationError", "ReferenceError"),
    *("ResourceWarning", "SyntaxWarning", "TabError", "UnicodeTranslateError"),
    *("UnicodeWarning", "BaseExceptionGroup", "ExceptionGroup", "help"),
}


def test_every_builtin_of_python_is_there_or_refused() -> None:
    wanted = {name for name in dir(python) if not name.startswith("_")}
    constants = {"None", "True", "False"}
    assert bindings.BUILTINS - constants - {"__debug__"} <= builtins.table().keys()
    unexplained = wanted - bindings.BUILTINS - bindings.REFUSED_BUILTINS.keys() - NOT_THERE
    assert unexplained <= {"_"}


def test_nothing_is_both_there_and_refused() -> None:
    assert not bindings.BUILTINS & bindings.REFUSED_BUILTINS.keys()


def reachable() -> Iterator[tuple[str, Any]]:
    """Return everything in the tables, with its path."""
    classes = {id(c): c for c in [*types.table().values(), *builtins.table().values()]}
    for value in [*classes.values()]:
        if isinstance(value, Class):
            for name, member in {**value.members, **value.extra.get("protocol", {})}.items():
                yield f"{value.name}.{name}", member
    yield from builtins.table().items()


def test_the_tables_hold_nothing_of_the_hosts() -> None:
    allowed = Builtin | Getter | Class | ClassMethod
    plain = {"Ellipsis": ..., "NotImplemented": NotImplemented, "__debug__": True}
    for place, value in reachable():
        unhashable = place.endswith(".__hash__") and value is None
        assert isinstance(value, allowed) or plain.get(place) is value or unhashable, place


# ---- programs -----------------------------------------------------------------------------------

PROGRAMS = (DATA / "builtin_programs.txt").read_text(encoding="utf-8").split("---\n")


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_programs_print_what_python_prints(number: int) -> None:
    code = PROGRAMS[number]
    done = body(code)
    assert (done.printed, done.slugs) == (under_python(code), []), code


# ---- limits -------------------------------------------------------------------------------------

BOMBS = (DATA / "builtin_bombs.txt").read_text(encoding="utf-8").split("---\n")
LIMITS = Limits(steps=1_000_000)


@pytest.mark.parametrize("number", range(len(BOMBS)))
def test_what_takes_for_ever_ends_at_a_limit(number: int) -> None:
    done = body(BOMBS[number], limits=LIMITS)
    assert done.slugs[:1] in (["runaway"], ["too-large"], ["too-deep"]), BOMBS[number]


@pytest.mark.parametrize(
    "code",
    [
        "getattr(lambda: 1, '__globals__')",
        "getattr(lambda: 1, '__code__')",
        "getattr((n for n in []), 'gi_frame')",
        "'{0.__globals__}'.format(lambda: 1)",
        "'{0.gi_frame.f_back}'.format(n for n in [])",
        "object.__getattribute__(len, '__self__')",
        "object.__getattribute__([], '__reduce__')",
        "getattr(int, '__subclasses__')",
        "getattr(object, '__dict__')",
        "setattr(int, 'x', 5)",
        "setattr(len, '__name__', 'x')",
        "class A: pass\nsetattr(A(), '__class__', int)",
        "class A: pass\nobject.__setattr__(A(), '__class__', int)",
        "class A: pass\nobject.__setattr__(A(), '__dict__', {})",
        "object.__setattr__(int, 'x', 5)",
        "delattr(str, 'upper')",
        "type('X', (), {})",
        "'a'.encode('zlib')",
        "b'a'.decode('unicode_escape')",
    ],
)
def test_nothing_leads_out_of_the_world(code: str) -> None:
    lines = [f"    {line}" for line in code.split("\n")]
    done = body(code)
    assert done.said, lines
    assert done.slugs[0] in ("hidden-attribute", "unknown-attribute", "not-in-nki", "wrong-value")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("frozenset().union(x=1)", "frozenset.union() got an unexpected keyword argument 'x'"),
        ("set().union(x=1)", "set.union() got an unexpected keyword argument 'x'"),
        ("list.extend()", "unbound method list.extend() needs an argument"),
        ("dict.update()", "unbound method dict.update() needs an argument"),
        (
            "type(map(int, [])).__next__(1)",
            "descriptor '__next__' for 'iterator' objects doesn't apply to a 'int' object",
        ),
    ],
)
def test_messages_name_the_class_whose_method_it_is(call: str, text: str) -> None:
    assert body(f"try:\n    {call}\nexcept TypeError as e:\n    print(e)").printed == f"{text}\n"


@pytest.mark.parametrize("symbol", ["&", "|", "-", "^"])
def test_operators_of_sets_are_those_of_python(symbol: str) -> None:
    code = f"""
import copy
x, other = {{1, 2, 700, 4096}}, {{2, 3, 4097, 130}}
y = x
x {symbol}= other
print(x is y, [*y], type(x {symbol} other).__name__)
z = {{5, 2, 700, 8191}} {symbol} {{2, 3, 31, 62}}
a, b = copy.copy(z), copy.deepcopy(z)
a.add(99)
b.add(98)
print([*z], sorted(a), sorted(b))
for n in range(1, 40):
    z = frozenset(range(0, 97 * n, 97)) {symbol} frozenset(range(0, 89 * n, 89))
    print([*z], [*(z {symbol} frozenset([5000, 1]))])
"""
    assert body(code).printed == under_python(code)
