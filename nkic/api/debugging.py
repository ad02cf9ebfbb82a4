"""Inspect a run: tensors after given source lines, and changes to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from nkic.api.arrays import Array, array_of, offer, presented
from nkic.api.options import Running
from nkic.base.diagnostics import ProgramFault, UsageFailed, bad_value, make
from nkic.simulate.comparison.tolerance import ToleranceSettings
from nkic.simulate.debug.dumps import Dump, Dumps, Tap
from nkic.simulate.debug.expectations import Expectations, Expected
from nkic.simulate.debug.observed import Observed, Observer
from nkic.simulate.debug.parts import part
from nkic.simulate.debug.watches import Watches, text
from nkic.simulate.debug.writes import Region
from nkic.simulate.stage import MachineMaker, plain

EVERYTHING = "all"


class Dumped(NamedTuple):
    """A whole tensor after a write.

    `time` counts the writes of this line to tensors of this name, from 0, in program order;
    `iteration` is the iteration of each enclosing device loop, `unrolled` that of each enclosing
    Python loop, as "i=3 j=0", if the artifact stores them. `region` is the region written (None: at
    run-time offsets); `unwritten` counts the elements that are still uninitialised.
    """

    tensor: str
    line: int
    time: int
    iteration: tuple[int, ...]
    unrolled: str
    engine: str
    start_ns: float
    done_ns: float
    region: Region | None
    unwritten: int
    array: Array


class Inspection:
    """The dumps, expectations and watches that a run's options request. Raises `UsageFailed`."""

    def __init__(self, call_options: Running, ranks: int) -> None:
        self.dumps: Dumps | None = None
        self.expectations: Expectations | None = None
        observers: list[Observer] = []
        rtol, atol = call_options.get("rtol"), call_options.get("atol")
        if dump := _as_list(call_options.get("dump")):
            taps = [_tap(request) for request in dump if request != EVERYTHING]
            self.dumps = Dumps(taps, EVERYTHING in dump)
            observers.append(self.dumps)
        if (expected := call_options.get("expect_at")) is not None:
            references = [Expected(line, "expect_at", _offers(a)) for line, a in expected.items()]
            settings = ToleranceSettings.of_all(rtol=rtol, atol=atol)
            self.expectations = Expectations([references] * ranks, settings)
            observers.append(self.expectations)
        elif rtol is not None or atol is not None:
            message = "rtol and atol apply to expect_at, which is not given"
            raise UsageFailed([make("conflicting-options", message, help="leave them out")])
        if watched := _as_list(call_options.get("watch")):
            parts = [part(selection) for selection in watched]
            observers.append(Watches(parts, lambda changed: print(text(changed))))
        self.make: MachineMaker = partial(Observed, observers=observers) if observers else plain

    def dumped(self, rank: int) -> tuple[Dumped, ...]:
        """Return a rank's dumps, in the order of the writes."""
        return tuple(_dumped(dump) for dump in self.dumps.by_rank[rank]) if self.dumps else ()

    def judge(self, ranks: int) -> None:
        """Raise the error for the first line at which a rank diverges from what was expected."""
        if self.expectations is not None:
            diagnostics = [self.expectations.first_difference(rank) for rank in range(ranks)]
            if any(diagnostics):
                raise ProgramFault([*filter(None, diagnostics)])


def _as_list(names: str | Sequence[str] | None) -> list[str]:
    return [names] if isinstance(names, str) else list(names or ())


def _tap(text: str) -> Tap:
    name, at, line = text.rpartition("@")
    if not at or not name or not line.isdigit():
        message = f"dump={text!r}: expected 'NAME@LINE' or 'all'"
        raise bad_value(message, "for example dump='acc@12'")
    return Tap(name, int(line))


def _offers(arrays: Mapping[str, Any]) -> dict[str, Any]:
    offers = {}
    for name, value in arrays.items():
        array = array_of(value)
        if array is None:
            message = f"expect_at: `{name}` is a {type(value).__qualname__}, not an array"
            raise bad_value(message, "pass a NumPy array")
        offers[name] = offer(array)
    return offers


def _dumped(dump: Dump) -> Dumped:
    write = dump.write
    return Dumped(
        *(write.name, write.line, dump.time, write.iterations, write.unrolled, write.stream.name),
        *(write.start / 1000, write.done / 1000, write.region, dump.unwritten),
        presented(dump.array, dump.dtype),
    )
