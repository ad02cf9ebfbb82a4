"""Imports of `neuronxcc.nki`, the namespace of NKI 0.1, reported where they occur.

Source: migration guides 0.1 to 0.2 and 0.3 to 0.4: a warning until 0.3, an error since 0.4.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from nkic.base.diagnostics import Diagnostic, Fix, Level, Reporter, make
from nkic.base.profiles import Profile
from nkic.base.source import Span
from nkic.syntax.bindings import Binding, SourceModule

ROOT = "neuronxcc"
PREFIX = f"{ROOT}.nki"
_REUSED = {"nki", "nki.compiler"}  # today's `nki.compiler` has other contents


def check_import(
    module: SourceModule,
    binding: Binding,
    profile: Profile,
    provided: Collection[str],
    report: Reporter,
) -> None:
    """Report the import that binds a name if it imports from the former namespace.

    `provided` holds the names of the modules that exist today.
    """
    target = binding.target
    if target is None:
        return  # one of several imports that bind the name, such as a fallback
    name = f"{target.request}.{target.member}" if target.member else target.request
    if profile is Profile.BETA1:
        is_constants = f"{name}.".startswith("nki.language.constants.")
        if f"{name}.".startswith("nki.") and not is_constants and not module.trusted:
            _report_too_new(name, binding, report)
    elif f"{name}.".startswith(f"{PREFIX}."):
        current = name.removeprefix(f"{ROOT}.")
        exists = {current, current.rpartition(".")[0]} & {*provided} - _REUSED or current == "nki"
        help = f"import `{current}`" if exists else "leave it out: `nki` has no such module"
        fixes = _fix(module, binding.span) if exists else ()
        report.add(_former(name, binding.span, profile, help, fixes))


def _former(name: str, span: Span, profile: Profile, help: str, fixes: Sequence[Fix]) -> Diagnostic:
    if profile >= Profile.NKI_0_4:
        text = f"NKI {profile.label} has no `{name}`: all of `{PREFIX}` was removed in NKI 0.4"
        return make("removed-name", text, span, help=help, fixes=fixes)
    text = f"`{name}` is deprecated since NKI beta2, as all of `{PREFIX}`"
    return make("deprecated", text, span, help=help, fixes=fixes, level=Level.WARNING)


def _report_too_new(name: str, binding: Binding, report: Reporter) -> None:
    text = f"NKI beta1 has no `{name}`: `nki` was added in NKI beta2"
    help = f"import `{ROOT}.{name}`, or compile with the version that the kernel is written for"
    report.error("needs-profile", text, binding.span, help=help)


def _fix(module: SourceModule, span: Span) -> tuple[Fix, ...]:
    """Return a fix that drops the removed prefix; none if the import spans several lines."""
    text = module.source.text_of(span)
    fixed = text.replace(f"from {ROOT} import nki", "import nki").replace(PREFIX, "nki")
    fixed = fixed.removesuffix(" as nki") if fixed == "import nki as nki" else fixed
    if span.line != span.end_line or fixed == text or ROOT in fixed:
        return ()
    return (Fix(span, fixed, "import it by its current name", sure=True),)
