"""Imports point only at earlier rows. A new edge is a visible edit to this table."""

from __future__ import annotations

import ast
import sys
import tomllib
from pathlib import Path

from tests.harness import trees

PROJECT = Path(__file__).resolve().parents[1]
ROOT = PROJECT / "nkic"
DATA = "base machine program"
ALLOWED = {
    "base": "",
    "machine": "base",
    "source": "base",
    "program": "base machine",
    "interpret": "base source",  # implements Python, independent of NKI
    "language": "base machine source program",  # implements NKI, independent of its callers
    "specialise": "base machine source program interpret language",
    "language.stdlib": "",  # kernel source: it imports nki, not nkic
    "prove": DATA,
    "artifact": "base machine prove",
    # The stages of the compiler: each takes a program and gives the next, and knows no other.
    "compiler.check": DATA,
    "compiler.check_memory": f"{DATA} compiler.check",
    "compiler.warnings": f"{DATA} compiler.check compiler.check_memory",
    "compiler.lower": DATA,
    "compiler.depend": DATA,
    "compiler.allocate": DATA,
    "compiler.spill": f"{DATA} compiler.allocate",  # live ranges, and the memory that they take
    "compiler.semaphores": DATA,
    "compiler.schedule": f"{DATA} compiler.semaphores",
    "compiler.races": f"{DATA} compiler.semaphores",
    "compiler.emit": f"{DATA} artifact",
    "compiler.bound": f"{DATA} compiler.allocate compiler.semaphores",
    "compiler.search": f"{DATA} artifact compiler.allocate compiler.bound compiler.schedule"
    " compiler.emit",  # tries them again, and asks for the time
    "compiler.loader": "base source",
    "compiler.compiled": f"{DATA} artifact",
    "compiler.request": "base machine source artifact specialise",
    # The one module that knows the order of the stages.
    "compiler.pipeline": f"{DATA} source language specialise compiler.check compiler.check_memory"
    " compiler.warnings compiler.lower compiler.depend compiler.allocate compiler.spill"
    " compiler.schedule compiler.races compiler.search prove artifact compiler.emit"
    " compiler.compiled",
    "compiler.forms": f"{DATA} source artifact compiler.compiled",
    "compiler.remarks": f"{DATA} compiler.allocate compiler.semaphores compiler.schedule"
    " compiler.search compiler.compiled",
    "compiler": "",
    "simulate": "base machine artifact",
    "report": "base machine artifact",
    "report.figures": "base machine artifact simulate report",
    "migrate.edits": "base machine source report",
    "migrate.advise": "base machine source artifact simulate report migrate.edits",
    "migrate": f"{DATA} source artifact language specialise simulate compiler.compiled"
    " compiler.pipeline",
    "api": f"{DATA} artifact source interpret language specialise simulate report report.figures"
    " compiler.compiled compiler.loader compiler.request compiler.pipeline",
    "judge": "base machine source artifact simulate report specialise compiler.pipeline api",
    "serve": f"{DATA} source language specialise compiler.allocate compiler.compiled"
    " compiler.loader compiler.request compiler.pipeline compiler.semaphores",
    "serve.app": "base judge serve",
    "nki": "base machine language specialise compiler.request api",
    "pytest_plugin": "base compiler.request api nki",
    "notebook": "base api nki",
    "__main__": "api nki",
    "cli.common": "base",
    "cli": "base cli.common",
    "cli.nkic": "base machine source artifact specialise report compiler.compiled compiler.loader"
    " compiler.request compiler.pipeline compiler.forms compiler.remarks migrate migrate.advise"
    " api nki judge serve serve.app cli cli.common",
    "cli.nki_run": "base machine artifact report simulate report.figures cli cli.common",
}
# Pages of a stage that are files of their own because few compilations load them.
PAGES = {"compiler.tight": "compiler.allocate", "compiler.like": "compiler.request"}
# Single modules that still import beyond their row. Nothing is added to this list.
EXCEPTIONS = {
    "language/creation.py": {"nkic.artifact"},
}
# Packages that a user must have installed. Other packages may be used where they are the purpose,
# in api.
RUNTIME = {"click", "lark", "msgpack", "numpy", "rich", "threadpoolctl"}
FRAMEWORKS = {"torch", "jax", "ml_dtypes"}
EXTRA = {
    "language.stdlib": {"nki"},
    "nki": FRAMEWORKS,
    "api": {"ml_dtypes"},
    "artifact": {"cryptography"},
    "pytest_plugin": {"pytest"},
    "notebook": {"IPython"},
    "cli.nkic": {"watchfiles"},
    "migrate": {"libcst"},
    "report": {"perfetto", "pyarrow"},
    "judge": {"dask", "distributed", "optuna"},
    "serve.app": {"prometheus_client", "starlette", "uvicorn"},
    "serve": {"pygls", "lsprotocol"},
}
FREE = {"__init__", "__version__"}  # packages that belong to no layer

FILES = sorted(ROOT.rglob("*.py"))


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(PROJECT).with_suffix("").parts).removesuffix(".__init__")


def layer_of(name: str) -> str:
    """`nkic.machine.costs` is in layer machine, `nkic.compiler.lower` in compiler.lower."""
    name = name.replace("nkic.stdlib", "nkic.language.stdlib")  # as the library calls itself
    parts = name.split(".")[1:] or ["__init__"]
    rooms = [row for row in ALLOWED if "." in row]
    inner = PAGES.get(".".join(parts[:2]), ".".join(parts[:2]))
    return inner if inner in rooms else parts[0]


def imports_of(path: Path) -> set[str]:
    """Return every import in the file, including those inside functions and TYPE_CHECKING
    blocks.
    """
    found: set[str] = set()
    for node in trees.nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import in line {node.lineno}"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def test_table_is_ordered() -> None:
    rows = list(ALLOWED)
    for row, allowed in ALLOWED.items():
        assert all(rows.index(a) < rows.index(row) for a in allowed.split()), row


def test_imports_follow_the_table() -> None:
    past = {}
    for path in FILES:
        here = layer_of(dotted(path))
        if here in FREE:
            continue
        assert here in ALLOWED, f"{here} has no row in this table"
        allowed = {here, *ALLOWED[here].split(), "__version__"}
        names = {name for name in imports_of(path) if name.startswith("nkic.")}
        if found := {name.rpartition(".")[0] for name in names if layer_of(name) not in allowed}:
            past[path.relative_to(ROOT).as_posix()] = found
    assert past == EXCEPTIONS


def test_only_the_declared_packages_are_needed() -> None:
    others = []
    for path in FILES:
        extra = EXTRA.get(layer_of(dotted(path)), ())
        roots = {name.split(".")[0] for name in imports_of(path)}
        roots -= {"nkic", *RUNTIME, *sys.stdlib_module_names, *extra}
        others += [(str(path.relative_to(ROOT)), root) for root in sorted(roots)]
    assert others == []


def test_a_forbidden_import_is_seen_wherever_it_hides(tmp_path: Path) -> None:
    path = tmp_path / "edges.py"
    path.write_text(
        "from nkic.base import source\n"
        "from nkic import pipeline\n"
        "def f():\n    import nkic.simulate.memory\n"
    )
    layers = {layer_of(name) for name in imports_of(path)}
    assert layers == {"base", "pipeline", "simulate"}


def test_every_package_is_installed() -> None:
    """pyproject.toml lists packages by hand, because nkic.grammar lives outside nkic/."""
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))
    listed = settings["tool"]["setuptools"]["packages"]
    found = {dotted(path) for path in FILES if path.name == "__init__.py"}
    assert sorted(listed) == sorted(found | {"nkic.grammar"})
