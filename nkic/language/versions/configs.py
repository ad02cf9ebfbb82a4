"""`nki.compiler` of NKI 0.7: options of `nki.jit` for the compiler behind NKI.

They do not change what a kernel computes. Options that request more than nkic does cause a warning.
Source: `nki.compiler` of 0.7.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any

from nkic.base.kernel_errors import KernelError
from nkic.base.profiles import Profile
from nkic.language.namespace import Namespace
from nkic.language.texts import brief
from nkic.language.versions import removed, since

MODULE = "nki.compiler"
SINCE = Profile.NKI_0_7


class AddressRotation(Enum):
    """`nki.compiler.AddressRotation`."""

    AUTO = "auto"
    ENABLE = "enable"
    DISABLE = "disable"


class _Options:
    """Options that `nki.jit` checks; objects that hold others cannot be among them."""

    def __post_init__(self) -> None:
        """Refuse values that are no settings."""
        for name, setting in _settings(self):
            if not isinstance(setting, bool | int | float | str | Enum | None):
                text = f"`{name}` must be a setting, not {brief(setting)}"
                raise KernelError("argument-kind", text)


@dataclass(frozen=True, kw_only=True)
class CompileConfig(_Options):
    """Options of the passes after NKI. None leaves the choice to the compiler."""

    address_rotation: AddressRotation | None = None
    barrier_check: bool | None = None
    dead_code_elim: bool | None = None
    nki_alloc_fallback: bool | None = None
    non_ssa_legalization: bool | None = None
    prefetch_auto: bool | None = None


@dataclass(frozen=True, kw_only=True)
class SpecializationConfig(_Options):
    """Options of the evaluation of a kernel."""

    allow_nested_config_override: bool | None = None


NAMES: dict[str, type] = {
    kind.__name__: kind for kind in (AddressRotation, CompileConfig, SpecializationConfig)
}
OPTIONS: dict[str, type] = {
    "compile_config": CompileConfig,
    "specialization_config": SpecializationConfig,
}
# Settings for passes that nkic lacks. It always checks barriers, and a tensor that it cannot place
# is an error.
_UNSUPPORTED = {
    "address_rotation": AddressRotation.ENABLE,
    **dict.fromkeys(("dead_code_elim", "non_ssa_legalization", "prefetch_auto"), True),
}


def wrong(option: str, value: Any) -> str:
    """Describe an invalid value of a `nki.jit` option, or return ""."""
    kind = OPTIONS[option]
    if value is not None and not isinstance(value, kind):
        return f"`{option}=` takes a {MODULE}.{kind.__name__}"
    for name, setting in _settings(value):
        rotation = name == "address_rotation"
        if setting is not None and not isinstance(setting, AddressRotation if rotation else bool):
            return f"`{name}=` takes {'an AddressRotation' if rotation else 'True or False'}"
    return ""


def unsupported_settings(value: Any) -> list[str]:
    """Return the settings that request something nkic does not do."""
    return [
        name
        for name, setting in _settings(value)
        if setting is not None and _UNSUPPORTED.get(name) == setting
    ]


def _settings(value: Any) -> Iterator[tuple[str, Any]]:
    if value is not None:
        yield from ((field.name, getattr(value, field.name)) for field in fields(value))


def namespace(profile: Profile) -> Namespace:
    """Return the module under `profile`."""
    absent = removed.absent(MODULE, removed.COMPILER, profile)
    if profile >= SINCE:
        return Namespace(MODULE, NAMES, absent)
    new = dict.fromkeys(NAMES, since.Addition(SINCE, "leave it out"))
    return Namespace(MODULE, {}, absent | since.absent(MODULE, new, profile))
