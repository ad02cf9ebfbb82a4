"""The closed world takes what a kernel names from the running program, as Python itself does."""

import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import nkic
from nkic.compiler.request import parse_options
from tests.harness.two_ways import WAYS, both, live_module, outcome

A = np.zeros((8, 8), np.float32)
PATH = Path(__file__).parent / "live_values.py"


@pytest.fixture
def k() -> Iterator[ModuleType]:
    with live_module(PATH, "live_values") as module, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield module


CHANGES = [
    *("SCALE = 20", "ITEMS.append(9)", "ITEMS = [7]", "TABLE['c'] = 0", "TABLE['b'][0] = 8"),
    *("DTYPE = nl.bfloat16", "OPERATOR = nl.multiply", "CONFIG.rows = 44", "CONFIG = Config(5)"),
    *("CONFIG.sizes.append(ITEMS)", "CHILD.step = 12", "Base.step = 11", "Child.step = 13"),
    *("Child.widths.append(5)", "Child.widths = [6]", "MODE = Mode.FAST", "QUEUE.append(3)"),
    *("LISTS['x'].append(1)", "picked = other", "helper = other", "first = other"),
    *("FUNCTIONS['first'] = other", "FUNCTIONS['second'] = other", "marked = other"),
    *("part = functools.partial(helper, scale=6)", "helper.__defaults__ = (4,)"),
    *("helper.__kwdefaults__['items'] = [3]", "Base.moved.__defaults__ = (1, [], 2)"),
    *("Base.moved = moved", "MARK = object()", "ARRAY = np.ones((3, 3))"),
]


@pytest.mark.parametrize("change", CHANGES)
def test_what_host_code_has_changed_is_seen(k: ModuleType, change: str) -> None:
    given = parse_options(args=["a=float32[8,8]"])
    before = outcome(k.kernel, given, {}, "closed")
    exec(change, vars(k))
    native, closed = both(k.kernel, given)
    assert closed.printed == native.printed != before.printed
    assert closed.data == native.data is not None


def test_variables_of_a_factory_are_those_of_the_call(k: ModuleType) -> None:
    vars(k)["SCALE"] = 5
    for function, wanted in ((k.made, "[3] 3 5\n"), (k.make(8), "[8] 8 5\n")):
        artifact = nkic.prepare(function, (A,), evaluate="closed", cache_dir=None).artifact
        assert artifact.messages == (wanted,)


@pytest.mark.parametrize("way", WAYS)
def test_an_array_that_is_no_argument_is_a_constant(k: ModuleType, way: str) -> None:
    k.ARRAY[0, 0] = 50
    called = nkic.call(k.with_array, (A,), evaluate=way, cache_dir=None)
    np.testing.assert_array_equal(called.values, k.ARRAY)
    assert list(called.inputs) == ["a"]


def test_what_cannot_be_taken_is_an_error_where_it_is_used(k: ModuleType) -> None:
    vars(k)["LOCK"] = threading.Lock()
    nkic.prepare(k.kernel, (A,), evaluate="closed", cache_dir=None)
    with pytest.raises(nkic.CompileError, match="cannot take `LOCK` from the running program") as e:
        nkic.prepare(k.locked, (A,), evaluate="closed", cache_dir=None)
    assert "print(LOCK)" in str(e.value)


def test_a_function_without_source_is_an_error_where_it_is_used(k: ModuleType) -> None:
    exec("FUNCTIONS['second'] = lambda x: x\nChild.other = lambda self: 1", vars(k))
    with pytest.raises(nkic.CompileError, match=r"cannot take `FUNCTIONS`.*source cannot be found"):
        nkic.prepare(k.kernel, (A,), evaluate="closed", cache_dir=None)


def test_a_cached_artifact_is_not_used_for_other_values(k: ModuleType, tmp_path: Path) -> None:
    found = []
    for _ in range(3):
        artifact = nkic.prepare(k.kernel, (A,), evaluate="closed", cache_dir=tmp_path).artifact
        found.append(artifact.messages)
        k.ITEMS.append(1)
    assert len(set(found)) == 3
