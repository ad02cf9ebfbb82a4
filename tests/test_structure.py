"""The structure of the packages, module by module; test_layers.py tests it room by room."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.harness import trees
from tests.test_layers import ALLOWED, FILES, FREE, PROJECT, ROOT, dotted

MODULES = {dotted(path): path for path in FILES}
TESTS = PROJECT / "tests"
PACKAGES = [path for path in FILES if path.name == "__init__.py"]

# Packages that are not installed everywhere.
OPTIONAL = {
    *("dask", "distributed", "fcntl", "jax", "ml_dtypes", "optuna", "perfetto"),
    *("prometheus_client", "pyarrow", "pytest", "starlette", "torch", "uvicorn"),
    "watchfiles",
}
# Modules that most runs do not need, imported where they are used, because both commands are judged
# by their start-up time. Nothing else is imported inside a function.
ON_DEMAND = {
    "__init__.py": {"importlib"},  # its comment says why
    "compiler/allocate.py": {"nkic.compiler.tight"},  # programs that do not fit; NumPy
    "artifact/signature.py": {  # a package that few need
        *("cryptography.exceptions", "cryptography.hazmat.primitives"),
        "cryptography.hazmat.primitives.asymmetric",
    },
    "base/files.py": {"tomllib"},
    "base/render/__init__.py": {"nkic.base.render"},  # most commands report nothing
    "cli/__init__.py": {  # after signal handlers
        *("importlib", "nkic.cli.common", "nkic.base", "nkic.base.collector"),
    },
    "cli/common/main.py": {"click.shell_completion", "nkic.cli.common"},
    "cli/common/options.py": {"click.shell_completion", "nkic.base.limits"},
    "cli/common/streams.py": {  # terminals
        *("rich", "rich.console", "rich.markdown", "rich.table", "rich.text"),
    },
    "cli/common/session.py": {
        *("nkic.base", "nkic.base.render", "nkic.base.render.text", "nkic.base.limits"),
    },
    "cli/nki_run/__init__.py": {"nkic.cli.nki_run"},  # --help runs without the runner
    "cli/nki_run/carry_out.py": {"nkic.cli.nki_run.running"},  # NumPy
    "cli/nki_run/inspecting.py": {
        "nkic.report.calibrate",
        "nkic.simulate.field.batch",
        "nkic.simulate.field.decide",
    },  # NumPy
    "cli/nki_run/running.py": {"rich.console", "rich.progress"},
    "cli/nkic/__init__.py": {
        *("nkic.cli.nkic", "nkic.cli.nkic.carry_out"),
        "nkic.serve.lsp",
    },
    "serve/lsp.py": {"nkic.serve.lsp_server"},  # pygls
    "cli/nkic/carry_out.py": {  # NumPy
        *("nkic.cli.nkic.proving", "nkic.cli.nkic.rewriting"),
    },
    "cli/nkic/many.py": {"nkic.cli.common"},  # reports of faults
    "cli/nkic/judging.py": {
        "nkic.judge.tuning",  # Optuna
        *("nkic.serve.app", "nkic.serve.limits"),
    },
    "cli/nkic/rewriting.py": {  # libcst
        *("nkic.migrate.proof", "nkic.migrate.stage", "nkic.migrate.stage"),
    },
    "cli/nkic/replay.py": {"nkic.source.parser"},
    "cli/nkic/options.py": {"nkic.cli.nkic.prints"},
    "cli/nkic/prints.py": {"nkic.judge", "click.shell_completion", "nkic.cli.nkic"},
    "interpret/library/maths.py": {"fractions"},  # few kernels
    "artifact/verify.py": {"nkic.artifact.verify_orders"},  # the proofs
    "language/creation.py": {"nkic.artifact"},
    "language/provide.py": {
        "nkic.language.beta1",
        "nkic.language.beta1.tiles",
    },  # only for its kernels
    "specialise/closed.py": {"nkic.language.beta1", "nkic.language.beta1.loops"},
    "specialise/numpy.py": {"numpy"},
    "specialise/outputs.py": {"nkic.language.beta1"},
    "nki/arrays.py": {"nkic.nki.jax_calls"},  # JAX
    "nki/finder.py": {"nkic.nki.modules"},
    "nki/modules.py": {"nkic.nki", "nkic.nki.jax_calls"},  # Beta 1, JAX
    "source/parse.py": {"nkic.source.errors"},
    "source/parser.py": {"nkic.source.generate"},  # Lark
    "pytest_plugin.py": {
        "nkic.api",
        "nkic.api.options",
        "nkic.base.diagnostics",
        "nkic.api.comparing",
        "nkic.api.errors",
        "nkic.compiler.request",
        "nkic.nki",
        "nkic.nki.jit",
    },  # loaded by every run of pytest
    "compiler/request.py": {"nkic.compiler.like"},  # NumPy
}

# Imports by a name that is computed at run time, which the lists above do not see.
BY_NAME = {
    "__init__.py": "the public functions, when they are first asked for",
    "api/arrays.py": "ml_dtypes",
    "base/diagnostics.py": "packages that a wish needs, to tell a broken one",
    "cli/__init__.py": "one of the two commands",
    "cli/common/main.py": "what few runs need",
    "machine/dtypes.py": "ml_dtypes, NumPy",
    "nki/arrays.py": "PyTorch, JAX",
    "nki/beta1.py": "ml_dtypes",
    "nki/modules.py": "what poses as modules of NKI, PyTorch",
    "simulate/semantics/__init__.py": "all modules of the folder",
    "specialise/native.py": "imports of the kernel itself",
}

IMPORTS = re.compile(r"(importlib\.)?import_module|(builtins\.)?__import__")

# Kernels that tests compile are in one folder, like users' files.
KERNELS = {"files", "data", "cases", "expected"}
# Unit tests that concern several rooms, or the tools of the tests.
NO_ROOM = {"exact", "faults", "flames", "mutate", "timing", "worst_errors"}

Statement = ast.Import | ast.ImportFrom


def targets(node: Statement) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    return {node.module or ""}


def inside_functions(tree: ast.AST) -> Iterator[Statement]:
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from (n for n in ast.walk(function) if isinstance(n, ast.Import | ast.ImportFrom))


def at_load(tree: ast.AST) -> Iterator[Statement]:
    """Return the imports that happen when the module is loaded: not those in functions or only for
    types.
    """
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from at_load(node)


def loads(tree: ast.AST, known: Mapping[str, object]) -> set[str]:
    found = set()
    for node in at_load(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        else:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (inner & known.keys()) | (
                {node.module or ""} if inner - known.keys() else set()
            )
    return found & known.keys()


Step = Statement | set[str]  # an import, or names that a statement binds


def steps(body: Sequence[ast.stmt], root: str = "nkic") -> Iterator[Step]:
    """Return the effects of a module's statements, in order; of its imports, those of `root`."""
    for node in body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from [node] if any(one.startswith(root) for one in targets(node)) else []
            yield {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from steps(node.body, root) if isinstance(node, ast.ClassDef) else ()
            yield {node.name}
        else:
            stored = (n for n in ast.walk(node) if isinstance(n, ast.Name))
            for part in ("body", "handlers", "orelse", "finalbody"):
                yield from steps(getattr(node, part, []), root)
            yield {name.id for name in stored if isinstance(name.ctx, ast.Store)}


class Loading:
    """Simulate Python's import of a project's modules, on their syntax trees."""

    def __init__(self, modules: Mapping[str, Sequence[Step]]) -> None:
        self.modules = modules
        self.bound: dict[str, set[str]] = {}  # the names that each module has so far
        self.complete: set[str] = set()
        self.missing: list[str] = []  # names that are read before they are bound

    def load(self, name: str) -> None:
        """Simulate `import name`: its packages first."""
        if name not in self.modules or name in self.bound:
            return
        parent, _, last = name.rpartition(".")
        self.load(parent)
        if name in self.bound:
            return
        self.bound[name] = set()
        for step in self.modules[name]:
            self.run(name, step)
        self.complete.add(name)
        self.bound.get(parent, set()).add(last)

    def run(self, module: str, step: Step) -> None:
        if isinstance(step, set):
            self.bound[module] |= step
        elif isinstance(step, ast.Import):
            for alias in step.names:
                self.load(alias.name)
        else:
            source = step.module or ""
            self.load(source)
            for alias in step.names:
                self.load(f"{source}.{alias.name}")
                begun = source in self.bound and source not in self.complete
                inner = f"{source}.{alias.name}" in self.bound  # a module, found while it loads
                if begun and not inner and alias.name not in self.bound[source]:
                    self.missing.append(f"{module} asks for {source}.{alias.name}")


def given_names(tree: ast.Module, package: str) -> set[str]:
    """Return the names that a package's `__init__` binds, except its own modules."""
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module != package:
            found |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


def tree_of(path: Path) -> ast.Module:
    return trees.tree(path)


def test_imports_stand_at_the_top() -> None:
    late = {}
    for path in FILES:
        found = {name for node in inside_functions(tree_of(path)) for name in targets(node)}
        if found := {name for name in found if name.partition(".")[0] not in OPTIONAL}:
            late[path.relative_to(ROOT).as_posix()] = found
    assert late == ON_DEMAND


def imports_by_name(tree: ast.AST) -> bool:
    """Return whether a module calls Python's import as a function."""
    calls = (ast.unparse(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call))
    return any(IMPORTS.fullmatch(call) for call in calls)


def test_imports_by_name_are_listed() -> None:
    calling = {path for path in FILES if imports_by_name(tree_of(path))}
    assert {path.relative_to(ROOT).as_posix() for path in calling} == BY_NAME.keys()
    assert imports_by_name(ast.parse("def f():\n    importlib.import_module('json')\n"))
    assert imports_by_name(ast.parse("x = __import__('json')\n"))
    assert not imports_by_name(ast.parse("import importlib\n"))


def test_every_listed_file_is_there() -> None:
    assert [name for name in ON_DEMAND if not (ROOT / name).is_file()] == []


def test_no_module_needs_itself() -> None:
    graph = {name: loads(tree_of(path), MODULES) - {name} for name, path in MODULES.items()}
    try:
        assert len([*TopologicalSorter(graph).static_order()]) == len(MODULES)
    except CycleError as error:
        raise AssertionError(" → ".join(error.args[1])) from None


def test_any_module_may_be_imported_first() -> None:
    """No module requires that another one was imported before it."""
    modules = {name: [*steps(tree_of(path).body)] for name, path in MODULES.items()}
    found = {}
    for name in modules:
        loading = Loading(modules)
        loading.load(name)
        found[name] = loading.missing
    assert {name: missing for name, missing in found.items() if missing} == {}


def test_an_import_in_a_circle_is_seen() -> None:
    """In a circular import, a name is read before its module has bound it."""
    one, two = "from a.two import g\nf = 1", "from a import one\ng = 2"
    assert missing_from("a.one", one, two) == []
    assert missing_from("a.two", one, two) == ["a.one asks for a.two.g"]
    assert missing_from("a.one", one, "from a.one import f\ng = 2") == ["a.two asks for a.one.f"]


def missing_from(name: str, one: str, two: str) -> list[str]:
    texts = {"a": "", "a.one": one, "a.two": two}
    loading = Loading({name: [*steps(ast.parse(text).body, "a")] for name, text in texts.items()})
    loading.load(name)
    return loading.missing


@pytest.mark.parametrize("path", PACKAGES, ids=lambda path: str(path.parent.relative_to(PROJECT)))
def test_no_module_is_hidden_by_its_package(path: Path) -> None:
    package = dotted(path)
    beside = {name.rpartition(".")[2] for name in MODULES if name.rpartition(".")[0] == package}
    assert given_names(tree_of(path), package) & beside == set()


def test_unit_tests_stand_in_folders_of_rooms() -> None:
    """tests/unit mirrors nkic/, except for tests that concern several rooms."""
    unit = TESTS / "unit"
    folders = {p.parent.relative_to(unit) for p in unit.rglob("*.py")} - {Path()}
    rooms = {folder.parts[0] for folder in folders}
    assert [room for room in sorted(rooms) if not (ROOT / room).is_dir()] == []
    assert {path.stem for path in unit.glob("test_*.py")} == {f"test_{name}" for name in NO_ROOM}


def rooms_of_the_page(text: str) -> list[tuple[str, str]]:
    """Return each row of the table of rooms: the room, and its description."""
    return re.findall(r"(?m)^\| `([\w./]+)` \| (.+) \|$", text)


def test_every_room_is_on_the_architecture_page() -> None:
    folders = {f"{p.name}/" for p in ROOT.iterdir() if p.is_dir() and p.name != "__pycache__"}
    files = {path.name for path in ROOT.glob("*.py")} - {"__init__.py"}
    page = rooms_of_the_page((PROJECT / "docs/architecture.md").read_text("utf-8"))
    assert sorted(name for name, _ in page) == sorted(folders | files)
    assert all(len(line) > 10 for _, line in page)


def test_every_room_has_a_row_of_the_layers() -> None:
    rooms = {name.split(".")[1] for name in MODULES if "." in name} - FREE
    rows = {row.partition(".")[0] for row in ALLOWED}
    assert rooms == rows


def test_what_is_looked_for_is_found() -> None:
    """Test each finder on source that breaks its rule."""
    tree = ast.parse(
        "from typing import TYPE_CHECKING\nfrom a import b\nimport a.c\n"
        "if TYPE_CHECKING:\n    from a import d\n"
        "class C:\n    from a import e\n"
        "def f():\n    import a.g\n    def h():\n        from k import l\n"
        "b = 1\n"
    )
    known = dict.fromkeys(("a", "a.b", "a.c", "a.d", "a.e", "a.g"))
    assert loads(tree, known) == {"a.b", "a.c", "a.e"}
    assert {n for node in inside_functions(tree) for n in targets(node)} == {"a.g", "k"}
    assert given_names(tree, "a") == {"TYPE_CHECKING", "C", "f", "b"}
    assert rooms_of_the_page("| room | what |\n|---|---|\n| `x/` | y |\n") == [("x/", "y")]
