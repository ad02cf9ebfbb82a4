"""The debugging options of a run: dumps, expectations, watches, breakpoints."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from nkic.base.diagnostics import Diagnostic, bad_value
from nkic.base.text import clean, plural
from nkic.cli.common import Session
from nkic.cli.nki_run import dumping
from nkic.cli.nki_run.options import CommandLine
from nkic.cli.nki_run.prompt import Prompt
from nkic.simulate.comparison.tolerance import ToleranceSettings
from nkic.simulate.debug.breakpoints import Debugger, Quit, breakpoint_of
from nkic.simulate.debug.dumps import Dumps
from nkic.simulate.debug.expectations import Expectations, Expected
from nkic.simulate.debug.observed import Observed, Observer
from nkic.simulate.debug.parts import part
from nkic.simulate.debug.watches import Changed, Watches, text
from nkic.simulate.stage import MachineMaker, plain

__all__ = ["Debugging", "Quit"]


class Debugging:
    """The observers of a run, for the command line of each rank. Raises `UsageFailed`."""

    def __init__(
        self, lines: Sequence[CommandLine], session: Session, settings: ToleranceSettings
    ) -> None:
        first = lines[0]
        self.session = session
        self.dumps: Dumps | None = None
        self.expectations: Expectations | None = None
        observers: list[Observer] = []
        if first.dump:
            wanted = dumping.Wanted.of(first.dump)
            self.dumps = Dumps(wanted.taps, wanted.folder is not None, wanted.lines)
            observers.append(self.dumps)
        if first.expect_at:
            expected = [[_expected(value) for value in line.expect_at] for line in lines]
            self.expectations = Expectations(expected, settings)
            observers.append(self.expectations)
        if first.changes:
            observers.append(Watches([part(value) for value in first.changes], self._tell))
        if first.stop_at:
            breakpoints = [breakpoint_of(text) for text in first.stop_at]
            observers.append(Debugger(breakpoints, Prompt().talk))
        self.observers = observers

    @property
    def make(self) -> MachineMaker:
        """The constructor of the event loop."""
        return partial(Observed, observers=self.observers) if self.observers else plain

    def finish(self, rank: int, line: CommandLine) -> list[Diagnostic]:
        """Write the dumps, and return the error if the rank diverges from its reference."""
        if self.dumps is not None:
            dumping.write(line.dump, self.session, self.dumps, rank)
        if self.expectations is None:
            return []
        difference = self.expectations.first_difference(rank)
        if difference is not None:
            return [difference]
        count = len(self.expectations.judged[rank])
        message = f"--expect-at: {plural(count, 'comparison')}, all as expected"
        self.session.tell("expect-at", message, rank=rank, comparisons=count)
        return []

    def _tell(self, changed: Changed) -> None:
        self.session.tell("watch", text(changed), **dumping.change_fields(changed))


def _expected(value: str) -> Expected:
    at, equals, path = value.partition("=")
    if not equals or not at.isdigit() or not path:
        message = f"--expect-at {clean(value)}: expected LINE=FILE.npz"
        raise bad_value(message, "for example --expect-at 12=reference.npz")
    return Expected(int(at), path)
