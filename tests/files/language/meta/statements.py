# test: check
# args: a=float32[128,64]
"""Every statement of the meta-language is as in Python."""
import math

import numpy as np

import nki
import nki.isa as nisa
import nki.language as nl

LIMIT = 4
WORDS = ["b", "a"]
WORDS.append("c")


@nki.jit
def kernel(a):
    """A docstring; the next line is a bare string."""
    "Nothing happens here."
    total = 0
    for i in range(LIMIT):
        if i == 1:
            continue
        if i == 3:
            break
        total += i
    else:
        total = -1
    assert total == 2
    for i, (word, n) in enumerate(zip(WORDS, (1, 2, 3)), 1):
        total += i * n
    for key, value in {"x": 1}.items():
        assert (key, value) == ("x", 1)
    for word in reversed(WORDS):
        pass
    else:
        total += 100
    assert total == 116 and word == "b"
    while True:
        total -= 1
        if total % 10 == 0:
            break
    low = 1 if total > 5 else 0
    assert 0 < low <= 1 != 2 and (low and [] or "none") == "none"
    if (n := total // 10) > 10:
        total = n
    first, *middle, (last, _) = 1, 2, 3, (4, 5)
    assert (total, first, middle, last) == (11, 1, [2, 3], 4)
    total **= 2
    total >>= 1
    items = x, y = [1, 2]
    items[0], x = x + 5, y
    del items[1]
    assert total == 60 and items == [6] and x == 2, f"{total=} {items!r:>10} {x:03d}"
    count: int = 3
    assert count == 3 and math.ceil(2.1) == 3 and math.gcd(12, 18) == 6 and math.prod([2, 3]) == 6
    assert min(3, 1) == 1 and max([2, 5]) == 5 and abs(-2) == 2 and round(2.5) == 2
    assert sorted(WORDS) == ["a", "b", "c"] and any([0, 1]) and not all([0, 1]) and len(WORDS) == 3
    assert isinstance(3, int) and getattr(a, "dtype") == a.dtype and not hasattr(a, "nothing")
    assert np.float32 == nl.float32 and np.finfo(np.float32).min < -3e38
    assert np.iinfo(np.int8).max == 127 and np.prod((2, 3)) == 6
    match (1, {"k": [2, 3]}):
        case (1, {"k": [2, n]}) if n > 2:
            assert n == 3
        case _:
            assert False
    print("compiling", total, sep=": ")
    with nl.no_reorder():
        scratch = nl.ndarray((128, 8), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=scratch, value=0.0)
    import math as m
    assert m.floor(-0.5) == -1
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out
