"""Test zeroed arrays that are allocated side by side."""

import mmap

import numpy as np
import pytest

from nkic.simulate import memory
from nkic.simulate.memory import Arena, recycled


def test_arrays_of_an_arena_are_zero_and_do_not_overlap() -> None:
    arena = Arena()
    made = [arena.zeros(rows, 1000, np.float32) for rows in (1, 300, 2, 700, 128)]
    for number, array in enumerate(made, 1):
        assert not array.any()
        array[...] = number
    assert [int(array[0, 0]) for array in made] == [1, 2, 3, 4, 5]
    assert all((array == number).all() for number, array in enumerate(made, 1))
    assert all(array.__array_interface__["data"][0] % memory.LINE == 0 for array in made)


def test_an_arena_grows_beyond_what_it_asked_for_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "RESERVED", 1 << 16)
    arena = Arena()
    made = [arena.zeros(1, size, np.uint8) for size in (1 << 15, 1 << 15, 1 << 20, 8)]
    assert [array.size for array in made] == [1 << 15, 1 << 15, 1 << 20, 8]
    assert not any(array.any() for array in made)


def test_neighbours_do_not_share_a_place_within_pages() -> None:
    arena = Arena()
    places = [arena.zeros(128, 512, np.float32).__array_interface__["data"][0] for _ in range(4)]
    assert len({place % mmap.PAGESIZE for place in places}) == 4


def test_without_huge_pages_an_arena_is_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(mmap, "MADV_HUGEPAGE", raising=False)
    assert Arena().zeros(2, 3, np.float32).tolist() == [[0, 0, 0], [0, 0, 0]]


def test_pages_of_results_are_kept_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MAX_KEPT", 3 * memory.SMALL)
    monkeypatch.setattr(memory, "_kept", [])
    sizes = [memory.SMALL, 2 * memory.SMALL, 2 * memory.SMALL + 8, 4 * memory.SMALL]
    held = [recycled(1, size, np.uint8) for size in sizes[:2]]
    assert [len(kept.memory) for kept in memory._kept] == sizes[:2]
    held.append(recycled(1, sizes[2], np.uint8))
    assert [len(kept.memory) for kept in memory._kept] == sizes[2:3]
    held.append(recycled(1, sizes[3], np.uint8))  # more than the limit
    assert memory._kept == []
    for number, array in enumerate(held, 1):
        array[...] = number
    assert all((array == number).all() for number, array in enumerate(held, 1))
