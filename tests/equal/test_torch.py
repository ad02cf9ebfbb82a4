"""A kernel beside a function of PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nkic
from nkic.simulate.field.elements import PRIMES, TOP
from nkic.simulate.field.functions import Order, ordered
from nkic.simulate.field.tensors import Tensor, libraries
from nkic.simulate.field.traced import Places, Traced
from tests.equal.kernels import compiled
from tests.equal.test_pairs import SOFTMAX

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'nkic[torch]'")

from tests.equal import test_references  # noqa: E402
from tests.equal import torch_functions as functions  # noqa: E402


@pytest.mark.parametrize(("body", "function"), functions.EQUAL)
def test_a_kernel_equals_its_reference(body: str, function: Callable[..., Any]) -> None:
    found = nkic.equal(compiled(body), function)
    assert found.verdict == "equal", found.text
    assert found.bits > 40
    assert ("bfloat16 at torch_functions.py" in found.text) == (function is functions.by_sigmoid)


@pytest.mark.parametrize(("body", "function"), functions.DIFFERENT)
def test_another_function_is_told_with_inputs(body: str, function: Callable[..., Any]) -> None:
    found = nkic.equal(compiled(body), function)
    assert found.verdict == "different", found.text
    assert "with --fill" in found.text


def test_what_elements_do_not_have_is_named() -> None:
    for function, said in (
        (functions.sorting, "torch.sort at torch_functions.py:"),
        (functions.deciding, "a decision by an element at torch_functions.py:"),
        (functions.indexing, "torch.argmax at torch_functions.py:"),
    ):
        found = nkic.equal(compiled(functions.COPY), function)
        assert found.verdict == "different" or f"undecided: {said}" in found.text, found.text
    for body, function, said in (
        (functions.COPY, functions.deciding, "a decision by an element"),
        (functions.COPY, functions.truncating, "conversion to int32"),
        (SOFTMAX, functions.without_dimension, "torch.softmax without a dimension"),
    ):
        found = nkic.equal(compiled(body), function)
        assert f"undecided: {said} at torch_functions.py:" in found.text


def test_the_limit_of_a_reference_has_its_line() -> None:
    found = nkic.equal(compiled(SOFTMAX), functions.unguarded)
    assert "limit of the function at torch_functions.py:" in found.text, found.text
    assert "makes infinity of numbers" in found.text


# Each row against torch itself, on small whole numbers, whose top residues are the numbers.

RNG = np.random.default_rng(3)
A, B = (RNG.integers(1, 9, (4, 3, 6)).astype(np.float32) for _ in range(2))


@pytest.mark.parametrize("name", functions.CALLS)
def test_a_function_of_torch_over_the_field(name: str) -> None:
    call = functions.CALLS[name]
    tensors = [torch.from_numpy(x.copy()) for x in (A, B)]
    wanted = np.asarray(call(*tensors), np.float64)
    with ordered(Order()):
        base = Traced.variable(np.random.default_rng(1), (1,), Places("torch"))
        found = call(*(Tensor(base.of(x.copy())) for x in (A, B))).traced
        assert found.shape == wanted.shape
        residues = found.elements.residues[TOP].reshape(wanted.shape)
    assert np.array_equal(residues, np.rint(wanted).astype(np.int64) % PRIMES[TOP])


def test_functions_of_numpy_stay_those_of_numpy() -> None:
    for function, name in (
        (functions.softmax, "torch"),
        (lambda x, w: functions.softmax(x, w), "torch"),
        (functions.Module(), "torch"),
        (functions.variance, "torch"),  # torch is a name of its file
        (lambda x, w: np.exp(x), "numpy"),
    ):
        assert libraries(function)[0].name == name, function
    assert libraries(test_references.by_einsum)[0].name == "numpy"
    assert nkic.equal(compiled(SOFTMAX), functions.by_conversion).verdict != "equal"
