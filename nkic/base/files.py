"""Reading and atomic writing of files, with errors as diagnostics.

`-` is standard input or output. Errors of the file system become `UsageFailed`.
"""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from nkic.base import profiles
from nkic.base.diagnostics import (
    Diagnostic,
    Level,
    LimitHit,
    NkicError,
    UsageFailed,
    bad_argument,
    bad_value,
    did_you_mean,
    make,
    suggestion,
)
from nkic.base.text import clean, grouped

# ---- The table of all environment variables that nkic reads -------------------------------------

PREFIX = "NKIC_"
DECIDING = {  # what a kernel becomes and computes
    "NEURON_PLATFORM_TARGET_OVERRIDE": "the target, if neither an option nor the inline block "
    "names one",
    "NKIC_NKI": "the version of NKI, if neither an option nor the inline block names one",
    "NKI_COMPILER_FRONTEND": "custom: NKI 0.6, if nothing above names a version",
    "NEURON_LOGICAL_NC_CONFIG": "1 or 2: the number of cores, if a launch does not give it; since "
    "NKI 0.7 a launch cannot give another number",
    "NEURON_CC_FLAGS": "`--lnc` in it, as above; `--disable-dge`, which the file records; from "
    "Python also `--target`, if NEURON_PLATFORM_TARGET_OVERRIDE is not set",
    "NKI_PRECISE_FP": "0: nki-run keeps float32 between instructions, as with --no-precise-fp",
    "NKI_SIMULATOR": "from Python: 1 or nothing; anything else is refused",
}
VARIABLES = {
    **DECIDING,
    "NKIC_CACHE": "0: compiled kernels are not cached for other processes, as with --no-cache",
    "NKIC_CACHE_DIR": "the folder of cached kernels, instead of nkic in "
    "XDG_CACHE_HOME or ~/.cache (macOS: ~/Library/Caches)",
    "NKIC_EVALUATE": "from Python: native or closed, how live kernels are evaluated",
    "NKIC_CRASH_DIR": "the folder of reports of internal errors; by default the one for temporary "
    "files (TMPDIR)",
    "NKIC_BACKTRACE": "1: show where in nkic an internal error occurred",
    "NKIC_INSTALL": "1: under pytest, `import nki` gives nkic's modules, as with --nkic",
    "NKIC_TOKEN": "the tokens of `nkic serve`, if --token does not name a file of them",
    "NKIC_BLESS": "1: nkic's own tests accept their current output as expected",
    "NKIC_BLAS_THREADS": "threads that a run may use for matrix products, 1 by default",
    "OPENBLAS_NUM_THREADS": "threads for NumPy's sums, 1 by default; a larger number removes the "
    "limit on processes",
    "NO_COLOR": "any value: no colour",
    "FORCE_COLOR": "not 0: colour, also in a pipe; CLICOLOR_FORCE is the same",
    "TERM": "dumb: no colour",
    "_NKIC_COMPLETE": "set by the shell, with COMP_WORDS, for --print completion=SHELL; "
    "_NKI_RUN_COMPLETE for nki-run",
}


def is_on(name: str, environ: Mapping[str, str]) -> bool:
    """Whether a variable is 1 or not set, and not 0. Raises `UsageFailed` for other values."""
    value = environ.get(name, "")
    if value not in ("", "0", "1"):
        raise bad_value(f"{name}={value} in the environment: expected 0 or 1", f"unset {name}")
    return value != "0"


def unknown(names: Iterable[str]) -> Iterator[Diagnostic]:
    """Yield a warning for each unknown variable with nkic's prefix."""
    own_names = [name for name in VARIABLES if name.startswith(PREFIX)]
    for name in sorted(names):
        if name.startswith(PREFIX) and name not in VARIABLES:
            advice = did_you_mean(name, own_names) or "`nkic --print env` lists the variables"
            text = f"the environment sets `{name}`, which nkic does not read"
            yield make("unknown-variable", text, help=advice, level=Level.WARNING)


# --------------------------------------------------------------------------------------------------

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


def is_file(path: str | Path) -> bool:
    """Whether a file is there: false, too, for a path that the system refuses, such as a long one.

    `Path.is_file` raises for some of these.
    """
    with suppress(OSError, ValueError):
        return Path(path).is_file()
    return False


def is_folder(path: str | Path) -> bool:
    with suppress(OSError, ValueError):
        return Path(path).is_dir()
    return False


def in_folder(folder: str | Path, pattern: str, home: str | Path) -> Iterator[Path]:
    """Yield the regular files of a folder that are in `home`: a link may lead to any file."""
    found = Path(folder).glob(pattern)
    yield from (path for path in found if is_file(path) and is_inside(path, [Path(home)]))


@contextmanager
def replacing(path: str, *, parts: Iterable[str] = ()) -> Iterator[BinaryIO]:
    """Return a stream that replaces the file `path` when the block succeeds.

    Data are written to a temporary file in the same folder, so that readers see the old contents or
    the new; if the block fails or is interrupted, `path` is unchanged, and the temporary file is
    removed, or renamed to the first of `parts` that is not there, if something was written. A
    symbolic link is kept. Devices and pipes receive all bytes at the end, because formats that seek
    while writing, such as zip, cannot do so there.
    """
    with _refusals(path):
        target = _target(path)
        if target.is_dir():
            raise IsADirectoryError(None, "it is a folder")
        special = target.exists() and not target.is_file()
        with _at_the_end(target) if special else in_place_of(target, parts) as stream:
            yield stream


def _target(path: str) -> Path:
    """Return the file that is written for `path`. Raises `OSError`."""
    if "\0" in path:
        raise OSError(None, "a path cannot contain a null character")
    target = real(path)
    if not target.exists() and Path(path).exists():
        return Path(path)  # /dev/stdout, if that is a pipe: its real path is no file's
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP).lower())
    return target


def refuse_unwritable(path: str) -> None:
    """Raise `UsageFailed` for a file that the system will not let this process write, before the
    work whose result would be lost.
    """
    if path in ("", STANDARD):
        return
    with _refusals(path):
        target = _target(path)
        place = target if target.exists() else target.parent
        place.stat()
        if not place.is_dir() and place != target:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR).lower())
        if not os.access(place, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES).lower())


def keeps(path: str) -> bool:
    """Whether what is written there stays: not in a pipe, nor in `/dev/null`."""
    return is_file(path) or not real(path).exists()


def make_folder(path: str | Path) -> None:
    """Make a folder and those above it. Raises `UsageFailed`."""
    with _refusals(str(path)):
        Path(path).mkdir(parents=True, exist_ok=True)


@contextmanager
def _at_the_end(target: Path) -> Iterator[BinaryIO]:
    memory = io.BytesIO()
    yield memory
    with target.open("wb") as stream:
        stream.write(memory.getbuffer())


@contextmanager
def in_place_of(target: Path, parts: Iterable[str] = ()) -> Iterator[BinaryIO]:
    """The same for a path that is not resolved: a link is replaced, too."""
    # The random name appears in no result; mode x applies the umask's permissions.
    temporary = target.with_name(f".nkic-{os.urandom(6).hex()}.tmp")
    try:
        with temporary.open("xb") as stream:
            yield stream
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            if not temporary.stat().st_size or not _moved(temporary, parts):
                temporary.unlink()
        raise


def _moved(temporary: Path, names: Iterable[str]) -> bool:
    """Rename a file to the first name that is free, even if another process tries the same."""
    for name in names:
        with suppress(FileExistsError):
            Path(name).open("xb").close()
            temporary.replace(name)
            return True
    return False


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


# ------------------------------------------------------------------------------------------------
# Reading of files named by a kernel's source, confined to folders that the user allows.
# An untrusted kernel must not decide which files nkic reads. Only regular files are read: a pipe
# could block the reader, a device may have side effects, and `-` is an ordinary file name here.

_fences: ContextVar[tuple[Sequence[Path], ...]] = ContextVar("fences", default=())


@contextmanager
def confined(folders: Sequence[Path]) -> Iterator[None]:
    """Inside the block, restrict `read` to files in these folders, and in those of all blocks
    around it.

    Outside, all files are allowed: the kernel is then part of the running program.
    """
    before = _fences.set((*_fences.get(), folders))
    try:
        yield
    finally:
        _fences.reset(before)


def read(path: str, limit: int) -> bytes:
    """Return the contents of a file that a kernel names. Raises `UsageFailed`."""
    if not all(is_inside(Path(path), folders) for folders in _fences.get()):
        text = f"`{clean(path)}` is neither in the kernel's folder nor in one that --include names"
        advice = (
            "name its folder with --include, in Python with include=[…], or give the array instead "
            "of the path"
        )
        raise UsageFailed([make("cannot-read", text, help=advice)])
    return read_regular(path, limit)


def is_inside(path: Path, folders: Sequence[Path]) -> bool:
    """Return whether the file is in one of the folders, after resolving links in both."""
    try:
        resolved = real(path)
        return any(resolved.is_relative_to(real(folder)) for folder in folders)
    except (OSError, ValueError):  # a NUL in the path
        return False


def read_regular(path: str, limit: int) -> bytes:
    """Return the contents of a regular file of at most `limit` bytes. Raises `UsageFailed`."""
    try:
        with opened(path) as stream:
            data = stream.read(limit + 1)
    except (OSError, ValueError) as error:
        raise refused(error, cannot_read(path, error)) from error
    if len(data) > limit:
        text = f"`{clean(path)}` is larger than the limit of {grouped(limit)} bytes"
        raise UsageFailed([make("cannot-read", text)])
    return data


@contextmanager
def opened(path: str, *, follow: bool = True) -> Iterator[BinaryIO]:
    """Open a regular file.

    Raises `OSError` for any other, without waiting for the writer of a pipe, and for a symbolic
    link unless `follow`.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    number = os.open(path, flags if follow else flags | os.O_NOFOLLOW)
    with os.fdopen(number, "rb") as stream:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise OSError(None, "it is not a regular file")
        yield stream


# ---- `[tool.nkic]` in pyproject.toml: settings for all kernels of a project ---------------------
# The file is in the working directory, or in the nearest folder above that has one.

FILE = "pyproject.toml"
KERNELS = "kernels"  # a table of tables
# Each key with its meaning and its values: what is read, and `nkic --print schema=settings`.
SETTINGS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "evaluate": (
        "How Python evaluates live kernels, unless the call or NKIC_EVALUATE says it.",
        ("native", "closed"),
    ),
    "nki": (
        "The version of NKI of the project's kernels, unless an option, a kernel's file or the "
        "environment says it.",
        (*profiles.LABELS.values(), *profiles.ALIASES),
    ),
    KERNELS: (
        "Settings of kernels by their names: what the block of a file may have, such as args, "
        "unless that block or an option says it.",
        (),
    ),
}
TABLES = "write [tool.nkic.kernels.NAME], and args = { x = 'f32[128,512]' }"
MAX_BYTES = 1 << 20  # maximum size of the file


def setting(name: str) -> Any:
    """Return the value of one of `SETTINGS`, or None. Raises `UsageFailed`."""
    for path in candidates():
        if path.is_file():
            return _table(str(path), path.stat().st_mtime_ns).get(name)
    return None


def candidates() -> list[Path]:
    """Return the possible paths of the file; the first existing one is used."""
    folder = Path.cwd()
    return [parent / FILE for parent in (folder, *folder.parents)]


def origin(name: str) -> str:
    """Return a description of the setting for messages."""
    return f"{name} under [tool.nkic] in {FILE}"


@lru_cache(maxsize=64)
def _table(path: str, changed: int) -> dict[str, Any]:
    """Return the checked section; `changed` is the file's modification time, a cache key."""
    section: Any = _read_settings(path)
    for name in ("tool", "nkic"):
        section = section.get(name, {})
        if not isinstance(section, dict):
            raise bad_argument(f"{path}: `{name}` is not a table", "write [tool.nkic]")
    for key, value in section.items():
        if key not in SETTINGS:
            text = f"{path}: [tool.nkic] has an unknown key `{clean(key)}`"
            raise bad_argument(text, suggestion(key, SETTINGS))
        values = SETTINGS[key][1]
        if key == KERNELS:
            if isinstance(value, dict) and all(isinstance(each, dict) for each in value.values()):
                continue
            raise bad_argument(f"{path}: {key} under [tool.nkic] must be tables", TABLES)
        if not isinstance(value, str | float) or str(value) not in values:
            text = f"{path}: {key} under [tool.nkic] cannot be {clean(repr(value)[:100])}"
            raise bad_argument(text, f"known are: {', '.join(values)}")
    return dict(section)


def _read_settings(path: str) -> dict[str, Any]:
    try:
        with Path(path).open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ValueError(f"it has more than {grouped(MAX_BYTES)} bytes")
        return toml(data.decode())
    except (OSError, ValueError) as error:
        raise bad_argument(f"{path} cannot be read for [tool.nkic]: {error}") from error
