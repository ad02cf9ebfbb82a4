"""Loops of Beta 1, and reductions over their iterations.

Beta 1 traces the body of a loop once, with an expression as its variable. Here a loop is unrolled,
and its variable is a number that identifies its loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

from nkic.base.device import KernelError, TracedOnce
from nkic.base.diagnostics import Level
from nkic.language.beta1.emit import (
    follow,
    hide,
    is_hidden,
    new,
    note_sum,
    result,
    state,
    unchanged,
)
from nkic.language.beta1.extents import ALL, extent_of
from nkic.language.beta1.functions import update
from nkic.language.beta1.indices import Index
from nkic.language.beta1.moving import fill_hidden, kind, tile
from nkic.language.beta1.operators import operator_name
from nkic.language.beta1.recorded import DependenceCheck
from nkic.language.beta1.tiles import Tile
from nkic.language.hosted import brief, plain, surface
from nkic.language.loops import static_range
from nkic.language.trace import active, complain, here

_loops = count()


class LoopIndex(int):
    """A loop variable: a number in each iteration."""

    loop: int

    @classmethod
    def of(cls, value: int, loop: int) -> LoopIndex:
        index = cls(value)
        index.loop = loop
        return index


@surface("__iter__ __len__")
class Range:
    """The result of `nl.static_range`, whose body is evaluated in every iteration."""

    def __init__(self, *bounds: Any) -> None:
        numbers = [(int(value) if isinstance(value, Index) else plain(value)) for value in bounds]
        if not 1 <= len(numbers) <= 3:
            raise KernelError("wrong-call", "a range takes 1 to 3 numbers: start, stop, step")
        start, stop, step = ([0, *numbers, 1], [*numbers, 1], numbers)[len(numbers) - 1]
        self._range = static_range(start, stop, step)

    def reset(self, name: str) -> None:
        """Called with the name of each variable that has been restored."""

    def watch(self) -> Callable[..., None]:
        """Return a function to call at the start of each iteration, and at the end of the loop."""
        return lambda ended=False: None

    def __iter__(self) -> Iterator[LoopIndex]:
        loop, variables = next(_loops), state().loops
        depth, at = len(variables), here()
        remember = active().remember if isinstance(self, TracedRange) else None
        restore = remember() if remember is not None else None
        watch = self.watch()
        try:
            for iteration, value in enumerate(self._range):
                watch()
                for name in restore() if iteration and restore is not None else ():
                    self.reset(name)
                variables[depth:] = [LoopIndex.of(value, loop)]
                try:
                    yield variables[depth]
                except GeneratorExit:
                    if restore is not None and iteration < len(self) - 1:  # left early
                        active().abandoned_loops.append(at)
                    raise
            watch(True)
        finally:
            del variables[depth:]

    def __len__(self) -> int:
        return len(self._range)

    def __repr__(self) -> str:
        return repr(self._range)


@surface("__iter__ __len__")
class TracedRange(Range, TracedOnce):
    """The result of `nl.affine_range` and `nl.sequential_range`, traced once by Beta 1."""

    independent = False

    def watch(self) -> Callable[..., None]:
        """Compare the first iterations."""
        seen = DependenceCheck(self.independent)

        def on_iteration(ended: bool = False) -> None:
            seen.iteration()
            if ended:
                seen.report()

        return on_iteration

    def reset(self, name: str) -> None:
        """Report a number that loses the value assigned in the body."""
        complain(
            "traced-once",
            f"`{name}` is a number that the body of this loop changes: the body is traced once, "
            "so every iteration starts with its value before the loop",
            help="compute it from the loop variable, or loop over nl.static_range",
            level=Level.WARNING,
        )


def unrolled(*bounds: Any) -> Range:
    """`nl.static_range`."""
    return Range(*bounds)


def traced(*bounds: Any, directives: Any = None, precise_schedule: bool = False) -> Range:
    """`nl.sequential_range`.

    The two options are in published kernels, but undocumented (the documented signature is `*args,
    **kwargs`). They steer the scheduler of the vendor's compiler and have no effect here.
    """
    return TracedRange(*bounds)


def affine(*bounds: Any, directives: Any = None, precise_schedule: bool = False) -> Range:
    """`nl.affine_range`, whose iterations are independent. Options as in `nl.sequential_range`."""
    result = TracedRange(*bounds)
    result.independent = True
    return result


def loop_reduce(x: Any, op: Any, loop_indices: Any, *, dtype: Any = None, mask: Any = None) -> Tile:
    """Reduce x over the iterations of loops; the result is complete when they have ended."""
    source = tile(x, "x")
    indices = loop_indices if isinstance(loop_indices, tuple | list) else (loop_indices,)
    if not indices or not all(isinstance(index, LoopIndex) for index in indices):
        raise KernelError(
            "argument-kind",
            f"loop_indices must be loop variables, not {brief(loop_indices)}",
            help="pass the loop variables themselves: loop_indices=[i]",
            argument="loop_indices",
        )
    name = operator_name(op)
    key = (here(), *_reduction_key(indices))
    total = state().reduced.get(key)
    if mask is not None:
        region = extent_of(source, mask)
        if region != ALL:
            source = fill_hidden(source, name, mask) if not region.empty else source
        if region.empty or is_hidden(source):
            return total if total is not None else _hidden(source)
    if total is None:
        total = new(source.shape, kind(dtype, source.dtype))
        state().reduced[key] = total
        updated = result("tensor_copy", total, src=source)
    else:
        place = unchanged(total._access)
        updated = update(name, Tile(place), source)
        if place is not total._access:  # `t[...] = loop_reduce(...)` before: the sum is in t
            follow(total._access.tensor)
        updated = total if updated._access is place else updated
    note_sum()
    return updated


def _reduction_key(indices: Sequence[LoopIndex]) -> tuple[int, ...]:
    """Return the key of a sum: the reduced loops, and the iterations of the other ones inside."""
    folded = {index.loop for index in indices}
    first = min(folded)
    return (first, *(int(i) for i in state().loops if i.loop > first and i.loop not in folded))


def _hidden(source: Tile) -> Tile:
    output = new(source.shape, source.dtype)
    hide(output)
    return output
