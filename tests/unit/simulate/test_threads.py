"""BLAS uses one thread during a run, however the run was started, and the previous number
afterwards.
"""

import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import threadpoolctl

from nkic import api
from nkic.base.diagnostics import UsageFailed
from nkic.report.figures import blas_threads
from nkic.simulate.numerics import matmul
from tests.api import kernels as k

X = np.arange(128 * 4, dtype=np.float32).reshape(128, 4)


def in_use() -> set[int]:
    found = [one for one in threadpoolctl.threadpool_info() if one["user_api"] == "blas"]
    assert found, "NumPy has no BLAS that threadpoolctl knows"
    return {one["num_threads"] for one in found}


@pytest.fixture
def three() -> Iterator[None]:
    """Start with three BLAS threads."""
    with threadpoolctl.threadpool_limits(3, user_api="blas"):
        yield


def seen_by_a_call(monkeypatch: pytest.MonkeyPatch, **how: Any) -> list[set[int]]:
    """Return the number of BLAS threads during the products of a call from Python."""
    seen: list[set[int]] = []
    whole = matmul._store

    def spy(*words: Any) -> None:
        seen.append(in_use())
        whole(*words)

    monkeypatch.setattr(matmul, "_store", spy)
    api.call(k.product, (X, X), {}, **how)
    return seen


def test_a_call_from_python_uses_one(three: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert seen_by_a_call(monkeypatch) == [{1}]
    assert in_use() == {3}


def test_the_environment_says_otherwise(three: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NKIC_BLAS_THREADS", "2")
    assert seen_by_a_call(monkeypatch) == [{2}]
    assert in_use() == {3}


def test_runs_that_overlap_leave_what_was_there(three: None) -> None:
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with matmul.blas_threads(1):
            inside.set()
            leave.wait()

    assert matmul.in_use() == 3
    with matmul.blas_threads(1):
        runner = threading.Thread(target=other)
        runner.start()
        inside.wait()
        assert in_use() == {matmul.in_use()} == {1}
    leave.set()
    runner.join()
    assert in_use() == {matmul.in_use()} == {3}


def test_sums_in_float32_take_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NKIC_BLAS_THREADS", "2")
    assert seen_by_a_call(monkeypatch, accumulate="float32") == [{1}]


def test_after_a_fault_too(three: None) -> None:
    with pytest.raises(ZeroDivisionError), matmul.blas_threads(1):
        raise ZeroDivisionError
    assert in_use() == {3}


def test_a_product_is_repeated_if_the_number_changes_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ways: list[int] = []
    counts = iter([1, 2, 2])
    monkeypatch.setattr(matmul, "in_use", lambda: next(counts))
    monkeypatch.setattr(matmul, "_way", lambda kind, count: lambda *factors: ways.append(count))
    matmul._in_order(X, X, X)
    assert ways == [1, 2]


@pytest.mark.parametrize("word", ["0", "-1", "two", "1.5", "99999999", "²"])
def test_what_is_no_number_of_threads(word: str) -> None:
    with pytest.raises(UsageFailed, match="expected 1 to 1024"):
        blas_threads({"NKIC_BLAS_THREADS": word})
    assert blas_threads({"NKIC_BLAS_THREADS": ""}) == blas_threads({}) == 1


def test_looking_at_a_file_loads_no_blas() -> None:
    """`nki-run --help` needs neither NumPy nor threadpoolctl."""
    script = "import sys, nkic.cli.nki_run; print({'numpy', 'threadpoolctl'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "set()", done.stderr
