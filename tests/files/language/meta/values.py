# test: check
# args: a=float32[128,64]
"""Every kind of compile-time value is as in Python."""
import nki
import nki.isa as nisa
import nki.language as nl

SIZES = {"small": 64, "large": 128}
NOTHING = None


@nki.jit
def kernel(a):
    assert NOTHING is None and not None
    assert (True, False) == (1 == 1, 1 == 2) and True + True == 2
    assert -7 // 2 == -4 and -7 % 3 == 2 and 7 % -3 == -2 and 2**10 == 1 << 10
    assert 7 / 2 == 3.5 and 1e3 == 1000.0 and float("inf") > 10**300 and 0x1F == 0b11111 == 0o37
    assert "tile" + "s" == "tiles" and "abc"[::-1] == "cba" and "a,b".split(",") == ["a", "b"]
    pair, (x, *rest) = (1, "a"), [1, 2, 3]
    assert pair[1] == "a" and x == 1 and rest == [2, 3] and (1,) + (2,) == (1, 2)
    rows = [[0] * 3 for _ in range(2)]
    rows[0][1] = 5
    assert rows == [[0, 5, 0], [0, 0, 0]]
    assert SIZES["small"] * 2 == SIZES["large"] and list(SIZES) == ["small", "large"]
    assert SIZES.get("huge", 0) == 0 and {**SIZES, "huge": 1}["huge"] == 1
    seen = {1, 2, 2}
    assert len(seen) == 2 and 2 in seen and seen | {3} == {1, 2, 3}
    part = slice(0, 64, 2)
    assert (part.start, part.stop, part.step) == (0, 64, 2) and list(range(6))[part] == [0, 2, 4]
    assert range(0, 10, 3)[2] == 6 and len(range(10, 0, -3)) == 4
    assert a.dtype == nl.float32 and nl.float32 != nl.bfloat16
    assert nisa.engine.vector == nisa.engine.vector and nisa.engine.vector != nisa.engine.scalar
    double = lambda n: 2 * n
    functions = {"double": double, "len": len}
    assert functions["double"](4) == 8 and functions["len"]([1]) == 1
    assert a[0:128, part].shape == (128, 32)
    register = nisa.register_alloc(3)
    assert register is not None
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out
