"""Test which ranks devices connect: the cases of warnings for all_to_all_v and similar
collectives.
"""

import pytest

from nkic.machine.instructions import ROWS
from nkic.machine.targets import TRN1, TRN2, TRN3, Target
from tests.unit.instances import facts_of

Groups = tuple[tuple[int, ...], ...]


@pytest.mark.parametrize(
    ("target", "cores", "groups", "said"),
    [
        (TRN1, 1, ((0, 32), (1, 33)), ""),
        (TRN1, 1, ((0, 1),), "ranks 0 and 1 exchange data, but on trn1"),
        (TRN2, 2, ((0, 4, 8),), ""),
        (TRN2, 2, ((0, 4, 6),), "ranks 4 and 6 exchange data, but on trn2"),
        (TRN2, 1, ((0, 8),), ""),
        (TRN2, 1, ((0, 4),), "ranks 0 and 4 exchange"),
        (TRN3, 2, ((0, 1, 2, 3), (4, 5, 6, 7)), ""),
        (TRN3, 2, ((1, 2, 3, 4),), ""),  # an example of the documentation
        (TRN3, 2, ((0, 1, 2),), "the ranks [0, 1, 2] are not whole devices of 4 consecutive"),
        (TRN3, 2, ((0, 2, 1, 3),), "consecutive ranks, which all_to_all_v needs on trn3"),
        (TRN3, 1, ((0, 1, 2, 3),), "a rank has 1 core, but on trn3 all_to_all_v needs 2"),
    ],
)
def test_groups_of_all_to_all_v(target: Target, cores: int, groups: Groups, said: str) -> None:
    warn = ROWS["all_to_all_v"].warn
    assert warn is not None
    found = warn(facts_of("all_to_all_v", target, replica_group=groups)[1], cores)
    assert (found is None) == (not said) and (found is None or said in found.message)


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        (((0, 1), (1, 0)), ""),
        (((0, 1), (2, 3), (1, 2), (3, 0)), ""),
        (((1, 0),), "rank 0 receives and does not send"),
    ],
)
def test_permutations_are_rings(pairs: Groups, said: str) -> None:
    warn = ROWS["collective_permute"].warn
    assert warn is not None
    found = warn(facts_of("collective_permute", TRN2, source_target_pairs=pairs)[1], 2)
    assert (found is None) == (not said) and (found is None or said in found.message)
