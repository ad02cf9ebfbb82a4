"""Look at a file without running it."""

from __future__ import annotations

import json
import re
from typing import Any

from nkic.base import files
from nkic.base.diagnostics import bad_value
from nkic.base.files import STANDARD
from nkic.base.suggest import suggestion
from nkic.base.text import aligned
from nkic.cli.nki_run.options import CalibrateLine, InspectLine
from nkic.machine.clock import describe as describe_machine
from nkic.machine.clock.machine_file import load_machine
from nkic.machine.engines import SHORT_NAMES, Engine
from nkic.neff.info import info
from nkic.neff.listing import disassemble
from nkic.neff.load import load
from nkic.neff.read import open_file

SCHEMA = 1


def inspect(line: InspectLine) -> None:
    """Describe, list or check the file."""
    if line.disasm:
        _list_program(line)
    elif line.check:
        _check(line)
    else:
        _describe(line)


def _describe(line: InspectLine) -> None:
    """Describe the file, of any minor version of the format."""
    description = info(open_file(line.artifact))
    if line.json:
        _print_json(description.as_json())
        return
    sections = [("Section", "Bytes", "Share", "Hash"), *description.sections()]
    files.write(STANDARD, f"{aligned(description.rows())}\n{aligned(sections)}")


def _list_program(line: InspectLine) -> None:
    """Carry out --disasm: list the program, restricted by --engine and --lines."""
    engine = find_engine(line.engine) if line.engine is not None else None
    lines = lines_of("--lines", line.lines) if line.lines is not None else None
    executable = load(open_file(line.artifact))
    if line.json:
        rows = disassemble.rows(executable, engine=engine, lines=lines)
        _print_json({"schema": SCHEMA, "kernel": executable.name, "items": rows})
        return
    text = disassemble.disassemble(executable, engine=engine, lines=lines)
    files.write(STANDARD, text)


def _check(line: InspectLine) -> None:
    """Carry out --check: name each layer of checks when the file has passed it."""
    passed: list[str] = []

    def note(layer: str) -> None:
        passed.append(layer)
        if not line.json:
            files.write(STANDARD, f"{layer}: ok\n")

    load(open_file(line.artifact), passed=note)
    if line.json:
        _print_json({"schema": SCHEMA, "verified": True, "layers": passed})


def lines_of(option: str, text: str) -> tuple[int, int]:
    """Return `10:20` as first and last line, `10` as one line. Raises `UsageFailed`."""
    match = re.fullmatch(r"(\d{1,9})(?::(\d{1,9}))?", text.strip())
    if match is None:
        raise bad_value(f"{option}: `{text}` is not of the form FIRST:LAST")
    return int(match[1]), int(match[2] or match[1])


def print_machine(line: CalibrateLine) -> None:
    """Carry out --print machine: print every timing figure, with those of a machine file
    applied.
    """
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
        message = f"--engine: there is no engine `{name}`"
        raise bad_value(message, suggestion(name, engines))
    return named


def _print_json(value: dict[str, Any]) -> None:
    files.write(STANDARD, json.dumps(value, indent=2, allow_nan=False) + "\n")
