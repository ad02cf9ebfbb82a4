"""Banks of PSUM by role: the tiles that one place in the source declares take turns among banks of
their own.

Slots in program order (`place.py`) go around all banks, so that what one iteration of an unrolled
loop reads last is where the next one begins: the tensor engine waits for the end of an iteration
before it begins the next one. With banks of their own, the first tiles of an iteration wait for
those of the iteration before, and the iterations overlap.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from nkic.allocate.liveness import Lifetime, most_at_once
from nkic.allocate.place import Addresses, DoesNotFit, Space
from nkic.machine.memory import Address


@dataclass
class _Role:
    """The lifetimes of one place, each of `size` bytes at most, `most` of them at once."""

    lives: list[Lifetime] = field(default_factory=list)
    size: int = 0
    most: int = 0
    count: int = 0  # slots

    @property
    def span(self) -> tuple[int, int]:
        """From the first access of all to the last one."""
        return self.lives[0].first, max(life.last for life in self.lives)

    @property
    def length(self) -> float:
        """How long a tile is in use, on average."""
        return sum(life.last - life.first for life in self.lives) / len(self.lives)


def by_role(lives: Sequence[Lifetime], space: Space) -> Addresses:
    """An address for each tensor; DoesNotFit where the roles together need more than there is.
    `lives` in order of first access.
    """
    found: Addresses = {}
    for phase in _phases(_roles(lives, space)):
        _share(phase, space)
        start = 0
        for role in phase:
            found |= _around(role, start)
            start += role.count * role.size
    return found


def _roles(lives: Sequence[Lifetime], space: Space) -> list[_Role]:
    roles: dict[Hashable, _Role] = {}
    for life in lives:
        role = roles.setdefault(life.tensor.at.primary, _Role())
        role.lives.append(life)
        role.size = max(role.size, space.size(life.tensor))
    for role in roles.values():
        role.most = most_at_once(role.lives)
    return list(roles.values())


def _phases(roles: Sequence[_Role]) -> list[list[_Role]]:
    """Roles whose tiles are in use in the same part of the program."""
    found: list[list[_Role]] = []
    end = -1
    for role in sorted(roles, key=lambda one: one.span):
        first, last = role.span
        if first > end:
            found.append([])
        found[-1].append(role)
        end = max(end, last)
    return found


def _share(phase: Sequence[_Role], space: Space) -> None:
    """Slots for each role: as many as it needs, and as many again as there is room for, those
    first whose tiles are in use for longest.
    """
    for role in phase:
        role.count = role.most
    room = space.capacity - sum(role.count * role.size for role in phase)
    if room < 0:
        raise DoesNotFit(phase[0].lives[0], [])
    spread = True
    while spread:
        spread = False
        for role in sorted(phase, key=lambda one: -one.length):
            more = role.most * role.size
            if more <= room and role.count < len(role.lives):
                role.count += role.most
                room -= more
                spread = True


def _around(role: _Role, start: int) -> Addresses:
    """The role's tiles, each where it is free for longest."""
    free = deque(start + n * role.size for n in range(role.count))
    ends: list[tuple[int, int]] = []
    found: Addresses = {}
    for life in role.lives:
        while ends and ends[0][0] < life.first:
            free.append(heappop(ends)[1])
        at = free.popleft()
        found[life.tensor.number] = Address(0, at)
        heappush(ends, (life.last, at))
    return found
