"""An event loop that notifies observers.

Runs without observers use `Machine` itself, so that they have no overhead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from nkic.machine.targets import Target
from nkic.neff.records import Executable
from nkic.simulate.debug.tensors import Tensors
from nkic.simulate.machine import Machine
from nkic.simulate.storage.memory import Memory
from nkic.simulate.streams import Item, Runner


class Scene(NamedTuple):
    """One rank of an observed run."""

    rank: int
    executable: Executable
    target: Target
    runners: Sequence[Runner]
    tensors: Tensors
    machine: Observed

    def instructions(self) -> Iterator[tuple[Runner, Item]]:
        """Yield every item with an instruction, and its stream."""
        for runner in self.runners:
            for item in runner.items:
                if isinstance(item, Item) and item.record.row is not None:
                    yield runner, item


class Execution(NamedTuple):
    """An execution of an item: its start and, known afterwards, its completion, in picoseconds."""

    scene: Scene
    runner: Runner
    item: Item
    start: int
    done: int = 0


class Observer:
    """Callbacks of a run; each of them does nothing unless it is overridden."""

    def begin(self, scene: Scene) -> None:
        """Called before a rank runs. Raises `UsageFailed` for an invalid request."""

    def before(self, execution: Execution) -> None:
        """Called before the item is executed.

        At a rendezvous, values are exchanged before this is called for any of its items.
        """

    def after(self, execution: Execution) -> None:
        """Called after the item's values have been computed."""

    def end(self) -> None:
        """Called at the end of the run."""


class Observed(Machine):
    """Notifies `observers` of every item."""

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
        """Run as `Machine.run`."""
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
            observer.before(Execution(scene, runner, item, start))
        super()._execute(runner, item, start, queue)
        begun = runner.moved - item.timing.hold if runner.is_dma else start
        for observer in self.observers:
            observer.after(Execution(scene, runner, item, begun, runner.done))
