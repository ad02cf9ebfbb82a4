"""The modules of the package as text and as trees, read once in a process."""

import ast
import gc
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "nkic"
FILES = sorted(PACKAGE.rglob("*.py"))


@cache
def _nodes() -> dict[Path, tuple[ast.AST, ...]]:
    collecting = gc.isenabled()
    gc.disable()  # it would look through all trees again and again, and find nothing
    try:
        return {path: (*ast.walk(ast.parse(path.read_text("utf-8"))),) for path in FILES}
    finally:
        gc.freeze()
        if collecting:
            gc.enable()


def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of a module, the module first; of another file than the package's too."""
    if path not in _nodes():
        return (*ast.walk(ast.parse(path.read_text("utf-8"))),)
    return _nodes()[path]


def tree(path: Path) -> ast.Module:
    module = nodes(path)[0]
    assert isinstance(module, ast.Module)
    return module
