"""Test tests/corpus.py: it repeats itself, and reports a changed kernel."""

from pathlib import Path

import pytest

from tests import corpus

KERNEL = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    x = nl.load(a)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nl.store(out, x + 1.0)
    return out
"""


@pytest.mark.slow  # a dozen forks, which import everything anew
def test_a_changed_kernel_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = []
    for text in (KERNEL, KERNEL, KERNEL.replace("1.0", "2.0"), KERNEL.replace("x +", "y +")):
        Path("k.py").write_text(text, "utf-8")
        name, entry = corpus.observe(corpus.Case("k.py", "kernel", {"a": "float32[2,2]"}))
        found.append({name: entry})
    before, again, changed, wrong = found
    assert [*corpus.differences(before, again)] == []
    [line] = corpus.differences(before, changed)
    kinds = "allocated, asm, ir, lowered, native outputs, outputs, run stdout, sched"
    assert line == f"k.py:kernel: {kinds}"
    assert "exit 0 -> 1, " in next(corpus.differences(before, wrong))
    assert [*corpus.differences(before, {})] == ["k.py:kernel: only before"]
