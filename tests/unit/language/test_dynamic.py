"""Test device loops, registers and run-time offsets: kernels through the whole pipeline, against
NumPy.
"""

from __future__ import annotations

from ast import literal_eval
from textwrap import dedent, indent

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from nkic.base.diagnostics import CompileFailed, ProgramFault
from nkic.base.profiles import Profile
from nkic.base.source import SourceFile
from nkic.compiler.compiled import CompileOptions
from nkic.compiler.pipeline import compile_source
from nkic.simulate import simulate
from nkic.specialise.inline import parse_arg
from nkic.specialise.request import Request

HEADER = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel({names}):
"""
START = """
t = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
nisa.dma_copy(dst=t, src=a)
c = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
nisa.dma_copy(dst=c, src=n)
r = nisa.register_alloc()
nisa.register_load(r, c)
"""
END = """
out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out, src=t)
return out
"""
ADD = "nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=1.0)"
DATA = np.arange(128 * 64, dtype=np.float32).reshape(128, 64)
RANDOM = np.random.default_rng(11)
Arrays = dict[str, NDArray[np.generic]]


def run(body: str, types: dict[str, str], inputs: Arrays, serial: bool = False) -> Arrays:
    text = HEADER.format(names=", ".join(types)) + indent(dedent(body).strip("\n"), "    ") + "\n"
    args = dict(parse_arg(f"{name}={kind}") for name, kind in types.items())
    former = Profile.NKI_0_6  # the last version with all forms of loops
    wanted, options = Request(args=args, profile=former), CompileOptions(serial=serial)
    done = compile_source(SourceFile("k.py", text), wanted, lambda *_: None, options)
    return dict(simulate(done.executable, inputs).outputs)


def counted(body: str, number: int, serial: bool = False) -> NDArray[np.generic]:
    """Return the kernel with a tile `t`, a counter tile `c` and a register `r` that holds
    `number`.
    """
    types = {"a": "float32[128,64]", "n": "int32[1,1]"}
    inputs: Arrays = {"a": DATA, "n": np.full((1, 1), number, np.int32)}
    return run(START + dedent(body) + END, types, inputs, serial)["output_0"]


@pytest.mark.parametrize("serial", [False, True])
@pytest.mark.parametrize("number", [0, 1, 5])
def test_a_loop_bounded_by_a_register(number: int, serial: bool) -> None:
    found = counted(f"for i in nl.dynamic_range(r):\n    {ADD}\n", number, serial)
    assert np.array_equal(found, DATA + number)


def test_start_and_step() -> None:
    found = counted(f"for i in nl.dynamic_range(1, r, 3):\n    {ADD}\n", 10)
    assert np.array_equal(found, DATA + 3)  # 1, 4, 7


@pytest.mark.parametrize("number", [0, 4])
def test_while_a_register_is_not_zero(number: int) -> None:
    body = f"""
    one = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.memset(dst=one, value=1)
    while r:
        for j in nl.dynamic_range(2):
            {ADD}
        nisa.tensor_tensor(dst=c, data1=c, data2=one, op=nl.subtract)
        nisa.register_load(r, c)
    """
    assert np.array_equal(counted(body, number), DATA + 2 * number)


def test_fori_loop_with_a_nested_function() -> None:
    body = f"""
    def body(i):
        {ADD}

    nl.fori_loop(0, r, body)
    """
    assert np.array_equal(counted(body, 3), DATA + 3)


def test_a_register_changed_after_the_loop_it_bounded() -> None:
    body = f"""
    for i in nl.dynamic_range(r):
        {ADD}
    nisa.register_move(r, 2)
    for i in nl.dynamic_range(r):
        {ADD}
    """
    assert np.array_equal(counted(body, 5), DATA + 7)


def test_a_register_stored_and_loaded() -> None:
    body = f"""
    d = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.register_store(d, r)
    s = nisa.register_alloc()
    nisa.register_load(s, d)
    for i in nl.dynamic_range(s):
        {ADD}
    """
    assert np.array_equal(counted(body, 6), DATA + 6)


COPIES = """
out = nl.ndarray((4, 128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
t = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
for i in {loop}(4):
    nisa.dma_copy(dst=t, src={source})
    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=2.0)
    nisa.dma_copy(dst={target}, src=t)
return out
"""
BY_REGISTER = "{0}.ap([[64, 128], [1, 64]], scalar_offset=i, indirect_dim=0)"


def test_offsets_by_the_loop_counter_do_what_the_unrolled_loop_does() -> None:
    data = np.random.default_rng(0).standard_normal((4, 128, 64)).astype(np.float32)
    types, inputs = {"a": "float32[4,128,64]"}, {"a": data}
    dynamic = COPIES.format(
        loop="nl.dynamic_range", source=BY_REGISTER.format("a"), target=BY_REGISTER.format("out")
    )
    unrolled = COPIES.format(loop="range", source="a[i]", target="out[i]")
    first = run(dynamic, types, dict(inputs))["output_0"]
    second = run(unrolled, types, dict(inputs))["output_0"]
    assert np.array_equal(first, second)
    assert np.array_equal(first, data * 2)


GATHER = """
out = nl.ndarray((96, 64), dtype=nl.float32, buffer=nl.shared_hbm)
i = nl.ndarray((96, 1), dtype=nl.int32, buffer=nl.sbuf)
nisa.dma_copy(dst=i, src=idx)
t = nl.ndarray((96, 64), dtype=nl.float32, buffer=nl.sbuf)
nisa.memset(dst=t, value=-1.0)
nisa.dma_copy(
    dst=t,
    src=data.ap([[64, 96], [1, 64]], vector_offset=i, indirect_dim=0),
    oob_mode=nisa.oob_mode.{mode},
)
nisa.dma_copy(dst=out, src=t)
return out
"""
SCATTER = """
i = nl.ndarray((96, 1), dtype=nl.int32, buffer=nl.sbuf)
nisa.dma_copy(dst=i, src=idx)
t = nl.ndarray((96, 64), dtype=nl.float32, buffer=nl.sbuf)
nisa.dma_copy(dst=t, src=data[0:96, :])
nisa.dma_copy(dst=table.ap([[64, 96], [1, 64]], vector_offset=i, indirect_dim=0), src=t)
return table
"""
GATHERED = {"data": "float32[300,64]", "idx": "int32[96,1]"}
ROWS = np.random.default_rng(1).standard_normal((300, 64)).astype(np.float32)


def indices() -> NDArray[np.int32]:
    return np.random.default_rng(2).permutation(300)[:96].astype(np.int32)[:, None]


def test_gather_by_an_index_tile() -> None:
    idx = indices()
    found = run(GATHER.format(mode="error"), GATHERED, {"data": ROWS, "idx": idx})
    assert np.array_equal(found["output_0"], ROWS[idx[:, 0]])


def test_scatter_by_an_index_tile() -> None:
    idx = indices()
    types = {**GATHERED, "table": "float32[300,64]"}
    found = run(SCATTER, types, {"data": ROWS, "idx": idx, "table": np.zeros_like(ROWS)})
    expected = np.zeros_like(ROWS)
    expected[idx[:, 0]] = ROWS[:96]
    assert np.array_equal(found["output_0"], expected)


def test_an_index_outside_is_a_fault_or_skipped() -> None:
    idx = indices()
    idx[7], idx[8] = 300, -1
    with pytest.raises(ProgramFault, match="index 300 is outside `data`") as caught:
        run(GATHER.format(mode="error"), GATHERED, {"data": ROWS, "idx": idx})
    assert caught.value.diagnostics[0].code.slug == "index-outside"
    found = run(GATHER.format(mode="skip"), GATHERED, {"data": ROWS, "idx": idx})["output_0"]
    expected = ROWS[np.clip(idx[:, 0], 0, 299)]
    expected[7:9] = -1.0
    assert np.array_equal(found, expected)


FOLDED = """
out = nl.ndarray(({p}, {f}), dtype=nl.float32, buffer=nl.shared_hbm)
i = nl.ndarray((96, 1), dtype=nl.int32, buffer=nl.sbuf)
nisa.dma_copy(dst=i, src=idx)
rows = data.ap([[64, 96], [1, 64]], vector_offset=i, indirect_dim=0)
t = nl.ndarray(({p}, {f}), dtype=nl.float32, buffer=nl.{buffer})
nisa.dma_copy(dst=t, src=rows)
nisa.dma_copy(dst=out, src=t)
return out
"""


@pytest.mark.parametrize(
    ("shape", "buffer"), [((96, 64), "hbm"), ((48, 128), "sbuf"), ((8, 768), "hbm")]
)
def test_gathered_rows_may_be_runs_of_other_dimensions(shape: tuple[int, int], buffer: str) -> None:
    idx, body = indices(), FOLDED.format(p=shape[0], f=shape[1], buffer=buffer)
    found = run(body, GATHERED, {"data": ROWS, "idx": idx})["output_0"]
    assert np.array_equal(found, ROWS[idx[:, 0]].reshape(shape))


TRANSPOSED = """
out = nl.ndarray((64, 96), dtype=nl.int16, buffer=nl.shared_hbm)
i = nl.ndarray((96, 1), dtype=nl.uint32, buffer=nl.sbuf)
nisa.dma_copy(dst=i, src=idx)
t = nl.ndarray((64, 96), dtype=nl.int16, buffer=nl.sbuf)
nisa.memset(dst=t, value=-1)
src = data.ap([[64, 96], [1, 64]], vector_offset=i, indirect_dim=0)
nisa.dma_transpose(dst=t, src=src, axes=(1, 0), oob_mode=nisa.oob_mode.skip)
nisa.dma_copy(dst=out, src=t)
return out
"""


def test_a_gathering_transpose_leaves_out_what_is_outside() -> None:
    """Release notes of NKI 0.5.0: rows out of bounds do not overwrite dst. Bits are kept."""
    data = np.random.default_rng(3).integers(-(2**15), 2**15, (300, 64), np.int16)
    idx = indices().astype(np.uint32)
    idx[5] = 300
    types = {"data": "int16[300,64]", "idx": "uint32[96,1]"}
    expected = data[np.minimum(idx[:, 0], 299)].T.copy()
    expected[:, 5] = -1
    assert np.array_equal(run(TRANSPOSED, types, {"data": data, "idx": idx})["output_0"], expected)


def test_skipping_keeps_the_bits_of_integers() -> None:
    """Release notes of NKI 0.4.0: there is no intermediate cast to float32."""
    data = np.random.default_rng(4).integers(-(2**31), 2**31, (300, 64), np.int32)
    idx = indices()
    types = {"data": "int32[300,64]", "idx": "int32[96,1]"}
    body = GATHER.format(mode="skip").replace("float32", "int32").replace("-1.0", "-1")
    found = run(body, types, {"data": data, "idx": idx})["output_0"]
    assert np.array_equal(found, data[idx[:, 0]])


MODIFY = """
i = nl.ndarray((96, 1), dtype=nl.int32, buffer=nl.sbuf)
nisa.dma_copy(dst=i, src=idx)
t = nl.ndarray((96, 64), dtype=nl.bfloat16, buffer=nl.sbuf)
nisa.dma_copy(dst=t, src=data[0:96, :])
rows = table.ap([[64, 96], [1, 64]], vector_offset=i, indirect_dim=0)
nisa.dma_compute({dst}, [{first}, {second}], nl.add, oob_mode=nisa.oob_mode.{mode})
{end}
"""
SUMS = {"data": "float32[300,64]", "idx": "int32[96,1]", "table": "float32[300,64]"}


@pytest.mark.parametrize("order", [("rows", "t"), ("t", "rows")])
@pytest.mark.parametrize("mode", ["error", "skip"])
def test_dma_compute_adds_to_the_rows_that_indices_name(order: tuple[str, str], mode: str) -> None:
    idx, table = indices(), ROWS[::-1].copy()
    if mode == "skip":
        idx[3], idx[95] = -5, 300
    text = MODIFY.format(dst="rows", first=order[0], second=order[1], mode=mode, end="return table")
    found = run(text, SUMS, {"data": ROWS, "idx": idx, "table": table.copy()})["output_0"]
    expected = table.copy()
    for row, at in zip(bfloat16(ROWS[:96]), idx[:, 0], strict=True):
        if 0 <= at < 300:
            expected[at] += row
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("mode", ["error", "skip"])
def test_dma_compute_adds_the_rows_that_indices_name(mode: str) -> None:
    idx, table = indices(), ROWS[::-1].copy()
    if mode == "skip":
        idx[3], idx[95] = -5, 300
    end = """
o = nl.ndarray((96, 64), dtype=nl.float32, buffer=nl.shared_hbm)
nisa.dma_copy(dst=o, src=t)
return o
"""
    text = MODIFY.format(dst="t", first="rows", second="t", mode=mode, end=end)
    found = run(text, SUMS, {"data": ROWS, "idx": idx, "table": table})["output_0"]
    expected = bfloat16(ROWS[:96])
    for number, at in enumerate(idx[:, 0]):
        if 0 <= at < 300:
            expected[number] = bfloat16(expected[number] + table[at])
    assert np.array_equal(found, expected)


def bfloat16(values: NDArray[np.float32]) -> NDArray[np.float32]:
    return values.astype(ml_dtypes.bfloat16).astype(np.float32)


TRANSPOSED_2D = """
out = nl.ndarray({out}, dtype=nl.bfloat16, buffer=nl.shared_hbm)
i = nl.ndarray((128, 2), dtype=nl.uint32, buffer=nl.sbuf)
nisa.dma_copy(dst=i, src=idx)
t = nl.ndarray({out}, dtype=nl.bfloat16, buffer=nl.sbuf)
nisa.dma_transpose(dst=t, src=data.ap({pattern}, vector_offset=i, indirect_dim=0))
nisa.dma_copy(dst=out, src=t)
return out
"""


@pytest.mark.parametrize("rows", [256, 160])
@pytest.mark.parametrize("inner", [(64,), (3, 1, 20)])
def test_a_transpose_gathers_down_the_columns_of_its_indices(
    rows: int, inner: tuple[int, ...]
) -> None:
    """nki.isa.dma_transpose: flat_indices = indices.T.flatten()[: rows]."""
    data = RANDOM.standard_normal((300, *inner)).astype(ml_dtypes.bfloat16)
    idx = RANDOM.integers(0, 300, (128, 2), np.uint32)
    steps = [int(np.prod(inner[n:])) for n in range(len(inner) + 1)]
    pattern = [list(pair) for pair in zip(steps, (rows, *inner), strict=True)]
    out = (*inner[-1:], *inner[:-1], rows)
    text = TRANSPOSED_2D.format(out=out, pattern=pattern)
    types = {"data": f"bfloat16[{','.join(map(str, data.shape))}]", "idx": "uint32[128,2]"}
    found = run(text, types, {"data": data.view(np.uint16), "idx": idx})["output_0"]
    gathered = data[idx.T.ravel()[:rows]]
    axes = (1, 0) if len(inner) == 1 else (3, 1, 2, 0)
    assert np.array_equal(found, gathered.transpose(axes).view(np.uint16))


REFUSED_INDICES = {
    "(128, 2)": "is [128, 2] for 96 rows, but must be [96, 1]",
    "(96, 1)": "",
}


@pytest.mark.parametrize("shape", sorted(REFUSED_INDICES))
def test_a_copy_takes_one_index_for_each_row(shape: str) -> None:
    body = GATHER.format(mode="error").replace("(96, 1)", shape)
    types = {**GATHERED, "idx": f"int32[{shape[1:-1].replace(' ', '')}]"}
    inputs = {"data": ROWS, "idx": np.zeros(literal_eval(shape), np.int32)}
    if not REFUSED_INDICES[shape]:
        run(body, types, inputs)
        return
    with pytest.raises(CompileFailed) as caught:
        run(body, types, inputs)
    assert REFUSED_INDICES[shape] in caught.value.diagnostics[0].message


COUNTED = """
t = nl.ndarray((128, 63), dtype=nl.int32, buffer=nl.sbuf)
nisa.dma_copy(dst=t[0:1, :], src=data)
n = nl.ndarray((128, 64), dtype=nl.int32, buffer=nl.sbuf)
nisa.nonzero_with_count(dst=n, src=t)
out = nl.ndarray((1, 64), dtype=nl.int32, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out, src=n[0:1, :])
return out
"""


def test_partitions_that_do_not_count_need_not_be_written() -> None:
    """Published kernels of nonzero_with_count fill one partition of src."""
    data = RANDOM.integers(0, 2, (1, 63)).astype(np.int32)
    found = run(COUNTED, {"data": "int32[1,63]"}, {"data": data})["output_0"][0]
    there = np.flatnonzero(data)
    assert found[: len(there)].tolist() == there.tolist()
    assert found[-1] == len(there)


BOTH = """
i = nl.ndarray((96, 1), dtype=nl.int32, buffer=nl.sbuf)
nisa.dma_copy(dst=i, src=idx)
j = nl.ndarray((96, 1), dtype=nl.int32, buffer=nl.sbuf)
nisa.dma_copy(dst=j, src=to)
nisa.dma_copy(
    dst=table.ap([[64, 96], [1, 64]], vector_offset=j, indirect_dim=0),
    src=data.ap([[64, 96], [1, 64]], vector_offset=i, indirect_dim=0),
    oob_mode=nisa.oob_mode.skip,
)
return table
"""


def test_rows_gathered_and_scattered_at_once() -> None:
    """A row is left out if either of its indices is outside."""
    idx, to = indices(), RANDOM.permutation(300)[:96].astype(np.int32)[:, None]
    idx[3], to[4] = 300, -7
    types = {**SUMS, "to": "int32[96,1]"}
    expected = ROWS[::-1].copy()
    inputs: Arrays = {"data": ROWS, "idx": idx, "table": ROWS[::-1].copy(), "to": to}
    found = run(BOTH, types, inputs)["output_0"]
    for source, target in zip(idx[:, 0], to[:, 0], strict=True):
        if 0 <= source < 300 and 0 <= target < 300:
            expected[target] = ROWS[source]
    assert np.array_equal(found, expected)


WITHIN = """
t = nl.ndarray((128, 96), dtype=nl.float32, buffer=nl.sbuf)
nisa.dma_copy(dst=t, src=a)
c = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
nisa.dma_copy(dst=c, src=n)
u = nl.ndarray((128, 96), dtype=nl.float32, buffer=nl.sbuf)
nisa.memset(dst=u, value=0.0)
part = [[96, 128], [1, 32]]
{body}
out = nl.ndarray((128, 96), dtype=nl.float32, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out, src=u)
return out
"""
AT = "scalar_offset=c, indirect_dim=1"


@pytest.mark.parametrize(
    "body",
    [
        f"nisa.dma_copy(dst=u.ap(part, {AT}), src=t.ap(part, {AT}))",
        f"nisa.tensor_copy(dst=u.ap(part, {AT}), src=t.ap(part, {AT}))",
        f"nisa.tensor_tensor(u.ap(part, {AT}), t.ap(part, {AT}), u.ap(part, {AT}), nl.add)",
        f"nisa.activation(dst=u.ap(part, {AT}), op=nl.copy, data=t.ap(part, {AT}))",
    ],
)
def test_a_scalar_offset_within_a_partition(body: str) -> None:
    """Tests offsets of transfers and of compute engines, on either side."""
    data = RANDOM.standard_normal((128, 96)).astype(np.float32)
    types = {"a": "float32[128,96]", "n": "int32[1,1]"}
    found = run(WITHIN.format(body=body), types, {"a": data, "n": np.array([[17]], np.int32)})
    expected = np.zeros_like(data)
    expected[:, 17:49] = data[:, 17:49]
    assert np.array_equal(found["output_0"], expected)


MOVED = """
t = nl.ndarray((128, 128), dtype=nl.bfloat16, buffer=nl.sbuf)
{write}
e = nl.ndarray((128, 128), dtype=nl.bfloat16, buffer=nl.sbuf)
nisa.dma_copy(dst=e, src=eye)
p = nl.ndarray((128, 128), dtype=nl.bfloat16, buffer=nl.psum)
nisa.nc_matmul(dst=p, stationary=t, moving=e, is_transpose={transpose})
u = nl.ndarray((128, 128), dtype=nl.bfloat16, buffer=nl.sbuf)
nisa.tensor_copy(dst=u, src=p)
out = nl.ndarray((16, 128), dtype=nl.bfloat16, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out, src=u[0:16, :])
return out
"""
FIRST = "nisa.dma_copy(dst=t[:, 0:16], src=data)"


@pytest.mark.parametrize(("write", "transpose"), [(FIRST, True), (FIRST, False), ("", True)])
def test_columns_that_nobody_wrote_stay_by_themselves(write: str, transpose: bool) -> None:
    """They are rows of the product, which need not be used, but must be initialised."""
    data = RANDOM.standard_normal((128, 16)).astype(ml_dtypes.bfloat16)
    inputs: Arrays = {"data": data.view(np.uint16)}
    inputs["eye"] = np.eye(128, dtype=ml_dtypes.bfloat16).view(np.uint16)
    types = {"data": "bfloat16[128,16]", "eye": "bfloat16[128,128]"}
    body = MOVED.format(write=write, transpose=transpose)
    if not transpose:
        body = body.replace(
            "p = nl.ndarray((128, 128), dtype=nl.bfloat16",
            "p = nl.ndarray((128, 128), dtype=nl.float32",
        )
    if write:
        assert np.array_equal(run(body, types, inputs)["output_0"], data.T.view(np.uint16))
        return
    with pytest.raises(ProgramFault, match="before it is written"):
        run(body, types, inputs)
