"""Test `nl.shared_constant`, and the NumPy arrays that it accepts."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nkic.base.diagnostics import CompileFailed
from nkic.language.creation import ConstantArray
from nkic.machine.dtypes import BFLOAT16, FLOAT32
from tests.harness.language import run

KERNEL = """\
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel():
    table = nl.shared_constant({constant})
    out = nl.ndarray(table.shape, dtype=table.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=table)
    return out
"""


def constant(expression: str) -> Any:
    (found,), _ = run(KERNEL.format(constant=expression), {})
    return found.array


@pytest.mark.parametrize(
    "expression",
    [
        "np.eye(5, dtype=np.float32)",
        "np.eye(3, 5, k=1, dtype=np.int8)",
        "np.identity(128, dtype=np.int8)",
        "np.zeros((3, 4), dtype=np.float16)",
        "np.ones((7,), np.uint32)",
        "np.full((2, 3), 1.5, dtype=np.float32)",
        "np.arange(24, dtype=np.float32).reshape(2, 3, -1)",
        "np.arange(3, 9, 2, dtype=np.int16)",
        "np.array([[1, 2, 3], [4, 5, 6]], dtype=np.uint8)",
        "np.array([[True, False]])",
        "np.asarray([-0.1, 3.0e8], dtype=np.float32)",
        "np.arange(6, dtype=np.int32).astype(np.float16).reshape((3, 2))",
    ],
)
def test_arrays_are_numpys(expression: str) -> None:
    wanted = eval(expression, {"np": np})
    found = constant(expression)
    assert found.dtype == wanted.dtype
    assert np.array_equal(found, wanted)


def test_without_dtype_an_array_has_one_that_engines_have() -> None:
    assert constant("np.zeros(3)").dtype == np.float32
    assert constant("np.array([1, 2])").dtype == np.int32
    assert constant("np.full((2,), 0.5)").tolist() == [0.5, 0.5]


@pytest.mark.parametrize("kind", ["float32", "float16", "int8", "uint32", "bool"])
def test_files(tmp_path: Path, kind: str) -> None:
    wanted = np.random.default_rng(0).integers(0, 2, (3, 5)).astype(kind)
    np.save(tmp_path / "table.npy", wanted)
    found = constant(f'"{tmp_path}/table.npy"')
    assert found.dtype == wanted.dtype and np.array_equal(found, wanted)


def test_files_of_bfloat16(tmp_path: Path) -> None:
    wanted = np.arange(6).astype(ml_dtypes.bfloat16)
    np.save(tmp_path / "table.npy", wanted)
    assert np.array_equal(constant(f'"{tmp_path}/table.npy"'), wanted)


@pytest.mark.parametrize("kind", ["<f4", ">f4"])
def test_files_in_another_order(tmp_path: Path, kind: str) -> None:
    wanted = np.asfortranarray(np.arange(6).reshape(2, 3).astype(kind))
    np.save(tmp_path / "table.npy", wanted)
    assert np.array_equal(constant(f'"{tmp_path}/table.npy"'), wanted)


def test_equal_data_is_one_tensor() -> None:
    text = KERNEL.format(constant="np.eye(4, dtype=np.float32)")
    text = text.replace(
        "    out =",
        "    again = nl.shared_constant(np.identity(4, dtype=np.float32))\n"
        "    other = nl.shared_constant(np.identity(4, dtype=np.float16))\n"
        "    assert again.name == table.name != other.name\n    out =",
    )
    (found,), said = run(text, {})
    assert np.array_equal(found.array, np.eye(4))
    assert [one.code.slug for one in said] == ["unused-tensor"]  # other


def test_instances_of_a_grid_share_a_constant() -> None:
    text = KERNEL.format(constant="np.arange(4, dtype=np.float32)")
    (found,), _ = run(text, {}, grid=(3,))
    assert found.array.tolist() == [0, 1, 2, 3]


def refused(expression: str) -> tuple[str, str]:
    with pytest.raises(CompileFailed) as caught:
        constant(expression)
    (found,) = caught.value.diagnostics
    assert found.primary is not None and found.primary.span.line == 9
    return found.code.slug, found.message


def test_what_is_no_constant(tmp_path: Path) -> None:
    np.save(tmp_path / "wide.npy", np.zeros(3))
    (tmp_path / "text.npy").write_text("no array")
    np.save(tmp_path / "short.npy", np.ones(9, np.float32))
    content = (tmp_path / "short.npy").read_bytes()
    (tmp_path / "short.npy").write_bytes(content[:-1])
    for name, said in {
        "wide": "float64",
        "text": "not an npy",
        "short": "35 bytes follow",
        "none": "no such file",
    }.items():
        slug, message = refused(f'"{tmp_path}/{name}.npy"')
        assert slug == "constant-file" and said in message, message
    assert refused("3.0")[0] == "argument-kind"
    assert refused("np.zeros((0, 4), np.float32)")[0] == "bad-shape"
    assert refused("np.array([1 << 40])")[0] == "wrong-value"
    assert refused("np.array([300], dtype=np.uint8)")[0] == "wrong-value"
    assert refused("np.array([[1, 2], [3]])")[0] == "wrong-value"


def test_a_constant_may_be_returned() -> None:
    text = KERNEL.format(constant="np.eye(4, dtype=np.float32)")
    text = text.replace("    nisa.dma_copy(dst=out, src=table)\n", "").replace("    out =", "    #")
    (found,), said = run(text.replace("return out", "return table"), {})
    assert np.array_equal(found.array, np.eye(4)) and said == ()


def test_a_nan_stays_one_in_bfloat16() -> None:
    array = ConstantArray(FLOAT32, (1,), b"\xff\xff\xff\x7f").astype(BFLOAT16)
    assert np.isnan(np.frombuffer(array.data, ml_dtypes.bfloat16)).all()
