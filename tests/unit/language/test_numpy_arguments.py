"""Wrong arguments to the `numpy` of kernels are errors with a place, never internal errors."""

import pytest

from tests.harness.kernels import compile_text

KERNEL = """\
# /// nkic
# kernel = "k"
# [args]
# a = "float32[128, 16]"
# ///
import nki
import nki.language as nl
import numpy as np


@nki.jit
def k(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    z = np.zeros((2, 2))
    {}
    return out
"""
INTEGER = "'float' object cannot be interpreted as an integer"


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("np.zeros(1e308)", INTEGER),
        ("np.ones((2, 1.5))", INTEGER),
        ("np.zeros((2, -1))", "negative dimensions are not allowed"),
        ("z.reshape(4.0)", "expected a sequence of integers"),
        ("z.reshape((2, None))", "'NoneType' object cannot be interpreted as an integer"),
        ("np.abs(['a'])", "NumPy cannot compute with 'a'"),
        ("np.float32(len)", "NumPy cannot compute with <built-in function len>"),
        ("np.full((2, 2), 'a')", "NumPy cannot compute with 'a'"),
        ("np.int8(300)", "Python integer 300 out of bounds for int8"),
        ("np.zeros(3)[4]", "index 4 is out of bounds for axis 0 with size 3"),
        ("np.zeros((2, 3)) + np.zeros((3, 2))", "shape mismatch"),
        ("np.finfo(3)", "3 is not a data type of NumPy's"),
        ("np.iinfo('a')", "data type 'a' not understood"),
        ("np.iinfo(np.float32)", "Invalid integer data type 'f'."),
        ("np.eye(2, 2, 'a')", "NumPy cannot compute with 'a'"),
    ],
)
def test_a_wrong_argument_has_a_place(expression: str, message: str) -> None:
    said = compile_text(KERNEL.format(expression))
    (found,) = [one for one in said if message in one.message]
    assert found.primary is not None
    assert found.primary.span.line == 15
