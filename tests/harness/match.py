"""Compare the diagnostics with those that a case expects: none missing, none additional."""

from collections.abc import Sequence

from nkic.base.diagnostics import Diagnostic
from tests.harness.directives import Expected


def differences(found: Sequence[Diagnostic], expected: Sequence[Expected], path: str) -> list[str]:
    """Return a line for each missing diagnostic, and for each unexpected one."""
    missing, unexpected = list(expected), []
    for diagnostic in found:
        answered = next((one for one in missing if matches(diagnostic, one, path)), None)
        if answered is None:
            unexpected.append(diagnostic)
        else:
            missing.remove(answered)
    return [
        *(f"missing: {one.line}: {one.level}[{one.code}]: {one.text}" for one in missing),
        *(f"unexpected: {_shown(one)}" for one in unexpected),
    ]


def matches(diagnostic: Diagnostic, expected: Expected, path: str) -> bool:
    """Return whether line, level, code and text agree; the line is in the case's own file."""
    span = diagnostic.primary.span if diagnostic.primary else None
    return (
        span is not None
        and (span.path, span.line) == (path, expected.line)
        and diagnostic.level.value == expected.level
        and expected.code in (diagnostic.code.number, diagnostic.code.slug)
        and expected.text in diagnostic.message
    )


def _shown(diagnostic: Diagnostic) -> str:
    span = diagnostic.primary.span if diagnostic.primary else None
    place = f"{span.path}:{span.line}" if span else "no place"
    return f"{place}: {diagnostic.level.value}[{diagnostic.code.slug}]: {diagnostic.message}"
