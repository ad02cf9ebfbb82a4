"""Test scopes: the same locals and globals as in Python's own symbol table (only an oracle)."""

import symtable
from collections.abc import Iterator
from pathlib import Path

import pytest

from nkic.base.source import SourceFile
from nkic.source import nodes, scopes
from nkic.source.nodes import walk
from nkic.source.parse import parse

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
