"""Breakpoints: stops before an instruction of a line, with access to the complete state."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from nkic.base.diagnostics import bad_value
from nkic.base.suggest import suggestion
from nkic.base.text import clean
from nkic.simulate.debug.observed import Execution, Observer, Scene
from nkic.simulate.debug.writes import Write, Writes, line_of, nearest_lines, path_of
from nkic.simulate.streams import Item

_PLACE = re.compile(r"(?:(.+?):)?(\d{1,9})(?::(\d{1,9}))?")


class Quit(Exception):
    """The user ends the run."""


class Breakpoint(NamedTuple):
    """An instruction of `line`, in the file whose path ends in `path`.

    With `time`, only the time-th instruction of the line to be executed.
    """

    path: str
    line: int
    time: int | None = None

    def __str__(self) -> str:
        time = f":{self.time}" if self.time is not None else ""
        return f"{self.path}:{self.line}{time}" if self.path else f"{self.line}{time}"


def breakpoint_of(text: str) -> Breakpoint:
    """Parse `FILE:LINE`, `LINE` or `FILE:LINE:TIME`. Raises `UsageFailed`."""
    match = _PLACE.fullmatch(text.strip())
    if match is None or match[3] == "0":
        help = "for example kernel.py:12, 12, or kernel.py:12:3 for its third instruction to run"
        raise bad_value(f"`{clean(text)}` is not a breakpoint", help)
    if match[1] is not None and match[1].isdigit() and match[3] is None:
        return Breakpoint("", int(match[1]), int(match[2]))  # LINE:TIME
    return Breakpoint(match[1] or "", int(match[2]), int(match[3]) if match[3] else None)


class Resume(Enum):
    """Where to stop next, besides breakpoints."""

    ON = "nowhere"
    STEP = "before the next instruction"
    NEXT = "before the next instruction of another line"


class Transfer(NamedTuple):
    """A transfer that has started."""

    item: Item
    start: int
    done: int


class Debugger(Observer):
    """Stops at `points`; `talk` is called with `stop` set, and calls `go` to continue.

    `written` has the last writes by rank and tensor, `under_way` the transfers of every queue that
    were in flight when the next one started.
    """

    def __init__(self, points: list[Breakpoint], talk: Callable[[Debugger], object]) -> None:
        self.points = points
        self.talk = talk
        self.stop: Execution | None = None
        self.point: Breakpoint | None = None  # the one it has stopped at
        self.scenes: list[Scene] = []
        self.written: dict[tuple[int, int], Write] = {}
        self.under_way: dict[int, deque[Transfer]] = defaultdict(deque)
        self.times: dict[tuple[str, int], int] = defaultdict(int)  # instructions started, by line
        self._writes: list[Writes] = []
        self._resume = Resume.ON
        self._stops_left = 0
        self._line = 0

    def begin(self, scene: Scene) -> None:
        """Raise `UsageFailed` for a breakpoint at a line without instructions."""
        self.scenes.append(scene)
        self._writes.append(Writes(scene))
        for point in self.points:
            self.check("--break", point)

    def check(self, option: str, point: Breakpoint) -> None:
        """Raise `UsageFailed` if there is no instruction at the breakpoint."""
        lines = self._lines_of_files()
        paths = [path for path in lines if _is_path(path, point.path)]
        subject = f"{option} {clean(str(point))}"
        if not paths:
            help = suggestion(point.path, lines, "there are")
            raise bad_value(f"{subject}: no file `{clean(point.path)}`", help)
        lines_with_code = set[int]().union(*(lines[path] for path in paths))
        if point.line not in lines_with_code:
            help = f"the nearest lines with one: {nearest_lines(point.line, lines_with_code)}"
            raise bad_value(f"{subject}: this line has no instruction", help)

    def _lines_of_files(self) -> dict[str, set[int]]:
        """Return the lines with instructions, by file."""
        lines: dict[str, set[int]] = defaultdict(set)
        executable = self.scenes[0].executable
        for _, item in self.scenes[0].instructions():
            place = item.record.place
            lines[path_of(executable, place)].add(line_of(executable, place))
        return lines

    def go(self, resume: Resume, count: int = 1) -> None:
        """Continue after this stop, until `resume` has been reached `count` times."""
        self._resume, self._stops_left = resume, count

    def before(self, execution: Execution) -> None:
        """Stop here if a breakpoint or step requests it."""
        scene, _, item, _, _ = execution
        if item.record.row is None:
            return
        line = line_of(scene.executable, item.record.place)
        path = path_of(scene.executable, item.record.place)
        self.times[path, line] += 1
        self.point = self._point(path, line)
        if self.point is not None or self._is_step(line):
            self.stop, self._line = execution, line
            self._resume = Resume.ON
            self.talk(self)

    def _point(self, path: str, line: int) -> Breakpoint | None:
        time = self.times[path, line]
        for point in self.points:
            if point.line == line and _is_path(path, point.path) and point.time in (None, time):
                return point
        return None

    def _is_step(self, line: int) -> bool:
        if self._resume is Resume.ON or (self._resume is Resume.NEXT and line == self._line):
            return False
        self._stops_left -= 1
        self._line = line
        return self._stops_left <= 0

    def after(self, execution: Execution) -> None:
        """Record the last writes, and the transfers in flight."""
        scene, runner, item, start, done = execution
        for write in self._writes[scene.rank].of(execution):
            self.written[scene.rank, write.tensor] = write
        if runner.is_dma and item.record.row is not None:
            queue = self.under_way[runner.index]
            while queue and queue[0].done <= start:
                queue.popleft()
            queue.append(Transfer(item, start, done))


def _is_path(path: str, wanted: str) -> bool:
    return path == wanted or not wanted or path.endswith("/" + wanted)
