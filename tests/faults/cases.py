"""The cases: the samples, and kernels with constructs that these lack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.artifact.records import Executable
from nkic.base.source import SourceFile
from nkic.compiler.compiled import Compiled
from nkic.compiler.loader import Loader
from nkic.compiler.pipeline import compile_source
from nkic.compiler.request import parse_options, request_for
from nkic.machine.codecs import storage
from nkic.prove import Finding, prove_addresses, prove_order, read
from nkic.prove.effects import Reading
from nkic.simulate import RunOptions, simulate
from nkic.specialise.request import RequestOptions
from samples.run import case_inputs, cases, folders

LIMIT = 5_000_000  # cycles: a loop that a fault made endless
Arrays = Mapping[str, NDArray[Any]]
LOOPS = """
# /// nkic
# kernel = "kernel"
# [args]
# a = "float32[128, 64]"
# n = "int32[1, 1]"
# ///
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a, n):
    x = nl.load(a)
    count, one = nl.load(n), nl.full((1, 1), 1, dtype=nl.int32)
    reg = nisa.register_alloc()
    nisa.register_load(reg, count)

    def body(r):
        again = nisa.register_alloc()
        y = nl.ndarray(a.shape, a.dtype, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=y, data=x, op0=nl.multiply, operand0=0.5)
        nisa.tensor_tensor(dst=x, data1=y, data2=y, op=nl.add, engine=nisa.engine.gpsimd)
        nisa.tensor_tensor(dst=count, data1=count, data2=one, op=nl.subtract)
        nisa.register_load(again, count)
        return again

    nl.while_loop(reg, body)

    def column(i):
        nisa.tensor_tensor(dst=x[:, nl.ds(i, 1)], data1=x[:, nl.ds(i, 1)], data2=x[:, 0:1],
                           op=nl.add)

    nl.fori_loop(1, 8, column)
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    nl.store(out, x)
    return out
"""
ITERATIONS = """
# /// nkic
# kernel = "kernel"
# [args]
# a = "float32[128, 512]"
# ///
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    total = nl.full((128, 64), 0.0, dtype=a.dtype)

    def body(i):
        x = nl.load(a[:, nl.ds(i, 64)])
        y = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)
        z = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)
        nisa.activation(dst=y, op=nl.exp, data=x)
        nisa.tensor_tensor(dst=z, data1=x, data2=y, op=nl.add, engine=nisa.engine.gpsimd)
        nisa.tensor_tensor(dst=total, data1=total, data2=z, op=nl.multiply)
        nisa.tensor_tensor(dst=y, data1=total, data2=y, op=nl.add)
        nl.store(out[:, nl.ds(i, 64)], y)

    nl.fori_loop(0, 512, body, step=64)
    return out
"""
NESTED = """
# /// nkic
# kernel = "kernel"
# [args]
# a = "float32[128, 512]"
# ///
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    total = nl.full((128, 64), 0.0, dtype=a.dtype)
    x = nl.ndarray((128, 64), a.dtype, nl.sbuf)
    y = nl.ndarray((128, 64), a.dtype, nl.sbuf)

    def body(i):
        nisa.dma_copy(x, a[:, nl.ds(i, 64)])
        nisa.tensor_tensor(dst=x, data1=x, data2=total, op=nl.add, engine=nisa.engine.gpsimd)

        def inner(k):
            nisa.activation(dst=y[:, nl.ds(k, 16)], op=nl.exp, data=x[:, nl.ds(k, 16)])
            nisa.tensor_tensor(dst=x, data1=x, data2=x, op=nl.multiply)

        nl.fori_loop(0, 64, inner, step=16)
        nisa.tensor_tensor(dst=total, data1=x, data2=y, op=nl.maximum)
        nisa.tensor_tensor(dst=y, data1=y, data2=x, op=nl.multiply, engine=nisa.engine.gpsimd)
        nisa.dma_copy(out[:, nl.ds(i, 64)], y)

    nl.fori_loop(0, 512, body, step=64)
    return out
"""
CORES = """
# /// nkic
# kernel = "kernel"
# lnc = 2
# grid = "2"
# [args]
# a = "float32[256, 64]"
# ///
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    core = nl.program_id(0)
    mine, other = nl.ds(core * 128, 128), nl.ds((1 - core) * 128, 128)
    x = nl.ndarray((128, 64), a.dtype, nl.sbuf)
    y = nl.ndarray((128, 64), a.dtype, nl.sbuf)
    z = nl.ndarray((128, 64), a.dtype, nl.sbuf)
    shared = nl.ndarray((256, 64), a.dtype, nl.shared_hbm)
    out = nl.ndarray((256, 64), a.dtype, nl.shared_hbm)
    nisa.dma_copy(x, a[mine])
    nisa.tensor_scalar(dst=x, data=x, op0=nl.add, operand0=2.0)
    nisa.dma_copy(shared[mine], x)
    nisa.core_barrier(shared, (0, 1))
    nisa.dma_copy(y, shared[other])
    nisa.sendrecv(dst=z, src=y, send_to_rank=1 - core, recv_from_rank=1 - core, pipe_id=0)
    nisa.tensor_tensor(dst=z, data1=z, data2=y, op=nl.subtract)
    nisa.dma_copy(out[mine], z)
    return out
"""
STATE = """
# /// nkic
# kernel = "kernel"
# [args]
# a = "float32[128, 64]"
# ///
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    x = nl.load(a)
    sums = nl.ndarray((128, 4), a.dtype, nl.sbuf)
    for i in range(4):
        y = nl.ndarray((128, 64), a.dtype, nl.sbuf)
        command = nisa.reduce_cmd.reset_reduce if i % 2 == 0 else nisa.reduce_cmd.reduce
        nisa.activation(dst=y, op=nl.exp, data=x, scale=0.5 + i, reduce_op=nl.add,
                        reduce_res=sums[:, i : i + 1], reduce_cmd=command)
    reg = nisa.register_alloc()
    word = nl.full((1, 1), 7, dtype=nl.int32)
    nisa.register_load(reg, word)
    left = nl.ndarray((1, 1), nl.int32, buffer=nl.sbuf)
    nisa.register_store(left, reg)
    nisa.register_move(reg, 9)
    last = nl.ndarray((1, 1), nl.int32, buffer=nl.sbuf)
    nisa.register_store(last, reg)
    out = nl.ndarray((128, 4), a.dtype, buffer=nl.shared_hbm)
    nl.store(out, sums)
    words = nl.ndarray((1, 2), nl.int32, buffer=nl.shared_hbm)
    nl.store(words[:, 0:1], left)
    nl.store(words[:, 1:2], last)
    return out, words
"""
OWN = {
    "loops": LOOPS,
    "iterations": ITERATIONS,
    "nested": NESTED,
    "two_cores": CORES,
    "state": STATE,
}


@dataclass
class Subject:
    """A compiled kernel with inputs, and its outputs without a fault."""

    name: str
    compiled: Compiled
    inputs: Arrays
    readings: tuple[Reading, ...]
    outputs: dict[str, bytes]

    def stage(self, name: str) -> Any:
        return self.compiled.results[name]

    def addresses(self, placed: Any) -> list[Finding]:
        """Return the findings of the allocation's proof."""
        return prove_addresses(placed, self.readings)

    def order(self, schedule: Any) -> list[Finding]:
        """Return the findings of the schedule's proof."""
        return prove_order(self.stage("lower"), schedule, self.readings)


def names() -> list[str]:
    return [*(case.name for folder in folders() for case in cases(folder)), *OWN]


def subject(name: str) -> Subject:
    """Return the case of that name, compiled and run once."""
    if name in OWN:
        path, text, said = f"{name}.py", OWN[name], parse_options()
        rng = np.random.default_rng(0)
        shape = {"two_cores": (256, 64), "iterations": (128, 512), "nested": (128, 512)}.get(
            name, (128, 64)
        )
        inputs: Arrays = {"a": rng.standard_normal(shape).astype(np.float32)}
        if name == "loops":
            inputs = {**inputs, "n": np.full((1, 1), 3, np.int32)}
    else:
        case = next(c for f in folders() for c in cases(f) if c.name == name)
        path, inputs = str(case.folder / "kernel.py"), case_inputs(case)
        text = (case.folder / "kernel.py").read_text("utf-8")
        args = () if case.in_block else tuple(f"{n}={t}" for n, t in case.args.items())
        said = parse_options(kernel=None if case.in_block else case.kernel, args=args)
    compiled = _compiled(path, text, said)
    lowered = compiled.results["lower"]
    arrays = _bound(compiled.executable, inputs)
    outputs = outcome(compiled.executable, arrays)
    return Subject(name, compiled, arrays, read(lowered), outputs)


def _compiled(path: str, text: str, said: RequestOptions) -> Compiled:
    loader = Loader.beside(path)
    source: SourceFile = loader.main(path, text.encode("utf-8"))
    return compile_source(source, request_for(source, said, {}), loader)


def _bound(executable: Executable, inputs: Arrays) -> Arrays:
    """Return the inputs in the storage types of their elements."""
    types = {p.name: executable.tensors[p.tensor].dtype for p in executable.inputs}
    return {n: np.ascontiguousarray(a).view(storage(types[n])) for n, a in inputs.items()}


def outcome(executable: Executable, inputs: Arrays, races: bool = False) -> dict[str, bytes]:
    """Return the bytes of every output. Raises the exceptions of the runner."""
    options = RunOptions(max_cycles=LIMIT, timeout_s=60, check_races=races)
    result = simulate(executable, {n: a.copy() for n, a in inputs.items()}, options)
    return {name: array.tobytes() for name, array in result.outputs.items()}


def subjects(wanted: list[str]) -> Iterator[Subject]:
    """Return the cases of these names, or all."""
    for name in wanted or names():
        yield subject(name)
