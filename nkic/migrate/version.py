"""The NKI version of a file, and the facts of evaluating it as that version."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from nkic.base.profiles import Profile
from nkic.base.source import SourceFile
from nkic.migrate.facts import Facts, facts_of, merged, with_others
from nkic.migrate.kernels import siblings
from nkic.resolve.former import PREFIX
from nkic.resolve.library import Load
from nkic.specialise.request import Request


class FileVersion(NamedTuple):
    """The version of a file. `start` is None if nothing states it; the kernel was evaluated as
    `profile`.
    """

    start: Profile | None
    profile: Profile
    facts: Facts


def version_of(
    source: SourceFile, request: Request, load: Load, stated: Profile | None, target: Profile
) -> FileVersion:
    """Return the stated version, else that of the imports, else the latest that evaluates without
    error.
    """
    if stated is None and PREFIX in source.text:
        stated = Profile.BETA1
    if stated is not None:
        request = replace(request, profile=stated)
        facts = facts_of(source, request, load)
        return FileVersion(stated, stated, with_siblings(facts, source, request, load))
    tried: list[FileVersion] = []
    for profile in (p for p in reversed(Profile) if Profile.BETA2 <= p <= target):
        facts = facts_of(source, replace(request, profile=profile), load)
        tried.append(FileVersion(None, profile, facts))
        if not facts.errors:
            break
    best = min(tried, key=lambda attempt: (attempt.facts.errors, -attempt.profile))
    request = replace(request, profile=best.profile)
    return best._replace(facts=with_siblings(best.facts, source, request, load))


def with_siblings(facts: Facts, source: SourceFile, request: Request, load: Load) -> Facts:
    """Add the facts of other kernels with the same arguments and, for Beta 1, of other shapes."""
    is_old = request.profile is Profile.BETA1
    if is_old:
        facts = with_others(facts, source, request, load)
    for sibling in siblings(source, request):
        sibling_facts = facts_of(source, sibling, load)
        if sibling_facts.is_evaluated and not sibling_facts.errors:
            sibling_facts = (
                with_others(sibling_facts, source, sibling, load) if is_old else sibling_facts
            )
            facts = merged(facts, sibling_facts)
    return facts
