"""Changes in NKI 0.7.0, by its release notes, migration page and reference."""

import numpy as np
import pytest

from nkic.base.diagnostics import CompileFailed
from nkic.base.profiles import Profile
from tests.regressions.kernel import floats, kernel, wholes


def number(value: int) -> np.ndarray:
    return np.full((1, 1), value, np.int32)


@pytest.mark.parametrize(
    ("loop", "instead"),
    [
        ("for i in nl.dynamic_range(3):\n    nisa.tensor_scalar(t, t, nl.add, 1.0)", "fori_loop"),
        ("r = nisa.register_alloc(3)\nwhile r:\n    nisa.register_move(r, 0)", "while_loop"),
    ],
)
def test_former_loops_are_refused_with_the_new_form(loop: str, instead: str) -> None:
    body = f"t = nl.load(x)\n{loop}\nreturn to_hbm(t)"
    with pytest.raises(CompileFailed) as raised:
        kernel(body, x=floats(4, 8))
    assert instead in raised.value.diagnostics[0].help
    kernel(body, profile=Profile.NKI_0_6, x=floats(4, 8))


def test_a_counter_that_is_changed_leaves_the_loop_alone() -> None:
    """By the page of fori_loop, the counter is passed by value."""
    body = """
        t = nl.load(x)
        def body(i):
            nisa.tensor_scalar(t, t, nl.add, 1.0)
            i = i + 2
            nisa.tensor_scalar(t[:, nl.ds(i, 1)], t[:, nl.ds(i, 1)], nl.add, 10.0)
        nl.fori_loop(0, 4, body)
        return to_hbm(t)
    """
    x = wholes(0, 9, 4, 8)
    expected = x + 4 + np.where((np.arange(8) >= 2) & (np.arange(8) < 6), 10, 0)
    np.testing.assert_array_equal(kernel(body, x=x), expected)


@pytest.mark.parametrize(("first", "last", "step"), [(5, 2, 1), (0, 0, 1), (1, 6, 7), (0, 6, 4)])
def test_loops_run_as_often_as_a_range(first: int, last: int, step: int) -> None:
    body = f"""
        t, low, high = nl.load(x), nisa.scalar_load(nl.load(a)), nisa.scalar_load(nl.load(b))
        def body(i):
            nisa.tensor_scalar(t[:, nl.ds(i, 1)], t[:, nl.ds(i, 1)], nl.add, 1.0)
        nl.fori_loop(low, high, body, step={step})
        return to_hbm(t)
    """
    x = wholes(0, 9, 4, 8)
    reached = np.isin(np.arange(8), range(first, last, step))
    found = kernel(body, x=x, a=number(first), b=number(last))
    np.testing.assert_array_equal(found, x + reached)


@pytest.mark.parametrize("use", ["nisa.scalar_store(c, 3)", "assert i < 3", "i // 2", "int(i)"])
def test_what_scalars_do_not_take_is_refused(use: str) -> None:
    """scalar_store accepted a Python number, and stored nothing on the device."""
    body = f"c = nl.load(a)\ni = nisa.scalar_load(c)\n{use}\nreturn to_hbm(c)"
    with pytest.raises(CompileFailed):
        kernel(body, a=number(3))


EQUAL = """
class Plain:
    def __init__(self, n): self.n = n

class Told:
    def __init__(self, n): self.n = n
    def __eq__(self, other): return isinstance(other, Told) and self.n == other.n

class Never:
    def __eq__(self, other): return False
"""


def test_equality_of_user_classes_is_pythons() -> None:
    found = kernel(
        """
        n = Never()
        answers = [Plain(1) == Plain(1), Plain(1) != Plain(1), Told(1) == Told(1),
                   Told(1) != Told(1), Told(1) == 1, n == n, n in [n], [n].count(n), n != n]
        assert answers == [False, True, True, False, False, False, True, 1, True], answers
        return to_hbm(nl.load(x))
        """,
        top=EQUAL,
        x=floats(4, 8),
    )
    np.testing.assert_array_equal(found, floats(4, 8))


def test_generators_and_inheritance() -> None:
    found = kernel(
        """
        t = nl.load(x)
        for part, step in zip(halves(t), [Doubled(), Base()]):
            step.apply(part)
        return to_hbm(t)
        """,
        top="""
        class Base:
            by = 1.0
            def apply(self, part): nisa.tensor_scalar(part, part, nl.multiply, self.factor())
            def factor(self): return self.by * 3

        class Doubled(Base):
            def factor(self): return super().factor() * 2

        def halves(t):
            middle = t.shape[1] // 2
            yield t[:, :middle]
            yield t[:, middle:]
        """,
        x=wholes(0, 9, 4, 8),
    )
    np.testing.assert_array_equal(found, wholes(0, 9, 4, 8) * ([6] * 4 + [3] * 4))


@pytest.mark.parametrize(
    "call",
    [
        "tile_shape=[4, 4], element_shape=(4, 8), buffer=nl.sbuf, dtype=nl.float32",
        "tile_shape=(4, 0), element_shape=(4, 8), buffer=nl.sbuf, dtype=nl.float32",
        "tile_shape=(4,), element_shape=(4, 8), buffer=nl.sbuf, dtype=nl.float32",
        "tile_shape=(4, 4, 4), element_shape=(4, 8), buffer=nl.sbuf, dtype=nl.float32",
        "tile_shape=(4, 4), element_shape=(4, -8), buffer=nl.sbuf, dtype=nl.float32",
        "tile_shape=(4, True), element_shape=(4, 8), buffer=nl.sbuf, dtype=nl.float32",
        "tile_shape=(4, 4), element_shape=(4, 8), buffer='sbuf', dtype=nl.float32",
        "tile_shape=(4, 4), element_shape=(4, 8), buffer=3, dtype=nl.float32",
        "tile_shape=(4, 4), element_shape=(4, 8), buffer=nl.sbuf",
        "tile_shape=(4, 4), element_shape=(4, 8), dtype=nl.float32",
    ],
)
def test_what_alloc_tiles_does_not_take(call: str) -> None:
    """Its page lists TypeError and ValueError for these arguments: here they are located errors."""
    with pytest.raises(CompileFailed) as raised:
        kernel(f"nl.alloc_tiles({call})\nreturn x", x=floats(4, 8))
    primary = raised.value.diagnostics[0].primary
    assert primary is not None and primary.span.line == 16


def test_positional_arguments_of_grids_are_refused() -> None:
    """All arguments but the source are keyword-only."""
    for call in ("nl.tiles(x, (4, 4))", "nl.blocks(x, (4, 4), (1, 1))"):
        with pytest.raises(CompileFailed, match=r"positional|argument"):
            kernel(f"{call}\nreturn x", x=floats(4, 8))


def test_data_of_a_tensor_is_the_tensor() -> None:
    """The examples of grids use it on tiles that are elements of grids, and on other tiles."""
    found = kernel(
        """
        t = nl.ndarray((4, 8), nl.float32, nl.sbuf)
        nisa.dma_copy(dst=t.data, src=x.data)
        return to_hbm(t.data)
        """,
        x=floats(4, 8),
    )
    np.testing.assert_array_equal(found, floats(4, 8))
