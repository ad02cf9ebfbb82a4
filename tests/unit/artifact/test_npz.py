"""Test files of arrays: arrays are read correctly, and errors in files are reported."""

import contextlib
import io
import os
import struct
import threading
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from nkic.artifact import archive, arrays
from nkic.artifact.archive import SLACK, Opened, opened
from nkic.artifact.arrays import DTYPES_MEMBER, natural, offer_npy, offer_raw, read_npz, write_npz
from nkic.base.diagnostics import InputFailed, UsageFailed
from nkic.machine.dtypes import DTYPES, DType

Array = NDArray[Any]


def opened_bytes(data: bytes) -> Opened:
    return Opened(io.BytesIO(data), len(data))


def load(data: bytes) -> dict[str, Array]:
    """Load everything in an npz file."""
    return {name: offer.load() for name, offer in read_npz(opened_bytes(data), "d.npz").items()}


def savez(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def savez_compressed(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


def zipped(*members: tuple[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as found, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # for duplicate names
        for name, data in members:
            found.writestr(name, data)
    return stream.getvalue()


def npy_bytes(array: Array, **more: Any) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, **more)
    return stream.getvalue()


def refused(data: bytes) -> str:
    """Return the code and message with which the file is rejected."""
    with pytest.raises(InputFailed) as caught:
        load(data)
    return f"{caught.value.diagnostics[0].code.number} {caught.value}"


SMALL = np.arange(6, dtype=np.float32).reshape(2, 3)

# ---- what is right -------------------------------------------------------------------------


@settings(max_examples=60)
@given(
    array=hnp.arrays(
        st.sampled_from(["<f4", ">f4", "<f2", ">f8", "|i1", "<i2", ">i4", "<u8", "|u1", "|b1"]),
        hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5),
    ),
    fortran=st.booleans(),
    compressed=st.booleans(),
)
def test_reads_what_numpy_wrote(array: Array, fortran: bool, compressed: bool) -> None:
    given_array = np.array(array, order="F" if fortran else "C")
    found = load((savez_compressed if compressed else savez)(x=given_array))["x"]
    assert found.shape == array.shape
    assert found.dtype == array.dtype.newbyteorder("=")
    assert found.flags.c_contiguous
    assert found.tobytes() == array.astype(found.dtype).tobytes()


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_reads_every_version_of_npy(version: tuple[int, int]) -> None:
    data = zipped(("x.npy", npy_bytes(SMALL, version=version)))
    assert np.array_equal(load(data)["x"], SMALL)


def test_arrays_of_ml_dtypes_are_raw_bytes() -> None:
    values = np.array([1.0, -2.5, 0.375], np.float32)
    data = savez(a=values.astype(ml_dtypes.bfloat16), b=values.astype(ml_dtypes.float8_e5m2))
    offers = read_npz(opened_bytes(data), "d.npz")
    assert [str(offer.element) for offer in offers.values()] == ["V2", "V1"]
    for name, dtype in (("a", ml_dtypes.bfloat16), ("b", ml_dtypes.float8_e5m2)):
        assert np.array_equal(offers[name].load().view(dtype).astype(np.float32), values)


def test_order_is_the_files() -> None:
    assert list(load(savez(z=SMALL, a=SMALL, m=SMALL))) == ["z", "a", "m"]


def test_an_archive_without_members_has_no_arrays() -> None:
    stream = io.BytesIO()
    zipfile.ZipFile(stream, "w").close()
    assert read_npz(opened_bytes(stream.getvalue()), "d.npz") == {}


def test_members_with_underscores_are_no_arrays() -> None:
    assert list(load(zipped(("__notes__", b"hi"), ("x.npy", npy_bytes(SMALL))))) == ["x"]


def test_zip64_sizes_are_read() -> None:
    stream = io.BytesIO()
    with (
        zipfile.ZipFile(stream, "w") as found,
        found.open(zipfile.ZipInfo("x.npy"), "w", force_zip64=True) as member,
    ):
        member.write(npy_bytes(SMALL))
    assert np.array_equal(load(stream.getvalue())["x"], SMALL)


def test_zip64_directory_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 1)  # so that zipfile writes zip64 records
    data = savez(a=SMALL, b=SMALL * 2)
    assert b"PK\6\6" in data
    assert np.array_equal(load(data)["b"], SMALL * 2)
    far = patched(data, b"PK\6\7", 8, b"\xff" * 8)
    assert "zip64 end record is missing" in refused(far)


def test_streamed_archives_are_read() -> None:
    """Sizes after the data, as written to a pipe: np.savez(sys.stdout.buffer)."""

    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def seek(self, *_: Any) -> int:
            raise OSError

        def tell(self) -> int:
            raise OSError

    stream = Pipe()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as found:
        found.writestr("x.npy", npy_bytes(SMALL))
    assert np.array_equal(load(stream.getvalue())["x"], SMALL)


# ---- what is wrong -------------------------------------------------------------------------

NPY = npy_bytes(SMALL)


def header(text: str, data: bytes = b"") -> bytes:
    raw = text.encode("latin-1")
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(raw)) + raw + data


WRONG: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "not a zip archive"),
    "text": (b"a,b\n1,2\n" * 20, "not a zip archive"),
    "npy, not npz": (NPY, "not a zip archive"),
    "twice": (zipped(("x.npy", NPY), ("x.npy", NPY)), "`x.npy` appears twice"),
    "parent": (zipped(("../x.npy", NPY)), "leads out of the archive"),
    "inner parent": (zipped(("a/../../x.npy", NPY)), "leads out of the archive"),
    "absolute": (zipped(("/x.npy", NPY)), "leads out of the archive"),
    "drive": (zipped(("c:/x.npy", NPY)), "leads out of the archive"),
    "backslash": (zipped(("..\\x.npy", NPY)), "leads out of the archive"),
    "no npy": (zipped(("x", b"hello")), "array `x`: it is not an npy array"),
    "no npy inside": (zipped(("x.npy", b"hello, world")), "it is not an npy array"),
    "bzip2": (zipped(("x.npy", NPY), method=zipfile.ZIP_BZIP2), "compressed by bzip2"),
    "lzma": (zipped(("x.npy", NPY), method=zipfile.ZIP_LZMA), "compressed by lzma"),
    "short data": (zipped(("x.npy", NPY[:-1])), "declares 152 bytes, its directory 151"),
    "long data": (zipped(("x.npy", NPY + b"!")), "declares 152 bytes, its directory 153"),
    "no data": (zipped(("x.npy", b"")), "is truncated"),
    "version": (zipped(("x.npy", NPY[:6] + b"\x07" + NPY[7:])), "version 7.0"),
    "long header": (zipped(("x.npy", header(" " * 20_000))), "has 20,000 bytes, the limit is"),
    "prefix": (b"#!/bin/sh\n" + zipped(("x.npy", NPY)), "not where its end record says"),
    "trailing": (zipped(("x.npy", NPY)) + b"more", "not a zip archive"),
    "structured": (savez(x=np.zeros(2, [("a", "f4"), ("b", "i4")])), "NKI1002"),
    "objects": (savez(x=np.array([None, {}], object)), "Python objects"),
    "objects by hand": (
        zipped(("x.npy", header("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}"))),
        "NKI1002",
    ),
    "expression": (
        zipped(("x.npy", header("{'descr': open('x'), 'fortran_order': False, 'shape': ()}"))),
        "its npy header is wrong",
    ),
    "negative": (
        zipped(("x.npy", header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}"))),
        "its npy header is wrong",
    ),
    "huge": (
        zipped(
            ("x.npy", header(f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({9**18},)}}"))
        ),
        "its directory",
    ),
    "endless number": (
        zipped(
            ("x.npy", header(f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({'9' * 99},)}}"))
        ),
        "its shape is wrong",
    ),
    "rank": (
        zipped(
            ("x.npy", header(f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({'1,' * 40})}}"))
        ),
        "its shape is wrong",
    ),
    "types not JSON": (
        savez(x=SMALL, **{DTYPES_MEMBER: np.frombuffer(b"{", np.uint8)}),
        "`__nki_dtypes__` is not JSON",
    ),
    "types no object": (
        savez(x=SMALL, **{DTYPES_MEMBER: np.frombuffer(b"[1]", np.uint8)}),
        "not a JSON object",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_refused(name: str) -> None:
    data, why = WRONG[name]
    found = refused(data)
    assert why in found
    assert found.startswith("NKI10")


def patched(data: bytes, sign: bytes, offset: int, value: bytes) -> bytes:
    """Return `data` with `value` at `offset` after every `sign`."""
    changed, at = bytearray(data), data.find(sign)
    assert at >= 0
    while at >= 0:
        changed[at + offset : at + offset + len(value)] = value
        at = data.find(sign, at + 1)
    return bytes(changed)


LOCAL, CENTRAL = b"PK\3\4", b"PK\1\2"


def test_encrypted_is_refused() -> None:
    data = patched(savez(x=SMALL), CENTRAL, 8, b"\1\0")
    assert "it is encrypted" in refused(data)


def test_header_and_directory_must_tell_the_same() -> None:
    data = zipped(("x.npy", NPY))
    assert "different sizes" in refused(patched(data, LOCAL, 14, b"\0\0\0\0"))
    assert "differ" in refused(patched(data, LOCAL, 30, b"y"))
    assert "differ" in refused(patched(data, LOCAL, 0, b"XX\3\4"))


def test_sizes_that_lie_are_refused() -> None:
    data = zipped(("x.npy", NPY))
    twice = struct.pack("<L", 2 * len(NPY))
    both = patched(patched(data, CENTRAL, 24, twice), LOCAL, 22, twice)
    assert "two sizes" in refused(both)
    packed = zipped(("x.npy", NPY), method=zipfile.ZIP_DEFLATED)
    both = patched(patched(packed, CENTRAL, 24, twice), LOCAL, 22, twice)
    assert "its directory 304" in refused(both)


def test_wrong_checksum_is_refused() -> None:
    data = bytearray(zipped(("x.npy", NPY)))
    data[data.index(NPY) + len(NPY) - 1] ^= 1
    assert "its checksum is wrong" in refused(bytes(data))


def test_overlapping_members_are_refused() -> None:
    """The method of the densest zip bombs: many entries for the same bytes."""
    data = zipped(("x.npy", NPY), ("y.npy", NPY))
    second = data.rindex(CENTRAL)
    changed = data[: second + 42] + bytes(4) + data[second + 46 :]
    assert "overlaps" in refused(changed)


def test_more_members_than_allowed_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = zipped(("a.npy", NPY), ("b.npy", NPY), ("c.npy", NPY))
    monkeypatch.setattr(archive, "MAX_MEMBERS", 3)
    assert len(load(data)) == 3
    monkeypatch.setattr(archive, "MAX_MEMBERS", 2)
    assert "3 members, the limit is 2" in refused(data)


def test_a_bomb_is_not_inflated(monkeypatch: pytest.MonkeyPatch) -> None:
    """50 kB that would inflate to 50 MB: opening the file reads only the header."""
    zeros = npy_bytes(np.zeros(50 << 20, np.uint8))
    data = zipped(("x.npy", zeros), method=zipfile.ZIP_DEFLATED)
    assert len(data) < 60_000
    taken: list[int] = []
    fill = archive.Content.fill

    def noted(self: archive.Content, target: memoryview) -> None:
        taken.append(len(target))
        fill(self, target)

    monkeypatch.setattr(archive.Content, "fill", noted)
    offer = read_npz(opened_bytes(data), "d.npz")["x"]
    assert offer.shape == (50 << 20,)
    assert sum(taken) < 1000


SEED = savez(a=SMALL, b=np.arange(4, dtype=np.int16))
SEED_DEFLATED = savez_compressed(a=SMALL, b=np.arange(4, dtype=np.int16))


def assert_harmless(changed: bytes) -> None:
    """Assert that the file is rejected or read as written: a changed bit in a date has no
    effect.
    """
    try:
        found = load(changed)
    except InputFailed:
        return
    for name, array in found.items():
        originals: dict[str, Array] = {"a": SMALL, "b": np.arange(4, dtype=np.int16)}
        wanted = originals.get(name)
        assert wanted is None or np.array_equal(array, wanted)


@pytest.mark.parametrize("data", [SEED, SEED_DEFLATED], ids=["stored", "deflated"])
def test_no_changed_byte_is_taken_for_data(data: bytes) -> None:
    for at in range(len(data)):
        for bit in (1, 128, 255):
            assert_harmless(data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :])


@pytest.mark.parametrize("data", [SEED, SEED_DEFLATED], ids=["stored", "deflated"])
def test_every_truncation_is_refused(data: bytes) -> None:
    for end in range(len(data)):
        with pytest.raises(InputFailed):
            load(data[:end])


@settings(max_examples=150)
@given(st.binary(max_size=300), st.integers(0, len(SEED)), st.integers(0, 100))
def test_any_splice_is_harmless(junk: bytes, at: int, dropped: int) -> None:
    assert_harmless(SEED[:at] + junk + SEED[at + dropped :])


# ---- single files, pipes, types ------------------------------------------------------------


def test_npy_file_of_another_length_is_refused() -> None:
    assert np.array_equal(offer_npy(opened_bytes(NPY), "x.npy").load(), SMALL)
    for data in (NPY[:-1], NPY + b"!"):
        with pytest.raises(InputFailed, match=r"`x.npy`: its header declares 152 bytes"):
            offer_npy(opened_bytes(data), "x.npy")


def test_raw_files_are_little_endian_in_c_order() -> None:
    data = SMALL.astype("<f4").tobytes()
    offer = offer_raw(opened_bytes(data), "x.bin", DTYPES["float32"], (2, 3))
    assert np.array_equal(offer.load_as(DTYPES["float32"]), SMALL)
    with pytest.raises(InputFailed, match="takes 24 bytes, it has 23"):
        offer_raw(opened_bytes(data[1:]), "x.bin", DTYPES["float32"], (2, 3))


@pytest.mark.parametrize("more", [0, 1])
def test_a_pipe_is_read_up_to_the_cap(more: int, tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)

    def other_end() -> None:
        with contextlib.suppress(BrokenPipeError), path.open("wb") as stream:
            stream.write(bytes(SLACK + 100 + more))

    writer = threading.Thread(target=other_end)
    writer.start()
    if more:
        with pytest.raises(InputFailed, match="gives more than"), opened(str(path), 100):
            pass
    else:
        with opened(str(path), 100) as file:
            assert file.size == SLACK + 100
    writer.join()


@pytest.mark.parametrize("path", ["", "missing.npz", "folder", "a\0b"])
def test_what_cannot_be_opened(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageFailed, match="cannot read"), opened(path, 0):
        pass


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_written_types_are_restored(dtype: DType) -> None:
    """Every type is recognised after writing and reading, and has the same bytes."""
    element = natural(dtype)
    array = np.arange(24, dtype=np.uint8).view(f"{element.kind}{element.size}")
    stream = io.BytesIO()
    write_npz(stream, {"x": array}, {"x": dtype.name})
    offer = read_npz(opened_bytes(stream.getvalue()), "d.npz")["x"]
    assert offer.nki_dtype is dtype
    assert [other for other in DTYPES.values() if offer.is_of(other)] == [dtype]
    if dtype.name != "bool":
        assert offer.load_as(dtype).tobytes() == array.tobytes()


def test_writing_is_deterministic_and_numpy_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def write() -> bytes:
        stream = io.BytesIO()
        write_npz(stream, {"b": SMALL, "a": SMALL[0]}, {"b": "float32", "a": "float32"})
        return stream.getvalue()

    first = write()
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert write() == first
    with np.load(io.BytesIO(first)) as found:
        assert found.files == ["b", "a", DTYPES_MEMBER]
        assert np.array_equal(found["b"], SMALL)
        assert bytes(found[DTYPES_MEMBER]) == b'{"b": "float32", "a": "float32"}'


HEADERS: dict[str, Callable[[str], str]] = {
    "spaces": lambda s: s.replace(" ", "   "),
    "none": lambda s: s.replace(" ", ""),
    "double quotes": lambda s: s.replace("'", '"'),
    "python 2": lambda s: s.replace("3)", "3L)"),
}


@pytest.mark.parametrize("form", HEADERS)
def test_headers_as_other_writers_make_them(form: str) -> None:
    text = HEADERS[form]("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n")
    data = header(text, SMALL.tobytes())
    assert np.array_equal(offer_npy(opened_bytes(data), "x.npy").load(), SMALL)


def test_keys_in_any_order() -> None:
    text = "{'shape': (2, 3), 'fortran_order': False, 'descr': '<f4'}"
    found = arrays.read_header(_Bytes(header(text)))
    assert found == arrays.NpyHeader(arrays.Element("f", 4), False, False, (2, 3), 10 + len(text))


class _Bytes:
    """A source of bytes."""

    def __init__(self, data: bytes) -> None:
        self.stream = io.BytesIO(data)

    def read(self, count: int) -> bytes:
        return self.stream.read(count)

    def fill(self, target: memoryview) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        raise NotImplementedError
