# test: check
# args: a=float32[128,64]
# kernel: kernel
"""Functions in all their forms are as in Python."""
from functools import partial, reduce

import nki
import nki.isa as nisa
import nki.language as nl

def add(x, /, y=1, *rest, scale=1, **more):
    return (x + y + sum(rest)) * scale + len(more)


def factorial(n: "int") -> "int":
    return 1 if n < 2 else n * factorial(n - 1)


def counter(start):
    def step(by=1):
        nonlocal start
        start += by
        return start

    return step


@nki.jit
def inner(n: nl.NoSuchAnnotation):
    return n + 1


TABLE = {"add": add, "twice": lambda n: 2 * n}


@nki.jit
def kernel(a):
    assert add(1) == 2 and add(1, 2, 3, 4) == 10 and add(1, scale=5) == 10 and add(1, z=1) == 3
    assert add(*[1, 2], **{"scale": 3}) == 9 and factorial(10) == 3628800
    step = counter(10)
    assert (step(), step(5), counter(0)()) == (11, 16, 1)
    late = [lambda: i for i in range(3)]
    bound = [lambda i=i: i for i in range(3)]
    assert [f() for f in late] == [2, 2, 2] and [f() for f in bound] == [0, 1, 2]
    assert TABLE["add"](1) == 2 and TABLE["twice"](4) == 8 and inner(1) == 2
    assert partial(add, 1, scale=2)(3) == 8 and reduce(lambda m, n: m * n, [1, 2, 3, 4]) == 24
    assert {n: n * n for n in range(3)} == {0: 0, 1: 1, 2: 4} and list(map(str, [1])) == ["1"]
    assert sum(n for n in range(10) if n % 2) == 25 and [x for x in [1] for x in [2]] == [2]
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out
