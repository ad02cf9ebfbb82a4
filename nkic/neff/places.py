"""Source places for messages: the user's own lines before those of nkic's library."""

from __future__ import annotations

from nkic.base.source import SHIPPED, Span
from nkic.neff.records import Executable, InstructionRecord, LoopRecord


def frames(executable: Executable, place: int) -> list[int]:
    """Return `place` and the places of its callers that the file has, innermost first."""
    chain: list[int] = []
    places = executable.places
    while 0 <= place < len(places) and place not in chain:
        chain.append(place)
        place = places[place].caller
    return chain


def user_place(executable: Executable, place: int) -> int:
    """Return the innermost place in user code; `place` itself if there is none."""
    chain = frames(executable, place)
    return next((candidate for candidate in chain if not is_shipped(executable, candidate)), place)


def span_of(executable: Executable, place: int) -> Span | None:
    """Return the source location of `place`, or None if the file has none."""
    if not 0 <= place < len(executable.places):
        return None
    record = executable.places[place]
    if not 0 <= record.file < len(executable.files):
        return None
    path = executable.files[record.file].path
    return Span(path, record.line, record.column, record.end_line, record.end_column)


def source_of(executable: Executable, place: int) -> Span | None:
    """Return the source location to report for `place`: the innermost line of user code."""
    return span_of(executable, user_place(executable, place))


def is_shipped(executable: Executable, place: int) -> bool:
    """Return whether `place` is a line of nkic's own library."""
    file = executable.places[place].file
    has_file = 0 <= file < len(executable.files)
    return has_file and executable.files[file].path.startswith(SHIPPED)


def iterations(executable: Executable, record: InstructionRecord | LoopRecord) -> str:
    """Return the iteration of Python loops that made an item ("i=3 j=0"), or an empty string."""
    number = record.iterations if isinstance(record, InstructionRecord) else -1
    return executable.iterations[number] if 0 <= number < len(executable.iterations) else ""
