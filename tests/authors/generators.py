"""Generators that record instructions."""

import itertools
import nki
import nki.isa as nisa
import nki.language as nl


def out_of(t):
    o = nl.ndarray(t.shape, dtype=t.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=o, src=t)
    return o


def bumps(t, n):
    for i in range(n):
        nisa.tensor_scalar(t, t, nl.add, float(i))
        yield i


def take(*args, **kw):
    return len(args)


@nki.jit
def gens_(a):
    t = nl.load(a)
    for i in bumps(t, 2):
        pass
    for i, j in zip(bumps(t, 2), bumps(t, 3)):
        nisa.tensor_scalar(t, t, nl.multiply, float(i + j))
    x = [i for i in bumps(t, 2)]
    y = [(i, j) for i in bumps(t, 2) if i for j in bumps(t, 2) for k in bumps(t, 1)]
    z = {i: j for i in bumps(t, 2) for j in bumps(t, 1)}
    w = {i for i in bumps(t, 2)}
    u = sum(i + j for i in bumps(t, 2) for j in bumps(t, 2))
    v = [*bumps(t, 2), 3, *bumps(t, 1)]
    s = {*bumps(t, 2)}
    p = (*bumps(t, 2), *bumps(t, 2))
    q, *r = bumps(t, 3)
    (q, r), c = bumps(t, 2), 1
    take(*bumps(t, 2))
    take(1, *bumps(t, 2), 3, *bumps(t, 2), k=1)
    print(*bumps(t, 2))
    list(bumps(t, 2))
    tuple(bumps(t, 1))
    sorted(bumps(t, 2))
    max(bumps(t, 2))
    any(bumps(t, 2))
    dict(enumerate(bumps(t, 2)))
    g = bumps(t, 3)
    next(g)
    for i in g:
        break
    for i in itertools.chain(bumps(t, 1), bumps(t, 1)):
        pass
    for i in map(lambda v: nisa.tensor_scalar(t, t, nl.add, 7.0), range(2)):
        pass

    def sub():
        yield from bumps(t, 2)
        r = yield 5
        return [i for i in bumps(t, r or 1)]

    for i in sub():
        pass
    while next(g, None) is not None:
        pass
    else:
        nisa.tensor_scalar(t, t, nl.add, 1.0)
    l = []
    l.extend(bumps(t, 2))
    l += bumps(t, 2)
    l[0:1] = bumps(t, 2)
    if 1 in bumps(t, 2):
        pass
    assert 0 in bumps(t, 1), "x"
    f = f"{next(bumps(t, 1))} {list(bumps(t, 1))!r:>5}"
    o = [[j for j in bumps(t, 1)] for i in bumps(t, 2)]
    d = {**dict(zip(bumps(t, 1), "a"))}
    return out_of(t)
