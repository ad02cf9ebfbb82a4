"""What runs no kernel: files described, listed, checked and compared, and timing figures of other
machines, from profiles of microkernels or times of kernels.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from nkic.artifact import disassemble
from nkic.artifact.container import PREFIX
from nkic.artifact.disassemble import diff
from nkic.artifact.format import LIMITS
from nkic.artifact.read import info, load, open_file
from nkic.artifact.records import Executable
from nkic.base import files
from nkic.base.diagnostics import UsageFailed, bad_value, make, suggestion
from nkic.base.files import STANDARD
from nkic.base.text import aligned, clean
from nkic.cli.common import Session, of_file
from nkic.cli.nki_run import reporting
from nkic.cli.nki_run.options import CalibrateLine, CompareLine, EqualLine, InspectLine
from nkic.machine import targets as describe_machine
from nkic.machine.targets import DEFAULT, SHORT_NAMES, TARGETS, Engine, load_machine, written
from nkic.report.compare import LIMIT, changes, read_profile

SCHEMA = 1
NOT_EQUAL = 1


def inspect(line: InspectLine) -> None:
    if line.disasm:
        _list_program(line)
    elif line.check:
        _check(line)
    else:
        _describe(line)


def _describe(line: InspectLine) -> None:
    """Describe the file, of any minor version of the format."""
    description = info(open_file(line.artifact, signed_by=line.require_signature))
    if line.json:
        _print_json(description.as_json())
        return
    sections = [("Section", "Bytes", "Share", "Hash"), *description.sections()]
    files.write(STANDARD, f"{aligned(description.rows())}\n{aligned(sections)}")


def _list_program(line: InspectLine) -> None:
    engine = find_engine(line.engine) if line.engine is not None else None
    lines = lines_of("--lines", line.lines) if line.lines is not None else None
    executable = load(open_file(line.artifact, signed_by=line.require_signature))
    if line.json:
        rows = disassemble.rows(executable, engine=engine, lines=lines)
        _print_json({"schema": SCHEMA, "kernel": executable.name, "items": rows})
        return
    files.write(STANDARD, disassemble.disassemble(executable, engine=engine, lines=lines))


def _check(line: InspectLine) -> None:
    """Carry out --check: name each layer of checks when the file has passed it."""
    passed: list[str] = []

    def note(layer: str) -> None:
        passed.append(layer)
        if not line.json:
            files.write(STANDARD, f"{layer}: ok\n")

    load(open_file(line.artifact, signed_by=line.require_signature), passed=note)
    if line.json:
        _print_json({"schema": SCHEMA, "verified": True, "layers": passed})


def lines_of(option: str, text: str) -> tuple[int, int]:
    """Return `10:20` as first and last line, `10` as one line. Raises `UsageFailed`."""
    match = re.fullmatch(r"(\d{1,9})(?::(\d{1,9}))?", text.strip())
    if match is None:
        raise bad_value(f"{option}: `{text}` is not of the form FIRST:LAST")
    return int(match[1]), int(match[2] or match[1])


def print_machine(line: CalibrateLine) -> None:
    """Carry out --print machine: every timing figure, with those of a machine file applied."""
    machine = load_machine(line.machine) if line.machine is not None else None
    if line.json:
        records = describe_machine.records(machine)
        _print_json({"schema": SCHEMA, "print": "machine", "machine": records})
        return
    files.write(STANDARD, aligned(describe_machine.rows(machine)))


def find_engine(name: str) -> Engine:
    """Return the engine called `name`: NKI's name, or the short one (PE). Raises `UsageFailed`."""
    engines = {engine.value: engine for engine in Engine}
    engines |= {short.lower(): engine for engine, short in SHORT_NAMES.items()}
    named = engines.get(name.lower())
    if named is None:
        raise bad_value(f"--engine: there is no engine `{name}`", suggestion(name, engines))
    return named


def _print_json(value: dict[str, Any]) -> None:
    files.write(STANDARD, json.dumps(value, indent=2, allow_nan=False) + "\n")


def compare_files(line: CompareLine, session: Session) -> int:
    first, second = line.before, line.after
    paths = [_markdown_path(request) for request in line.report]
    contents = [files.read_bytes(path, max(LIMIT, LIMITS.file_bytes)) for path in (first, second)]
    are_kernels = [data.startswith(PREFIX) for data in contents]
    if are_kernels == [True, True]:
        return _compare_kernels(line, contents)
    if any(are_kernels):
        text = "one of the files is a compiled kernel, the other is not"
        raise bad_value(text, "compare two files of the same kind")
    before, after = (read_profile(d, p) for d, p in zip(contents, (first, second), strict=True))
    comparison = changes(before, after)
    text = json.dumps(comparison.as_json(), indent=1) + "\n" if line.json else comparison.text
    files.write(STANDARD, text)
    for path in paths:
        files.write(path, comparison.markdown)
        session.artifact("md", path)
    return reporting.judge(line.fail_if, session, before, after)


def equal_files(line: EqualLine) -> int:
    from nkic.simulate.field.batch import batch_invariant  # NumPy
    from nkic.simulate.field.decide import equal

    programs = list[Executable]()
    for path in (line.before, line.after):
        with of_file(path):
            programs.append(load(open_file(path, signed_by=line.require_signature)))
    answer = (batch_invariant if line.batch else equal)(programs[0], programs[1])
    record = {"schema": 1, **answer.as_json()}
    files.write(STANDARD, json.dumps(record, indent=1) + "\n" if line.json else answer.text)
    return 0 if answer else NOT_EQUAL


def _compare_kernels(line: CompareLine, contents: list[bytes]) -> int:
    if line.fail_if is not None or line.report:
        option = "--fail-if" if line.fail_if is not None else "--report"
        text = f"`{option}` applies to runs, and these are compiled kernels"
        help = "compare the files of nki-run --json"
        raise UsageFailed([make("conflicting-options", text, help=help)])
    difference = diff(*contents)
    if line.json:
        record = {"schema": 1, "verdict": difference.verdict, "sections": difference.sections}
        files.write(STANDARD, json.dumps({**record, "lines": difference.lines}, indent=1) + "\n")
    else:
        text = "".join(f"{clean(each)}\n" for each in (difference.summary, *difference.lines))
        files.write(STANDARD, text)
    return 0


def _markdown_path(request: str) -> str:
    kind, _, path = request.partition("=")
    if kind != "md" or not path:
        text = f"--report {clean(request)}: of two files only md=FILE is possible"
        raise bad_value(text, "leave it out, or write md=FILE")
    return path


ROWS = ".csv"


def calibrate(line: CalibrateLine, session: Session) -> None:
    """Print the microkernels, or a machine file fitted to their profiles or to whole kernels."""
    from nkic.report.calibrate import figures_named, fitted, read_profiles, read_rows, source

    if line.folder is None:
        files.write(STANDARD, source())
        return
    target = TARGETS[line.target or DEFAULT.name]
    if Path(line.folder).suffix == ROWS:
        names = figures_named(line.figures)
        observations = read_rows(line.folder, names, target, lambda path: load(open_file(path)))
    elif line.figures is not None:
        text = f"{clean(line.folder)}: --figures is for a file of rows, {ROWS}"
        raise bad_value(text, "profiles of microkernels say themselves which figures they show")
    else:
        observations = read_profiles(line.folder)
    fit = fitted(observations, target)
    if fit.silent and line.figures is not None:
        text = f"{clean(line.folder)}: no row tells anything about {', '.join(fit.silent)}"
        raise bad_value(text, "leave them out of --figures, or add kernels whose time they make")
    if len(fit.figures) > len(observations):
        text = f"{len(fit.figures)} figures do not follow from {len(observations)} observations"
        raise bad_value(f"{clean(line.folder)}: {text}", "name fewer in --figures, or add rows")
    told = (
        f"{len(observations)} observations; the clock is off by {100 * fit.error:.1f} % (median), "
        f"with its own figures by {100 * fit.before:.1f} %, and of each observation with the "
        f"figures that the others give by {100 * fit.left_out:.1f} %"
    )
    files.write(STANDARD, f"# {told}\n{written(fit.figures, target.name)}")
    session.status(told)
