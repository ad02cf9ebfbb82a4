# test: compile
# args: n=int32[1,1]
# nki: 0.7
"""Comparisons of scalars give scalars, which nothing uses here."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(n):
    i = nisa.scalar_load(nl.load(n))
    found = [i < 2, i <= i + 1, 2 > i, i >= -(2**31), i == i, i != 3, 3 == i, 2**31 - 1 != i]
    assert all(isinstance(one, nisa.NkiScalar) and one is not i for one in found)
    assert not isinstance(i == None, nisa.NkiScalar) and not i == "i" and i != "i"  # noqa: E711
    assert i in [i] and hash(i) == hash(i)

    def body(k):
        k < i

    nl.fori_loop(0, 4, body)
    out = nl.ndarray(n.shape, n.dtype, buffer=nl.shared_hbm)
    nisa.scalar_store(out, i)
    return out
