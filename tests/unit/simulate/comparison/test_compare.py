"""Test the comparison with expected arrays: the verdict, and the report on differences."""

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from nkic import api
from nkic.api.calling import Called
from nkic.api.comparing import differences
from nkic.cli.common import run
from nkic.cli.nki_run import command
from nkic.machine.dtypes import DTYPES, FLOAT8_E4M3, FLOAT32, INT32, UINT8, DType
from nkic.simulate import compare
from nkic.simulate.compare import EVERY, Comparison, Tolerance, ToleranceSettings, stats_of
from nkic.simulate.compare import compare as compare_compare
from nkic.simulate.inputs import numbers, to_storage

Array = NDArray[Any]
F32, BF16, I32 = DTYPES["float32"], DTYPES["bfloat16"], DTYPES["int32"]
NAN, INF = float("nan"), float("inf")


def compared(got: Any, expected: Any, dtype: DType = F32, **rule: Any) -> Comparison:
    """Compare by `close` with no tolerance, unless `rule` gives another rule."""
    output = to_storage(np.asarray(got, np.float64), dtype)
    wanted = np.asarray(expected, np.float64)
    return compare_compare("o", output, dtype, wanted, Tolerance(**{"mode": "close", **rule}))


# ---- verdicts ------------------------------------------------------------------------------


def test_close_is_per_element() -> None:
    expected = [1.0, 100.0]
    assert compared([1.0625, 106.25], expected, rtol=0.0625).passed
    found = compared([1.125, 106.25], expected, rtol=0.0625)
    assert (found.passed, found.failures) == (False, 1)
    assert found.first is not None
    assert found.first.index == (0,)
    assert compared([1.125, 106.25], expected, rtol=0.0625, atol=0.0625).passed


def test_the_tolerance_itself_is_allowed() -> None:
    assert compared([1.5], [1.0], atol=0.5).passed
    assert not compared([np.nextafter(1.5, 2, dtype=np.float32)], [1.0], atol=0.5).passed


@pytest.mark.parametrize("mode", ["close", "ulp", "exact"])
def test_integers_of_64_bits_are_compared_with_all_their_digits(mode: str) -> None:
    """As float64 these are equal."""
    i64, got = DTYPES["int64"], np.array([2**62 + 1, 2**63 - 1, -(2**63)])
    same = compare_compare("o", got, i64, numbers(got, i64), Tolerance(mode=mode))
    off = compare_compare("o", got, i64, numbers(got - [1, 1, 0], i64), Tolerance(mode=mode))
    assert (same.failures, off.failures) == (0, 2)


def test_range_measures_by_the_largest_expected() -> None:
    assert compared([1.0, 106.0], [0.0, 100.0], mode="range", rtol=0.0625).passed
    assert not compared([7.0, 100.0], [0.0, 100.0], mode="range", rtol=0.0625).passed


values = st.one_of(
    st.floats(-4, 4, width=32), st.sampled_from([NAN, INF, -INF, 0.0, -0.0, 1e30, -1e30])
)
pairs = st.integers(1, 12).flatmap(
    lambda n: st.tuples(
        hnp.arrays(np.float32, n, elements=values), hnp.arrays(np.float32, n, elements=values)
    )
)


def whole_tensor_close(
    a: Array, b: Array, rtol: float, atol: float, equal_nan: bool, rate: float
) -> bool:
    """The documented rule of nki-library's maxAllClose.

    |a - b| is at most atol + rtol * max |b|, equal infinities are equal, and no pass rate excuses
    an element that is finite in only one array.
    """
    a, b = a.astype(np.float64), b.astype(np.float64)
    finite = np.abs(b[np.isfinite(b)])
    limit = atol + rtol * (finite.max() if finite.size else 0.0)
    passed = 0
    for x, y in zip(a, b, strict=True):
        if np.isfinite(x) != np.isfinite(y):
            return False
        if np.isfinite(x):
            passed += bool(abs(x - y) <= limit)
        else:
            passed += bool(x == y or (equal_nan and np.isnan(x) and np.isnan(y)))
    return passed == len(a) or (rate < 1 and passed / len(a) >= rate)


@settings(max_examples=300)
@given(
    pairs,
    st.sampled_from([0.0, 1e-3, 0.25, 1.0]),
    st.sampled_from([0.0, 0.5]),
    st.booleans(),
    st.sampled_from([1.0, 0.5, 0.9]),
    st.booleans(),
)
def test_range_agrees_with_max_all_close(
    pair: tuple[Array, Array], rtol: float, atol: float, nan: bool, rate: float, near: bool
) -> None:
    a, b = pair
    a = np.where(np.arange(len(a)) % 2, a, b) if near else a
    rule: dict[str, Any] = {"rtol": rtol, "atol": atol, "equal_nan": nan, "min_pass_rate": rate}
    assert compared(a, b, mode="range", **rule).passed == whole_tensor_close(
        a, b, rtol, atol, nan, rate
    )


@settings(max_examples=200)
@given(pairs, st.sampled_from([0.0, 0.25]), st.sampled_from([0.0, 0.5]), st.booleans())
def test_close_agrees_with_numpy(
    pair: tuple[Array, Array], rtol: float, atol: float, nan: bool
) -> None:
    a, b = pair
    wanted = np.allclose(a.astype(np.float64), b.astype(np.float64), rtol, atol, nan)
    assert compared(a, b, rtol=rtol, atol=atol, equal_nan=nan).passed == wanted


def test_infinity_is_right_only_where_it_is_expected() -> None:
    """|inf - -inf| <= rtol * inf, and |1 - inf| <= rtol * inf, but neither makes them close."""
    for mode in ("close", "range", "ulp", "exact", "cosine", "l2"):
        rule: dict[str, Any] = {
            "mode": mode,
            "rtol": 1.0,
            "max_ulp": 1e9,
            "min_cosine": -1.0,
            "max_l2": 1e9,
        }
        assert compared([INF, 1.0], [INF, 1.0], **rule).passed, mode
        assert not compared([INF, 1.0], [-INF, 1.0], **rule).passed, mode
        assert not compared([1.0, 1.0], [INF, 1.0], **rule).passed, mode
        assert not compared([INF, 1.0], [1.0, 1.0], **rule).passed, mode


@pytest.mark.parametrize("mode", ["close", "range", "ulp", "exact", "cosine", "l2"])
def test_nan_equals_nothing_unless_asked(mode: str) -> None:
    rule: dict[str, Any] = {
        "mode": mode,
        "rtol": 1.0,
        "max_ulp": 1e9,
        "min_cosine": -1.0,
        "max_l2": 1e9,
    }
    assert not compared([NAN, 1.0], [NAN, 1.0], **rule).passed
    assert compared([NAN, 1.0], [NAN, 1.0], equal_nan=True, **rule).passed
    assert not compared([NAN, 1.0], [1.0, 1.0], equal_nan=True, **rule).passed
    assert not compared([1.0, 1.0], [NAN, 1.0], equal_nan=True, **rule).passed


def test_a_pass_rate_excuses_errors_but_not_nan() -> None:
    expected = np.zeros(10)
    got = expected.copy()
    got[3] = 1
    assert not compared(got, expected).passed
    assert compared(got, expected, min_pass_rate=0.9).passed
    assert not compared(got, expected, min_pass_rate=0.91).passed
    got[3] = NAN
    assert not compared(got, expected, min_pass_rate=0.5).passed


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_ulps_are_steps_of_the_grid(name: str) -> None:
    """Over all values of the type in order, neighbours are one step apart."""
    kind = getattr(ml_dtypes, name)
    codes = np.arange(256 if DTYPES[name].size == 1 else 65536)
    with np.errstate(invalid="ignore"):
        grid = codes.astype(f"u{DTYPES[name].size}").view(kind).astype(np.float64)
    grid = np.unique(grid[np.isfinite(grid)])  # sorted; both zeros count as one
    found = compared(grid[1:], grid[:-1], DTYPES[name], mode="ulp", max_ulp=1)
    assert found.passed
    assert not compared(grid[2:], grid[:-2], DTYPES[name], mode="ulp", max_ulp=1).passed


@settings(max_examples=100)
@given(st.floats(width=32, allow_nan=False, allow_infinity=False), st.integers(0, 40))
def test_ulps_of_float32_are_nextafter(start: float, steps: int) -> None:
    far = np.float32(start)
    for _ in range(steps):
        with np.errstate(over="ignore"):
            far = np.nextafter(far, np.float32(np.inf))
    if np.isfinite(far):
        found = compared([far], [start], mode="ulp", max_ulp=steps)
        assert found.worst is not None
        assert found.worst.ulp == steps


def test_expected_is_put_on_the_grid_for_ulp_and_exact() -> None:
    assert compared([0.1], [0.1], BF16, mode="exact").passed
    assert not compared([0.1], [0.1], BF16).passed  # 0.1 is not a bfloat16


def test_exact_means_bits() -> None:
    assert compared([2**31 - 1], [2**31 - 1], I32, mode="exact").passed
    assert not compared([2**31 - 2], [2**31 - 1], I32, mode="exact").passed
    assert not compared([0.0], [-0.0], mode="exact").passed
    assert compared([0.0], [-0.0], mode="ulp").passed


def test_cosine() -> None:
    a = np.array([3.0, 4.0])
    assert compared(a, 2 * a, mode="cosine", min_cosine=1 - 1e-12).whole == pytest.approx(1)
    found = compared([4.0, 3.0], a, mode="cosine", min_cosine=0.97)
    assert found.whole == pytest.approx(0.96)
    assert not found.passed
    assert found.failures == 0
    assert compared([0.0, 0.0], [0.0, 0.0], mode="cosine").passed
    assert not compared([0.0, 0.0], a, mode="cosine", min_cosine=0.5).passed


def test_relative_l2() -> None:
    a = np.array([3.0, 4.0])
    found = compared([3.0, 4.5], a, mode="l2", max_l2=0.1)
    assert found.whole == pytest.approx(0.1) and found.passed and found.failures == 0
    wrong = compared([3.0, 4.5], a, mode="l2", max_l2=0.09)
    assert not wrong.passed
    assert "the relative L2 error against what was expected is 0.1, above 0.09" in str(
        compare.diagnostic(wrong).message
    )
    assert compared(a, a, mode="l2").passed
    assert not compared([0.0, 1e-9], [0.0, 0.0], mode="l2").passed
    assert not compared([NAN, 4.0], a, mode="l2", max_l2=9.0).passed


def test_packed_elements_are_compared_unpacked() -> None:
    dtype = DTYPES["float8_e4m3fn_x4"]
    expected = np.array([[1.0, 2.0, 3.0, 4.0]])
    output = to_storage(np.array([[1.0, 2.0, 3.5, 4.0]]), dtype)
    found = compare_compare("o", output, dtype, expected, Tolerance("close"))
    assert found.first is not None
    assert (found.first.index, found.first.ulp, found.elements) == ((0, 2), 2, 4)


# ---- rules ---------------------------------------------------------------------------------


def test_defaults_follow_the_type() -> None:
    rules = {name: str(ToleranceSettings().rule("o", DTYPES[name])) for name in DTYPES}
    assert rules["float32"] == "close, rtol 1e-05, atol 1e-05"
    assert rules["bfloat16"] == "close, rtol 0.015625, atol 0.0078125"
    assert rules["float16"] == "close, rtol 0.00195312, atol 0.000976562"
    assert rules["float8_e5m2_x4"] == rules["float8_e5m2"] == "close, rtol 0.5, atol 0.25"
    assert rules["int32"] == rules["bool"] == "close, rtol 0, atol 0"


def test_a_name_wins_over_every() -> None:
    found = ToleranceSettings(
        {"mode": {"b": "ulp"}, "rtol": {EVERY: 0.5, "a": 0.25}, "max_ulp": {EVERY: 3.0}}, True
    )
    assert found.rule("a", F32) == Tolerance("close", 0.25, 1e-5, 4, 0.99999, 1e-5, equal_nan=True)
    assert found.rule("c", F32).rtol == 0.5
    assert found.rule("b", F32).max_ulp == 3.0
    assert str(found.rule("b", F32)) == "ulp, max_ulp 3, NaN equals NaN"


# ---- the report ----------------------------------------------------------------------------


def report(found: Comparison) -> str:
    diagnostic = compare.diagnostic(found)
    return "\n".join([diagnostic.message, *diagnostic.notes])


def test_report_of_a_stripe() -> None:
    """One partition of every tile, and the second half of the columns, are off."""
    expected = np.ones((256, 1024))
    got = expected.copy()
    got[5::128, 512:] += 0.25
    found = compared(got, expected, rtol=1e-2)
    assert report(found).split("\n") == [
        "output `o`: 1,024 of 262,144 elements differ from what was expected "
        "(close, rtol 0.01, atol 0)",
        "first: [5, 512] is 1.25, expected 1 (off by 0.25, 2,097,152 ulp)",
        "the surrounding elements, [4:7, 511:514], got and expected:",
        "     1      1      1   |     1      1      1 ",
        "     1   1.25*  1.25*  |     1      1      1 ",
        "     1      1      1   |     1      1      1 ",
        "elements by error, in tolerances:",
        "  up to 1 x tolerance         261,120",
        "  up to 100 x tolerance         1,024",
        "where it fails:",
        "  rows (axis 0): 5, 133, 2 of 256",
        "  columns (axis 1): 512-1023, 512 of 1,024",
        "  partitions, for tiles of 128 rows: 5, 1 of 128",
        "  map, 16 x 16 elements in each cell, # all of them fail, : some:",
        "    " + "." * 32 + ":" * 32,
        *["    " + "." * 64] * 7,
        "    " + "." * 32 + ":" * 32,
        *["    " + "." * 64] * 7,
    ]


def test_report_names_nan_and_the_worst() -> None:
    expected = np.array([1.0, 2.0, NAN, 4.0])
    found = compared([1.0, 2.5, NAN, 8.0], expected, rtol=0.1)
    text = report(found)
    assert "first: [1] is 2.5, expected 2 (off by 0.5, 2,097,152 ulp)" in text
    assert "worst: [2] is nan, expected nan" in text
    assert "NaN or infinite                   1" in text
    assert "axis 0: 1-3, 3 of 4" in text
    help = "NaN equals nothing unless --compare equal-nan is given"
    assert compare.diagnostic(found).help == help


def test_report_of_ulps_and_single_elements() -> None:
    text = report(compared(3.0, 2.0, mode="exact"))
    assert "1 of 1 element differ" in text
    assert "first: [0] is 3, expected 2" in text
    assert "steps of the grid" in text
    assert "around" not in text
    assert "above 256 ulp                     1" in text


def test_failing_ranges_are_cut_short() -> None:
    expected = np.zeros(40)
    got = expected.copy()
    got[::2] = 1
    assert "axis 0: 0, 2, 4, 6, 8, 10, and 14 more, 20 of 40" in report(compared(got, expected))


def test_report_of_a_tensor_with_four_dimensions() -> None:
    expected = np.zeros((2, 3, 4, 5))
    got = expected.copy()
    got[1, 2, 0, 4] = 1
    text = report(compared(got, expected))
    assert "first: [1, 2, 0, 4]" in text
    assert "the surrounding elements, [1, 2, 0:2, 3:5], got and expected:" in text
    assert "axis 1: 2, 1 of 3" in text
    assert "columns (axis 3): 4, 1 of 5" in text


def test_verdict_of_what_is_right() -> None:
    found = compared([1.0, 2.25], [1.0, 2.0], rtol=0.5)
    assert compare.verdict(found) == (
        "o: as expected (close, rtol 0.5, atol 0), largest error 0.25, 1,048,576 ulp at [1]"
    )
    assert compare.verdict(compared([1.0], [1.0])).endswith("all equal")
    partly = compared([1.0, 9.0], [1.0, 2.0], min_pass_rate=0.5)
    assert "1 of 2 elements beyond it" in compare.verdict(partly)


@pytest.mark.parametrize("mode", ["close", "range", "ulp", "exact", "cosine", "l2"])
def test_json_is_strict(mode: str) -> None:
    found = compared([[NAN, INF], [1.0, 3.0]], [[1.0, INF], [1.0, 2.0]], mode=mode)
    record = json.loads(json.dumps(compare.as_json(found), allow_nan=False))
    assert record["passed"] is False
    assert record["first"]["index"] == [0, 0]
    assert record["first"]["got"] is None
    assert record["not_finite"] == 1
    assert record["failing"][0][0][0] == 0
    if mode not in ("cosine", "l2"):
        assert (record["failures"], record["failing"]) == (2, [[[0, 1]], [[0, 1]]])
        assert sum(row["count"] for row in record["histogram"]) + record["not_finite"] == 4


# ---- stats ---------------------------------------------------------------------------------


def test_stats_leave_out_what_is_not_finite() -> None:
    found = stats_of(np.array([1, NAN, 3, INF, -INF], np.float32), F32)
    assert (found.minimum, found.mean, found.maximum) == (1, 2, 3)
    assert (found.nan, found.inf) == (1, 2)
    none = stats_of(np.array([NAN], np.float32), F32)
    assert (none.minimum, none.mean, none.maximum, none.nan) == (None, None, None, 1)


def test_stats_are_of_values_and_the_hash_of_bytes() -> None:
    from hashlib import sha256

    output = to_storage(np.array([1.5, -2.0]), BF16)
    found = stats_of(output, BF16)
    assert (found.minimum, found.mean, found.maximum) == (-2, -0.25, 1.5)
    assert found.sha256 == sha256(bytes([0xC0, 0x3F, 0x00, 0xC0])).hexdigest()


# ------------------------------------------------------------------------------------------------
# Test the figures of an array against NumPy's own, block by block.


def test_figures_of_several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "_BLOCK", 7)
    values = np.random.default_rng(1).standard_normal((5, 9)).astype(np.float32)
    values[0, :7] = np.inf  # a whole block without a finite element
    values[2, 3] = np.nan
    found = stats_of(values, FLOAT32)
    finite = values[np.isfinite(values)].astype(np.float64)
    assert (found.nan, found.inf) == (1, 7)
    assert (found.minimum, found.maximum) == (finite.min(), finite.max())
    assert found.mean == pytest.approx(finite.mean(), rel=1e-14)


@pytest.mark.parametrize(
    ("stored", "dtype", "expected"),
    [
        (np.array([0, 255, 3], np.uint8), UINT8, (0.0, 86.0, 255.0, 0)),
        (np.array([[-5], [2**31 - 1]], np.int32), INT32, (-5.0, 1073741821.0, 2147483647.0, 0)),
        (np.array([0x38, 0xB8, 0x78], np.uint8), FLOAT8_E4M3, (-1.0, 0.0, 1.0, 1)),
        (np.array([], np.float32), FLOAT32, (None, None, None, 0)),
    ],
)
def test_figures(
    stored: np.ndarray, dtype: DType, expected: tuple[float | None, float | None, float | None, int]
) -> None:
    found = stats_of(stored, dtype)
    assert (found.minimum, found.mean, found.maximum, found.inf) == expected


# ------------------------------------------------------------------------------------------------
# A forgotten transposition is named where it is the cause of other numbers, and nowhere else.

KERNEL = '''
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def product(a, b):
    """Takes each tile of `a` as if it were transposed already."""
    rows, depth = a.shape
    size = min(128, rows)
    out = nl.ndarray((rows, b.shape[1]), dtype=nl.float32, buffer=nl.shared_hbm)
    for m in range(0, rows, size):
        p = nl.ndarray((size, b.shape[1]), dtype=nl.float32, buffer=nl.psum)
        for k in range(0, depth, size):
            left = nl.ndarray((size, size), dtype=nl.float32, buffer=nl.sbuf)
            right = nl.ndarray((size, b.shape[1]), dtype=nl.float32, buffer=nl.sbuf)
            nisa.dma_copy(dst=left, src=a[m : m + size, k : k + size])
            nisa.dma_copy(dst=right, src=b[k : k + size])
            nisa.nc_matmul(dst=p, stationary=left, moving=right)
        s = nl.ndarray((size, b.shape[1]), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(dst=s, op=nl.tanh, data=p)
        nisa.dma_copy(dst=out[m : m + size], src=s)
    return out
'''
RANDOM = np.random.default_rng(0)
CAUSE = "transposed, the kernel computes what was expected"


def floats(*shape: int) -> NDArray[Any]:
    return RANDOM.standard_normal(shape).astype(np.float32) / 16


def said(folder: Path, capfd: pytest.CaptureFixture[str], a: Any, b: Any, expected: Any) -> str:
    """Return what the command says of these outputs; Python's comparison says the same."""
    (folder / "k.py").write_text(KERNEL, "utf-8")
    inputs = {"a": f"f32{[*a.shape]}".replace(" ", ""), "b": f"f32{[*b.shape]}".replace(" ", "")}
    artifact = api.compile(str(folder / "k.py"), inputs=inputs)
    artifact.save(str(folder / "k.neff"))
    np.savez(folder / "in.npz", a=a, b=b)
    np.savez(folder / "expected.npz", output_0=expected)
    words = ("-i", str(folder / "in.npz"), "--expected", str(folder / "expected.npz"), "-q")
    run(command, "nki-run", [str(folder / "k.neff"), *words])
    text: str = capfd.readouterr().err
    result = api.run(artifact, {"a": a, "b": b})
    called = Called(result.outputs["output_0"], {}, result, artifact, {"a": a, "b": b})
    assert (CAUSE in differences(called, expected)) == (CAUSE in text)
    return text


@pytest.mark.parametrize(
    ("rows", "depth", "what"),
    [(128, 128, "`a`"), (64, 64, "`a`"), (256, 128, "each 128 x 128 tile of `a`")],
)
def test_the_input_is_named(
    rows: int, depth: int, what: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    a, b = floats(rows, depth), floats(depth, 32)
    text = said(tmp_path, capfd, a, b, np.tanh(a @ b))
    assert f"note: with {what} {CAUSE}: nc_matmul computes `stationary.T @ moving`" in text


def test_other_mistakes_are_not_blamed_on_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    a, b = floats(128, 128), floats(128, 32)
    for expected in (np.tanh(a @ b) + a[:, :32], np.tanh(a.T @ b) * 2):
        assert CAUSE not in said(tmp_path, capfd, a, b, expected)
    assert "differ" not in said(tmp_path, capfd, a, b, np.tanh(a.T @ b))
