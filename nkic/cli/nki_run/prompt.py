"""--break: a prompt in the middle of a run.

Python's `cmd` reads the commands: from a terminal with its line editing, from anything else a line
at a time.
"""

from __future__ import annotations

import cmd
import sys
from collections.abc import Iterable
from io import TextIOWrapper
from typing import TextIO

from nkic.base.diagnostics import NkicError
from nkic.base.text import clean
from nkic.simulate.debug import state
from nkic.simulate.debug.breakpoints import Debugger, Quit, Resume, breakpoint_of
from nkic.simulate.debug.observed import Execution

SHORT = {"s": "step", "n": "next", "c": "continue", "p": "print", "w": "where", "q": "quit"}
ALONE = {"continue", "quit", "where", "engines", "queues", "tensors", "memory", "time"}


class Prompt(cmd.Cmd):
    """Commands at a stop. The docstrings of `do_…` are what `help` shows."""

    prompt = "(nki) "

    def __init__(self, stdin: TextIO | None = None, stdout: TextIO | None = None) -> None:
        super().__init__(stdin=stdin or sys.stdin, stdout=stdout or sys.stdout)
        if isinstance(self.stdin, TextIOWrapper):
            self.stdin.reconfigure(errors="replace")  # commands may hold any bytes
        self.interactive = self.stdin.isatty()
        self.use_rawinput = self.interactive
        if not self.interactive:
            self.prompt = ""
        self.debugger: Debugger | None = None

    def talk(self, debugger: Debugger) -> None:
        """Read commands at a stop until one continues the run."""
        self.debugger = debugger
        self._show(state.header(self._stop))
        self.cmdloop()

    @property
    def _debugger(self) -> Debugger:
        if self.debugger is None:
            raise RuntimeError("no run has stopped")
        return self.debugger

    @property
    def _stop(self) -> Execution:
        stop = self._debugger.stop
        if stop is None:
            raise RuntimeError("no run has stopped")
        return stop

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
                self._show(
                    [
                        f"error: {diagnostic.message}",
                        *([f"  {diagnostic.help}"] if diagnostic.help else []),
                    ]
                )
            return False

    def emptyline(self) -> bool:
        """Do nothing, instead of repeating the last command."""
        return False

    def default(self, line: str) -> None:
        """Handle the end of the input, and words that are not commands."""
        if line == "EOF":
            self._debugger.points.clear()
            self._debugger.go(Resume.ON)
            return
        self._show([f"error: there is no command `{clean(line)}`; `help` lists them"])

    def postcmd(self, stop: bool, line: str) -> bool:
        """Return whether to leave the prompt; at the end of the input the run continues without
        stops.
        """
        return stop or line == "EOF"

    def _number(self, text: str) -> int | None:
        if not text or (text.isdecimal() and len(text) < 10 and int(text)):
            return int(text or 1)
        self._show([f"error: `{clean(text)}` is not a number of repetitions"])
        return None

    def _go(self, resume: Resume, text: str) -> bool:
        count = self._number(text)
        if count is not None:
            self._debugger.go(resume, count)
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
        self._show(state.contents(self._debugger, self._stop, text))

    def do_where(self, text: str) -> None:
        """where: the instruction that is about to start, its operands, and what it waited for."""
        self._show(state.where(self._stop))

    def do_engines(self, text: str) -> None:
        """engines: what every engine and queue does now, and what comes next."""
        self._show(state.engines(self._stop))

    def do_queues(self, text: str) -> None:
        """queues: the DMA queues, with the transfers in flight."""
        self._show(state.queues(self._debugger, self._stop))

    def do_tensors(self, text: str) -> None:
        """tensors: all tensors with their addresses, and the last write to each."""
        self._show(state.tensors(self._debugger, self._stop))

    def do_memory(self, text: str) -> None:
        """memory: the contents of SBUF and PSUM, by address."""
        self._show(state.memory(self._stop))

    def do_time(self, text: str) -> None:
        """time: the simulated time."""
        self._show([state.microseconds(self._stop.start)])

    def do_break(self, text: str) -> None:
        """break [[FILE:]LINE[:TIME]]: add a breakpoint; alone, show all of them."""
        if text:
            point = breakpoint_of(text)
            self._debugger.check("break", point)
            self._debugger.points.append(point)
        points = ", ".join(map(str, self._debugger.points))
        self._show([f"breakpoints: {points or 'none'}"])

    def do_clear(self, text: str) -> None:
        """clear [[FILE:]LINE[:TIME]]: remove a breakpoint; alone, all of them."""
        points = self._debugger.points
        if not text:
            points.clear()
        elif (point := breakpoint_of(text)) in points:
            points.remove(point)
        else:
            self._show([f"error: there is no breakpoint {clean(text)}"])
        self.do_break("")
