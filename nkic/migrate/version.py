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


class Spoken(NamedTuple):
    """The version of a file. `start` is None if nothing states it; the kernel was evaluated as
    `profile`.
    """

    start: Profile | None
    profile: Profile
    facts: Facts


def spoken(
    source: SourceFile, request: Request, load: Load, stated: Profile | None, goal: Profile
) -> Spoken:
    """Return the stated version, else that of the imports, else the latest that evaluates without
    error.
    """
    if stated is None and PREFIX in source.text:
        stated = Profile.BETA1
    if stated is not None:
        request = replace(request, profile=stated)
        facts = facts_of(source, request, load)
        return Spoken(stated, stated, with_siblings(facts, source, request, load))
    tried: list[Spoken] = []
    for profile in (p for p in reversed(Profile) if Profile.BETA2 <= p <= goal):
        facts = facts_of(source, replace(request, profile=profile), load)
        tried.append(Spoken(None, profile, facts))
        if not facts.errors:
            break
    best = min(tried, key=lambda one: (one.facts.errors, -one.profile))
    request = replace(request, profile=best.profile)
    return best._replace(facts=with_siblings(best.facts, source, request, load))


def with_siblings(facts: Facts, source: SourceFile, request: Request, load: Load) -> Facts:
    """Add the facts of other kernels with the same arguments and, for Beta 1, of other shapes."""
    is_old = request.profile is Profile.BETA1
    if is_old:
        facts = with_others(facts, source, request, load)
    for other in siblings(source, request):
        found = facts_of(source, other, load)
        if found.known and not found.errors:
            found = with_others(found, source, other, load) if is_old else found
            facts = merged(facts, found)
    return facts
