"""Test the container: errors that are found before anything inside a file is decoded."""

import os
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgpack
import pytest

from nkic.artifact import container
from nkic.artifact.encode import write
from nkic.artifact.format import Limits
from nkic.artifact.read import open_file, read
from nkic.artifact.records import StreamRecord
from nkic.base.diagnostics import ArtifactFailed
from nkic.machine.targets import TARGETS
from tests.harness.executables import ROWS, SCALED, sample
from tests.harness.tamper import rebuilt, refused, with_header

DATA = write(sample())


def outcome(data: bytes, limits: Limits | None = None) -> tuple[str, str]:
    return refused(lambda: read(data, rows=ROWS, limits=limits or Limits()))


def test_the_prefix_is_the_published_one_and_the_file_is_msgpack() -> None:
    assert DATA[:11] == b"\x93\xc4\x08NKIX\r\n\x1a\n"
    magic, head, sections = msgpack.unpackb(DATA)
    assert magic == b"NKIX\r\n\x1a\n"
    fields = msgpack.unpackb(head)
    assert fields["fmt"] == [2, 0]
    assert fields["target"] == "trn2"
    assert [len(section) for section in sections] == [row[3] for row in fields["sections"]]


def test_it_reads_back() -> None:
    without_text = replace(sample(), files=(sample().files[0]._replace(text=None),))
    assert read(DATA, rows=ROWS) == without_text
    assert read(write(sample(), embed_source=True), rows=ROWS) == sample()


def test_the_same_executable_gives_the_same_bytes() -> None:
    assert write(sample()) == write(read(DATA, rows=ROWS))


def test_bytes_depend_on_no_hash_seed() -> None:
    program = (
        "import sys; from tests.harness.executables import sample;"
        "from nkic.artifact.encode import write; sys.stdout.buffer.write(write(sample()))"
    )
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", program]
        made = subprocess.run(command, env=environment, capture_output=True, check=True)
        assert made.stdout == DATA


@pytest.mark.parametrize("bits", [0x01, 0x80, 0xFF])
def test_every_flipped_byte_is_refused(bits: int) -> None:
    for index in range(len(DATA)):
        changed = bytearray(DATA)
        changed[index] ^= bits
        with pytest.raises(ArtifactFailed):
            read(bytes(changed), rows=ROWS)


def test_every_truncation_is_refused() -> None:
    for size in range(len(DATA)):
        with pytest.raises(ArtifactFailed):
            read(DATA[:size], rows=ROWS)


def test_every_appended_byte_is_refused() -> None:
    for byte in range(256):
        assert outcome(DATA + bytes([byte]))[0] == "NKI0804"


@pytest.mark.parametrize(
    ("data", "code", "says"),
    [
        (b"", "NKI0804", "ends after 0 of its first 11 bytes"),
        (DATA[:5], "NKI0804", "ends after 5"),
        (b"import nki\n" * 200, "NKI0801", "not a file that nkic made"),
        (b"PK\x03\x04", "NKI0801", "byte 0"),
        (DATA.replace(b"\r\n", b"\n"), "NKI0804", "transfer as text"),
        (DATA.replace(b"\n", b"\r\n"), "NKI0804", "transfer as text"),
        (DATA[:-1], "NKI0804", "section `debug`"),
    ],
)
def test_what_is_not_a_file_of_ours(data: bytes, code: str, says: str) -> None:
    number, message = outcome(data)
    assert number == code
    assert says in message


def aws_neff(name: bytes = b"model") -> bytes:
    """Return a vendor's file: its 1024-byte header, then an archive."""
    head = struct.pack("<5Q128sI32s16s256s", 2, 1024, 4096, 2, 0, b"2.1", 1, b"", b"", name)
    return head.ljust(1024, b"\0") + b"\x1f\x8b" + bytes(4094)


def test_a_vendor_neff_is_named() -> None:
    number, message = outcome(aws_neff(b"bert\x1b[2J"))
    assert number == "NKI0802"
    assert "AWS NEFF, version 2.0" in message
    assert r'network "bert\x1b[2J"' in message


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"fmt": (3, 0)}, "format version 3.0"),
        ({"fmt": (2, 7), "min_reader": (2, 7)}, "reader of version 2.7"),
        ({"fmt": (2, 7), "req": 4}, "features 0x4"),
    ],
)
def test_newer_files_that_need_a_newer_reader(fields: dict[str, object], says: str) -> None:
    number, message = outcome(rebuilt(DATA, {}, **fields))
    assert number == "NKI0803"
    assert says in message


def test_newer_minor_versions_are_read_if_they_ask_for_nothing_new() -> None:
    newer = rebuilt(DATA, {"costs": b"\x90"}, fmt=(2, 7), opt=9)
    assert read(newer, rows=ROWS) == read(DATA, rows=ROWS)

    def with_key(fields: dict[str, object]) -> dict[str, object]:
        digest = fields.pop("digest")
        return {**fields, "license": {"any": [1]}, "digest": digest}

    assert read(with_header(newer, with_key), rows=ROWS) == read(DATA, rows=ROWS)
    assert outcome(with_header(DATA, with_key))[0] == "NKI0805"  # not in nkic's own version


def test_unknown_sections_are_skipped_unless_required() -> None:
    optional = rebuilt(DATA, {"extra": b"anything"})
    assert read(optional, rows=ROWS) == read(DATA, rows=ROWS)
    entries = container.unpack(optional).header.sections
    required = (*entries[:-1], entries[-1]._replace(flags=container.REQUIRED))
    number, message = outcome(rebuilt(optional, {}, sections=required))
    assert number == "NKI0803"
    assert "section `extra`" in message


@pytest.mark.parametrize("name", ["layout", "const", "code"])
def test_semantic_sections_cannot_be_missing(name: str) -> None:
    assert outcome(rebuilt(DATA, {name: None})) == ("NKI0805", f"the file has no section `{name}`")


def test_a_program_is_identified_by_what_it_does() -> None:
    original = container.unpack(DATA).header.id
    moved = replace(sample(), files=(), places=(), meta={}, arguments={})
    moved = replace(moved, streams=tuple(_unplaced(s) for s in moved.streams))
    moved = replace(moved, tensors=tuple(t._replace(place=-1, name="x") for t in moved.tensors))
    assert container.unpack(write(moved)).header.id == original
    streams = (sample().streams[0], sample().streams[1]._replace(items=(SCALED,)))
    assert container.unpack(write(replace(sample(), streams=streams))).header.id != original


def _unplaced(stream: StreamRecord) -> StreamRecord:
    return stream._replace(items=tuple(item._replace(place=-1) for item in stream.items))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"id": bytes(32)}, "the id in the header is not the program's id"),
        ({"target": "trn1"}, "target or signature differs"),
        ({"entries": (container.Entry("add", 1, (), ()),)}, "target or signature differs"),
    ],
)
def test_the_header_must_agree_with_the_sections(change: dict[str, object], says: str) -> None:
    assert says in outcome(rebuilt(DATA, {}, **change))[1]


def double_key(fields: dict[str, object]) -> bytes:
    encoded: bytes = msgpack.packb(fields)
    assert encoded[0] == 0x80 + len(fields)
    twice: bytes = msgpack.packb("fmt") + msgpack.packb([1, 0])
    return bytes([encoded[0] + 1]) + twice + encoded[1:]


def long_integer(fields: dict[str, object]) -> bytes:
    encoded: bytes = msgpack.packb(fields)
    return encoded.replace(b"\xa3req\x00", b"\xa3req\xcc\x00")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (double_key, "has a key twice"),
        (long_integer, "not canonical"),
        (lambda f: msgpack.packb(list(f.items())), "not a map"),
        (lambda f: f.update(req=True), "req is True"),
        (lambda f: f.update(req=1.0), "req is 1.0"),
        (lambda f: f.update(req=-1), "req is -1"),
        (lambda f: f.update(producer="a\x1b[31m"), "control characters"),
        (lambda f: f.update(producer=msgpack.ExtType(5, b"")), "an extension type"),
        (lambda f: f.update(fmt=msgpack.Timestamp(1)), "not valid msgpack"),
        (lambda f: f.update(fmt=[1]), "fmt: 1 elements"),
        (lambda f: f.update(id=b"short"), "id is not 32 bytes"),
        (lambda f: f.update(entries=[]), "entries: 0 elements"),
        (lambda f: f["sections"][0].pop() and None, "a section's entry: 4 elements"),
        (lambda f: f["sections"][1].__setitem__(0, "layout"), "the same name"),
        (lambda f: f.pop("opt"), "keys are not fmt, "),
        (lambda f: {"target": f.pop("target"), **f}, "in this order"),
    ],
)
def test_headers_with_right_digests_and_wrong_contents(
    change: Callable[[dict[str, Any]], Any], says: str
) -> None:
    number, message = outcome(with_header(DATA, change))
    assert number == "NKI0805"
    assert says in message
    assert "section `header`, byte 14" in message


def test_section_lengths_must_be_the_announced_ones() -> None:
    entries = container.unpack(DATA).header.sections
    wrong = (entries[0]._replace(length=entries[0].length + 1), *entries[1:])
    number, message = outcome(rebuilt(DATA, {}, sections=wrong))
    assert number == "NKI0804"
    assert "the header declares" in message
    assert outcome(rebuilt(DATA, {}, sections=entries[1:]))[0] == "NKI0804"


def test_long_forms_of_lengths_are_refused() -> None:
    content = msgpack.packb(b"".join(DATA.partition(b"NKIX")[:0]))  # an empty bin
    assert content == b"\xc4\x00"
    size = int.from_bytes(DATA[12:14], "big")
    long_head = DATA[:11] + b"\xc6" + size.to_bytes(4, "big") + DATA[14:]
    assert outcome(long_head) == (
        "NKI0805",
        "its length does not have the shortest encoding (section `header`, byte 11)",
    )


@pytest.mark.parametrize(
    ("limit", "size"),
    [("file_bytes", len(DATA)), ("header_bytes", int.from_bytes(DATA[12:14], "big"))],
)
def test_sizes_at_the_limit_and_above(limit: str, size: int) -> None:
    assert read(DATA, rows=ROWS, limits=Limits(**{limit: size})) == read(DATA, rows=ROWS)
    number, message = outcome(DATA, Limits(**{limit: size - 1}))
    assert number == "NKI0806"
    assert f"the limit is {size - 1:,}" in message


def test_the_number_of_sections_at_the_limit_and_above() -> None:
    extra: dict[str, bytes | None] = {f"x{i}": b"" for i in range(64 - 7)}
    assert read(rebuilt(DATA, extra), rows=ROWS) == read(DATA, rows=ROWS)
    number, message = outcome(rebuilt(DATA, {**extra, "y": b""}))
    assert number == "NKI0806"
    assert "65 elements; at most 64" in message


def test_announced_sizes_are_not_believed() -> None:
    huge = container.PREFIX + b"\xc6\xff\xff\xff\xff" + bytes(100)
    assert outcome(huge)[0] == "NKI0806"


def test_files_are_opened_within_the_size_limit(tmp_path: Path) -> None:
    path = tmp_path / "a.neff"
    path.write_bytes(DATA)
    assert open_file(str(path), len(DATA)) == DATA
    number, message = refused(lambda: open_file(str(path), len(DATA) - 1))
    assert number == "NKI0806"
    assert f"the file has {len(DATA):,} bytes" in message


def test_the_target_hash_covers_every_figure() -> None:
    hashes = {container.target_hash(target) for target in TARGETS.values()}
    assert len(hashes) == len(TARGETS)
    trn2 = TARGETS["trn2"]
    slower = replace(trn2, figures={**trn2.figures, "dma.engine_rate": 22.0})
    assert container.target_hash(slower) not in hashes
