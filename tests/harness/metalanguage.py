"""Run kernels of the meta-language alone: no tensors, no instructions, no files on disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nkic.base.device import DeviceCondition, DeviceRange, Missing
from nkic.base.diagnostics import CompileFailed, Diagnostic, Reporter
from nkic.base.limits import Limits
from nkic.base.profiles import Profile
from nkic.base.source import SourceFile
from nkic.interpret.interpreter import provided_modules
from nkic.interpret.modules import Table
from nkic.interpret.objects import HostFunction
from nkic.language.hosted import Decorator, Kernel
from nkic.language.jit import jit
from nkic.language.namespace import Namespace
from nkic.source.bindings import Resolved
from nkic.source.parse import parse
from nkic.source.resolve import resolve
from nkic.specialise.closed import LanguageNamespace, interpreter, kernel_object

HEAD = "import nki\nimport nki.language as nl\n"


def head(profile: Profile) -> str:
    """Return the imports of a kernel of that version."""
    if profile is not Profile.BETA1:
        return HEAD
    return "import neuronxcc.nki as nki\nimport neuronxcc.nki.language as nl\n"


@dataclass
class Done:
    """The result of evaluating a kernel."""

    printed: str = ""
    value: Any = None
    said: tuple[Diagnostic, ...] = ()
    log: list[str] = field(default_factory=list)
    steps: int = 0  # of the budget

    @property
    def slugs(self) -> list[str]:
        return [one.code.slug for one in self.said]

    @property
    def places(self) -> list[tuple[int, int]]:
        """The line and column of each diagnostic."""
        return [one.primary.span[1:3] for one in self.said if one.primary]


class FakeRange(DeviceRange):
    """A device loop that logs instead of recording."""

    def __init__(self, log: list[str]) -> None:
        self._log = log

    def enter(self) -> object:
        self._log.append("open")
        return "counter"

    def leave(self) -> None:
        self._log.append("close")


class FakeRegister(DeviceCondition):
    """A register that logs."""

    def __init__(self, log: list[str]) -> None:
        self._log = log

    def enter_while(self) -> None:
        self._log.append("while")

    def leave_while(self) -> None:
        self._log.append("end")


class Language(Table):
    """A module from which one name was removed."""

    def missing(self, name: str) -> Exception:
        if name != "arange":
            return super().missing(name)
        text = "NKI has no `nki.language.arange`"
        return Missing("removed-name", text, name, "use a slice")


def namespaces(log: list[str]) -> dict[str, Table]:
    """Return a small `nki`, also under its name in Beta 1."""
    functions: dict[str, Callable[..., Any]] = {
        "dynamic_range": lambda *bounds: FakeRange(log),
        "register": lambda: FakeRegister(log),
        "log": log.append,
        "affine_range": range,
    }
    language: dict[str, Any] = {name: HostFunction(name, each) for name, each in functions.items()}
    language |= {"NKIObject": kernel_object(), "float32": "float32"}
    found: dict[str, Table] = {
        "nki": Table("nki", {"jit": Decorator("jit", jit)}),
        "nki.language": Language("nki.language", language),
        "nki.isa": Table("nki.isa", {}),
    }
    return found | {f"neuronxcc.{name}": space for name, space in found.items()}


def mounted(space: Table | Namespace) -> Table | LanguageNamespace:
    """Return a module in the form that the interpreter takes."""
    return LanguageNamespace(space) if isinstance(space, Namespace) else space


def load_from(files: Mapping[str, str]) -> Any:
    """Return a loader of files by path from one folder, packages included."""

    def load(request: str, importer: SourceFile) -> SourceFile | None:
        name = request.lstrip(".")
        folder = importer.path.split("/")[:-1]
        up = len(request) - len(name)
        parts = folder[: len(folder) - max(up - 1, 0)] if up else []
        base = "/".join([*parts, *filter(None, name.split("."))])
        for path in (f"{base}.py", f"{base}/__init__.py".lstrip("/")):
            if path in files:
                return SourceFile(path, files[path])
        return None

    return load


def resolved(
    text: str,
    kernel: str | None = None,
    *,
    files: Mapping[str, str] | None = None,
    profile: Profile = Profile.NKI_0_7,
    path: str = "k.py",
) -> tuple[Resolved | None, tuple[Diagnostic, ...]]:
    report = Reporter(max_errors=100)
    load = load_from(files or {})
    modules = provided_modules((*namespaces([]), "numpy"))
    source = SourceFile(path, text)
    try:
        found = resolve(
            source, kernel, load=load, parse=parse, provided=modules, report=report, profile=profile
        )
    except CompileFailed as failed:
        return None, failed.diagnostics
    report.settle()
    return found, report.all


def run(
    text: str,
    kernel: str | None = None,
    *,
    files: Mapping[str, str] | None = None,
    arguments: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
    profile: Profile = Profile.NKI_0_7,
    path: str = "k.py",
) -> Done:
    found, said = resolved(text, kernel, files=files, profile=profile, path=path)
    if found is None or any(said):
        return Done(said=said)
    done = Done()
    printed: list[str] = []
    spaces = {name: mounted(space) for name, space in namespaces(done.log).items()}
    made = interpreter(found, spaces, Reporter(), printed.append, limits)
    try:
        function = made.kernel()
        while isinstance(function, Kernel):
            function = function.function
        done.value = made.call(function, arguments or {})
    except CompileFailed as failed:
        done.said = failed.diagnostics
    done.printed = "".join(printed)
    done.steps = made.machine.limits.steps - made.machine.left
    return done


def body(code: str, **options: Any) -> Done:
    """Run a kernel that consists of these lines."""
    lines = "".join(f"    {line}\n" for line in code.strip("\n").split("\n"))
    imports = head(options.get("profile", Profile.NKI_0_7))
    return run(f"{imports}@nki.jit\ndef kernel():\n{lines}", **options)
