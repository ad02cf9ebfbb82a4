"""The process that compiles: hostile kernels end it at most, and another takes its place."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from nkic.serve import lsp_server
from nkic.serve.lsp_server import Checker, Ended
from tests.lsp.test_session import SLOW, WRONG

# A fork server of its own takes seconds to start; tests of sessions cover the rest.
pytestmark = pytest.mark.slow


@pytest.fixture
def process() -> Iterator[Checker]:
    process = Checker()
    yield process
    process.stop()


def ask(process: Checker, text: str, seconds: float = 30, mib: int = 2048) -> Mapping[str, Any]:
    request = {
        "path": "/nowhere/k.py",
        "text": text.encode(),
        "unsaved": {},
        "level": 0,
        "last": {},
    }
    return process.ask({**request, "seconds": seconds}, mib << 20, process.stops)


def codes(answer: Mapping[str, Any]) -> list[str]:
    return [each["code"] for each in answer["diagnostics"]]


def test_a_process_that_hangs_is_replaced(
    process: Checker, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert codes(ask(process, WRONG)) == ["NKI0204"]
    with monkeypatch.context() as patch:
        patch.setattr(lsp_server, "_GRACE", -29.7)  # its own limit comes later than the server's
        with pytest.raises(Ended, match="takes more than 30 s"):
            ask(process, SLOW)
    assert codes(ask(process, WRONG)) == ["NKI0204"]


def test_memory_is_limited(process: Checker) -> None:
    try:
        message = ask(process, SLOW, mib=320)["diagnostics"][0]["message"]
    except Ended as ended:
        message = str(ended)
    assert "memory" in message
    assert codes(ask(process, WRONG)) == ["NKI0204"]


def test_what_no_text_may_do_to_the_answer(process: Checker) -> None:
    for text in ("\ud800".encode("utf-8", "replace").decode() + WRONG, "\x00", "", "((((" * 5000):
        with_nul = ask(process, text)
        assert isinstance(with_nul["diagnostics"], list)
