"""The options of calls: what a kernel is compiled for, and how it is run.

An option's type says, beside its kind, which of its values are refused, and in which words.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import index
from typing import Annotated, Any, NamedTuple, SupportsFloat, SupportsIndex, TypedDict, TypeVar

from nkic.api.errors import CompileError, RunError, raising, refuse
from nkic.base import limits
from nkic.base import limits as table
from nkic.base.diagnostics import bad_value, did_you_mean
from nkic.base.levels import Settings, Wish, selected
from nkic.machine.targets import MachineFile, figures_of, load_machine
from nkic.specialise.request import Spread


@dataclass
class Calls:
    """Settings of every call of the process.

    `nki` is the NKI version of calls that name none: that of `nkic.install(nki=…)`, `python -m nkic
    --nki …` and `pytest --nkic-nki …`.
    """

    nki: str | None = None


CALLS = Calls()
MEMORY = "memory"  # the limit that compiling and running share
PLACES = ("grid", "lnc", "spread")  # options that choose the instances and cores a kernel runs on
Machine = str | os.PathLike[str] | Mapping[str, Any] | None


class _Values(NamedTuple):
    """The values that an option takes: in words, and as a predicate. None is always allowed."""

    words: str
    allowed: Callable[[Any], bool]


def _is(kind: Any) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kind)


def _is_count(value: Any) -> bool:
    return isinstance(value, SupportsIndex) and not isinstance(value, bool) and index(value) > 0


def _is_grid(value: Any) -> bool:
    return _is_count(value) or (isinstance(value, Sequence) and all(map(_is_count, value)))


def _are_counts(value: Any) -> bool:
    return isinstance(value, Mapping) and all(map(_is_count, value.values()))


def _is_tolerance(value: Any) -> bool:
    return isinstance(value, SupportsFloat) and float(value) >= 0


def _is_time(value: Any) -> bool:
    return _is_tolerance(value) and float(value) > 0


_NAMED_COUNTS = "a mapping from names to ints of at least 1"
Flag = Annotated[bool, _Values("True or False", (True, False).__contains__)]
Count = Annotated[int, _Values("an int of at least 1", _is_count)]
Limits = Annotated[Mapping[str, int], _Values(_NAMED_COUNTS, _are_counts)]
Tolerance = Annotated[float, _Values("a number of at least 0", _is_tolerance)]
Seconds = Annotated[float, _Values("a number of seconds above 0", _is_time)]
Grid = Annotated[
    int | Sequence[int], _Values("an int of at least 1, or a sequence of them", _is_grid)
]
Cores = Annotated[Spread, _Values("a Spread", _is(Spread))]
Levels = Annotated[Settings, _Values("a Settings of nkic.base.levels", _is(Settings))]
Fill = Annotated[str, _Values("a text such as 'randn(0)'", _is(str))]
ByName = Annotated[Mapping[str, Any], _Values("a mapping by name", _is(Mapping))]


class Compiling(TypedDict, total=False):
    """How to compile a kernel.

    `target` is "trn1", "trn2" or "trn3", by default that of NEURON_PLATFORM_TARGET_OVERRIDE, or
    trn2; `nki` is the NKI version; `grid` is the launch grid of instances on one core, `lnc` the
    number of cores, `spread` how a grid is distributed over several; `serial` compiles without
    overlap; `spill` lets tiles wait in HBM if SBUF has no room for all that are live at once;
    `optimise` is the level of `nkic -O`, from 0 to 2, by default 1; `machine` is the machine file
    to schedule for: its path, or figures as a mapping; `schedule` is what `with_schedule` takes;
    `levels` are levels of warnings; `evaluate` is "native" if Python itself calls a live kernel, or
    "closed" if it is evaluated from source; `limits` are those of `nkic --limit` on this
    evaluation, by name: {"steps": 1_000_000_000, "memory": 1 << 30}; `dge`, if False,
    prepares the descriptors of transfers that name no mode (`--disable-dge`), as by default for
    Beta 1.
    """

    target: str | None
    nki: str | None
    grid: Grid | None
    lnc: Count | None
    spread: Cores | None
    serial: Flag
    spill: Flag
    optimise: int
    machine: Machine
    schedule: Sequence[Any]
    levels: Levels | None
    evaluate: str | None
    limits: Limits | None
    dge: Flag


class Preparing(Compiling, total=False):
    """How to compile a live kernel.

    `cache_dir` keeps artifacts for other processes; by default NKIC_CACHE_DIR, or the user's own
    cache folder.
    """

    cache_dir: str | os.PathLike[str] | None


class Running(TypedDict, total=False):
    """How to run an artifact.

    `init_check` makes reads of uninitialised bytes an error, which is the default; `race_check`
    makes unordered accesses an error: by default those of one core, with True also those of two
    cores to a tensor in shared HBM, even at addresses that only a run knows; `precise_fp` rounds
    after every instruction, by default as NKI_PRECISE_FP says, else yes; `accumulate` is "exact",
    "float32" or "pairwise", by default the order measured on a device, else exact;
    `report_error_bound` computes how far results may be from exact arithmetic; `machine` gives
    timing figures other than the target's own: the path of a machine file, or a mapping
    ({"dma.done_ns": 300, "contention": "all"}); `max_cycles` of the simulated clock, `max_memory`
    in bytes and `timeout` in seconds are limits; `limits` may give the memory, too, as
    {"memory": 1 << 30}; `levels` are levels of warnings.

    `dump` keeps tensors in the result's `dumps`: "acc@12" after each write by line 12, "all" after
    every write. `watch` prints each change to a tensor or a part of one: "acc[0:4]". `expect_at`
    maps lines to arrays by tensor name; the run raises `RunError` at the first line where a tensor
    differs by more than `rtol` and `atol`, which default to those of the element type.
    """

    init_check: Flag
    race_check: Flag | None
    precise_fp: Flag | None
    accumulate: str | None
    report_error_bound: Flag
    machine: Machine
    max_cycles: Count | None
    max_memory: Count | None
    timeout: Seconds | None
    limits: Limits | None
    levels: Levels | None
    dump: str | Sequence[str] | None
    watch: str | Sequence[str] | None
    expect_at: Mapping[int, Mapping[str, Any]] | None
    rtol: Tolerance | None
    atol: Tolerance | None


class Calling(Preparing, Running, total=False):
    """Options of a call: those of compiling and those of running."""


class _Named(TypedDict):
    """Parameters of single functions."""

    max_errors: Count
    orders: Count
    fill: Fill
    inputs: ByName


Function = TypeVar("Function", bound=Callable[..., Any])


def documented(*kinds: type) -> Callable[[Function], Function]:
    """Return a decorator that adds these options to a function's documentation, for `help`."""

    def decorated(function: Function) -> Function:
        texts = [f"{kind.__name__} options: {kind.__doc__}" for kind in kinds]
        function.__doc__ = "\n".join([str(function.__doc__).rstrip(), "", *texts])
        return function

    return decorated


def machine_of(machine: Machine) -> MachineFile | None:
    """Return the machine file that `machine` names or describes. Raises `UsageFailed`."""
    if machine is None:
        return None
    if isinstance(machine, Mapping):
        return figures_of("machine", machine)
    if not isinstance(machine, str | os.PathLike):
        text = f"machine is a {type(machine).__qualname__}, neither a path nor a mapping"
        raise bad_value(text, "pass the path of a machine file")
    return load_machine(os.fspath(machine))


def limits_of(limits: Mapping[str, int] | None) -> limits.Limits | None:
    """Return the limits on evaluating a kernel, None for the defaults. Raises `UsageFailed`."""
    if limits is None:
        return None
    rows = {n: row for n, row in table.of("nkic").items() if row.number is None or n == MEMORY}
    for name, value in limits.items():
        row = rows.get(name)
        if row is None:
            help = did_you_mean(str(name), rows) or f"limits are {', '.join(rows)}"
            refuse(f"limits: no limit of the evaluation is called {name!r}", help)
        if row.maximum is not None and value > row.maximum:
            refuse(f"limits: {name} is {value:,}; it must be at most {row.maximum:,}")
    return replace(table.evaluation(limits), memory=limits.get(MEMORY))


def memory_of(call_options: Running) -> int | None:
    """Return the bytes that a run may take: the lower of its two limits. Raises `UsageFailed`."""
    limits = call_options.get("limits") or {}
    if others := [name for name in limits if name != MEMORY]:
        refuse(
            f"limits: no limit of a run is called {others[0]!r}",
            f"a run's limits are {MEMORY!r} here, max_cycles= and timeout=",
        )
    given = (call_options.get("max_memory"), limits.get(MEMORY))
    return min((number for number in given if number is not None), default=None)


def check(function: str, call_options: Mapping[str, Any], kind: type, **named: Any) -> None:
    """Raise `TypeError` for an option that `kind` does not have, as Python does.

    `named` are the function's named parameters. Raises `CompileError` for a value that an option
    does not take, or `RunError` if `kind` is `Running`.
    """
    names = tuple(kind.__annotations__)
    for name in call_options:
        if name not in names:
            help = did_you_mean(name, names) or f"options are {', '.join(names)}"
            raise TypeError(f"nkic.{function}() has no option {name!r}; {help}")
    for name, value in {**call_options, **named}.items():
        for values in _values(kind.__annotations__.get(name) or _Named.__annotations__[name]):
            if value is not None and not values.allowed(value):
                with raising(RunError if kind is Running else CompileError):
                    refuse(f"nkic.{function}(): {name} is {value!r}, but must be {values.words}")


def _values(annotation: Any) -> tuple[_Values, ...]:
    kinds = (annotation, *getattr(annotation, "__args__", ()))
    return next((kind.__metadata__ for kind in kinds if hasattr(kind, "__metadata__")), ())


def joined(defaults: Mapping[str, Any], call_options: Compiling) -> Any:
    """Merge the options of a call with those of its kernel; the call's take precedence.

    Raises `UsageFailed` if both choose the instances and cores that the kernel runs on.
    """
    first = {name: value for name, value in call_options.items() if value is not None}
    second = {name: value for name, value in defaults.items() if value is not None}
    if second.keys() & PLACES and (named := [name for name in PLACES if name in first]):
        refuse(
            f"the kernel has a grid in brackets, and the call says `{named[0]}`",
            "leave out one of the two",
        )
    schedule = (*second.get("schedule", ()), *call_options.get("schedule", ()))
    return {**second, **first, **({"schedule": schedule} if schedule else {})}


def preparing(call_options: Mapping[str, Any]) -> Any:
    """Return the options of compiling for a call.

    A run that does not check for uninitialised bytes can succeed where they are read.
    """
    chosen = subset(call_options, Preparing)
    if call_options.get("init_check", True):
        return chosen
    settings = chosen.get("levels") or Settings()
    unchecked = {selected("read-never-written", "init_check"): Wish.WARN}
    return {**chosen, "levels": replace(settings, wishes={**unchecked, **settings.wishes})}


def running(call_options: Mapping[str, Any]) -> Any:
    """Return the options of running a call's kernel: its other limits were those of compiling."""
    chosen = subset(call_options, Running)
    limits = chosen.get("limits") or {}
    return {**chosen, "limits": {name: limits[name] for name in limits if name == MEMORY}}


def subset(call_options: Mapping[str, Any], kind: type) -> Any:
    return {name: value for name, value in call_options.items() if name in kind.__annotations__}
