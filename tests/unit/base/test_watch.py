"""Test the last resort: a compilation that takes too long or fills the memory ends with a
message.
"""

import signal
import threading
import time
from pathlib import Path

import pytest

from nkic.base import watch
from nkic.base.diagnostics import Diagnostic, LimitHit
from nkic.base.source import NOWHERE, Span
from nkic.base.watch import watched
from nkic.compiler.compiled import CompileOptions
from nkic.compiler.loader import Loader
from nkic.compiler.pipeline import compile_source
from nkic.compiler.request import parse_options, request_for

SLOW = """
import nki

@nki.jit
def kernel():
    n = 0
    while True:
        n = n + 1 if n < 5 else sorted(range(1000))[0]
"""


def compiled(seconds: float) -> Diagnostic:
    loader = Loader.beside("k.py")
    source = loader.main("k.py", SLOW.encode())
    with pytest.raises(LimitHit) as failed:
        request = request_for(source, parse_options(), {})
        compile_source(source, request, loader, CompileOptions(seconds=seconds))
    (one,) = failed.value.diagnostics
    return one


def test_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_INTERVAL", 0.01)
    one = compiled(0.2)
    assert one.code.slug == "time-limit"
    assert one.message == "the compilation takes more than 0.2 seconds"
    # A busy machine may need all of that time to read the file.
    assert one.primary is None or one.primary.span.line in (6, 7, 8)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_memory_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_INTERVAL", 0.01)
    monkeypatch.setattr(watch, "free", lambda: -(1 << 40))
    one = compiled(60)
    assert (one.code.slug, one.message) == (
        "out-of-memory",
        "the compilation has used up this machine's memory",
    )


def test_a_look_that_fails_is_no_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check may fail, for example at the end of the stack, where every call is one too many."""
    monkeypatch.setattr(watch, "_INTERVAL", 0.001)
    looks = []

    def fails() -> Span:
        looks.append(1)
        raise RecursionError

    def never(place: Span) -> None:
        raise AssertionError

    with watched(60, fails, never):
        while len(looks) < 5:
            time.sleep(0.001)
    with watched(60, lambda: Span("k.py", 1, 1, 1, 2), lambda place: [fails()].clear()):
        while len(looks) < 10:
            time.sleep(0.001)


def test_no_stage_goes_on_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_INTERVAL", 0.01)
    iterations = 0
    with pytest.raises(LimitHit), watched(0.02, lambda: NOWHERE):
        while iterations < 1_000_000_000:
            try:
                iterations += 1
            except Exception:  # operations that a stage might do
                iterations = 0


def test_threads_and_other_alarms_are_left_alone() -> None:
    before = signal.signal(signal.SIGALRM, signal.SIG_IGN)
    with watched(1e-9, lambda: NOWHERE):
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    signal.signal(signal.SIGALRM, before)

    def other() -> None:
        with watched(1e-9, lambda: NOWHERE):
            assert signal.getsignal(signal.SIGALRM) == before

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()


@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="Linux says how much there is")
def test_memory_is_known() -> None:
    assert 1 << 20 < watch.used() < 1 << 40
    assert 1 << 20 < watch.free() < 1 << 45
