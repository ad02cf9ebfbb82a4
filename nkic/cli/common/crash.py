"""Failures that no stage foresaw: one line for the user, and a report for the maintainers."""

from __future__ import annotations

import errno
import io
import json
import os
import platform
import resource
import sys
import tempfile
import traceback
import zipfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from nkic import __version__
from nkic.base import files
from nkic.base.diagnostics import Diagnostic, NkicError, make
from nkic.base.text import size
from nkic.cli.common.session import Session

PACKAGE = Path(__file__).resolve().parents[2]
USAGE, LIMIT, INTERNAL = 2, 6, 70
NOT_WRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EBADF)


def verdict(error: Exception, session: Session) -> tuple[int, Sequence[Diagnostic]]:
    """Return the exit code and the diagnostics of an exception that carries none."""
    if isinstance(error, MemoryError):
        return LIMIT, [_out_of_memory(error)]
    if isinstance(error, RecursionError):
        return LIMIT, [_too_deep(error)]
    if isinstance(error, OSError) and error.errno in NOT_WRITABLE:
        diagnostic = files.cannot_write(error.filename or files.STANDARD, error)
        return files.refused(error, diagnostic).exit_code, [diagnostic]
    return INTERNAL, [_internal_error(error, session)]


def _out_of_memory(error: MemoryError) -> Diagnostic:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    text = "this machine has too little memory for the kernel"
    advice = "try smaller shapes, or a device loop instead of an unrolled one"
    if limit != resource.RLIM_INFINITY:
        text = f"the kernel needs more memory than this process may use: {size(limit)}"
        advice += "; --limit memory=SIZE sets another limit"
    notes = [*filter(None, [str(error)]), *_backtrace(error)]
    return make("out-of-memory", text, notes=notes, help=advice)


def _too_deep(error: RecursionError) -> Diagnostic:
    return make(
        "nesting-too-deep",
        f"the nesting is too deep: the limit is about {sys.getrecursionlimit()} levels",
        notes=_backtrace(error),
        help="split the deeply nested expression; if there is none, NKIC_BACKTRACE=1 shows the "
        "place",
    )


def _internal_error(error: Exception, session: Session) -> Diagnostic:
    """Return the line to show, and write the report if the folder allows it."""
    summary = (
        f"internal error in {session.tool}: {type(error).__name__}: {error} ({_location(error)})"
    )
    return make("internal-error", f"{summary}; {_saved(error, session)}", notes=_backtrace(error))


def _backtrace(error: BaseException) -> list[str]:
    """Return the traceback as a note if NKIC_BACKTRACE=1 is set."""
    is_requested = os.environ.get("NKIC_BACKTRACE", "0") not in ("", "0")
    return [_trace(error)] if is_requested else []


def _trace(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)).rstrip()


def _location(error: Exception) -> str:
    """Return the innermost line of this package in the traceback: `depend/edges.py:40`."""
    frames = traceback.extract_tb(error.__traceback__)
    own_frames = [frame for frame in frames if Path(frame.filename).is_relative_to(PACKAGE)]
    if not own_frames:
        return "?"
    return f"{Path(own_frames[-1].filename).relative_to(PACKAGE)}:{own_frames[-1].lineno}"


def _saved(error: Exception, session: Session) -> str:
    try:
        return f"please report it with {_write_report(error, session)}"
    except (OSError, NkicError) as failure:
        return f"no report could be written ({failure}); NKIC_BACKTRACE=1 shows the place"


def _write_report(error: Exception, session: Session) -> Path:
    """Write the report, and return its path.

    Its name is unpredictable and only the user can read it, because the folder may be
    world-writable.
    """
    contents = {"traceback.txt": _trace(error) + "\n", "run.json": _run(session)}
    contents |= {f"attached/{name}": text for name, text in session.attachments.items()}
    hash = sha256(repr(sorted(contents.items())).encode()).hexdigest()[:12]
    folder = os.environ.get("NKIC_CRASH_DIR") or tempfile.gettempdir()
    Path(folder).mkdir(parents=True, exist_ok=True)
    # Never through a link or over a file: mkstemp creates the file it opens.
    number, path = tempfile.mkstemp(".zip", f"nkic-crash-{hash}-", folder)
    with os.fdopen(number, "wb") as stream:
        stream.write(_zipped(contents))
    return Path(folder, Path(path).name)


def _zipped(contents: dict[str, str]) -> bytes:
    """Return an archive whose members are dated 1980, so that the same crash gives the same
    bytes.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in contents.items():
            member = zipfile.ZipInfo(name)
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, text.encode("utf-8", "backslashreplace"))
    return buffer.getvalue()


def _run(session: Session) -> str:
    run = {
        "tool": session.tool,
        "version": __version__,
        "arguments": list(session.argv),
        "environment": {k: v for k, v in sorted(os.environ.items()) if k.startswith("NKI")},
        "python": sys.version,
        "platform": platform.platform(),
    }
    return json.dumps(run, indent=2) + "\n"
