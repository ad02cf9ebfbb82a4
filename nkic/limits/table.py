"""The table of limits: the names of `--limit NAME=VALUE`, and their defaults.

docs/security.md prints the same table; a test compares the two.
"""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path

from nkic.base.diagnostics import bad_value
from nkic.base.evaluation import DEFAULT_LIMITS, Limits
from nkic.base.suggest import suggestion
from nkic.base.text import grouped, size, size_of

GIB = 1 << 30
NONE = "none"
OPTION = "--limit"
THREADS = "OPENBLAS_NUM_THREADS"
SPARE_SECONDS = 60  # of processor time beyond the time limit, for starting and ending the command
_CGROUP = Path("/sys/fs/cgroup/memory.max")
_PLAIN = re.compile(r"\d{1,15}")


@dataclass(frozen=True)
class Limit:
    """A row of the table.

    `number` is the system's resource number, None for limits counted by the interpreter of kernels.
    `defaults` maps tools to values; None means no limit.
    """

    name: str
    number: int | None
    meaning: str
    unit: str  # bytes, seconds, or what is counted
    defaults: Mapping[str, int | None]
    when: str = ""  # conditions on the default
    minimum: int = 0  # with less, libraries abort the process
    maximum: int | None = None  # with more, Python's own stack would overflow first

    def read(self, text: str) -> int | None:
        """Parse a value; None for `none`. Raises `ValueError`."""
        if text == NONE and self.number is not None:
            return None
        if self.unit == "bytes":
            return size_of(text)
        if not _PLAIN.fullmatch(text.strip()):
            raise ValueError(text)
        return int(text)

    def shown(self, value: int | None) -> str:
        """Return a value in words: `8.0 GiB`, `900 seconds`, `512`."""
        if value is None:
            return NONE
        if self.unit == "bytes":
            return size(value)
        return f"{grouped(value)} {self.unit}" if self.unit == "seconds" else grouped(value)


def _both(value: int | None) -> dict[str, int | None]:
    return {"nkic": value, "nki-run": value}


def _evaluation(name: str, meaning: str, unit: str, maximum: int | None = None) -> Limit:
    """Return a limit on evaluating a kernel. It cannot be `none`: evaluation has to end."""
    value: int = getattr(DEFAULT_LIMITS, name)
    return Limit(name, None, meaning, unit, {"nkic": value}, maximum=maximum)


LIMITS = {
    limit.name: limit
    for limit in (
        Limit(
            *("memory", resource.RLIMIT_AS, "address space", "bytes"),
            {"nkic": 8 * GIB, "nki-run": None},
            "at most the machine's memory, or what its control group allows",
            256 << 20,
        ),
        Limit(
            *("cpu", resource.RLIMIT_CPU, "processor time", "seconds"),
            {"nkic": 900 + SPARE_SECONDS, "nki-run": 24 * 3600},
            f"nkic: {SPARE_SECONDS} more than --time-limit",
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


def read(tool: str, options: Sequence[str]) -> dict[str, int | None]:
    """Parse the values of `--limit`, by name. Raises `UsageFailed`."""
    parsed: dict[str, int | None] = {}
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
            advice += f", or {OPTION} {name}={NONE}" if limit.number is not None else ""
            raise bad_value(
                f"{OPTION} {option}: expected a number of {limit.unit}", advice
            ) from None
        if value is not None and value < limit.minimum:
            raise bad_value(f"{OPTION} {option}: must be at least {limit.shown(limit.minimum)}")
        if value is not None and limit.maximum is not None and value > limit.maximum:
            raise bad_value(f"{OPTION} {option}: must be at most {limit.shown(limit.maximum)}")
    return parsed


def values(
    tool: str, explicit: Mapping[str, int | None], seconds: float | None, environ: Mapping[str, str]
) -> dict[str, int | None]:
    """Return the value of every limit of a command, by name: the given one, or the default.

    `seconds` is the value of --time-limit, if the tool has one. Raises `UsageFailed`.
    """
    limits = {name: limit.defaults[tool] for name, limit in of(tool).items()}
    available = machine_memory()
    sizes = [number for number in (limits["memory"], available) if number is not None]
    limits["memory"] = min(sizes, default=None)
    if seconds is not None:
        limits["cpu"] = int(min(seconds, 1e9)) + SPARE_SECONDS
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


def evaluation(given: Mapping[str, int | None]) -> Limits:
    """Return the limits on evaluating a kernel."""
    names = {field.name for field in fields(Limits)} - {"memory"}  # the process is limited by it
    explicit = {name: value for name, value in given.items() if name in names and value is not None}
    return replace(DEFAULT_LIMITS, **explicit)
