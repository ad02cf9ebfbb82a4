"""Deprecated names, with the version that deprecated each.

Sources: release notes and migration guides 0.3.0 to 0.7.0; the API reference of 0.6 for names that
it marks without a version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from nkic.base.diagnostics import Fix, Level
from nkic.base.kernel_errors import KernelError
from nkic.base.profiles import Profile
from nkic.base.source import NOWHERE, CallChain
from nkic.language.complain import complain
from nkic.language.trace import active, here


class Old(NamedTuple):
    """A deprecation: the version, and the replacement as a sentence and as a name.

    `name` is empty if renaming is not enough. `gone` is the first version without the deprecated
    name. `python` is a replacement that is a name of Python.
    """

    since: Profile
    instead: str
    name: str = ""
    gone: Profile | None = None
    python: str = ""


NKI_0_3, NKI_0_4, NKI_0_6 = Profile.NKI_0_3, Profile.NKI_0_4, Profile.NKI_0_6
NKI_0_7 = Profile.NKI_0_7

_RANGE = Old(NKI_0_6, "write `range`, which is the same", python="range")
LANGUAGE = {"affine_range": _RANGE, "sequential_range": _RANGE, "static_range": _RANGE}
ISA = {
    f"{name}_engine": Old(NKI_0_6, f"write nisa.engine.{name}", f"engine.{name}")
    for name in ("tensor", "vector", "scalar", "gpsimd", "unknown")
}
TILE_SIZE = {
    "psum_fmax": Old(
        NKI_0_4, "write psum_bank_fmax: it is the size of one bank of PSUM", "psum_bank_fmax"
    ),
    "total_available_sbuf_size": Old(
        NKI_0_4,
        "write sbuf_fmax_bytes, which is the same, or sbuf_size_bytes for all partitions together",
        "sbuf_fmax_bytes",
    ),
}
# Constructs and parameters.
DYNAMIC_FOR = Old(
    NKI_0_6, "write nl.fori_loop(start, stop, body, step), the body a function of i", gone=NKI_0_7
)
DYNAMIC_WHILE = Old(
    NKI_0_6,
    "write nl.while_loop(register, body), the body a function that returns the next condition",
    gone=NKI_0_7,
)
JIT_MODE = Old(NKI_0_3, "remove it: nothing depends on it")


def refuse(what: str, old: Old) -> None:
    """Raise `KernelError` if the kernel's version has removed `what`."""
    if old.gone is not None and active().profile >= old.gone:
        text = f"there is no {what.removeprefix('a ')} since NKI {old.gone.label}"
        raise KernelError("removed-name", text, help=f"{old.instead}, or {_until(old.gone)}")


def _until(gone: Profile) -> str:
    """Return a help text for compiling without changes."""
    last = max(profile for profile in Profile if profile < gone)
    return f"compile with `--nki {last.label}`, the last version that has it"


def warn(what: str, old: Old, at: CallChain | None = None) -> None:
    """Report a use of `what`, at the current expression or `at`, if it is deprecated.

    Raises `KernelError` if the kernel's version has removed it.
    """
    refuse(what, old)
    if active().profile < old.since:
        return
    complain(
        "deprecated",
        f"{what} is deprecated since NKI {old.since.label}",
        help=old.instead,
        level=Level.WARNING,
        fixes=_renamed(what, old),
        at=at,
    )


def _renamed(what: str, old: Old) -> tuple[Fix, ...]:
    """Return a fix that renames the last word of the current expression, if it is the name."""
    span, word = here().primary, what.strip("`").rpartition(".")[2]
    module = active().module_of(span.path)
    if not old.name or module is None or not module.source.text_of(span).endswith(word):
        return ()
    end = span._replace(line=span.end_line, column=span.end_column - len(word))
    return (Fix(end, old.name, f"write `{old.name}`", sure=True),)


def watched(
    module: str, table: Mapping[str, Old], contents: dict[str, Any]
) -> dict[str, Callable[[], Any]]:
    """Remove the names of `table` from `contents`; return values that warn on access."""
    names = [name for name in table if name in contents]
    return {
        name: partial(_deprecated_value, f"`{module}.{name}`", table[name], contents.pop(name))
        for name in names
    }


def _deprecated_value(what: str, old: Old, value: Any) -> Any:
    if here().span is not NOWHERE:  # no location: access while explaining an error
        warn(what, old)
    return value
