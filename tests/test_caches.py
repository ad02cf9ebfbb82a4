"""List every cache that is kept for the next compilation or run, with its maximum size."""

import ast
from collections.abc import Iterator

from tests.harness import trees
from tests.test_layers import FILES, ROOT

# By function: the maximum number of entries, or the reason why it is bounded. A function without
# parameters is computed once and is not listed.
CACHES = {
    "api/arrays.py:_warn_of_bits": "element types",
    "api/options.py:_parameters": "public functions",
    "base/files.py:_table": 64,
    "base/render/__init__.py:_root": 64,
    "judge/cluster.py:_judge": 16,
    "compiler/check.py:_on_chip": 65536,
    "compiler/check.py:_distinct": 1024,
    "compiler/check.py:_repeats": 4096,
    "compiler/check.py:_share_bytes": 1024,
    "compiler/check_memory.py:_whole": 1024,
    "compiler/warnings.py:_rows": 4096,
    "interpret/compile/functions.py:compile_statement": 8192,
    "program/overlap.py:_axes": 4096,
    "program/overlap.py:_pitch_tuple": 4096,
    "program/overlap.py:_range": 65536,
    "program/overlap.py:_reach": 65536,
    "program/overlap.py:_tile_box": 65536,
    "language/beta1/emit.py:_further_outputs": "rows",
    "language/beta1/indices.py:_merged_dims": 1024,
    "language/isa.py:_binder": "rows and profiles",
    "language/provide.py:_shared": "profiles and evaluators",
    "language/views.py:interned": 4096,
    "language/views.py:row_major": 4096,
    "compiler/lower.py:_bits": 4096,
    "compiler/lower.py:_dims": 65536,
    "machine/rules.py:_checks": "rows",
    "machine/codecs.py:_codes_of_values": "element types",
    "machine/codecs.py:storage": "element types",
    "machine/codecs.py:values_of_codes": "element types",
    "machine/patterns.py:bounds": 65536,
    "machine/patterns.py:elements": 65536,
    "machine/codecs.py:rounder": "element types",
    "artifact/records.py:_bytes": 4096,
    "nki/modules.py:_beside": "modules",
    "source/parse.py:parse": 256,
    "source/parser.py:literal_pattern": "forms of quotes",
    **dict.fromkeys(("migrate/sheet.py:_child_fields", "migrate/sheet.py:_is_node"), "LibCST"),
    "prove/lowered.py:_all": 64,
    "prove/lowered.py:_bits": 64,
    "prove/effects.py:_reach": 65536,
    "prove/effects.py:_side": 65536,
    "prove/effects.py:pitches": 4096,
    "prove/effects.py:_axes": 4096,
    "prove/lowered.py:_alike": 4096,
    "source/resolve.py:of_definition": 2048,
    "source/resolve.py:of_values": 2048,
    "source/subset.py:violations": 2048,
    "simulate/field/batch.py:_weights": 64,
    "simulate/field/elements.py:_constant": 65536,
    "simulate/field/elements.py:_tables": 4,
    "simulate/numerics/reduction.py:_ones": 8,
    "simulate/numerics/reduction.py:_ones_of": 4,
    "simulate/numerics/matmul.py:_identity": 4,
    "simulate/numerics/matmul.py:_way": 16,
    "simulate/in_place.py:_are_all": 4096,
    "simulate/in_place.py:_row_pitch": 4096,
    "simulate/semantics/gpsimd.py:indices": 64,
    "simulate/in_place.py:_grain": 4096,
    "simulate/in_place.py:flags_of": 4096,
    "simulate/tile.py:_repeats": 4096,
    "simulate/tile.py:refined": 4096,
    "specialise/call_sites.py:_module": 256,
    "specialise/native.py:spaces": "profiles",
    "specialise/closed.py:_function": "functions of the language",
    "source/scopes.py:declared": 1024,
    "source/nodes.py:_child_fields": "classes of the tree",
}


# Variables of modules that functions add to, and the reason why they do not grow.
KEPT = {
    "judge/process.py:_live": "processes of candidates that run",
    "api/calling.py:_entries": "MAX_ENTRIES",
    "api/loading.py:_CELLS": "cells of the notebook that have kernels",
    "interpret/objects.py:_unsealed": "classes of all kernels, until they are sealed",
    "program/effects.py:_recent": "MEMO_SIZE",
    "nki/modules.py:_built": "modules of NKI",
    "simulate/stage.py:_cache": "MAX_PROGRAMS and MAX_BYTES",
    "simulate/memory.py:_kept": "MAX_KEPT",
    # Tables that decorators fill while their module is loaded.
    "language/hosted.py:SURFACES": "classes of the API",
    **dict.fromkeys(
        (
            *(f"interpret/library/{n}.py:MODULE" for n in ("abcs", "forms", "itertools", "maths")),
            "interpret/library/functions.py:OPERATOR",
            "simulate/field/rules.py:UNDECIDED",
        ),
        "definitions",
    ),
}
CONTAINERS = {
    *("dict", "list", "set", "defaultdict", "OrderedDict", "Counter", "deque"),
    *("WeakKeyDictionary", "WeakValueDictionary", "WeakSet", "ChainMap"),
}
ADDS = {"add", "append", "appendleft", "extend", "insert", "setdefault", "update"}


def caches(tree: ast.AST) -> Iterator[tuple[str, int | None]]:
    """Return each cache that a module creates with its bound, or None if it has none."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            given = node.args
            if given.args or given.posonlyargs or given.kwonlyargs:
                yield from ((node.name, b) for d in node.decorator_list for b in bound(d))
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            yield from ((ast.unparse(node.targets[0]), b) for b in bound(node.value.func))


def bound(made: ast.expr) -> Iterator[int | None]:
    """Return the bound of `@cache` and of `@lru_cache(maxsize=…)`; nothing for another
    decorator.
    """
    name = made.func if isinstance(made, ast.Call) else made
    if ast.unparse(name).rpartition(".")[2] in ("cache", "lru_cache"):
        sizes = [k.value for k in made.keywords] if isinstance(made, ast.Call) else []
        known = [size.value for size in sizes if isinstance(size, ast.Constant)]
        yield known[0] if known and isinstance(known[0], int) else None


def test_every_cache_is_listed_with_its_bound() -> None:
    found = {
        f"{path.relative_to(ROOT).as_posix()}:{name}": size
        for path in FILES
        for name, size in caches(trees.tree(path))
    }
    assert found == {k: v if isinstance(v, int) else None for k, v in CACHES.items()}


def test_caches_are_seen() -> None:
    text = (
        "@cache\ndef a(x): ...\n@lru_cache(maxsize=4)\ndef b(x): ...\n@lru_cache\ndef c(x): ...\n"
        "@functools.cache\ndef f2(x): ...\n"
        "@cache\ndef once(): ...\n@other\ndef d(x): ...\ne = lru_cache(maxsize=8)(d)\nf = g(1)(2)\n"
    )
    assert dict(caches(ast.parse(text))) == {"a": None, "b": 4, "c": None, "e": 8, "f2": None}


def containers(tree: ast.Module) -> set[str]:
    """Return the variables of a module that hold growable containers."""
    found = set()
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and can_grow(node.value):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


def can_grow(value: ast.expr | None) -> bool:
    """Return whether the value is a display, a comprehension, or a call of a container's class."""
    displays = (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp)
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).rpartition(".")[2] in CONTAINERS
    return isinstance(value, displays)


def added_to(function: ast.AST) -> Iterator[str]:
    """Return the names of the containers to which a function adds elements."""
    for node in ast.walk(function):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            yield ast.unparse(node.value)
        elif isinstance(node, ast.AugAssign):
            yield ast.unparse(node.target)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield from [ast.unparse(node.func.value)] if node.func.attr in ADDS else []


def growing(tree: ast.Module) -> set[str]:
    """Return the variables of a module that its functions add to, except local ones of that
    name.
    """
    found, mine = set(), containers(tree)
    for function in ast.walk(tree) if mine else ():
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            inside = [*ast.walk(function)]
            own = {n.arg for n in inside if isinstance(n, ast.arg)}
            stored = (n for n in inside if isinstance(n, ast.Name))
            own |= {n.id for n in stored if isinstance(n.ctx, ast.Store)}
            own -= {name for n in inside if isinstance(n, ast.Global) for name in n.names}
            found |= ({*added_to(function)} & mine) - own
    return found


def test_every_variable_that_grows_is_listed_with_its_bound() -> None:
    found = {
        f"{path.relative_to(ROOT).as_posix()}:{name}"
        for path in FILES
        for name in growing(trees.tree(path))
    }
    assert found == KEPT.keys()


def test_variables_that_grow_are_seen() -> None:
    text = (
        "import collections\na, b, c = {}, 1, 2\nd = {}\ne: list[int] = []\n"
        "f = collections.OrderedDict()\ng = set()\nh = {}\nk = {}\n"
        "def one(x):\n    global g\n    d[x] = 1\n    e.append(x)\n    g |= {x}\n"
        "    f.setdefault(x, 1)\n"
        "def two(h):\n    h[1] = 2\n    k = {}\n    k[1] = 2\n    return d.get(1)\n"
    )
    assert growing(ast.parse(text)) == {"d", "e", "f", "g"}
