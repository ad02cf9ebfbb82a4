"""The stage: resolve a kernel, or list the kernels of a file."""

from __future__ import annotations

from collections.abc import Collection

from nkic.base.diagnostics import Reporter
from nkic.base.profiles import DEFAULT, Profile
from nkic.base.source import SourceFile
from nkic.resolve import subset
from nkic.resolve.bind import bind
from nkic.resolve.kernels import at, choose, kernels
from nkic.resolve.library import Library, Load, Parse
from nkic.resolve.reach import Reach, Supplied
from nkic.syntax.bindings import Kernel, Resolved


def _nothing(module: str) -> frozenset[str]:
    return frozenset()


def resolve(
    entry: SourceFile,
    kernel: str | None,
    *,
    load: Load,
    parse: Parse,
    provided: Collection[str],
    report: Reporter,
    profile: Profile = DEFAULT,
    name: str = "__kernel__",
    line: int | None = None,
    supplied: Supplied = _nothing,
) -> Resolved:
    """Return the kernel called `kernel` in the file `entry`, or its only one, with all it reaches.

    `name` is the module's dotted name if the file is part of a package. If `line` is given, the
    kernel is the function of that name at that line, wherever it is defined; `supplied` then
    returns the variables, by module, that a running program adds to those of the source. Violations
    of the subset are reported and do not stop the stage; raises `CompileFailed` if there is no
    kernel.
    """
    library = Library(load, parse, provided)
    module = library.add(name, entry)
    chosen = (
        choose(module, kernel, library, report) if line is None else at(module, kernel or "", line)
    )
    for rule, span in subset.of_kernel(chosen.node, profile):
        text = f"{rule.words} cannot be used in NKI {profile.label}"
        report.error("not-in-nki", text, span, help=rule.advice)
    reach = Reach(library, profile, report, supplied)
    reached = reach.run(chosen.module, chosen.maker or chosen.node)
    return Resolved(chosen, library, reached, profile)


def list_kernels(entry: SourceFile, parse: Parse) -> tuple[Kernel, ...]:
    """Return the kernels of a file in source order, for `--print kernels`."""
    return kernels(bind("__kernel__", entry, parse(entry)))
