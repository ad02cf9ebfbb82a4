"""Which ranks devices connect, for `Row.warn` of `nki.collectives`.

Sources: the restrictions that `all_to_all_v` states, and permute in the guide to Neuron
collectives. How many chips an instance has is not known to the compiler, so that only what fits
no instance is doubted.
"""

from __future__ import annotations

from itertools import pairwise

from nkic.machine.facts import Facts
from nkic.machine.operands import Violation

SLUG = "ranks-not-connected"
SWITCHED = 4  # NeuronCore version whose devices are connected by a switch


def counted_exchange(facts: Facts, cores: int) -> Violation | None:
    """all_to_all_v: whole devices behind a switch, else ranks of one index on several nodes."""
    ranks = facts.target.chip_cores // cores
    if facts.target.generation >= SWITCHED:
        return _whole_devices(facts, cores, ranks)
    for group in facts.attributes["replica_group"]:
        near = next(((a, b) for a, b in pairwise(sorted(group)) if (b - a) % ranks), None)
        if near is not None:
            text = (
                f"ranks {near[0]} and {near[1]} exchange, but on {facts.target.name} all_to_all_v "
                "is between ranks of the same index on several nodes"
            )
            return Violation(SLUG, text, "replica_group", "use all_to_all between these")
    return None


def _whole_devices(facts: Facts, cores: int, ranks: int) -> Violation | None:
    name, hint = facts.target.name, f"use lists such as {list(range(ranks))}, on two cores"
    if cores < facts.target.max_cores:
        text = f"a rank has {cores} core, but on {name} all_to_all_v needs 2"
        return Violation(SLUG, text, "replica_group", hint)
    for group in facts.attributes["replica_group"]:
        if len(group) % ranks or list(group) != list(range(group[0], group[0] + len(group))):
            text = (
                f"the ranks {list(group)} are no whole devices of {ranks} ranks in sequence, "
                f"which all_to_all_v needs on {name}"
            )
            return Violation(SLUG, text, "replica_group", hint)
    return None


def circle(facts: Facts, cores: int) -> Violation | None:
    """collective_permute: every rank that sends receives, too."""
    pairs = facts.attributes["source_target_pairs"]
    sources, targets = ({pair[side] for pair in pairs} for side in (0, 1))
    if sources == targets:
        return None
    odd = min(sources ^ targets)
    does = "sends and does not receive" if odd in sources else "receives and does not send"
    text = f"rank {odd} {does}; only circular permutations are supported"
    return Violation(SLUG, text, "source_target_pairs", "let the pairs make rings")
