"""PSUM banks by role: the tiles of one declaration cycle through banks of their own.

Slots in program order (`place.py`) cycle through all banks, so that the next iteration of an
unrolled loop starts in the bank that the current one reads last, and the tensor engine stalls until
the iteration ends. With separate banks, the first tiles of an iteration wait for those of the
previous iteration only, and the iterations overlap.
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
    """The live ranges of one declaration: at most `size` bytes each, at most `most` at once."""

    lives: list[Lifetime] = field(default_factory=list)
    size: int = 0
    most: int = 0
    count: int = 0  # slots

    @property
    def span(self) -> tuple[int, int]:
        """The first access and the last access over all tiles."""
        return self.lives[0].first, max(life.last for life in self.lives)

    @property
    def length(self) -> float:
        """The mean length of a tile's live range, in instructions."""
        return sum(life.last - life.first for life in self.lives) / len(self.lives)


def by_role(lives: Sequence[Lifetime], space: Space) -> Addresses:
    """Return an address for each tensor; `lives` are in order of first access.

    Raises DoesNotFit if the roles together exceed the memory.
    """
    addresses: Addresses = {}
    for phase in _phases(_roles(lives, space)):
        _share(phase, space)
        start = 0
        for role in phase:
            addresses |= _around(role, start)
            start += role.count * role.size
    return addresses


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
    """Group the roles whose live ranges overlap in the program."""
    phases: list[list[_Role]] = []
    end = -1
    for role in sorted(roles, key=lambda one: one.span):
        first, last = role.span
        if first > end:
            phases.append([])
        phases[-1].append(role)
        end = max(end, last)
    return phases


def _share(phase: Sequence[_Role], space: Space) -> None:
    """Set the slot count of each role: first its minimum, then multiples of it, as many as fit.

    Roles with the longest live ranges are served first.
    """
    for role in phase:
        role.count = role.most
    free_bytes = space.capacity - sum(role.count * role.size for role in phase)
    if free_bytes < 0:
        raise DoesNotFit(phase[0].lives[0], [])
    changed = True
    while changed:
        changed = False
        for role in sorted(phase, key=lambda one: -one.length):
            extra = role.most * role.size
            if extra <= free_bytes and role.count < len(role.lives):
                role.count += role.most
                free_bytes -= extra
                changed = True


def _around(role: _Role, start: int) -> Addresses:
    """Place the role's tiles, each in the slot that has been free longest."""
    free_slots = deque(start + n * role.size for n in range(role.count))
    ends: list[tuple[int, int]] = []
    addresses: Addresses = {}
    for life in role.lives:
        while ends and ends[0][0] < life.first:
            free_slots.append(heappop(ends)[1])
        at = free_slots.popleft()
        addresses[life.tensor.number] = Address(0, at)
        heappush(ends, (life.last, at))
    return addresses
