"""Failures that no stage foresaw: one line for the user, and a report for the maintainers; and the
watcher's report on a worker that ended without its own.
"""

from __future__ import annotations

import errno
import io
import json
import os
import platform
import re
import resource
import signal
import sys
import tempfile
import traceback
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from importlib import metadata
from pathlib import Path

from nkic import __version__
from nkic.base import files, watch
from nkic.base.diagnostics import Diagnostic, NkicError, make
from nkic.base.source import Span
from nkic.base.text import size
from nkic.base.watcher import Ended, Reason
from nkic.cli.common import streams
from nkic.cli.common.session import Session

PACKAGE = Path(__file__).resolve().parents[2]
PACKAGES = ("click", "lark", "libcst", "ml_dtypes", "msgpack", "numpy", "rich", "threadpoolctl")
LIMIT, INTERNAL = 6, 70
_SECRET = re.compile("TOKEN|SECRET|PASS|KEY|CREDENTIAL")  # in names of variables
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
    text = f"internal error in {session.tool}: {type(error).__name__}: {error} ({_location(error)})"
    try:
        text += f"; please report it with {_write_report(error, session)}"
    except (OSError, NkicError) as failure:
        text += f"; no report could be written ({failure}); NKIC_BACKTRACE=1 shows the place"
    return INTERNAL, [make("internal-error", text, notes=_backtrace(error))]


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


def _backtrace(error: BaseException) -> list[str]:
    """Return the traceback as a note if NKIC_BACKTRACE=1 is set."""
    is_requested = os.environ.get("NKIC_BACKTRACE", "0") not in ("", "0")
    return [_trace(error)] if is_requested else []


def _trace(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)).rstrip()


def _location(error: Exception) -> str:
    """Return the innermost line of this package in the traceback: `compiler/depend.py:40`."""
    frames = traceback.extract_tb(error.__traceback__)
    own_frames = [frame for frame in frames if Path(frame.filename).is_relative_to(PACKAGE)]
    if not own_frames:
        return "?"
    return f"{Path(own_frames[-1].filename).relative_to(PACKAGE)}:{own_frames[-1].lineno}"


def _write_report(error: Exception, session: Session) -> Path:
    """Write the report, and return its path.

    Its name is unpredictable and only the user can read it, because the folder may be
    world-writable.
    """
    contents = {"traceback.txt": _trace(error) + "\n", "run.json": circumstances(session)}
    attached = enumerate(session.attachments.items())
    contents |= {f"attached/{in_report(n, name)}": text for n, (name, text) in attached}
    hash = sha256(repr(sorted(contents.items())).encode()).hexdigest()[:12]
    folder = os.environ.get("NKIC_CRASH_DIR") or tempfile.gettempdir()
    Path(folder).mkdir(parents=True, exist_ok=True)
    # Never through a link or over a file: mkstemp creates the file it opens.
    number, path = tempfile.mkstemp(".zip", f"nkic-crash-{hash}-", folder)
    with os.fdopen(number, "wb") as stream:
        stream.write(_zipped(contents))
    return Path(folder, Path(path).name)


def _zipped(contents: dict[str, str]) -> bytes:
    """Return an archive whose members are dated 1980, so that equal crashes give equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in contents.items():
            member = zipfile.ZipInfo(name)
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, text.encode("utf-8", "backslashreplace"))
    return buffer.getvalue()


def in_report(number: int, path: str) -> str:
    """Return what a report calls a file: a name that leaves no folder on any system, whatever the
    file's own name is, and says nothing of the folder that it is in.
    """
    return f"{number}-{re.sub(r'[^A-Za-z0-9_.-]', '_', Path(path).name)[-100:]}"


def circumstances(session: Session) -> str:
    """Return what is known of a run besides its files, as JSON. Secrets are only said to be set."""
    ours = {k: v for k, v in sorted(os.environ.items()) if k.startswith("NKI")}
    run = {
        "tool": session.tool,
        "version": __version__,
        "arguments": list(session.argv),
        "environment": {k: "(set)" if _SECRET.search(k) else v for k, v in ours.items()},
        "python": sys.version,
        "packages": {name: _version(name) for name in PACKAGES},
        "platform": platform.platform(),
    }
    return json.dumps(run, indent=2) + "\n"


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def report(ended: Ended, tool: str, argv: list[str]) -> int:
    """Report in the format that the command line requests, and return the exit code."""
    streams.settle()
    session = Session.before_parsing(tool, argv)
    if ended.reason is Reason.SIGNAL:
        return ended.code
    with suppress(NkicError, OSError):  # a failed write does not change the verdict
        session.report([of_ended(ended, tool)])
        session.close()
        session.end()
    streams.release()
    return exit_code(ended)


def exit_code(ended: Ended) -> int:
    if ended.reason is Reason.SIGNAL:
        return ended.code
    return INTERNAL if ended.reason is Reason.CRASH else LIMIT


def of_ended(ended: Ended, tool: str) -> Diagnostic:
    """Return the watcher's diagnostic about a worker that could not report its end itself."""
    span = watch.read(ended.page.seen)
    if ended.reason is Reason.TIME:
        text = f"{tool} takes more than {ended.page.seconds:g} s (`--limit time`)"
        advice = "a single operation takes that long; --limit time=SECONDS sets another limit"
        return _timely(f"{text}, and does not stop by itself", span, advice)
    if ended.reason is Reason.CPU:
        advice = "--limit cpu=SECONDS sets another limit"
        return _timely(f"{tool} has used up its processor time", span, advice)
    if ended.reason is Reason.KILLED:
        text = f"{tool} was killed from outside, as the system does when it runs out of memory"
        return make("out-of-memory", text, span, help="try smaller shapes")
    name = signal.Signals(ended.code - 128).name
    return make("internal-error", f"internal error in {tool}: the interpreter ended with {name}")


def _timely(text: str, span: Span | None, advice: str) -> Diagnostic:
    label = "last seen here" if span is not None else ""
    return make("time-limit", text, span, label=label, help=advice)
