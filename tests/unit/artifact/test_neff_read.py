"""Sections with right hashes and wrong contents, which the reader of untrusted files must
reject.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import msgpack
import pytest

from nkic.artifact.encode import write
from nkic.artifact.format import LIMITS, CodeRecord, Limits
from nkic.artifact.read import load, read
from nkic.artifact.records import Executable, PlaceRecord
from nkic.base.collector import without_collector
from nkic.machine.dtypes import UINT8
from tests.harness.executables import LOOP, ROWS, SCALED, hbm, instruction_of, long_sample, sample
from tests.harness.growth import work
from tests.harness.tamper import contents, rebuilt, records, refused, with_records

DATA = write(sample(), embed_source=True)


def outcome(data: bytes, limits: Limits = LIMITS) -> tuple[str, str]:
    return refused(lambda: read(data, rows=ROWS, limits=limits))


def changed(section: str, index: int, field: int | None, value: Any) -> bytes:
    """Return DATA with one field of a record replaced, or the whole record if `field` is None."""
    found = records(DATA, section)
    if field is None:
        found[index] = value
    else:
        found[index][field] = value
    return with_records(DATA, section, found)


def first(kind: CodeRecord) -> int:
    """Return the index of the first record of `kind` in DATA's code."""
    return next(i for i, record in enumerate(records(DATA, "code")) if record[0] == kind)


PATTERN, REGISTER, NUMBER, FORM = (first(CodeRecord(kind)) for kind in range(4))
STREAM, INSTRUCTION, LOOP_AT, SLOT = (first(CodeRecord(kind)) for kind in range(4, 8))
MOVED = first(CodeRecord.MOVED)
EXTENSION = msgpack.ExtType(5, b"")
EXACT = next(  # the form of SCALED, with a value of every kind of attribute
    i for i, r in enumerate(records(DATA, "code")) if r[0] == CodeRecord.FORM and "multiply" in r[2]
)


@pytest.mark.parametrize(
    ("section", "index", "field", "value", "says"),
    [
        # Integers: not bool, not float, not out of range.
        ("code", INSTRUCTION, 1, True, "no form True"),
        ("code", INSTRUCTION, 1, 99, "no form 99"),
        ("code", INSTRUCTION, 1, -1, "no form -1"),
        ("code", INSTRUCTION, 2, [1.0, 1], "1.0 is not an integer"),
        ("code", INSTRUCTION, 2, [True, 1], "True is not an integer"),
        ("code", INSTRUCTION, 2, [1, 99], "reference: 99"),
        ("code", INSTRUCTION, 2, [-1, 1], "reference: -1 is not"),
        ("code", INSTRUCTION + 1, 2, [9, 9], "reference: 12 is not an integer from 0 to 11"),
        ("code", INSTRUCTION + 1, 2, [-2, 0], "reference: -1 is not"),
        ("code", INSTRUCTION + 1, 2, [False, 0], "False is not an integer"),
        ("code", INSTRUCTION + 1, 2, [2**31, 0], "2147483648 is not an integer"),
        ("code", INSTRUCTION, 2, None, "is nil, not an array"),
        ("code", INSTRUCTION, 2, EXTENSION, "is an extension type, not an array"),
        ("code", INSTRUCTION, 3, [0], "waits are not pairs"),
        ("code", INSTRUCTION, 3, [0, False], "False is not an integer"),
        ("code", INSTRUCTION, 4, [b"x"], "binary data is not an integer"),
        ("code", PATTERN, 1, True, "tensor is True"),
        ("code", PATTERN, 2, 99, "no dtype 99"),
        ("code", PATTERN, 5, -1, "offset is -1"),
        ("code", PATTERN, 6, [1, 2, 3], "not pairs of step and number"),
        ("code", PATTERN, 6, [1, 2.0], "2.0 is not an integer"),
        ("code", MOVED, 1, 0, "a distance to an earlier pattern is 0"),
        ("code", MOVED, 1, 6, "a distance to an earlier pattern is 6"),
        (
            "code",
            MOVED,
            1,
            5,
            "the earlier value is not an access pattern",
        ),  # except the reference to no operand
        ("code", MOVED, 1, True, "a distance to an earlier pattern is True"),
        ("code", MOVED, 2, -1, "tensor is -1"),
        ("code", MOVED, 2, 2**31, "step to another tensor is 2147483648"),
        ("code", MOVED, 2, 1.0, "step to another tensor is 1.0"),
        ("code", MOVED, 3, -1, "offset is -1"),
        ("code", MOVED, 3, 2**63, "step of an offset is 9223372036854775808"),
        ("code", MOVED, 3, False, "step of an offset is False"),
        ("code", MOVED, None, [8, 1, 0], "3 fields after its kind, not 2"),
        ("code", NUMBER, None, [8, 1, 0, 0, 0], "3 fields after its kind, not 4"),
        ("code", FORM + 1, None, [8, 1, 0, 0], "the earlier value is not an access pattern"),
        ("code", REGISTER, 1, -1, "number is -1"),
        ("code", NUMBER, 1, "two", '"two" is not a number'),
        ("code", NUMBER, 1, True, "True is not a number"),
        ("code", NUMBER, 1, 2**64 - 1, "18446744073709551615 is not a number"),
        ("code", STREAM, 2, 77, "no engine 77"),
        ("code", STREAM, 1, -1, "core is -1"),
        ("code", LOOP_AT, 1, -1, "length is -1"),
        ("code", LOOP_AT, 2, [0], "register is an array"),
        ("code", LOOP_AT, 3, 0.0, "bound is 0.0"),
        ("code", LOOP_AT, 3, [-1], "register is -1"),
        ("code", LOOP_AT, 5, 2**31, "step is 2147483648"),
        # Attributes follow their kinds; 0 is not False, and a choice is one of those listed.
        ("code", EXACT, 2, ["multiply", 0, 1, [], None], "reverse cannot be 0"),
        ("code", EXACT, 2, ["times", False, 1, [], None], 'op cannot be "times"'),
        ("code", EXACT, 2, [None, False, 1, [], None], "op cannot be nil"),
        ("code", EXACT, 2, ["multiply", False, "1", [], None], 'bias cannot be "1"'),
        ("code", EXACT, 2, ["multiply", False, 1, [[1]], None], "steps cannot be an array"),
        ("code", EXACT, 2, ["multiply", False, 1, [], "slow"], 'mode cannot be "slow"'),
        ("code", EXACT, 2, ["multiply", False, 1, []], "4 elements"),
        # Records: known kinds, the right number of fields, in order.
        ("code", INSTRUCTION, None, [5, 0, [], []], "4 fields after its kind, not 3"),
        ("code", INSTRUCTION, None, [9], "a record has the unknown kind 9"),
        ("code", INSTRUCTION, None, [], "kind nil"),
        ("code", INSTRUCTION, None, 5, "kind nil"),
        ("code", INSTRUCTION, None, [True, 0, [], [], []], "kind True"),
        ("code", INSTRUCTION, None, EXTENSION, "kind nil"),
        ("code", INSTRUCTION, None, {}, "kind nil"),
        ("code", INSTRUCTION, None, {1: 1}, "not valid msgpack"),
        ("code", INSTRUCTION, None, msgpack.Timestamp(1), "not valid msgpack"),
        ("code", SLOT, None, [2, 1.5], "operands come before forms"),
        ("code", STREAM, None, [6, 1, None, 0, 4, 1, None], "belongs to no stream"),
        ("code", STREAM, 4, 2, "belongs to no stream"),
        ("code", STREAM, 4, 9, "items of the stream are missing"),
        # The other sections.
        ("layout", 0, 1, "a\nb", "control characters"),
        ("layout", 0, 3, 0, "cores is 0"),
        ("layout", 0, None, [1, 1, [4], 2, 0, 0, 0, 0], "kind 1 is not allowed here"),
        ("layout", 1, 1, 15, "no dtype 15"),
        ("layout", 1, 2, [128, 0], "0 is not an integer from 1"),
        ("layout", 1, 2, 128, "is 128, not an array"),
        ("layout", 1, 3, 4, "buffer is 4"),
        ("layout", 1, 4, -2, "core is -2"),
        ("layout", 1, 5, 4, "role is 4"),
        ("layout", 1, None, [0, "b", "trn2", 1, 0, 0], "kind 0 is not allowed here"),
        ("layout", 5, 1, 0, "a distance to an earlier tensor is 0"),
        ("layout", 5, 1, 5, "a distance to an earlier tensor is 5"),
        ("layout", 5, 2, -1, "tensor's byte is -1"),
        ("layout", 5, 2, 2**63, "step of bytes is 9223372036854775808"),
        ("layout", 5, 2, True, "step of bytes is True"),
        ("layout", 5, None, [4, 1], "2 fields after its kind, not 1"),
        ("layout", 0, None, [4, 1, 0], "kind 4 is not allowed here"),
        ("layout", 8, None, [4, 1, 0], "kind 4 is not allowed here"),
        ("layout", 7, 2, 6, "parameter's tensor is 6"),
        ("layout", 7, 1, b"a", "name is binary data"),
        ("const", 0, None, 6, "constant's tensor is 6"),
        ("const", 0, None, True, "constant's tensor is True"),
        ("const", 1, None, "text", "not binary data"),
        ("const", 1, None, [b"x"], "not valid msgpack"),
        ("meta", 0, 0, 2, "kind 2"),
        ("meta", 0, 1, 7, "note's key is 7"),
        ("meta", 2, 1, "producer", 'key "producer" appears twice'),
        ("src", 0, None, "/etc/passwd", "must not leave its folder"),
        ("src", 0, None, "a/../../b", "must not leave its folder"),
        ("src", 0, None, "..\\b", "must not leave its folder"),
        ("src", 0, None, "c:/b", "must not leave its folder"),
        ("src", 0, None, "", "must not leave its folder"),
        ("src", 1, None, bytes(31), "hash is not 32 bytes"),
        ("src", 2, None, "changed", "does not match its hash"),
        ("src", 2, None, b"bytes", "not a string"),
        ("lines", 0, 1, 1, "place's file is 1"),
        ("lines", 0, 6, 0, "place's caller is 0"),
        ("lines", 4, 1, 4, "4 is not an integer from -1 to 3"),
        ("lines", 4, None, [0, 0, 1, 1, 1, 1, -1], "it describes 0 instructions; there are 10"),
        ("lines", 3, None, [1, 0], "3 is not an integer from -1 to 2"),
        ("debug", 0, 1, 4, "tensor's place is 4"),
        ("debug", 0, None, ["a"], "1 elements"),
    ],
)
def test_one_wrong_value(
    section: str, index: int, field: int | None, value: Any, says: str
) -> None:
    number, message = outcome(changed(section, index, field, value))
    assert number == "NKI0805"
    assert says in message
    assert f"section `{section}`, byte " in message


def test_unknown_opcodes_are_named() -> None:
    number, message = outcome(changed("code", FORM, 1, 9999))
    assert number == "NKI0809"
    assert "no instruction has opcode 9999" in message


def test_the_byte_is_that_of_the_record() -> None:
    data = changed("code", SLOT, None, [9])
    _, message = outcome(data)
    offset = int(message.partition("byte ")[2].rstrip(")").replace(",", ""))
    assert data[offset : offset + 2] == b"\x91\x09"


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (lambda r: r.append(r[-1]), "belongs to no stream"),
        (lambda r: r.pop(), "items of the stream are missing"),
    ],
)
def test_records_added_and_taken_away(edit: Callable[[list[Any]], Any], says: str) -> None:
    found = records(DATA, "code")
    edit(found)
    assert says in outcome(with_records(DATA, "code", found))[1]


def test_sections_about_each_other_have_the_same_counts() -> None:
    names = records(DATA, "debug")[:-1]
    assert "it describes 5 tensors; there are 6" in outcome(with_records(DATA, "debug", names))[1]
    groups = records(DATA, "src")[:-1]
    assert "do not make source files of 3" in outcome(with_records(DATA, "src", groups))[1]


def test_constants_come_once_and_in_order() -> None:
    pair = records(DATA, "const")
    assert "tensor is 2, not an integer from 3" in outcome(with_records(DATA, "const", pair * 2))[1]


def encoded(section: str, old: bytes, new: bytes) -> bytes:
    content = contents(DATA)[section]
    assert content.count(old) >= 1
    return rebuilt(DATA, {section: content.replace(old, new, 1)})


@pytest.mark.parametrize(
    ("section", "old", "new", "says"),
    [
        ("code", msgpack.packb(-7), b"\xd0\xf9", "not canonical"),
        ("code", msgpack.packb(2.5), b"\xca\x40\x20\x00\x00", "not canonical"),  # float32
        ("code", msgpack.packb("add"), b"\xd9\x03add", "not canonical"),
        ("code", b"\x92\x01\x00", b"\xdc\x00\x02\x01\x00", "not canonical"),
        ("code", b"\x92\x01\x00", b"\x92\x01\xd3" + bytes(8), "not canonical"),
        ("code", b"\x92\x01\x00", b"\x92\x01\xc1", "not valid msgpack"),
        ("const", b"\xc4\x10", b"\xc5\x00\x10", "not canonical"),
        ("const", b"\x92\x02", b"\xdc\x00\x02\x02", "canonical head of an array"),
        ("const", b"\x92\x02", b"\xdd\x00\x00\x00\x02\x02", "canonical head of an array"),
        ("layout", b"\x99", b"\x9a", "cut off"),
        ("const", b"\x92\x02", b"\x91\x02", "do not make constants"),
        ("const", b"\x92\x02", b"\x90\x02", "2 bytes"),
        ("meta", msgpack.packb("serial"), b"\xa6seri\xff\xfe", "not valid msgpack"),  # UTF-8
    ],
)
def test_there_is_one_way_to_write_each_value(
    section: str, old: bytes, new: bytes, says: str
) -> None:
    number, message = outcome(encoded(section, old, new))
    assert number == "NKI0805"
    assert says in message or "bytes follow the last record" in message


@pytest.mark.parametrize("content", [b"", b"\xc0", b"\xdc", b"\xdd\x00\x00", b"\x80", b"\xa0"])
@pytest.mark.parametrize("section", ["layout", "const", "code", "meta", "src", "lines", "debug"])
def test_sections_that_are_no_arrays(section: str, content: bytes) -> None:
    number, message = outcome(rebuilt(DATA, {section: content}))
    assert number == "NKI0805"
    assert "canonical head of an array" in message


def test_the_one_nan_is_kept_and_others_refused() -> None:
    nan = float("nan")
    form = ("multiply", False, nan, (), None)
    item = SCALED._replace(attributes=form, operands=(*SCALED.operands[:2], -nan))
    streams = (sample().streams[1]._replace(items=(item,)),)
    data = write(replace(sample(), streams=streams))
    (item,) = map(instruction_of, read(data, rows=ROWS).streams[0].items)
    assert item.attributes[2] != item.attributes[2]
    content = contents(data)["code"]
    canonical = msgpack.packb(nan)
    assert content.count(canonical) == 2
    other = rebuilt(data, {"code": content.replace(canonical, b"\xcb\xff\xf8" + bytes(6), 1)})
    assert "is not a number" in outcome(other)[1]


def test_the_optional_sections_may_be_absent() -> None:
    bare = rebuilt(DATA, {"meta": None, "src": None, "lines": None, "debug": None})
    found = read(bare, rows=ROWS)
    assert [t.name for t in found.tensors] == ["t0", "t1", "t2", "t3", "t4", "t5"]
    assert {item.place for stream in found.streams for item in stream.items} == {-1}
    assert (found.files, found.places, found.meta, found.arguments) == ((), (), {}, {})
    assert [instruction_of(s.items[0]).operands for s in found.streams] == [
        instruction_of(s.items[0]).operands for s in sample().streams
    ]


def test_callers_come_before_their_callees() -> None:
    places = (PlaceRecord(0, 1, 1, 1, 1, 1), PlaceRecord(0, 1, 1, 1, 1, -1))
    with pytest.raises(ValueError, match="place of its caller"):
        write(replace(sample(), places=places))


def test_the_writer_refuses_attributes_of_the_wrong_type() -> None:
    item = SCALED._replace(attributes=("multiply", 0, 1, (), None))
    streams = (sample().streams[1]._replace(items=(item,)),)
    with pytest.raises(ValueError, match="reverse cannot be 0"):
        write(replace(sample(), streams=streams))


def test_text_is_written_so_that_it_can_be_read() -> None:
    names = {"a\tb": r"a\tb", "\x1b[2J": r"\x1b[2J", "ü" * 3000: "ü" * 2048}
    for name, expected in names.items():
        tensors = (*sample().tensors[:-1], sample().tensors[-1]._replace(name=name))
        made = replace(sample(), name=name, tensors=tensors, meta={name: name})
        found = read(write(made), rows=ROWS)
        assert found.tensors[-1].name == found.name == expected
        assert found.meta == {expected: expected}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a/b.py", "a/b.py"),
        ("./a//b.py", "a/b.py"),
        ("/home/x/b.py", "home/x/b.py"),
        ("../a/../b.py", "_/a/_/b.py"),
        ("c:\\x\\b.py", "c/x/b.py"),
        ("<stdin>", "<stdin>"),
        ("", "_"),
    ],
)
def test_paths_are_written_without_a_way_out(path: str, expected: str) -> None:
    files = (sample().files[0]._replace(path=path),)
    assert read(write(replace(sample(), files=files)), rows=ROWS).files[0].path == expected


def test_ones_that_are_equal_but_not_the_same_stay_apart() -> None:
    items = tuple(
        SCALED._replace(operands=(*SCALED.operands[:2], factor), attributes=attributes, waits=())
        for factor, attributes in [
            (1, ("add", True, 1, (), None)),
            (1.0, ("add", True, 1.0, (), None)),
            (0.0, ("add", False, 0, (), None)),
            (-0.0, ("add", False, -0.0, (), None)),
        ]
    )
    streams = (sample().streams[1]._replace(items=items),)
    (stream,) = read(write(replace(sample(), streams=streams)), rows=ROWS).streams
    shown = [repr((i.operands[2], i.attributes[2])) for i in map(instruction_of, stream.items)]
    assert shown == ["(1, 1)", "(1.0, 1.0)", "(0.0, 0)", "(-0.0, -0.0)"]


# ------------------------------------------------------------------------------------------------
# Test the format's limits at n and n + 1, and files made to consume memory or time.

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
