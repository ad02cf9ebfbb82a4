"""Everything that is kept for the next compilation or run, in one list, with how much at most."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.test_layers import FILES, ROOT

# By function: the number of entries that are kept, or what there cannot be more of. A function
# without parameters is computed once and is not listed.
CACHES = {
    "base/project.py:_table": 64,
    "base/render/places.py:_root": 64,
    "check/bounds.py:_linear": 65536,
    "check/bounds.py:_on_chip": 65536,
    "check/unwritten.py:_whole": 1024,
    "check/warnings.py:_rows": 4096,
    "evaluate/compile/functions.py:compile_statement": 8192,
    "ir/overlap.py:_axes": 4096,
    "ir/overlap.py:_free_box": 65536,
    "ir/overlap.py:_pitch_tuple": 4096,
    "language/isa.py:_binder": "rows and profiles",
    "lower/accumulate.py:_bits": 4096,
    "lower/patterns.py:_dims": 65536,
    "machine/arguments.py:_checks": "rows",
    "machine/codecs.py:_codes_of_values": "element types",
    "machine/codecs.py:storage": "element types",
    "machine/codecs.py:values_of_codes": "element types",
    "machine/patterns.py:bounds": 65536,
    "machine/patterns.py:elements": 65536,
    "machine/rounding.py:rounder": "element types",
    "nki/packages.py:_beside": "modules",
    "parse/__init__.py:parse": 256,
    "parse/words.py:literal_pattern": "forms of quotes",
    "migrate/tree.py:_parts": None,  # the kinds of nodes that LibCST has
    "prove/boxes.py:_reach": 65536,
    "prove/boxes.py:pitches": 4096,
    "prove/effects.py:_axes": 4096,
    "resolve/mentions.py:of_definition": 2048,
    "resolve/mentions.py:of_values": 2048,
    "resolve/subset.py:violations": 2048,
    "simulate/numerics/matmul.py:_identity": 4,
    "simulate/storage/in_place.py:_merged": 4096,
    "simulate/storage/in_place.py:_row_pitch": 4096,
    "simulate/semantics/gpsimd.py:indices": 64,
    "simulate/storage/tensor_usage.py:_grain": 4096,
    "simulate/storage/tensor_usage.py:flags_of": 4096,
    "simulate/tile.py:_repeats": 4096,
    "simulate/tile.py:refined": 4096,
    "specialise/native/sources.py:_module": 256,
    "specialise/native/surface.py:spaces": "profiles",
    "specialise/surface.py:_function": "functions of the language",
    "syntax/scopes.py:_local": 1024,
    "syntax/walk.py:_child_fields": "classes of the tree",
}


def caches(tree: ast.AST) -> Iterator[tuple[str, int | None]]:
    """Each cache that a module makes, and its bound; None where it has none."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            given = node.args
            if given.args or given.posonlyargs or given.kwonlyargs:
                yield from ((node.name, b) for d in node.decorator_list for b in bound(d))
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            yield from ((ast.unparse(node.targets[0]), b) for b in bound(node.value.func))


def bound(made: ast.expr) -> Iterator[int | None]:
    """Of `@cache` and of `@lru_cache(maxsize=…)`; nothing for another decorator."""
    name = made.func if isinstance(made, ast.Call) else made
    if ast.unparse(name) in ("cache", "lru_cache"):
        sizes = [k.value for k in made.keywords] if isinstance(made, ast.Call) else []
        known = [size.value for size in sizes if isinstance(size, ast.Constant)]
        yield known[0] if known and isinstance(known[0], int) else None


def test_every_cache_is_listed_with_its_bound() -> None:
    found = {
        f"{path.relative_to(ROOT).as_posix()}:{name}": size
        for path in FILES
        for name, size in caches(ast.parse(path.read_text("utf-8")))
    }
    assert found == {k: v if isinstance(v, int) else None for k, v in CACHES.items()}


def test_caches_are_seen() -> None:
    text = (
        "@cache\ndef a(x): ...\n@lru_cache(maxsize=4)\ndef b(x): ...\n@lru_cache\ndef c(x): ...\n"
        "@cache\ndef once(): ...\n@other\ndef d(x): ...\ne = lru_cache(maxsize=8)(d)\nf = g(1)(2)\n"
    )
    assert dict(caches(ast.parse(text))) == {"a": None, "b": 4, "c": None, "e": 8}
