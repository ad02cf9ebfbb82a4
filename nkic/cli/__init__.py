"""The two commands, `nkic` and `nki-run`, and what they share: options, messages, exit codes.

The entry points are here, where nothing is imported yet: an interrupt while the rest is loading
ends the process with the exit code of an interrupt and without a traceback, and a second process is
forked that enforces the time limits (`nkic.base.watcher`).
"""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False  # see nkic/__init__.py
if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn

INTERRUPTED = 128 + signal.SIGINT


def start_nkic() -> int:
    return _start("nkic", "nkic.cli.nkic")


def start_nki_run() -> int:
    return _start("nki-run", "nkic.cli.nki_run")


def _start(tool: str, module: str) -> int:
    _forget_current_folder()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not under nohup
        signal.signal(signal.SIGINT, _leave)
    # After the handler is set: even this import takes time.
    from nkic.base import watcher

    ended = watcher.fork()
    if ended is not None and ended.reason is watcher.Reason.ITSELF:
        os._exit(ended.code)  # nothing is open here, and shutting down the interpreter is slow
    if ended is not None:
        from nkic.cli.common import crash  # rarely needed

        return crash.report(ended, tool, sys.argv[1:])
    from importlib import import_module

    from nkic.base.collector import without_collector

    with without_collector():  # the modules' objects stay alive
        command = import_module(module)
    code: int = command.main()
    if watcher.page() is not None:  # a forked worker, which nothing else runs in
        if (used := sys.modules.get("multiprocessing.util")) is not None:
            used._run_finalizers()  # its folder of sockets goes
        os._exit(code)  # the streams are flushed; freeing every object takes 100 ms
    return code


def _forget_current_folder() -> None:
    """Import nothing from it because of an empty entry, as `$PYTHONPATH:/my/lib` may have.

    There, `random.py` may be a kernel that nobody trusts. What Python imports before this, such as
    `sitecustomize.py`, is beyond us.
    """
    parts = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if len(parts) > 1 and "" in parts:
        named = [*filter(None, parts)]
        os.environ["PYTHONPATH"] = os.pathsep.join(named)  # for other processes
        here = os.path.realpath(os.curdir)
        if here not in map(os.path.realpath, named):  # by its own name, it is wanted
            sys.path[:] = [path for path in sys.path if path and os.path.realpath(path) != here]


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    os._exit(INTERRUPTED)
