"""Additions of NKI 0.7, called from Python and in the closed world: values and identical bytes."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import nkic
from nkic import api

A = np.arange(200 * 100, dtype=np.float32).reshape(200, 100)
B = A[:128, :96].copy()
ROWS = np.arange(6 * 8, dtype=np.float32).reshape(6, 8)


def number(value: int) -> Any:
    return np.full((1, 1), value, np.int32)


def blocks() -> Any:
    """Return B with 1 added to every second tile of 32 columns."""
    return B + (np.arange(96) // 32 % 2).astype(np.float32)


def odd_rows(last: int) -> Any:
    found = np.zeros_like(ROWS)
    found[1 : last + 1 : 2] = ROWS[1 : last + 1 : 2]
    return found


CASES: list[tuple[str, tuple[Any, ...], Any]] = [
    ("through_tiles", (A,), -A),
    ("through_blocks", (B,), blocks()),
    ("allocated", (B,), B),
    ("by_slab", (A.reshape(4, 50, 100),), A.reshape(4, 50, 100) * np.arange(4)[:, None, None]),
    *(("computed", (number(n),), number(5 - 2 * n)) for n in (0, 7, -3)),
    ("addressed", (ROWS, number(4)), ROWS[4:5]),
    *(("counted", (ROWS, number(n)), odd_rows(n)) for n in (0, 3, 5)),
    ("counted_in_a_register", (ROWS, number(4)), ROWS[:4].sum(0, keepdims=True)),
    *(("halved", (number(n),), number(n.bit_length())) for n in (0, 1, 100)),
    ("programmed", (B,), np.concatenate([B[:, :48] * 2, B[:, 48:] + 1], axis=1)),
]


@pytest.fixture(scope="module")
def k() -> Iterator[ModuleType]:
    nkic.install()
    sys.modules.pop("tests.api.nki_0_7", None)
    yield importlib.import_module("tests.api.nki_0_7")
    nkic.nki.uninstall()


@pytest.mark.parametrize(("name", "arguments", "expected"), CASES)
def test_what_the_pages_show_runs(
    k: ModuleType, name: str, arguments: tuple[Any, ...], expected: Any
) -> None:
    kernel = getattr(k, name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(k.nki.simulate(kernel)(*arguments), expected)
    both = [api.prepare(kernel, arguments, evaluate=way) for way in ("native", "closed")]
    assert both[0].artifact.data == both[1].artifact.data


def test_configurations_of_the_compiler_behind(k: ModuleType) -> None:
    compiler, kernel = importlib.import_module("nki.compiler"), k.through_tiles.func
    quiet = compiler.CompileConfig(address_rotation=compiler.AddressRotation.AUTO)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = k.nki.jit(kernel, compile_config=quiet)
    np.testing.assert_array_equal(made(A), -A)
    with pytest.warns(api.NkicWarning, match="`prefetch_auto` of `compile_config=` has") as seen:
        k.nki.jit(kernel, compile_config=compiler.CompileConfig(prefetch_auto=True))
    assert seen[0].filename == __file__
    with pytest.raises(api.CompileError, match=r"takes a nki\.compiler\.SpecializationConfig"):
        k.nki.jit(specialization_config=quiet)
    with pytest.raises(TypeError, match="prefetch"):
        compiler.CompileConfig(prefetch=True)
