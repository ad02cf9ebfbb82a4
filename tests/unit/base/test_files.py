"""Outputs are written completely or not at all; failures are usage errors with the system's
reason.
"""

import errno
import io
import os
import stat
import sys
import threading
from pathlib import Path
from zipfile import ZipFile, ZipInfo

import pytest

from nkic.base import files
from nkic.base.diagnostics import Diagnostic, UsageFailed


def refused(raised: pytest.ExceptionInfo[UsageFailed]) -> Diagnostic:
    (found,) = raised.value.diagnostics
    return found


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def test_write_and_read_back(tmp_path: Path) -> None:
    path = str(tmp_path / "k.neff")
    files.write(path, b"\x00\xff")
    assert files.read_bytes(path) == b"\x00\xff"
    files.write(path, "é")
    assert files.read_bytes(path) == b"\xc3\xa9"
    assert names(tmp_path) == ["k.neff"]


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_permissions_follow_the_umask(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        files.write(str(tmp_path / "k"), b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "k").stat().st_mode) == 0o666 & ~mask


@pytest.mark.parametrize("failure", [KeyboardInterrupt, ValueError, SystemExit])
def test_interrupted_output_leaves_the_old_file(
    tmp_path: Path, failure: type[BaseException]
) -> None:
    path = tmp_path / "k"
    path.write_bytes(b"old")
    with pytest.raises(failure), files.replacing(str(path)) as stream:
        stream.write(b"half of the new")
        stream.flush()
        assert len(names(tmp_path)) == 2
        raise failure
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["k"]


def test_full_disk_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(UsageFailed) as raised, files.replacing(str(tmp_path / "k")) as stream:
        stream.write(b"some")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    found = refused(raised)
    assert found.code.slug == "cannot-write"
    assert found.message == f"cannot write `{tmp_path / 'k'}`: no space left on device"
    assert names(tmp_path) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")
def test_devices_are_written_to_and_stay_devices() -> None:
    files.write(os.devnull, b"gone")
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)
    with pytest.raises(UsageFailed) as raised:
        files.write("/dev/full", b"x")
    assert "no space left on device" in refused(raised).message


def test_named_pipe_gets_the_bytes(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    files.write(str(pipe), b"through")
    reader.join(timeout=10)
    assert got == [b"through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_stream_is_written_by_its_path() -> None:
    """The real path of `/dev/stdout`, if a pipe is there, is no file's."""
    reader, writer = os.pipe()
    files.write(f"/dev/fd/{writer}", b"bytes")
    files.refuse_unwritable(f"/dev/fd/{writer}")
    os.close(writer)
    assert os.read(reader, 100) == b"bytes"
    os.close(reader)


def test_an_archive_in_a_pipe_is_the_one_of_a_file(tmp_path: Path) -> None:
    pipe, plain = tmp_path / "pipe", tmp_path / "plain"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    for path in (pipe, plain):
        with files.replacing(str(path)) as stream, ZipFile(stream, "w") as archive:
            archive.writestr(ZipInfo("a"), b"content")
    reader.join(timeout=10)
    assert got == [plain.read_bytes()]


def test_links_in_a_circle_are_refused_and_stay(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(link)
    with pytest.raises(UsageFailed) as raised:
        files.write(str(link), b"x")
    assert "symbolic links" in refused(raised).message
    assert link.is_symlink() and files.real(link) == link


def test_symbolic_link_stays_and_its_target_changes(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    files.write(str(link), b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageFailed) as raised:
        files.write(str(tmp_path), b"x")
    assert refused(raised).message == f"cannot write `{tmp_path}`: it is a folder"


def test_missing_folder_gets_advice(tmp_path: Path) -> None:
    with pytest.raises(UsageFailed) as raised:
        files.write(str(tmp_path / "no" / "k"), b"x")
    assert refused(raised).help == f"make the folder first: mkdir -p {tmp_path / 'no'}"


def test_missing_input_names_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").touch()
    with pytest.raises(UsageFailed) as raised:
        files.read_bytes(str(tmp_path / "kernle.py"))
    found = refused(raised)
    assert found.code.slug == "cannot-read"
    assert found.message.endswith("kernle.py`: no such file or directory")
    assert found.help == "did you mean `kernel.py`?"


@pytest.mark.parametrize("path", ["", "a\0b", "x" * 5000])
def test_impossible_paths_are_refused(path: str) -> None:
    with pytest.raises(UsageFailed):
        files.read_bytes(path)
    with pytest.raises(UsageFailed):
        files.write(path, b"x")


def test_reading_stops_at_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "k"
    path.write_bytes(b"12345")
    assert files.read_bytes(str(path), limit=5) == b"12345"
    with pytest.raises(UsageFailed) as raised:
        files.read_bytes(str(path), limit=4)
    assert "larger than the limit of 4 bytes" in refused(raised).message
    if Path("/dev/zero").exists():
        with pytest.raises(UsageFailed):
            files.read_bytes("/dev/zero", limit=1000)


class Terminal(io.TextIOWrapper):
    """A standard output that is a terminal."""

    def isatty(self) -> bool:
        return True


def test_no_binary_to_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", Terminal(raw, encoding="utf-8"))
    with pytest.raises(UsageFailed) as raised:
        files.write("-", b"\x1b")
    assert refused(raised).code.slug == "binary-to-terminal"
    assert raw.getvalue() == b""
    files.write("-", "text", force=False)
    files.write("-", b"\x1b", force=True)
    assert raw.getvalue() == b"text\x1b"


def test_piped_text_is_utf8_whatever_the_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    print("before")
    files.write("-", "é")
    assert raw.getvalue() == b"before\n\xc3\xa9"


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"abc")))
    assert files.read_bytes("-", limit=3) == b"abc"
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UsageFailed) as raised:
        files.read_bytes("-")
    assert refused(raised).message == "cannot read standard input: it is closed"


def test_what_is_kept_of_a_run_replaces_nothing(tmp_path: Path) -> None:
    """Not even what another process kept in the meantime."""
    names = [str(tmp_path / name) for name in ("part", "part2", "part3")]
    Path(names[0]).symlink_to("nowhere")
    with (
        pytest.raises(KeyError),
        files.replacing(str(tmp_path / "out"), parts=names) as first,
        files.replacing(str(tmp_path / "out"), parts=names) as second,
    ):
        first.write(b"first")
        second.write(b"second")
        raise KeyError
    assert [Path(name).read_bytes() for name in names[1:]] == [b"second", b"first"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["part", "part2", "part3"]
