"""Test scalars of the device (NKI 0.7) against Python's integers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nkic.base.diagnostics import CompileFailed, ProgramFault
from nkic.base.profiles import Profile
from nkic.program.program import instructions
from tests.harness.language import simulated

INTS = st.one_of(st.sampled_from([0, 1, -1, 2**31 - 1, -(2**31)]), st.integers(-(2**31), 2**31 - 1))
HEAD = """
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit"""
KERNEL = """
def kernel(n, m):
    i, j = nisa.scalar_load(nl.load(n)), nisa.scalar_load(nl.load(m))
    {before}
    result = nl.ndarray((1, 1), nl.int32, nl.sbuf)
    nisa.scalar_store(result, {expression})
    out = nl.ndarray((1, 1), nl.int32, nl.shared_hbm)
    nisa.dma_copy(out, result)
    return out
"""


def wrapped(number: int) -> int:
    return (number + 2**31) % 2**32 - 2**31


def stored(expression: str, i: int, j: int, before: str = "pass") -> int:
    return run(expression, i, j, before)[0]


def run(expression: str, i: int, j: int, before: str) -> tuple[int, list[str]]:
    """Return the stored values, and the instructions of the program."""
    arrays = {"n": np.full((1, 1), i, np.int32), "m": np.full((1, 1), j, np.int32)}
    text = HEAD + KERNEL.format(expression=expression, before=before)
    compiled, result = simulated(text, arrays, profile=Profile.NKI_0_7)
    names = [one.row.name for one in instructions(compiled.results["specialise"].cores[0])]
    return int(next(iter(result.outputs.values()))[0, 0]), names


@pytest.mark.parametrize(
    "expression",
    ["i + j", "i - j", "i * j", "7 - i", "i - 7", "3 + i * 4", "-i", "+i", "i * 4 + 1", "j"],
)
@settings(max_examples=8)
@given(i=INTS, j=INTS)
def test_arithmetic_wraps_in_32_bits(expression: str, i: int, j: int) -> None:
    assert stored(expression, i, j) == wrapped(eval(expression, {"i": i, "j": j}))


def test_the_documented_overflows() -> None:
    """nki.isa.NkiScalar documents these two."""
    assert stored("i * j", 100000, 100000) == 1410065408
    assert stored("i + 1", 2**31 - 1, 0) == -(2**31)


ORDERED = ["i < j", "i <= j", "i > j", "i >= j", "i == j", "i != j", "2 < i", "j == -1"]


@pytest.mark.parametrize("comparison", ORDERED)
def test_comparisons_are_scalars_that_record_nothing(comparison: str) -> None:
    """nki.isa.NkiScalar: a comparison is traced, but its result cannot be used."""
    kept = f"assert isinstance({comparison}, nisa.NkiScalar)"
    assert run("i * j", 7, 6, kept) == run("i * j", 7, 6, "pass")


USES = [
    *("found + 1", "1 - found", "-found", "+found", "found == 1", "i < found", "found != found"),
    *("nisa.scalar_store(t, found)", "nisa.register_move(nisa.register_alloc(1), found)"),
    *("nl.fori_loop(0, found, print)", "nl.fori_loop(found, 4, print)", "t[0:1, nl.ds(found, 1)]"),
    *("t[found]", "t.ap([[1, 1], [1, 1]], scalar_offset=found)", "n[nl.ds(found, 1)]"),
]


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("comparison", ["i < 2", "i == j"])
def test_what_uses_a_comparison_is_refused_where_it_does(comparison: str, use: str) -> None:
    before = f"found = {comparison}; t = nl.load(n)\n    {use}"
    with pytest.raises(CompileFailed) as raised:
        stored("i", 1, 2, before)
    said = raised.value.diagnostics[0]
    assert said.primary is not None and said.primary.span.line == 10
    assert "the result of a comparison of scalars cannot be used" in said.message
    assert "nl.less" in said.help


def test_what_to_write_for_a_comparison() -> None:
    """The code that the help of the error gives."""
    less = "t = nl.load(n); nisa.tensor_scalar(t, t, nl.less, 3); found = nisa.scalar_load(t)"
    for number in (-(2**31), 2, 3, 4):
        assert stored("found * 5 + j", number, 1, less) == 5 * (number < 3) + 1


COUNTED = """
def kernel(a, n):
    x, turns = nl.load(a), nisa.scalar_load(nl.load(n))
    def body(k):
        nisa.tensor_scalar(x[:, nl.ds(2 * k + 1, 1)], x[:, nl.ds(k * 2 + 1, 1)], nl.add, 1.0)
    nl.fori_loop({first}, {last}, body)
    out = nl.ndarray(a.shape, a.dtype, nl.shared_hbm)
    nl.store(out, x)
    return out
"""


@pytest.mark.parametrize(
    ("first", "last", "columns"),
    [("0", "turns", [1, 3, 5]), ("turns - 2", "2 * turns", [3, 5, 7, 9, 11]), ("2", "4", [5, 7])],
)
def test_scalars_bound_loops_and_their_counters_are_scalars(
    first: str, last: str, columns: list[int]
) -> None:
    a = np.arange(4 * 16, dtype=np.float32).reshape(4, 16)
    text = HEAD + COUNTED.format(first=first, last=last)
    arrays = {"a": a, "n": np.full((1, 1), 3, np.int32)}
    _, result = simulated(text, arrays, profile=Profile.NKI_0_7)
    a[:, columns] += 1
    assert np.array_equal(next(iter(result.outputs.values())), a)


def test_a_loop_bounded_by_a_register_counts_in_one() -> None:
    text = """
def kernel(n):
    r = nisa.register_alloc(2)
    def body(k):
        assert isinstance(k, nisa.VirtualRegister) and not isinstance(k, nisa.NkiScalar)
    nl.fori_loop(0, r, body)
    def other(k):
        assert isinstance(k, nisa.NkiScalar) and not isinstance(k, nisa.VirtualRegister)
    nl.fori_loop(0, 2, other)
    out = nl.ndarray((1, 1), nl.int32, nl.shared_hbm)
    nl.store(out, nl.load(n))
    return out
"""
    arrays = {"n": np.full((1, 1), 3, np.int32)}
    _, result = simulated(HEAD + text, arrays, profile=Profile.NKI_0_7)
    assert next(iter(result.outputs.values()))[0, 0] == 3


LONGS = st.one_of(
    st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63), 2**31, 10**10]),
    st.integers(-(2**63), 2**63 - 1),
)
LONG = """
def kernel(n, m):
    tile = nl.ndarray((1, 1), nl.int64, nl.sbuf)
    nisa.dma_copy(tile, n)
    i, j = nisa.scalar_load(tile), nisa.scalar_load(m)
    assert i.dtype == nl.int64 and (i + 1).dtype == nl.int64
    out = nl.ndarray((1, 1), nl.int64, nl.shared_hbm)
    nisa.scalar_store(out, {expression})
    return out
"""


@pytest.mark.parametrize(
    "expression", ["i + j", "i - j", "i * j", "7 - i", "3 + i * 4", "-i", "+j"]
)
@settings(max_examples=8)
@given(i=LONGS, j=LONGS)
def test_arithmetic_of_long_scalars_wraps_in_64_bits(expression: str, i: int, j: int) -> None:
    arrays = {"n": np.full((1, 1), i, np.int64), "m": np.full((1, 1), j, np.int64)}
    text = HEAD + LONG.format(expression=expression)
    _, result = simulated(text, arrays, profile=Profile.NKI_0_7)
    found = next(iter(result.outputs.values()))
    expected = (eval(expression, {"i": i, "j": j}) + 2**63) % 2**64 - 2**63
    assert found.dtype == np.int64
    assert int(found[0, 0]) == expected


ROWS = """
def kernel(a, n):
    i = nisa.scalar_load(n)
    out = nl.ndarray((2, 8), a.dtype, nl.shared_hbm)
    nisa.dma_copy(out[0:1], a.ap([[8, 1], [1, 8]], scalar_offset=i - 5 * 10**9))
    nisa.dma_copy(out[1:2], a[nl.ds(2 * (i - 5 * 10**9) + 1, 1)])
    return out
"""


def rows_at(number: int) -> np.ndarray:
    a = np.arange(64, dtype=np.float32).reshape(8, 8)
    arrays: dict[str, np.ndarray] = {"a": a, "n": np.full((1, 1), number, np.int64)}
    return next(iter(simulated(HEAD + ROWS, arrays, profile=Profile.NKI_0_7)[1].outputs.values()))


def test_long_scalars_are_offsets_in_hbm() -> None:
    a = np.arange(64, dtype=np.float32).reshape(8, 8)
    np.testing.assert_array_equal(rows_at(5 * 10**9 + 3), a[[3, 7]])


@pytest.mark.parametrize("off", [2**32, -(2**32), 2**61])
def test_a_long_offset_is_not_narrowed(off: int) -> None:
    """The lower 32 bits would be inside, and so would the bytes modulo 2**64."""
    with pytest.raises(ProgramFault) as raised:
        rows_at(5 * 10**9 + 3 + off)
    said = raised.value.diagnostics[0]
    assert f"index {3 + off} is outside `a`" in said.message


def test_bits_of_a_long_number_are_those_of_two() -> None:
    """Storing a number of 32 bits into a tile of 64, which nki.isa.scalar_store does through
    memory.
    """
    text = """
def kernel(n):
    halves = nl.ndarray((1, 2), nl.int32, nl.sbuf)
    nisa.memset(halves, 0)
    nisa.dma_copy(halves[:, 0:1], n)
    long = halves.view(nl.int64)
    assert long.shape == (1, 1)
    i = nisa.scalar_load(long)
    nisa.scalar_store(long, i * 2**33)
    out = nl.ndarray((1, 2), nl.int32, nl.shared_hbm)
    nisa.dma_copy(out, long.view(nl.int32))
    return out
"""
    arrays = {"n": np.full((1, 1), 21, np.int32)}
    _, result = simulated(HEAD + text, arrays, profile=Profile.NKI_0_7)
    assert next(iter(result.outputs.values())).tolist() == [[0, 42]]
