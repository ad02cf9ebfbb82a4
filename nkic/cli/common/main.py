"""The main function of both tools: every outcome becomes an exit code without a traceback.

Click's own main returns 1 for an interrupt, a closed pipe and an uncaught exception alike, which
would mean "kernel rejected", so it is not used.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import LazyLoader, find_spec, module_from_spec
from types import FrameType
from typing import NoReturn

import click

from nkic.base.diagnostics import Diagnostic, NkicError
from nkic.cli.common import streams, tool
from nkic.cli.common.session import Session

USAGE, LIMIT, INTERNAL = 2, 6, 70
INTERRUPTED, BROKEN_PIPE = 130, 141  # 128 + the signal's number


def run(
    command: click.Command,
    tool: str,
    argv: Sequence[str] | None = None,
    *,
    own_process: bool = False,
) -> int:
    """Run a command line (that of the process by default), and return the exit code.

    `own_process`: the process serves this command alone, so permanent limits may be set.
    """
    argv = sys.argv[1:] if argv is None else argv
    streams.settle()
    session = Session.before_parsing(tool, argv)
    session.own_process = own_process
    try:
        with _signals_raise():
            code = _finish(session, _attempt(command, session))
            session.end()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except Terminated as ended:
        code = 128 + ended.number
    except BrokenPipeError:
        code = BROKEN_PIPE
    except Exception as error:  # reporting itself failed
        code, text = _final_message(error, tool)
        with suppress(OSError, ValueError):
            sys.stderr.write(f"{text}\n")
    streams.release()
    return code


def _final_message(error: Exception, tool: str) -> tuple[int, str]:
    """Return the exit code and a message, using as little memory and as few files as possible."""
    if isinstance(error, MemoryError):
        return LIMIT, "error[NKI9002]: out of memory; --limit memory=SIZE sets another limit"
    if isinstance(error, OSError) and error.errno == errno.EMFILE:
        advice = "--limit files=NUMBER sets another limit"
        return LIMIT, f"error[NKI0005]: too many open files; {advice}"
    return INTERNAL, f"error: internal error in {tool}: {type(error).__name__}: {error}"


class Terminated(BaseException):
    """SIGTERM arrived, or the SIGHUP of a terminal that was closed."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def _attempt(command: click.Command, session: Session) -> int:
    def act() -> int:
        completed = _complete(command, session.tool)
        if completed is not None:
            return completed
        with command.make_context(session.tool, list(session.argv), obj=session) as ctx:
            return ctx.command.invoke(ctx) or 0

    return attempt(act, session)


def attempt(act: Callable[[], int], session: Session) -> int:
    """Return the exit code of `act`, or of its failure, which is reported; signals pass."""
    try:
        return act()
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.Abort:
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as error:
        return _failed(error, session)


def _complete(command: click.Command, tool: str) -> int | None:
    """Answer a shell's completion request, if this is one."""
    variable = f"_{tool.replace('-', '_').upper()}_COMPLETE"
    request = os.environ.get(variable)
    if not request:
        return None
    # Imported here because only completion needs it.
    from click.shell_completion import shell_complete

    return shell_complete(command, {}, tool, variable, request)


def _failed(error: Exception, session: Session) -> int:
    """Report the failure, and return its exit code.

    Each diagnostic is reported once: if standard output cannot be written, the flush at the end
    fails for the same reason as the write before it.
    """
    code, diagnostics = _verdict(error, session)
    unreported = [diagnostic for diagnostic in diagnostics if not session.has_reported(diagnostic)]
    if unreported:
        session.report(unreported)
    return code


def _verdict(error: Exception, session: Session) -> tuple[int, Sequence[Diagnostic]]:
    if isinstance(error, NkicError):
        return error.exit_code, error.diagnostics
    if isinstance(error, click.ClickException):
        return USAGE, [tool.diagnostic(error, session.tool)]
    if isinstance(error, MemoryError):
        _free_frames(error)
    # Imported here because only such a failure needs it, and it would cost a tenth of the start-up
    # time.
    from nkic.cli.common import crash

    return crash.verdict(error, session)


def _free_frames(error: MemoryError) -> None:
    """Free the variables of the failed functions, to have memory for the message."""
    traceback = error.__traceback__
    while traceback is not None:
        with suppress(RuntimeError):  # still running: this function's callers
            traceback.tb_frame.clear()
        traceback = traceback.tb_next


def _finish(session: Session, code: int) -> int:
    """Flush what is pending; report a failure, which is the verdict if nothing else failed."""
    try:
        session.close()
        sys.stdout.flush()
    except (NkicError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            raise
        failed = _failed(error, session)
        return code or failed
    return code


_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def _signals_raise() -> Iterator[None]:
    """Turn SIGINT, SIGTERM and SIGHUP into exceptions inside the block, so that half-written files
    are removed.

    Only the first signal counts: another must not disturb the clean-up.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {
        number: signal.signal(number, _leave)
        for number in _ENDING
        if signal.getsignal(number) is not signal.SIG_IGN  # as under nohup
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    for each in _ENDING:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt if number == signal.SIGINT else Terminated(number)


def bind_lazily(names: Iterable[str]) -> None:
    """Bind modules, given by full name, lazily in their packages; loaded ones are left as they are.

    An import inside each function that uses one would do the same; here a single list names them.
    Only imports of the module itself are lazy (`from nkic.cli.nki_run import debugging`, then
    `debugging.fuzz`): importing a name from it loads it. Their packages are loaded, so they should
    be small.
    """
    for name in names:
        parent, _, child = name.rpartition(".")
        spec = None if name in sys.modules else find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
            module = sys.modules[name] = module_from_spec(spec)
            spec.loader.exec_module(module)
            setattr(import_module(parent), child, module)
