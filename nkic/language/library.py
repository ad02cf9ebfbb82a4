"""The standard library: `nki.language` functions that are kernel source, in the folder stdlib/.

Functions are looked up by name; a file is parsed, and never imported, when the first of its
functions is used. The library sees its own functions as members of one module, `nkic.stdlib`; names
with an underscore are private to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from nkic.base import profiles
from nkic.base.device import KernelError
from nkic.base.diagnostics import Label
from nkic.base.source import SHIPPED, SourceFile
from nkic.language.foreign import MEANT, as_instructions, otherwise
from nkic.language.hosted import brief
from nkic.language.namespace import Namespace
from nkic.language.trace import active, current, here
from nkic.machine import dtypes
from nkic.machine.dtypes import DType
from nkic.source.bindings import STDLIB

MODULE = "nkic.stdlib"
_TENSOR_REDUCE_OPS = ("sum", "max", "min")  # nisa.tensor_reduce has operators for these
_DEFINITION = re.compile(r"(?m)^def (\w+)\(")
Load = Callable[[SourceFile, str], Callable[..., Any]]


@cache
def sources() -> dict[str, SourceFile]:
    """Return the file that defines each function, by the function's name."""
    folder = Path(__file__).parent / "stdlib"  # importlib.resources is slow to import
    files: dict[str, SourceFile] = {}
    for name in sorted(entry.name for entry in folder.iterdir()):
        if name.endswith(".py"):
            text = folder.joinpath(name).read_text(encoding="utf-8")
            file = SourceFile(STDLIB + name, text)
            files |= dict.fromkeys(_DEFINITION.findall(text), file)
    return files


def public() -> tuple[str, ...]:
    return tuple(name for name in sources() if not name.startswith("_"))


def free_axes(rank: int) -> str:
    """Return an `axis=` over all free dimensions of a tensor; rank 0 means an unknown rank."""
    if not rank:
        return "axis=…"
    axes = tuple(range(1, rank))
    return f"axis={axes if rank > 2 else 1}"


def as_function(name: str, rank: int = 0) -> str:
    """Suggest a replacement for a tensor method or NumPy function of this name, or return "".

    `rank` is the rank of the tensor, 0 if unknown.
    """
    name = MEANT.get(name, name)
    file = sources().get(name)
    found = file is not None and not name.startswith("_")
    advice = f"nl.{name}" if found else otherwise(name)
    trace = current()  # none where NumPy is read outside of kernels
    if trace is not None and trace.profile < profiles.Profile.NKI_0_3:
        return as_instructions(advice)
    if file is None or not found:
        return advice
    if file.path != f"{STDLIB}reduction.py":
        return f"write nl.{name}, which is a function"
    reduces = ", or nisa.tensor_reduce" if name in _TENSOR_REDUCE_OPS else ""
    return f"write nl.{name}(t, {free_axes(rank)}){reduces}"


def namespace(load: Load) -> Namespace:
    """Return the library as the module that its own files import; `load` evaluates a function."""

    def load_lazily(name: str, file: SourceFile) -> Callable[[], Any]:
        return lambda: load(file, name)

    lazy = {name: load_lazily(name, file) for name, file in sources().items()}
    helpers = {
        "_promoted": promoted,
        "_require": require,
        "_known_issue": known_issue,
        "_version_between": version_between,
        "_called_by_kernel": called_by_kernel,
    }
    return Namespace(MODULE, helpers, lazy=lazy)


def require(condition: bool, message: str, *values: Any, help: str = "") -> None:
    """Check a condition on the library's arguments. Raises `KernelError` at the user's call.

    `values` fill the message's braces; they are formatted only if the check fails. An argument
    that was refused is the cause of what is wrong with it here.
    """
    if not condition:
        active().report.stop_if_errors_in(here().user_frames()[0])
        text = message.format(*map(brief, values))
        raise KernelError("library-argument", text, help=help)


def version_between(first: str, end: str) -> bool:
    low, high = profiles.find(first), profiles.find(end)
    return low is not None and high is not None and low <= active().profile < high


def called_by_kernel(depth: int) -> bool:
    """Return whether the kernel itself made the call, `depth` library functions ago.

    Calls from inside the library do not count: the library knows which features it uses.
    """
    return sum(span.path.startswith(SHIPPED) for span in here().frames()) == depth


# The latest version whose release notes are known; later ones are assumed to be the same.
_LAST_NOTES = profiles.Profile.NKI_0_6


def known_issue(what: str, depth: int, help: str, *, last: str = "") -> None:
    """Warn of a feature that the kernel's NKI version documents as unsupported on hardware.

    The release notes list it from NKI 0.3 to `last`, or up to the present if `last` is empty.
    `depth` is that of `called_by_kernel`.
    """
    profile, until = active().profile, profiles.find(last) or profiles.DEFAULT
    if not called_by_kernel(depth) or not profiles.Profile.NKI_0_3 <= profile <= until:
        return
    call, *callers = here().user_frames()
    later = f"; no page says whether {profile.label} supports it" if profile > _LAST_NOTES else ""
    documented = f"documented as unsupported on hardware in NKI {min(profile, _LAST_NOTES).label}"
    active().report.warning(
        "unsupported-on-hardware",
        f"{what} is {documented}{later}",
        call,
        labels=[Label(span, "called from here") for span in callers],
        help=help,
    )


def promoted(first: DType, second: DType) -> DType:
    """Return the dtype of the result of an operation on two dtypes.

    Documented for Beta 1 ("NKI Type Promotion" of its API's common fields, up to SDK 2.26), and
    implied later: the pages of nl of SDK 2.29 (NKI 0.3) name that section, which is gone.
    """
    if first is second:
        return first
    if first.is_float and second.is_float:
        wide = max(first, second, key=lambda dtype: dtype.size)
        same = {1: dtypes.BFLOAT16}.get(first.size, dtypes.FLOAT32)
        return wide if first.size != second.size else same
    if first.is_float or second.is_float:
        return first if first.is_float else second
    if first.is_integer and second.is_integer:
        return _integer(first, second)
    return second if first.kind == "bool" else first


def _integer(first: DType, second: DType) -> DType:
    if first.kind == second.kind:
        return max(first, second, key=lambda dtype: dtype.size)
    signed, unsigned = (first, second) if first.kind == "int" else (second, first)
    if signed.size > unsigned.size:
        return signed
    return {1: dtypes.INT16, 2: dtypes.INT32}.get(unsigned.size, dtypes.FLOAT32)
