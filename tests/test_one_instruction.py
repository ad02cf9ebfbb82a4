"""The functions in docs/one-instruction.md are called, in the order of their first calls."""

import re
import sys
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

from nkic.cli import nki_run, nkic
from nkic.cli.common import run
from tests.test_layers import PROJECT, ROOT

PAGE = (PROJECT / "docs/one-instruction.md").read_text("utf-8")
HOPS = re.findall(r"(?m)^\| (\d+) \| `([\w/]+\.py:[\w.]+)` \|", PAGE)
MOST = 43
KERNEL = """\
# /// nkic
# [args]
# a = "float32[96, 40]"
# b = "float32[96, 40]"
# ///
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def add(a, b):
    x = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    y = nl.ndarray(b.shape, dtype=b.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    nisa.dma_copy(dst=y, src=b)
    nisa.tensor_tensor(dst=x, data1=x, data2=y, op=nl.add)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out
"""


class FirstCalls:
    """Record the functions of nkic in the order of first calls, as "room/file.py:Class.method"."""

    def __init__(self) -> None:
        self.order: dict[str, int] = {}

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(ROOT)):
            path = Path(code.co_filename).relative_to(ROOT).as_posix()
            self.order.setdefault(f"{path}:{code.co_qualname}", len(self.order))


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    Path("k.py").write_text(KERNEL)
    ones = np.ones((96, 40), np.float32)
    np.savez("in.npz", a=ones, b=ones)
    found, before = FirstCalls(), sys.getprofile()
    sys.setprofile(found)
    try:
        codes = (
            run(nkic.command, "nkic", ["k.py", "-q"]),
            run(
                nki_run.command,
                "nki-run",
                ["k.neff", "-q", "--inputs", "in.npz", "--outputs", "out.npz"],
            ),
        )
    finally:
        sys.setprofile(before)
    assert codes == (0, 0)
    assert (np.load("out.npz")["output_0"] == 2).all()
    return list(found.order)


def test_the_page_lists_what_is_called_in_order(calls: list[str]) -> None:
    listed = [name for _, name in HOPS]
    assert [name for name in listed if name not in calls] == []
    assert sorted(listed, key=calls.index) == listed


def test_the_way_is_short() -> None:
    assert [int(number) for number, _ in HOPS] == [*range(1, len(HOPS) + 1)]
    assert 20 < len(HOPS) <= MOST
