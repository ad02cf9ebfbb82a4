"""Source places as people want them: their own lines first, those of nkic's own library after."""

from __future__ import annotations

from nkic.base.source import SHIPPED
from nkic.neff.records import Executable, InstructionRecord, LoopRecord


def frames(executable: Executable, place: int) -> list[int]:
    """`place` and those of the calls that led there, innermost first; none that the file lacks."""
    found: list[int] = []
    places = executable.places
    while 0 <= place < len(places) and place not in found:
        found.append(place)
        place = places[place].caller
    return found


def users(executable: Executable, place: int) -> int:
    """The innermost place that the user wrote; `place` itself if there is none."""
    found = frames(executable, place)
    return next((one for one in found if not is_shipped(executable, one)), place)


def is_shipped(executable: Executable, place: int) -> bool:
    """It is a line of nkic's own library."""
    file = executable.places[place].file
    known = 0 <= file < len(executable.files)
    return known and executable.files[file].path.startswith(SHIPPED)


def iterations(executable: Executable, record: InstructionRecord | LoopRecord) -> str:
    """In which turn of Python's loops an item was made, as "i=3 j=0"; nothing if in none."""
    number = record.iterations if isinstance(record, InstructionRecord) else -1
    return executable.iterations[number] if 0 <= number < len(executable.iterations) else ""
