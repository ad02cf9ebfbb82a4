"""The debugging options of a run: dumps, expectations, watches, breakpoints with their prompt,
and other orders.

Python's `cmd` reads the commands of the prompt: from a terminal with its line editing, from
anything else a line at a time.
"""

from __future__ import annotations

import cmd
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from io import TextIOWrapper
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np

from nkic.artifact.arrays import write_npz
from nkic.artifact.records import Executable
from nkic.base import files
from nkic.base.diagnostics import Diagnostic, NkicError, UsageFailed, bad_value
from nkic.base.files import STANDARD
from nkic.base.text import clean, plural, whole_number
from nkic.cli.common import Session
from nkic.cli.nki_run.inspecting import lines_of
from nkic.cli.nki_run.options import CommandLine
from nkic.cli.nki_run.outputs import presented
from nkic.simulate import RunOptions, watching
from nkic.simulate.compare import Stats, ToleranceSettings, stats_of
from nkic.simulate.expectations import Expectations, Expected
from nkic.simulate.fuzz import Arrays, Drawn, Fuzz, diagnostic
from nkic.simulate.observed import Execution, Observer, Write, part
from nkic.simulate.watching import (
    Changed,
    Debugger,
    Dump,
    Dumps,
    Quit,
    Resume,
    Tap,
    Watches,
    breakpoint_of,
)
from nkic.simulate.watching import text as change_text

__all__ = ["Debugging", "Quit"]

SHORT = {"s": "step", "n": "next", "c": "continue", "p": "print", "w": "where", "q": "quit"}
ALONE = {"continue", "quit", "where", "engines", "queues", "tensors", "memory", "time"}


class Prompt(cmd.Cmd):
    """Commands at a stop. The docstrings of `do_…` are what `help` shows."""

    prompt = "(nki) "
    debugger: Debugger  # whose run has stopped

    def __init__(self, stdin: TextIO | None = None, stdout: TextIO | None = None) -> None:
        super().__init__(stdin=stdin or sys.stdin, stdout=stdout or sys.stdout)
        if isinstance(self.stdin, TextIOWrapper):
            self.stdin.reconfigure(errors="replace")  # commands may hold any bytes
        self.interactive = self.stdin.isatty()
        self.use_rawinput = self.interactive
        if not self.interactive:
            self.prompt = ""

    def talk(self, debugger: Debugger) -> None:
        """Read commands at a stop until one continues the run."""
        self.debugger = debugger
        self._show(watching.header(self._stop))
        self.cmdloop()

    @property
    def _stop(self) -> Execution:
        assert self.debugger.stop is not None
        return self.debugger.stop

    def _show(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.stdout.write(clean(line) + "\n")
        self.stdout.flush()

    def onecmd(self, line: str) -> bool:
        """Execute one command; an error is reported, and the next command is read."""
        typed, _, argument = line.strip().partition(" ")
        name = SHORT.get(typed, typed)
        if argument and name in ALONE:
            self._show([f"error: `{name}` takes no argument, but was given `{argument.strip()}`"])
            return False
        try:
            return bool(super().onecmd(f"{name} {argument}".strip()))
        except NkicError as error:
            for diagnostic in error.diagnostics:
                advice = [f"  {diagnostic.help}"] if diagnostic.help else []
                self._show([f"error: {diagnostic.message}", *advice])
            return False

    def emptyline(self) -> bool:
        """Do nothing, instead of repeating the last command."""
        return False

    def default(self, line: str) -> None:
        """Handle the end of the input, and words that are not commands."""
        if line == "EOF":
            self.debugger.points.clear()
            self.debugger.go(Resume.ON)
            return
        self._show([f"error: there is no command `{clean(line)}`; `help` lists them"])

    def postcmd(self, stop: bool, line: str) -> bool:
        """Return whether to leave the prompt; at the end of the input the run continues without
        stops.
        """
        return stop or line == "EOF"

    def _number(self, text: str) -> int | None:
        if number := whole_number(text or "1"):
            return number
        self._show([f"error: `{clean(text)}` is not a number of repetitions"])
        return None

    def _go(self, resume: Resume, text: str) -> bool:
        count = self._number(text)
        if count is not None:
            self.debugger.go(resume, count)
        return count is not None

    def do_step(self, text: str) -> bool:
        """step [N]: execute one instruction, or N, and stop before the next one."""
        return self._go(Resume.STEP, text)

    def do_next(self, text: str) -> bool:
        """next [N]: continue until an instruction of another line is about to start."""
        return self._go(Resume.NEXT, text)

    def do_continue(self, text: str) -> bool:
        """continue: run to the next breakpoint."""
        return self._go(Resume.ON, "")

    def do_quit(self, text: str) -> bool:
        """quit: end the run here; nothing is written."""
        raise Quit

    def do_print(self, text: str) -> None:
        """print NAME[slice]: a tensor's contents: acc, acc[0:4, 2]; acc#2 is the second acc."""
        self._show(watching.contents(self.debugger, self._stop, text))

    def do_where(self, text: str) -> None:
        """where: the instruction that is about to start, its operands, and what it waited for."""
        self._show(watching.where(self._stop))

    def do_engines(self, text: str) -> None:
        """engines: what every engine and queue does now, and what comes next."""
        self._show(watching.engines(self._stop))

    def do_queues(self, text: str) -> None:
        """queues: the DMA queues, with the transfers in flight."""
        self._show(watching.queues(self.debugger, self._stop))

    def do_tensors(self, text: str) -> None:
        """tensors: all tensors with their addresses, and the last write to each."""
        self._show(watching.tensors(self.debugger, self._stop))

    def do_memory(self, text: str) -> None:
        """memory: the contents of SBUF and PSUM, by address."""
        self._show(watching.memory(self._stop))

    def do_time(self, text: str) -> None:
        """time: the simulated time."""
        self._show([watching.microseconds(self._stop.start)])

    def do_break(self, text: str) -> None:
        """break [[FILE:]LINE[:TIME]]: add a breakpoint; alone, show all of them."""
        if text:
            point = breakpoint_of(text)
            self.debugger.check("break", point)
            self.debugger.points.append(point)
        points = ", ".join(map(str, self.debugger.points))
        self._show([f"breakpoints: {points or 'none'}"])

    def do_clear(self, text: str) -> None:
        """clear [[FILE:]LINE[:TIME]]: remove a breakpoint; alone, all of them."""
        points = self.debugger.points
        if not text:
            points.clear()
        elif (point := breakpoint_of(text)) in points:
            points.remove(point)
        else:
            self._show([f"error: there is no breakpoint {clean(text)}"])
        self.do_break("")


INDEX = "index.json"
EVERYTHING = "all"
_WORDS = re.compile(r"([^@=]+)(?:@([\d:]+))?=(.+)")


class WantedDumps(NamedTuple):
    """What --dump requests: writes with the files for them, and the folder for all writes, or for
    those by `lines`.
    """

    files: list[tuple[Tap, str]]
    folder: str | None = None
    lines: tuple[int, int] | None = None

    @classmethod
    def of(cls, words: Sequence[str]) -> WantedDumps:
        wanted = cls([])
        for text in words:
            match = _WORDS.fullmatch(text)
            if match is None or match[3] == STANDARD:
                raise _malformed(text)
            name, lines, path = match.groups()
            if name == EVERYTHING and wanted.folder is None:
                by = lines_of("--dump", lines) if lines is not None else None
                wanted = wanted._replace(folder=path, lines=by)
            elif name != EVERYTHING and (line := whole_number(lines or "")) is not None:
                wanted.files.append((Tap(name, line), path))
            else:
                raise _malformed(text)
        return wanted


def _malformed(text: str) -> UsageFailed:
    message = f"--dump {clean(text)}: expected NAME@LINE=FILE.npz, or once {EVERYTHING}=DIR"
    return bad_value(message, "for example --dump acc@12=acc.npz, or --dump all@10:20=folder")


def _stacked(name: str, dumps: Sequence[Dump]) -> dict[str, Dump | list[Dump]]:
    """Return all writes under the tensor's name, stacked.

    Tensors of this name that differ in shape or type get arrays of their own: `name_1` and so on.
    """
    groups: dict[tuple[object, ...], list[Dump]] = {}
    for dump in dumps:
        groups.setdefault((dump.dtype, dump.array.shape), []).append(dump)
    return {f"{name}_{n}" if n else name: group for n, group in enumerate(groups.values())}


def _npz(session: Session, path: str, groups: dict[str, Dump | list[Dump]]) -> None:
    arrays, types = {}, {}
    for name, group in groups.items():
        if isinstance(group, Dump):
            arrays[name], dtype = group.array, group.dtype
        else:
            arrays[name], dtype = np.stack([dump.array for dump in group]), group[0].dtype
        arrays[name] = presented(arrays[name], dtype, False)
        types[name] = dtype.name
    with files.replacing(path) as stream:
        write_npz(stream, arrays, types)
    session.wrote("npz", path)


def _folder(session: Session, folder: str, dumps: Sequence[Dump]) -> None:
    """Write a file per tensor name with an array per write; the index is written last."""
    directory = Path(folder)
    files.make_folder(folder)
    names = _file_names(dumps)
    rows = []
    for name, file in names.items():
        arrays = {_array(n): dump for n, dump in enumerate(dumps) if dump.write.name == name}
        _npz(session, str(directory / file), {**arrays})
    for number, dump in enumerate(dumps):
        location = {"file": names[dump.write.name], "array": _array(number)}
        rows.append({"number": number, **location, **_row(dump)})
    record = {"schema": 1, "writes": rows}
    path = str(directory / INDEX)
    files.write(path, json.dumps(record, indent=1, allow_nan=False) + "\n")
    session.artifact("json", path)
    session.status(f"wrote {plural(len(rows), 'write')} to {folder}", 0)


def _array(number: int) -> str:
    return f"write_{number:06}"


def _file_names(dumps: Sequence[Dump]) -> dict[str, str]:
    """Return a file name per tensor name, without unsafe characters."""
    file_names: dict[str, str] = {}
    for dump in dumps:
        stem = re.sub(r"[^A-Za-z0-9_]", "_", dump.write.name) or "_"
        name, number = f"{stem}.npz", 1
        while file_names.get(dump.write.name) is None and name.lower() in (
            taken.lower() for taken in file_names.values()
        ):
            number += 1
            name = f"{stem}_{number}.npz"
        file_names.setdefault(dump.write.name, name)
    return file_names


def _row(dump: Dump) -> dict[str, Any]:
    stats = stats_of(dump.array, dump.dtype)
    return {
        **_facts(dump.write),
        "time": dump.time,
        "tensor_number": dump.write.tensor,
        "dtype": dump.dtype.name,
        "shape": list(dump.array.shape),
        "unwritten": dump.unwritten,
        **_figures(stats),
    }


def _facts(write: Write) -> dict[str, Any]:
    row = write.record.row
    return {
        "tensor": write.name,
        "line": write.line,
        "iteration": list(write.iterations),
        "unrolled": clean(write.unrolled),
        "engine": write.stream.name,
        "instruction": row.name if row is not None else "",
        "region": write.region and [list(pair) for pair in write.region],
        "start_ns": write.start / 1000,
        "done_ns": write.done / 1000,
    }


def _figures(stats: Stats) -> dict[str, Any]:
    values = {"min": stats.minimum, "mean": stats.mean, "max": stats.maximum}
    numbers = {k: v if v is not None and isfinite(v) else None for k, v in values.items()}
    return {**numbers, "nan": stats.nan, "inf": stats.inf, "sha256": stats.sha256}


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
            wanted = WantedDumps.of(first.dump)
            self.dumps = Dumps(
                [tap for tap, _ in wanted.files], wanted.folder is not None, wanted.lines
            )
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

    def finish(self, rank: int, line: CommandLine) -> list[Diagnostic]:
        """Write the dumps, and return the error if the rank diverges from its reference."""
        if self.dumps is not None:
            wanted = WantedDumps.of(line.dump)
            for tap, path in wanted.files:
                _npz(self.session, path, _stacked(tap.name, self.dumps.of(rank, tap)))
            if wanted.folder is not None:
                _folder(self.session, wanted.folder, self.dumps.chosen(rank))
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
        facts = {"watched": changed.part.text, "rank": changed.write.rank, **_facts(changed.write)}
        facts |= {"changed": changed.changes, **_figures(changed.stats)}
        self.session.tell("watch", change_text(changed), **facts)


def _expected(value: str) -> Expected:
    at, equals, path = value.partition("=")
    line = whole_number(at)
    if not equals or line is None or not path:
        message = f"--expect-at {clean(value)}: expected LINE=FILE.npz"
        raise bad_value(message, "for example --expect-at 12=reference.npz")
    return Expected(line, path)


MAX_ORDERS = 1_000_000


def orders_of(wanted: str) -> tuple[int, int]:
    """Return the number and the seed of `N[:SEED]`. Raises `UsageFailed`."""
    text, _, start = wanted.partition(":")
    count, seed = whole_number(text, MAX_ORDERS), whole_number(start or "0", 2**63)
    if not count or seed is None:
        text = f"--fuzz-order {clean(wanted)}: expected N, or N:SEED, with N up to {MAX_ORDERS:,}"
        raise bad_value(text, "for example --fuzz-order 100")
    return count, seed


def fuzz(
    session: Session,
    executable: Executable,
    inputs: Sequence[Arrays],
    options: RunOptions,
    wanted: str,
) -> list[Diagnostic]:
    """Run other orders, and return the error for the first one with other outputs."""
    count, seed = orders_of(wanted)
    race = Fuzz(executable, inputs, options, seed).search(count)
    if race is not None:
        return [diagnostic(executable, race, seed)]
    kinds = Counter(Drawn(seed, number).transfers.value for number in range(count))
    shares = ", ".join(f"{orders} with {kind} DMA" for kind, orders in kinds.items())
    text = f"--fuzz-order: {plural(count, 'other order')} of seed {seed} ({shares}): same outputs"
    session.tell("fuzz-order", text, orders=count, seed=seed, **kinds)
    return []
