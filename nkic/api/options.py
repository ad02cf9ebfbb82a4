"""The options of calls: what a kernel is compiled for, and how it is run.

An option's type says, beside its kind, which of its values are refused, and in which words.
"""

import inspect
import os
from collections.abc import Callable, Container, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache, partial
from operator import index
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    NamedTuple,
    SupportsFloat,
    SupportsIndex,
    TypedDict,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from nkic.api.errors import boundary, refuse
from nkic.base import limits
from nkic.base import limits as table
from nkic.base.diagnostics import Diagnostic, bad_argument, did_you_mean
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


class Values(NamedTuple):
    """The values that an argument takes: in words, and as a predicate beside its type."""

    words: str
    allowed: Callable[[Any], bool] | None = None
    help: str = ""


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


def is_path(value: Any) -> bool:
    return isinstance(value, str | os.PathLike) and b"\0" not in os.fsencode(os.fspath(value))


def _is_time(value: Any) -> bool:
    return _is_tolerance(value) and float(value) > 0


_NAMED_COUNTS = "a mapping from names to ints of at least 1"
Count = Annotated[int, Values("an int of at least 1", _is_count)]
Limits = Annotated[Mapping[str, int], Values(_NAMED_COUNTS, _are_counts)]
Tolerance = Annotated[float, Values("a number of at least 0", _is_tolerance)]
Seconds = Annotated[float, Values("a number of seconds above 0", _is_time)]
Grid = Annotated[
    int | Sequence[int], Values("an int of at least 1, or a sequence of them", _is_grid)
]
Cores = Annotated[Spread, Values("a Spread", _is(Spread))]
Levels = Annotated[Settings, Values("a Settings of nkic.base.levels", _is(Settings))]
Fill = Annotated[str, Values("a text such as 'randn(0)'", _is(str))]
ByName = Annotated[Mapping[str, Any], Values("a mapping by name")]
FilePath = Annotated[str | os.PathLike[str], Values("the path of a file", is_path)]
Machine = Annotated[
    FilePath | Mapping[str, Any] | None,
    Values("the path of a machine file or a mapping of figures"),
]
Seed = Annotated[int, Values("an int from 0 to 2**32 - 1", lambda value: index(value) >> 32 == 0)]


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
    serial: bool
    spill: bool
    optimise: int
    machine: Machine
    schedule: Sequence[Any]
    levels: Levels | None
    evaluate: str | None
    limits: Limits | None
    dge: bool


class Preparing(Compiling, total=False):
    """How to compile a live kernel.

    `cache_dir` keeps artifacts for other processes; by default NKIC_CACHE_DIR, or the user's own
    cache folder. `include` names folders whose data the closed world may read, besides the one of
    the kernel's file.
    """

    cache_dir: FilePath | None
    include: Sequence[FilePath]


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

    init_check: bool
    race_check: bool | None
    precise_fp: bool | None
    accumulate: str | None
    report_error_bound: bool
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


def public(
    failure: Callable[[Sequence[Diagnostic]], Exception], without: Container[str] = ()
) -> Callable[[Function], Function]:
    """Return a decorator for what users call: its annotations are what it takes.

    Python's own `TypeError` answers missing, superfluous and unknown arguments, and options that it
    is `without`; `failure` answers values of other types. Both end at the line of the call.
    """

    def decorated(function: Function) -> Function:
        public: Any = boundary(function, partial(_misuse, function, failure, without))
        return public  # type: ignore[no-any-return]

    return decorated


@cache
def _parameters(function: Any) -> tuple[inspect.Signature, dict[str, Any], dict[str, Any] | None]:
    """Return the signature of a function, its types, and those of its options, if it has any."""
    hints = get_type_hints(function, include_extras=True)
    (kind,) = get_args(hints.pop("call_options", None)) or (None,)
    options = get_type_hints(kind, include_extras=True) if kind is not None else None
    return inspect.signature(function), hints, options


def _misuse(
    function: Any,
    failure: Callable[[Sequence[Diagnostic]], Exception],
    without: Container[str],
    args: Sequence[Any],
    named: Mapping[str, Any],
) -> Exception | None:
    called = f"nkic.{function.__qualname__.removesuffix('.__init__')}()"
    signature, hints, options = _parameters(function)
    if options is not None:
        for name in named:
            if name in signature.parameters and name != "call_options":
                continue
            if name in without and named[name] is not None:
                return TypeError(f"{called} has no option {name!r}: it is about one run")
            if name not in options:
                help = did_you_mean(name, options) or f"options are {', '.join(options)}"
                return TypeError(f"{called} has no option {name!r}; {help}")
        hints = {**hints, **{name: hint | None for name, hint in options.items()}}
    try:
        given = signature.bind(*args, **named).arguments
    except TypeError:
        return None  # Python itself says it
    for name, value in {**given, **given.pop("call_options", {})}.items():
        if not takes(hint := hints.get(name, Any), value):
            text = f"{called}: {name} is {_shown(value)}, but must be {_words(hint)}"
            return failure(bad_argument(text, _help(hint)).diagnostics)
    return None


def takes(hint: Any, value: Any) -> bool:
    """Whether a value, and what is in it, is of an annotated type."""
    origin, args = get_origin(hint), get_args(hint)
    try:
        if origin is Annotated:
            allowed = [v.allowed for v in args[1:] if isinstance(v, Values) and v.allowed]
            return takes(args[0], value) and all(allow(value) for allow in allowed)
        if origin in (Union, UnionType):
            return any(takes(arg, value) for arg in args)
        if hint is Any:
            return True
        if hint is bool:
            return isinstance(value, int | np.bool) and value in (False, True)
        if hint is int:
            return index(value) is not None
        if hint is float:
            return isinstance(value, SupportsFloat)
        if origin is Mapping and isinstance(value, Mapping):
            values = value if args[1] is not Any else ()  # reading one may be work, or fail
            return all(takes(args[0], key) for key in value) and all(
                takes(args[1], value[key]) for key in values
            )
        if origin is Sequence and isinstance(value, Sequence | Set):
            return not isinstance(value, str | bytes) and all(takes(args[0], v) for v in value)
        return isinstance(value, origin or hint)
    except Exception:  # of the value's own methods
        return False


_WORDS = {bool: "True or False", int: "an int", float: "a number", str: "a text"}
_WORDS |= {NoneType: "None", os.PathLike: "a path", Mapping: "a mapping", Sequence: "a sequence"}


def _words(hint: Any) -> str:
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return next(v.words for v in args[1:] if isinstance(v, Values))
    if origin in (Union, UnionType):
        words = [_words(arg) for arg in args if arg is not NoneType]
        return " or ".join([*words, *["None"] * (NoneType in args)])
    kind = origin or hint
    if kind in _WORDS:
        is_told = args and args[-1] is not Any and kind is Sequence
        return _WORDS[kind] + (f" (each item {_words(args[-1])})" if is_told else "")
    name = "function" if kind is Callable else kind.__name__
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def _help(hint: Any) -> str:
    return next((v.help for v in get_args(hint) if isinstance(v, Values)), "")


def _shown(value: Any) -> str:
    """Return a value as Python shows it, or its type if that is long."""
    try:
        text = repr(value)
    except Exception:
        text = "\n"
    return text if len(text) <= 60 and "\n" not in text else f"a {type(value).__qualname__}"


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
    schedule = (*second.get("schedule", ()), *(call_options.get("schedule") or ()))
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
