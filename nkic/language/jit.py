"""`nki.jit` and its options."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any

from nkic.base.device import KernelError
from nkic.base.diagnostics import Level, did_you_mean
from nkic.base.profiles import Profile
from nkic.language import versions
from nkic.language.creation import make_tensor
from nkic.language.dtypes_api import BUFFERS
from nkic.language.hosted import Kernel, brief, surface
from nkic.language.namespace import Namespace
from nkic.language.tensor import NkiTensor
from nkic.language.trace import active, complain
from nkic.machine.targets import Buffer
from nkic.source import bindings

# ---- `nki.compiler` of NKI 0.7: options of `nki.jit` for the compiler behind NKI ----------------
# They do not change what a kernel computes. Options that request more than nkic does cause a
# warning. Source: `nki.compiler` of 0.7.

MODULE = "nki.compiler"
SINCE = Profile.NKI_0_7


@surface("name value")
class AddressRotation(Enum):
    """`nki.compiler.AddressRotation`."""

    AUTO = "auto"
    ENABLE = "enable"
    DISABLE = "disable"


class _Options:
    """Options that `nki.jit` checks; objects that hold others cannot be among them."""

    def __post_init__(self) -> None:
        for name, setting in _settings(self):
            if not isinstance(setting, bool | int | float | str | Enum | None):
                text = f"`{name}` must be a setting, not {brief(setting)}"
                raise KernelError("argument-kind", text)


@surface(public=True, called=True)
@dataclass(frozen=True, kw_only=True)
class CompileConfig(_Options):
    """Options of the passes after NKI. None leaves the choice to the compiler."""

    address_rotation: AddressRotation | None = None
    barrier_check: bool | None = None
    dead_code_elim: bool | None = None
    nki_alloc_fallback: bool | None = None
    non_ssa_legalization: bool | None = None
    prefetch_auto: bool | None = None


@surface(public=True, called=True)
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
    absent = versions.absent(MODULE, profile)
    if profile >= SINCE:
        return Namespace(MODULE, NAMES, absent)
    new = dict.fromkeys(NAMES, versions.Added(SINCE, "leave it out"))
    return Namespace(MODULE, {}, absent | versions.later(MODULE, new, profile))


# ---- `sbuf`, `psum` and `hbm`, which kernels of Beta 2 use without an import --------------------
# Source: the quickstart and the overview of DMA, SDK 2.27: `sbuf.view(dtype, shape)` allocates.


@surface(public=True)
class Memory:
    """A memory in which tensors are allocated."""

    def __init__(self, buffer: Buffer) -> None:
        self._buffer = buffer

    def view(self, dtype: Any, shape: Any) -> NkiTensor:
        """Return a new, uninitialised tensor."""
        return make_tensor(shape, dtype, self._buffer, None, None)

    def __repr__(self) -> str:
        return self._buffer.value


MEMORIES = {name: Memory(BUFFERS[name]) for name in bindings.MEMORIES}


# --------------------------------------------------------------------------------------------------

# Options for messages of NKI's own compiler, which NKI's kernel library passes.
MESSAGES = ("debug_kernel", "show_compiler_tb")


def jit(target: Any, **options: Any) -> Any:
    """`nki.jit` on a function. Its options are for frameworks; unsupported ones are reported."""
    for name, value in options.items():
        check_option("nki.jit", name, value)
    return target if isinstance(target, Kernel) else Kernel(target)


def check_option(decorator: str, name: str, value: Any) -> None:
    """Report a decorator option that has no meaning here, or a different one."""
    removal = versions.parameter("jit", name)
    if name in OPTIONS and active().profile >= SINCE:
        _check_config(name, value)
    elif name == "mode":
        versions.warn(f"`mode=` of {decorator}", versions.JIT_MODE)
    elif removal is not None and active().profile >= removal.since:
        since = f"NKI {active().profile.label} has no option `{name}=`: it was removed in NKI "
        text = f"{decorator}: {since}{removal.since.label}"
        complain("removed-name", text, help=removal.instead, argument=name)
    elif removal is not None and value != active().target.name:
        complain(
            "jit-option",
            f"{decorator}: platform_target is {value!r}, but the target is {active().target.name}",
            help=f"compile with `--target {value}`",
            level=Level.WARNING,
            argument=name,
        )
    elif removal is None and name not in MESSAGES:
        near = did_you_mean(name, MESSAGES)
        complain(
            "jit-option",
            f"{decorator}: `{name}=` has no meaning for nkic",
            help=near or "remove it, or use the corresponding option of the nkic command",
            level=Level.WARNING,
            argument=name,
        )


def _check_config(name: str, value: Any) -> None:
    if text := wrong(name, value):
        complain("argument-kind", f"nki.jit: {text}, not {brief(value)}", argument=name)
        return
    for setting in unsupported_settings(value):
        complain(
            "jit-option",
            f"nki.jit: `{setting}` of `{name}=` has no meaning for nkic",
            help="remove it, or keep it for the compiler that uses it",
            level=Level.WARNING,
            argument=name,
        )
