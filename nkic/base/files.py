"""Reading and atomic writing of files, with errors as diagnostics.

`-` is standard input or output. Errors of the file system become `UsageFailed`.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from nkic.base.diagnostics import Diagnostic, LimitHit, NkicError, UsageFailed, make
from nkic.base.suggest import did_you_mean
from nkic.base.text import grouped

STANDARD = "-"
_LIMITS = {
    errno.EFBIG: "--limit file-size=SIZE sets another limit",
    errno.EMFILE: "--limit files=NUMBER sets another limit",
}


def read_bytes(path: str, limit: int | None = None) -> bytes:
    """Return the contents of a file, a pipe or standard input of at most `limit` bytes."""
    count = -1 if limit is None else limit + 1
    try:
        data = _read(path, count)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise refused(error, cannot_read(path, error)) from error
    if limit is not None and len(data) > limit:
        text = f"`{path}` is larger than the limit of {grouped(limit)} bytes"
        raise UsageFailed([make("cannot-read", text)])
    return data


def toml(text: str) -> dict[str, Any]:
    """Parse TOML. Raises `ValueError` for a text that is not TOML, or holds too large a number."""
    import tomllib  # slow to import, and rarely needed

    try:
        table = tomllib.loads(text)
        _check_toml(table)
    except RecursionError:
        raise ValueError("its values nest too deeply") from None
    return table


def _check_toml(value: Any) -> None:
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            _check_toml(part)
    elif isinstance(value, int) and value.bit_length() > 64:
        raise ValueError("a number needs more than 64 bits")


def _read(path: str, count: int) -> bytes:
    if path != STANDARD:
        with Path(path).open("rb") as stream:
            return stream.read(count)
    if sys.stdin is None:
        raise OSError("it is closed")
    return sys.stdin.buffer.read(count)


def cannot_read(path: str, error: Exception) -> Diagnostic:
    """Return the diagnostic for an error while reading `path`, with a similar file name."""
    advice = _LIMITS.get(getattr(error, "errno", None) or 0, "")
    if isinstance(error, FileNotFoundError):
        advice = did_you_mean(Path(path).name, _names_in(Path(path).parent))
    source = _shown(path, "standard input")
    return make("cannot-read", f"cannot read {source}: {_reason(error)}", help=advice)


def write(path: str, data: bytes | str, *, force: bool = False) -> None:
    """Write `data` to `path`; text as UTF-8.

    Bytes are not written to a terminal unless `force` is set.
    """
    if path == STANDARD:
        _write_standard(data, force)
        return
    with replacing(path) as stream:
        stream.write(data.encode("utf-8", "backslashreplace") if isinstance(data, str) else data)


def _write_standard(data: bytes | str, force: bool) -> None:
    if sys.stdout.isatty() and isinstance(data, str):
        sys.stdout.write(data)
        return
    if sys.stdout.isatty() and not force:
        advice = "write to a file with `-o FILE`, or pipe the output into a program"
        text = "will not write binary data to a terminal"
        raise UsageFailed([make("binary-to-terminal", text, help=advice)])
    sys.stdout.flush()
    encoded = data.encode("utf-8", "backslashreplace") if isinstance(data, str) else data
    with _refusals(STANDARD):
        sys.stdout.buffer.write(encoded)
        sys.stdout.buffer.flush()


def real(path: str | Path) -> Path:
    """Resolve links in a path; circular links are left unresolved."""
    return Path(os.path.realpath(path))


@contextmanager
def replacing(path: str) -> Iterator[BinaryIO]:
    """Return a stream that replaces the file `path` when the block succeeds.

    Data are written to a temporary file in the same folder, so that readers see the old contents or
    the new; if the block fails or is interrupted, the temporary file is removed and `path` is
    unchanged. A symbolic link is kept. Devices and pipes receive all bytes at the end, because
    formats that seek while writing, such as zip, cannot do so there.
    """
    with _refusals(path):
        if "\0" in path:
            raise OSError(None, "a path cannot contain a null character")
        target = real(path)
        if target.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP).lower())
        if target.is_dir():
            raise IsADirectoryError(None, "it is a folder")
        special = target.exists() and not target.is_file()
        with _at_the_end(target) if special else in_place_of(target) as stream:
            yield stream


@contextmanager
def _at_the_end(target: Path) -> Iterator[BinaryIO]:
    memory = io.BytesIO()
    yield memory
    with target.open("wb") as stream:
        stream.write(memory.getbuffer())


@contextmanager
def in_place_of(target: Path) -> Iterator[BinaryIO]:
    """The same for a path that is not resolved: a link is replaced, too."""
    # The random name appears in no result; mode x applies the umask's permissions.
    temporary = target.with_name(f".nkic-{os.urandom(6).hex()}.tmp")
    try:
        with temporary.open("xb") as stream:
            yield stream
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


@contextmanager
def _refusals(path: str) -> Iterator[None]:
    """Convert system errors to usage errors, except a broken pipe."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise refused(error, cannot_write(path, error)) from error


def refused(error: Exception, diagnostic: Diagnostic) -> NkicError:
    """Return the exception for a system error; limits of the process give `LimitHit`."""
    is_limit = getattr(error, "errno", None) in _LIMITS
    return LimitHit([diagnostic]) if is_limit else UsageFailed([diagnostic])


def cannot_write(path: str, error: OSError) -> Diagnostic:
    """Return the diagnostic for an error while writing `path`."""
    folder = Path(path).parent
    advice = _LIMITS.get(error.errno or 0, "")
    if isinstance(error, FileNotFoundError) and not folder.exists():
        advice = f"make the folder first: mkdir -p {folder}"
    target = _shown(path, "standard output")
    return make("cannot-write", f"cannot write {target}: {_reason(error)}", help=advice)


def _shown(path: str, stream: str) -> str:
    """Return a path in backticks; `-` is the stream of this name."""
    return stream if path == STANDARD else f"`{path}`"


def _reason(error: Exception) -> str:
    """Return the system's message without number and file name: `no such file or directory`."""
    text = getattr(error, "strerror", None) or str(error)
    return text[:1].lower() + text[1:]


def _names_in(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in folder.iterdir()]
    except OSError:
        return []
