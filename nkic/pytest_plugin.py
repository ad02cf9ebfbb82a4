"""pytest plug-in: compile, run and compare kernels in tests, and guard their cycle counts.

    def test_add(nki_check):
        nki_check(add, a, b, expected=a + b)

Options: `--nkic` makes `import nki` give nkic's modules (as does NKIC_INSTALL=1), `--nkic-target`
chooses the target, `--nkic-nki` the NKI version, `--nkic-sanitize` the additional checks, and
`--nkic-bless` accepts the measured cycles. Results are recorded as properties of the test in
JUnit's XML. Tests may run under pytest-xdist.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:  # nkic itself is imported by the first test that asks for it
    from nkic.api import Called

INSTALL = "NKIC_INSTALL"
SANITIZERS = ("init", "race", "serial", "none")
BLESSED = "nkic_blessed"
_UNSAFE = re.compile(r"[^\w.-]+")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the plug-in's options."""
    group = parser.getgroup("nkic", "kernels for AWS Trainium")
    group.addoption(
        "--nkic", action="store_true", help="`import nki` gives nkic's modules; also NKIC_INSTALL=1"
    )
    group.addoption("--nkic-target", metavar="NAME", help="target of the kernels: trn1, trn2, trn3")
    group.addoption("--nkic-nki", metavar="VERSION", help="NKI version of the kernels, such as 0.6")
    group.addoption(
        "--nkic-sanitize",
        metavar="LIST",
        default="init",
        help="init: reads of uninitialised memory are errors; race: so are unordered accesses of "
        "two cores; serial: the kernel compiled without overlap must give the same bits; none "
        "(default: init)",
    )
    group.addoption(
        "--nkic-bless", action="store_true", help="accept the cycles of guarded kernels"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Install nkic's modules if requested, before tests are imported."""
    _sanitizers(config)
    _check_options(config.getoption("--nkic-target"), config.getoption("--nkic-nki"))
    if config.getoption("--nkic") or os.environ.get(INSTALL) == "1":
        from nkic.api import CompileError
        from nkic.nki import install

        try:
            install(nki=config.getoption("--nkic-nki"))
        except CompileError as error:
            raise pytest.UsageError(str(error)) from None


def _check_options(target: str | None, nki: str | None) -> None:
    """Reject unknown targets and versions, and make `nki` the NKI version of the process's
    kernels.
    """
    if target is None and nki is None:
        return
    from nkic.api.options import CALLS
    from nkic.base.diagnostics import UsageFailed
    from nkic.compiler.request import find_profile, find_target

    try:
        if target is not None:
            find_target(target, "--nkic-target")
        if nki is not None:
            CALLS.nki = find_profile(nki, "--nkic-nki").label
    except UsageFailed as error:
        (diagnostic,) = error.diagnostics
        raise pytest.UsageError(f"{diagnostic.message}; {diagnostic.help}") from None


def _sanitizers(config: pytest.Config) -> frozenset[str]:
    names = frozenset(config.getoption("--nkic-sanitize").split(","))
    for name in names - {*SANITIZERS}:
        choices = ", ".join(SANITIZERS)
        raise pytest.UsageError(f"--nkic-sanitize: there is no check `{name}`; known are {choices}")
    return names


@dataclass(frozen=True)
class Checked:
    """The values that a checked kernel returned, and its run with cycles and report."""

    values: Any
    called: Called = field(repr=False)

    @property
    def cycles(self) -> int:
        """Simulated cycles of the target's base clock."""
        return self.called.result.cycles


@dataclass(frozen=True, repr=False)
class Checker:
    """The fixture `nki_check`."""

    record: Callable[[str, object], None]
    node: str
    folder: Path
    target: str | None
    sanitizers: frozenset[str]
    bless: bool
    guarded: list[int] = field(default_factory=list)  # cycles of the guarded calls so far

    def __call__(
        self,
        kernel: Any,
        *args: Any,
        expected: Any = None,
        rtol: float | None = None,
        atol: float | None = None,
        grid: Any = None,
        guard: bool = False,
        **kwargs: Any,
    ) -> Checked:
        """Compile and run a kernel, and compare its results with `expected`: an array, a tuple of
        arrays, or a function of the same arguments that returns them.

        Tolerances are those of `nki-run --compare`; they default to those of the dtype. `grid` is
        what a launch would write in brackets. With `guard`, the cycles must not exceed those
        accepted by `--nkic-bless`; the n-th guarded call of a test is compared with the n-th
        accepted number. Raises `CompileError`, `RunError` and `AssertionError`.
        """
        __tracebackhide__ = True
        from nkic.api.errors import boundary, without_nkic

        checked = boundary(self._checked)
        try:
            return checked(kernel, args, kwargs, expected, (rtol, atol), grid, guard)
        except AssertionError as error:
            traceback = without_nkic(error.__traceback__)
            if traceback is error.__traceback__:  # a comparison failed: nkic's frames say nothing
                raise error.with_traceback(None) from None
            raise  # by an assertion in the kernel

    def _checked(
        self,
        kernel: Any,
        args: Any,
        kwargs: Any,
        expected: Any,
        tolerances: tuple[float | None, float | None],
        grid: Any,
        guard: bool,
    ) -> Checked:
        wanted = expected(*args, **kwargs) if callable(expected) else expected
        called = self._run(kernel, grid, args, kwargs)
        self._properties(called)
        if wanted is not None:
            self._compare(called, wanted, *tolerances)
        if guard:
            self._guard(called)
        from nkic.nki import arrays

        return Checked(arrays.settle(called), called)

    def _run(self, kernel: Any, grid: Any, args: Any, kwargs: Any) -> Called:
        from nkic.nki.jit import LaunchOptions, kernel_of

        compiled = kernel_of(kernel, LaunchOptions(target=self.target))
        compiled = compiled if grid is None else compiled[grid]
        checks = {f"{name}_check": name in self.sanitizers for name in ("init", "race")}
        called = compiled.run(args, kwargs, **checks)
        if "serial" in self.sanitizers:
            self._same(called, compiled.run(args, kwargs, **checks, serial=True))
        return called

    def _same(self, called: Called, serial: Called) -> None:
        for name, array in called.result.outputs.items():
            if array.tobytes() != serial.result.outputs[name].tobytes():
                raise AssertionError(
                    f"{name} differs from what the kernel gives without overlap (serial)"
                )

    def _properties(self, called: Called) -> None:
        run = called.result.run
        self.record("nkic_target", run.target)
        self.record("nkic_cycles", run.cycles)
        self.record("nkic_time_ns", run.time_ns)
        for name in ("sbuf_bytes", "psum_banks", "dma_bytes"):
            self.record(f"nkic_{name}", run.resources[name])

    def _compare(self, called: Called, wanted: Any, rtol: float | None, atol: float | None) -> None:
        from nkic.api.comparing import differences
        from nkic.nki import arrays

        with arrays.adapting():
            message = differences(called, wanted, rtol, atol)
        if message:
            raise AssertionError(message)

    def _guard(self, called: Called) -> None:
        """Compare the cycles of the test's guarded calls, in order, with those accepted for the
        target.
        """
        path, run = self.folder / f"{self.node}.json", called.result.run
        accepted = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        cycles = accepted.get(run.target, [])
        number = len(self.guarded)
        self.guarded.append(run.cycles)
        if self.bless:
            path.parent.mkdir(parents=True, exist_ok=True)
            updated = {**accepted, run.target: self.guarded}
            path.write_text(json.dumps(updated, sort_keys=True) + "\n", encoding="utf-8")
        elif accepted and not cycles:
            pytest.skip(f"cycles are accepted for {' and '.join(accepted)}, not for {run.target}")
        elif number >= len(cycles):
            raise AssertionError(f"no cycles are accepted yet; run pytest --nkic-bless ({path})")
        elif run.cycles > cycles[number]:
            raise AssertionError(
                f"the kernel takes {run.cycles:,} cycles, accepted are {cycles[number]:,}\n"
                "  = help: make it faster, or accept it with pytest --nkic-bless"
            )


def _file_name(nodeid: str) -> str:
    """Return a file name for a test inside its file; no two tests share one."""
    name = nodeid.partition("::")[2]
    safe = _UNSAFE.sub("-", name.replace("::", ".")).strip("-")
    plain = name.replace("::", ".").replace("[", "-").removesuffix("]")
    return safe if safe == plain else f"{safe}-{sha256(name.encode()).hexdigest()[:8]}"


@pytest.fixture
def nki_check(request: pytest.FixtureRequest) -> Checker:
    """nki_check(kernel, *args, expected=..., guard=True): compile, run and compare a kernel."""
    path, config = request.path, request.config
    node = _file_name(request.node.nodeid)
    return Checker(
        # Not by the fixture record_property, which warns with --junit-xml; both write the same.
        lambda name, value: request.node.user_properties.append((name, value)),
        node,
        path.parent / BLESSED / path.stem,
        config.getoption("--nkic-target"),
        _sanitizers(config),
        config.getoption("--nkic-bless"),
    )
