"""Test the format's limits at n and n + 1, and files made to consume memory or time."""

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import msgpack
import pytest

from nkic.artifact.encode import write
from nkic.artifact.format import LIMITS, CodeRecord, Limits
from nkic.artifact.read import load, read
from nkic.artifact.records import Executable
from nkic.base.collector import without_collector
from nkic.machine.dtypes import UINT8
from tests.harness.executables import LOOP, ROWS, SCALED, hbm, long_sample, sample
from tests.harness.growth import work
from tests.harness.tamper import rebuilt, records, refused, with_records

DATA = write(sample(), embed_source=True)


def outcome(data: bytes, limits: Limits = LIMITS) -> tuple[str, str]:
    return refused(lambda: read(data, rows=ROWS, limits=limits))


# Small limits as published, large ones scaled down.


def with_loops(depth: int) -> Executable:
    loops = tuple(LOOP._replace(length=depth - i, counter=None) for i in range(depth))
    return replace(sample(), streams=(sample().streams[1]._replace(items=(*loops, SCALED)),))


def with_waits(count: int) -> Executable:
    item = SCALED._replace(waits=tuple((i, 1) for i in range(count)))
    base = replace(sample(), semaphores=256)
    return replace(base, streams=(base.streams[1]._replace(items=(item,)),))


def with_rank(rank: int) -> Executable:
    tensors = (*sample().tensors, hbm("deep", "internal", (1,) * rank))
    return replace(sample(), tensors=tensors)


def with_hbm(number: int) -> Executable:
    """Return HBM tensors of `number` bytes in total: the sample's, a large one, and the rest."""
    large = hbm("large", "internal", (1 << 15, (1 << 17) - 1))
    rest = number - sum(t.bytes for t in (*sample().tensors[:3], large))
    small = hbm("rest", "internal", (rest,), UINT8)
    return replace(sample(), tensors=(*sample().tensors, large, small))


def with_trips(trips: int) -> Executable:
    items = (LOOP._replace(length=1, start=-1, stop=trips - 1, counter=None), SCALED)
    return replace(sample(), streams=(sample().streams[1]._replace(items=items),))


@pytest.mark.parametrize(
    ("limit", "make", "number"),
    [
        ("loop_depth", with_loops, 8),
        ("waits", with_waits, 64),
        ("rank", with_rank, 8),
        ("hbm_bytes", with_hbm, 16 << 30),
        ("trips", with_trips, 2**31 - 1),
    ],
)
def test_published_limits(limit: str, make: Callable[[int], Executable], number: int) -> None:
    assert getattr(LIMITS, limit) == number
    load(write(make(number)), rows=ROWS)
    code, message = refused(lambda: load(write(make(number + 1)), rows=ROWS))
    assert code in ("NKI0806", "NKI0805")
    assert f"{number:,}" in message or f"{number}" in message


def test_strings_at_the_limit_and_above() -> None:
    assert LIMITS.string_bytes == 4096
    names = records(DATA, "debug")
    names[0][0] = "ü" * 2048
    assert read(with_records(DATA, "debug", names), rows=ROWS).tensors[0].name == "ü" * 2048
    names[0][0] += "n"
    code, message = outcome(with_records(DATA, "debug", names))
    assert code == "NKI0806"
    assert "a tensor's name: 4,097 bytes; the limit is 4,096" in message


def kinds(section: str, *wanted: int) -> int:
    return sum(record[0] in wanted for record in records(DATA, section))


VALUES = (CodeRecord.PATTERN, CodeRecord.REGISTER, CodeRecord.NUMBER, CodeRecord.MOVED)
SAMPLE_COUNTS = {
    "parameters": 1,
    "notes": 3,
    "files": 1,
    "places": 4,
    "tensors": 6,
    "values": kinds("code", *VALUES),
    "forms": kinds("code", CodeRecord.FORM),
    "streams": 3,
    "items": 10,
    "semaphores": 2,
    "registers": 2,
    "dimension": 128,
    "source_bytes": len(sample().files[0].text or ""),
    "record_bytes": 0,
}


@pytest.mark.parametrize("limit", SAMPLE_COUNTS)
def test_scaled_limits(limit: str) -> None:
    number = SAMPLE_COUNTS[limit] or max(
        len(msgpack.packb(r)) for name in ("code", "lines") for r in records(DATA, name)
    )
    assert read(DATA, rows=ROWS, limits=replace(LIMITS, **{limit: number})) == sample()
    code, _ = outcome(DATA, replace(LIMITS, **{limit: number - 1}))
    assert code in ("NKI0806", "NKI0805")


def test_the_writer_keeps_the_limits_too() -> None:
    for limit in ("items", "tensors", "files", "places", "notes", "values", "forms", "streams"):
        tight = replace(LIMITS, **{limit: SAMPLE_COUNTS[limit] - 1})
        code, message = refused(partial(write, sample(), limits=tight))
        assert code == "NKI0806"
        assert f"the limit is {SAMPLE_COUNTS[limit] - 1}" in message


# Attacks on memory and time.


def section_of(count: int, body: bytes) -> bytes:
    return bytes(msgpack.Packer().pack_array_header(count)) + body


BOMBS = {
    "many empty arrays": section_of(2_000_000, b"\x90" * 2_000_000),
    "wide and nested": section_of(1, b"\xdc\x00\x40" * 600_000),
    "deep": section_of(1, b"\x91" * 2_000_000),
    "deep but whole": section_of(1, b"\x91" * 900 + b"\x90"),
    "chains in a record": section_of(1, b"\xdc\x00\x80" + (b"\x91" * 500 + b"\x90") * 128),
    "maps": section_of(1, b"\x81" * 2_000_000),
    "a long array": section_of(1, b"\xdd\x7f\xff\xff\xff" + b"\xc0" * 1_000_000),
    "a long string": section_of(1, b"\xdb\x7f\xff\xff\xff" + b"a" * 1_000_000),
    "a long extension": section_of(1, b"\xc9\x7f\xff\xff\xff\x01" + b"a" * 1_000_000),
    "records that are not there": section_of(2**32 - 1, b"\x93\x05\x00"),
}
LONG = {  # well-formed: small in the file, and large in memory
    "registers": section_of(175_000, b"\x92\x01\x05" * 175_000),
    "slots": section_of(
        125_001, msgpack.packb([4, 0, 5, 0, 125_000]) + b"\x93\x07\x90\x90" * 125_000
    ),
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("section", ["layout", "code", "lines"])
def test_bombs_are_refused_fast(name: str, section: str) -> None:
    data = rebuilt(DATA, {section: BOMBS[name]})
    with without_collector():  # which would examine everything that other tests keep
        start = time.process_time()
        assert outcome(data)[0] in ("NKI0805", "NKI0806")
        assert time.process_time() - start < 1


MEASURE = """
import resource, sys
import msgpack
from nkic.base.collector import without_collector
from nkic.base.diagnostics import ArtifactFailed
from nkic.artifact.read import read
from tests.harness.executables import ROWS
def used():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
files = msgpack.unpackb(sys.stdin.buffer.read())
before, says = used(), []
for data in files:
    try:
        read(data, rows=ROWS)
    except ArtifactFailed as error:
        says.append(error.diagnostics[0].message)
print(used() - before)
print("\\n".join(says))
"""


def test_files_stay_small_in_memory() -> None:
    contents = (*BOMBS.values(), *LONG.values())
    files = [rebuilt(DATA, {"code": c, "lines": None, "debug": None}) for c in contents]
    command = [sys.executable, "-c", MEASURE]
    done = subprocess.run(command, input=msgpack.packb(files), capture_output=True, check=True)
    used, *says = done.stdout.decode().splitlines()
    assert len(says) == len(BOMBS)
    assert all("section `code`" in line for line in says)
    assert int(used) < 37  # MiB, in addition to those of the files themselves


def test_long_programs_take_work_in_proportion() -> None:
    """Test writing and loading: the bytecode instructions for each instruction of the program stay
    constant.
    """

    def there_and_back(executable: Executable) -> None:
        assert load(write(executable), rows=ROWS) == executable

    few, many = (partial(there_and_back, long_sample(count)) for count in (400, 1_600))
    few()  # objects that are interned at first use
    assert work(many) < 4.2 * work(few)


def test_long_programs_take_few_bytes() -> None:
    data = write(long_sample(20_000))
    assert len(data) < 30 * 20_000
