"""Reading and verification of a file, which the runner does with every file."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nkic.machine.operands import Row
from nkic.neff import container, verify
from nkic.neff.container import Container
from nkic.neff.layout import CodeRecord, Layout
from nkic.neff.limits import LIMITS, Limits
from nkic.neff.read import read_container
from nkic.neff.records import Executable
from nkic.neff.sections.streaming import Records
from nkic.neff.verify.unsound import Unsound

# Records are counted from the first one of this kind.
_FIRST_KINDS = {"layout": Layout.TENSOR, "code": CodeRecord.STREAM}


def load(
    data: bytes,
    *,
    limits: Limits = LIMITS,
    rows: Mapping[int, Row] | None = None,
    passed: Callable[[str], None] = lambda layer: None,
) -> Executable:
    """`read`, then `verify`. Raises `ArtifactFailed` with the byte offset of the error.

    `rows` is the instruction table by opcode, by default the machine's. `passed` is called after
    each layer of checks.
    """
    file = container.unpack(data, limits)
    passed("container and hashes")
    executable = read_container(file, limits, rows)
    passed("schema")
    try:
        verify.check(executable, limits)
    except Unsound as error:
        verify.refuse_unsound(error, executable, _offset(file, error, limits))
    passed("program")
    return executable


def _offset(file: Container, error: Unsound, limits: Limits) -> int | None:
    """Return the offset in the file of the record with the error, if known."""
    section = file.sections[error.section]
    if error.record < 0:
        return section.offset
    records = Records(section, count=1 << 32, width=1 << 10, largest=limits.record_bytes)
    first, seen = _FIRST_KINDS[error.section], -1
    for record in records:
        seen += seen >= 0 or record[0] == first
        if seen == error.record:
            return section.offset + records.start
    return None
