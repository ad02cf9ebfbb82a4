"""Inspection of a run from Python."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkic
from nkic.api import Artifact
from tests.cli.test_nki_run_debugging import (
    ADD,
    HALVE,
    KERNEL,
    LOAD,
    STORE,
    SUM,
    A,
    B,
    lost,
)

INPUTS = {"a": A, "b": B}


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    path = tmp_path_factory.mktemp("kernel") / "k.py"
    path.write_text(KERNEL, encoding="utf-8")
    return nkic.compile(str(path))


def run(artifact: Artifact, **how: Any) -> nkic.Result:
    return nkic.run(artifact, INPUTS, cast=True, **how)


def test_dumps_of_a_result(artifact: Artifact) -> None:
    result = run(artifact, dump=[f"acc@{HALVE}", f"x@{LOAD}"])
    assert np.array_equal(result.dumped("acc"), [SUM[:128] / 2, SUM[128:] / 2])
    assert np.array_equal(result.dumped("x", LOAD), [A[:128], A[128:]])
    assert result.dumped("x", HALVE) == []
    first = next(one for one in result.dumps if one.tensor == "acc")
    assert (first.line, first.time, first.engine, first.unwritten) == (HALVE, 0, "core0.vector", 0)
    assert 0 < first.start_ns < first.done_ns < result.time_ns
    assert len(run(artifact, dump="all").dumps) == 12
    assert run(artifact).dumps == ()


def test_the_first_line_where_a_run_parts(artifact: Artifact) -> None:
    right = {"acc": np.stack([SUM[:128] / 2, SUM[128:] / 2])}
    run(artifact, expect_at={HALVE: right})
    wrong = {"acc": right["acc"] + np.float32(0.5)}
    with pytest.raises(nkic.RunError, match=f"after line {HALVE}, `acc` differs from"):
        run(artifact, expect_at={HALVE: wrong})
    run(artifact, expect_at={HALVE: wrong}, atol=0.5)
    with pytest.raises(nkic.RunError, match="the nearest lines that do"):
        run(artifact, expect_at={1: right})
    with pytest.raises(nkic.RunError, match="rtol and atol apply to expect_at"):
        run(artifact, rtol=0.5)


def test_a_watch_prints(artifact: Artifact, capsys: pytest.CaptureFixture[str]) -> None:
    run(artifact, watch="acc[:, 0:4]")
    lines = [
        int(line.split("  line ")[1].split()[0]) for line in capsys.readouterr().out.splitlines()
    ]
    assert sorted(lines) == [ADD, ADD, HALVE, HALVE]  # the other elements are not watched
    with pytest.raises(nkic.RunError, match="did you mean `acc`"):
        run(artifact, watch="ac")
    with pytest.raises(nkic.RunError, match="expected 'NAME@LINE' or 'all'"):
        run(artifact, dump="acc")


def test_other_orders(artifact: Artifact, tmp_path: Path) -> None:
    nkic.fuzz_order(artifact, INPUTS, cast=True, orders=6, seed=1)
    store = next(
        s.name for s in artifact.executable.streams
        if s.name.startswith("core0.dma") and getattr(s.items[0], "waits", None)
    )  # fmt: skip
    broken = _with(artifact, lost(artifact.executable, store), tmp_path)
    with pytest.raises(nkic.RunError, match=r"race over `acc`") as raised:
        nkic.fuzz_order(broken, INPUTS, cast=True, init_check=False)
    assert f"line {STORE} on {store}" in str(raised.value)
    with pytest.raises(TypeError, match="has no option 'dump'"):
        nkic.fuzz_order(artifact, INPUTS, dump="all")


def _with(artifact: Artifact, executable: Any, folder: Path) -> Artifact:
    from nkic.artifact.encode import write

    path = folder / "broken.neff"
    path.write_bytes(write(replace(executable)))
    return Artifact.load(path)
