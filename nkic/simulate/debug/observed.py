"""An event loop that tells what it does. Runs that nobody looks at use `Machine` itself, so that
looking costs them nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from nkic.machine.targets import Target
from nkic.neff.records import Executable
from nkic.simulate.debug.tensors import Tensors
from nkic.simulate.machine import Machine
from nkic.simulate.storage.memory import Memory
from nkic.simulate.streams import Item, Runner


class Scene(NamedTuple):
    """One rank of a run that is looked at."""

    rank: int
    executable: Executable
    target: Target
    runners: Sequence[Runner]
    tensors: Tensors
    machine: Observed


class Happening(NamedTuple):
    """An execution of an item: when it starts and, known after it, when it is complete, in
    picoseconds.
    """

    scene: Scene
    runner: Runner
    item: Item
    start: int
    done: int = 0


class Observer:
    """What is told of a run. Each of these does nothing unless it is overridden."""

    def begin(self, scene: Scene) -> None:
        """A rank is about to run. Raises `UsageFailed` for what it cannot be asked."""

    def before(self, happening: Happening) -> None:
        """The item is about to be executed. Of one that all cores run together the values are
        exchanged before any of them is.
        """

    def after(self, happening: Happening) -> None:
        """Its values are there."""

    def end(self) -> None:
        """The run is over."""


class Observed(Machine):
    """Tells `observers` of every item."""

    def __init__(
        self, *facts: Any, observers: Sequence[Observer] = (), memories: Sequence[Memory] = ()
    ) -> None:
        super().__init__(*facts)
        self.observers = observers
        self.scenes = [self._scene(rank, memory) for rank, memory in enumerate(memories)]

    def _scene(self, rank: int, memory: Memory) -> Scene:
        runners = [runner for runner in self.runners if runner.rank == rank]
        shadow, precise = self.unwritten.shadows[rank], self.options.precise
        tensors = Tensors(self.executable, memory, shadow, precise)
        target = self.options.target_of(self.executable)
        return Scene(rank, self.executable, target, runners, tensors, self)

    def run(self) -> None:
        """As `Machine.run`."""
        for observer in self.observers:
            for scene in self.scenes:
                observer.begin(scene)
        super().run()
        for observer in self.observers:
            observer.end()

    def _execute(
        self, runner: Runner, item: Item, start: int, queue: list[tuple[int, int]]
    ) -> None:
        scene = self.scenes[runner.rank]
        for observer in self.observers:
            observer.before(Happening(scene, runner, item, start))
        super()._execute(runner, item, start, queue)
        begun = runner.moved - item.timing.hold if runner.is_dma else start
        for observer in self.observers:
            observer.after(Happening(scene, runner, item, begun, runner.done))
