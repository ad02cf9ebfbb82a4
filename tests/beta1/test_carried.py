"""Warnings of dependences between iterations, and the boxes that decide which elements they share,
compared with all elements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from nkic.base.diagnostics import Reporter
from nkic.base.profiles import Profile
from nkic.base.source import CallChain, Span
from nkic.language import views
from nkic.language.beta1 import emit, recorded
from nkic.language.trace import Trace
from nkic.machine.dtypes import DTYPES
from nkic.machine.targets import DEFAULT, Buffer
from nkic.program.program import View
from tests.beta1.test_pages import entry

SHAPE = (4, 3, 5)
MEMORIES = (Buffer.HBM, Buffer.SBUF)


def whole(buffer: Buffer) -> View:
    trace, at = Trace(DEFAULT, Profile.BETA1, Reporter(20)), CallChain(Span("k.py", 1, 1, 1, 2))
    return views.whole(trace.declare(SHAPE, DTYPES["float32"], buffer, "t", at))


def addresses(view: View) -> list[int]:
    grids = np.indices(view.shape)
    found = view.offset + sum(g * s for g, s in zip(grids, view.strides, strict=True))
    return sorted(set(np.ravel(found).tolist()))


def inside(view: View, box: recorded.Box) -> list[int]:
    """Return the addresses of a box's elements, in the tensor of a view."""
    ranges = product(*(range(first, last + 1) for first, last in box))
    strides = views.whole(view.tensor).strides
    return sorted(sum(n * s for n, s in zip(place, strides, strict=True)) for place in ranges)


@pytest.mark.parametrize("buffer", MEMORIES)
def test_a_box_has_the_elements_of_its_view(buffer: Buffer) -> None:
    t = whole(buffer)
    boxes = 0
    for shape in product((1, 2, 4), (1, 3), (1, 2, 5)):
        for strides in product((15, 5, 0), (5, 1, 2, 15), (1, 2, 5)):
            for offset in (0, 1, 7, 16, 22):
                view = t._replace(shape=shape, strides=strides, offset=offset)
                if addresses(view)[-1] < 60 and (box := recorded._box(view)) is not None:
                    assert inside(view, box) == addresses(view)
                    boxes += 1
    assert boxes > 300


def test_a_view_covers_its_tile_if_it_has_each_element_once() -> None:
    t = whole(Buffer.PSUM)
    sizes = ((4, 3, 5), (1, 4, 15), (2, 2, 15), (60, 1, 1), (4, 3, 4))
    steps = ((15, 5, 1), (0, 15, 1), (0, 30, 1), (1, 0, 0), (15, 5, 1))
    views_ = [t._replace(shape=s, strides=n) for s, n in zip(sizes, steps, strict=True)]
    assert [emit.covers(view) for view in views_] == [len(addresses(v)) == 60 for v in views_]


@pytest.mark.parametrize("buffer", MEMORIES)
def test_every_slice_is_a_box(buffer: Buffer) -> None:
    t = whole(buffer)
    ends = [[(a, b) for b in range(1, size + 1) for a in range(b)] for size in SHAPE]
    for ranges in product(*ends):
        offset = sum(a * s for (a, _), s in zip(ranges, t.strides, strict=True))
        view = t._replace(shape=tuple(b - a for a, b in ranges), offset=offset)
        assert recorded._box(view) == tuple((a, b - 1) for a, b in ranges)
        turned = view._replace(shape=view.shape[::-1], strides=view.strides[::-1])
        assert recorded._box(turned) == recorded._box(view)
    assert recorded._box(t._replace(dtype=DTYPES["bfloat16"])) is None


READ = "u[{0}, {1}] = nl.exp(t[{0}, {1}])"
WRITE = "t[{0}, {1}] = nl.add(y[{0}, {1}], 1.0)"
ROWS = {"0:32": (0, 32), "32:64": (32, 64), "0:64": (0, 64)}
COLUMNS = ("8*n:8*n+8", "8*n+8:8*n+16", "8*n+7:8*n+9", "0:8", "16:24", "0:8*n+1", "8*n:8*n+1")
Access = tuple[bool, str, str]  # a write? and its rows and columns


def elements(rows: str, columns: str, n: int) -> set[tuple[int, int]]:
    first, last = (eval(part, {"n": n}) for part in columns.split(":"))
    return set(product(range(*ROWS[rows]), range(first, last)))


def carried(accesses: tuple[Access, ...]) -> tuple[int, int] | None:
    """Return the first iteration of three that reads what another has written last, and that."""
    written: dict[tuple[int, int], int] = {}
    for n in range(3):
        for is_write, rows, columns in accesses:
            places = elements(rows, columns, n)
            if is_write:
                written |= dict.fromkeys(places, n)
            elif earlier := {written[place] for place in places & written.keys()} - {n}:
                return n, max(earlier)
    return None


def said(lines: list[str], turns: int = 3) -> list[tuple[int, int]]:
    """Return the iterations that a warning names: the one that reads, and that which wrote."""
    loop = "".join(f"    {line}\n" for line in lines)
    body = (
        "t = nl.zeros((64, 32), dtype=nl.float32)\nu = nl.zeros((64, 32), dtype=nl.float32)\n"
        f"for n in nl.affine_range({turns}):\n{loop}r = nl.add(t, u)"
    )
    pattern = r"warning loop-carried: iteration (\d) of .*? where iteration (\d)"
    return [(int(a), int(b)) for a, b in re.findall(pattern, entry(body))]


def accesses() -> Iterator[tuple[Access, ...]]:
    for read, write in product(COLUMNS, COLUMNS):
        yield (False, "0:64", read), (True, "0:64", write)
        yield (True, "0:64", write), (False, "0:64", read)
    for rows in product(ROWS, ROWS):
        yield (False, rows[0], "0:8"), (True, rows[1], "0:8")
        yield (True, rows[1], "0:8*n+1"), (False, rows[0], "0:8")


def test_what_an_earlier_iteration_wrote_last_is_carried() -> None:
    for case in accesses():
        wanted = carried(case)
        lines = [(READ, WRITE)[is_write].format(*place) for is_write, *place in case]
        assert said(lines) == ([wanted] if wanted else []), lines


@pytest.mark.parametrize("turns", range(1, 5))
def test_two_iterations_suffice(turns: int) -> None:
    place = "0:64", "0:8"
    found = said([READ.format(*place), WRITE.format(*place)], turns)
    assert found == ([(1, 0)] if turns > 1 else [])


HALVES = ["t[:, 0:16] = nl.add(x[:, 0:16], n)", "t[:, 16:32] = nl.add(y[:, 16:32], n)"]


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        ([*HALVES, "u[...] = nl.exp(t)"], []),
        ([*HALVES[::-1], "u[...] = nl.exp(t)"], []),
        ([*HALVES, "u[:, 3:29] = nl.exp(t[:, 3:29])"], []),
        ([HALVES[0], "u[...] = nl.exp(t)", HALVES[1]], [(1, 0)]),
        ([HALVES[0], "t[:, 17:32] = nl.add(y[:, 17:32], n)", "u[...] = nl.exp(t)"], []),
        ([*HALVES, "u[i, 31 - j] = nl.exp(t[i, 31 - j])"], []),
    ],
)
def test_what_an_iteration_writes_itself_is_not_carried(
    lines: list[str], wanted: list[tuple[int, int]]
) -> None:
    assert said(lines) == wanted


UPDATES = {
    "add": ("nl.add(t, x)", "nl.add(x, t)", "nl.add(t, 3.0)", "nl.subtract(t, x)"),
    "multiply": (
        "nl.multiply(t, y)",
        "nl.multiply(t, x[:, 0:1])",
        "nl.multiply(2.0, t)",
        "nl.divide(t, y)",
    ),
    "maximum": ("nl.maximum(t, y)", "nl.maximum(t, 0.5)"),
    "minimum": ("nl.minimum(y, t)",),
    "": (
        *("nl.subtract(x, t)", "nl.subtract(3.0, t)", "nl.divide(y, t)", "nl.add(t, t)"),
        "nisa.tensor_scalar(t, np.add, 1.0, op1=np.multiply, operand1=2.0)",
        "nisa.tensor_scalar(t, np.multiply, x[:, 0:1], op1=np.add, operand1=2.0)",
    ),
}
KINDS = {call: kind for kind, calls in UPDATES.items() for call in calls}


@pytest.mark.parametrize("first", KINDS)
def test_updates_by_one_associative_operator_may_be_in_any_order(first: str) -> None:
    for second in (calls[0] for calls in UPDATES.values()):
        found = said([f"t[...] = {first}", f"t[...] = {second}"])
        alike = KINDS[first] == KINDS[second] != ""
        assert bool(found) == (not alike), second
    assert bool(said([f"t[...] = {first}"])) == (not KINDS[first])
    assert said([f"t[...] = {first}", "u[...] = nl.exp(t)"])


def test_an_update_of_another_part_is_none() -> None:
    assert said(["t[:, 0:16] = nl.add(t[:, 16:32], x[:, 0:16])"]) == []
    assert said(["t[:, 0:17] = nl.add(t[:, 15:32], x[:, 0:17])"]) == [(1, 0)]
