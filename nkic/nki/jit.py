"""`nki.jit` and `nki.simulate`: kernels that are called with arrays, and their launch grids.

A call compiles the kernel for its arguments, or takes it from the cache, and runs it in the
simulator. Results have the caller's kind of array; arrays that the kernel writes are updated in
place (source: `nki.simulate`, "How It Works").

A grid is what the brackets of `kernel[…]` hold. NKI 0.6 takes the number of cores that run the
kernel together: `kernel[2]`. The betas take a grid of instances, and `nl.nc(2)` for an axis that is
distributed over cores. Source: `nki.jit`; the guide to SPMD execution and the examples of the
betas.
"""

from __future__ import annotations

import functools
import operator
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from types import ModuleType
from typing import Any, NamedTuple

from nkic import api
from nkic.api import functions
from nkic.api.errors import CompileError, boundary, raising, refuse
from nkic.base import diagnostics, levels
from nkic.base.diagnostics import did_you_mean
from nkic.language import jit as configs
from nkic.language.jit import MESSAGES
from nkic.language.trace import current
from nkic.nki import arrays
from nkic.nki.names import framework_target
from nkic.specialise.request import Spread

MAX_LNC = 2  # cores that can run one kernel, on any target


class NeuronCores:
    """`nl.nc(2)`: a grid axis distributed over cores; `nl.nc(2) * 4` has 8 instances."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __mul__(self, instances: int) -> SpmdDim:
        return SpmdDim(self, instances)

    def __rmul__(self, instances: int) -> SpmdDim:
        return SpmdDim(instances, self)

    def __repr__(self) -> str:
        return f"nl.nc({self.count})"


class SpmdDim:
    """`nl.spmd_dim(nl.nc(2), 4)`: an axis with instances on several cores.

    The first part varies slowest: here the first core has instances 0 to 3; in `spmd_dim(4,
    nl.nc(2))` it has the even ones.
    """

    def __init__(self, *parts: int | NeuronCores) -> None:
        self.parts = parts

    def __repr__(self) -> str:
        return f"nl.spmd_dim({', '.join(map(repr, self.parts))})"


class Launch(NamedTuple):
    """How a kernel is launched: a grid of instances on one core, one instance per core, or a grid
    distributed over cores.
    """

    grid: tuple[int, ...] | None = None
    lnc: int | None = None
    spread: Spread | None = None


def launch(written: Any, spmd: bool) -> Launch:
    """Return the launch that the brackets denote.

    `spmd` makes a single number the count of instances on one core. Raises `UsageFailed`.
    """
    if written is None:
        return Launch()
    axes = tuple(written) if isinstance(written, Sequence) else (written,)
    across = [n for n, axis in enumerate(axes) if isinstance(axis, NeuronCores | SpmdDim)]
    if across:
        return _across(axes, across, written)
    sizes = tuple(_size(axis, written) for axis in axes)
    if len(sizes) == 1 and sizes[0] <= MAX_LNC and not spmd:
        return Launch(lnc=sizes[0])
    return Launch(grid=sizes)


def _across(axes: Sequence[Any], across: Sequence[int], written: Any) -> Launch:
    """Return a launch with one axis distributed over cores, with one or more instances on each."""
    position = across[0]
    parts = (
        axes[position].parts
        if isinstance(axes[position], SpmdDim)
        else axes[position : position + 1]
    )
    cores = [n for n, part in enumerate(parts) if isinstance(part, NeuronCores)]
    if len(across) > 1 or len(cores) != 1:
        refuse(
            f"the launch grid {written!r} must have one axis with one nl.nc(…)",
            "write kernel[nl.nc(2) * 4, 8], for example",
        )
    counts = [_size(part.count if n in cores else part, written) for n, part in enumerate(parts)]
    others = [_size(axis, written) for n, axis in enumerate(axes) if n != position]
    lnc, run = counts[cores[0]], prod(counts[cores[0] + 1 :])
    if prod(counts) * prod(others) == lnc:
        return Launch(lnc=lnc)
    others.insert(position, prod(counts))
    return Launch(tuple(others), lnc, Spread(position, run))


def _size(axis: Any, written: Any) -> int:
    try:
        size = int(axis.__index__())
    except AttributeError:
        size = 0
    if size < 1:
        refuse(f"the launch grid {written!r} must consist of positive integers")
    return size


FORMER = "neuronxcc.nki"
FORMER_NKI = "beta1"  # the version of `neuronxcc.nki`
# Of v2.22 to v2.24: True means that the kernel returns its outputs, which its code shows anyway.
_FORMER_OPTIONS = ("kernel_return",)
SIMULATOR = "NKI_SIMULATOR"  # 1 asks for the simulator, which nkic always uses
_MODES = ("auto", "simulation", "baremetal", "torchxla", "jax", "trace")  # ignored since NKI 0.3
# Options of the vendor's compiler in published kernels; nkic warns of them (jit-option).
_COMPILER = ("additional_compile_opt", "experimental_flags")


# A masked-out element is not written, in outputs too ("uninitialized", nki.language.load, SDK
# 2.26).
_LEVELS = levels.Settings().adding(levels.Wish.WARN, "output-partly-written")


@dataclass(frozen=True)
class LaunchOptions:
    """What a kernel is compiled for.

    `former`: it is written for `neuronxcc.nki`. `spmd`: a single number in the brackets counts
    instances on one core, as in the betas. `lnc` holds if the brackets say nothing about cores.
    `dge`: DMA engines may generate descriptors.
    """

    target: str | None = None
    former: bool = False
    spmd: bool = False
    axes: Any = None
    schedule: tuple[Any, ...] = ()
    lnc: int | None = None
    dge: bool = True

    def options(self) -> dict[str, Any]:
        """Return the options in the form of `nkic.call`. Raises `UsageFailed`."""
        settings = {
            "target": self.target or framework_target(),
            **launch(self.axes, self.spmd)._asdict(),
        }
        if self.former:
            settings["nki"] = FORMER_NKI
            settings["levels"] = _LEVELS
        if self.schedule:
            settings["schedule"] = self.schedule
        if self.lnc is not None and settings["lnc"] is None and settings["grid"] is None:
            settings["lnc"] = self.lnc
        if not self.dge:
            settings["dge"] = False
        return settings


@dataclass(frozen=True)
class Call:
    """The result of a call with its run. `values` are in the caller's kind."""

    values: Any
    called: api.Called = field(repr=False)

    def _repr_html_(self) -> str:
        """The run, for notebooks."""
        return self.called._repr_html_()


class Kernel:
    """A function under `nki.jit`.

    `kernel[2](a, b)` runs it on two cores, `kernel[4, 2](a, b)` as a grid of instances.
    """

    def __init__(self, func: Callable[..., Any], launch: LaunchOptions | None = None) -> None:
        functools.update_wrapper(self, func)
        self.func = func
        self.launch = launch or LaunchOptions()

    @property
    def grid(self) -> Any:
        """The contents of the brackets, or None."""
        return self.launch.axes

    def __getitem__(self, axes: Any) -> Kernel:
        return Kernel(self.func, replace(self.launch, axes=axes))

    __iter__ = None  # otherwise Python would iterate over the grids 0, 1, 2 … forever

    def with_schedule(self, edges: Any) -> Kernel:
        """Return the kernel with additional ordering.

        ("b", "a") or ("b", ["a", "c"]) makes the instruction named b wait for the others.
        """
        return Kernel(self.func, replace(self.launch, schedule=(*self.launch.schedule, *edges)))

    @boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the kernel. Raises `CompileError` and `RunError`, and whatever the kernel raises.

        In a kernel that Python evaluates, the body becomes part of that kernel.
        """
        trace = current()
        if trace is not None and trace.spaces:
            return self.func(*args, **kwargs)
        return self._called(args, kwargs)

    def _called(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        torch = sys.modules.get("torch")
        if torch is not None and torch.compiler.is_compiling():
            return torch.compiler.disable(self.call)(*args, **kwargs).values
        if arrays.is_traced(args, kwargs):
            return arrays.in_jax(self, args, kwargs)
        return self.call(*args, **kwargs).values

    @boundary
    def call(self, *args: Any, **kwargs: Any) -> Call:
        """Run the kernel, and return its results with cycles and report in `called.result`."""
        called = self.run(args, kwargs)
        return Call(arrays.settle(called), called)

    def run(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], **options: Any) -> api.Called:
        """Compile and run with further options of `nkic.call`; the caller's arrays are not
        changed.
        """
        with arrays.adapting():
            called = api.call(self.func, args, kwargs, **{**self.nkic_options(), **options})
        tell(called)
        return called

    @boundary
    def ranks(self, calls: Sequence[Sequence[Any] | Mapping[str, Any]]) -> list[Any]:
        """Run the kernel on several devices together, as ranks 0, 1, …, and return each rank's
        results.

        `calls` are the arguments of each rank, by position or by name.
        """
        with arrays.adapting():
            results = api.call_ranks(self.func, calls, **self.nkic_options())
        for called in results:
            tell(called)
        return [arrays.settle(called) for called in results]

    @boundary
    def prepare(self, *args: Any, **kwargs: Any) -> api.Prepared:
        """Compile for these arguments without running."""
        with arrays.adapting():
            return api.prepare(self.func, args, kwargs, **self.nkic_options())

    def nkic_options(self) -> dict[str, Any]:
        """Return the kernel's own settings as options of `nkic.call`. Raises `CompileError`."""
        former = self.launch.former or _is_former(self.func)
        with raising(CompileError):
            check_environment()
            return replace(self.launch, former=former, spmd=self.launch.spmd or former).options()

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        return self if owner is None else functools.partial(self, owner)

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickle by module and qualified name, as Python pickles functions."""
        name = self.func.__qualname__
        try:
            plain = operator.attrgetter(name)(sys.modules[self.func.__module__])
        except (KeyError, AttributeError):
            return name  # pickle reports that nothing has this name
        if plain is self or not isinstance(plain, Kernel) or plain.func is not self.func:
            return name
        return _launched, (plain, self.launch)

    def __repr__(self) -> str:
        axes = "" if self.launch.axes is None else f"[{self.launch.axes!r}]"
        name = getattr(self.func, "__qualname__", None) or repr(self.func)
        return f"<nki kernel {name}{axes}>"


def _launched(kernel: Kernel, launch: LaunchOptions) -> Kernel:
    return Kernel(kernel.func, launch)


def tell(called: api.Called) -> None:
    """Write the kernel's prints to standard output: those of its compilation, and of
    `nl.device_print`.

    Source: `nl.device_print`, the guide to the simulator.
    """
    sys.stdout.write("".join(called.artifact.messages))
    sys.stdout.write("".join(f"{line}\n" for line in called.result.prints))


def jit(fn: Any = None, **options: Any) -> Any:
    """Make a kernel of a function. Calls compile it and run it in the simulator.

    `platform_target` is the target, by default that of NEURON_PLATFORM_TARGET_OVERRIDE, or of
    `--target` in NEURON_CC_FLAGS, or trn2; `mode` may be any that NKI has had, and has no effect.
    Raises `CompileError` for other options.
    """
    return _decorator(fn, options, former=False)


def former_jit(fn: Any = None, **options: Any) -> Any:
    """Make a kernel of a function for the betas: `neuronxcc.nki.jit`."""
    return _decorator(fn, options, former=True)


def nki_jit(fn: Any = None, **options: Any) -> Any:
    """Make a kernel whose brackets hold a grid of instances on one core:
    `torch_neuronx.nki_jit`.
    """
    if fn is None:
        return lambda f: nki_jit(f, **options)
    return kernel_of(jit(fn, **options), LaunchOptions(spmd=True))


def _decorator(fn: Any, options: Mapping[str, Any], former: bool) -> Any:
    with raising(CompileError):
        launch = _launch(options, former)
    return (lambda f: kernel_of(f, launch)) if fn is None else kernel_of(fn, launch)


def kernel_of(fn: Any, launch: LaunchOptions | None = None) -> Kernel:
    """Return the kernel of a function, or a kernel with the additional settings of `launch`."""
    inside = getattr(fn, "kernel", None)  # of a measured or simulated kernel
    if isinstance(inside, Kernel):
        fn = inside
    if not isinstance(fn, Kernel):
        return Kernel(fn, launch)
    if launch is None:
        return fn
    former, spmd = launch.former or fn.launch.former, launch.spmd or fn.launch.spmd
    target, lnc = launch.target or fn.launch.target, launch.lnc or fn.launch.lnc
    dge = launch.dge and fn.launch.dge
    merged = replace(fn.launch, target=target, former=former, spmd=spmd, lnc=lnc, dge=dge)
    return Kernel(fn.func, merged)


def _launch(options: Mapping[str, Any], former: bool) -> LaunchOptions:
    names = ("mode", "platform_target", *MESSAGES, *_COMPILER, *configs.OPTIONS)
    names += _FORMER_OPTIONS if former else ()
    for name in options:
        if name not in names:
            help = did_you_mean(name, names) or f"options are {', '.join(names)}"
            refuse(f"nki.jit: there is no option `{name}=`", help)
    mode = options.get("mode", "auto")
    if mode not in _MODES:
        refuse(f"nki.jit: there is no mode {mode!r}", f"use one of {_MODES}, or none")
    for name in options.keys() & configs.OPTIONS.keys():
        _check_config(name, options[name])
    return LaunchOptions(options.get("platform_target"), former, spmd=former)


def _check_config(name: str, value: Any) -> None:
    """Check a configuration of the compiler behind NKI; its settings have no effect here."""
    if text := configs.wrong(name, value):
        refuse(f"nki.jit: {text}, not {value!r}")
    code = diagnostics.codes()["jit-option"].number
    for setting in configs.unsupported_settings(value):
        text = f"{code}: nki.jit: `{setting}` of `{name}=` has no meaning for nkic"
        warnings.warn(api.NkicWarning(text, code), stacklevel=5)


def _is_former(func: Any) -> bool:
    """Whether the function's module imports `neuronxcc.nki`, whose kernels are of the betas."""
    globals_used = getattr(functions.unwrapped(func), "__globals__", {}).values()
    return any(
        isinstance(value, ModuleType) and value.__name__.startswith(FORMER)
        for value in globals_used
    )


class Simulation:
    """The result of `nki.simulate`: a call runs the kernel in the simulator."""

    def __init__(self, kernel: Kernel) -> None:
        functools.update_wrapper(self, kernel)
        self.kernel = kernel

    def __getitem__(self, axes: Any) -> Simulation:
        return Simulation(self.kernel[axes])

    __iter__ = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.kernel(*args, **kwargs)

    def ranks(self, calls: Sequence[Sequence[Any] | Mapping[str, Any]]) -> list[Any]:
        """Run the kernel on several devices together, as `Kernel.ranks` does."""
        return self.kernel.ranks(calls)


def simulate(kernel: Any) -> Simulation:
    """Return a callable that runs the kernel in the simulator. Plain functions are accepted,
    too.
    """
    return Simulation(kernel_of(kernel))


def simulate_kernel(kernel: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a kernel once in the simulator: `neuronxcc.nki.simulate_kernel(kernel, a, b)`."""
    return kernel_of(kernel)(*args, **kwargs)


def check_environment() -> None:
    """Reject a setting that asks for a device. Raises `UsageFailed`."""
    if os.environ.get(SIMULATOR, "1") not in ("1", ""):
        value = os.environ[SIMULATOR]
        refuse(f"{SIMULATOR}={value} selects a device, but nkic has none", f"unset {SIMULATOR}")


former_jit.__name__ = former_jit.__qualname__ = "jit"
for _public in (jit, former_jit, nki_jit, simulate, simulate_kernel):
    _public.__module__ = "nki"  # where users find it, and its name for the compiler
