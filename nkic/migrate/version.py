"""Which version of NKI a file speaks, and what evaluating it as that tells."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from nkic.base.profiles import Profile
from nkic.base.source import SourceFile
from nkic.migrate.facts import Facts, facts_of, with_others
from nkic.resolve.former import PREFIX
from nkic.resolve.library import Load
from nkic.specialise.request import Request


class Spoken(NamedTuple):
    """`start` is None where nobody said the version; the kernel was evaluated as `profile`."""

    start: Profile | None
    profile: Profile
    facts: Facts


def spoken(
    source: SourceFile, request: Request, load: Load, said: Profile | None, goal: Profile
) -> Spoken:
    """The version that was said; without one that of the imports, or the latest as which the
    kernel evaluates without error.
    """
    if said is None and PREFIX in source.text:
        said = Profile.BETA1
    if said is not None:
        request = replace(request, profile=said)
        facts = facts_of(source, request, load)
        if said is Profile.BETA1:
            facts = with_others(facts, source, request, load)
        return Spoken(said, said, facts)
    tried: list[Spoken] = []
    for profile in (p for p in reversed(Profile) if Profile.BETA2 <= p <= goal):
        facts = facts_of(source, replace(request, profile=profile), load)
        tried.append(Spoken(None, profile, facts))
        if not facts.errors:
            break
    return min(tried, key=lambda one: (one.facts.errors, -one.profile))
