"""Imports point only at earlier rows. A new edge is a visible edit to this table."""

from __future__ import annotations

import ast
import sys
import tomllib
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[1]
ROOT = PROJECT / "nkic"
DATA = "base machine ir"
ALLOWED = {
    "base": "",
    "limits": "base",
    "cache": "base",
    "machine": "base",
    "syntax": "base",
    "arrays": "base machine",
    "ir": "base machine",
    "parse": "base syntax",
    "resolve": "base syntax",
    "evaluate": "base syntax",  # implements Python, independent of NKI
    "language": "base machine syntax ir",  # implements NKI, independent of its callers
    "specialise": "base machine syntax ir evaluate language",
    "stdlib": "",  # kernel source: it imports nki, not nkic
    "check": DATA,
    "lower": DATA,
    "depend": DATA,
    "allocate": DATA,
    "schedule": DATA,
    "spill": f"{DATA} allocate",  # live ranges, and the memory that they take
    "prove": DATA,
    "neff": "base machine prove",
    "emit": f"{DATA} neff",
    "pace": "base machine neff",
    "search": f"{DATA} allocate schedule emit pace",  # tries both again, and asks for the time
    "trace": "base machine neff",
    "simulate": "base machine arrays neff pace trace",
    "calibrate": "base machine neff pace",
    "report": "base machine neff pace trace",
    "driver.figures": "base machine neff simulate report",
    "driver.loader": "base cache parse",
    "driver.compiled": "base machine ir neff",
    "driver.like": "base machine arrays specialise",
    "driver.inferred_version": "base",
    "driver.request": "base machine specialise driver.like driver.inferred_version",
    "driver.notes": "machine ir allocate neff pace",
    "driver.spilling": f"{DATA} depend allocate search spill",
    "driver.pipeline": f"{DATA} limits syntax parse resolve language specialise"
    " check lower depend allocate schedule search prove neff emit driver.compiled driver.notes"
    " driver.spilling",
    "driver.forms": "base ir neff syntax parse driver.compiled",
    "driver.remarks": "base ir lower allocate schedule search driver.compiled",
    "driver.changes": "ir driver.compiled",
    "driver": "",
    "migrate": f"{DATA} neff resolve language specialise simulate"
    " driver driver.pipeline driver.compiled",
    "advise": "base machine syntax parse neff simulate report",
    "api": f"{DATA} cache arrays limits neff parse evaluate language specialise simulate report"
    " driver driver.compiled driver.loader driver.request driver.pipeline driver.forms"
    " driver.figures",
    "judge": "base limits machine arrays cache neff pace report simulate specialise api",
    "tuning": "base syntax parse report judge",
    "serve": "base judge",
    "lsp": f"{DATA} limits syntax parse language specialise driver driver.compiled driver.loader"
    " driver.request driver.pipeline",
    "nki": "base machine language specialise driver.request api",
    "pytest_plugin": "base driver.request api nki",
    "__main__": "api nki",
    "cli.common": "base limits",
    "cli": "limits cli.common",
    "cli.nkic": "base cache machine syntax parse specialise report limits driver driver.compiled"
    " driver.loader driver.request driver.pipeline driver.forms driver.remarks driver.changes"
    " migrate advise judge tuning serve lsp neff cli cli.common",
    "cli.nki_run": "base machine arrays neff calibrate report simulate driver.figures cli"
    " cli.common",
}
# Single modules that still import beyond their row. Nothing is added to this list.
EXCEPTIONS = {
    "language/tensors/constant_data.py": {"nkic.arrays"},
}
# Packages that a user must have installed. Other packages may be used where they are the purpose,
# in api.
RUNTIME = {"click", "lark", "msgpack", "numpy", "rich", "threadpoolctl"}
FRAMEWORKS = {"torch", "jax", "ml_dtypes"}
EXTRA = {
    "nki": FRAMEWORKS,
    "api": {"ml_dtypes"},
    "pytest_plugin": {"pytest"},
    "stdlib": {"nki"},
    "migrate": {"libcst"},
    "report": {"perfetto", "pyarrow"},
    "tuning": {"optuna"},
    "judge": {"dask", "distributed"},
    "serve": {"prometheus_client", "starlette", "uvicorn"},
    "lsp": {"pygls", "lsprotocol"},
}
FREE = {"__init__", "__version__"}  # packages that belong to no layer

FILES = sorted(ROOT.rglob("*.py"))


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(PROJECT).with_suffix("").parts).removesuffix(".__init__")


def layer_of(name: str) -> str:
    """`nkic.depend.edges` is in layer depend, `nkic.cli.common.main` in cli.common."""
    parts = name.split(".")[1:] or ["__init__"]
    rooms = [row for row in ALLOWED if "." in row]
    inner = ".".join(parts[:2])
    return inner if inner in rooms else parts[0]


def imports_of(path: Path) -> set[str]:
    """Return every import in the file, including those inside functions and TYPE_CHECKING
    blocks.
    """
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
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


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_follow_the_table(path: Path) -> None:
    here = layer_of(dotted(path))
    if here in FREE:
        return
    assert here in ALLOWED, f"{here} has no row in this table"
    allowed = {here, *ALLOWED[here].split(), "__version__"}
    names = {name for name in imports_of(path) if name.startswith("nkic.")}
    past = {name.rpartition(".")[0] for name in names if layer_of(name) not in allowed}
    assert past == EXCEPTIONS.get(path.relative_to(ROOT).as_posix(), set())


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_the_declared_packages_are_needed(path: Path) -> None:
    allowed = {"nkic", *RUNTIME, *sys.stdlib_module_names, *EXTRA.get(layer_of(dotted(path)), ())}
    roots = {name.split(".")[0] for name in imports_of(path)}
    assert sorted(roots - allowed) == []


def test_a_forbidden_import_is_seen_wherever_it_hides(tmp_path: Path) -> None:
    path = tmp_path / "edges.py"
    path.write_text(
        "from nkic.base import source\n"
        "from nkic import pipeline\n"
        "def f():\n    import nkic.simulate.storage.memory\n"
    )
    layers = {layer_of(name) for name in imports_of(path)}
    assert layers == {"base", "pipeline", "simulate"}


def test_every_package_is_installed() -> None:
    """pyproject.toml lists packages by hand, because nkic.grammar lives outside nkic/."""
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))
    listed = settings["tool"]["setuptools"]["packages"]
    found = {dotted(path) for path in FILES if path.name == "__init__.py"}
    assert sorted(listed) == sorted(found | {"nkic.grammar"})
