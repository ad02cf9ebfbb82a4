"""The protocol of PyTorch, by a stand-in that dispatches as it does, where it is not installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import nkic
from nkic.simulate.field.tensors import Tensor, _is_finite, _mentioned, libraries
from nkic.simulate.field.traced import Places, Traced, Untraceable
from tests.equal.kernels import compiled
from tests.equal.test_pairs import PRODUCT, SOFTMAX

_MODES: list[Any] = []


class _Mode:
    def __enter__(self) -> None:
        _MODES.append(self)

    def __exit__(self, *error: object) -> None:
        _MODES.pop()


def _function(name: str, own: Any) -> Any:
    """Return a function that asks an argument of another class to carry it out, or the mode."""

    def called(*args: Any, **options: Any) -> Any:
        for one in args:
            if hasattr(type(one), "__torch_function__"):
                return type(one).__torch_function__(called, (type(one),), args, options)
        if _MODES:
            mode = _MODES.pop()
            try:
                return mode.__torch_function__(called, (), args, options)
            finally:
                _MODES.append(mode)
        plain = [x.array if isinstance(x, Numbers) else x for x in args]
        with np.errstate(all="ignore"):
            return Numbers(own(*plain, **options))

    called.__name__ = name
    return called


class Numbers:
    """A tensor of numbers."""

    __module__ = "torch"

    def __init__(self, array: Any) -> None:
        self.array = np.asarray(array)
        self.dtype = SimpleNamespace(is_floating_point=True)

    def detach(self) -> Numbers:
        return self

    cpu = float = detach

    def numpy(self) -> Any:
        return self.array

    def t(self) -> Any:
        return torch.t(self)

    def __matmul__(self, other: Any) -> Any:
        return torch.matmul(self, other)

    def __truediv__(self, other: Any) -> Any:
        return torch.div(self, other)

    def __getitem__(self, key: Any) -> Any:
        return Numbers(self.array[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        if hasattr(type(value), "__torch_function__"):
            _function("__setitem__", None)(self, key, value)
        self.array[key] = value.array


torch: Any = ModuleType("torch")
for _name, _own in {
    "exp": np.exp,
    "sum": lambda x, dim, keepdim: x.sum(dim, keepdims=keepdim),
    "div": np.divide,
    "matmul": np.matmul,
    "t": np.transpose,
    "sort": lambda x: np.sort(x),
    "zeros": lambda *shape: np.zeros(shape, np.float32),
}.items():
    setattr(torch, _name, _function(_name, _own))
torch.from_numpy, torch.no_grad = Numbers, nullcontext
torch.overrides = SimpleNamespace(TorchFunctionMode=_Mode)


@pytest.fixture(autouse=True)
def imported(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "torch", torch)
    yield
    assert not _MODES


def unguarded(x: Any, w: Any) -> Any:
    e = torch.exp(x)
    return e / torch.sum(e, -1, keepdim=True)


def other(x: Any, w: Any) -> Any:
    e = torch.exp(x)
    return e / torch.sum(e, dim=0, keepdim=True)


def by_stores(x: Any, w: Any) -> Any:
    out = torch.zeros(32, 32)
    out[:16] = x.t()[:16] @ w
    out[16:] = x.t()[16:] @ w
    return out


def constant(x: Any, w: Any) -> Any:
    return x.t() @ w / Numbers(np.full(32, 1.0, np.float32))


def test_a_kernel_equals_its_reference() -> None:
    found = nkic.equal(compiled(SOFTMAX), unguarded)
    assert found.verdict == "equal", found.text
    assert "limit of the function at test_dispatch.py:" in found.text
    assert "makes infinity of numbers" in found.text
    for function in (by_stores, constant):
        found = nkic.equal(compiled(PRODUCT), function)
        assert found.verdict == "equal", found.text


def test_another_function_is_told() -> None:
    assert nkic.equal(compiled(SOFTMAX), other).verdict == "different"


def test_what_is_not_known_has_its_line() -> None:
    def sorting(x: Any, w: Any) -> Any:
        return torch.sort(x)

    found = nkic.equal(compiled(SOFTMAX), sorting)
    assert found.verdict == "different" or "undecided: torch.sort at" in found.text
    x = Tensor(Traced.variable(np.random.default_rng(1), (2, 3), Places("torch")))
    for refused, said in (
        (lambda: torch.sort(x), "torch.sort"),
        (lambda: x.median(), "torch.median"),
        (lambda: x.sum(out=x), "torch.sum with these arguments"),
        (lambda: x.int(), "torch.int"),
        (lambda: bool(x), "a decision by an element"),
        (lambda: x[x], "an index that depends on elements"),
    ):
        with pytest.raises(Untraceable, match=f"{said} at test_dispatch.py:"):
            refused()


class Flag:
    """An object of torch that is no tensor."""

    __module__ = "torch.flags"


def test_which_values_are_finite() -> None:
    sound, wrong = Numbers([1.0, 2.0]), Numbers([1.0, np.inf])
    whole: Any = Numbers([1.0, np.inf])
    whole.dtype = SimpleNamespace(is_floating_point=False)
    values: Any
    for values in ([], [1.0, 2], [sound], [(sound, [3.0]), Flag(), "inf", None], [whole], [np]):
        assert _is_finite(values), values
    for values in ([np.inf], [1.0, float("nan")], [wrong], [sound, (2.0, [wrong])], [[-np.inf]]):
        assert not _is_finite(values), values


class Reader:
    def read(self, x: Any) -> Any:
        return torch.exp(x)

    def __call__(self, x: Any) -> Any:
        return np.exp(x)


def by_helper(x: Any) -> Any:
    return unguarded(x, x)


def by_module(x: Any) -> Any:
    return TOOLS.helper(x)


def imports(x: Any) -> Any:
    import numpy

    return [numpy.exp(y) for y in x]


def inner(x: Any) -> Any:
    return [torch.exp(y) for y in x] + [(lambda z: z)(y) for y in x]


def recursive(x: Any) -> Any:
    return recursive(np.exp(x)) if x else by_helper


def closing(own: Any) -> Any:
    return lambda x: own(x)


def plain(x: Any) -> Any:
    return SCALE * x


SCALE = 2.0
TOOLS: Any = ModuleType("tools")
TOOLS.helper, TOOLS.other = by_helper, np.exp
LIBRARIES = {
    unguarded: ["torch", "torch"],
    by_helper: ["torch", "torch"],
    by_module: ["torch", "torch"],
    imports: ["numpy"],  # in the function
    recursive: ["numpy", "torch", "torch"],
    inner: ["torch", "torch"],
    partial(by_helper): ["torch", "torch"],
    Reader().read: ["torch", "torch"],
    Reader(): ["numpy"],
    closing(unguarded): ["torch", "torch"],
    closing(np.exp): ["numpy"],
    np.exp: ["numpy"],
    by_stores: ["torch", "torch"],
    Reader: [],
    plain: [],
    torch: ["torch"],
    constant: ["torch", "numpy"],
    len: [],
    Flag(): ["torch"],
}


@pytest.mark.parametrize("function", LIBRARIES)
def test_which_library_a_function_is_for(function: Any) -> None:
    """Torch is among the names of this file; what mentions neither gets its tensors first."""
    met = [*_mentioned(function, set())]
    assert sorted(met) == sorted(LIBRARIES[function])
    is_file = "numpy" not in met and hasattr(function, "__globals__")
    first = "torch" if "torch" in met or is_file else "numpy"
    assert sorted(each.name for each in libraries(function)) == ["numpy", "torch"]
    assert libraries(function)[0].name == first


def test_without_torch_a_function_is_numpys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch")
    assert [each.name for each in libraries(unguarded)] == ["numpy"]
    for function, first in ((plain, "torch"), (eval("lambda x: x", {}), "numpy")):
        monkeypatch.setitem(sys.modules, "torch", torch)
        assert libraries(function)[0].name == first
