"""Inputs: conversion of the user's values to the kernel's arrays, or a clear error."""

import hashlib
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nkic.artifact.records import Executable, TensorRecord
from nkic.base.diagnostics import Diagnostic, InputFailed, Level, LimitHit, UsageFailed
from nkic.machine.dtypes import DTYPES, find
from nkic.machine.targets import Buffer
from nkic.simulate import inputs, memory
from nkic.simulate.inputs import (
    ArrayParameter,
    BoundInputs,
    NpyFile,
    RawFile,
    Signature,
    Value,
    Wanted,
    bind,
    load_expected,
    parse_fill,
    parse_inputs,
)

BF16 = np.dtype(ml_dtypes.bfloat16)


def parameter(name: str, text: str) -> ArrayParameter:
    dtype, sizes = text.split(":")
    found = find(dtype)
    assert found is not None
    return ArrayParameter(name, found, tuple(int(n) for n in sizes.split(",") if n))


def signature(**inputs: str) -> Signature:
    return Signature("k", tuple(parameter(n, t) for n, t in inputs.items()), ())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def bound(sig: Signature, *words: str, fill: str | None = None, **more: Any) -> BoundInputs:
    return bind(sig, Wanted(specs=parse_inputs(words), fill=parse_fill(fill), **more))


def refusal(sig: Signature, *words: str, **more: Any) -> Diagnostic:
    with pytest.raises(InputFailed) as caught:
        bound(sig, *words, **more)
    (found,) = caught.value.diagnostics
    return found


# ---- the syntax of -i and --fill -----------------------------------------------------------


def test_every_way_to_write_an_input() -> None:
    found = parse_inputs(
        ["a=@a.npy", "b=f32[128, 512]=@b.bin", "c=4x2xbf16=@c.bin", "d=-3.5e2", "e=randn(7)"]
    )
    assert found == {
        "a": NpyFile("a.npy"),
        "b": RawFile("b.bin", DTYPES["float32"], (128, 512)),
        "c": RawFile("c.bin", DTYPES["bfloat16"], (4, 2)),
        "d": Value(-350.0),
        "e": inputs.Generator("randn", (7.0,)),
    }


def test_a_whole_number_keeps_its_digits() -> None:
    """In float64, 2**62 + 1 equals 2**62."""
    found = parse_inputs([f"a={2**62 + 1}"])["a"]
    assert isinstance(found, Value)
    array = inputs.Generator("const", (found.number,)).array("a", DTYPES["int64"], (2,))
    assert array.tolist() == [2**62 + 1] * 2


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("a", "expected NAME=WHAT"),
        ("=zeros", "expected NAME=WHAT"),
        ("a=", "expected NAME=WHAT"),
        ("a=@", "cannot make an input of `@`"),
        ("a=zeroes", "cannot make an input of `zeroes`"),
        ("a=randn", "cannot make an input"),
        ("a=randn(1.5)", "cannot make an input"),
        ("a=randn(-1)", "cannot make an input"),
        ("a=uniform(1,0,0)", "cannot make an input"),
        ("a=uniform(0,inf,0)", "cannot make an input"),
        ("a=const()", "cannot make an input"),
        ("a=f32=@x", "a type and a file are expected"),
        ("a=f33[2]=@x", "there is no dtype `f33`"),
        ("a=f32[0]=@x", "every size in .* must be from 1"),
        ("a=f32[1 2]=@x", "are not all whole numbers"),
        ("a=__import__('os')", "cannot make an input"),
    ],
)
def test_words_that_make_no_input(word: str, message: str) -> None:
    with pytest.raises(UsageFailed, match=message.replace("(", r"\(").replace(")", r"\)")):
        parse_inputs([word])


def test_misspelt_generators_are_named() -> None:
    with pytest.raises(UsageFailed) as caught:
        parse_inputs(["a=rand(0)"])
    assert caught.value.diagnostics[0].help == "did you mean `randn`?"
    with pytest.raises(UsageFailed, match="`a` is given twice"):
        parse_inputs(["a=zeros", "a=ones"])
    with pytest.raises(UsageFailed, match="--fill 3: not a generator"):
        parse_fill("3")


# ---- generators ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
@pytest.mark.parametrize("text", ["zeros", "ones", "iota", "poison", "const(1)", "randn(1)"])
def test_generators_make_every_type(text: str, dtype: Any) -> None:
    generator = parse_fill(text)
    assert generator is not None
    array = generator.array("x", dtype, (3, 8))
    values = inputs.numbers(array, dtype)
    assert array.shape == (3, 8)
    assert array.nbytes == 24 * dtype.size
    if text in ("zeros", "ones", "const(1)") and dtype.lowest <= 0:
        assert (values == (text != "zeros")).all()
    if text == "poison":
        assert np.isnan(values).all() if dtype.is_float else (array == array.flat[0]).all()


def test_iota_counts_as_far_as_integers_are_exact() -> None:
    def counted(dtype: str, count: int) -> list[float]:
        generator = inputs.Generator("iota")
        return list(inputs.numbers(generator.array("x", DTYPES[dtype], (count,)), DTYPES[dtype]))

    assert counted("int8", 130)[126:] == [126, 127, 0, 1]
    assert counted("bfloat16", 258)[254:] == [254, 255, 0, 1]
    assert counted("float16", 2050)[2046:] == [2046, 2047, 0, 1]
    assert counted("bool", 4) == [0, 1, 0, 1]


def test_random_numbers_are_the_same_for_ever() -> None:
    """These values are a promise: users' expected.npz files were made with them."""
    generator = inputs.Generator("randn", (0.0,))
    array = generator.array("a", DTYPES["float32"], (2, 3))
    digest = hashlib.sha256(array.tobytes()).hexdigest()
    wanted = np.random.RandomState([0, 0xE8B7BE43]).standard_normal(6).astype(np.float32)
    assert array.tobytes() == wanted.tobytes()  # 0xE8B7BE43 is the CRC-32 of "a"
    assert digest[:16] == FROZEN
    assert not np.array_equal(array, generator.array("b", DTYPES["float32"], (2, 3)))
    other = inputs.Generator("randn", (1.0,))
    assert not np.array_equal(array, other.array("a", DTYPES["float32"], (2, 3)))


FROZEN = "ae00096639ff95ad"


def test_uniform_keeps_its_limits() -> None:
    generator = inputs.Generator("uniform", (-2.0, 3.0, 5.0))
    floats = generator.array("x", DTYPES["float32"], (1000,))
    assert floats.min() >= -2
    assert floats.max() <= 3
    assert 0.2 < floats.mean() < 0.8
    integers = generator.array("x", DTYPES["int8"], (1000,))
    assert sorted(set(integers.tolist())) == [-2, -1, 0, 1, 2]


# ---- numbers and types ---------------------------------------------------------------------


@settings(max_examples=60)
@given(
    st.lists(st.floats(width=32), min_size=1, max_size=20),
    st.sampled_from(["bfloat16", "float8_e5m2"]),
)
def test_stored_as_ml_dtypes_does(values: list[float], name: str) -> None:
    array = np.array(values, np.float32)
    with np.errstate(all="ignore"):
        wanted = array.astype(getattr(ml_dtypes, name)).astype(np.float64)
    found = inputs.numbers(inputs.to_storage(array.astype(np.float64), DTYPES[name]), DTYPES[name])
    assert np.array_equal(found, wanted, equal_nan=True)


def test_integers_keep_their_digits_and_saturate() -> None:
    values = np.array([2**31 - 1, -(2**31), 2**24 + 1, 5e9, -5e9, 2.5, 3.5, np.nan])
    found = inputs.to_storage(values, DTYPES["int32"])
    assert found.tolist() == [2**31 - 1, -(2**31), 2**24 + 1, 2**31 - 1, -(2**31), 2, 4, 0]
    assert inputs.rounding_error(values[:3], found[:3].astype(float)) == 0
    assert inputs.rounding_error(values[5:7], found[5:7].astype(float)) == 0.5
    assert inputs.rounding_error(values[7:], found[7:].astype(float)) == np.inf


# ---- binding -------------------------------------------------------------------------------


def test_arrays_come_in_storage_type(folder: Path) -> None:
    halves = np.array([[1.5, -2.0]], np.float32)
    np.savez(
        "d.npz",
        a=halves,
        b=halves.astype(BF16),
        c=halves.astype(ml_dtypes.float8_e4m3fn),
        d=np.array([[True, False]]),
        e=np.array([[7, 8]], ">i4"),
        f=np.asfortranarray(np.arange(6, dtype=np.float16).reshape(2, 3)),
    )
    sig = signature(
        a="f32:1,2", b="bf16:1,2", c="float8_e4m3fn:1,2", d="bool:1,2", e="i32:1,2", f="f16:2,3"
    )
    found = bound(sig, file="d.npz").arrays
    assert {n: str(a.dtype) for n, a in found.items()} == {
        "a": "float32", "b": "uint16", "c": "uint8", "d": "uint8", "e": "int32", "f": "float16"
    }  # fmt: skip
    assert np.array_equal(found["b"].view(BF16), halves)
    assert np.array_equal(found["c"].view(ml_dtypes.float8_e4m3fn), halves)
    assert found["d"].tolist() == [[1, 0]]
    assert found["e"].tolist() == [[7, 8]]
    assert found["f"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert all(a.flags.c_contiguous for a in found.values())


def test_words_win_over_the_file_and_fill_over_nothing(folder: Path) -> None:
    np.savez("d.npz", a=np.zeros(2, np.float32), b=np.zeros(2, np.float32))
    np.save("b.npy", np.array([5, 6], np.float32))
    Path("c.bin").write_bytes(np.array([7, 8], "<f4").tobytes())
    sig = signature(a="f32:2", b="f32:2", c="f32:2", d="f32:2", e="f32:1")
    found = bound(sig, "b=@b.npy", "c=f32[2]=@c.bin", "e=2.5", fill="ones", file="d.npz")
    assert {n: a.tolist() for n, a in found.arrays.items()} == {
        "a": [0, 0], "b": [5, 6], "c": [7, 8], "d": [1, 1], "e": [2.5]
    }  # fmt: skip
    assert found.sources == {"a": "npz", "b": "file", "c": "file", "d": "ones", "e": "2.5"}


def test_one_refusal_shows_the_whole_signature(folder: Path) -> None:
    np.savez(
        "d.npz",
        a=np.zeros((2, 3), np.float32),
        b=np.zeros((2, 3), np.float32),
        c=np.zeros(6, np.float32),
        weigth=np.zeros(3, np.float32),
    )
    sig = signature(a="f32:2,3", b="bf16:2,3", c="f32:2,3", weight="f32:3")
    found = refusal(sig, file="d.npz")
    assert found.code.number == "NKI1004"
    assert found.message == (
        "the inputs do not fit kernel `k`: `b`: is float32[2, 3] in `d.npz`; "
        "`c`: is float32[6] in `d.npz`; `weight`: missing; and 1 more"
    )
    assert found.notes[0].split("\n") == [
        "inputs of k:",
        "✓ a       float32[2, 3]",
        "✗ b       bfloat16[2, 3]  is float32[2, 3] in `d.npz`",
        "✗ c       float32[2, 3]   is float32[6] in `d.npz`",
        "✗ weight  float32[3]      missing",
        "✗ weigth                  no such input; did you mean `weight`?",
    ]
    assert found.help == "--cast converts it to bfloat16 and reports the rounding error"


def test_nothing_is_read_before_everything_fits(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nkic.artifact import arrays

    np.savez("d.npz", a=np.zeros(2, np.float32), b=np.zeros(3, np.float32))
    monkeypatch.setattr(arrays, "read_data", lambda *_: pytest.fail("data was read"))
    refusal(signature(a="f32:2", b="f32:2"), file="d.npz")


@pytest.mark.parametrize(
    ("dtype", "word", "problem"),
    [
        ("f32:2", "a=3.14", "one number for 2 elements; const(3.14) fills them all"),
        ("i8:1", "a=200", "200 is not a value of int8: integers from -128 to 127"),
        ("i8:2", "a=const(2.5)", "2.5 is not a value of int8: integers from -128 to 127"),
        ("u8:1", "a=nan", "nan is not a value of uint8: integers from 0 to 255"),
        ("u8:4", "a=uniform(0,257,0)", "256 is not a value of uint8: integers from 0 to 255"),
        ("float8_e4m3fn_x4:1", "a=const(500)", "500 is beyond float8_e4m3fn_x4"),
        ("f16:1", "a=1e6", "1e+06 is beyond float16, whose maximum is 65504"),
    ],
)
def test_numbers_that_the_input_cannot_hold(dtype: str, word: str, problem: str) -> None:
    assert problem in refusal(signature(a=dtype), word).message


def test_infinity_and_rounding_are_numbers_for_floats() -> None:
    assert bound(signature(a="f16:1"), "a=inf").arrays["a"].tolist() == [np.inf]
    assert bound(signature(a="f16:1"), "a=0.1").arrays["a"].tolist() == [float(np.float16(0.1))]


def test_bits_in_an_integer_array_are_not_taken_for_bfloat16(folder: Path) -> None:
    np.savez("d.npz", a=np.zeros(2, np.uint16))
    assert refusal(signature(a="f16:2"), file="d.npz").help.startswith("--cast")
    found = refusal(signature(a="bf16:2"), file="d.npz")
    assert found.help.endswith("save it as raw bytes: array.view('V2')")


def test_raw_bytes_are_not_taken_for_a_type_that_numpy_has(folder: Path) -> None:
    np.savez("d.npz", a=np.zeros(2, "V4"))
    assert "is V4[2] in `d.npz`" in refusal(signature(a="f32:2"), file="d.npz").message


def test_a_noted_type_must_be_the_kernels(folder: Path) -> None:
    noted = np.frombuffer(b'{"a": "float8_e5m2"}', np.uint8)
    np.savez("d.npz", a=np.zeros(2, "V1"), __nki_dtypes__=noted)
    bound(signature(a="float8_e5m2:2"), file="d.npz")
    found = refusal(signature(a="float8_e4m3:2"), file="d.npz")
    assert "is float8_e5m2[2] in `d.npz`" in found.message


def test_cast_tells_what_it_cost(folder: Path) -> None:
    np.savez("d.npz", a=np.array([1.0, 1.001]), b=np.array([1e39, 0]), c=np.array([3, 4]))
    sig = signature(a="bf16:2", b="f32:2", c="f32:2")
    assert refusal(sig, file="d.npz").help.startswith("--cast")
    found = bound(sig, file="d.npz", cast=True)
    assert np.array_equal(found.arrays["a"].view(BF16), [1, 1])
    assert [(r.code.number, r.level) for r in found.remarks] == [
        ("NKI1005", Level.REMARK), ("NKI1005", Level.WARNING), ("NKI1005", Level.REMARK)
    ]  # fmt: skip
    texts = [r.message for r in found.remarks]
    assert texts[0].endswith("was cast to bfloat16: the largest rounding error is 0.001")
    assert texts[1].endswith("was cast to float32: a value beyond its range was lost")
    assert texts[2].endswith("the largest rounding error is 0")


def test_cast_changes_no_shape_and_reads_no_text(folder: Path) -> None:
    np.savez("d.npz", a=np.zeros(3), b=np.array(["x", "y"]))
    found = refusal(signature(a="f32:2", b="f32:2"), file="d.npz", cast=True)
    assert "`a`: is float64[3] in `d.npz`; `b`: is text[2] in `d.npz`" in found.message


def test_missing_files_and_folders_are_usage_errors(folder: Path) -> None:
    Path("data.npz").write_bytes(b"")
    Path("sub").mkdir()
    sig = signature(a="f32:1")
    with pytest.raises(UsageFailed) as caught:
        bound(sig, file="dat.npz")
    assert caught.value.diagnostics[0].help == "did you mean `data.npz`?"
    for words, more in ((("a=@none.npy",), {}), ((), {"file": "sub"})):
        with pytest.raises(UsageFailed, match="cannot read"):
            bound(sig, *words, **more)


# ---- expected outputs ----------------------------------------------------------------------


def test_expected_arrays_may_be_of_any_number_type(folder: Path) -> None:
    sig = Signature(
        "k", (), (parameter("output_0", "bf16:2"), parameter("x", "i32:2"), parameter("y", "f32:2"))
    )
    np.savez(
        "e.npz", output_0=np.array([1.0, 0.1]), x=np.array([1, 2], np.int64), y=np.ones(2, BF16)
    )
    with pytest.raises(InputFailed, match=r"`y`: is V2\[2\] in `e.npz`"):
        load_expected(sig, "e.npz")
    found = load_expected(sig, "e.npz", skipped=("y",))
    assert {n: a.tolist() for n, a in found.items()} == {"output_0": [1.0, 0.1], "x": [1.0, 2.0]}
    np.savez("e.npz", output_0=np.array([1.0, 0.5]).astype(BF16))
    assert load_expected(sig, "e.npz", skipped=("x", "y"))["output_0"].tolist() == [1.0, 0.5]


def test_expected_names_and_shapes_must_be_the_outputs(folder: Path) -> None:
    sig = Signature("k", (), (parameter("output_0", "f32:2,2"), parameter("output_1", "f32:2")))
    np.savez("e.npz", output_0=np.zeros(4), output1=np.zeros(2))
    with pytest.raises(InputFailed) as caught:
        load_expected(sig, "e.npz")
    (found,) = caught.value.diagnostics
    assert found.code.number == "NKI1006"
    assert found.notes[0].split("\n") == [
        "outputs of k:",
        "✗ output_0  float32[2, 2]  is float64[4] in `e.npz`",
        "✗ output_1  float32[2]     missing",
        "✗ output1                  no such output; did you mean `output_1`?",
    ]


def test_packed_outputs_are_expected_as_bytes_or_numbers(folder: Path) -> None:
    sig = Signature("k", (), (parameter("o", "float8_e4m3fn_x4:1,1"),))
    values = np.array([[1.0, 2.0, -3.0, 0.5]], np.float32)
    packed = values.astype(ml_dtypes.float8_e4m3fn).view(np.uint32)
    for array in (values, packed):
        np.savez("e.npz", o=array)
        assert load_expected(sig, "e.npz")["o"].tolist() == values.tolist()


# ---- memory --------------------------------------------------------------------------------


def executable(shape: tuple[int, ...], buffer: Buffer) -> Executable:
    tensor = TensorRecord("t", DTYPES["bfloat16"], shape, buffer, 0, "internal", 0, 0)
    return Executable("k", "trn2", 1, 0, 0, (tensor,), (), (), ())


def test_the_footprint_is_told_from_sizes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    huge = executable((1 << 20, 1 << 20), Buffer.HBM)  # 2 TiB, of which nothing is allocated
    assert memory.footprint(huge) > 4 << 40
    with pytest.raises(LimitHit, match="this machine has"):
        memory.check_memory(huge, None)
    monkeypatch.setattr(memory, "physical_memory", lambda: None)
    memory.check_memory(huge, None)


def test_max_memory_is_the_limit() -> None:
    small = executable((128, 8), Buffer.SBUF)
    needed = memory.footprint(small)
    assert memory.BASE < needed < memory.BASE + 128 * 8 * 8
    memory.check_memory(small, needed)
    with pytest.raises(LimitHit, match="`--limit memory` is"):
        memory.check_memory(small, needed - 1)


def test_forms_in_help_are_the_generators() -> None:
    assert inputs.FORMS.split(", ")[:4] == ["zeros", "ones", "iota", "poison"]
    for name, words in inputs.GENERATORS.items():
        example = f"{name}({','.join('1' for _ in words)})" if words else name
        assert inputs.parse_fill(example) is not None
