"""The two commands, `nkic` and `nki-run`, and what they share: options, messages, exit codes.

The scripts begin here, where nothing is imported yet: an interrupt while the rest is loaded
ends the process as it ends any program, and not in a traceback.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from importlib import import_module


def start_nkic() -> int:
    """The script `nkic`; gives the exit code."""
    return _main("nkic.cli.nkic")()


def start_nki_run() -> int:
    """The script `nki-run`; gives the exit code."""
    return _main("nkic.cli.nki_run")()


def _main(module: str) -> Callable[[], int]:
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not under nohup
    if usual:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    main: Callable[[], int] = import_module(module).main
    if usual:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return main
