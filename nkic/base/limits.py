"""The table of limits: the names of `--limit NAME=VALUE`, and their defaults.

The help of both commands lists them, and docs/security.md prints the same table; a test compares
the two.
"""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path

from nkic.base.diagnostics import bad_value, suggestion
from nkic.base.text import grouped, size, size_of

# ---- Limits on evaluating a kernel, enforced by the interpreter and set with `--limit` ----------
# docs/security.md describes their purpose.


@dataclass(frozen=True)
class Limits:
    """The limits, with their defaults."""

    steps: int = 100_000_000  # nodes evaluated, plus one per four bytes of values
    length: int = 1 << 20  # elements of a list, tuple or range, characters of a string
    bits: int = 1 << 13  # of an integer
    width: int = 4096  # of one formatted field
    depth: int = 900  # nested calls, nested containers
    memory: int | None = None  # bytes of values and instructions, all that are ever made


DEFAULT_LIMITS = Limits()


# --------------------------------------------------------------------------------------------------

GIB = 1 << 30
NONE = "none"
OPTION = "--limit"
THREADS = "OPENBLAS_NUM_THREADS"
LEAST_MEMORY = 256 << 20  # bytes of address space
SPARE_SECONDS = 60  # of processor time beyond the time limit, for starting and ending the command
_CGROUP = Path("/sys/fs/cgroup/memory.max")
_PLAIN = re.compile(r"\d{1,15}")
_PARTS = re.compile(r"\d{1,15}(?:\.\d{1,6})?")
MEASURED = -1
Values = Mapping[str, float | None]  # by name; a whole number of everything but time


@dataclass(frozen=True)
class Limit:
    """A row of the table.

    `number` is the system's resource number, MEASURED for what the command itself measures, and
    None for what the interpreter of kernels counts.
    `defaults` maps tools to values; None means no limit.
    """

    name: str
    number: int | None
    meaning: str
    unit: str  # bytes, seconds, or what is counted
    defaults: Values
    when: str = ""  # conditions on the default
    minimum: int = 0
    maximum: int | None = None  # with more, Python's own stack would overflow first
    removable: bool = True  # whether `none` is a value

    def read(self, text: str) -> float | None:
        """Parse a value; None for `none`. Raises `ValueError`."""
        text = text.strip()
        if text == NONE and self.removable:
            return None
        if self.unit == "bytes":
            return size_of(text)
        if not (_PARTS if self.name == TIME else _PLAIN).fullmatch(text):
            raise ValueError(text)
        return int(text) if _PLAIN.fullmatch(text) else float(text)

    def shown(self, value: float | None) -> str:
        """Return a value in words: `8.0 GiB`, `900 seconds`, `512`."""
        if value is None:
            return NONE
        if self.unit == "bytes":
            return size(int(value))
        if self.unit == "seconds":
            return f"{value:,g} {self.unit}"
        return grouped(int(value))


def _both(value: int | None) -> dict[str, float | None]:
    return {"nkic": value, "nki-run": value}


def _evaluation(name: str, meaning: str, unit: str, maximum: int | None = None) -> Limit:
    """Return a limit on evaluating a kernel. It cannot be `none`: evaluation has to end."""
    value: int = getattr(DEFAULT_LIMITS, name)
    return Limit(name, None, meaning, unit, {"nkic": value}, maximum=maximum, removable=False)


TIME = "time"
LIMITS = {
    limit.name: limit
    for limit in (
        Limit(
            *(TIME, MEASURED, "elapsed time", "seconds"),
            {"nkic": 900, "nki-run": None},
            "from reading the first file to the end of the compilation or the run",
        ),
        Limit(
            *("memory", resource.RLIMIT_AS, "address space, and the arrays of a run", "bytes"),
            {"nkic": 8 * GIB, "nki-run": None},
            "at most the machine's memory, or what its control group allows",
        ),
        Limit(
            *("errors", MEASURED, "errors after which a compilation gives up", "errors"),
            {"nkic": 20},
            minimum=1,
            removable=False,
        ),
        Limit(
            *("cycles", MEASURED, "simulated time", "cycles"),
            {"nki-run": None},
            minimum=1,
        ),
        Limit(
            *("iterations", MEASURED, "iterations of a loop whose end a run decides", "iterations"),
            {"nki-run": 1_000_000},
            minimum=1,
            removable=False,
        ),
        Limit(
            *("cpu", resource.RLIMIT_CPU, "processor time", "seconds"),
            {"nkic": 900 + SPARE_SECONDS, "nki-run": 24 * 3600},
            f"nkic: {SPARE_SECONDS} more than `{TIME}`",
        ),
        Limit("core", resource.RLIMIT_CORE, "size of a core dump", "bytes", _both(0)),
        Limit("files", resource.RLIMIT_NOFILE, "open files", "files", _both(512)),
        Limit(
            *("file-size", resource.RLIMIT_FSIZE, "size of a written file", "bytes"),
            {"nkic": 4 * GIB, "nki-run": 64 * GIB},
        ),
        Limit(
            *("processes", resource.RLIMIT_NPROC, "additional processes and threads", "processes"),
            _both(0),
            f"none if {THREADS} requests more than one; root is exempt",
        ),
        _evaluation("steps", "evaluated nodes, plus one per four bytes of values", "steps"),
        _evaluation(
            "length", "elements of a container or range, characters of a string", "elements"
        ),
        _evaluation("bits", "size of an integer", "bits"),
        _evaluation("width", "characters of one formatted field", "characters"),
        _evaluation("depth", "nested calls, nested values", "levels", DEFAULT_LIMITS.depth),
    )
}


def of(tool: str) -> dict[str, Limit]:
    """Return the limits of a command, by name."""
    return {name: limit for name, limit in LIMITS.items() if tool in limit.defaults}


def default(tool: str, name: str) -> float | None:
    """Return the value of a limit that is not given."""
    return LIMITS[name].defaults.get(tool)


def read(tool: str, options: Sequence[str]) -> dict[str, float | None]:
    """Parse the values of `--limit`, by name. Raises `UsageFailed`."""
    parsed: dict[str, float | None] = {}
    limits = of(tool)
    for option in options:
        name, _, text = option.partition("=")
        limit = limits.get(name)
        if limit is None:
            text = f"{OPTION}: {tool} has no limit `{name}`"
            raise bad_value(text, suggestion(name, limits))
        if name in parsed:
            raise bad_value(f"{OPTION}: `{name}` is given twice")
        try:
            value = parsed[name] = limit.read(text)
        except ValueError:
            example = "4GiB" if limit.unit == "bytes" else "600"
            advice = f"for example {OPTION} {name}={example}"
            advice += f", or {OPTION} {name}={NONE}" if limit.removable else ""
            raise bad_value(
                f"{OPTION} {option}: expected a number of {limit.unit}", advice
            ) from None
        if name == TIME and value == 0:
            raise bad_value(f"{OPTION} {option}: must be more than 0")
        # With less address space, libraries abort the process; a run is judged by its arrays first.
        minimum = LEAST_MEMORY if (tool, name) == ("nkic", "memory") else limit.minimum
        if value is not None and value < minimum:
            raise bad_value(f"{OPTION} {option}: must be at least {limit.shown(minimum)}")
        if value is not None and limit.maximum is not None and value > limit.maximum:
            raise bad_value(f"{OPTION} {option}: must be at most {limit.shown(limit.maximum)}")
    return parsed


def values(tool: str, explicit: Values, environ: Mapping[str, str]) -> dict[str, float | None]:
    """Return the value of every limit of a command, by name: the given one, or the default.

    Raises `UsageFailed`.
    """
    limits = {name: limit.defaults[tool] for name, limit in of(tool).items()}
    available = machine_memory()
    sizes = [number for number in (limits["memory"], available) if number is not None]
    limits["memory"] = min(sizes, default=None)
    if tool == "nkic" and TIME in explicit:
        seconds = explicit[TIME]
        limits["cpu"] = None if seconds is None else int(min(seconds, 1e9)) + SPARE_SECONDS
    if environ.get(THREADS, "1") != "1":
        if explicit.get("processes") == 0:
            text = (
                f"`{OPTION} processes=0` and {THREADS}={environ[THREADS]} cannot be used together"
            )
            raise bad_value(text, "a thread counts as a process here")
        limits["processes"] = None
    return {**limits, **explicit}


def machine_memory() -> int | None:
    """Return the memory of the machine or of this control group, in bytes, if known."""
    sizes: list[int] = []
    for tell in (_physical, _control_group):
        with suppress(AttributeError, ValueError, OSError):
            sizes.append(tell())
    return min(sizes, default=None)


def _physical() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _control_group() -> int:
    return int(_CGROUP.read_text())


def evaluation(given: Values) -> Limits:
    names = {field.name for field in fields(Limits)} - {"memory"}  # the process is limited by it
    explicit = {n: int(value) for n, value in given.items() if n in names and value is not None}
    return replace(DEFAULT_LIMITS, **explicit)


# ------------------------------------------------------------------------------------------------
# Applies limits to this process through the operating system. They cannot be raised again.

SPARE = 5  # seconds of processor time between the warning signal and the one that kills


def apply(values: Values) -> None:
    """Apply every limit that has a value; lower limits set by the system are kept."""
    for name, value in values.items():
        number = LIMITS[name].number
        if number is not None and number != MEASURED and value is not None:
            _lower(number, max(int(value), LEAST_MEMORY if name == "memory" else 0))


def _lower(number: int, value: int) -> None:
    soft, hard = resource.getrlimit(number)
    spare = SPARE if number == resource.RLIMIT_CPU else 0
    with suppress(ValueError, OSError):  # the system may not support setting it
        resource.setrlimit(number, (_less(soft, value), _less(hard, value + spare)))


def _less(first: int, second: int) -> int:
    return second if first == resource.RLIM_INFINITY else min(first, second)
