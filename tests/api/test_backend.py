"""The conformance suite's backend, called as the suite calls it."""

import sys
import types
from typing import Any

import numpy as np
import pytest

from nkic.api import CompileError, running
from nkic.simulate import simulate_ranks
from tests.api import kernels as k
from tests.conformance import nkic_backend as backend

X = np.arange(128 * 4, dtype=np.float32).reshape(128, 4)


def test_run() -> None:
    found = backend.run(k.scaled, {"x": X, "factor": 3.0}, lnc=1, nc_version="gen3")
    np.testing.assert_array_equal(found, X * 3)
    (alone,) = backend.run_ranks(k.scaled, [{"x": X}], lnc=1, nc_version="gen3")
    np.testing.assert_array_equal(alone, X)


def test_marks_of_inputs_are_no_part_of_their_names() -> None:
    assert backend.run(k.in_place, {"x.must_alias_input": X}, lnc=1, nc_version="gen3") is None


def test_unwritten_bytes_stop_a_kernel_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(CompileError, match="`t`, which is uninitialised"):
        backend.run(k.half_written, {"x": X}, lnc=1, nc_version="gen3")
    monkeypatch.setenv("INIT_CHECK", "0")
    found = backend.run(k.half_written, {"x": X}, lnc=1, nc_version="gen3")
    np.testing.assert_array_equal(found[:64], X[:64])


def test_trace_compiles_for_the_generation() -> None:
    assert backend.trace(k.scaled, {"x": X}, lnc=1, nc_version="gen4").executable.target == "trn3"


def test_ranks_run_together() -> None:
    found = backend.run_ranks(k.shared, [{"x": X}, {"x": X + 1}], lnc=2, nc_version="gen3")
    for one in found:
        np.testing.assert_array_equal(one, 2 * X + 1)


def test_the_progress_of_ranks_is_of_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    told = list[int | None]()

    def watched(executable: Any, inputs: Any, settings: Any, *more: Any) -> Any:
        settings.watch(1)
        return simulate_ranks(executable, inputs, settings, *more)

    monkeypatch.setattr(running, "simulate_ranks", watched)
    token = running.PROGRESS.set(lambda done, total: told.append(total))
    try:
        for ranks in (1, 3):
            backend.run_ranks(k.scaled, [{"x": X}] * ranks, lnc=1, nc_version="gen3")
    finally:
        running.PROGRESS.reset(token)
    assert told[0] and told[-1] == 3 * told[0]


def test_a_group_of_ranks_comes_from_the_package_that_poses_as_nki(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = types.ModuleType("nki.collectives")
    monkeypatch.setitem(sys.modules, "nki.collectives", module)

    class ReplicaGroup:
        def __init__(self, groups: list[list[int]]) -> None:
            self.groups = self.replica_groups = groups

    ReplicaGroup.__module__, ReplicaGroup.__qualname__ = module.__name__, "ReplicaGroup"
    group = ReplicaGroup([[0, 1]])
    inputs = [{"x": X, "group": group}, {"x": X + 1, "group": group}]
    found = backend.run_ranks(k.shared_among, inputs, lnc=2, nc_version="gen3")
    for one in found:
        np.testing.assert_array_equal(one, 2 * X + 1)


def test_ranks_need_one_program() -> None:
    inputs = [{"x": X, "factor": 1.0}, {"x": X, "factor": 2.0}]
    with pytest.raises(CompileError, match="rank 1 and rank 0 need different programs"):
        backend.run_ranks(k.scaled, inputs, lnc=1, nc_version="gen3")
