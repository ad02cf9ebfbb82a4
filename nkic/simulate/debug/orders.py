"""Orders of a run: drawn from a seed, or given as a list."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from random import Random

from nkic.simulate.debug.interleaved import Action, Interleaved, Kind, transfer_kinds

_CHANGE_RATES = (0.0, 0.02, 0.2, 1.0)  # the probability at every step that the priorities change


class Transfers(Enum):
    """When transfers move their data."""

    EAGER = "eager"  # at the start, and they signal at once
    LATE = "late"  # when nothing else is left to do
    MIXED = "mixed"  # at any moment


class Drawn:
    """The `number`-th order of a seed.

    Streams have priorities, and the first one that can continue does, so that some run far ahead of
    others, which a fair choice between them rarely achieves.
    """

    def __init__(self, seed: int, number: int) -> None:
        self.number = number
        self.random = Random(f"{seed}/{number}")
        self.transfers = [*Transfers][number % len(Transfers)]
        self.change = _CHANGE_RATES[number // len(Transfers) % len(_CHANGE_RATES)]
        self._priorities: list[int] = []
        self._pending: list[Action] = []

    def choose(self, machine: Interleaved) -> Action | None:
        """Return the next action."""
        if self._pending:
            return self._pending.pop(0)
        if not self._priorities or self.random.random() < self.change:
            self._priorities = list(range(len(machine.runners)))
            self.random.shuffle(self._priorities)
        postponed: list[Action] = []
        for stream in self._priorities:
            ready = list(machine.ready(stream))
            if ready and self.transfers is Transfers.MIXED:
                return self.random.choice(ready)
            for action in ready:
                if action.kind in (Kind.RUN, Kind.START):
                    return self._with_consequences(machine, action)
            postponed += ready
        return postponed[0] if postponed else None

    def _with_consequences(self, machine: Interleaved, action: Action) -> Action:
        """Return the action; with eager transfers, also schedule the actions that follow it."""
        if action.kind is Kind.START and self.transfers is Transfers.EAGER:
            item = machine.runners[action.stream].item
            following = transfer_kinds(item)[1:] if item is not None else ()
            self._pending = [action._replace(kind=kind) for kind in following]
        return action


class Scripted:
    """The possible actions of a list, in order; then whatever is left to do."""

    def __init__(self, actions: Sequence[Action]) -> None:
        self.actions = actions
        self._position = 0

    def choose(self, machine: Interleaved) -> Action | None:
        """Return the next action."""
        while self._position < len(self.actions):
            action = self.actions[self._position]
            self._position += 1
            if action in machine.ready(action.stream):
                return action
        ready = (action for s in range(len(machine.runners)) for action in machine.ready(s))
        return next(ready, None)
