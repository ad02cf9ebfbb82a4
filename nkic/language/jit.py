"""`nki.jit` and its options."""

from __future__ import annotations

from typing import Any

from nkic.base.diagnostics import Level
from nkic.base.suggest import did_you_mean
from nkic.language.complain import complain
from nkic.language.objects import Kernel
from nkic.language.texts import brief
from nkic.language.trace import active
from nkic.language.versions import configs, deprecated, removed

# Options for messages of NKI's own compiler, which NKI's kernel library passes.
MESSAGES = ("debug_kernel", "show_compiler_tb")


def jit(target: Any, **options: Any) -> Any:
    """`nki.jit` on a function. Its options are for frameworks; unsupported ones are reported."""
    for name, value in options.items():
        check_option("nki.jit", name, value)
    return target if isinstance(target, Kernel) else Kernel(target)


def check_option(decorator: str, name: str, value: Any) -> None:
    """Report a decorator option that has no meaning here, or a different one."""
    removal = removed.parameter("jit", name)
    if name in configs.OPTIONS and active().profile >= configs.SINCE:
        _check_config(name, value)
    elif name == "mode":
        deprecated.warn(f"`mode=` of {decorator}", deprecated.JIT_MODE)
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
    """Report a malformed or unsupported setting for the compiler behind NKI."""
    if text := configs.wrong(name, value):
        complain("argument-kind", f"nki.jit: {text}, not {brief(value)}", argument=name)
        return
    for setting in configs.unsupported_settings(value):
        complain(
            "jit-option",
            f"nki.jit: `{setting}` of `{name}=` has no meaning for nkic",
            help="remove it, or keep it for the compiler that uses it",
            level=Level.WARNING,
            argument=name,
        )
