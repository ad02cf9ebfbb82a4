"""Benchmarks: `make bench`, or `python -m tests.bench [parse compile simulate start size
instructions]`.

Prints Markdown. Ratios compare within one run; docs/benchmarks.md keeps the last results.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from subprocess import run
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.base.source import SourceFile
from nkic.driver.pipeline import Compiled, compile_source
from nkic.parse import parse
from nkic.simulate import simulate
from nkic.specialise.arguments import parse_arg
from nkic.specialise.request import Request
from tests.bench_instructions import bench_instructions

KERNELS = """
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def elementwise(a, b, width=512):
    M, N = a.shape
    out = nl.ndarray((M, N), dtype=a.dtype, buffer=nl.shared_hbm)
    for m in range(M // 128):
        for n in range(N // width):
            rows, columns = nl.ds(m * 128, 128), nl.ds(n * width, width)
            x = nl.ndarray((128, width), dtype=a.dtype, buffer=nl.sbuf)
            y = nl.ndarray((128, width), dtype=a.dtype, buffer=nl.sbuf)
            z = nl.ndarray((128, width), dtype=a.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=x, src=a[rows, columns])
            nisa.dma_copy(dst=y, src=b[rows, columns])
            nisa.tensor_tensor(dst=z, data1=x, data2=y, op=nl.add)
            nisa.dma_copy(dst=out[rows, columns], src=z)
    return out


@nki.jit
def matmul(a, b):
    K, M = a.shape
    _, N = b.shape
    out = nl.ndarray((M, N), dtype=nl.float32, buffer=nl.shared_hbm)
    for m in range(M // 128):
        for n in range(N // 512):
            acc = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
            for k in range(K // 128):
                left = nl.ndarray((128, 128), dtype=a.dtype, buffer=nl.sbuf)
                right = nl.ndarray((128, 512), dtype=b.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=left, src=a[k * 128 : (k + 1) * 128, m * 128 : (m + 1) * 128])
                nisa.dma_copy(dst=right, src=b[k * 128 : (k + 1) * 128, n * 512 : (n + 1) * 512])
                nisa.nc_matmul(dst=acc, stationary=left, moving=right, accumulate=k > 0)
            tile = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_copy(dst=tile, src=acc)
            nisa.dma_copy(dst=out[m * 128 : (m + 1) * 128, n * 512 : (n + 1) * 512], src=tile)
    return out
"""
Shapes = dict[str, str]


def compiled(kernel: str, args: Shapes, **consts: int) -> Compiled:
    """A kernel of KERNELS, compiled."""
    types = dict(parse_arg(f"{name}={text}") for name, text in args.items())
    request = Request(kernel=kernel, args=types, consts=consts)
    return compile_source(SourceFile("bench.py", KERNELS), request, lambda name, at: None)


def elementwise_args(instructions: int) -> Shapes:
    """Tiles of 128 x 64, so that the largest case stays small."""
    rows = max(1, round(instructions / 4 / 8)) * 128
    return dict.fromkeys("ab", f"float32[{rows}, 512]")


def matmul_args(instructions: int) -> Shapes:
    """K = 1024: 24 + 2 instructions for each 128 x 512 of the result."""
    columns = max(1, round(instructions / 26 / 4)) * 512
    return {"a": "bfloat16[1024, 512]", "b": f"bfloat16[1024, {columns}]"}


def seconds(action: Callable[[], Any], times: int = 5) -> float:
    """The shortest of a few runs: what else the machine does only adds to them."""
    taken = []
    for _ in range(times):
        before = time.perf_counter()
        action()
        taken.append(time.perf_counter() - before)
    return min(taken)


def bench_parse() -> None:
    text = KERNELS * 80
    lines = text.count("\n")
    parse(SourceFile("warm.py", "x = 1"))
    count = iter(range(1000))
    took = seconds(lambda: parse(SourceFile(f"{next(count)}.py", f"{text}# {next(count)}\n")))
    print(f"\n## Parse\n\n{lines:,} lines: {lines / took:,.0f} lines/s\n")


def _stages(kernel: str, args: Shapes, times: int, **consts: int) -> tuple[int, dict[str, float]]:
    """How many instructions there are, and the shortest time of each stage in nanoseconds."""
    found: dict[str, float] = {}
    for _ in range(times):
        done = compiled(kernel, args, **consts)
        for timing in done.timings:
            found[timing.stage] = min(timing.ns, found.get(timing.stage, timing.ns))
    return _count(done), found


def bench_compile() -> None:
    print("\n## Compile, µs per instruction\n")
    for kernel, args in (("elementwise", elementwise_args), ("matmul", matmul_args)):
        consts = {"width": 64} if kernel == "elementwise" else {}
        sizes = ((1_000, 20), (10_000, 5), (100_000, 1))
        columns = [_stages(kernel, args(n), times, **consts) for n, times in sizes]
        counts = [n for n, _ in columns]
        print(f"| {kernel} | " + " | ".join(f"{n:,} instr" for n in counts) + " |")
        print("|---|" + "---:|" * len(counts))
        for stage in columns[0][1]:
            cells = [f"{times[stage] / 1000 / n:.1f}" for n, times in columns]
            print(f"| {stage} | " + " | ".join(cells) + " |")
        totals = [sum(times.values()) for _, times in columns]
        cells = [f"{t / 1000 / n:.1f}" for t, n in zip(totals, counts, strict=True)]
        print("| **total** | " + " | ".join(cells) + " |")
        print("| seconds | " + " | ".join(f"{t / 1e9:.2f}" for t in totals) + " |\n")


def _count(done: Compiled) -> int:
    return sum(len(s.items) for s in done.executable.streams)


def bench_simulate() -> None:
    print("\n## Simulate, against NumPy on the same tiles\n")
    print("| case | instructions | NumPy ms | simulate ms | ratio | µs per instruction above |")
    print("|---|---:|---:|---:|---:|---:|")
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((8192, 4096)).astype(np.float32) for _ in "ab")
    _compare(
        "add f32 8192×4096",
        "elementwise",
        dict.fromkeys("ab", "float32[8192, 4096]"),
        {"a": a, "b": b},
        lambda: _numpy_add(a, b),
    )
    for size in (1024, 2048):
        x, y = (_bf16(rng.standard_normal((size, size)).astype(np.float32)) for _ in "ab")
        wide = [(v.astype(np.uint32) << 16).view(np.float32) for v in (x, y)]
        _compare(
            f"matmul bf16 {size}³",
            "matmul",
            dict.fromkeys("ab", f"bfloat16[{size}, {size}]"),
            {"a": x, "b": y},
            _numpy_matmul(wide[0], wide[1]),
        )


def _bf16(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    return (values.view(np.uint32) >> 16).astype(np.uint16)


def _compare(
    name: str, kernel: str, args: Shapes, inputs: dict[str, Any], floor: Callable[[], Any]
) -> None:
    executable = compiled(kernel, args).executable
    count = sum(len(s.items) for s in executable.streams)
    floor()
    ours = seconds(lambda: simulate(executable, inputs))
    theirs = seconds(floor)
    above = (ours - theirs) / count * 1e6
    print(
        f"| {name} | {count:,} | {theirs * 1e3:.1f} | {ours * 1e3:.1f} | {ours / theirs:.2f} "
        f"| {above:.1f} |"
    )


def _numpy_add(a: NDArray[np.float32], b: NDArray[np.float32]) -> None:
    """The same loads, adds and stores, tile by tile on preallocated arrays."""
    x, y, z = (np.empty((128, 512), np.float32) for _ in "xyz")
    out = _out(a.shape)
    for m in range(0, a.shape[0], 128):
        for n in range(0, a.shape[1], 512):
            np.copyto(x, a[m : m + 128, n : n + 512])
            np.copyto(y, b[m : m + 128, n : n + 512])
            np.add(x, y, out=z)
            np.copyto(out[m : m + 128, n : n + 512], z)


_OUT: dict[tuple[int, ...], NDArray[np.float32]] = {}


def _out(shape: tuple[int, ...]) -> NDArray[np.float32]:
    return _OUT.setdefault(shape, np.zeros(shape, np.float32))


def _numpy_matmul(a: NDArray[np.float32], b: NDArray[np.float32]) -> Callable[[], None]:
    """The same tiles; products in float32, which is what BLAS is fastest at."""
    left, right = np.empty((128, 128), np.float32), np.empty((128, 512), np.float32)
    product, total = np.empty((128, 512), np.float32), np.empty((128, 512), np.float32)
    out = _out((a.shape[1], b.shape[1]))

    def floor() -> None:
        for m in range(0, a.shape[1], 128):
            for n in range(0, b.shape[1], 512):
                total[...] = 0
                for k in range(0, a.shape[0], 128):
                    np.copyto(left, a[k : k + 128, m : m + 128])
                    np.copyto(right, b[k : k + 128, n : n + 512])
                    np.matmul(left.T, right, out=product)
                    np.add(total, product, out=total)
                np.copyto(out[m : m + 128, n : n + 512], total)

    return floor


def bench_start() -> None:
    print("\n## Start-up, ms\n\n| command | ms |\n|---|---:|")
    for module in ("nkic.cli.nkic", "nkic.cli.nki_run"):
        for flag in (["--version"], ["--help"], ["--explain", "NKI0501"]):
            command = [sys.executable, "-m", module, *flag]
            took = seconds(partial(run, command, capture_output=True, check=True), 5)
            print(f"| `{module.rsplit('.', 1)[1]} {' '.join(flag)}` | {took * 1e3:.0f} |")
    bare = seconds(lambda: run([sys.executable, "-c", ""], check=True), 5)
    print(f"| bare python | {bare * 1e3:.0f} |")


def bench_size() -> None:
    """At size: a 2048³ bfloat16 product, compile and run."""
    print("\n## At size\n\n| case | instructions | compile s | run s | simulated µs |")
    print("|---|---:|---:|---:|---:|")
    rng = np.random.default_rng(0)
    x, y = (_bf16(rng.standard_normal((2048, 2048)).astype(np.float32)) for _ in "ab")
    before = time.perf_counter()
    done = compiled("matmul", dict.fromkeys("ab", "bfloat16[2048, 2048]"))
    middle = time.perf_counter()
    result = simulate(done.executable, {"a": x, "b": y})
    end = time.perf_counter()
    print(
        f"| matmul 2048³ bf16 | {_count(done):,} | {middle - before:.2f} | {end - middle:.2f} "
        f"| {result.time_ns / 1000:,.0f} |"
    )


BENCHES = {
    "parse": bench_parse,
    "compile": bench_compile,
    "simulate": bench_simulate,
    "start": bench_start,
    "size": bench_size,
    "instructions": bench_instructions,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or BENCHES:
        BENCHES[name]()
