"""Test random numbers: the specified generator, reproducible seeds, distributions."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.harness.instruction import Call, call, run, run_one, tile
from tests.harness.reference import numpy_type, stored

Array = NDArray[Any]
MASK = 0xFFFFFFFF


def xorwow(state: list[int], count: int) -> list[int]:
    """Draw from Marsaglia's generator in Python's integers and advance `state`."""
    found = []
    for _ in range(count):
        x, y, z, w, v, d = state
        t = x ^ (x >> 2)
        v = (v ^ (v << 4) ^ t ^ (t << 1)) & MASK
        d = (d + 362437) & MASK
        state[:] = [y, z, w, state[4], v, d]
        found.append((v + d) & MASK)
    return found


def states(*shape: int) -> Array:
    return np.random.default_rng(0).integers(0, 2**32, shape, dtype=np.uint64).astype(np.uint32)


def fresh(*shape: int, **more: Any) -> Any:
    return tile(shape, **{"dtype": "uint32", **more})


def seed(number: int, **more: Any) -> Call:
    return call("set_rng_seed", src_seeds=tile(np.array([[number]], np.uint32), **more))


def test_gpsimd_draws_from_one_generator_in_each_lane() -> None:
    words, first, second, after = states(4, 6), fresh(4, 5), fresh(4, 3), fresh(4, 6)
    outcome = run(
        [
            call("rand_set_state", src_seeds=tile(words)),
            call("rng", "gpsimd", dst=first),
            call("rng", "gpsimd", dst=second),
            call("rand_get_state", dst=after),
        ]
    )
    for lane in range(4):
        state = [int(word) for word in words[lane]]
        assert outcome[first][lane].tolist() == xorwow(state, 5)
        assert outcome[second][lane].tolist() == xorwow(state, 3)
        assert outcome[after][lane].tolist() == state


def test_four_generators_of_a_vector_lane_take_turns() -> None:
    words, drawn, after = states(4, 24), fresh(4, 10), fresh(4, 24, buffer="psum")
    outcome = run(
        [
            call("rand_set_state", "vector", src_seeds=tile(words)),
            call("rng", dst=drawn),
            call("rand_get_state", "vector", dst=after),
        ],
        target="trn3",
    )
    for lane in range(4):
        parts = [[int(word) for word in words[lane, 6 * i : 6 * i + 6]] for i in range(4)]
        rounds = [xorwow(part, 3) for part in parts]
        iterations = [rounds[i % 4][i // 4] for i in range(10)]
        assert outcome[drawn][lane].tolist() == iterations
        assert outcome[after][lane].tolist() == [word for part in parts for word in part]


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "uint8", "uint16"])
def test_a_narrow_type_takes_the_lowest_bits(dtype: str) -> None:
    wide, narrow = fresh(8, 3, 4), fresh(8, 12, dtype=dtype)
    outcome = run([seed(7), call("rng", dst=wide), seed(7), call("rng", dst=narrow)])
    expected = outcome[wide].reshape(8, 12).astype(f"u{numpy_type(dtype).itemsize}").view(dtype)
    np.testing.assert_array_equal(outcome[narrow], expected)


def drawn(number: int, **more: Any) -> Array:
    dst = fresh(32, 64)
    return run([seed(number, **more), call("rng", dst=dst)])[dst]


def test_a_seed_repeats_and_another_differs() -> None:
    assert (drawn(5) == drawn(5, buffer="psum")).all()
    assert (drawn(5) != drawn(6)).mean() > 0.99
    assert len(np.unique(drawn(5))) > 32 * 64 - 5, "lanes differ"
    assert (run_one("rng", dst=fresh(32, 64)) == drawn(0)).all(), "unseeded: as seed 0"


def test_bits_are_even() -> None:
    bits = np.unpackbits(drawn(1).view(np.uint8).reshape(-1, 4), axis=1)
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 5 * 0.5 / len(bits) ** 0.5


@pytest.mark.parametrize("engine", ["vector", "gpsimd"])
def test_draws_are_spread_evenly_and_independent(engine: str) -> None:
    """65,536 draws: every byte of the words, consecutive draws, and neighbouring lanes."""
    dst = fresh(128, 512)
    words = run([seed(11), call("rng", engine, dst=dst)])[dst]
    for byte in range(4):
        counts = np.bincount((words >> 8 * byte & 255).ravel(), minlength=256)
        chi = ((counts - 256.0) ** 2 / 256).sum()
        assert abs(chi - 255) < 4 * np.sqrt(2 * 255), byte
    unit = words / 2.0**32 - 0.5
    assert abs(unit.mean()) < 4 / np.sqrt(12 * unit.size)
    for one, other in ((unit[:, 1:], unit[:, :-1]), (unit[1:], unit[:-1])):
        assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 4 / np.sqrt(one.size)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize("vectors", [False, True])
def test_rand2_is_uniform_between_its_bounds(dtype: str, vectors: bool) -> None:
    low = np.full((32, 1), -3, np.float32) - (np.arange(32)[:, None] if vectors else 0)
    high = np.full((32, 1), 5, np.float32) + (np.arange(32)[:, None] if vectors else 0)
    low, high = low.astype(np.float32), high.astype(np.float32)
    bits, dst = fresh(32, 4, 16), tile((32, 64), dtype=dtype)
    outcome = run(
        [
            *(seed(3), call("rng", dst=bits), seed(3)),
            call(
                "rand2",
                dst=dst,
                min=tile(low) if vectors else -3.0,
                max=tile(high) if vectors else 5.0,
            ),
        ],
        target="trn3",
    )
    unit = (outcome[bits].reshape(32, 64) >> 8) / 2.0**24
    expected = low + ((high - low) * unit).astype(np.float32)
    found = outcome[dst].astype(np.float64)
    np.testing.assert_array_equal(found, stored(expected, dtype).astype(np.float64))
    assert (found >= low).all() and (found <= high).all()
    scaled = (found - low) / (high - low)
    assert abs(scaled.mean() - 0.5) < 0.03 and abs(scaled.var() - 1 / 12) < 0.01


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
@pytest.mark.parametrize("vector", [False, True])
def test_dropout(dtype: str, vector: bool) -> None:
    rng = np.random.default_rng(4)
    x = rng.integers(1, 100, (40, 8, 16)).astype(numpy_type(dtype))
    prob = np.linspace(0, 1, 40, dtype=np.float32)[:, None]
    found = run_one(
        "dropout",
        dst=tile((40, 128), dtype=dtype),
        data=tile(x),
        prob=tile(prob) if vector else 0.25,
    )
    kept = found != 0
    np.testing.assert_array_equal(found, np.where(kept, x.reshape(40, 128), 0).astype(x.dtype))
    share = 1 - kept.mean(axis=1)
    if vector:
        assert share[0] == 0 and share[-1] == 1
        assert np.abs(share - prob[:, 0]).max() < 0.2
    else:
        assert abs(share.mean() - 0.25) < 0.03


def test_dropout_goes_on_with_the_generators() -> None:
    x = np.ones((32, 64), np.float32)
    one, two = tile(x.shape), tile(x.shape)
    outcome = run(
        [call("dropout", dst=d, data=tile(x), prob=tile(x[:, :1] / 2)) for d in (one, two)]
    )
    assert (outcome[one] != outcome[two]).any()


def test_dropout_keeps_bits() -> None:
    x = tile(np.array([[0x7F800001, 0x80000000]], np.uint32)).over(dtype="float32")
    found = run_one("dropout", dst=tile((1, 2)), data=x, prob=0.0)
    assert found.view(np.uint32).tolist() == [[0x7F800001, 0x80000000]]
