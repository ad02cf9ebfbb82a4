"""Tensor indirection on trn3: gathers and scatters by compute engines, against NumPy indexing."""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent, indent
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nkic.artifact.assemble import assemble
from nkic.artifact.disassemble import dump
from nkic.artifact.encode import write
from nkic.artifact.read import read
from nkic.artifact.records import InstructionRecord, OffsetRecord, PatternRecord, StreamRecord
from nkic.artifact.verify import verify
from nkic.base.diagnostics import ArtifactFailed, CompileFailed, ProgramFault
from nkic.base.source import SourceFile
from nkic.compiler.compiled import CompileOptions
from nkic.compiler.pipeline import compile_source
from nkic.machine.instructions import ROWS
from nkic.machine.targets import TRN3
from nkic.program.text import program_text, read_program
from nkic.simulate import simulate
from nkic.specialise.inline import parse_arg
from nkic.specialise.request import Request

Array = NDArray[Any]
RNG = np.random.default_rng(5)
HEADER = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel({names}):
"""
LOADS = """
    x = nl.ndarray(({p}, 40), dtype=nl.float32, buffer=nl.{buffer})
    i = nl.ndarray(idx.shape, dtype=nl.uint32, buffer=nl.sbuf)
    nisa.dma_copy(dst=i, src=idx)
    s = nl.ndarray(({p}, 40), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=s, src=a)
    nisa.tensor_copy(dst=x, src=s)
    y = nl.ndarray(({p}, 40), dtype=nl.float32, buffer=nl.{to})
    nisa.memset(dst=y, value=-1.0)
    {body}
    z = nl.ndarray(({p}, 40), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=z, src=y)
    out = nl.ndarray(({p}, 40), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=z)
    return out
"""
COUNT = 24


def compiled(text: str, types: dict[str, str]) -> Any:
    text = HEADER.format(names=", ".join(types)) + text
    args = dict(parse_arg(f"{name}={kind}") for name, kind in types.items())
    request = Request(args=args, target=TRN3)
    return compile_source(SourceFile("k.py", text), request, lambda *_: None, CompileOptions())


def snake(offsets: Array, partitions: int, lanes: int) -> Array:
    """Return the index tile: offset i in row i % lanes, column i // lanes, and 9999 elsewhere."""
    held = np.full((partitions, -(-len(offsets) // lanes)), 9999, np.uint32)
    for number, offset in enumerate(offsets):
        held[number % lanes, number // lanes] = offset
    return held


def offsets() -> Array:
    return RNG.permutation(40)[:COUNT]


def run(body: str, index: Array, data: Array, buffer: str = "sbuf", to: str = "sbuf") -> Array:
    text = LOADS.format(p=len(data), buffer=buffer, to=to, body=dedent(body).strip())
    types = {"a": f"float32[{len(data)},40]", "idx": f"uint32[{len(index)},{index.shape[1]}]"}
    done = compiled(text, types)
    found = simulate(done.executable, {"a": data, "idx": index}).outputs["output_0"]
    return np.asarray(found)


def numbers(partitions: int = 64) -> Array:
    return RNG.standard_normal((partitions, 40)).astype(np.float32)


GATHERS = {
    "tensor_copy": ("src={}", lambda g: g),
    "tensor_tensor": ("data1={}, data2=s[:, 0:24], op=nl.subtract", None),
    "tensor_scalar": ("data={}, op0=nl.multiply, operand0=3.0", lambda g: g * np.float32(3)),
    "activation": ("op=nl.square, data={}", lambda g: g * g),
    "tensor_scalar_cumulative": ("src={}, op0=nl.multiply, op1=nl.maximum, imm0=1.0", None),
}


@pytest.mark.parametrize("name", sorted(GATHERS))
@pytest.mark.parametrize("buffer", ["sbuf", "psum"])
def test_a_source_is_gathered_by_columns(name: str, buffer: str) -> None:
    words, expected = GATHERS[name]
    data, at = numbers(), offsets()
    call = f"nisa.{name}(dst=y[:, 0:24], {words.format('x.indirect(i, num_elem=24)')})"
    found = run(call, snake(at, 64, 16), data, buffer)
    gathered = data[:, at]
    if name == "tensor_tensor":
        wanted = gathered - data[:, :24]
    elif expected is None:
        wanted = np.maximum.accumulate(gathered, axis=1)
    else:
        wanted = expected(gathered)
    np.testing.assert_array_equal(found[:, :24], wanted)
    assert (found[:, 24:] == -1).all()


@pytest.mark.parametrize("to", ["sbuf", "psum"])
@pytest.mark.parametrize("partitions", [16, 128])
def test_a_destination_is_scattered_by_columns(to: str, partitions: int) -> None:
    data, at = numbers(partitions), offsets()
    call = "nisa.tensor_copy(dst=y.indirect(i, num_elem=24), src=x[:, 0:24])"
    found = run(call, snake(at, partitions, 16), data, to=to)
    wanted = np.full((partitions, 40), -1, np.float32)
    wanted[:, at] = data[:, :24]
    np.testing.assert_array_equal(found, wanted)


def test_all_offsets_are_the_default() -> None:
    data, at = numbers(16), RNG.integers(0, 40, 32)
    found = run("nisa.tensor_copy(dst=y[:, 0:32], src=x.indirect(i))", snake(at, 16, 16), data)
    np.testing.assert_array_equal(found[:, :32], data[:, at])


def test_a_predicate_that_is_gathered_and_a_dst_that_is_scattered() -> None:
    data, at = numbers(), offsets()
    body = """
    p = nl.ndarray((64, 40), dtype=nl.uint8, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=p, data=x, op0=nl.greater, operand0=0.0)
    nisa.tensor_copy_predicated(dst=y.indirect(i, 24), src=7.0, predicate=p.indirect(i, 24))
    """
    found = run(indent(dedent(body), "    ").strip(), snake(at, 64, 16), data)
    wanted = np.full((64, 40), -1, np.float32)
    wanted[:, at] = np.where(data[:, at] > 0, 7, -1)
    np.testing.assert_array_equal(found, wanted)


def test_a_reduction_of_what_is_gathered() -> None:
    data, at = np.rint(numbers() * 100), offsets()
    body = "nisa.tensor_reduce(dst=y[:, 0:1], op=nl.add, data=x.indirect(i, 24), axis=1)"
    found = run(body, snake(at, 64, 16), data)
    np.testing.assert_array_equal(found[:, 0], data[:, at].sum(1))


def test_the_tensor_engine_spreads_offsets_over_32_partitions() -> None:
    data, at = np.rint(numbers() * 8), offsets()
    body = """
    b = nl.ndarray((64, 40), dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.tensor_copy(dst=b, src=x)
    q = nl.ndarray((24, 24), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=q, stationary=b[:, 0:24], moving=b.indirect(i, num_elem=24))
    nisa.tensor_copy(dst=y[0:24, 0:24], src=q)
    """
    found = run(indent(dedent(body), "    ").strip(), snake(at, 64, 32), data)
    wanted = data[:, :24].T.astype(np.float64) @ data[:, at]
    np.testing.assert_array_equal(found[:24, :24], wanted)


def test_an_offset_outside_the_tile_is_a_fault() -> None:
    index = snake(np.array([3, 40] * 12), 64, 16)
    with pytest.raises(ProgramFault, match="index 40 is outside `x`; valid indices are 0 to 39"):
        run("nisa.tensor_copy(dst=y[:, 0:24], src=x.indirect(i, 24))", index, numbers())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("nisa.tensor_copy(dst=y[:, 0:24], src=x.indirect(i, 24)[:, 0:12])", "cannot be indexed"),
        ("nisa.tensor_copy(dst=y[:, 0:33], src=x.indirect(i, 33))", "holds 32 for this"),
        ("nisa.tensor_copy(dst=y[:, 0:24], src=x.indirect(s, 24))", "an index of float32"),
        (
            "nisa.tensor_copy(dst=y[32:64, 0:24], src=x[0:32, :].indirect(i[32:64, :], 24))",
            "starts at partition 32, but must start where `src` does, at 0",
        ),
        ("nisa.tensor_tensor(y[:, 0:24], y[:, 0:24], x.indirect(i, 24), nl.add)", "`data2` cannot"),
        ("nisa.tensor_copy(dst=y[:, 0:24], src=a.indirect(i, 24))", "indirect works on chip"),
        ("nisa.dma_copy(dst=y[:, 0:24], src=x.indirect(i, 24))", "must be in hbm"),
        ("nisa.tensor_copy(y[:, 0:24], x.indirect(i, 24), nisa.engine.gpsimd)", "gpsimd"),
    ],
)
def test_what_indirection_refuses(call: str, message: str) -> None:
    with pytest.raises(CompileFailed) as caught:
        run(call, snake(offsets(), 64, 16), numbers())
    assert message in caught.value.diagnostics[0].message


TAKES = {
    "tensor_copy": "dst src",
    "tensor_copy_predicated": "dst predicate",
    "tensor_tensor": "dst data1",
    "tensor_scalar": "dst data",
    "tensor_reduce": "dst data",
    "tensor_scalar_cumulative": "dst src",
    "tensor_scalar_reduce": "dst data",
    "activation": "dst data",
    "activation_reduce": "dst data",
    "activate2": "dst data",
    "exponential": "dst src",
    "nc_matmul": "dst stationary moving",
    "nc_matmul_mx": "dst stationary moving stationary_scale moving_scale",
}


def test_which_operands_take_it() -> None:
    """The paragraphs on tensor indirection of nki.isa, and the release notes of NKI 0.5.0."""
    found = {
        name: " ".join(o.name for o in row.operands if o.indexed)
        for name, row in ROWS.items()
        if row.streams and any(o.indexed for o in row.operands)
    }
    assert found == TAKES


COPY = "nisa.tensor_copy(dst=y[:, 0:24], src=x.indirect(i, 24))"


def gathering(p: int = 64) -> Any:
    text = LOADS.format(p=p, buffer="sbuf", to="sbuf", body=COPY)
    return compiled(text, {"a": f"float32[{p},40]", "idx": f"uint32[{p},2]"})


def test_the_file_its_listing_and_the_printed_program_hold_it() -> None:
    executable = gathering().executable
    assert read(write(executable)).streams == executable.streams
    assert " by columns +2 stride 1 limit 40 axis 1" in dump(executable)
    assert assemble(dump(executable)).streams == executable.streams
    lowered = gathering().results["lower"]
    printed = program_text(lowered)
    assert " by columns " in printed
    assert program_text(read_program(printed)) == printed


@pytest.mark.parametrize("stride", [0, 1, 3, -1])
@pytest.mark.parametrize("limit", [1, 40, 2**62])
def test_a_file_that_claims_other_strides_and_limits(stride: int, limit: int) -> None:
    """Accesses inside the tensor run, others fault; no other exception is raised."""
    executable = gathering().executable
    changed = replace(
        executable, streams=tuple(_claims(s, stride, limit) for s in executable.streams)
    )
    index = snake(np.arange(24), 64, 16)
    try:
        verify(changed)
        found = simulate(changed, {"a": numbers(), "idx": index}).outputs["output_0"]
    except (ArtifactFailed, ProgramFault) as error:
        assert stride not in (0, 1) or limit < 24, error
        return
    assert np.asarray(found).shape == (64, 40)


def _claims(stream: StreamRecord, stride: int, limit: int) -> StreamRecord:
    def operand(value: Any) -> Any:
        if not isinstance(value, PatternRecord) or value.kind != "columns":
            return value
        kind, source, _, _, axis = value.dynamic or OffsetRecord("", 0, 0, 0, 0)
        return value._replace(dynamic=OffsetRecord(kind, source, stride, limit, axis))

    items = tuple(
        item._replace(operands=tuple(map(operand, item.operands)))
        if isinstance(item, InstructionRecord)
        else item
        for item in stream.items
    )
    return stream._replace(items=items)
