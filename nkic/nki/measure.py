"""`nki.baremetal`, `nki.benchmark` and `nki.profile`: simulated time instead of measurements.

A kernel takes the same cycles in every run of the simulator, so every percentile is the same
number. `save_neff_name` writes nkic's own artifact. Options that have a meaning on a device only
are rejected. Published kernels for `neuronxcc.nki` have two of them: there `save_trace_name` writes
the report of the run, and `additional_compile_opt` takes the options that nkic has, too.
"""

from __future__ import annotations

import functools
import json
import os
import shlex
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nkic import api
from nkic.api.errors import CompileError, NkicWarning, boundary, raising, refuse
from nkic.base.diagnostics import did_you_mean
from nkic.compiler.request import NO_DGE, find_target
from nkic.nki import arrays
from nkic.nki.jit import Kernel, LaunchOptions, kernel_of

_NS_PER_US = 1000.0
_REPORT = "report.json"
_COMMON = frozenset({"save_neff_name", "platform_target", "debug_kernel", "show_compiler_tb"})
_COUNTS = frozenset({"warmup", "iters"})  # runs on a device; here one run is enough
_WITHOUT = {
    "save_trace_name": "nkic does not write traces of the vendor's profiler",
    "additional_compile_opt": "these are options of the vendor's compiler",
    "profile_nth": "every run of the simulator gives the same result",
}


@dataclass(frozen=True)
class Latency:
    """Simulated time in microseconds, the same in every run."""

    microseconds: float

    def get_latency_percentile(self, percentile: float) -> float:
        """Return the latency that `percentile` per cent of the runs do not exceed."""
        if not 0 <= percentile <= 100:
            raise ValueError(f"a percentile is between 0 and 100, not {percentile}")
        return self.microseconds


@dataclass(frozen=True)
class BenchmarkResult:
    """The result of a benchmark: `nc_latency`, and the whole run."""

    nc_latency: Latency
    result: api.Result


class Measured:
    """A kernel whose calls are measured and written to files."""

    def __init__(self, kernel: Kernel, files: Files) -> None:
        self.kernel = kernel
        self.func = kernel.func
        self.__wrapped__ = kernel.func
        self.__name__ = kernel.func.__name__
        self.files = files
        self.benchmark_result: BenchmarkResult | None = None

    def __getitem__(self, axes: Any) -> Measured:
        return Measured(self.kernel[axes], self.files)

    __iter__ = None

    @boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the kernel, record the measurement, and return the kernel's results."""
        called = self.kernel.run(args, kwargs)
        self.files.write(called)
        latency = Latency(called.result.time_ns / _NS_PER_US)
        self.benchmark_result = BenchmarkResult(latency, called.result)
        return arrays.settle(called)


@dataclass(frozen=True)
class Files:
    """The paths of the artifact, of the report in JSON, and of the report's page."""

    folder: Path = Path()
    neff: str | None = None
    report: str | None = None
    page: str | None = None

    def write(self, called: api.Called) -> None:
        if (self.neff, self.report, self.page) != (None, None, None):
            self.folder.mkdir(parents=True, exist_ok=True)
        if self.neff is not None:
            called.artifact.save(self.folder / self.neff)
        if self.report is not None:
            text = json.dumps(json.loads(called.result.json), indent=1)
            Path(self.folder, self.report).write_text(f"{text}\n", encoding="utf-8")
        if self.page is not None and called.result.insight is None:
            text = f"`{self.page}` is not written: the run was too long to be recorded"
            warnings.warn(text, NkicWarning, stacklevel=2)
        elif self.page is not None:
            Path(self.folder, self.page).write_text(called.result.page, encoding="utf-8")


def baremetal(kernel: Any = None, **options: Any) -> Any:
    """Run a kernel on NumPy arrays: here, in the simulator.

    `save_neff_name` writes the artifact, `artifacts_dir` chooses the folder.
    """
    return _decorator("baremetal", kernel, options, frozenset({"artifacts_dir"}))


def benchmark(kernel: Any = None, **options: Any) -> Any:
    """Run a kernel and record its simulated time.

    `benchmark_result.nc_latency.get_latency_percentile(99)` is in microseconds. `warmup` and
    `iters` have no effect: every run takes the same time.
    """
    return _decorator("benchmark", kernel, options, _COUNTS)


def profile(kernel: Any = None, **options: Any) -> Any:
    """Run a kernel and write its artifact and its report to `working_directory`."""
    return _decorator("profile", kernel, options, frozenset({"working_directory"}))


def former(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the Beta 1 form of one of these functions, for published kernels' options."""

    @functools.wraps(function)
    def decorator(kernel: Any = None, **options: Any) -> Any:
        name = f"nki.{function.__name__}"
        trace, flags = options.pop("save_trace_name", None), options.pop(_FLAGS, None)
        if "profile_nth" in options:
            text = f"{name}: `profile_nth=` has no effect: {_WITHOUT['profile_nth']}"
            warnings.warn(text, NkicWarning, stacklevel=2)
            del options["profile_nth"]
        with raising(CompileError):
            launch = _compiler_options(name, flags)
        made = function(None, **options)

        def decorate(wrapped: Any) -> Measured:
            plain: Measured = made(wrapped)
            page = None if trace is None else f"{trace}.html"
            return Measured(kernel_of(plain.kernel, launch), replace(plain.files, page=page))

        return decorate if kernel is None else decorate(kernel)

    return decorator


_FLAGS = "additional_compile_opt"
_INTERNAL = ("--internal-", "--disable-internal-", "--enable-internal-")


def _compiler_options(name: str, flags: Any) -> LaunchOptions:
    """Return what options of the vendor's compiler say about a launch. Raises `UsageFailed`.

    Options of its own passes have no effect, which is a warning.
    """
    launch = LaunchOptions()
    words = shlex.split(flags or "")
    while words:
        option, _, value = words.pop(0).partition("=")
        if option in ("--lnc", "--logical-nc-config", "--target"):
            value = value or (words.pop(0) if words else "")
        if option in ("--lnc", "--logical-nc-config") and value in ("1", "2"):
            launch = replace(launch, lnc=int(value))
        elif option == "--target":
            launch = replace(launch, target=find_target(value, f"{name}: {option}").name)
        elif option == NO_DGE:
            launch = replace(launch, dge=False)
        elif option.startswith(_INTERNAL):
            text = f"{name}: `{option}` has no effect: it is about a pass of the vendor's compiler"
            warnings.warn(text, NkicWarning, stacklevel=4)
        else:
            text = f"`{option}` is an option of the vendor's compiler that nkic does not have"
            refuse(
                f"{name}: `{_FLAGS}=`: {text}",
                f"leave it out; nkic has {NO_DGE}, --lnc, --logical-nc-config and --target",
            )
    return launch


def _decorator(
    name: str, kernel: Any, options: Mapping[str, Any], extra: frozenset[str]
) -> Measured | Callable[[Any], Measured]:
    with raising(CompileError):
        _check(name, options, _COMMON | extra)
    launch = LaunchOptions(target=options.get("platform_target"))
    files = _files(name, options)

    def decorate(function: Any) -> Measured:
        return Measured(kernel_of(function, launch), files)

    return decorate if kernel is None else decorate(kernel)


def _check(name: str, options: Mapping[str, Any], names: frozenset[str]) -> None:
    for option in options:
        if option in names:
            continue
        reason = _WITHOUT.get(option)
        if reason is not None:
            refuse(f"nki.{name}: `{option}=` cannot be honoured: {reason}", "leave it out")
        help = did_you_mean(option, sorted(names)) or f"options are {', '.join(sorted(names))}"
        refuse(f"nki.{name}: there is no option `{option}=`", help)
    for option in sorted(_COUNTS & options.keys()):
        value = options[option]
        if type(value) is not int or value < 0:
            refuse(f"nki.{name}: `{option}={value!r}` must be a number of runs")


def _files(name: str, options: Mapping[str, Any]) -> Files:
    folder = options.get("working_directory") or options.get("artifacts_dir")
    neff = options.get("save_neff_name")
    if neff is None and folder is not None:
        neff = "file.neff"
    return Files(
        Path(os.fspath(folder)) if folder is not None else Path(),
        neff,
        _REPORT if name == "profile" else None,
    )
