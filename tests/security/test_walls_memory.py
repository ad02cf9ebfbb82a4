"""`limits={"memory": …}`: what a kernel may make while it is compiled and run, from Python."""

import threading
import tracemalloc
from typing import Any

import numpy as np
import pytest

import nkic
from nkic.base.source import SourceFile

KERNEL = """
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def kernel(a):
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=a)
    BODY
    nisa.dma_copy(dst=out, src=t)
    return out
"""
MIB = 1 << 20
# What makes many bytes, and a tenth of what it takes.
HUNGRY = {
    "kept = [[0] * 1000 for _ in range(1000)]": MIB,
    "for _ in range(100): dropped = [0] * 10_000": MIB,
    "text = 'x' * 1_000_000": MIB // 10,
    "table = {n: str(n) for n in range(100_000)}": MIB,
    "numbers = tuple(range(200_000))": MIB // 8,
    "large = [2 ** 8000 for _ in range(1000)]": MIB // 10,
    "for _ in range(1000): nisa.tensor_scalar(t, t, nl.add, 1.0)": MIB // 3,
    "for _ in range(1000): v = nl.ndarray((128, 64), nl.float32, nl.hbm)": MIB // 3,
}


def compiled(body: str, **options: Any) -> nkic.Artifact:
    source = SourceFile("kernel.py", KERNEL.replace("BODY", body))
    options = {"inputs": {"a": "f32[128,64]"}, "evaluate": "closed", **options}
    return nkic.compile(source, **options)


@pytest.mark.parametrize("body", HUNGRY)
def test_compiling_ends_where_the_bytes_do(body: str) -> None:
    with pytest.raises(nkic.CompileError) as caught:
        compiled(body, limits={"memory": HUNGRY[body]})
    (said,) = caught.value.diagnostics
    assert said.code.number == "NKI9002"
    assert said.primary is not None
    assert said.primary.span.line == 11
    assert "memory" in said.help
    assert compiled(body, limits={"memory": 100 * HUNGRY[body]}).data


def test_the_limit_is_the_same_in_every_thread_and_at_every_time() -> None:
    body = "kept = [[0] * 100 for _ in range(COUNT)]"

    def fits(count: int) -> bool:
        try:
            compiled(body.replace("COUNT", str(count)), limits={"memory": MIB})
        except nkic.CompileError:
            return False
        return True

    counts = (100, 1000, 1100, 1200, 1300, 2000)
    here = [fits(count) for count in counts]
    there: list[bool] = []
    thread = threading.Thread(target=lambda: there.extend(fits(count) for count in counts))
    thread.start()
    thread.join()
    assert here == there == sorted(here, reverse=True)
    assert here[0]
    assert not here[-1]


def test_all_instances_of_a_kernel_share_the_bytes() -> None:
    body = "for _ in range(100): nisa.tensor_scalar(t, t, nl.add, 1.0)"
    limits = {"memory": MIB}
    assert compiled(body, limits=limits).data
    with pytest.raises(nkic.CompileError) as caught:
        compiled(body, limits=limits, grid=4)
    assert {one.code.number for one in caught.value.diagnostics} == {"NKI9002"}


def test_running_is_refused_before_it_takes_more() -> None:
    artifact, data = compiled("pass"), {"a": np.ones((128, 64), np.float32)}
    with pytest.raises(nkic.RunError) as caught:
        nkic.run(artifact, data, limits={"memory": MIB})
    assert [one.code.slug for one in caught.value.diagnostics] == ["memory-limit"]
    with pytest.raises(nkic.RunError):
        nkic.run(artifact, data, limits={"memory": 1 << 30}, max_memory=MIB)
    assert nkic.run(artifact, data, limits={"memory": 1 << 30}).outputs


@pytest.mark.parametrize("value", [0, -1, 1.5, "1GiB", True])
def test_wrong_values_are_refused(value: Any) -> None:
    with pytest.raises(nkic.CompileError, match="limits"):
        compiled("pass", limits={"memory": value})


def test_unknown_limits_are_refused_by_both() -> None:
    with pytest.raises(nkic.CompileError, match="no limit"):
        compiled("pass", limits={"memorry": 5})
    with pytest.raises(nkic.RunError, match="no limit"):
        nkic.run(compiled("pass"), {}, limits={"memorry": 5})


@pytest.mark.parametrize(
    "lookup", ["hasattr(t, 'shap')", "getattr(t, 'shap', None)", "getattr(nl, 'addd', None)"]
)
def test_a_lookup_that_fails_keeps_nothing(lookup: str) -> None:
    def peak(times: int) -> int:
        tracemalloc.start()
        try:
            compiled(f"for _ in range({times}): {lookup}")
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(1)
    assert peak(1001) - peak(1) < MIB // 4


def test_numbers_of_numpy_are_paid_for() -> None:
    body = "x = {np.int64(i) for i in range(COUNT)}"
    text = KERNEL.replace("import nki\n", "import nki\nimport numpy as np\n", 1)
    for count, fits in ((100, True), (600, False)):
        source = SourceFile("k.py", text.replace("BODY", body.replace("COUNT", str(count))))
        options: dict[str, Any] = {"inputs": {"a": "f32[128,64]"}, "evaluate": "closed"}
        if fits:
            nkic.compile(source, limits={"steps": 100_000}, **options)
            continue
        with pytest.raises(nkic.CompileError, match="within 100,000 steps"):
            nkic.compile(source, limits={"steps": 100_000}, **options)
