"""Run-time behaviour of blocks: loops on the device, `try`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from nkic.base.device import DeviceCondition, DeviceRange, TracedOnce, left_by
from nkic.evaluate.code import AT, BREAK, CONTINUE, MACHINE, Frame
from nkic.evaluate.compile.targets import Run
from nkic.evaluate.errors import KernelError
from nkic.evaluate.exceptions import is_fatal

# ---- loops that are traced once -----------------------------------------------------------------

_PLAIN = frozenset({int, float, bool})
Slots = Sequence[tuple[str, int, bool]]


def each_iteration(
    f: Frame, loop: TracedOnce, values: Iterable[Any], slots: Slots
) -> Iterator[Any]:
    """Yield the values of a loop that is traced once.

    Before every iteration but the first, variables that held a number before the loop are reset to
    that number; `slots` lists the variables that the body binds.
    """
    before = [(*slot, _held(f, *slot[1:])) for slot in slots]
    before = [entry for entry in before if entry[3].__class__ in _PLAIN]
    for iteration, value in enumerate(values):
        for name, slot, boxed, old in before if iteration else ():
            if _held(f, slot, boxed) is not old and _held(f, slot, boxed) != old:
                loop.reset(name)
                if boxed:
                    f[slot][0] = old
                else:
                    f[slot] = old
        yield value


def _held(f: Frame, slot: int, boxed: bool) -> Any:
    return f[slot][0] if boxed else f[slot]


# ---- loops on the device ------------------------------------------------------------------------


def device_for(f: Frame, each: DeviceRange, store: Any, body: Run) -> None:
    """Run a loop of the device: its body is evaluated once."""
    m = f[MACHINE]
    m.device_loops += 1
    store(f, each.enter())
    _stay(f, body(f))
    m.device_loops -= 1
    each.leave()


def device_while(f: Frame, condition: DeviceCondition, test: Run, body: Run) -> None:
    """Run `while register:`; the condition must still be a register after the body."""
    m, header = f[MACHINE], f[AT]
    m.device_loops += 1
    condition.enter_while()
    _stay(f, body(f))
    last = test(f)
    f[AT] = header
    if not isinstance(last, DeviceCondition):
        raise KernelError(
            "device-loop-misuse",
            "the condition was a register before the loop, but is not a register after its body",
        )
    m.device_loops -= 1
    last.leave_while()


def _stay(f: Frame, outcome: Any) -> None:
    """Raise for a `break` or `return` out of a loop on the device."""
    if outcome is None or outcome is CONTINUE:
        return
    raise left_by("break" if outcome is BREAK else "return")


# ---- try ----------------------------------------------------------------------------------------


def with_else(body: Run, orelse: Run | None) -> Run:
    if orelse is None:
        return body

    def run(f: Frame) -> Any:
        outcome = body(f)
        return outcome if outcome is not None else orelse(f)

    return run


def try_except(body: Run, handlers: list[Any], orelse: Run | None) -> Run:
    def run(f: Frame) -> Any:
        m = f[MACHINE]
        before = m.device_loops, m.level, len(m.stack)
        try:
            outcome = body(f)
        except Exception as error:
            handler, value = m.handler_for(f, error, handlers, before)
            if handler is None:
                raise
        else:
            return outcome if outcome is not None or orelse is None else orelse(f)
        return handle(f, handler, value)

    return run


def handle(f: Frame, handler: Any, value: Any) -> Any:
    """Run the block of an `except` clause for the exception that it catches."""
    _, store, forget, block, _ = handler
    m = f[MACHINE]
    if store is not None:
        store(f, value)
    m.handling.append(value)
    try:
        return block(f)
    finally:
        m.handling.pop()
        if forget is not None:
            forget(f)


def finally_(body: Run, last: Run) -> Run:
    def run(f: Frame) -> Any:
        m = f[MACHINE]
        try:
            outcome = body(f)
        except Exception as error:
            if is_fatal(error):
                raise
            m.note(error)
            with m.handling_of(error):
                override = last(f)
            if override is not None:
                return override
            raise
        override = last(f)
        return outcome if override is None else override

    return run
