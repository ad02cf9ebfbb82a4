"""--dump and --changes: a kernel's tensors after given lines."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nkic.arrays.npz import write_npz
from nkic.base import files
from nkic.base.diagnostics import UsageFailed, bad_value
from nkic.base.files import STANDARD
from nkic.base.text import clean, plural
from nkic.cli.common import Session
from nkic.cli.nki_run.inspecting import lines_of
from nkic.cli.nki_run.writing import presented
from nkic.simulate.comparison.stats import Stats, stats_of
from nkic.simulate.debug.dumps import Dump, Dumps, Tap
from nkic.simulate.debug.watches import Changed
from nkic.simulate.debug.writes import Write

INDEX = "index.json"
EVERYTHING = "all"
_WORDS = re.compile(r"([^@=]+)(?:@([\d:]+))?=(.+)")


class Wanted(NamedTuple):
    """What --dump requests: writes with the files for them, and the folder for all writes, or for
    those by `lines`.
    """

    files: list[tuple[Tap, str]]
    folder: str | None = None
    lines: tuple[int, int] | None = None

    @classmethod
    def of(cls, words: Sequence[str]) -> Wanted:
        """Parse the values of --dump. Raises `UsageFailed`."""
        wanted = cls([])
        for text in words:
            match = _WORDS.fullmatch(text)
            if match is None or match[3] == STANDARD:
                raise _malformed(text)
            name, lines, path = match.groups()
            if name == EVERYTHING and wanted.folder is None:
                by = lines_of("--dump", lines) if lines is not None else None
                wanted = wanted._replace(folder=path, lines=by)
            elif name != EVERYTHING and lines is not None and lines.isdigit() and len(lines) < 10:
                wanted.files.append((Tap(name, int(lines)), path))
            else:
                raise _malformed(text)
        return wanted

    @property
    def taps(self) -> list[Tap]:
        """The writes to capture for files."""
        return [tap for tap, _ in self.files]


def _malformed(text: str) -> UsageFailed:
    message = f"--dump {clean(text)}: expected NAME@LINE=FILE.npz, or once {EVERYTHING}=DIR"
    return bad_value(message, "for example --dump acc@12=acc.npz, or --dump all@10:20=folder")


def write(words: Sequence[str], session: Session, dumps: Dumps, rank: int) -> None:
    """Write all dump files of a rank."""
    wanted = Wanted.of(words)
    for tap, path in wanted.files:
        _npz(session, path, _stacked(tap.name, dumps.of(rank, tap)))
    if wanted.folder is not None:
        _folder(session, wanted.folder, dumps.chosen(rank))


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
    try:
        directory.mkdir(exist_ok=True)
    except OSError as error:
        raise UsageFailed([files.cannot_write(folder, error)]) from error
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


def change_fields(changed: Changed) -> dict[str, Any]:
    """Return the fields of a change, for programs."""
    facts = {"watched": changed.part.text, "rank": changed.write.rank, **_facts(changed.write)}
    return {**facts, "changed": changed.changes, **_figures(changed.stats)}
