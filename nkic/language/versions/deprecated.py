"""Deprecated names, with the version that deprecated each.

Sources: release notes and migration guides 0.3.0 to 0.7.0; the API reference of 0.6 for names that
it marks without a version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from nkic.base.device import KernelError
from nkic.base.diagnostics import Fix, Level
from nkic.base.profiles import Profile
from nkic.base.source import NOWHERE, CallChain
from nkic.language.trace import active, complain, here


class Deprecation(NamedTuple):
    """A deprecation: the version, and the replacement as a sentence and as a name.

    `name` is empty if renaming is not enough. `removed_in` is the first version without the
    deprecated name. `python` is a replacement that is a name of Python.
    """

    since: Profile
    instead: str
    name: str = ""
    removed_in: Profile | None = None
    python: str = ""


NKI_0_3, NKI_0_4, NKI_0_6 = Profile.NKI_0_3, Profile.NKI_0_4, Profile.NKI_0_6
NKI_0_7 = Profile.NKI_0_7

_RANGE = Deprecation(NKI_0_6, "write `range`, which is the same", python="range")
LANGUAGE = {"affine_range": _RANGE, "sequential_range": _RANGE, "static_range": _RANGE}
ISA = {
    f"{name}_engine": Deprecation(NKI_0_6, f"write nisa.engine.{name}", f"engine.{name}")
    for name in ("tensor", "vector", "scalar", "gpsimd", "unknown")
}
TILE_SIZE = {
    "psum_fmax": Deprecation(
        NKI_0_4, "write psum_bank_fmax: it is the size of one bank of PSUM", "psum_bank_fmax"
    ),
    "total_available_sbuf_size": Deprecation(
        NKI_0_4,
        "write sbuf_fmax_bytes, which is the same, or sbuf_size_bytes for all partitions together",
        "sbuf_fmax_bytes",
    ),
}
# Constructs and parameters.
DYNAMIC_FOR = Deprecation(
    NKI_0_6,
    "write nl.fori_loop(start, stop, body, step), the body a function of i",
    removed_in=NKI_0_7,
)
DYNAMIC_WHILE = Deprecation(
    NKI_0_6,
    "write nl.while_loop(register, body), the body a function that returns the next condition",
    removed_in=NKI_0_7,
)
JIT_MODE = Deprecation(NKI_0_3, "remove it: nothing depends on it")


def refuse(feature: str, deprecation: Deprecation) -> None:
    """Raise `KernelError` if the kernel's version has removed `feature`."""
    if deprecation.removed_in is not None and active().profile >= deprecation.removed_in:
        text = f"there is no {feature.removeprefix('a ')} since NKI {deprecation.removed_in.label}"
        raise KernelError(
            "removed-name", text, help=f"{deprecation.instead}, or {_until(deprecation.removed_in)}"
        )


def _until(removed_in: Profile) -> str:
    """Return a help text for compiling without changes."""
    last = max(profile for profile in Profile if profile < removed_in)
    return f"compile with `--nki {last.label}`, the last version that has it"


def warn(feature: str, deprecation: Deprecation, at: CallChain | None = None) -> None:
    """Report a use of `feature`, at the current expression or `at`, if it is deprecated.

    Raises `KernelError` if the kernel's version has removed it.
    """
    refuse(feature, deprecation)
    if active().profile < deprecation.since:
        return
    complain(
        "deprecated",
        f"{feature} is deprecated since NKI {deprecation.since.label}",
        help=deprecation.instead,
        level=Level.WARNING,
        fixes=_renamed(feature, deprecation),
        at=at,
    )


def _renamed(feature: str, deprecation: Deprecation) -> tuple[Fix, ...]:
    """Return a fix that renames the last word of the current expression, if it is the name."""
    span, word = here().primary, feature.strip("`").rpartition(".")[2]
    module = active().module_of(span.path)
    if not deprecation.name or module is None or not module.source.text_of(span).endswith(word):
        return ()
    end = span._replace(line=span.end_line, column=span.end_column - len(word))
    return (Fix(end, deprecation.name, f"write `{deprecation.name}`", sure=True),)


def watched(
    module: str, table: Mapping[str, Deprecation], contents: dict[str, Any], profile: Profile
) -> dict[str, Callable[[], Any]]:
    """Remove the names that `profile` deprecates from `contents`; return values that warn on
    access.
    """
    names = [name for name in table if name in contents and profile >= table[name].since]
    return {
        name: partial(_deprecated_value, f"`{module}.{name}`", table[name], contents.pop(name))
        for name in names
    }


def _deprecated_value(feature: str, deprecation: Deprecation, value: Any) -> Any:
    if here().span is not NOWHERE:  # no location: access while explaining an error
        warn(feature, deprecation)
    return value
