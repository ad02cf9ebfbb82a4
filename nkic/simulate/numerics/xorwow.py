"""The XORWOW generator (Marsaglia 2003, "Xorshift RNGs"), vectorised, in 32-bit words.

A state is six words x, y, z, w, v, d. A draw is

    t = x ^ (x >> 2);  x, y, z, w = y, z, w, v
    v = v ^ (v << 4) ^ t ^ (t << 1);  d += 362437;  the draw is v + d
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]
Floats = NDArray[np.float32]

STATE = 6  # words
_WEYL = np.uint32(362437)
_1, _2, _4, _13, _16 = (np.uint32(bits) for bits in (1, 2, 4, 13, 16))  # shifts


def draw(states: Words, count: int) -> Words:
    """Return `count` draws for each lane, (P, count), and advance `states` (P, 6 S).

    The S generators of a lane take turns: draw i is of generator i mod S. All draw equally often,
    so some draws of the last round may be discarded.
    """
    lanes, words = states.shape
    generators = words // STATE
    x, y, z, w, v, d = np.moveaxis(states.reshape(lanes, generators, STATE), 2, 0).copy()
    rounds = -(-count // generators)
    out = np.empty((rounds, lanes, generators), np.uint32)
    for drawn in out:
        t = x ^ (x >> _2)
        x, y, z, w = y, z, w, v
        v = v ^ (v << _4) ^ t ^ (t << _1)
        d = d + _WEYL
        np.add(v, d, out=drawn)
    states[...] = np.stack((x, y, z, w, v, d), axis=2).reshape(lanes, words)
    return out.transpose(1, 0, 2).reshape(lanes, -1)[:, :count]


def seeded(seed: int, lanes: int, generators: int) -> Words:
    """Return the states (lanes, 6 generators) of a 32-bit seed.

    They are hashes of the seed and of the index of the word.
    """
    numbers = np.arange(lanes * generators * STATE, dtype=np.uint32)
    start = _hash(np.array([seed & 0xFFFFFFFF], np.uint32))
    return _hash(numbers + start).reshape(lanes, -1)


def _hash(words: Words) -> Words:
    """Return a permutation of 32-bit words without visible structure (murmur3's finaliser)."""
    words = (words ^ (words >> _16)) * np.uint32(0x85EBCA6B)
    words = (words ^ (words >> _13)) * np.uint32(0xC2B2AE35)
    hashed: Words = words ^ (words >> _16)
    return hashed


def uniform(bits: Words) -> Floats:
    """Return numbers in [0, 1): the 24 highest bits, which float32 holds exactly."""
    return (bits >> 8).astype(np.float32) * np.float32(2.0**-24)
